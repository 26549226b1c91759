"""`fanin kernel build | status | clean`."""

from __future__ import annotations

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
    from fanin import display
    from fanin.kernel.build import build as make

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
            extra = f", with {', '.join(kernel.extra)}" if kernel.extra else ""
            typer.echo(f"HZ={hertz}: Linux {kernel.version}, ready{extra}")


@app.command()
def clean() -> None:
    """Remove every virtual kernel and what was kept to build them."""
    from fanin import display
    from fanin.kernel import cache

    folder = cache.folder()
    size = _megabytes(folder)
    shutil.rmtree(folder, ignore_errors=True)
    display.note(f"removed {folder} ({size:.0f} MB)")


def _megabytes(folder: Path) -> float:
    """Room that a folder takes, MB."""
    if not folder.is_dir():
        return 0.0
    return sum(p.lstat().st_blocks * 512 for p in folder.rglob("*") if p.is_file() and not p.is_symlink()) / 1e6


def validate(
    quick: Annotated[bool, typer.Option("--quick", help="A few scenarios and one seed; indicative only.")] = False,
    cc: Annotated[
        str | None, typer.Option("--cc", metavar="A,B,...", help="Algorithms [default: newreno,cubic,dctcp,bbr,vegas].")
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Folder for validation.md and validation.json.")
    ] = Path("fanin-validation"),
) -> None:
    """Compare the simulator's profile `linux` with real Linux TCP in virtual time (needs `fanin kernel build`)."""
    import json

    from fanin import __version__, display
    from fanin.files import output_folder
    from fanin.kernel.validation import TCP, page
    from fanin.kernel.validation import validate as run_validation
    from fanin.simulation import chosen_algorithms

    names = chosen_algorithms(cc.split(",")) if cc is not None else list(TCP)
    said = "fanin validate" + (" --quick" if quick else "") + (f" --cc {cc}" if cc is not None else "")
    with output_folder(out) as scratch:
        rows = run_validation(quick=quick, cc=names, progress=display.Bar)
        text = page(rows, said, __version__)
        (scratch / "validation.md").write_text(text)
        (scratch / "validation.json").write_text(json.dumps({"command": said, "rows": rows.to_dicts()}) + "\n")
    typer.echo("\n".join(text.splitlines()[-2:]))
    display.note(f"table: {out / 'validation.md'}")
