"""Charts as files: the ending says which kind."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from fanin.errors import OutputError, ScenarioError
from fanin.files import shown

FORMATS = ("svg", "png", "pdf", "html")
"""What a picture may be."""


def save(chart: Any, file: Path) -> None:
    """Write an Altair chart whole or not at all; HTML needs no network.

    Raises
    ------
    fanin.ScenarioError
        When the name ends in none of :data:`FORMATS`.
    fanin.OutputError
        When the file cannot be written.

    Examples
    --------
    >>> save(None, Path("picture.bmp"))
    Traceback (most recent call last):
    ...
    fanin.errors.ScenarioError: command line `--out picture.bmp`: the name must end in .svg, .png, .pdf, .html
    """
    kind = file.suffix.removeprefix(".").lower()
    if kind not in FORMATS:
        raise ScenarioError(f"command line `--out {file}`: the name must end in {', '.join('.' + f for f in FORMATS)}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=".fanin-", suffix=f".{kind}", dir=file.parent)
        os.close(handle)
    except OSError as error:
        raise _refused(file, error) from error
    scratch = Path(name)
    try:
        if kind == "html":
            chart.save(scratch, inline=True)
        else:
            chart.save(scratch, **({"scale_factor": 2} if kind == "png" else {}))
        # As any other new file: the scratch file is its maker's alone.
        mask = os.umask(0)
        os.umask(mask)
        scratch.chmod(0o666 & ~mask)
        scratch.replace(file)
    except OSError as error:
        raise _refused(file, error) from error
    finally:
        scratch.unlink(missing_ok=True)


def _refused(file: Path, error: OSError) -> OutputError:
    why = (error.strerror or "unknown reason").lower()
    return OutputError(f"{shown(file)}: cannot be written ({why}); choose another place with --out")
