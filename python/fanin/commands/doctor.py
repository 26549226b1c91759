"""`fanin doctor`: what a report of a fault needs to say of the machine, without a name or an address."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from fanin.terminal.answer import print_json

PARTS = ("polars", "altair", "vl-convert-python", "duckdb", "jinja2", "rich", "typer", "distributed")


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of lines.")] = False,
) -> None:
    """Say versions, kernel and what works on this machine: for a report of a fault. No names, addresses or paths."""
    told = {"versions": dict(versions()), "machine": dict(machine()), "works": dict(works())}
    if as_json:
        print_json(told)
        return
    for title, lines in told.items():
        typer.echo(f"{title}:")
        for name, value in lines.items():
            typer.echo(f"  {name}: {value}")


def versions() -> Iterator[tuple[str, str]]:
    """Of fanin and what it is made of."""
    from fanin import __version__
    from fanin.runs.job import engine_digest

    yield "fanin", __version__
    yield "engine", engine_digest()
    yield "python", platform.python_version()
    for part in PARTS:
        try:
            yield part, importlib.metadata.version(part)
        except importlib.metadata.PackageNotFoundError:
            yield part, "not installed"


def machine() -> Iterator[tuple[str, str]]:
    """Kind and size of the machine."""
    from fanin.process.progress import cores
    from fanin.runs.executor import memory_left

    try:
        system = platform.freedesktop_os_release().get("PRETTY_NAME", "unknown")
    except OSError:
        system = "unknown"
    left = memory_left()
    yield "system", system
    yield "kernel", platform.release()
    yield "architecture", platform.machine()
    yield "C library", " ".join(platform.libc_ver()) or "unknown"
    yield "cores", str(cores())
    yield "memory left", "unknown" if left is None else f"{left / 1e9:.1f} GB"
    yield "terminal", f"{shutil.get_terminal_size().columns} columns, {sys.stdout.encoding}"


def works() -> Iterator[tuple[str, str]]:
    """What can be used here, and what is missing where it cannot."""
    from fanin.errors import EngineError
    from fanin.kernel import cache
    from fanin.runs.kept import usual_store

    yield "compare, run, sweep (simulator)", "yes"
    yield "the store of results", "yes" if usual_store() is not None else "no: it cannot be written"
    try:
        yield "the virtual kernel", f"yes: {cache.find().version}"
    except EngineError:
        yield "the virtual kernel", "no: fanin kernel build"
    compiler = next((name for name in ("cc", "gcc", "clang") if shutil.which(name)), None)
    yield "algorithms in C", "yes" if compiler else "no: there is no C compiler"
    root = os.geteuid() == 0
    yield "testbed and fanin linux load", "as root" if root else "no: they need root"
    yield "types of the running kernel (BTF)", _yes(Path("/sys/kernel/btf/vmlinux").exists())
    yield "a cluster (Dask)", _yes(importlib.util.find_spec("distributed") is not None)


def _yes(found: bool) -> str:
    return "yes" if found else "no"
