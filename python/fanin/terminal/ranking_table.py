"""The ranking as a table of the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from rich.markup import escape as without_markup
from rich.table import Table

from fanin.statistics.ranking import ONE, PREFIX
from fanin.terminal.markup import escape
from fanin.words.text import number, visible, with_interval

if TYPE_CHECKING:
    from fanin.comparison.result import CompareResult
    from fanin.statistics.ranking import RankBy, RankingRow, RankOf


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the ranking: the least worth goes first where the terminal is narrow."""

    title: str
    worth: int
    cells: list[str]
    right: bool = True
    bold: bool = False

    @property
    def width(self) -> int:
        """Characters of its widest line."""
        return max(len(line) for cell in (self.title, *self.cells) for line in cell.split("\n"))


def ranking_table(result: CompareResult, width: int) -> Table:
    """The ranking in the columns that fit; the algorithm and the statistic it is ranked by always do."""
    columns = _columns(result)
    while sum(column.width + 3 for column in columns) + 1 > width and len(columns) > 2:
        least = min(column.worth for column in columns)
        if least == ALWAYS:
            break
        # Of equal worth, the rightmost goes first.
        gone = next(column for column in reversed(columns) if column.worth == least)
        columns = [column for column in columns if column is not gone]
    by = result.rank_by.replace("p99_9", "p99.9")
    table = Table(
        title=f"{ONE[result.rank_of].capitalize()} completion times in ms on {escape(result.rack_path)}, best {by} first",
        title_justify="left",
    )
    for column in columns:
        table.add_column(
            column.title,
            justify="right" if column.right else "left",
            style="bold" if column.bold else None,
            no_wrap=True,
        )
    rows = list(zip(*(column.cells for column in columns), strict=True))
    if result.measured is not None:
        table.add_row(*map(without_markup, rows.pop(0)), style="cyan")
        table.add_section()
    for place, (row, cells) in enumerate(zip(result.ranking, rows, strict=True)):
        before = result.ranking[place - 1] if place else row
        if (row.candidate, row.tier) != (before.candidate, before.tier):
            table.add_section()
        table.add_row(*map(without_markup, cells))
    return table


ALWAYS = 100
"""Worth of a column that is never dropped."""

NAMES_WIDTH = 24
"""Characters of a line of names whose rows are one: more lines rather than fewer columns."""


def _columns(result: CompareResult) -> list[Column]:
    rows, seen, by = result.ranking, result.measured, result.rank_by

    def column(title: str, worth: int, cell: Any, measured: str = "", **how: bool) -> Column:
        cells = [str(cell(row)) for row in rows]
        return Column(title, worth, cells if seen is None else [measured, *cells], **how)

    def time(name: str, worth: int) -> Column:
        mine = seen.completion_ms[name] if seen is not None else None
        cell = with_interval if name == by else (lambda estimate: number(estimate.value))
        title = name.replace("_", ".")
        return column(
            title,
            ALWAYS if name == by else worth,
            lambda row: cell(row.completion_ms[name]),
            number(mine),
            bold=name == by,
        )

    def count(title: str, worth: int, name: str, measured: str = "") -> Column:
        return column(title, worth, lambda row: number(getattr(row, name).value), measured)

    columns = [
        column("#", ALWAYS, lambda row: row.rank),
        column(
            "algorithm",
            ALWAYS,
            lambda row: _folded((row.cc, *row.alike)) + ("" if row.candidate else " (model)"),
            "measured",
            right=False,
        ),
        column("needs", 60, lambda row: "ECN" if row.needs_ecn else "", right=False),
        time("p50", 70),
        time("p95", 40),
        time("p99", 90),
        time("p99_9", 85),
        time("mean", 45),
    ]
    if result.baseline is not None and len(rows) > 1:
        columns.append(column(f"times {result.baseline}", 65, lambda row: _times_baseline(row, by)))
    retransmissions = number(seen.retransmissions) if seen is not None else ""
    columns += [
        count("timeouts", 80, "timeouts"),
        count("retrans.", 55, "retransmissions", retransmissions),
        count("drops", 30, "drops"),
        count("marks", 25, "marks"),
        column(
            "Mbit/s", 10, lambda row: number(None if row.goodput_bps.value is None else row.goodput_bps.value / 1e6)
        ),
        count("queue", 20, "queue_mean_packets"),
        count("q. p99", 15, "queue_p99_packets"),
    ]
    columns += [
        # What waits for responses says more than they do.
        column(f"{of}' {by.replace('_', '.')}", 12 if of == "responses" else 75, partial(_time_of, of, by))
        for of in PREFIX
        if of != result.rank_of and any(_has(row, of) for row in rows)
    ]
    if any(row.unfinished for row in rows):
        columns.append(column("unfinished", 95, lambda row: row.unfinished))
    return columns


def _has(row: RankingRow, of: RankOf) -> bool:
    """There are some, and, of stages, others than the requests themselves."""
    return row.count(of) > (row.requests if of == "stages" else 0)


def _folded(names: Sequence[str]) -> str:
    """Names on lines that leave room for the other columns; none is cut, however long."""
    first, *others = map(visible, names)
    lines = [first]
    for name in others:
        fits = len(lines[-1]) + len(", ") + len(name) <= NAMES_WIDTH
        lines = [*lines[:-1], f"{lines[-1]}, {name}"] if fits else [*lines[:-1], f"{lines[-1]},", name]
    return "\n".join(lines)


def _time_of(of: RankOf, by: RankBy, row: RankingRow) -> str:
    return number(row.times(of)[by].value)


def _times_baseline(row: RankingRow, by: str) -> str:
    """How many times as long as with the baseline, paired by seed; a star where chance would rarely do it."""
    from fanin.statistics.ranking import SIGNIFICANT

    if not row.against_baseline:
        return ""
    star = "*" if row.p is not None and row.p < SIGNIFICANT else " "
    value = row.against_baseline[by].change.value
    return f"{'-' if value is None else f'{value:.2f}'}{star}"
