"""What is kept of the runs: the functions that `papers/trim/paper.toml` names as `reduce`."""

from __future__ import annotations

import polars as pl

from .common import BOTTLENECK


def bottleneck_and_goodput(frames: dict[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """The port in question, and the goodput of all flows, of each run."""
    ports = frames["ports"].filter(pl.col("port") == BOTTLENECK)
    ports = ports.select("seed", "drops", "mean_queue_packets", span_ms=pl.col("busy_ms") / pl.col("utilisation"))
    total = frames["flows"].group_by("seed", maintain_order=True).agg(bytes=pl.col("bytes_delivered").sum())
    flows = total.join(ports, on="seed", maintain_order="left").select(
        "seed", mbps=pl.col("bytes") * 8e-3 / pl.col("span_ms")
    )
    return {"ports": ports.drop("span_ms"), "flows": flows}


def count_timeouts(frames: dict[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """Timeouts and drops of each run."""
    totals = frames["flows"].group_by("seed", maintain_order=True).agg(pl.col("timeouts", "drops").sum())
    return {"runs": totals}


def completion_of_servers(frames: dict[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """When each server's whole megabyte was delivered, and timeouts, of each run."""
    done = (
        frames["messages"]
        .group_by("seed", "flow", maintain_order=True)
        .agg(pl.col("done_ms").max(), lost=pl.col("done_ms").null_count())
    )
    spent = done.group_by("seed", maintain_order=True).agg(
        mean_ms=pl.col("done_ms").mean() - 100, max_ms=pl.col("done_ms").max() - 100, unfinished=pl.col("lost").sum()
    )
    return {"runs": spent.join(count_timeouts(frames)["runs"], on="seed")}


def completions(frames: dict[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """Completion times of the responses alone."""
    return {
        "messages": frames["messages"]
        .filter(pl.col("class") == "response")
        .select("seed", "flow", "bytes", "completion_ms", "timeouts")
    }
