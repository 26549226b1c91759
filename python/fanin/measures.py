"""Measures of fairness and convergence, from the frames of a run."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl


def jain(values: Sequence[float] | pl.Series) -> float:
    """Jain's fairness index of shares, 1/n to 1 (Jain, Chiu and Hawe 1984).

    Parameters
    ----------
    values : sequence of float
        One share per flow, any unit.

    Returns
    -------
    float
        1 when all are equal (also when all are zero), 1/n when one has everything.

    Examples
    --------
    >>> jain([1, 1, 1]), jain([3, 0, 0])
    (1.0, 0.3333333333333333)
    """
    shares = pl.Series(values, dtype=pl.Float64)
    squares = float((shares * shares).sum())
    return float(shares.sum()) ** 2 / (len(shares) * squares) if squares > 0 else 1.0


def interval_jain(throughput: pl.DataFrame) -> pl.DataFrame:
    """Jain's index of every interval, over the flows that delivered anything in it.

    Parameters
    ----------
    throughput : polars.DataFrame
        The frame of that name of a run: ``cc``, ``seed``, ``flow``, ``time_ms``, ``bytes``.

    Returns
    -------
    polars.DataFrame
        ``cc``, ``seed``, ``time_ms``, ``flows`` (UInt32), ``jain`` (Float64), in order of time.

    Examples
    --------
    >>> import polars as pl
    >>> rows = {"cc": ["x"] * 3, "seed": [1] * 3, "flow": [0, 1, 0], "time_ms": [1.0, 1.0, 2.0], "bytes": [300, 100, 50]}
    >>> interval_jain(pl.DataFrame(rows))["jain"].to_list()
    [0.8, 1.0]
    """
    share = pl.col("bytes").cast(pl.Float64)
    return (
        throughput.group_by("cc", "seed", "time_ms")
        .agg(
            flows=pl.len().cast(pl.UInt32),
            jain=share.sum() ** 2 / (pl.len() * (share * share).sum()),
        )
        .sort("cc", "seed", "time_ms")
    )


def convergence_time(
    throughput: pl.DataFrame, since_ms: float, *, at_least: float = 0.95, intervals: int = 3
) -> pl.DataFrame:
    """How long after `since_ms` the flows share fairly and go on to.

    Parameters
    ----------
    throughput : polars.DataFrame
        The frame of that name of a run.
    since_ms : float
        When a flow started or stopped.
    at_least : float
        Jain's index that counts as fair.
    intervals : int
        For so many intervals in a row.

    Returns
    -------
    polars.DataFrame
        ``cc``, ``seed``, ``convergence_ms`` (Float64, null: not within the run), to the end of the first of those intervals.

    Examples
    --------
    >>> import polars as pl
    >>> rows = {"cc": ["x"] * 4, "seed": [1] * 4, "flow": [0, 1, 0, 1], "time_ms": [1.0, 1.0, 2.0, 2.0], "bytes": [9, 1, 5, 5]}
    >>> convergence_time(pl.DataFrame(rows), 0.0, intervals=1)["convergence_ms"].to_list()
    [2.0]
    """
    fair = (
        interval_jain(throughput)
        .filter(pl.col("time_ms") > since_ms)
        .with_columns(ok=(pl.col("jain") >= at_least).cast(pl.Int32))
        .with_columns(
            stays=pl.col("ok").reverse().rolling_sum(intervals).reverse().over("cc", "seed", order_by="time_ms")
            == intervals
        )
    )
    first = pl.col("time_ms").filter(pl.col("stays")).min() - since_ms
    return fair.group_by("cc", "seed").agg(convergence_ms=first).sort("cc", "seed")


def window_correlation(window: pl.DataFrame, step_ms: float) -> pl.DataFrame:
    """Pearson's correlation of the congestion windows of every two traced flows.

    Parameters
    ----------
    window : polars.DataFrame
        The frame of that name of a run: a row per change of a sender.
    step_ms : float
        The windows are compared at this spacing, from when both flows have one.

    Returns
    -------
    polars.DataFrame
        ``cc``, ``seed``, ``flow``, ``other`` (UInt32), ``correlation`` (Float64).

    Examples
    --------
    >>> import polars as pl
    >>> rows = {"cc": ["x"] * 6, "seed": [1] * 6, "flow": [0, 0, 0, 1, 1, 1], "time_ms": [0.0, 1.0, 2.0] * 2,
    ...         "cwnd": [1.0, 2.0, 3.0, 2.0, 4.0, 6.0]}
    >>> window_correlation(pl.DataFrame(rows), 1.0)["correlation"].to_list()
    [1.0]
    """
    made = []
    for (cc, seed), rows in window.group_by("cc", "seed", maintain_order=True):
        flows = rows["flow"].unique().sort().to_list()
        per_flow = {f: rows.filter(pl.col("flow") == f).sort("time_ms").select("time_ms", "cwnd") for f in flows}
        for i, one in enumerate(flows):
            for other in flows[i + 1 :]:
                start = max(float(per_flow[f]["time_ms"][0]) for f in (one, other))
                end = min(float(per_flow[f]["time_ms"][-1]) for f in (one, other))
                steps = int((end - start) / step_ms) + 1
                grid = pl.DataFrame({"time_ms": [start + n * step_ms for n in range(max(steps, 0))]})
                pair = grid.join_asof(per_flow[one], on="time_ms").join_asof(
                    per_flow[other], on="time_ms", suffix="_other"
                )
                value = pair.select(pl.corr("cwnd", "cwnd_other")).item() if pair.height > 1 else None
                made.append({"cc": cc, "seed": seed, "flow": one, "other": other, "correlation": value})
    schema = {"cc": pl.String, "seed": pl.UInt64, "flow": pl.UInt32, "other": pl.UInt32, "correlation": pl.Float64}
    return pl.DataFrame(made, schema=schema)
