"""Arguments and printing of ``fanin truth``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fanin.commands.options import JsonOption, algorithms, command_line
from fanin.terminal.answer import print_json

if TYPE_CHECKING:
    from fanin.service import TruthResult


def truth(
    what: Annotated[
        Path,
        typer.Argument(
            metavar="SCENARIO|CAPTURE",
            help="A scenario of a service on a star (.toml), or a capture of one.",
            show_default=False,
            readable=False,
        ),
    ],
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
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Folder for the table and the requests (Parquet).")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Run a service under each TCP on real Linux in virtual time, beside what fanin predicts from a capture of one of them.

    Needs `fanin kernel build`. Runs are kept as they end: after Ctrl-C the same command goes on.
    """
    from fanin.disk.files import output_folder, write_parquet
    from fanin.terminal import display

    line = command_line()
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
        print_json(found.to_dict())
    else:
        _print(found)


def _print(found: TruthResult) -> None:
    from rich.table import Table

    from fanin.service.prediction import pairs
    from fanin.terminal import display
    from fanin.terminal.markup import escape
    from fanin.words.text import significant

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
