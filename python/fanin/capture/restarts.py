"""Whether a lower floor of the retransmission timer would change how ordinary requests are sent, and what keeps them as they are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import polars as pl

from fanin.statistics.frames import frame

if TYPE_CHECKING:
    from fanin._native import Replay

RARE = 0.05
"""Where more requests wait for the timer today, a lower floor makes these shorter, whatever becomes of the others."""

OFTEN = 0.1
"""A smaller share of responses after such a pause says nothing of ordinary requests."""

LARGEST = 65_535
"""Bytes that a new connection may be sent before its receiver has told of more (Linux's first receive window)."""


def windows_to_keep(
    replay: Replay, floors_ms: Sequence[float], now_ms: float, mss: int, initial: float
) -> dict[float, int]:
    """The initial windows, in segments, that go with lower floors of the retransmission timer, by the floor; without those that need none.

    After a pause longer than its timer Linux restarts from the initial window at most (`tcp_cwnd_restart`, RFC 2861). Where pauses are longer than the
    new floor and shorter than today's, every answer of more segments would be sent in parts from then on, though few requests wait for the timer. How
    long that takes depends on how soon the aggregator reads and acknowledges, which a replay does not know. What real hosts made of it:
    docs/how-to/advice.md.

    Parameters
    ----------
    replay : Replay
        The traffic.
    floors_ms : sequence of float
        The floors that are tried.
    now_ms : float
        Today's.
    mss : int
        Bytes of a segment.
    initial : float
        Today's initial window, in segments.

    Examples
    --------
    >>> import fanin
    >>> replay = fanin.trains("data/captures/nginx_16to1_before.pcap.gz").workload("10.9.0.1")
    >>> windows_to_keep(replay, [5, 20], 200, 1448, 10)  # more than one request in 20 waits for the timer
    {}
    """
    needed = ("request", "took_ns", "connection", "asked_ns", "answered_ns", "response_bytes")
    messages = frame(replay.request_messages()).select(needed).sort("connection", "asked_ns")
    took = messages.unique("request")["took_ns"]
    if int((took >= now_ms * 1e6).sum()) >= RARE * took.len():
        return {}
    pause = (pl.col("asked_ns").cast(pl.Int64) - pl.col("answered_ns").cast(pl.Int64).shift()).over("connection") / 1e6
    paused = messages.select("response_bytes", pause_ms=pause).filter(pl.col("pause_ms") <= now_ms)
    windows = {}
    for floor_ms in floors_ms:
        restarted = paused.filter(pl.col("pause_ms") > floor_ms)["response_bytes"]
        segments = (restarted.quantile(0.99) or 0.0) / mss
        if restarted.len() >= OFTEN * messages.height and segments > initial:
            windows[floor_ms] = min(math.ceil(segments), LARGEST // mss)
    return windows
