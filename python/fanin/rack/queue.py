"""What a capture says about the queue in front of the aggregator: its limit, and whether it marks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from fanin.settings.declared import stated_packets
from fanin.words.text import rate

if TYPE_CHECKING:
    import polars as pl

    from fanin.capture.traffic import Queued, QueueLimit

ASSUMED_BUFFER = 100
"""Packets: a shallow switch port's share, for want of evidence."""

ASSUMED_RANGE = (16, 512)
"""Packets that a port of a data centre's switch may hold, from a shared chip under load to a deep one, for want of evidence."""

DCTCP_MARK_1G, DCTCP_MARK_10G = 20, 65
"""Packets at which DCTCP's switches mark at 1 and 10 Gbps (Linux, Documentation/networking/dctcp.rst)."""

FEWEST_STRETCHES = 3
"""With fewer stretches of drops their queue is no measurement."""

CLEAR, UNCLEAR = 0.1, 0.6
"""By what share of its length a queue may be amiss at each stretch of drops to be measured, and to be told at all."""

EXPLAINED = 0.5 * UNCLEAR
"""By what share a queue may be amiss to be its only explanation. Beyond, drops begin at different lengths: it drops early (RED, RFC 7567), or
something shares it, and it may hold more than they show. At the best rate 15 of 17 drop-tail queues in real time were amiss by at most 0.23, the others,
behind HTB with offload, by 0.35 and 1.18; 18 of 21 with RED by 0.54 or more, the others lost few packets."""

SHARED = "other traffic shares the port or its buffer, or packets come to the queue later than they pass this tap"
"""Why no length of a queue may part what was dropped from what was not."""

NARROW = 1.15
"""A range whose ends are within this factor is one value."""

BURST = 3
"""Packets that a token bucket takes from its queue at once, one more on its way included: a queue seems to hold so many more."""

FULL = 1514
"""Bytes of a packet of the largest size with its Ethernet header, as shapers count."""

FEWEST_LOST = 10
"""With fewer losses a queue was not full often."""

LEAST_WAIT = 1_000_000
"""Nanoseconds: a shorter wait is less than a tick of the time stamps, and hosts' own delays are as long."""

FILLED = 0.7
"""Where one answer in twenty waited this share of what one in a hundred did, and as many packets were lost as answers told, both met a full queue. Of 47
racks in real time that was so on 37, and the limit was 0.78 to 1.24 times what the latter waited, on one 1.62 times; on the others up to 14 times."""

FULLER = 1.39
"""By how much a limit is above or below what the longest waits tell: 0.72 is the least that was seen."""

WIDE = 2.0
"""No value of a range with a larger factor between its ends is told before another."""

FASTEST = 12.0
"""How far above its lower bound a rate without an upper one is looked for."""

RATE_STEP = 1.25
"""Between rates that are tried: the queue is a smooth function of the rate."""

Certainty = Literal["measured", "bounded", "assumed"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One value of the proposed rack.

    Attributes
    ----------
    key : str
        As in the rack file, such as ``rack.rate``.
    value : str or None
        As written there; None where nothing is proposed.
    certainty : {"measured", "bounded", "assumed"}
        ``measured``: seen; ``bounded``: the capture shows one side of it; ``assumed``: the capture does not say.
    evidence : str
        What it rests on, a sentence.
    low, high : str or None
        Between which values it probably lies, as written in the file.
    """

    key: str
    value: str | None
    certainty: Certainty
    evidence: str
    low: str | None = None
    high: str | None = None

    def to_dict(self) -> dict[str, str | None]:
        """As it stands in JSON."""
        return {name: getattr(self, name) for name in ("key", "value", "certainty", "evidence", "low", "high")}


@dataclass(slots=True)
class Losses:
    """What losses say of the limit of the queue at each rate of its link; each rate is asked for once."""

    ask: Callable[[float], QueueLimit | None]
    asked: dict[float, QueueLimit | None]

    def __init__(self, ask: Callable[[float], QueueLimit | None]) -> None:
        self.ask, self.asked = ask, {}

    def at(self, bps: float) -> QueueLimit | None:
        """At this rate, bit/s; None where nothing passed."""
        if bps not in self.asked:
            self.asked[bps] = self.ask(bps)
        return self.asked[bps]

    def amiss(self, bps: float) -> float:
        """By what share of its length the queue is amiss at this rate; infinite where nothing passed."""
        limit = self.at(bps)
        return math.inf if limit is None or limit.losses == 0 else limit.amiss

    def likely(self, rates: Sequence[float], around: float) -> list[float]:
        """The rates at which a queue explains the losses about as well as at the best of them, ascending; empty where it explains them at none.

        The best is looked for downhill from the one nearest to `around`. There is no gap: beyond a rate that does not explain them no other is tried.
        """
        ascending = sorted(rates)
        if not ascending:
            return []
        at = min(range(len(ascending)), key=lambda n: abs(math.log(ascending[n] / around)))
        while True:
            best = min(
                (n for n in (at - 1, at, at + 1) if 0 <= n < len(ascending)), key=lambda n: self.amiss(ascending[n])
            )
            if self.amiss(ascending[best]) >= self.amiss(ascending[at]):
                break
            at = best
        least = self.amiss(ascending[at])
        if least > EXPLAINED:
            return []

        def near(n: int) -> bool:
            return 0 <= n < len(ascending) and self.amiss(ascending[n]) <= max(2 * least, least + CLEAR / 2)

        low = high = at
        while near(low - 1):
            low -= 1
        while near(high + 1):
            high += 1
        return ascending[low : high + 1]

    def best(self, rates: Sequence[float]) -> float | None:
        """The rate at which the losses have an explanation, where there is one and no other comes near; else None."""
        told = sorted(
            (limit.amiss, bps) for bps in rates if (limit := self.at(bps)) and limit.epochs >= FEWEST_STRETCHES
        )
        if not told or told[0][0] > EXPLAINED or (len(told) > 1 and told[1][0] < 2 * told[0][0] + CLEAR / 2):
            return None
        return told[0][1]


def buffer(
    towards: pl.DataFrame,
    link: dict[str, Any] | None,
    losses: Losses,
    speed: Finding,
    bps: float,
) -> Finding:
    """The limit of the queue behind the tap. `speed` is what is known of its link, whose rate is taken to be `bps`."""
    sure = speed.certainty == "measured"
    told = losses.at(bps)
    if told is None:
        return _not_seen()
    if not told.losses and not sure:
        return Finding(
            "rack.buffer",
            f"{ASSUMED_BUFFER}p",
            "assumed",
            "nothing was lost, and the length of a queue cannot be told without the rate of its link",
            *(f"{n}p" for n in ASSUMED_RANGE),
        )
    if not told.losses:
        held = told.longest
        return Finding(
            "rack.buffer",
            f"{max(held, ASSUMED_BUFFER)}p",
            "bounded" if held > 1 else "assumed",
            f"nothing was lost, and at {rate(bps)} the longest queue of what passed was {_packets(held)}",
            f"{max(held, 1)}p",
            f"{max(4 * held, ASSUMED_RANGE[1])}p",
        )
    lost = f"{told.losses:,} losses in {told.epochs:,} stretch{'' if told.epochs == 1 else 'es'}"
    if not sure:
        return _at_any_rate(losses, speed, bps, lost)
    least, median, most = told.found
    if told.amiss > UNCLEAR:
        return _unexplained(told, towards, link, bps, lost)
    # At a rate that is known to a tenth the queue is known no better.
    others = [
        limit for end in (speed.low, speed.high) if end and (limit := losses.at(as_bps(end))) and limit.amiss <= UNCLEAR
    ]
    ends = [n for limit in others for n in (limit.packets, limit.found[1])]
    if (
        told.amiss <= CLEAR
        and told.epochs >= FEWEST_STRETCHES
        and max([*ends, median]) <= NARROW * min([*ends, median])
    ):
        return Finding(
            "rack.buffer",
            f"{median}p",
            "measured",
            f"at {rate(bps)} the queue of what passed was {_packets(median)} long when packets began to be dropped ({lost}, "
            f"{least} to {most} at eight of ten), and no longer when none were",
            f"{max(1, min(least, median) - BURST)}p",
            f"{most}p" if most > median else None,
        )
    low, high = round(told.packets / (1 + told.amiss)), round(told.packets * (1 + told.amiss)) + 1
    # Where packets come out of order a tenth of the stretches begins anywhere.
    tenths = (least, most) if told.amiss <= CLEAR else (median, median)
    return _ranged(
        max(1, min(low, *tenths, *ends) - BURST),
        max(high, *tenths, *ends),
        median if told.amiss <= CLEAR else told.packets,
        "bounded",
        f"at {rate(bps)} a queue of {_packets(told.packets)} explains best which packets were dropped ({lost}), and is amiss by "
        f"{told.amiss:.0%} of its length at each",
    )


def waited(towards: pl.DataFrame, queued: Queued | None, speed: Finding, bps: float) -> Finding:
    """The limit of the queue before the tap: where packets were lost there, first packets of answers that waited longest found it nearly full.

    `speed` is what is known of its link, whose rate is taken to be `bps`: a wait is as many packets as that rate passes in it.
    """
    lost = int(towards["refilled_packets"].sum())
    if queued is None or lost < FEWEST_LOST or queued.p99_ns < LEAST_WAIT:
        return _not_seen()
    slow, fast = (as_bps(end) if end else bps for end in (speed.low, speed.high))
    at_slow, longest, at_fast = (round(queued.p99_ns * each / 8e9 / FULL) for each in (slow, bps, fast))
    low, high = max(1, round(at_slow / FULLER)), max(2, round(at_fast * FULLER))
    if not speed.high and speed.certainty != "measured":
        high = max(2 * high, ASSUMED_RANGE[1])
    seen = f"by their senders' time stamps one in a hundred of {queued.answers:,} answers waited at least {queued.p99_ns / 1e6:.1f} ms"
    # Answers that begin together wait for each other's first windows, however much the queue holds. Where they find it full, they lose packets.
    few = lost < queued.answers
    if few or queued.p95_ns < FILLED * queued.p99_ns:
        low = max(low, ASSUMED_RANGE[0])
        why = f"only {lost} packets were lost" if few else "few came near to that"
        return Finding(
            "rack.buffer",
            f"{max(low, ASSUMED_BUFFER)}p",
            "assumed" if low == ASSUMED_RANGE[0] else "bounded",
            f"the queue is before this tap; {seen} there, and {why}: it may hold more than they found",
            f"{low}p",
            f"{max(4 * low, ASSUMED_RANGE[1])}p",
        )
    guess = "" if speed.certainty == "measured" else ", which is no measured rate"
    return _ranged(
        low,
        high,
        longest,
        "bounded",
        f"{seen} in the queue before this tap, {_packets(longest)} at {rate(bps)}{guess}; {lost:,} packets were lost there",
    )


def _not_seen() -> Finding:
    return Finding(
        "rack.buffer",
        f"{ASSUMED_BUFFER}p",
        "assumed",
        "the queue is before this tap, so its limit cannot be seen: capture at the servers, or ask the switch",
        *(f"{n}p" for n in ASSUMED_RANGE),
    )


def _at_any_rate(losses: Losses, speed: Finding, bps: float, lost: str) -> Finding:
    """The limit where the rate is not known: at each rate it is another, so what is known is a range over all that explain the losses."""
    low = as_bps(speed.low) if speed.low else bps
    high = as_bps(speed.high) if speed.high else max(bps, FASTEST * low)
    steps = max(2, math.ceil(math.log(high / low) / math.log(RATE_STEP)) + 1)
    rates = [low * (high / low) ** (n / (steps - 1)) for n in range(steps)]
    explains = [
        limit
        for each in sorted({*rates, bps})
        if (limit := losses.at(each)) and limit.losses and limit.amiss <= UNCLEAR
    ]
    if not explains:
        return Finding(
            "rack.buffer",
            f"{ASSUMED_BUFFER}p",
            "assumed",
            f"packets were lost ({lost}), but at no rate of the link does one limit explain which{_begin(losses.at(bps), bps)}",
            "1p",
            f"{ASSUMED_RANGE[1]}p",
        )
    ends = [
        n
        for limit in explains
        for n in (limit.packets / (1 + limit.amiss), limit.packets * (1 + limit.amiss), *limit.found)
    ]
    # One stretch of losses says little of what the queue held at others.
    few = max(limit.epochs for limit in explains) < FEWEST_STRETCHES
    least, most = max(1, math.floor(min(n for n in ends if n > 0))), math.ceil(max(ends)) + 1
    best = min(explains, key=lambda limit: limit.amiss)
    low_end = max(1, least // 2) if few else least
    high_end = most if not few else 2 * most if speed.high else max(2 * most, ASSUMED_RANGE[1])
    evidence = (
        f"at another rate of the link it is another queue: at {rate(low)} to {rate(high)}, one of {least} to {_packets(most)} explains which packets "
        f"were dropped ({lost})"
    )
    if best.amiss <= EXPLAINED:
        return _ranged(low_end, high_end, best.packets, "bounded", evidence)
    return Finding(
        "rack.buffer",
        f"{best.packets}p",
        "bounded",
        f"{evidence}, the best one amiss by {best.amiss:.0%} of its length at each stretch{_begin(losses.at(bps), bps)}; it may hold more",
        f"{low_end}p",
        f"{max(high_end, ASSUMED_RANGE[1])}p",
    )


def _begin(told: QueueLimit | None, bps: float) -> str:
    """At what lengths of the queue drops began, where these differ, and why that may be."""
    if told is None or told.epochs < FEWEST_STRETCHES or told.found[2] <= WIDE * told.found[0]:
        return ""
    return f"; at {rate(bps)} drops began at {told.found[0]} to {_packets(told.found[2])}: the queue drops early (RED, CoDel, PIE), {SHARED}"


def _unexplained(
    told: QueueLimit,
    towards: pl.DataFrame,
    link: dict[str, Any] | None,
    bps: float,
    lost: str,
) -> Finding:
    """The limit where the rate is known and no limit explains the losses."""
    shown = by_round_trips(towards, link, bps)
    ends = [n for n in (told.found[0], told.packets, *shown) if n > 0] or [ASSUMED_BUFFER]
    grew = (
        f"; round trips behind the tap grew by {shown[0]} to {shown[1]} packets' time, hosts' own delays included"
        if shown[1]
        else ""
    )
    begin = _begin(told, bps) or f": {SHARED}"
    return _ranged(
        max(1, min(ends) // 2),
        2 * max(ends),
        told.packets if told.packets >= FEWEST_STRETCHES else max(ends),
        "assumed",
        f"packets were lost ({lost}), but no one limit explains which{grew}{begin}",
    )


def _ranged(low: int, high: int, best: int, certainty: Certainty, evidence: str) -> Finding:
    """A limit with its range. Where that is wide no value in it is known better than others: the middle of their logarithms stands for them."""
    if high > WIDE * low:
        middle = max(1, round(math.sqrt(low * high)))
        evidence += f"; {middle} stands for the range"
        return Finding("rack.buffer", f"{middle}p", certainty, evidence, f"{low}p", f"{high}p")
    return Finding("rack.buffer", f"{min(max(best, low), high)}p", certainty, evidence, f"{low}p", f"{high}p")


def as_bps(text: str) -> float:
    """A rate as a finding has it, bit/s.

    >>> as_bps("2.5Gbps"), as_bps("300Mbps")
    (2500000000.0, 300000000.0)
    """
    return float(text[:-4]) * {"Gbps": 1e9, "Mbps": 1e6}[text[-4:]]


def by_round_trips(towards: pl.DataFrame, link: dict[str, Any] | None, bps: float) -> tuple[int, int]:
    """By how many packets' time round trips behind the tap grew: their median, and 99 of 100."""
    shortest, median, _, p99, _ = (link or {}).get("round_trips_ns") or (0, 0, 0, 0, 0)
    largest = towards["largest_segment"].max()
    wire = (largest if isinstance(largest, int) and 0 < largest <= 9_000 else 1448) + 52 + 38
    at = [round(max(0.0, ns - shortest) * bps / 8e9 / wire) for ns in (median, p99)]
    return at[0], at[1]


def mark(towards: pl.DataFrame, bps: float, limit: Finding) -> Finding:
    """Where a queue of this limit marks, if it does."""
    marks, echoes = (int(towards[name].sum()) for name in ("ce_packets", "ece_packets"))
    if not marks and not echoes:
        return Finding(
            "rack.mark",
            None,
            "measured",
            "no packet was marked (CE) and no mark echoed (ECE): the switch is taken not to mark",
        )
    k = DCTCP_MARK_1G if bps <= 1e9 else round(DCTCP_MARK_10G * max(1.0, bps / 1e10))
    k = max(1, min(k, (stated_packets(limit.value) or k) // 2))
    return Finding(
        "rack.mark",
        f"{k}p",
        "assumed",
        f"{marks:,} packets were marked (CE), {echoes:,} acknowledgements echoed it (ECE); at which queue, the capture does not say",
    )


def _packets(n: int) -> str:
    return f"{n:,} packet{'' if n == 1 else 's'}"
