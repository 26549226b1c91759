"""Where a capture was taken, and how much of the slow responses is pauses that were taken for the application's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from fanin.statistics.frames import frame

if TYPE_CHECKING:
    from fanin._native import Replay
    from fanin.capture.traffic import TrainsResult

PAUSE_SHARE = 0.3
"""Of the time of the slowest responses; more of it in pauses is remarked."""


def pauses(replay: Replay) -> pl.DataFrame:
    """Per response the pauses between its pieces that are replayed as the application's: ``connection``, ``response`` (UInt32), ``pause_ms``."""
    return frame(replay.pauses())


def paused_share(responses: pl.DataFrame, paused: pl.DataFrame) -> float | None:
    """Share of the time of the slowest hundredth of responses that is replayed pauses; None without any.

    Parameters
    ----------
    responses : polars.DataFrame
        Of one algorithm, as :attr:`fanin.CompareResult.responses`.
    paused : polars.DataFrame
        As :func:`pauses`.
    """
    # Only what is needed: of a long capture there are millions of rows.
    slim = responses.select("connection", "response", "completion_ms")
    done = slim.drop_nulls("completion_ms").sort("completion_ms", descending=True)
    slowest = done.head(max(1, done.height // 100)).join(paused, on=["connection", "response"], how="left")
    total = float(slowest["completion_ms"].sum())
    return float(slowest["pause_ms"].fill_null(0.0).sum()) / total if total > 0 else None


def about_the_tap(found: TrainsResult, replay: Replay, responses: pl.DataFrame) -> list[str]:
    """What a reader should know of where the capture was taken; `responses` are those of the baseline: ``connection``, ``response``, ``completion_ms``."""
    told = []
    share = paused_share(responses, pauses(replay)) if responses.height else None
    near = found.behind_the_queue(replay.aggregator)
    if share is not None and share > PAUSE_SHARE:
        told.append(
            f"{share:.0%} of the time of the slowest hundredth of responses is pauses in the capture that are replayed as the application's, whichever "
            "TCP runs" + ("; behind the queue, stalls of the network look the same" if near else "")
        )
    told += needless(found, replay.aggregator)
    if near:
        told.append(
            f"the capture was taken behind the queue, at or near {replay.aggregator}: packets that were lost are not in the file, and the network's "
            "stalls may pass for pauses of the application; capture at the switch or at the servers"
        )
    return told


FEWEST_NEEDLESS, NEEDLESS_SHARE = 10, 0.2
"""Packets that were sent again though they had arrived, and their share of what was sent again, from which on they are remarked."""


def needless(found: TrainsResult, aggregator: str) -> list[str]:
    """What to know where much was sent again that had arrived."""
    towards = found.towards(aggregator)
    again, spurious, overtaken = (
        int(towards[f"{name}_packets"].sum()) for name in ("repaired", "spurious", "overtaken")
    )
    if spurious < FEWEST_NEEDLESS or spurious < NEEDLESS_SHARE * again:
        return []
    if 2 * overtaken >= spurious:
        why = (
            f"The network had delivered {overtaken:,} of them behind later packets, as over several paths, queues or processors; a rack keeps the "
            "order, and its replay is not expected to send them again"
        )
    else:
        why = "They were late by more than their sender's timer, as behind a shaper (token bucket) or on a busy host, which a drop-tail port does not do"
    return [
        f"{spurious:,} of {again:,} packets that were sent again had not been lost: their receiver had them (D-SACK, or acknowledged before). {why}"
    ]
