"""Helpers on Polars frames."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl

from fanin import _native

PS_PER_MS = 1e9


def frame(table: Any) -> pl.DataFrame:
    """A native table as a Polars frame; the columns are taken over, not copied."""
    return pl.DataFrame(table)


def ms(column: str) -> pl.Expr:
    """A column of picoseconds in milliseconds, named ``*_ms`` for ``*_ps``."""
    return (pl.col(column) / PS_PER_MS).alias(column.removesuffix("_ps") + "_ms")


def parts(rows: pl.DataFrame, column: str) -> dict[Any, pl.DataFrame]:
    """The rows of each value of a column; not copied where those of each stand together.

    Examples
    --------
    >>> [part.height for part in parts(pl.DataFrame({"cc": ["b", "b", "a"]}), "cc").values()]
    [2, 1]
    """
    runs = rows[column].rle().struct.unnest()
    if runs["value"].is_duplicated().any():
        return {key[0]: part for key, part in rows.partition_by(column, as_dict=True, maintain_order=True).items()}
    begins = runs["len"].cum_sum() - runs["len"]
    return {value: rows[begin : begin + count] for begin, count, value in zip(begins, *runs, strict=True)}


def thin(
    trace: pl.DataFrame,
    time: str,
    value: str,
    *,
    by: list[str],
    points: int = 2000,
    span: tuple[float, float] | None = None,
) -> pl.DataFrame:
    """Reduce a trace to what a line of `points` pixels shows: first, least, greatest and last row of each pixel.

    Parameters
    ----------
    trace : polars.DataFrame
        Sorted by time within each line.
    time, value : str
        Columns of the axes.
    by : list of str
        Columns that tell the lines apart.
    points : int
        Pixels of the time axis; at most four rows per line and pixel are kept.
    span : (float, float), optional
        Where the time axis begins and ends; at the first and the last row unless given.

    Returns
    -------
    polars.DataFrame
        A subset of the rows, in their order.

    Examples
    --------
    >>> import polars as pl
    >>> trace = pl.DataFrame({"cc": ["a"] * 6, "t": [0.0, 1.0, 2.0, 3.0, 4.0, 5.0], "v": [0, 9, 1, 2, 3, 2]})
    >>> thin(trace, "t", "v", by=["cc"], points=1)["v"].to_list()
    [0, 9, 2]
    """
    return _at(trace, frame(_lines(trace, time, value, by).envelope(points, span))["row"]) if trace.height else trace


def fitted(trace: pl.DataFrame, time: str, value: str, *, by: list[str], rows: int) -> pl.DataFrame:
    """A trace within `rows`: whole if it fits, else as fine an envelope as does. Slots of time without a change cost nothing.

    Examples
    --------
    >>> trace = pl.DataFrame({"cc": "a", "time_ms": [0.001 * i for i in range(9999)] + [100.0], "packets": range(10_000)})
    >>> 250 < fitted(trace, "time_ms", "packets", by=["cc"], rows=1000).height <= 1000
    True
    """
    return _at(trace, frame(_lines(trace, time, value, by).fitted(rows))["row"]) if trace.height > rows else trace


def _pieces(trace: pl.DataFrame) -> Iterator[tuple[int, pl.DataFrame]]:
    """The pieces in memory that a frame is of, and where each begins. What takes a frame as a whole copies it into one first."""
    begin = 0
    for count in trace.to_series().chunk_lengths():
        yield begin, trace[begin : begin + count]
        begin += count


def _at(trace: pl.DataFrame, rows: pl.Series) -> pl.DataFrame:
    """These rows, in ascending order."""
    within = ((begin, piece, rows.is_between(begin, begin + piece.height, "left")) for begin, piece in _pieces(trace))
    return pl.concat([piece[rows.filter(mine) - begin] for begin, piece, mine in within])


def _lines(trace: pl.DataFrame, time: str, value: str, by: list[str]) -> _native.Lines:
    """What the engine's library needs of the lines of a trace; what has its type already is not copied."""
    values = trace[value]
    columns = {
        "time": trace[time].cast(pl.Float64),
        "value": values if values.dtype == pl.UInt32 else values.cast(pl.Float64),
    }
    keys = {f"key{number}": _codes(trace[name]) for number, name in enumerate(by)}
    slim = pl.DataFrame(columns | {name: key for name, key in keys.items() if key.n_unique() > 1})
    return _native.Lines([piece for _, piece in _pieces(slim)])


def _codes(column: pl.Series) -> pl.Series:
    """A number per value (UInt32)."""
    if column.dtype == pl.String:
        column = column.cast(pl.Categorical)
    if column.dtype in (pl.Categorical, pl.Enum):
        column = column.to_physical()
    return column.cast(pl.UInt32) if column.dtype in (pl.UInt8, pl.UInt16, pl.UInt32) else column.rank("dense")
