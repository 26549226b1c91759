"""What is kept of the runs: the functions that `papers/tcprand/paper.toml` names as `reduce`."""

from __future__ import annotations

import polars as pl
from fanin.papers.numbers import jain


def per_class(frames: dict[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """One row per run and distance to the receiver, one per run, and one per run and flow."""
    kind = (
        pl.when(pl.col("flow") == 0)
        .then(pl.lit("F1"))
        .when(pl.col("flow") <= 2)
        .then(pl.lit("F2-F3"))
        .otherwise(pl.lit("F4-F15"))
    )
    flows = frames["flows"].with_columns(distance=kind, mbps=pl.col("bytes_delivered") * 8 / 10e6)
    classes = flows.group_by("seed", "distance", maintain_order=True).agg(
        pl.col("mbps", "timeouts", "timeout_ms").mean()
    )
    shares = [
        (seed, jain(part["mbps"]), part["mbps"].sum()) for (seed,), part in flows.group_by("seed", maintain_order=True)
    ]
    runs = pl.DataFrame(shares, schema={"seed": pl.Int64, "jain": pl.Float64, "mbps": pl.Float64}, orient="row")
    return {"classes": classes, "runs": runs, "flows": flows.select("seed", "flow", "distance", "mbps")}


def near_and_far(frames: dict[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """Goodput of the near flow and mean goodput of the far ones, for each run."""
    flows = frames["flows"].with_columns(mbps=pl.col("bytes_delivered") * 8 / 10e6)
    return {"goodput": flows.group_by("seed", "class", maintain_order=True).agg(pl.col("mbps").mean())}


def by_size(frames: dict[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """Mean and greatest completion time of each class of sizes, for each run; those of a second or more lost their SYN."""
    times = pl.col("completion_ms")
    classes = frames["messages"].group_by("seed", "class", maintain_order=True)
    return {
        "times": classes.agg(
            mean_ms=times.mean(),
            worst_ms=times.max(),
            flows=pl.len().cast(pl.Int64),
            late=(times >= 1000).sum().cast(pl.Int64),
            punctual_ms=times.filter(times < 1000).mean(),
        )
    }


def by_sender(frames: dict[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """Fairness among the senders' mean goodputs, and the total, for each run."""
    flows = frames["flows"].with_columns(mbps=pl.col("bytes_delivered") * 8 / 10e6)
    senders = flows.group_by("seed", "src", maintain_order=True).agg(pl.col("mbps").mean(), total=pl.col("mbps").sum())
    shares = [
        (seed, jain(part["mbps"]), part["total"].sum())
        for (seed,), part in senders.group_by("seed", maintain_order=True)
    ]
    return {
        "runs": pl.DataFrame(shares, schema={"seed": pl.Int64, "jain": pl.Float64, "mbps": pl.Float64}, orient="row")
    }


def drop_runs(frames: dict[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """How often the first flow lost one segment alone, two in a row and so on, and its timeouts, for each run."""
    lost = (
        frames["packets"]
        .filter(pl.col("event") == "dropped", pl.col("flow") == 0)
        .sort("seed", "time_ms", maintain_order=True)
    )
    # The next segment of the flow is lost too when the next drop continues where this one ended.
    goes_on = (pl.col("seq").shift(1) + pl.col("payload").shift(1)) == pl.col("seq")
    lost = lost.with_columns(run=(~goes_on.fill_null(False)).cum_sum().over("seed"))
    lengths = lost.group_by("seed", "run", maintain_order=True).agg(length=pl.len().clip(upper_bound=6).cast(pl.Int64))
    counts = lengths.group_by("seed", "length").agg(runs=pl.len().cast(pl.Int64)).sort("seed", "length")
    one = (
        frames["flows"]
        .filter(pl.col("flow") == 0)
        .select(
            "seed",
            "timeouts",
            "retransmissions",
            "drops",
            "goodput_bps",
            seconds=pl.col("bytes_delivered") * 8 / pl.col("goodput_bps"),
        )
    )
    return {"lengths": counts, "flow": one}


def goodput_of_blocks(frames: dict[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """Goodput of all blocks, for each run."""
    runs = frames["messages"].group_by("seed", maintain_order=True)
    return {"runs": runs.agg(mbps=pl.col("bytes").sum() * 8 / pl.col("done_ms").max() / 1e3)}


def every_millisecond(frames: dict[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """The last window of every flow in each millisecond."""
    window = frames["window"].with_columns(ms=pl.col("time_ms").floor())
    return {"window": window.group_by("seed", "flow", "ms", maintain_order=True).agg(pl.col("cwnd").last())}
