"""What the engine leaves, as frames. Their columns are those of the engine's schema (docs/reference/results.md)."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import polars as pl

from fanin import _native
from fanin.statistics.frames import PS_PER_MS, frame

if TYPE_CHECKING:
    from fanin._native import Plan, Replayed, Run

Frames = dict[str, pl.DataFrame]
"""Frames by their name."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a frame.

    Attributes
    ----------
    name, type, unit, doc : str
        As in the frame: times are milliseconds there, codes are words.
    nullable : bool
        A value may be unknown.
    native : str
        Its name in the engine's table; empty for the number of a row.
    codes : str or list of str
        What its codes stand for: "ports", a list of words, or nothing.
    """

    name: str
    type: str
    unit: str
    doc: str
    nullable: bool
    native: str
    codes: Any = None

    def of(self, ports: list[str]) -> pl.Expr:
        """The column, from the engine's table."""
        if not self.native:
            return pl.col(self.name)
        column = pl.col(self.native)
        if self.codes is not None:
            words = ports if self.codes == "ports" else self.codes
            column = column.replace_strict(dict(enumerate(words)), return_dtype=pl.String)
        elif self.unit == "ms":
            column = column / PS_PER_MS
        return column.alias(self.name)


@dataclass(frozen=True, slots=True)
class Table:
    """A table of results: its name, what a row is, the column that numbers its rows (None: none does), and all columns."""

    name: str
    doc: str
    index: str | None
    columns: tuple[Column, ...]


@cache
def schema() -> tuple[Table, ...]:
    """Every table that the engine leaves, in the order of the manual.

    Examples
    --------
    >>> [column.name for column in schema()[0].columns][:4]
    ['message', 'flow', 'class', 'bytes']
    """
    return tuple(_table(told) for told in json.loads(_native.results_schema_json()))


def _table(told: dict[str, Any]) -> Table:
    columns = [_column(column) for column in told["columns"]]
    if told["name"] == "ports":
        columns[0] = Column("port", "String", "", columns[0].doc, False, "name")
    if told["index"]:
        columns.insert(0, Column(told["index"], "UInt32", "", "Number of the row.", False, ""))
    return Table(told["name"], told["doc"], told["index"], tuple(columns))


def _column(told: dict[str, Any]) -> Column:
    name, kind, unit = told["name"], told["type"], told["unit"]
    if unit == "ps":
        name, kind, unit = name.removesuffix("_ps") + "_ms", "Float64", "ms"
    if told["codes"] is not None:
        kind = "String"
    return Column(name, kind, unit, told["doc"], told["nullable"], told["name"], told["codes"])


def tables(
    results: Run,
    plan: Plan | Replayed,
    cc: str,
    seed: int,
    wanted: Collection[str] | Mapping[str, Collection[str]] | None = None,
    most: int | None = None,
    replayed: Replayed | None = None,
) -> Frames:
    """The frames of one run, as described in :class:`fanin.RunResult`.

    Parameters
    ----------
    results : Run
        What the engine left.
    plan : Plan or Replayed
        What it was given, for the names of the ports.
    cc : str
        Name in the column ``cc``.
    seed : int
        Number in the column ``seed``.
    wanted : collection or mapping of str, optional
        Names of frames, and of which columns; all unless given.
    most : int, optional
        Rows of ``queue`` and of ``window`` at most; a longer trace is given as an envelope that keeps its peaks.
    replayed : Replayed, optional
        Of ``flows`` there are those alone that carry responses of a capture, with the column ``connection``.
    """
    whose = [pl.lit(cc).alias("cc"), pl.lit(seed, dtype=pl.UInt64).alias("seed")]
    ports = plan.ports
    frames = {}
    for table in schema():
        if wanted is None or table.name in wanted:
            columns = table.columns
            if isinstance(wanted, Mapping):
                columns = tuple(column for column in columns if column.name in wanted[table.name])
            native = [column.native for column in columns if column.native]
            rows = frame(results.table(table.name, native, most, replayed))
            if table.index and table.index not in rows.columns:
                rows = rows.with_row_index(table.index)
            carried = [pl.col("connection")] if "connection" in rows.columns else []
            frames[table.name] = rows.select(*whose, *(column.of(ports) for column in columns), *carried)
    if wanted is None or "runs" in wanted:
        frames["runs"] = _runs(results).select(*whose, pl.all())
    return frames


def _runs(results: Run) -> pl.DataFrame:
    return pl.DataFrame(
        {"end_ms": [results.end_ps / PS_PER_MS], "complete": [results.complete], "packet_hops": [results.packet_hops]},
        schema_overrides={"packet_hops": pl.UInt64},
    )


FRAMES = (*(table.name for table in schema()), "runs")
"""Names of the frames of a run."""
