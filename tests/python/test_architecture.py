"""No circles: what ARCHITECTURE.md draws is a graph whose arrows point one way.

Between crates Cargo sees to that. Here: between Python's files as they are imported, and between folders of a crate of which neither holds the other.
Inside a folder, and between a module and its own folder, files may need each other: a registry names what is written against its trait.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "python" / "fanin"


def in_order(graph: dict[str, set[str]]) -> list[str]:
    """What is needed before what needs it; a circle is an error that names it."""
    return list(TopologicalSorter(graph).static_order())


def test_a_circle_is_found() -> None:
    assert in_order({"a": {"b"}, "b": {"c"}}) == ["c", "b", "a"]
    with pytest.raises(CycleError, match="cycle"):
        in_order({"a": {"b"}, "b": {"c"}, "c": {"a"}})


def imported(body: list[ast.stmt]) -> Iterator[str]:
    """Modules that are imported with a file: not within functions, nor for types alone."""
    for statement in body:
        if isinstance(statement, ast.Import):
            yield from (name.name for name in statement.names)
        elif isinstance(statement, ast.ImportFrom) and statement.module:
            yield statement.module
            yield from (f"{statement.module}.{name.name}" for name in statement.names)
        elif isinstance(statement, ast.If) and "TYPE_CHECKING" not in ast.dump(statement.test):
            yield from imported([*statement.body, *statement.orelse])
        elif isinstance(statement, ast.ClassDef | ast.Try | ast.With):
            yield from imported(statement.body)


def modules_of_python() -> dict[str, Path]:
    """The package's files by the names of their modules."""
    files = {".".join(file.relative_to(PACKAGE.parent).with_suffix("").parts): file for file in PACKAGE.rglob("*.py")}
    return {name.removesuffix(".__init__"): file for name, file in files.items()}


def test_no_files_of_python_import_each_other_in_a_circle() -> None:
    modules = modules_of_python()
    graph = {
        name: {needed for needed in imported(ast.parse(file.read_text()).body) if needed in modules} - {name}
        for name, file in modules.items()
    }
    # The package itself has been begun whenever one of its modules is imported.
    graph = {name: {n for n in needed if not name.startswith(f"{n}.")} for name, needed in graph.items()}
    assert len(in_order(graph)) > 100


CIRCLES = {
    # A result writes its own page and says its own verdict, which are about it.
    "comparison.result comparison.variations rack.facts report report.data report.rounds report.words words.explain words.verdict",
    "capture.traffic waterfall",
    # A job names its engine, and an engine runs jobs.
    "kernel.engine runs.engines runs.job testbed.engine testbed.shims",
    "papers.gallery papers.linux papers.mutants papers.pages papers.reproduce",
}
"""Modules that need each other when imports within functions and for types count, too: no more of them, and none larger."""


def circles(graph: dict[str, set[str]]) -> set[str]:
    """The sets of modules that reach each other, a line each."""

    def reached(start: str) -> set[str]:
        seen: set[str] = set()
        left = [start]
        while left:
            new = graph[left.pop()] - seen
            seen |= new
            left += new
        return seen

    reach = {name: reached(name) for name in graph}
    return {" ".join(sorted(n for n in reach[name] if name in reach[n])) for name in graph if name in reach[name]}


def test_every_circle_of_imports_is_known() -> None:
    modules = modules_of_python()
    graph = {
        name: {
            needed
            for node in ast.walk(ast.parse(file.read_text()))
            if isinstance(node, ast.Import | ast.ImportFrom)
            for needed in imported([node])
            if needed in modules and needed != name and not name.startswith(f"{needed}.")
        }
        for name, file in modules.items()
    }
    assert {circle.replace("fanin.", "") for circle in circles(graph)} == CIRCLES


def folder_of(source: Path, path: list[str]) -> PurePosixPath:
    """The folder of what a path in Rust names, from the crate's root."""
    folder = PurePosixPath()
    for name in path:
        if not (source / folder / name).is_dir():
            break
        folder /= name
    return folder


def test_no_folders_of_a_crate_need_each_other_in_a_circle() -> None:
    arrows = 0
    for source in sorted(ROOT.glob("crates/*/src")):
        graph: dict[str, set[str]] = {}
        for file in source.rglob("*.rs"):
            here = PurePosixPath(*file.relative_to(source).parent.parts)
            program = re.sub(r"//.*", "", file.read_text()).split("#[cfg(test)]")[0]
            for path in re.findall(r"\bcrate::((?:\w+::)*\w+)", program):
                there = folder_of(source, path.split("::"))
                if not (there.is_relative_to(here) or here.is_relative_to(there)):
                    graph.setdefault(str(here), set()).add(str(there))
        in_order(graph)
        arrows += sum(map(len, graph.values()))
    assert arrows >= 3
