"""Arguments and printing of ``python -m lab``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import polars as pl
import typer
from fanin import __version__
from fanin.disk.cache import cache_folder
from fanin.disk.files import output_folder
from fanin.errors import EngineError, FaninError, ScenarioError
from fanin.kernel import cache
from fanin.runs.engines import engine
from fanin.simulation import chosen_algorithms
from fanin.terminal import display
from fanin.testbed import host

from lab import beside as side_by_side
from lab import offload as offloaded
from lab import tables, validation
from lab.racks import cases as racks_of
from lab.racks import measured

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    help="Measure fanin against other programs. Data goes to results/; `make results` writes the manual's tables from it.",
    context_settings={"help_option_names": ["-h", "--help"]},
)

Only = Annotated[
    str | None, typer.Option("--only", metavar="TEXT", help="Only those whose name or group contains this text.")
]
Results = Annotated[
    Path | None,
    typer.Option(
        "--results",
        metavar="DIR",
        help="Folder of the repository's data: replace the CSV file there when all runs have ended.",
    ),
]


@app.command()
def validate(
    quick: Annotated[bool, typer.Option("--quick", help="A few scenarios and one seed; indicative only.")] = False,
    cc: Annotated[
        str | None, typer.Option("--cc", metavar="A,B,...", help="Algorithms [default: reno,cubic,dctcp,bbr,vegas].")
    ] = None,
    only: Only = None,
    random: Annotated[
        int | None,
        typer.Option(
            "--random", metavar="N", min=1, max=100_000, help="N random scenarios instead, each under one TCP."
        ),
    ] = None,
    first: Annotated[
        str,
        typer.Option("--from", metavar="SEED[/K]", help="With --random: which series of them, and its first number."),
    ] = "1",
    offload: Annotated[
        bool, typer.Option("--offload", help="Hosts whose network cards cut and merge segments (TSO, GRO).")
    ] = False,
    seeds: Annotated[
        int | None,
        typer.Option(
            "--seeds",
            metavar="N",
            min=1,
            help="Runs of each row, 20 where they break a bound [default: 3, and 20 where a timeout occurs, too].",
        ),
    ] = None,
    hz: Annotated[int, typer.Option("--hz", help="Timer frequency of the kernel: 250 or 1000.")] = 250,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder for the table and its data.")] = Path(
        "fanin-validation"
    ),
    results: Results = None,
    store: Annotated[
        Path | None,
        typer.Option(
            "--store", metavar="DIR", help="Where runs are kept [default: fanin/validation in the user's cache]."
        ),
    ] = None,
) -> None:
    """Compare the simulator's profile `linux` with Linux's TCP in virtual time (needs `fanin kernel build`).

    Runs are kept as they end: Ctrl-C writes the table of those so far, and the same command goes on from there.
    """
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
    if offload:
        all_cases = [case.offloaded() for case in all_cases]
    if hz not in cache.HERTZ:
        raise EngineError(f"command line `--hz {hz}`: it must be 250 or 1000")
    kernel = cache.find(hz)
    chosen = [c for c in all_cases if only is None or only in c.name or only in c.group]
    if not chosen:
        raise EngineError(f"command line `--only {only}`: no scenario's name or group contains this text")
    kept = validation.Kept(store or cache_folder() / "validation")
    bounds = validation.OFFLOADED if offload else validation.IDEAL
    judge = validation.judged if random is None else validation.tried
    if quick:
        done = validation.measure(chosen, kernel, kept, cc=names, seeds=(seeds or 1,) * 2, progress=display.Bar)
    else:
        # Of random scenarios those with a timeout are run no more often for that.
        each = seeds or (None if random is None else validation.SEEDS)
        done = validation.measured(
            chosen, kernel, kept, bounds, judge=judge, cc=names, seeds=each, progress=display.Bar
        )
    engines = ("sim", done.kernel_engine)
    rows = judge(done, engines, bounds)
    if rows.is_empty():
        raise KeyboardInterrupt
    about = (_line(), __version__, f"Linux {kernel.version}, HZ={kernel.hertz}", done.complete)
    page = validation.page(rows, *about, bounds) if random is None else validation.trial_page(rows, *about)
    name = "_".join(["random"] * (random is not None) + ["offload"] * offload) or "kernel"
    _write(rows, page, name, out, results, whole=done.complete)
    typer.echo(page.rstrip() if random is not None else "\n".join(validation.summary(rows)))
    if not done.complete:
        display.note("interrupted: the same command goes on from here")


@app.command()
def racks(
    captured: Annotated[
        str, typer.Option("--captured", metavar="CC", help="What the hosts ran as the capture was taken.")
    ] = "cubic",
    seeds: Annotated[int, typer.Option("--seeds", metavar="N", help="Runs of the kernel per TCP.")] = 3,
    only: Only = None,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder for the table and its data.")] = Path(
        "fanin-truth"
    ),
    results: Results = None,
) -> None:
    """Predict services on 32 racks from captures of them, and run them on Linux's TCP in virtual time (needs `fanin kernel build`)."""
    chosen = [case for case in racks_of.cases() if only is None or only in case.name or only in case.group]
    if not chosen:
        raise ScenarioError(f"command line `--only {only}`: no rack's name or group contains this text")
    label = engine("kernel").label
    rows, whole = measured.measure(chosen, captured=captured, seeds=seeds, progress=display.Bar)
    if rows.is_empty():
        raise KeyboardInterrupt
    page = measured.page(rows, _line(), __version__, label, captured, seeds, whole=whole)
    _write(rows, page, "truth", out, results, whole=whole)
    typer.echo("\n".join(measured.summary(rows)))
    if not whole:
        display.note("interrupted: the same command goes on from here")
        raise SystemExit(130)


@app.command()
def beside(only: Only = None, results: Results = None) -> None:
    """Run ten scenarios on the engines `testbed` and `kernel` (root; needs `fanin kernel build` and `make linux`)."""
    host.check()
    scenarios = {name: side_by_side.SCENARIOS[name] for name in side_by_side.chosen(side_by_side.SCENARIOS, only)}
    rows = side_by_side.measure(scenarios, side_by_side.BESIDE_CC, side_by_side.ENGINES, display.Bar)
    _replace(rows, "testbed", results)
    typer.echo("\n".join(side_by_side.beside_table(rows)))


@app.command()
def twins(only: Only = None, results: Results = None) -> None:
    """Run every algorithm that a Linux host can run on the testbed: two long flows, and an incast (root; needs `make linux`)."""
    host.check()
    names = side_by_side.chosen(side_by_side.SENDERS, only)
    rows = side_by_side.measure(side_by_side.FIGURES, names, ("testbed",), display.Bar)
    _replace(rows, "twins", results)
    typer.echo("\n".join(side_by_side.figures_tables(rows)))


@app.command()
def offload(
    seeds: Annotated[int, typer.Option("--seeds", metavar="N", min=1, help="Runs of each.")] = 3,
    results: Results = None,
) -> None:
    """Run an incast with and without offload at five buffers, on both engines (needs `fanin kernel build`)."""
    rows = offloaded.measure(("bbr", "cubic"), seeds, display.Bar)
    _replace(rows, "bbr_offload", results)
    typer.echo(
        "\n".join(
            tables.markdown(
                rows.columns, [[f"{v:.4g}" if isinstance(v, float) else str(v) for v in r] for r in rows.rows()]
            )
        )
    )


@app.command(name="tables")
def write_tables() -> None:
    """Write the manual's tables anew from the data in results/."""
    for page in tables.pages():
        text = page.read_text(encoding="utf-8")
        page.write_text(tables.filled(text, str(page)), encoding="utf-8")


def _line() -> str:
    return " ".join(["python -m lab", *sys.argv[1:]])


def _write(rows: pl.DataFrame, page: str, name: str, out: Path, results: Path | None, *, whole: bool) -> None:
    """The table and its data into a folder of the user's, the data of all runs into the repository's where asked for."""
    with output_folder(out) as scratch:
        (scratch / f"{name}.md").write_text(page, encoding="utf-8")
        rows.write_csv(scratch / f"{name}.csv", float_precision=4)
    display.note(f"table: {out / f'{name}.md'}")
    if whole:
        _replace(rows, name, results)


def _replace(rows: pl.DataFrame, name: str, results: Path | None) -> None:
    if results is not None:
        rows.write_csv(results / f"{name}.csv", float_precision=4)
        display.note(
            f"data: {results / f'{name}.csv'}; give its date and commit in {results / 'index.toml'}, then `make results`"
        )


def _series(text: str) -> tuple[int, int]:
    """Which random scenarios: a series, and the number of the first in it."""
    series, _, number = text.partition("/")
    if not series.isdecimal() or not (number or "1").isdecimal():
        raise EngineError(f"command line `--from {text}`: it must be a whole number, or two as in 1/20")
    return int(series), int(number or 1)


def main() -> None:
    """Run the command; bad input is one sentence and exit code 2."""
    try:
        app()
    except FaninError as error:
        sys.exit(f"lab: error: {error}")


if __name__ == "__main__":
    main()
