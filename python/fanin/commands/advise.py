"""Arguments and printing of ``fanin advise``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, cast

import typer

from fanin.commands.options import (
    CaptureArgument,
    ConfirmOption,
    JsonOption,
    RackOption,
    RankOfOption,
    algorithms,
    command_line,
    confirmed,
)
from fanin.terminal.answer import print_json

if TYPE_CHECKING:
    from fanin.advice import Advice
    from fanin.decision import Goal


def advise(
    capture: CaptureArgument,
    rack: RackOption = None,
    goal: Annotated[
        str | None,
        typer.Option(
            "--goal",
            metavar="GOAL",
            help="What is to gain: mean, p50, p95, p99, p99.9, fairness or goodput [default: mean or tail, at the cost of neither].",
        ),
    ] = None,
    rank_of: RankOfOption = None,
    no_switch_changes: Annotated[
        bool, typer.Option("--no-switch-changes", help="Leave the switch as the rack file says.")
    ] = False,
    budget: Annotated[
        str,
        typer.Option(
            "--budget",
            metavar="RUNS|TIME",
            help="About how many simulations to search with, or how long (60s); with a time the answer may depend on the machine's speed.",
        ),
    ] = "1000",
    cc: Annotated[
        str | None,
        typer.Option(
            "--cc", metavar="A,B,...", autocompletion=algorithms, help="Algorithms [default: what hosts can run]."
        ),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(
            "--baseline",
            metavar="CC",
            autocompletion=algorithms,
            help="Congestion control that the hosts run [default: what the capture shows, else cubic].",
        ),
    ] = None,
    confirm: ConfirmOption = "0",
    aggregator: Annotated[
        str | None,
        typer.Option("--aggregator", metavar="IP", help="Receiver's address [default: detected from the traffic]."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Advise a transport and settings for a capture's traffic: by how much better, where it hurts, how to try it and take it back."""
    from fanin.advice import advise as search
    from fanin.advice.search import SearchInterruptedError
    from fanin.terminal import display

    try:
        found = search(
            capture,
            rack,
            goal=cast("Goal | None", goal.replace("p99.9", "p99_9") if goal is not None else None),
            rank_of=rank_of.value if rank_of is not None else None,
            cc=cc.split(",") if cc is not None else None,
            baseline=baseline,
            switch=not no_switch_changes,
            budget=budget,
            confirm=confirmed(confirm),
            aggregator=aggregator,
            tell=display.note,
            command=command_line(),
            progress=display.Bar,
        )
    except SearchInterruptedError as stopped:
        display.note(f"interrupted: no advice yet; {stopped.runs} runs are in the store, and the same command goes on")
        sys.exit(130)
    if as_json:
        print_json(found.to_dict())
    else:
        _print(found)


def _print(advice: Advice) -> None:
    from fanin.terminal import display

    display.advice_result(advice)
    display.note(f"{advice.tried} candidates, {advice.runs} simulated runs")
    for note in advice.notes:
        display.note(f"note: {note}")
