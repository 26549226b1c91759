"""The columns of the frames that the engine leaves: their names, types and units."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import polars as pl

from fanin import _native
from fanin.statistics.frames import PS_PER_MS


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
        if self.codes == "ports":
            return _worded(self.native, ports).alias(self.name)
        return _plain(self.native, self.name, None if self.codes is None else tuple(self.codes), self.unit == "ms")


def _worded(native: str, words: Sequence[str]) -> pl.Expr:
    return pl.col(native).replace_strict(dict(enumerate(words)), return_dtype=pl.String)


# Kept: to make those of two tables takes as long as a short run, and a sweep has thousands of short runs.
@cache
def _plain(native: str, name: str, words: tuple[str, ...] | None, in_ms: bool) -> pl.Expr:
    column = pl.col(native) if words is None else _worded(native, words)
    return (column / PS_PER_MS if in_ms and words is None else column).alias(name)


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
