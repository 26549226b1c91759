"""What the engine leaves, as the frames that :class:`fanin.RunResult` documents."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

import polars as pl

from fanin.frames import frame, ms

if TYPE_CHECKING:
    from fanin._native import Plan, Run

Frames = dict[str, pl.DataFrame]
"""Frames by their name."""

STATES = ("open", "disorder", "cwr", "recovery", "loss")
"""States of a sender, in the order of the engine's codes."""

EVENTS = ("accepted", "dropped", "marked", "delivered")
"""Packet events, in the order of the engine's codes."""


def tables(results: Run, plan: Plan, cc: str, seed: int, wanted: Collection[str] | None = None) -> Frames:
    """The frames of one run, as described in :class:`fanin.RunResult`.

    Parameters
    ----------
    results : Run
        What the engine left.
    plan : Plan
        What it was given.
    cc : str
        Name in the column ``cc``.
    seed : int
        Number in the column ``seed``.
    wanted : collection of str, optional
        Names of frames; all unless given.
    """
    whose = [pl.lit(cc).alias("cc"), pl.lit(seed, dtype=pl.UInt64).alias("seed")]
    return {
        name: convert(results, plan).select(*whose, pl.all())
        for name, convert in CONVERTERS.items()
        if wanted is None or name in wanted
    }


def _messages(results: Run, plan: Plan) -> pl.DataFrame:
    completion = pl.col("done_ps") - pl.col("release_ps")
    return (
        frame(results.messages())
        .with_row_index("message")
        .select(
            "message",
            "flow",
            "class",
            "bytes",
            ms("release_ps"),
            ms("first_send_ps"),
            ms("done_ps"),
            (completion / 1e9).alias("completion_ms"),
            ms("ideal_ps"),
            (completion / pl.col("ideal_ps")).alias("slowdown"),
            ms("deadline_ps"),
            "timeouts",
        )
    )


def _flows(results: Run, plan: Plan) -> pl.DataFrame:
    flows = frame(results.flows()).with_row_index("flow")
    busy = pl.col("last_delivery_ps").cast(pl.Float64) - pl.col("first_send_ps")
    times = [c for c in flows.columns if c.endswith("_ps")]
    return flows.with_columns(
        pl.when(busy > 0).then(pl.col("bytes_delivered") * 8e12 / busy).alias("goodput_bps"), *map(ms, times)
    ).drop(times)


def _ports(results: Run, plan: Plan) -> pl.DataFrame:
    end_ps = results.end_ps
    return (
        frame(results.ports())
        .rename({"name": "port"})
        .with_columns(
            utilisation=pl.col("busy_ps") / end_ps if end_ps else pl.lit(0.0), wait_ms=pl.col("wait_ps") / 1e9
        )
        .drop("busy_ps", "wait_ps")
    )


def _background(results: Run, plan: Plan) -> pl.DataFrame:
    return frame(results.background())


def _queue(results: Run, plan: Plan) -> pl.DataFrame:
    return frame(results.queue()).select(_word("port", plan.ports), ms("time_ps"), "packets", "bytes")


def _window(results: Run, plan: Plan) -> pl.DataFrame:
    return frame(results.window()).select(
        "flow", ms("time_ps"), "cwnd", "ssthresh", "in_flight", ms("srtt_ps"), _word("state", STATES)
    )


def _packets(results: Run, plan: Plan) -> pl.DataFrame:
    return frame(results.packets()).select(
        _word("port", plan.ports), ms("time_ps"), _word("event", EVENTS), "flow", "flags", "seq", "payload"
    )


def _throughput(results: Run, plan: Plan) -> pl.DataFrame:
    return frame(results.throughput()).select("flow", ms("time_ps"), "bytes")


def _internals(results: Run, plan: Plan) -> pl.DataFrame:
    return frame(results.internals()).select("flow", ms("time_ps"), "name", "value")


def _runs(results: Run, plan: Plan) -> pl.DataFrame:
    return pl.DataFrame(
        {"end_ms": [results.end_ps / 1e9], "complete": [results.complete], "packet_hops": [results.packet_hops]},
        schema_overrides={"packet_hops": pl.UInt64},
    )


CONVERTERS: dict[str, Callable[[Run, Plan], pl.DataFrame]] = {
    "messages": _messages,
    "flows": _flows,
    "ports": _ports,
    "background": _background,
    "queue": _queue,
    "window": _window,
    "packets": _packets,
    "throughput": _throughput,
    "internals": _internals,
    "runs": _runs,
}

FRAMES = tuple(CONVERTERS)
"""Names of the frames of a run."""


def _word(column: str, words: Sequence[str]) -> pl.Expr:
    return pl.col(column).replace_strict(dict(enumerate(words)), return_dtype=pl.String)
