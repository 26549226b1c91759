"""The values that a capture leaves open, and the order among them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from fanin import _native
from fanin.rack.queue import FULL
from fanin.settings.declared import packets

if TYPE_CHECKING:
    from fanin.rack.proposal import RackProposal
    from fanin.rack.queue import Finding

BUFFERS = 6
"""So many sizes of a buffer are tried at first, evenly by their logarithm; three doublings of 16 to 512 packets are 1.7 apart then."""

NARROW = 1.15
"""A range whose ends are within this factor is one value."""

RATES = (*(float(f"{n}e{k}") for k in range(7, 12) for n in (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0)), 2.5e9, 2.5e10)
"""Rates that links have or are shaped to, bit/s."""

FASTEST = 12.0
"""A link whose rate is bounded from below alone is tried up to so many times the bound: beyond, an incast is spread by the hosts."""

SPARSE = 1.5
"""Rates are tried at first in steps of at least this factor; those between are tried next to what fits."""


class _Between:
    """Order and middle of values of a key: buffers in packets, rates in bit/s. Anything else has no middle."""

    def position(self, key: str, value: str) -> float:
        """For sorting."""
        if key.endswith("buffer"):
            return packets(value) or 0.0
        if key.endswith("rate"):
            return _native.quantity("rate", value, key)
        return float(value in ("true", "on"))

    def middle(self, key: str, one: str, other: str) -> str | None:
        """The geometric mean of two buffers, or the rate of links that is nearest to that of two rates; None where nothing lies between.

        Examples
        --------
        >>> between.middle("rack.buffer", "40p", "90p"), between.middle("rack.buffer", "40p", "41p")
        ('60p', None)
        >>> between.middle("rack.rate", "300Mbps", "1Gbps"), between.middle("rack.rate", "800Mbps", "1Gbps")
        ('600Mbps', None)
        """
        low, high = sorted((self.position(key, one), self.position(key, other)))
        if low <= 0 or high / low < NARROW:
            return None
        mean = math.sqrt(low * high)
        if key.endswith("buffer"):
            return f"{round(mean)}p"
        if key.endswith("rate"):
            inside = [bps for bps in RATES if low * 1.01 < bps < high * 0.99]
            nearest = min(inside, key=lambda bps: abs(math.log(bps / mean)), default=None)
            return None if nearest is None else rate_text(nearest)
        return None


between = _Between()


def open_values(proposal: RackProposal) -> dict[str, list[str]]:
    """What a proposed rack leaves open, as values to try by key, ascending.

    A buffer that was not measured is tried at :data:`BUFFERS` sizes of its range, a rate that was not measured at :data:`RATES` of its range.
    What was measured, or has a narrow range, is not tried.

    Examples
    --------
    >>> from fanin.rack.proposal import RackProposal
    >>> from fanin.rack.queue import Finding
    >>> speed = Finding("rack.rate", "1Gbps", "measured", "")
    >>> open_values(RackProposal((speed, Finding("rack.buffer", "100p", "assumed", "", "16p", "512p"))))
    {'rack.buffer': ['16p', '32p', '64p', '128p', '256p', '512p']}
    >>> open_values(RackProposal((speed, Finding("rack.buffer", "40p", "measured", "", "39p"))))
    {}
    >>> open_values(RackProposal((Finding("rack.rate", "1Gbps", "bounded", "", "290Mbps"),)))
    {'rack.rate': ['300Mbps', '500Mbps', '800Mbps', '1Gbps', '1.5Gbps', '2.5Gbps']}
    >>> open_values(RackProposal((Finding("rack.rate", "240Mbps", "bounded", "", "190Mbps", "240Mbps"),)))
    {'rack.rate': ['190Mbps', '240Mbps']}
    """
    tries = {"rack.rate": _rates, "rack.buffer": _sizes}
    open_ones = [f for f in proposal.findings if f.key in tries and f.value and f.certainty != "measured"]
    found = {finding.key: tries[finding.key](finding) for finding in open_ones}
    return {key: values for key, values in found.items() if len(values) > 1}


def told_values(proposal: RackProposal) -> dict[str, str]:
    """Of what is open, the values that packets of the capture tell, though not for certain: a rate with a bound on either side. Any other is a guess.

    Examples
    --------
    >>> from fanin.rack.proposal import RackProposal
    >>> from fanin.rack.queue import Finding
    >>> told_values(RackProposal((Finding("rack.rate", "300Mbps", "bounded", "", "150Mbps", "750Mbps"),)))
    {'rack.rate': '300Mbps'}
    >>> told_values(RackProposal((Finding("rack.rate", "1Gbps", "bounded", "", "290Mbps"),)))
    {}
    """
    return {
        f.key: f.value
        for f in proposal.findings
        if f.key == "rack.rate" and f.certainty == "bounded" and f.value and f.low and f.high
    }


OFFLOAD = "hosts.tso"
"""Hosts hand their network cards bursts (segmentation offload), as Linux does unless told otherwise. Answers of one write that is sent within a window
or two show no end of a burst, so that a capture of these cannot tell."""

JITTER = "stack.send_jitter"
"""Random time that a host takes for each packet, up to this."""


def packet_time(proposal: RackProposal) -> list[str]:
    """A full packet's time on the link to the aggregator, as a value of :data:`JITTER`; nothing where the rate is not known.

    Hosts that take no random time keep in step, and a full queue then drops the same senders' packets again and again, hardly ever a last one alone, which
    a timeout repairs. Up to a packet's time at the bottleneck removes that (Floyd and Jacobson, "Traffic phase effects in packet-switched gateways", 1991).

    Examples
    --------
    >>> from fanin.rack.proposal import RackProposal
    >>> from fanin.rack.queue import Finding
    >>> of = lambda rate: packet_time(RackProposal((Finding("rack.rate", rate, "measured", ""),)))
    >>> of("200Mbps"), of("10Mbps"), of("10Gbps")
    (['61us'], ['1211us'], ['1.2us'])
    """
    told = next((f.value for f in proposal.findings if f.key == "rack.rate" and f.value), None)
    if told is None:
        return []
    microseconds = FULL * 8e6 / between.position("rack.rate", told)
    return [f"{microseconds:.{0 if microseconds >= 10 else 1}f}us"]


WIDER_RATES = (0.6, 0.75, 0.9)
"""Shares of a link's rate that busy hosts, or a token bucket whose timer is late, leave of it."""

WIDER_BUFFERS = (0.5, 0.8, 1.2, 2.0)
"""Factors of a buffer: a queue of packets holds up to twice as much where offload hands it two segments as one packet."""


def wider_values(proposal: RackProposal) -> dict[str, list[str]]:
    """What to try where no value that the capture allows reproduces it: the rate and buffer that are in effect under load.

    A link whose packets were seen at its full rate is slower over milliseconds where hosts are busy, and a queue whose limit is in packets holds
    more bytes where offload merges segments.

    Examples
    --------
    >>> from fanin.rack.proposal import RackProposal
    >>> from fanin.rack.queue import Finding
    >>> measured = (Finding("rack.rate", "500Mbps", "measured", ""), Finding("rack.buffer", "60p", "measured", ""))
    >>> wider_values(RackProposal(measured))
    {'rack.rate': ['300Mbps', '380Mbps', '450Mbps'], 'rack.buffer': ['30p', '48p', '72p', '120p']}
    """
    found: dict[str, list[str]] = {}
    for finding in proposal.findings:
        if finding.key == "rack.rate" and finding.value:
            told = between.position(finding.key, finding.value)
            found[finding.key] = [rate_text(float(f"{share * told:.2g}")) for share in WIDER_RATES]
        elif finding.key == "rack.buffer" and finding.value:
            ends = [between.position(finding.key, end) for end in (finding.low, finding.value, finding.high) if end]
            sizes = [factor * ends[len(ends) // 2] for factor in WIDER_BUFFERS]
            found[finding.key] = list(dict.fromkeys(f"{max(1, round(size))}p" for size in sizes))
    return found


def _rates(finding: Finding) -> list[str]:
    """Rates of links from the lower bound to the upper one, or to what an incast could still fill, and the proposed one."""
    told = between.position(finding.key, str(finding.value))
    low = between.position(finding.key, finding.low) if finding.low else told
    high = between.position(finding.key, finding.high) if finding.high else FASTEST * low
    chosen: list[float] = []
    for bps in sorted(RATES):
        near_told = max(bps / told, told / bps) < math.sqrt(SPARSE)
        if low * 0.99 <= bps <= high * 1.01 and not near_told and (not chosen or bps > SPARSE * chosen[-1] * 0.99):
            chosen.append(bps)
    if not chosen:
        # Between the proposed one and an end that is not near there may be others.
        chosen = [end for end in (low, high) if max(end / told, told / end) >= NARROW]
    return [rate_text(bps) for bps in sorted({*chosen, told})]


def _sizes(finding: Finding) -> list[str]:
    """Sizes of the range, evenly by their logarithm."""
    told = between.position(finding.key, str(finding.value))
    low = between.position(finding.key, finding.low) if finding.low else told
    high = between.position(finding.key, finding.high) if finding.high else told
    low, high = max(min(low, told), 1.0), max(high, told, 1.0)
    if high / low < NARROW:
        return [str(finding.value)]
    steps = (high / low) ** (1 / (BUFFERS - 1))
    return list(dict.fromkeys(f"{round(low * steps**n)}p" for n in range(BUFFERS)))


def rate_text(bps: float) -> str:
    """A rate as a rack file has it.

    >>> rate_text(2.5e9), rate_text(3e8)
    ('2.5Gbps', '300Mbps')
    """
    return f"{bps / 1e9:g}Gbps" if bps >= 1e9 else f"{bps / 1e6:g}Mbps"
