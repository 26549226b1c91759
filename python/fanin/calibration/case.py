"""A case: a capture's traffic, the current setting, and the racks on which its replay is what the capture shows.

Every command that concludes something from a capture begins here, so that all of them rest on the same racks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from fanin.calibration.observed import FEWEST
from fanin.calibration.replayed import Measure, calibrated, shown_by
from fanin.calibration.search import MANY_PACKETS, MOST_RACKS, Calibration, Fit, most_racks
from fanin.calibration.space import JITTER, OFFLOAD, between, open_values, packet_time, told_values, wider_values
from fanin.capture.measured import durations, measured, waited
from fanin.process.progress import Progress, silent
from fanin.rack.proposal import GUESSED_RATE, RackProposal, calibrated_rate
from fanin.rack.queue import FULL, Finding
from fanin.runs.job import RunWarning
from fanin.words.text import duration, enumeration

if TYPE_CHECKING:
    from fanin.capture.traffic import TrainsResult
    from fanin.runs.job import Settings
    from fanin.runs.replay import ReplayJob
    from fanin.runs.store import Store
    from fanin.statistics.ranking import RankOf


@dataclass(frozen=True, slots=True)
class Calibrated:
    """What a capture and its replay under the current setting say about the rack.

    Attributes
    ----------
    calibration : Calibration
        The racks that were tried, and those that fit.
    widened : bool
        No value that the rack file, or the capture, allows reproduces it: rate and buffer in effect under load were tried.
    """

    calibration: Calibration
    widened: bool

    @property
    def reproduced(self) -> bool:
        """Some rack reproduces the capture."""
        return self.calibration.reproduced

    def racks(self) -> tuple[Settings, ...]:
        """Settings of the racks that stand for the set, the likeliest first; empty where none fits."""
        return tuple(fit.settings for fit in self.calibration.kept())

    def shares(self) -> dict[Settings, float]:
        """How likely each of these racks is."""
        return self.calibration.shares()

    def to_dict(self) -> dict[str, Any]:
        """As it stands in JSON."""
        return {**self.calibration.to_dict(), "widened": self.widened}

    def notes(self) -> list[str]:
        """That no more racks could be tried, where that is so."""
        most, tried = self.calibration.most, len(self.calibration.tried)
        if most == MOST_RACKS or tried < most:
            return []
        many = f"the capture has more than {MANY_PACKETS // 1_000_000} million packets"
        return [
            f"{tried} racks were tried, where {MOST_RACKS} may be, since {many}: a shorter part of it can tell more of the rack"
        ]

    def sentence(self) -> str:
        """What was found, for print."""
        found = self.calibration
        if not found.reproduced:
            return nothing_fits(found)
        if not found.values:
            return "replayed on this rack the current setting gives what the capture measured"
        ends = enumeration([_range(key, *pair) for key, pair in found.ranges().items()])
        those = f"{ends} {'give' if len(found.fits) > 1 else 'gives'} what the capture measured ({len(found.tried)} racks tried)"
        if self.widened:
            return f"under load the rack is another than its nominal values say: {those}; busy hosts and shapers take a part of a link"
        return f"replayed under the current setting, {those}"


def left_open(found: Calibration) -> tuple[str, str] | None:
    """What the capture leaves open of the rack, and between which values; None where that is nothing.

    Examples
    --------
    >>> class Found:
    ...     def ranges(self):
    ...         return {"rack.buffer": ("54p", "76p"), "rack.rate": ("1Gbps", "1Gbps"), "rack.delay": ("5us", "8us")}
    >>> left_open(Found())
    ('the buffer and the delay', '54 to 76 packets and 5us to 8us')
    """
    pairs = {key: pair for key, pair in found.ranges().items() if pair[0] != pair[1]}
    if not pairs:
        return None
    names = enumeration([f"the {key.removeprefix('rack.')}" for key in pairs])
    return names, enumeration([_between(low, high) for low, high in pairs.values()])


def _between(low: str, high: str) -> str:
    packets = low.endswith("p") and high.endswith("p") and high[:-1].isdigit()
    return f"{low[:-1]} to {high[:-1]} packets" if packets else f"{low} to {high}"


def nothing_fits(found: Calibration) -> str:
    """Why there is no advice: what the capture shows, and what the nearest rack gives."""
    if not found.tried:
        return "no rack could be tried"
    shown = found.shown
    if len(shown.took_ms) < FEWEST:
        return f"the capture has {len(shown.took_ms)} requests, too few to hold a replay against: capture {FEWEST} at least, better some hundred"
    near = min(found.tried, key=lambda fit: fit.furthest)
    # The table has the first request, too.
    there = f"without its first request the capture shows a median of {duration(shown.quantile(0.5))} and a p99 of {duration(shown.quantile(0.99))}"
    again = shown.retransmissions
    lost = f" with {again:,} retransmission{'' if again == 1 else 's'}" if again is not None else ""
    if near.p50_ms is None or near.p99_ms is None or not near.apart:
        return f"{there}{lost}, and on no rack that it allows its requests complete"
    worst = max(near.apart, key=lambda name: abs(near.apart[name]))
    on = f" on the nearest ({enumeration([_value(k, v) for k, v in near.settings])})" if near.settings else ""
    return (
        f"{there}{lost}; the replay of the current setting gives {duration(near.p50_ms)} and {duration(near.p99_ms)}{on}, and is furthest apart at "
        f"{_spoken(worst)} ({_how(worst, more=near.apart[worst] > 0)} in the replay)"
    )


def _how(statistic: str, *, more: bool) -> str:
    if statistic in ("p50", "mean"):
        return "longer" if more else "shorter"
    return "more" if more else "fewer"


def _spoken(statistic: str) -> str:
    if statistic in ("p50", "mean"):
        return "the median" if statistic == "p50" else "the mean"
    return f"requests {statistic}" if statistic.startswith("slower") else statistic


def _value(key: str, value: str) -> str:
    return "segmentation offload" if key == OFFLOAD else f"{_name(key)} {value}"


def _name(key: str) -> str:
    """As it is spoken of."""
    return "host jitter" if key == JITTER else key.removeprefix("rack.")


def _range(key: str, low: str, high: str) -> str:
    if key == OFFLOAD:
        return "segmentation offload"
    name = _name(key)
    return f"a {name} of {low}" if low == high else f"a {name} of {low} to {high}"


def judge_racks(
    base: ReplayJob,
    found: TrainsResult,
    cc: str,
    of: RankOf,
    proposal: RackProposal | None,
    *,
    measure: Measure,
    fixed: Sequence[str] = (),
    store: Store | None = None,
    progress: Callable[[str, int], Progress] = silent,
) -> Calibrated:
    """Find the racks that reproduce a capture under the current setting.

    Parameters
    ----------
    base : ReplayJob
        The rack as given, or as proposed; the traffic.
    found : TrainsResult
        The capture.
    cc : str
        The current TCP.
    of : {"trees", "requests", "stages", "responses"}
        What is timed.
    proposal : RackProposal or None
        Where the rack was proposed: what is open. None: the rack is as the user says, and only its values in effect under load are open.
    measure : callable
        As :func:`fanin.calibration.replayed.calibrated`.
    fixed : sequence of str
        Keys that the user set, which are not tried at other values.
    store, progress : optional
        As :func:`fanin.calibration.replayed.calibrated`.

    Returns
    -------
    Calibrated
    """
    replay = base.traffic.replay
    times = waited(found, replay, of)
    seen = measured(found, replay.aggregator, times)
    shown = shown_by(times if times is not None else durations(found, replay.aggregator), seen.replayed_retransmissions)
    on_simulator = replace(base, engine="sim")
    # A capture behind segmentation offload has fewer packets than its replay.
    packets = max(found.summary["tcp_packets"], found.summary["payload_bytes"] / FULL)
    unknown = open_values(proposal) if proposal is not None else {}
    told = told_values(proposal) if proposal is not None else {}

    def tried(values: Mapping[str, Sequence[str]]) -> Calibration:
        free = {key: options for key, options in values.items() if key not in fixed}
        return calibrated(
            on_simulator,
            cc,
            of,
            shown,
            free,
            measure=measure,
            most=most_racks(packets),
            told=told,
            store=store,
            progress=progress,
        )

    first = tried(unknown)
    if first.reproduced or len(shown.took_ms) < FEWEST:
        return Calibrated(first, widened=False)
    nominal = proposal if proposal is not None else _as_given(base)
    for key, options in ((OFFLOAD, ["true"]), (JITTER, packet_time(nominal))):
        if options and key not in fixed and not _said(base, nominal, key):
            with_trait = tried({**first.values, key: options})
            if with_trait.reproduced:
                return Calibrated(with_trait, widened=False)
    # What may be in effect under load, beside all that the capture allows: that one rack is nearest does not exclude the others.
    around = wider_values(_nearest(nominal, first.tried))
    wider = {
        key: sorted({*unknown.get(key, ()), *around.get(key, ())}, key=partial(between.position, key))
        for key in {**unknown, **around}
    }
    if not wider or all(key in fixed for key in wider):
        return Calibrated(first, widened=False)
    second = tried(wider)
    return Calibrated(
        second if second.reproduced or not first.tried else _nearer(first, second), widened=second.reproduced
    )


def _said(base: ReplayJob, proposal: RackProposal, key: str) -> bool:
    """The rack file, or what was read of the capture, says what this is."""
    section, _, name = key.partition(".")
    return any(finding.key == key for finding in proposal.findings) or name in base.rack.table().get(section, {})


def _nearer(one: Calibration, other: Calibration) -> Calibration:
    least = [min((fit.furthest for fit in found.tried), default=float("inf")) for found in (one, other)]
    return one if least[0] <= least[1] else other


def _nearest(nominal: RackProposal, tried: Sequence[Fit]) -> RackProposal:
    """The proposal at the rack that came nearest."""
    near = dict(min(tried, key=lambda fit: fit.furthest).settings) if tried else {}
    findings = tuple(replace(f, value=near.get(f.key, f.value), low=None, high=None) for f in nominal.findings)
    return replace(nominal, findings=findings)


def _as_given(base: ReplayJob) -> RackProposal:
    """A user's rack file as findings: what it says of rate and buffer."""
    said = {**base.rack.table().get("rack", {}), **{k.removeprefix("rack."): v for k, v in base.settings}}
    known = [(f"rack.{name}", str(said[name])) for name in ("rate", "buffer") if name in said]
    usable = [(key, value) for key, value in known if between.position(key, value) > 0]
    return RackProposal(tuple(Finding(key, value, "measured", "as given") for key, value in usable))


TRAITS = {
    OFFLOAD: "hosts that hand their network cards bursts, as Linux does unless told otherwise,",
    JITTER: "hosts that take a random time for each packet, up to its time on the link,",
}
"""What of hosts is tried where no rack alone reproduces the capture."""


def as_calibrated(proposal: RackProposal, found: Calibrated) -> RackProposal:
    """The proposal with the likeliest values of the set, each with what the calibration says of it; as it was where nothing was found."""
    if not found.reproduced or not found.calibration.values:
        return proposal
    likeliest, ranges = dict(found.racks()[0]), found.calibration.ranges()
    findings = list(proposal.findings)
    for place, finding in enumerate(findings):
        value = likeliest.get(finding.key)
        if value is None:
            continue
        low, high = ranges[finding.key]
        why = f"calibrated: {_range(finding.key, low, high)} gives what the capture measured when the current setting is replayed"
        findings[place] = replace(finding, value=value, low=low, high=high, evidence=f"{finding.evidence}; {why}")
    for key, who in TRAITS.items():
        if (trait := likeliest.get(key)) is not None:
            findings.append(Finding(key, trait, "assumed", f"calibrated: {who} give what the capture measured"))
    warnings = tuple(_with_rate(warning, proposal.findings, likeliest) for warning in proposal.warnings)
    return replace(proposal, findings=tuple(findings), warnings=warnings)


def _with_rate(warning: RunWarning, findings: Sequence[Finding], likeliest: Mapping[str, str]) -> RunWarning:
    """A warning that the rate is a guess names the rate that replays have found in its place, which may lie below every bound of the guess."""
    guess, rate = next(finding for finding in findings if finding.key == "rack.rate"), likeliest.get("rack.rate")
    if rate in (None, guess.value) or warning.kind != GUESSED_RATE:
        return warning
    return RunWarning(calibrated_rate(guess, rate), warning.kind)
