"""What a capture says about the queue in front of the aggregator: its limit, and whether it marks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from fanin.rack_facts import packets
from fanin.text import rate

if TYPE_CHECKING:
    from fanin.traffic import QueueLimit

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

    def best(self, rates: Sequence[float]) -> float | None:
        """The rate at which the losses have an explanation, where there is one and no other comes near; else None."""
        told = sorted(
            (limit.amiss, bps) for bps in rates if (limit := self.at(bps)) and limit.epochs >= FEWEST_STRETCHES
        )
        if not told or told[0][0] > 0.5 * UNCLEAR or (len(told) > 1 and told[1][0] < 2 * told[0][0] + CLEAR / 2):
            return None
        return told[0][1]


def buffer(
    towards: list[tuple[dict[str, Any], dict[str, Any]]],
    link: dict[str, Any] | None,
    bps: float,
    losses: Losses | None,
    *,
    sure: bool,
) -> Finding:
    """The limit of the queue. `losses` is None where the tap is behind it; `sure`: the rate is measured."""
    told = losses.at(bps) if losses is not None else None
    if losses is None or told is None:
        return Finding(
            "rack.buffer",
            f"{ASSUMED_BUFFER}p",
            "assumed",
            "the queue is before this tap, so its limit cannot be seen: capture at the servers, or ask the switch",
            *(f"{n}p" for n in ASSUMED_RANGE),
        )
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
    least, median, most = told.found
    if sure and told.amiss <= CLEAR and told.epochs >= FEWEST_STRETCHES:
        return Finding(
            "rack.buffer",
            f"{median}p",
            "measured",
            f"at {rate(bps)} the queue of what passed was {_packets(median)} long when packets began to be dropped ({lost}, "
            f"{least} to {most} at eight of ten), and no longer when none were",
            f"{least}p" if least < median else None,
            f"{most}p" if most > median else None,
        )
    if not sure:
        # At another rate it is another queue, and the rate is not known.
        others = [
            limit.packets for factor in (0.4, 1.0, 2.5, 10.0) if (limit := losses.at(factor * bps)) and limit.amiss < 1
        ]
        ends = [n for n in (least, told.packets, *others) if n > 0] or [ASSUMED_BUFFER]
        return Finding(
            "rack.buffer",
            f"{max(told.packets, 1)}p",
            "bounded",
            f"at {rate(bps)}, which is a guess, a queue of {_packets(told.packets)} explains best which packets were dropped ({lost}); at another rate "
            "it is another",
            f"{max(1, min(ends) // 2)}p",
            # One stretch of losses at a guessed rate bounds nothing from above.
            f"{max(2 * max(ends), ASSUMED_RANGE[1] if told.epochs < FEWEST_STRETCHES else 0)}p",
        )
    if told.amiss <= UNCLEAR:
        low, high = round(told.packets / (1 + told.amiss)), round(told.packets * (1 + told.amiss)) + 1
        return Finding(
            "rack.buffer",
            f"{max(median if told.amiss <= CLEAR else told.packets, 1)}p",
            "bounded",
            f"at {rate(bps)} a queue of {_packets(told.packets)} explains best which packets were dropped ({lost}), and is amiss by "
            f"{told.amiss:.0%} of its length at each",
            f"{max(1, min(low, least))}p",
            f"{max(high, most)}p",
        )
    shown = by_round_trips(towards, link, bps)
    ends = [n for n in (least, told.packets, *shown) if n > 0] or [ASSUMED_BUFFER]
    grew = (
        f"; round trips behind the tap grew by {shown[0]} to {shown[1]} packets' time, hosts' own delays included"
        if shown[1]
        else ""
    )
    return Finding(
        "rack.buffer",
        f"{told.packets if told.packets >= FEWEST_STRETCHES else max(ends)}p",
        "assumed",
        f"packets were lost ({lost}), but no one limit explains which{grew}: other traffic shares the port or its buffer, or packets come to "
        "the queue later than they pass this tap",
        f"{max(1, min(ends) // 2)}p",
        f"{2 * max(ends)}p",
    )


def by_round_trips(
    towards: list[tuple[dict[str, Any], dict[str, Any]]], link: dict[str, Any] | None, bps: float
) -> tuple[int, int]:
    """By how many packets' time round trips behind the tap grew: their median, and 99 of 100."""
    shortest, median, _, p99, _ = (link or {}).get("round_trips_ns") or (0, 0, 0, 0, 0)
    wire = max((side["largest_segment"] for _, side in towards), default=1448)
    wire = (wire if 0 < wire <= 9_000 else 1448) + 52 + 38
    at = [round(max(0.0, ns - shortest) * bps / 8e9 / wire) for ns in (median, p99)]
    return at[0], at[1]


def mark(towards: list[tuple[dict[str, Any], dict[str, Any]]], bps: float, limit: Finding) -> Finding:
    """Where a queue of this limit marks, if it does."""
    marks = sum(side["ce_packets"] for _, side in towards)
    echoes = sum(c["to_server"]["ece_packets"] + c["to_client"]["ece_packets"] for c, _ in towards)
    if not marks and not echoes:
        return Finding(
            "rack.mark",
            None,
            "measured",
            "no packet was marked (CE) and no mark echoed (ECE): the switch is taken not to mark",
        )
    k = DCTCP_MARK_1G if bps <= 1e9 else round(DCTCP_MARK_10G * max(1.0, bps / 1e10))
    k = max(1, min(k, (packets(limit.value) or k) // 2))
    return Finding(
        "rack.mark",
        f"{k}p",
        "assumed",
        f"{marks:,} packets were marked (CE), {echoes:,} acknowledgements echoed it (ECE); at which queue, the capture does not say",
    )


def _packets(n: int) -> str:
    return f"{n:,} packet{'' if n == 1 else 's'}"
