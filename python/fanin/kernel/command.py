"""`fanin kernel build | status | clean`."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    no_args_is_help=True,
    help="The virtual kernel: real Linux TCP in virtual time, for `fanin run SCENARIO --engine kernel`.",
    context_settings={"help_option_names": ["-h", "--help"]},
)

HertzOption = Annotated[int, typer.Option("--hz", help="Timer frequency of the kernel: 250 or 1000.")]


def _hertz(value: int) -> int:
    from fanin.errors import EngineError
    from fanin.kernel.cache import HERTZ

    if value not in HERTZ:
        raise EngineError(f"command line `--hz {value}`: it must be 250 or 1000")
    return value


@app.command()
def build(
    source: Annotated[
        Path | None,
        typer.Option(
            "--source",
            metavar="PATH",
            help="Tarball or folder of Linux 6.12 [default: Debian's package linux-source-6.12].",
            readable=False,
        ),
    ] = None,
    hz: HertzOption = 250,
    cc: Annotated[
        list[Path] | None,
        typer.Option(
            "--cc",
            metavar="FILE.c",
            help="Build in a congestion control (tcp_congestion_ops); repeatable.",
            readable=False,
        ),
    ] = None,
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep the source tree, so that the next build compiles only what changed.")
    ] = False,
) -> None:
    """Build the virtual kernel into the cache (4 minutes on two idle cores); as an ordinary user."""
    from fanin.kernel.build import build as make
    from fanin.terminal import display

    kernel = make(source, hertz=_hertz(hz), cc=cc or (), keep=keep, progress=display.Bar)
    display.note(f"kernel: Linux {kernel.version}, HZ={kernel.hertz}, {kernel.linux}")


@app.command()
def status() -> None:
    """Say which virtual kernels are built, where, and how much room they take."""
    from fanin.errors import EngineError
    from fanin.kernel import cache

    typer.echo(f"cache: {cache.folder()} ({_megabytes(cache.folder()):.0f} MB)")
    for hertz in cache.HERTZ:
        try:
            kernel = cache.find(hertz)
        except EngineError as error:
            typer.echo(f"HZ={hertz}: {error}")
        else:
            extra = f", with {', '.join(file.name for file in kernel.extra)}" if kernel.extra else ""
            typer.echo(f"HZ={hertz}: Linux {kernel.version}, ready{extra}")


@app.command()
def clean() -> None:
    """Remove every virtual kernel and what was kept to build them."""
    from fanin.disk.files import shown
    from fanin.errors import EngineError
    from fanin.kernel import cache
    from fanin.terminal import display

    folder = cache.folder()
    size = _megabytes(folder)
    try:
        if folder.is_dir():
            shutil.rmtree(folder)
    except OSError as error:
        raise EngineError(
            f"{shown(str(error.filename or folder))}: it cannot be removed ({(error.strerror or 'unknown reason').lower()})"
        ) from error
    display.note(f"removed {folder} ({size:.0f} MB)")


def _megabytes(folder: Path) -> float:
    """Room that a folder takes, MB."""
    if not folder.is_dir():
        return 0.0
    total = 0
    # Another process may build meanwhile, so that files come and go.
    for place, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.lstat(os.path.join(place, name)).st_blocks * 512  # noqa: PTH118
    return total / 1e6
