"""Loads a paper's judgement: ``judgement.py`` in the paper's folder, or a package of that name where it has several parts."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from fanin.papers.catalogue import CatalogueError, Paper


def judgement_of(paper: Paper) -> ModuleType | None:
    """The module that registers how the paper's claims are judged and its figures drawn; None if the paper has none.

    Loaded once. Its functions also reduce the results of experiments to what is kept.

    Raises
    ------
    CatalogueError
        When there is one, and Python cannot load it.
    """
    file = _file(paper.folder)
    if file is None:
        return None
    name = f"fanin_judgement_{paper.name}"
    loaded = sys.modules.get(name)
    if loaded is not None and loaded.__file__ == str(file):
        return loaded
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise CatalogueError(f"{file}: it cannot be loaded")
    module = importlib.util.module_from_spec(spec)
    # Before it is executed: its parts import each other by the package's name.
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise CatalogueError(f"{file}: it cannot be loaded ({type(error).__name__}: {error})") from error
    return module


def _file(folder: Path) -> Path | None:
    candidates = (folder / "judgement.py", folder / "judgement" / "__init__.py")
    return next((file.resolve() for file in candidates if file.is_file()), None)
