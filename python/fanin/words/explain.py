"""Why the slowest response of each algorithm was slow, from the trace of one run."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from fanin import _native
from fanin.rack.facts import rack_facts
from fanin.statistics.frames import parts
from fanin.words.text import duration, significant
from fanin.words.text import rate as rate_text

if TYPE_CHECKING:
    from fanin.comparison.result import CompareResult

Cause = Literal["timeout", "recovery", "pause", "probing", "pacing", "window", "queue", "size"]

PACED = ("bbr",)
"""Algorithms that send at a rate of their own; what goes around them (``gss+bbr``) leaves that to them."""

MOST_OF_A_LINK = 0.8
"""Payload at this share of a link's rate fills it, nearly: headers and gaps take the rest."""

PROBE_WINDOW = 4.0
"""Packets: BBR's window while it looks for the shortest round trip (PROBE_RTT, tcp_bbr.c bbr_cwnd_min_target)."""

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
        What most of the time went into: ``timeout``, ``recovery``, ``pause``, ``probing``, ``pacing``, ``window``, ``queue`` or ``size``.
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
        slowest = mine.filter(pl.col("completion_ms") == pl.col("completion_ms").max()).head(1)
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
    pauses = result.pauses.filter(connection=connection, response=response["response"])
    paused = float(pauses["pause_ms"].sum())
    if paused > took / 2:
        told = f"{duration(paused)} of it ({_percent(paused, took)}) are pauses in the capture, replayed as those of the server's application"
        reason: tuple[Cause, str] = "pause", told
    else:
        reason = (
            _of_losses(response, data, lost, silence, since)
            or (_held(mine, connection, start, end, data, _link_bps(result)) if cc.rsplit("+")[-1] in PACED else None)
            or _of_the_window(response, data, lost, silence, since, cwnd)
        )
    cause, why = reason
    text = f"{response['bytes']:,} bytes took {duration(took)}: {why}."
    return Explanation(cc, connection, response["response"], response["bytes"], start, took, cause, text)


def _of_losses(
    response: dict[str, Any], data: pl.DataFrame, lost: int, silence: float, since: float
) -> tuple[Cause, str] | None:
    """Whether a response waited for a third of its time for a timer or a repair: `silence` ms, from `since` on."""
    start, took = response["release_ms"], response["completion_ms"]
    if silence <= took / 3:
        return None
    waited = f"{duration(silence)} ({_percent(silence, took)})"
    if tail := _lost_last(data, lost):
        return (
            "timeout",
            f"{tail}, which no acknowledgement tells the sender: it waited {waited} for a timer, from {_at(since, start)} on",
        )
    dropped = f"{lost} packets were dropped" if lost > 1 else "a packet was dropped"
    if response["timeouts"]:
        what = dropped if lost else "its packets went unanswered"
        return "timeout", f"{what}, and it waited {waited} for the retransmission timer, from {_at(since, start)} on"
    if lost:
        return "recovery", f"{dropped}; after the loss nothing new arrived for {waited}, until it was repaired"
    return None


def _of_the_window(
    response: dict[str, Any], data: pl.DataFrame, lost: int, silence: float, since: float, cwnd: float
) -> tuple[Cause, str]:
    """Whether a response waited for its window or the queue, else it is large."""
    start, took = response["release_ms"], response["completion_ms"]
    packets = data.filter(pl.col("event") == "accepted").height
    rounds = max(1.0, max(1, packets) / max(1.0, cwnd))
    if silence > took / 2 and since - start > 0.0:
        return (
            "window",
            f"nothing arrived for {duration(silence)} ({_percent(silence, took)}): the sender waited for an acknowledgement or a timer, "
            f"its window was {significant(cwnd, 2)} packets",
        )
    if 0 < cwnd <= SMALL_WINDOW and rounds > 4:
        return (
            "window",
            f"its window stayed at {significant(cwnd, 2)} packets, so it took {significant(rounds, 2)} round trips",
        )
    waits = _waits(data)
    waited = sum(waits) / len(waits) if waits else 0.0
    if waited * min(rounds, 3) > took / 4:
        told = f"its {packets} packets waited {duration(waited)} each in the queue, behind those of the others"
        return "queue", told + (f"; {lost} were dropped" if lost else "")
    told = f"it is large: {significant(rounds, 2)} round trips at a window of {significant(cwnd, 2)} packets"
    return "size", told + (f", with {lost} packets dropped" if lost else "")


def _held(
    windows: pl.DataFrame, connection: int, start: float, end: float, data: pl.DataFrame, link_bps: float
) -> tuple[Cause, str] | None:
    """Whether BBR itself held a response back for a third of its time, by its sender's trace: in PROBE_RTT, or by its pacing rate."""
    took = end - start
    rows = windows.filter(pl.col("connection") == connection).sort("time_ms", maintain_order=True)
    steps = _steps(rows, start, end)
    probing = sum(until - since for since, until, cwnd, _, state in steps if cwnd <= PROBE_WINDOW and state == "open")
    # The window that it left for the small one, which it takes up again afterwards.
    wider = rows.filter((pl.col("time_ms") < end) & (pl.col("cwnd") > PROBE_WINDOW)).tail(1).to_dicts()
    if probing > took / 3 and wider and wider[0]["state"] == "open":
        return (
            "probing",
            f"for {duration(probing)} ({_percent(probing, took)}) BBR kept its window at {significant(PROBE_WINDOW, 1)} packets, after "
            f"{significant(wider[0]['cwnd'], 2)}, to see the shortest round trip (PROBE_RTT)",
        )
    left = data.filter(pl.col("event") == "accepted")
    if left.height < 3:
        return None
    # Until its last packet left there was more to send; where the window had room for it, only the pacing rate held it back.
    last = float(left["time_ms"][-1])
    room = [(min(until, last) - since, cwnd - flight) for since, until, cwnd, flight, _ in steps if since < last]
    paced = sum(span for span, free in room if free >= 1)
    rate = 8 * int(left["payload"][:-1].sum()) / ((last - float(left["time_ms"][0])) / 1e3)
    # What leaves as fast as the link takes it is not held back by its pacing.
    if paced <= took / 3 or rate > MOST_OF_A_LINK * link_bps:
        return None
    spare = sum(span * free for span, free in room if free >= 1) / paced
    return (
        "pacing",
        f"for {duration(paced)} ({_percent(paced, took)}) BBR's pacing held packets back that its window had room for, {significant(spare, 2)} more "
        f"on average: they left at {rate_text(rate)} of the link's {rate_text(link_bps)}",
    )


def _link_bps(result: CompareResult) -> float:
    """The rate of the aggregator's link; endless for one of several racks."""
    facts = rack_facts(result)
    text = facts.get("receiver_rate", facts.get("rate"))
    return math.inf if text is None else _native.quantity("rate", text, "rack.rate")


def _steps(rows: pl.DataFrame, start: float, end: float) -> list[tuple[float, float, float, float, str]]:
    """What was in force of a sender and for how long, within a span: since, until, cwnd, in flight, state."""
    at = rows.select("time_ms", "cwnd", "in_flight", "state").rows()
    told = []
    for number, (time, cwnd, flight, state) in enumerate(at):
        until = at[number + 1][0] if number + 1 < len(at) else end
        if until > start and time < end:
            told.append((max(time, start), min(until, end), cwnd, flight, state))
    return told


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
