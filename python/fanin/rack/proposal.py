"""What a capture says about the rack it was taken on, as a rack file to edit: each value with its evidence and how sure it is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fanin.capture.fitness import Fitness
from fanin.capture.vantage import needless
from fanin.errors import keywords
from fanin.rack.hosts import offload, ticks
from fanin.rack.queue import CLEAR, FEWEST_STRETCHES, UNCLEAR, Finding, Losses, as_bps, buffer, mark, waited
from fanin.runs.job import RunWarning
from fanin.words.text import duration, harmless, rate, significant, toml_string

if TYPE_CHECKING:
    import polars as pl

    from fanin.capture.traffic import QueueLimit, TrainsResult

STANDARD_RATES = tuple(r * 1e6 for r in (10, 100, 1e3, 2.5e3, 5e3, 1e4, 2.5e4, 4e4, 5e4, 1e5, 2e5, 4e5, 8e5))
"""Rates of Ethernet, bit/s."""

ROUND_RATES = tuple(n * 10**k for k in range(7, 12) for n in (1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0))
"""Rates that links are shaped to, bit/s."""

FEWEST_TRAINS = 20
"""With fewer trains of back-to-back packets their spacing says nothing."""

MOST_ABOVE = 30.0
"""How far above what passed the rate of a link is looked for: an incast fills one for a thirtieth of ten milliseconds."""

SPACED_ALIKE = 0.9
"""Share of all trains behind a queue that pass at one usual rate, from which their spacing alone is the link's: nothing else spaces packets alike."""

TRAINS_AGREE = 0.6
"""Share of all trains that pass at one rate, from which it is that of a shaped link."""

BUCKET_BEGINS = 0.8
"""Of the rate of a train of eight packets what a shaper's rate is at least: its token bucket lets the first packets through at the line's rate."""

SENDERS_AGREE = 0.4
"""Share of the trains of single connections that pass at one rate, from which it is that of their links."""

MEASURED = 2.5
"""How many times as many packets of two servers stand as far apart as the link lets them as stand near that, from which on its rate is measured: within
a tenth on all of 80 racks in real time and in captures of services in 33 kinds of software."""

BONDED = 2.5
"""How much faster than its servers' the aggregator's link is presumed to be at most: two bonded ports, or the next rate of Ethernet's."""

STEP = 1.15
"""Between two neighbours of the rates that are tried lies at most a third: half of that, in either direction, is not known."""

LATE = 0.85
"""A link is at least this share of what was seen to pass it in ten milliseconds: stamps and stalled hosts move what passed from one interval to
another."""


@dataclass(frozen=True, slots=True)
class RackProposal:
    """A rack file proposed from a capture.

    Attributes
    ----------
    findings : tuple of Finding
        One per value.
    warnings : tuple of RunWarning
        What makes an answer with this rack doubtful; a comparison repeats them.
    command : str
        The command that makes it again.
    capture : str
        The name of the capture's file.
    fitness : Fitness or None
        Whether the capture is fit to judge by; None where there is none.
    notes : tuple of str
        What else the capture says about hosts and path.
    """

    findings: tuple[Finding, ...]
    warnings: tuple[RunWarning, ...] = ()
    command: str = ""
    capture: str = ""
    fitness: Fitness | None = None
    notes: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The file."""
        return _file(self)

    def __repr__(self) -> str:
        told = ", ".join(f"{f.key} {f.value or 'none'} ({f.certainty})" for f in self.findings)
        return f"<RackProposal: {told}>"

    def _repr_html_(self) -> str:
        """For notebooks: each value with its evidence."""
        from fanin.pictures.notebook import card

        rows = [(f.key, f.value, f.certainty, f.evidence) for f in self.findings]
        return card(f"Rack proposed by {self.command}", ["key", "value", "certainty", "evidence"], rows)

    def to_dict(self) -> dict[str, Any]:
        """The object that ``fanin rack --json`` prints (schema: docs/json/rack.schema.json)."""
        from fanin import __version__

        return {
            "version": __version__,
            "command": self.command,
            "findings": [finding.to_dict() for finding in self.findings],
            "fitness": self.fitness.to_dict() if self.fitness else None,
            "warnings": list(self.warnings),
            "notes": list(self.notes),
            "text": self.text,
        }


@keywords
def propose_rack(capture: str | Path, *, aggregator: str | None = None, command: str | None = None) -> RackProposal:
    """Propose a rack file from a capture.

    Parameters
    ----------
    capture : path
        pcap or pcapng, plain or gzip.
    aggregator : str, optional
        Address of the host that the responses go to; the likeliest unless given.
    command : str, optional
        What to state as the command that does the same.

    Returns
    -------
    RackProposal

    Raises
    ------
    fanin.CaptureError
        When the capture cannot be used.

    Examples
    --------
    >>> import fanin
    >>> proposal = fanin.propose_rack("data/captures/http_onoff_8to1.pcap.gz")
    >>> [(f.key, f.certainty) for f in proposal.findings][0]
    ('rack.rate', 'measured')
    """
    from fanin.capture.traffic import trains

    found = trains(capture)
    return proposed(found, found.workload(aggregator).aggregator, command or f"fanin rack {capture}")


def proposed(found: TrainsResult, aggregator: str, command: str) -> RackProposal:
    """The rack that one capture's traffic to one host speaks for."""
    towards = found.towards(aggregator)
    link = next((link for link in found.links if link["receiver"] == aggregator), None)
    near = bool(found.behind_the_queue(aggregator))
    bps, the_rate = _rate(link, aggregator, near=near)
    if near and link is not None and the_rate.certainty != "measured":
        bps, the_rate = _by_pairs(link, bps, the_rate)
    losses = None if near or link is None else Losses(lambda rate: found.queue_limit(aggregator, rate))
    if losses is not None and link is not None:
        if the_rate.certainty == "measured" and bps not in STANDARD_RATES:
            # Before a queue packets follow each other as they arrive, not as the link takes them.
            ends = _at_least(0.9 * bps), _rate_text(float(f"{BONDED * bps:.2g}"))
            the_rate = replace(the_rate, certainty="bounded", low=ends[0], high=ends[1])
        bps, the_rate = _by_senders(link, bps, the_rate)
        bps, the_rate = _by_losses(losses, bps, the_rate)
    queue = (
        buffer(towards, link, losses, the_rate, bps)
        if losses
        else waited(towards, found.queued_before(aggregator), the_rate, bps)
    )
    findings = as_fit((the_rate, _delay(towards), queue, mark(towards, bps, queue)), found.fitness)
    if found.fitness.lacks("rack") is None:
        findings += (*offload(link, _mtu(towards), bps, near=near), *ticks(link))
    warnings = tuple(_warnings(towards, findings))
    notes = (*_notes(towards, findings), *needless(found, aggregator))
    return RackProposal(findings, warnings, command, Path(found.summary["file"]).name, found.fitness, notes)


def as_fit(findings: tuple[Finding, ...], fitness: Fitness) -> tuple[Finding, ...]:
    """Nothing of a capture that is not fit for it is measured: its clock, its order or its packets are not those of the wire."""
    why = fitness.lacks("rack")
    if why is None:
        return findings
    kinds = ", ".join(
        dict.fromkeys(reason.kind.replace("-", " ") for reason in fitness.reasons if "rack" in reason.lacks)
    )
    return tuple(
        replace(
            finding, certainty="assumed", evidence=f"the capture is not fit to tell it ({kinds}); {finding.evidence}"
        )
        for finding in findings
    )


def _rate(link: dict[str, Any] | None, aggregator: str, *, near: bool = False) -> tuple[float, Finding]:
    """The rate of the link to the aggregator, bit/s and as a finding; `near`: the tap is behind its queue."""
    if link is None:
        return 1e9, Finding("rack.rate", "1Gbps", "assumed", "no data packet to the aggregator is in the capture")
    # What arrives at a tap before the queue may be more than the link takes; what is acknowledged since it was sent is not.
    passed = [
        (float(link["busiest_bps"]), "passed in ten milliseconds"),
        (float(link["delivered_bps"]), "was sent and acknowledged in ten milliseconds or more"),
    ]
    busiest, how = min(pair for pair in passed if pair[0] > 0)
    found = link["rate_bps"]
    enough = link["samples"] >= FEWEST_TRAINS and found is not None
    trains = (
        f"{link['share']:.0%} of {link['samples']:,} trains of 8 packets to {aggregator} passed at {rate(found)}"
        if enough
        else ""
    )
    # Batches that a host stamps at once look faster than any link; what really passed in ten milliseconds does not. Of a service whose requests
    # are shorter than that little passes, and its packets' spacing is believed where it is the same throughout.
    alike = (
        near and link["share"] >= SPACED_ALIKE and found is not None and _told(found) in {*STANDARD_RATES, *ROUND_RATES}
    )
    if found is not None and enough and 0.8 * busiest <= found and (alike or found <= 2 * busiest):
        return _by_trains(link, found, busiest, f"{trains}; at most {rate(busiest)} {how}")
    if near and found is not None and enough and link["share"] >= TRAINS_AGREE and found > busiest:
        # Hosts that stamp batches space packets each in its own way; most trains alike are the link's, or a token bucket's begun at the line's rate.
        bps = _told(found)
        return bps, Finding(
            "rack.rate",
            _rate_text(bps),
            "bounded",
            f"{trains}, though at most {rate(busiest)} {how}",
            _rate_text(float(f"{max(LATE * busiest, BUCKET_BEGINS * found):.2g}")),
            _rate_text(float(f"{max(link['quartiles_bps'][1], bps):.2g}")),
        )
    bps = _standard(busiest)
    why = (
        "segments were merged by an offload before the tap, so their spacing says nothing"
        if link["merged_packets"] > link["samples"]
        else "there are too few back-to-back packets to tell the rate by their spacing"
    )
    return bps, Finding(
        "rack.rate",
        _rate_text(bps),
        "bounded",
        f"{why}; at most {rate(busiest)} {how}",
        _at_least(busiest),
    )


def _by_trains(link: dict[str, Any], found: float, busiest: float, evidence: str) -> tuple[float, Finding]:
    """The rate that the spacing of trains tells, `found`, where what passed, `busiest`, agrees with it."""
    strong = link["share"] >= 0.4 or _told(found) == _told(busiest) in STANDARD_RATES
    # A tap before the queue sees how packets arrive: unless most trains agree, a rate between two of Ethernet's is no shaper's.
    bps = _told(found) if strong else _standard(found)
    if not strong:
        return bps, Finding("rack.rate", _rate_text(bps), "bounded", evidence, _at_least(busiest))
    low, high = (_told(quartile) for quartile in link["quartiles_bps"])
    low, high = min(bps, low), max(bps, high)
    if bps not in STANDARD_RATES and (link["share"] < TRAINS_AGREE or high > 1.5 * low):
        # Busy hosts space their packets too, and no two of them alike: what passed is one side of the rate.
        most = _rate_text(float(f"{max(high, BONDED * bps):.2g}"))
        return bps, Finding("rack.rate", _rate_text(bps), "bounded", evidence, _at_least(busiest), most)
    ends = (_rate_text(low), _rate_text(high)) if low != high else (None, None)
    return bps, Finding("rack.rate", _rate_text(bps), "measured", evidence, *ends)


def _by_pairs(link: dict[str, Any], bps: float, the_rate: Finding) -> tuple[float, Finding]:
    """What the packets of two servers show behind the queue: both waited for the same link. On a busy one hosts keep whole trains from being alike."""
    pairs = link["pairs"]
    if pairs is None:
        return bps, the_rate
    found = float(pairs["rate_bps"])
    told = _shaped(found)
    return told, Finding(
        "rack.rate",
        _rate_text(told),
        "measured" if pairs["height"] >= MEASURED else "bounded",
        f"{pairs['count']:,} packets came as far behind one of another server as a link of {rate(found)} lets them, {pairs['height']:.1f} times as many "
        f"as at distances near that; {the_rate.evidence}",
        *(_rate_text(float(f"{end:.2g}")) for end in (LATE * min(found, told), 1.1 * max(found, told))),
    )


def _by_senders(link: dict[str, Any], bps: float, the_rate: Finding) -> tuple[float, Finding]:
    """What a tap before the queue shows: the rate of the servers' links. The aggregator's is taken to be like them, and what passed it bounds it."""
    found, share, samples = link["sender_rate_bps"], link["sender_share"], link["sender_samples"]
    passed = min(float(rate) for rate in (link["busiest_bps"], link["delivered_bps"]) if rate > 0)
    # Senders that wait for acknowledgements, or pace, share what passes: each is slower than all together.
    if (
        found is None
        or samples < FEWEST_TRAINS
        or share < SENDERS_AGREE
        or not 0.8 * passed <= found <= MOST_ABOVE * passed
    ):
        return bps, the_rate
    told = _shaped(found)
    return told, Finding(
        "rack.rate",
        _rate_text(told),
        "bounded",
        f"{share:.0%} of {samples:,} trains of 8 packets of one connection passed at {rate(found)}, as the servers' links or shapers let them "
        f"through, and the link to {link['receiver']} is taken to be like them; it let {rate(passed)} through in ten milliseconds",
        _at_least(passed),
        _rate_text(float(f"{BONDED * told:.2g}")),
    )


def _shaped(bps: float) -> float:
    """The rate that trains stand for: Ethernet's or a round one where it is near, else itself with two digits.

    A token bucket lets a burst through at the line's rate first, so a train of eight packets looks up to a tenth faster than its rate.

    Examples
    --------
    >>> _shaped(525e6), _shaped(951e6), _shaped(340e6)
    (500000000.0, 1000000000.0, 340000000.0)
    """
    near = min((*STANDARD_RATES, *ROUND_RATES), key=lambda r: abs(math.log(bps / r)))
    return near if abs(math.log(bps / near)) <= math.log(1.1) else float(f"{bps:.1e}")


def _by_losses(losses: Losses, bps: float, the_rate: Finding) -> tuple[float, Finding]:
    """The rate at which a queue explains what was dropped, where the spacing of packets does not tell it or tells another."""
    told = losses.at(bps)
    enough = UNCLEAR if bps in STANDARD_RATES else CLEAR
    if told is None or told.losses == 0 or (the_rate.certainty == "measured" and told.amiss <= enough):
        return bps, the_rate
    least = bps if the_rate.low is None else as_bps(the_rate.low)
    span = [r for r in sorted({*STANDARD_RATES, *ROUND_RATES, bps}) if LATE * least <= r <= MOST_ABOVE * least]
    likely = losses.likely(span, bps)
    if likely and likely[0] <= bps <= likely[-1] and the_rate.certainty == "bounded" and the_rate.high is not None:
        return _by_both(losses, told, likely, bps, the_rate)

    def best_of(rates: Sequence[float]) -> float | None:
        near = [r for r in rates if LATE * least <= r <= MOST_ABOVE * least]
        return losses.best([bps, *(r for r in near if r != bps)])

    best, of = best_of(STANDARD_RATES), "Ethernet's"
    other = losses.likely(span, best) if best is not None else []
    if other and min(other, key=losses.amiss) != best:
        # A shaper's rate explains it better than Ethernet's.
        best, likely = None, other
    elif best is None:
        best, of = best_of(ROUND_RATES), "round"
    if best is None and likely and told.epochs >= FEWEST_STRETCHES:
        # Several explain it: the range is what is known.
        middle = min(likely, key=lambda r: losses.amiss(r))
        ethernet = next((r for r in likely if r in STANDARD_RATES), middle)
        return ethernet, Finding(
            "rack.rate",
            _rate_text(ethernet),
            "bounded",
            f"{the_rate.evidence}; only at {rate(likely[0])} to {rate(likely[-1])} does a queue explain which of {told.losses:,} lost packets were dropped",
            _rate_text(float(f"{max(likely[0] / STEP, LATE * least):.2g}")),
            _rate_text(float(f"{likely[-1] * STEP:.2g}")),
        )
    if best is None:
        return bps, the_rate
    return best, Finding(
        "rack.rate",
        _rate_text(best),
        "measured",
        f"of {of} rates from {rate(least)} up, only at this one does a queue explain which of {told.losses:,} lost packets were dropped and "
        "which others were not",
        *(() if best in STANDARD_RATES else (_rate_text(float(f"{share * best:.2g}")) for share in (0.93, 1.07))),
    )


def _by_both(
    losses: Losses, told: QueueLimit, likely: Sequence[float], bps: float, the_rate: Finding
) -> tuple[float, Finding]:
    """The rate where two know nothing of each other: how the servers' packets follow each other, and which packets were dropped."""
    likeliest = min(likely, key=losses.amiss)
    agreed = max(likeliest / bps, bps / likeliest) <= STEP
    sure = agreed and told.epochs >= FEWEST_STRETCHES
    # Servers without a shaper follow acknowledgements, and share what the link lets through.
    value = bps if agreed and bps in (*STANDARD_RATES, *ROUND_RATES) else likeliest
    low, high = (
        (0.9 * min(bps, likeliest), 1.1 * max(bps, likeliest)) if sure else (likely[0] / STEP, likely[-1] * STEP)
    )
    return value, replace(
        the_rate,
        value=_rate_text(value),
        certainty="measured" if sure else "bounded",
        evidence=f"{the_rate.evidence}; at {rate(likely[0])} to {rate(likely[-1])} a queue explains which of {told.losses:,} lost packets were dropped",
        low=_rate_text(float(f"{low:.2g}")),
        high=_rate_text(float(f"{high:.2g}")),
    )


def _at_least(busiest: float) -> str:
    """What a rate that was seen to pass says of the link: no less than that, but for late stamps."""
    return _rate_text(float(f"{LATE * busiest:.1e}"))


def _standard(bps: float) -> float:
    """The Ethernet rate that a lower bound stands for: the least that is not much below it."""
    return next((r for r in STANDARD_RATES if r >= bps * LATE), bps)


def _told(bps: float) -> float:
    """The rate that a measured one stands for: Ethernet's where it is near, else itself with two digits, as of a shaped link.

    Examples
    --------
    >>> _told(999e6), _told(1.1e9), _told(195e6)
    (1000000000.0, 1000000000.0, 200000000.0)
    """
    near = next((r for r in STANDARD_RATES if 0.85 * r <= bps <= 1.25 * r), None)
    return near if near is not None else float(f"{bps:.1e}")


def _rate_text(bps: float) -> str:
    return f"{bps / 1e9:g}Gbps" if bps >= 1e9 else f"{bps / 1e6:g}Mbps"


def _delay(towards: pl.DataFrame) -> Finding:
    handshakes, others = (towards[name].filter(towards[name] > 0).sort() for name in ("handshake_rtt_ns", "min_rtt_ns"))
    told = handshakes if handshakes.len() else others
    if not told.len():
        return Finding("rack.delay", "25us", "assumed", "no handshake and no acknowledgement of data is in the capture")
    shortest = min(times[0] for times in (handshakes, others) if times.len())
    usual = told[told.len() // 2]
    seen = f"of {handshakes.len()} handshakes" if handshakes.len() else "of acknowledged data"
    return Finding(
        "rack.delay",
        _delay_text(shortest),
        "measured",
        f"a quarter of the shortest round trip, {duration(shortest / 1e6)} ({seen}, median {duration(usual / 1e6)}); hosts' own time is in it",
        None,
        _delay_text(usual) if usual > 1.2 * shortest else None,
    )


def _mtu(towards: pl.DataFrame) -> int:
    """Bytes of a full packet: the largest segment that was announced, and 40 for its headers; Ethernet's where no handshake is in the capture."""
    announced = max(_most(towards, "mss_of_client"), _most(towards, "mss_of_server"))
    return 40 + (announced or 1460)


def _most(rows: pl.DataFrame, column: str) -> int:
    """The largest value of a column, zero without rows."""
    most = rows[column].max()
    return most if isinstance(most, int) else 0


def _delay_text(rtt_ns: float) -> str:
    """One link's delay, two digits."""
    us = rtt_ns / 4e3
    return f"{significant(us, 2).replace(',', '')}us"


def _notes(towards: pl.DataFrame, findings: tuple[Finding, ...]) -> list[str]:
    told = []
    opened = towards.filter("handshake_seen")
    if opened.height:
        for option, what in (("both_sack", "SACK"), ("both_stamp", "time stamps")):
            both = int(opened[option].sum())
            if both < opened.height:
                told.append(
                    f"{what}: agreed on by {both} of {opened.height} connections, where the profile `linux` always has it"
                )
        unscaled = opened.height - int(opened["both_scale"].sum())
        if unscaled:
            told.append(
                f"window scaling: missing on {unscaled} of {opened.height} connections, whose windows end at 64 KiB"
            )
        size = _most(opened, "mss_of_client")
        if size > 1460:
            told.append(f"MSS {size}: frames larger than Ethernet's 1500 bytes; set `stack.mss`")
    else:
        told.append("no handshake is in the capture: SACK, time stamps and window scaling of the hosts are not known")
    if sum(f.certainty == "assumed" and f.key.startswith("rack.") for f in findings) >= 2:
        told.append(
            "half of this file is assumed: correct it before acting on an answer that rests on it, or try others with --vary"
        )
    return told


GUESSED_RATE = "rack-rate-guessed"
"""The warning that the capture does not show the link's rate."""


def _warnings(towards: pl.DataFrame, findings: tuple[Finding, ...]) -> list[RunWarning]:
    told = []
    speed = next(f for f in findings if f.key == "rack.rate")
    if speed.certainty != "measured":
        told.append(RunWarning(unsure_of_the_rate(speed), GUESSED_RATE))
    rtt = towards["handshake_rtt_ns"].replace(0, None).min()
    if isinstance(rtt, int) and rtt > 2e6:
        told.append(
            RunWarning(
                f"the shortest round trip is {duration(rtt / 1e6)}: this capture crossed a WAN or a slow host, and a rack of one switch is no "
                "model of that",
                "long-round-trip",
            )
        )
    return told


def unsure_of_the_rate(speed: Finding) -> str:
    """What to do about a rate that the capture does not show, or not exactly."""
    if (roughly := _roughly(speed)) is not None:
        return f"{roughly}. {_ask_for_the_rate(speed)}"
    seen = f", only that it is {speed.low} or more" if speed.low is not None else ""
    return f"the rate of the link to the aggregator is a guess ({speed.value}): the capture does not show it{seen}. {_ask_for_the_rate(speed)}"


def calibrated_rate(speed: Finding, rate: str) -> str:
    """What a rate that the capture does not show, or not exactly, is, once replays have found one."""
    seen = _roughly(speed) or "the capture does not show the rate of the link to the aggregator"
    return f"{seen}: {rate} is what gives the times that were measured. {_ask_for_the_rate(speed)}"


def _roughly(speed: Finding) -> str | None:
    """What the capture shows of a rate that is known within a factor of two."""
    if speed.low is None or speed.high is None or as_bps(speed.high) > 2 * as_bps(speed.low):
        return None
    return f"the capture shows the rate of the link to the aggregator roughly, from {speed.low} to {speed.high}"


def _ask_for_the_rate(speed: Finding) -> str:
    return f"Ask the switch for the rate of that port, capture behind it, or try others with `fanin compare --vary rate={_others(speed)}`"


TENFOLD = {"100Mbps": "1Gbps", "1Gbps": "10Gbps", "10Gbps": "100Gbps"}
"""The next rate of most Ethernets."""


def _others(speed: Finding) -> str:
    """Rates to try in place of a guess: what the capture bounds it by, the guess, and Ethernet's tenfold where it is not known roughly."""
    value = speed.value or "1Gbps"
    above = speed.high if _roughly(speed) and speed.high else TENFOLD.get(value, "10Gbps")
    return ",".join(dict.fromkeys([*([speed.low] if speed.low else []), value, above]))


def in_short(proposal: RackProposal) -> str:
    """The values of a proposal, for a sentence."""
    return ", ".join(
        f"{f.key.removeprefix('rack.')} {f.value if f.value is not None else 'none'}"
        for f in proposal.findings
        if f.key.startswith("rack.")
    )


def _file(proposal: RackProposal) -> str:
    name = _comment(proposal.capture)
    lines = [
        *([f"# {name}: {_comment(proposal.fitness.sentence)}"] if proposal.fitness else []),
        f"# The rack of {name}, proposed by `{_comment(proposal.command)}`. Each value has its evidence;",
        "# correct what you know better.",
        *(f"# {_comment(sentence)}." for sentence in (*proposal.warnings, *proposal.notes)),
        "",
    ]
    sections: dict[str, list[str]] = {"rack": [], "hosts": [], "stack": ['profile = "linux"']}
    for finding in proposal.findings:
        section, _, name = finding.key.partition(".")
        between = {
            (True, True): f", probably {finding.low} to {finding.high}",
            (True, False): f", at least {finding.low}",
            (False, True): f", at most {finding.high}",
            (False, False): "",
        }[finding.low is not None, finding.high is not None]
        value = _toml(finding.value or "20p")
        sections[section] += [
            f"# {finding.certainty}{between}: {_comment(finding.evidence)}.",
            f"{name} = {value}" if finding.value is not None else f"# {name} = {value}",
            "",
        ]
    for section, said in sections.items():
        lines += [f"[{section}]", *said, *([""] if said[-1] else [])] if said else []
    return "\n".join(lines)


def _toml(value: str) -> str:
    """A value of TOML: truth and numbers stand as they are, quantities are text."""
    return value if value == "true" or value.isdigit() else toml_string(value)


def _comment(text: str) -> str:
    """Text that cannot end the line it stands on; TOML has no controls in comments."""
    return harmless(" ".join(text.split()))
