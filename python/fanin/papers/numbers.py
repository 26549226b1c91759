"""Single numbers out of columns, for evaluations."""

from __future__ import annotations

from typing import Any

import polars as pl

from fanin.measures import jain as jain  # evaluations take all their single numbers from here


def number(value: Any) -> float:
    """What Polars gives for one cell as a number; nothing is infinitely much, since it never happened.

    >>> number(None), number(3)
    (inf, 3.0)
    """
    return float("inf") if value is None else float(value)


def median(values: pl.Series) -> float:
    """The median, where what is missing counts as longer than anything.

    >>> import polars as pl
    >>> median(pl.Series([3.0, None, 1.0]))
    3.0
    """
    return number(values.cast(pl.Float64).fill_null(float("inf")).median())


def mean(values: pl.Series) -> float:
    """The mean; infinite where something is missing."""
    return number(values.cast(pl.Float64).fill_null(float("inf")).mean())


def greatest(values: pl.Series) -> float:
    """The greatest; infinite where something is missing."""
    return number(values.cast(pl.Float64).fill_null(float("inf")).max())


def least(values: pl.Series) -> float:
    """The least."""
    return number(values.min())


def share(holds: pl.Series) -> float:
    """Which part of a column of truths holds.

    >>> import polars as pl
    >>> share(pl.Series([True, False]))
    0.5
    """
    return number(holds.cast(pl.Float64).mean())


def step(table: pl.DataFrame) -> float:
    """Time between the starts of two flows that join one after the other, from a throughput table; ms, a multiple of its interval.

    >>> rows = {"cc": "cubic", "seed": 1, "flow": [0, 0, 0, 1], "time_ms": [1.0, 2.0, 3.0, 3.0], "bytes": 9}
    >>> step(pl.DataFrame(rows))
    2.0
    """
    interval = number(table["time_ms"].unique().sort().diff().min())
    starts = table.filter(pl.col("bytes") > 0).group_by("cc", "seed", "flow").agg(pl.col("time_ms").min())
    apart = starts.sort("cc", "seed", "time_ms").select(pl.col("time_ms").diff().over("cc", "seed"))["time_ms"]
    return round(number(apart.median()) / interval) * interval
