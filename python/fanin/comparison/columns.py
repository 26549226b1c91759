"""Columns of a comparison's frames, in their order; :class:`fanin.CompareResult` says what they mean."""

from __future__ import annotations

import polars as pl

from fanin.ranking import STATISTICS

RUNS: dict[str, pl.DataType | type[pl.DataType]] = {
    "cc": pl.String,
    "seed": pl.UInt64,
    **dict.fromkeys(STATISTICS, pl.Float64),
    **dict.fromkeys(("timeouts", "retransmissions", "drops", "marks"), pl.UInt64),
    **dict.fromkeys(("goodput_bps", "queue_mean_packets", "queue_p99_packets", "queue_max_packets"), pl.Float64),
    **dict.fromkeys(("responses", "unfinished"), pl.UInt64),
    **dict.fromkeys((f"round_{name}" for name in STATISTICS), pl.Float64),
    **dict.fromkeys(("rounds", "unfinished_rounds"), pl.UInt64),
    **dict.fromkeys((f"tree_{name}" for name in STATISTICS), pl.Float64),
    **dict.fromkeys(("trees", "unfinished_trees"), pl.UInt64),
    "end_ms": pl.Float64,
    "packet_hops": pl.UInt64,
}
"""Columns of :attr:`CompareResult.runs`."""

RESPONSES: dict[str, pl.DataType | type[pl.DataType]] = {
    "cc": pl.String,
    "seed": pl.UInt64,
    "connection": pl.UInt32,
    "server": pl.String,
    "response": pl.UInt32,
    "bytes": pl.UInt64,
    "release_ms": pl.Float64,
    "done_ms": pl.Float64,
    "completion_ms": pl.Float64,
    "timeouts": pl.UInt32,
}
"""Columns of :attr:`CompareResult.responses`."""

ROUNDS: dict[str, pl.DataType | type[pl.DataType]] = {
    "cc": pl.String,
    "seed": pl.UInt64,
    **dict.fromkeys(("round", "company", "requests"), pl.UInt32),
    **dict.fromkeys(("release_ms", "done_ms", "completion_ms"), pl.Float64),
}
"""Columns of :attr:`CompareResult.rounds`."""

TREES: dict[str, pl.DataType | type[pl.DataType]] = {
    "cc": pl.String,
    "seed": pl.UInt64,
    **dict.fromkeys(("connection", "turn"), pl.UInt32),
    **dict.fromkeys(("release_ms", "done_ms", "completion_ms"), pl.Float64),
}
"""Columns of :attr:`CompareResult.trees`."""

PAUSES: dict[str, pl.DataType | type[pl.DataType]] = {
    "connection": pl.UInt32,
    "response": pl.UInt32,
    "pause_ms": pl.Float64,
}
"""Columns of :attr:`CompareResult.pauses`."""

FLOWS: dict[str, pl.DataType | type[pl.DataType]] = {
    "cc": pl.String,
    "seed": pl.UInt64,
    "flow": pl.UInt32,
    "connection": pl.UInt32,
    "src": pl.String,
    "dst": pl.String,
    **dict.fromkeys(
        ("segments", "bytes_sent", "bytes_delivered", "retransmissions", "timeouts", "drops", "marks"), pl.UInt64
    ),
    "max_cwnd": pl.Float64,
    "min_rtt_ms": pl.Float64,
}
"""Columns of :attr:`CompareResult.flows`."""

QUEUE: dict[str, pl.DataType | type[pl.DataType]] = {
    "cc": pl.String,
    "time_ms": pl.Float64,
    "packets": pl.UInt32,
    "bytes": pl.UInt64,
}
"""Columns of :attr:`CompareResult.queue`."""

WINDOW: dict[str, pl.DataType | type[pl.DataType]] = {
    "cc": pl.String,
    "connection": pl.UInt32,
    "time_ms": pl.Float64,
    **dict.fromkeys(("cwnd", "ssthresh", "in_flight", "srtt_ms"), pl.Float64),
    "state": pl.String,
}
"""Columns of :attr:`CompareResult.window`."""

PACKETS: dict[str, pl.DataType | type[pl.DataType]] = {
    "cc": pl.String,
    "connection": pl.UInt32,
    "time_ms": pl.Float64,
    "event": pl.String,
    "seq": pl.UInt64,
    "payload": pl.UInt32,
}
"""Columns of :attr:`CompareResult.packets`."""
