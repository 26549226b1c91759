"""Whether a capture is fit to judge a service by, as :mod:`fanin.capture.traffic` measures it before anything is inferred."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Reason:
    """One thing that is amiss with a capture.

    Attributes
    ----------
    kind : str
        A stable name: ``payload-missing``, ``packets-dropped``, ``coarse-clock``, ``stopped-clock``, ``wrong-clock``, ``clock-steps``,
        ``acknowledgements-missing``, ``one-direction``, ``translated-copies``, ``headers-cut`` or ``too-late``.
    lacks : tuple of str
        What the capture cannot be used for: ``sizes``, ``times``, ``losses``, ``rack``.
    message : str
        What was measured, and what to do.
    """

    kind: str
    lacks: tuple[str, ...]
    message: str


@dataclass(frozen=True, slots=True)
class Fitness:
    """What was measured of the capture itself.

    Attributes
    ----------
    verdict : {"fit", "limited", "unfit"}
        Fit to judge; for some aspects only (`fit_for`); for none.
    fit : bool
        An advice can rest on it: sizes, times and losses are all to be seen.
    fit_for : tuple of str
        Of ``sizes`` (bytes per message), ``times`` (when requests and responses began and ended), ``losses`` (which packets were lost) and ``rack`` (rate,
        delay and buffer).
    sentence : str
        Verdict and reasons in one line.
    reasons : tuple of Reason
        One for each thing that is amiss.
    missing_share : float
        Of the payload, what was acknowledged or skipped and is not in the file.
    dropped_packets : int
        Packets that the program that captured states it dropped (interface statistics of pcapng, or what its packets say).
    resolution_ns : int or None
        All time stamps are multiples of this; None of a capture of a few packets.
    clock_speed : float or None
        Seconds of the capture per second of the hosts' own clocks (RFC 7323 time stamps); None where no connection lasts five seconds.
    copied_packets, copies_apart_ns : int
        Copies of packets that were left out, and the longest time between a packet and its copy.
    merged_share : float
        Of the data packets, those that an offload merged before the tap saw them.
    retransmitted_packets, spurious_packets : int
        Packets that were sent again, and of these what had not been lost.
    missing_acks_share : float
        Of the bare acknowledgements that their senders counted (IP identification), what is not in the file.
    one_sided_share : float
        Of the payload, what is on connections of which one direction is in the file.
    translated_share : float
        Of the data packets, those that appear under other addresses too (NAT).

    Examples
    --------
    >>> import fanin
    >>> found = fanin.trains("data/captures/http_onoff_8to1.pcap.gz")
    >>> found.fitness.fit, found.fitness.sentence, found.fitness.resolution_ns
    (True, 'fit to judge', 1000)
    """

    verdict: Literal["fit", "limited", "unfit"]
    fit: bool
    fit_for: tuple[str, ...]
    sentence: str
    reasons: tuple[Reason, ...]
    missing_share: float
    dropped_packets: int
    resolution_ns: int | None
    clock_speed: float | None
    copied_packets: int
    copies_apart_ns: int
    merged_share: float
    retransmitted_packets: int
    spurious_packets: int
    missing_acks_share: float
    one_sided_share: float
    translated_share: float

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> Fitness:
        """From the engine's object."""
        reasons = tuple(Reason(r["kind"], tuple(r["lacks"]), r["message"]) for r in told["reasons"])
        same = {name: value for name, value in told.items() if name not in {"advisable", "fit_for", "line", "reasons"}}
        return cls(
            fit=told["advisable"], fit_for=tuple(told["fit_for"]), sentence=told["line"], reasons=reasons, **same
        )

    def lacks(self, aspect: str) -> str | None:
        """Why the capture cannot be used for this aspect; None where it can."""
        return "; ".join(reason.message for reason in self.reasons if aspect in reason.lacks) or None

    def to_dict(self) -> dict[str, Any]:
        """As it stands in JSON."""
        return asdict(self)
