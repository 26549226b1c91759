"""Whether a lower floor of the retransmission timer would change how ordinary requests are sent, and what keeps them as they are."""

from __future__ import annotations

import math
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


def window_to_keep(replay: Replay, floor_ms: float, now_ms: float, mss: int, initial: float) -> int | None:
    """The initial window, in segments, that goes with a lower floor of the retransmission timer; None where none has to.

    After a pause longer than its timer Linux restarts from the initial window at most (`tcp_cwnd_restart`, RFC 2861). Where pauses are longer than the
    new floor and shorter than today's, every answer of more segments would be sent in parts from then on, though few requests wait for the timer. How
    long that takes depends on how soon the aggregator reads and acknowledges, which a replay does not know. What real hosts made of it:
    docs/how-to/advice.md.

    Parameters
    ----------
    replay : Replay
        The traffic.
    floor_ms, now_ms : float
        The floor that is tried, and today's.
    mss : int
        Bytes of a segment.
    initial : float
        Today's initial window, in segments.

    Examples
    --------
    >>> import fanin
    >>> replay = fanin.trains("data/captures/nginx_16to1_before.pcap.gz").workload("10.9.0.1")
    >>> window_to_keep(replay, 5, 200, 1448, 10) is None  # more than one request in 20 waits for the timer
    True
    """
    messages = frame(replay.request_messages()).sort("connection", "asked_ns")
    took = messages.unique("request")["took_ns"]
    if int((took >= now_ms * 1e6).sum()) >= RARE * took.len():
        return None
    pause = (pl.col("asked_ns").cast(pl.Int64) - pl.col("answered_ns").cast(pl.Int64).shift()).over("connection") / 1e6
    paused = messages.filter(pause.is_between(floor_ms, now_ms, closed="right"))
    segments = (paused["response_bytes"].quantile(0.99) or 0.0) / mss
    if paused.height < OFTEN * messages.height or segments <= initial:
        return None
    return min(math.ceil(segments), LARGEST // mss)
