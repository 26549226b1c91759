"""Helpers on Polars frames."""

from __future__ import annotations

from typing import Any

import polars as pl

PS_PER_MS = 1e9


def frame(table: Any) -> pl.DataFrame:
    """A native table as a Polars frame; the columns are taken over, not copied."""
    return pl.DataFrame(table)


def ms(column: str) -> pl.Expr:
    """A column of picoseconds in milliseconds, named ``*_ms`` for ``*_ps``."""
    return (pl.col(column) / PS_PER_MS).alias(column.removesuffix("_ps") + "_ms")


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
    if trace.is_empty():
        return trace
    low, high = trace[time].min(), trace[time].max()
    width = (float(high) - float(low)) / points or 1.0  # type: ignore[arg-type]
    groups = [*by, "_pixel"]
    return (
        trace.with_row_index("_row")
        .with_columns(((pl.col(time) - low) / width).floor().clip(0, points - 1).alias("_pixel"))
        .filter(
            (pl.col("_row") == pl.col("_row").first().over(groups))
            | (pl.col("_row") == pl.col("_row").last().over(groups))
            | (pl.col("_row") == pl.col("_row").get(pl.col(value).arg_min()).over(groups))
            | (pl.col("_row") == pl.col("_row").get(pl.col(value).arg_max()).over(groups))
        )
        .drop("_row", "_pixel")
    )
