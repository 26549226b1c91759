"""Why the slowest response of each algorithm was slow, from the trace of one run."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from fanin.frames import parts
from fanin.text import duration, significant

if TYPE_CHECKING:
    from fanin.comparison import CompareResult

Cause = Literal["timeout", "recovery", "pause", "window", "queue", "size"]

SMALL_WINDOW = 4.0
"""Packets; a window that stays below this is what a response waits for."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why one response was slow.

    Attributes
    ----------
    cc : str
        The algorithm.
    connection, response : int
        Which response of the traced seed: number of the connection in the capture, and within it.
    bytes : int
        Its size.
    release_ms, completion_ms : float
        When the server's application wrote it, and how long it took.
    cause : str
        What most of the time went into: ``timeout``, ``recovery``, ``pause``, ``window``, ``queue`` or ``size``.
    sentence : str
        The same for people.
    """

    cc: str
    connection: int
    response: int
    bytes: int
    release_ms: float
    completion_ms: float
    cause: Cause
    sentence: str

    def to_dict(self) -> dict[str, Any]:
        """As it stands in JSON."""
        return {name: getattr(self, name) for name in self.__slots__}


def explanations(result: CompareResult) -> list[Explanation]:
    """The slowest response of each algorithm in the traced seed, in the order of the ranking; empty without a trace."""
    if result.packets.is_empty():
        return []
    traced = parts(result.responses.filter(pl.col("seed") == result.trace_seed), "cc")
    windows = parts(result.window, "cc")
    found = []
    for row in result.ranking:
        mine = traced.get(row.cc, result.responses.clear())
        slowest = mine.drop_nulls("completion_ms").sort("completion_ms", descending=True, maintain_order=True).head(1)
        if slowest.height:
            window = windows.get(row.cc, result.window.clear())
            found.append(explained(result, slowest.row(0, named=True), window))
    return found


def explained(result: CompareResult, response: dict[str, Any], windows: pl.DataFrame | None = None) -> Explanation:
    """Why this response of the traced seed took its time; `windows` are those of its algorithm, if they are at hand."""
    cc, connection = response["cc"], response["connection"]
    start, end, took = response["release_ms"], response["done_ms"], response["completion_ms"]
    events = events_of(result, response)
    data = events.filter(pl.col("payload") > 0)
    lost = data.filter(pl.col("event") == "dropped").height
    arrived = data.filter(pl.col("event") == "delivered")["time_ms"].to_list()
    silence, since = _longest_gap([start, *arrived, end])
    mine = result.window.filter(pl.col("cc") == cc) if windows is None else windows
    window = mine.filter((pl.col("connection") == connection) & pl.col("time_ms").is_between(start, end))
    cwnd = float(window["cwnd"].median() or 0.0) if window.height else 0.0  # type: ignore[arg-type]
    waits = _waits(data)
    waited = sum(waits) / len(waits) if waits else 0.0
    packets = max(1, data.filter(pl.col("event") == "accepted").height)
    rounds = max(1.0, packets / max(1.0, cwnd))
    paused = float(response.get("pause_ms") or 0.0)
    size = f"{response['bytes']:,} bytes"
    share = _percent(silence, took)
    cause: Cause
    if paused > took / 2:
        cause, why = "pause", f"{duration(paused)} of it are pauses of the server's application"
    elif silence > took / 3 and (tail := _lost_last(data, lost)):
        cause = "timeout"
        why = f"{tail}, which no acknowledgement tells the sender: it waited {duration(silence)} ({share}) for a timer, from {_at(since, start)} on"
    elif response["timeouts"] and silence > took / 3:
        what = (
            f"{lost} packets were dropped"
            if lost > 1
            else "a packet was dropped"
            if lost
            else "its packets went unanswered"
        )
        cause = "timeout"
        why = f"{what}, and it waited {duration(silence)} ({share}) for the retransmission timer, from {_at(since, start)} on"
    elif lost and silence > took / 3:
        cause = "recovery"
        dropped = f"{lost} packets were dropped" if lost > 1 else "a packet was dropped"
        why = f"{dropped}; after the loss nothing new arrived for {duration(silence)} ({share}), until it was repaired"
    elif silence > took / 2 and since - start > 0.0:
        cause, why = (
            "window",
            f"nothing arrived for {duration(silence)} ({share}): the sender waited for an acknowledgement or a timer, "
            f"its window was {significant(cwnd, 2)} packets",
        )
    elif 0 < cwnd <= SMALL_WINDOW and rounds > 4:
        cause = "window"
        why = f"its window stayed at {significant(cwnd, 2)} packets, so it took {significant(rounds, 2)} round trips"
    elif waited * min(rounds, 3) > took / 4:
        behind = data.filter(pl.col("event") == "accepted").height
        cause, why = (
            "queue",
            f"its {behind} packets waited {duration(waited)} each in the queue, behind those of the others"
            + (f"; {lost} were dropped" if lost else ""),
        )
    else:
        cause, why = (
            "size",
            f"it is large: {significant(rounds, 2)} round trips at a window of {significant(cwnd, 2)} packets",
        )
        why += f", with {lost} packets dropped" if lost else ""
    return Explanation(
        cc,
        connection,
        response["response"],
        response["bytes"],
        start,
        took,
        cause,
        f"{size} took {duration(took)}: {why}.",
    )


def events_of(result: CompareResult, response: dict[str, Any]) -> pl.DataFrame:
    """Packets of one response at the port to the aggregator: ``time_ms``, ``event``, ``seq``, ``payload``."""
    return result.packets.filter(
        (pl.col("cc") == response["cc"])
        & (pl.col("connection") == response["connection"])
        & pl.col("time_ms").is_between(response["release_ms"], response["done_ms"])
    )


def _longest_gap(times: list[float]) -> tuple[float, float]:
    """The longest time between two of these, and when it began."""
    return max(((b - a, a) for a, b in itertools.pairwise(times)), default=(0.0, 0.0))


def _waits(data: pl.DataFrame) -> list[float]:
    """How long each packet was between the queue's entry and the aggregator, in ms: they leave in the order in which they came."""
    came = data.filter(pl.col("event") == "accepted")["time_ms"].to_list()
    left = data.filter(pl.col("event") == "delivered")["time_ms"].to_list()
    return [b - a for a, b in zip(came, left, strict=False) if b >= a]


def _lost_last(data: pl.DataFrame, lost: int) -> str | None:
    """A loss of the last packets is not seen by the receiver, so nothing but the timer can tell the sender."""
    before = data.filter(pl.col("event").is_in(["accepted", "dropped"])).unique(["seq", "event"], maintain_order=True)
    first_drop = before.filter(pl.col("event") == "dropped")["seq"].min()
    highest = before.filter(pl.col("event") == "accepted")["seq"].max()
    if lost == 0 or first_drop is None or highest is None or int(first_drop) < int(highest):  # type: ignore[arg-type]
        return None
    return "the last packet was dropped" if lost == 1 else f"the last {lost} packets were dropped"


def _percent(part: float, whole: float) -> str:
    return f"{part / whole:.0%}" if whole > 0 else "all"


def _at(time_ms: float, start_ms: float) -> str:
    return f"{duration(max(0.0, time_ms - start_ms))} after its start" if time_ms > start_ms else "its start"
