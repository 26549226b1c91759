"""Helpers on Polars frames."""

from __future__ import annotations

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


def thin(trace: pl.DataFrame, time: str, value: str, *, by: list[str], points: int = 2000) -> pl.DataFrame:
    """Reduce a trace to what a line of `points` pixels shows: first, least, greatest and last row of each pixel.

    Parameters
    ----------
    trace : polars.DataFrame
        Sorted by time within each group.
    time, value : str
        Columns of the axes.
    by : list of str
        Columns that tell the lines apart.
    points : int
        Pixels of the time axis; at most four rows per line and pixel are kept.

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
    return trace[Lines(trace, time, by).envelope(value, points)]


class Lines:
    """A trace as lines that follow each other, so that what each pixel of a line shows is found in one pass.

    Parameters
    ----------
    trace : polars.DataFrame
        Sorted by time within each line.
    time : str
        Column of the axis.
    by : list of str
        Columns that tell the lines apart.

    Attributes
    ----------
    trace : polars.DataFrame
        As given.
    rows : polars.Series
        Numbers of its rows, line by line.
    begins : polars.Series
        Which of those rows begin a line.
    """

    def __init__(self, trace: pl.DataFrame, time: str, by: list[str]) -> None:
        self.trace = trace
        self.rows = pl.int_range(trace.height, dtype=pl.UInt32, eager=True)
        self.begins = pl.zeros(trace.height, dtype=pl.Boolean, eager=True)
        for name in by:
            self.begins |= _differs(trace[name].rle_id())
        begun = trace.select(by).filter(self.begins)
        self._in_order = begun.height <= begun.n_unique()
        if not self._in_order:
            # Lines that alternate: put one after the other without changing the order within each.
            ordered = pl.DataFrame({"line": self._numbers(by), "row": self.rows}).sort("line", maintain_order=True)
            self.rows = ordered["row"]
            self.begins = _differs(ordered["line"])
        self._time = self.column(time)

    def column(self, name: str) -> pl.Series:
        """A column, line by line."""
        return self.trace[name] if self._in_order else self.trace[name][self.rows]

    def _numbers(self, by: list[str]) -> pl.Series:
        """A number per row, the same for rows of one line."""
        numbers = pl.zeros(self.trace.height, dtype=pl.Int64, eager=True)
        for name in by:
            codes = self.trace[name]
            if not codes.dtype.is_integer():
                codes = codes.cast(pl.Categorical).to_physical() if codes.dtype == pl.String else codes.rank("dense")
            codes = codes.cast(pl.Int64)
            least, most = int(codes.min() or 0), int(codes.max() or 0)  # type: ignore[arg-type]
            numbers = numbers * (most - least + 2) + (codes - least + 1).fill_null(0)
        return numbers

    def _with(self, value: str) -> _native.Lines:
        """What the engine's library needs of them, line by line."""
        columns = {
            "begins": self.begins,
            "time": self._time.cast(pl.Float64),
            "value": self.column(value).cast(pl.Float64),
        }
        return _native.Lines(pl.DataFrame(columns).rechunk())

    def _of_trace(self, shown: object) -> pl.Series:
        """Rows of the trace, in its order."""
        rows = frame(shown)["row"]
        return rows if self._in_order else self.rows[rows].sort()

    def envelope(self, value: str, points: int) -> pl.Series:
        """Rows that show a line of `points` pixels, in their order: first, least, greatest and last of each pixel."""
        return self._of_trace(self._with(value).envelope(points)) if self.trace.height else self.rows

    def fitted(self, value: str, rows: int) -> pl.Series:
        """At most so many rows: all if they fit, else as fine an envelope as does. Slots of time without a change cost nothing."""
        return self._of_trace(self._with(value).fitted(rows)) if self.trace.height > rows else self.rows


def _differs(values: pl.Series) -> pl.Series:
    """Which values are another than the one before; the first is."""
    return values.ne_missing(values.shift(1)) | (pl.int_range(len(values), eager=True) == 0)


def fitted(lines: Lines, value: str, rows: int) -> pl.DataFrame:
    """A trace within `rows`: whole if it fits, else as fine an envelope as does.

    Examples
    --------
    >>> trace = pl.DataFrame({"cc": "a", "time_ms": [0.001 * i for i in range(9999)] + [100.0], "packets": range(10_000)})
    >>> 250 < fitted(Lines(trace, "time_ms", ["cc"]), "packets", 1000).height <= 1000
    True
    """
    return lines.trace[lines.fitted(value, rows)] if lines.trace.height > rows else lines.trace
