"""What a capture says about the senders: whether TCP hands their network cards bursts, whether the network cuts these, whether they share a clock."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from fanin.rack.queue import Finding
from fanin.words.text import enumeration

FEWEST_BURSTS = 20
"""So many bursts that crossed as one packet, and so many longer ones that did not, show where they are cut."""

FEWEST_OF_RATE = 100
"""Fewer bursts do not show that their lengths follow the rate, as Linux sizes them (tcp_output.c, ``tcp_tso_autosize``)."""

SHORT = range(2, 9)
"""Lengths in segments that occur where bursts follow rate and window. An application's writes end at a few lengths, mostly longer ones."""

OCCURS = 0.005
"""A length occurs where it is this share of all bursts."""

IN_STEP = 0.4
"""Share of the trains of packets at the rate of the link from which on their rhythm is its."""

USUALLY_LOST = 8_000.0
"""What packets after uncut bursts were late by, nanoseconds, on average in five captures: 4.5 to 12.3 us (Linux 6.18 on virtual machines)."""

HEADER = 14
"""Bytes that a token bucket of tc counts beside a packet: Ethernet's header, without checksum, preamble and gap (sch_tbf.c, ``qdisc_pkt_len``)."""

EXACT = 0.002
"""A rhythm that is so near to what packets without any frame take is that of a simulated link."""

SHORTEST_LATE = 100.0
"""Nanoseconds; what is late by less is late by the resolution of the time stamps."""

ROOM = 8
"""A burst of segments leaves a token bucket room for at least this part of a packet: users set it a little above what it shall let through."""

USUAL_HZ = 250
"""Ticks per second of the profile `linux` (Debian's CONFIG_HZ)."""

CLEARLY = 0.02
"""Share of bursts on the wrong side of the size from which on they are cut: retransmissions that look like new data."""


def offload(link: dict[str, Any] | None, mtu: int, bps: float, *, near: bool = False) -> tuple[Finding, ...]:
    """What bursts inside messages to one receiver say of its senders' segmentation offload; nothing where that is not clear.

    Parameters
    ----------
    link : dict or None
        Of :attr:`fanin.TrainsResult.links`: ``offload`` has ``bursts`` and ``whole`` by length in segments, from one.
    mtu : int
        Bytes of a full packet with IP header.
    bps : float
        The rate of the link, bit/s.
    near : bool
        The tap is behind the queue, where packets keep the rhythm of the link.

    Returns
    -------
    tuple of Finding
        ``hosts.tso``, ``stack.frame_overhead``, ``stack.tso_whole`` and ``stack.bucket_latency``, each where it shows.

    Examples
    --------
    A token bucket with a burst of 3200 bytes lets two segments through as one packet and cuts three:

    >>> seen = {"bursts": [0, 3060, 1743, 764], "whole": [0, 3060, 0, 0]}
    >>> link = {"offload": seen, "share": 0.8, "rhythm_ns": (40_400, 4_200), "after_burst_ns": [None, 7_200]}
    >>> [(f.key, f.value, f.low, f.high) for f in offload(link, 1500, 300e6, near=True)][1:]
    [('stack.frame_overhead', '14B', None, None), ('stack.tso_whole', '3217B', '3028B', '4541B'), ('stack.bucket_latency', '11.3us', None, None)]

    An application that writes 16 KB at a time, on hosts without offload:

    >>> offload({"offload": {**seen, "bursts": [0] * 10 + [150, 120], "whole": []}}, 1500, 300e6)
    ()
    """
    if link is None:
        return ()
    bursts, whole = _from_two(link["offload"]["bursts"]), _from_two(link["offload"]["whole"])
    count = sum(bursts.values())
    most = _uncut(bursts, whole)
    if most is None and not _follows_the_rate(bursts, count):
        return ()
    half = _median(bursts, count)
    tso = Finding(
        "hosts.tso",
        "true",
        "measured",
        f"{count:,} bursts of {min(bursts)} segments and more ended with PSH inside messages, as Linux hands them to a card; half of them had "
        f"{half} or fewer",
    )
    if most is None:
        return (tso,)
    shown = [f"{n:,} of {length} segments" for length, n in bursts.items() if length <= most and n]
    longer = sum(n for length, n in bursts.items() if length > most)
    cut = (
        f"the bursts of at most {most} segments crossed the network as one packet each ({enumeration(shown)}), and none of {longer:,} longer ones "
        "did: nothing on the way but a token bucket cuts them"
    )
    return tso, *_bucket(link, most, mtu, bps, cut, near=near)


def ticks(link: dict[str, Any] | None) -> tuple[Finding, ...]:
    """Whether the senders are on one machine, whose ticks all their timers follow; nothing where that is not clear.

    Parameters
    ----------
    link : dict or None
        Of :attr:`fanin.TrainsResult.links`: ``ticks`` has ``moments``, ``senders``, ``together`` and ``hz``.

    Returns
    -------
    tuple of Finding
        ``stack.common_ticks``, and ``stack.hz`` where it is not the usual one.

    Examples
    --------
    >>> [(f.key, f.value) for f in ticks({"ticks": {"moments": 106, "senders": 12, "together": 12, "hz": 1000}})]
    [('stack.common_ticks', 'true'), ('stack.hz', '1000')]
    >>> ticks({"ticks": {"moments": 40, "senders": 8, "together": 0, "hz": None}})
    ()
    """
    hz = link["ticks"]["hz"] if link is not None else None
    if link is None or hz is None:
        return ()
    seen = link["ticks"]
    shared = Finding(
        "stack.common_ticks",
        "true",
        "measured",
        f"after silence {seen['together']} of {seen['senders']} senders sent again in the same tenth of {1e3 / hz:.3g} ms ({seen['moments']} times in "
        "all): they are namespaces, containers or processes of one machine, whose ticks all their timers follow",
    )
    told = Finding("stack.hz", str(hz), "measured", f"the senders' timers go off {hz} times per second")
    return (shared,) if hz == USUAL_HZ else (shared, told)


def _bucket(link: dict[str, Any], most: int, mtu: int, bps: float, cut: str, *, near: bool) -> tuple[Finding, ...]:
    """What a token bucket counts, holds, and is late by, where it lets bursts of at most `most` segments through, for which `cut` speaks.

    Its tokens make up for what its timer is late by, but for those beyond what it holds. A burst of `most` segments leaves it little room, ``room`` of
    time: what it is late by beyond that is lost. Where that is exponentially distributed with the mean ``late``, ``late * exp(-room / late)`` is lost on
    average. This is what the packet after the burst is later by than others. It does not tell room and lateness apart: the room is taken to be small,
    unless packets are more uneven than such a lateness makes them.
    """
    rhythm, after = link["rhythm_ns"], link["after_burst_ns"]
    seen = near and rhythm is not None and link["share"] >= IN_STEP
    simulated = seen and abs(rhythm[0] * bps / 8e9 / mtu - 1.0) <= EXACT
    frame = mtu if simulated else mtu + HEADER
    lost = after[most - 1] if seen and most <= len(after) else None
    uneven = float(rhythm[1]) if seen else 0.0
    least = max(USUALLY_LOST if lost is None else lost, SHORTEST_LATE)
    room = frame / ROOM * 8e9 / bps
    late = max(room / _product_logarithm(room / least), uneven)
    size = min(most * frame + int(late * math.log(late / least) * bps / 8e9), (most + 1) * frame - 1)
    apart = (
        f", and {mtu}-byte packets that waited left it {rhythm[0] / 1e3:.1f} us one behind the other" if seen else ""
    )
    counted = Finding(
        "stack.frame_overhead",
        f"{HEADER}B",
        "measured" if seen else "assumed",
        f"a token bucket of tc counts the header of Ethernet{apart}",
    )
    holds = Finding("stack.tso_whole", f"{size}B", "measured", cut, f"{most * frame}B", f"{(most + 1) * frame - 1}B")
    timer = Finding(
        "stack.bucket_latency",
        f"{late / 1e3:.1f}us",
        "assumed" if lost is None else "measured",
        "the timer of a token bucket is late by some microseconds; the rhythm of what left it is not in the capture"
        if lost is None
        else f"packets that waited left it {uneven / 1e3:.1f} us unevenly on average, and those after a burst of {most} segments {lost / 1e3:.1f} us later "
        "than others: tokens are lost",
    )
    return (*(() if simulated else (counted,)), holds, timer)


def _product_logarithm(product: float) -> float:
    """The positive x with ``x * exp(x) == product``, by Newton's method from above.

    Examples
    --------
    >>> round(_product_logarithm(math.e), 12)
    1.0
    """
    x = math.log1p(product)
    for _ in range(10):
        x -= (x - product * math.exp(-x)) / (1.0 + x)
    return x


def _from_two(by_length: Sequence[int]) -> dict[int, int]:
    """Counts by length in segments. One segment is no burst."""
    return {length: n for length, n in enumerate(by_length, start=1) if length > 1 and n}


def _uncut(bursts: dict[int, int], whole: dict[int, int]) -> int | None:
    """The longest burst that crosses as one packet, where all shorter ones do and no longer one does; None where that is not so.

    A receiver that merges what arrived (GRO) has merged parts of longer ones, too.
    """
    if not whole:
        return None
    most = max(whole, key=lambda length: (whole[length] >= bursts[length] / 2, length))
    inside = [n for length, n in bursts.items() if length <= most]
    beyond = [n for length, n in bursts.items() if length > most]
    across = sum(n for length, n in whole.items() if length <= most)
    wrong = sum(n for length, n in whole.items() if length > most)
    clear = across >= (1 - CLEARLY) * sum(inside) and wrong <= CLEARLY * sum(beyond)
    return most if clear and min(sum(inside), sum(beyond)) >= FEWEST_BURSTS else None


def _follows_the_rate(bursts: dict[int, int], count: int) -> bool:
    """Nearly all short lengths occur."""
    found = sum(bursts.get(length, 0) >= max(1, OCCURS * count) for length in SHORT)
    return count >= FEWEST_OF_RATE and found >= len(SHORT) - 2


def _median(bursts: dict[int, int], count: int) -> int:
    seen = 0
    for length, n in bursts.items():
        seen += n
        if 2 * seen >= count:
            return length
    return max(bursts)
