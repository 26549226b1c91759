"""Arguments and printing of ``fanin truth``."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fanin.options import JsonOption, algorithms

if TYPE_CHECKING:
    from fanin.service import TruthResult


def truth(
    what: Annotated[
        Path | None,
        typer.Argument(
            metavar="SCENARIO|CAPTURE",
            help="A scenario of a service on a star (.toml), or a capture of one.",
            show_default=False,
            readable=False,
        ),
    ] = None,
    rack: Annotated[
        Path | None,
        typer.Option(
            "--rack", metavar="RACK.toml", help="With a capture: its rack [default: proposed].", readable=False
        ),
    ] = None,
    cc: Annotated[
        str | None,
        typer.Option(
            "--cc", metavar="A,B,...", autocompletion=algorithms, help="TCPs [default: reno,cubic,dctcp,bbr]."
        ),
    ] = None,
    captured: Annotated[
        str, typer.Option("--captured", metavar="CC", help="What the hosts ran as the capture was taken.")
    ] = "cubic",
    seeds: Annotated[int, typer.Option("--seeds", metavar="N", help="Runs per TCP.")] = 3,
    racks: Annotated[
        bool, typer.Option("--racks", help="The 32 racks of docs/validation.md instead of one service.")
    ] = False,
    only: Annotated[
        str | None,
        typer.Option("--only", metavar="TEXT", help="With --racks: those whose name or group contains this."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Folder for the table and the rounds (Parquet).")
    ] = None,
    docs: Annotated[
        Path | None,
        typer.Option(
            "--docs",
            metavar="DIR",
            help="With --racks: replace the section of this folder's validation.md.",
            readable=False,
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Run a service under each TCP on real Linux in virtual time, beside what fanin predicts from a capture of one of them.

    Needs `fanin kernel build`. Runs are kept as they end: after Ctrl-C the same command goes on.
    """
    from fanin import display
    from fanin.errors import ScenarioError
    from fanin.files import output_folder, shown, write_parquet

    if racks == (what is not None):
        raise ScenarioError("command line: name a scenario or a capture, or give --racks, one of the two")
    line = shown(shlex.join(["fanin", *sys.argv[1:]]))
    if racks:
        _racks(captured, seeds, only, out, docs, line)
        return
    from fanin.service import truth as ask

    found = ask(
        str(what),
        rack,
        cc=cc.split(",") if cc is not None else None,
        captured=captured,
        seeds=seeds,
        command=line,
        tell=display.note,
        progress=display.Bar,
    )
    if out is not None:
        with output_folder(out) as scratch:
            scratch.joinpath("truth.json").write_text(json.dumps(found.to_dict(), allow_nan=False) + "\n")
            for name in ("rounds", "responses", "predicted_rounds", "predicted_responses"):
                write_parquet(getattr(found, name), scratch / f"{name}.parquet")
    if as_json:
        json.dump(found.to_dict(), sys.stdout, allow_nan=False)
        sys.stdout.write("\n")
    else:
        _print(found)


def _print(found: TruthResult) -> None:
    from rich.markup import escape
    from rich.table import Table

    from fanin import display
    from fanin.service.prediction import pairs
    from fanin.text import significant

    def number(value: float | None) -> str:
        return "-" if value is None else significant(value)

    title = f"Completion times of {found.of} in ms on {found.engine_label}, and as predicted from a capture under {found.captured}"
    table = Table(title=title, title_justify="left")
    table.add_column("TCP", no_wrap=True)
    for name in ("p50", "p99", "mean"):
        table.add_column(name, justify="right", no_wrap=True)
        table.add_column("predicted", justify="right", no_wrap=True)
    for name in ("gain", "predicted", "timeouts", found.of):
        table.add_column(name, justify="right", no_wrap=True)
    for row in found.table.iter_rows(named=True):
        cells = [
            number(row[f"{prefix}{name}"]) for name in ("p50", "p99", "mean", "gain") for prefix in ("", "predicted_")
        ]
        table.add_row(escape(row["cc"]), *cells, number(row["timeouts"]), str(row["count"]))
    display.print_table(table)
    counted = pairs(found.table)
    if counted["pairs"]:
        display.note(
            f"predicted right: the order of {counted['ordered']} of {counted['clear']} pairs that differ by more than 10%, the gain within a "
            f"factor of 1.5 of {counted['close']} of {counted['pairs']}"
        )
    display.note(f"gain: the mean under {found.captured} over that under this TCP; above 1 this TCP is faster")
    for note in found.notes:
        display.note(f"note: {note}")


def _racks(captured: str, seeds: int, only: str | None, out: Path | None, docs: Path | None, line: str) -> None:
    from fanin import __version__, display
    from fanin.errors import OutputError, ScenarioError
    from fanin.files import output_folder
    from fanin.runs.engines import engine
    from fanin.service import page, racks

    chosen = [case for case in racks.cases() if only is None or only in case.name or only in case.group]
    if not chosen:
        raise ScenarioError(f"command line `--only {only}`: no rack's name or group contains this text")
    if docs is not None and not (docs / "validation.md").is_file():
        raise OutputError(f"{docs / 'validation.md'}: no such page; `--docs` takes the folder that has validation.md")
    label = engine("kernel").label
    rows, whole = page.measure(chosen, captured=captured, seeds=seeds, progress=display.Bar)
    if rows.is_empty():
        raise KeyboardInterrupt
    section = page.page(rows, line, __version__, label, captured, seeds, whole=whole)
    with output_folder(out or Path("fanin-truth")) as scratch:
        (scratch / "truth.md").write_text(section, encoding="utf-8")
        rows.write_csv(scratch / "truth.csv", float_precision=4)
    if docs is not None:
        page.write(rows, section, docs)
    typer.echo("\n".join(page.summary(rows)))
    if not whole:
        display.note("interrupted: the same command goes on from here")
        raise SystemExit(130)
