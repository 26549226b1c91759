"""One run as one row: what a sweep keeps and a query sees."""

from __future__ import annotations

import polars as pl

from fanin.runs.tables import Frames
from fanin.statistics.ranking import STATISTICS, completion_statistics

NEEDS = ("messages", "flows", "ports", "background", "runs")
"""Frames that a row is made from."""

COLUMNS: dict[str, tuple[type[pl.DataType], str]] = {
    "cc": (pl.String, "algorithms, by comma"),
    "seed": (pl.UInt64, "seed"),
    "messages": (pl.UInt64, "finite messages"),
    "finished": (pl.UInt64, "of them delivered within the run"),
    **{
        f"{name}_ms": (
            pl.Float64,
            f"{name.replace('_', '.')} of their completion times, nearest-rank; unfinished counts as longest",
        )
        for name in STATISTICS
    },
    "missed_deadlines": (pl.UInt64, "messages with a deadline that were not delivered by it"),
    "goodput_bps": (pl.Float64, "payload delivered by all flows, from the first send to the last delivery"),
    "fairness": (pl.Float64, "Jain's index of the flows' goodput; null without flows that delivered"),
    "slowest_flow_bps": (pl.Float64, "least goodput of a flow"),
    "segments": (pl.UInt64, "data segments sent"),
    "retransmissions": (pl.UInt64, "segments retransmitted"),
    "timeouts": (pl.UInt64, "retransmission timeouts"),
    "drops": (pl.UInt64, "packets dropped at ports"),
    "marks": (pl.UInt64, "packets marked at ports"),
    "max_queue_packets": (pl.UInt64, "longest queue of a port"),
    "mean_queue_packets": (pl.Float64, "mean queue, of the port where it is largest"),
    "utilisation": (pl.Float64, "share of the time that the busiest port sent"),
    "background_dropped": (pl.UInt64, "background datagrams dropped"),
    "end_ms": (pl.Float64, "when the run stopped"),
    "complete": (pl.Boolean, "every finite message was delivered"),
    "packet_hops": (pl.UInt64, "packets accepted by ports: the engine's unit of work"),
}
"""Columns of a row: type and meaning. Times are simulated."""


def summary(frames: Frames) -> pl.DataFrame:
    """The row of one run.

    Parameters
    ----------
    frames : dict
        With the frames of :data:`NEEDS`.

    Returns
    -------
    polars.DataFrame
        One row with the columns of :data:`COLUMNS`.
    """
    messages, flows, ports, run = frames["messages"], frames["flows"], frames["ports"], frames["runs"]
    finite = messages.filter(pl.col("bytes").is_not_null())
    statistics = completion_statistics(finite["completion_ms"].to_list())
    due = messages.filter(pl.col("deadline_ms").is_not_null())
    late = due.filter(pl.col("done_ms").is_null() | (pl.col("done_ms") > pl.col("deadline_ms")))
    first, last = flows["first_send_ms"].min(), flows["last_delivery_ms"].max()
    busy_ms = float(last) - float(first) if first is not None and last is not None else 0.0  # type: ignore[arg-type]
    rates = flows["goodput_bps"].drop_nulls()
    squares = float((rates * rates).sum())
    busiest = ports["utilisation"].max()
    row = {
        "cc": run["cc"][0],
        "seed": run["seed"][0],
        "messages": finite.height,
        "finished": finite["done_ms"].count(),
        **{f"{name}_ms": statistics[name] for name in STATISTICS},
        "missed_deadlines": late.height,
        "goodput_bps": int(flows["bytes_delivered"].sum()) * 8e3 / busy_ms if busy_ms > 0 else None,
        "fairness": float(rates.sum()) ** 2 / (len(rates) * squares) if squares > 0 else None,
        "slowest_flow_bps": rates.min(),
        "segments": int(flows["segments"].sum()),
        "retransmissions": int(flows["retransmissions"].sum()),
        "timeouts": int(flows["timeouts"].sum()),
        "drops": int(ports["drops"].sum()),
        "marks": int(ports["marks"].sum()),
        "max_queue_packets": ports["max_queue_packets"].max() or 0,
        "mean_queue_packets": ports["mean_queue_packets"].max(),
        "utilisation": busiest,
        "background_dropped": int(frames["background"]["dropped"].sum()),
        "end_ms": run["end_ms"][0],
        "complete": run["complete"][0],
        "packet_hops": run["packet_hops"][0],
    }
    return pl.DataFrame([row], schema={name: dtype for name, (dtype, _) in COLUMNS.items()})
