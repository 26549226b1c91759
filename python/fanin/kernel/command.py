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
            extra = f", with {', '.join(file.name for file in kernel.extra)}" if kernel.extra else ""
            typer.echo(f"HZ={hertz}: Linux {kernel.version}, ready{extra}")


@app.command()
def clean() -> None:
    """Remove every virtual kernel and what was kept to build them."""
    from fanin import display
    from fanin.errors import EngineError
    from fanin.files import shown
    from fanin.kernel import cache

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


def validate(
    quick: Annotated[bool, typer.Option("--quick", help="A few scenarios and one seed; indicative only.")] = False,
    cc: Annotated[
        str | None, typer.Option("--cc", metavar="A,B,...", help="Algorithms [default: reno,cubic,dctcp,bbr,vegas].")
    ] = None,
    only: Annotated[
        str | None,
        typer.Option("--only", metavar="TEXT", help="Only scenarios whose name or group contains this text."),
    ] = None,
    random: Annotated[
        int | None,
        typer.Option(
            "--random",
            metavar="N",
            min=1,
            max=100_000,
            help="N random scenarios, each under one TCP, instead of the table's.",
        ),
    ] = None,
    first: Annotated[
        str,
        typer.Option("--from", metavar="SEED[/K]", help="With --random: which series of them, and its first number."),
    ] = "1",
    offload: Annotated[
        bool, typer.Option("--offload", help="Hosts whose network cards cut segments (stack.tso), on both engines.")
    ] = False,
    hz: HertzOption = 250,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder for validation.md and kernel.csv.")] = Path(
        "fanin-validation"
    ),
    docs: Annotated[
        Path | None,
        typer.Option(
            "--docs",
            metavar="DIR",
            help="Documentation folder: replace the section of its validation.md, and write validation/kernel.csv.",
            readable=False,
        ),
    ] = None,
    store: Annotated[
        Path | None,
        typer.Option(
            "--store", metavar="DIR", help="Where runs are kept [default: fanin/validation in the user's cache]."
        ),
    ] = None,
) -> None:
    """Compare the simulator's profile `linux` with real Linux TCP in virtual time (needs `fanin kernel build`).

    Runs are kept as they end: Ctrl-C writes the table of those so far, and the same command goes on from there.
    """
    from fanin import __version__, display
    from fanin.errors import EngineError, OutputError
    from fanin.files import output_folder
    from fanin.kernel import cache, validation
    from fanin.runs.store import cache_folder
    from fanin.simulation import chosen_algorithms

    names = chosen_algorithms(cc.split(",")) if cc is not None else None
    series, begin = _series(first)
    if random is None:
        all_cases = validation.cases(quick)
    elif quick or cc is not None:
        raise EngineError(
            f"command line `{'--quick' if quick else '--cc'}`: random scenarios have their own; leave it out"
        )
    else:
        all_cases = [validation.drawn(number, series) for number in range(begin, begin + random)]
    if offload and docs is not None:
        raise EngineError("command line `--docs`: the manual's tables are of hosts without offload; leave it out")
    if offload:
        all_cases = [case.offloaded() for case in all_cases]
    kernel = cache.find(_hertz(hz))
    chosen = [c for c in all_cases if only is None or only in c.name or only in c.group]
    if not chosen:
        raise EngineError(f"command line `--only {only}`: no scenario's name or group contains this text")
    words = [
        "fanin validate",
        f"--random {random} --from {first}" if random is not None else "",
        "--quick" if quick else "",
        f"--cc {cc}" if cc else "",
        f"--only {only!r}" if only else "",
        "--offload" if offload else "",
    ]
    words += [f"--hz {hz}" if hz != cache.HERTZ[0] else "", f"--docs {docs}" if docs else ""]
    said = " ".join(word for word in words if word)
    page = docs / "validation.md" if docs is not None else None
    if page is not None and not page.is_file():
        raise OutputError(f"{page}: no such page; `--docs` takes the folder that has validation.md")
    kept = validation.Kept(store or cache_folder() / "validation")
    seeds = {"seeds": (1, 1)} if quick else {"seeds": (validation.TRIAL_SEEDS,) * 2} if random is not None else {}
    done = validation.measure(chosen, kernel, kept, cc=names, progress=display.Bar, **seeds)
    engines = ("sim", done.kernel_engine)
    rows = validation.judged(done, engines) if random is None else validation.tried(done, engines)
    if rows.is_empty():
        raise KeyboardInterrupt
    about = (said, __version__, f"Linux {kernel.version}, HZ={kernel.hertz}", done.complete)
    if random is None:
        section, table, marks = validation.page(rows, *about), "kernel.csv", validation.MARKS
    else:
        section, table, marks = validation.trial_page(rows, *about), "random.csv", validation.TRIAL_MARKS
    with output_folder(out) as scratch:
        (scratch / "validation.md").write_text(section)
        rows.write_csv(scratch / table, float_precision=4)
    if page is not None and docs is not None:
        page.write_text(validation.placed(page.read_text(), section, str(page), marks))
        (docs / "validation").mkdir(exist_ok=True)
        rows.write_csv(docs / "validation" / table, float_precision=4)
    typer.echo(section.rstrip() if random is not None else "\n".join(validation.summary(rows)))
    display.note(f"table: {out / 'validation.md'}")
    if not done.complete:
        display.note("interrupted: the same command goes on from here")


def _series(text: str) -> tuple[int, int]:
    """Which random scenarios: a series, and the number of the first in it."""
    from fanin.errors import EngineError

    series, _, number = text.partition("/")
    if not series.isdecimal() or not (number or "1").isdecimal():
        raise EngineError(f"command line `--from {text}`: it must be a whole number, or two as in 1/20")
    return int(series), int(number or 1)
