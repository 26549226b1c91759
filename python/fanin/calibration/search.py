"""The weighted set of racks whose replay is the capture."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fanin.calibration.observed import SLOWER, Shown, apart
from fanin.calibration.space import between
from fanin.runs.job import Settings

MOST_APART = 2.5
"""A rack fits where no statistic is further apart than so many standard deviations: with six of them chance alone exceeds it once in 14."""

TOLD_APART = 3.3
"""A rack at the values that packets of the capture tell leaves a set only where a statistic is further apart than this: with six of them chance alone
exceeds it once in 170. On its own it is held to :data:`MOST_APART`, as any other."""

MOST_RACKS = 60
"""At most so many racks are tried."""

FEWEST_RACKS = 12
"""Of a capture of any size so many racks may be tried."""

MANY_PACKETS = 2_000_000
"""Packets of a capture from which fewer racks are tried, so that all replays together do not grow with it: up to then some minutes of a processor. It is
no time, since the same command gives the same answer on every machine."""

MOST_KEPT = 4
"""The decision is taken over at most so many racks of the set: the likeliest, and the ends of each open value."""

REFINEMENTS = 2
"""How often values between those that were tried are tried as well."""

HOPELESS = 2 * MOST_APART
"""A rack that one replay puts further apart than this is not replayed again."""

SEEDS = 2
"""So often each rack is replayed: chance between replays is small beside what a rack that is off by a half changes."""

UNLIKELY = 0.03
"""A rack that is less likely than the likeliest by this factor is not in the set."""

PROMISING = 4
"""Next to so many of the best racks others are tried."""

Replays = Callable[[Sequence[Settings], int], Sequence[Sequence[Shown]]]
"""Replays the current setting on racks with a seed: per rack, what it shows (nothing where the rack cannot be run)."""


@dataclass(frozen=True, slots=True)
class Fit:
    """One rack that was tried.

    Attributes
    ----------
    settings : tuple of (str, str)
        Values by key on top of the rack; empty: the rack as it is.
    apart : dict of str to float
        As :func:`fanin.calibration.apart` gives it.
    weight : float
        Its share in the set; 0 where it does not fit.
    p50_ms, p99_ms : float or None
        Of the requests in all of its replays; None where none was complete.
    told : bool
        It is at the values that packets of the capture tell (:func:`fanin.calibration.space.told_values`).
    """

    settings: Settings
    apart: dict[str, float]
    weight: float
    p50_ms: float | None
    p99_ms: float | None
    told: bool = False

    @property
    def furthest(self) -> float:
        """The largest distance of any statistic, in standard deviations; infinite where nothing can be compared."""
        return max((abs(z) for z in self.apart.values()), default=math.inf)

    @property
    def fits(self) -> bool:
        """The replay is what the capture shows, as far as can be told."""
        return self.furthest <= MOST_APART

    @property
    def stays(self) -> bool:
        """Its packets tell this rack, and what the replay shows is no evidence against that."""
        return self.told and self.furthest <= TOLD_APART

    def to_dict(self) -> dict[str, Any]:
        """As it stands in JSON."""
        return {
            "settings": dict(self.settings),
            "apart": dict(self.apart),
            "weight": self.weight,
            "p50_ms": self.p50_ms,
            "p99_ms": self.p99_ms,
        }


@dataclass(frozen=True, slots=True)
class Calibration:
    """What was found.

    Attributes
    ----------
    shown : Shown
        What the capture measured.
    tried : tuple of Fit
        Every rack, the likeliest first.
    values : dict of str to tuple of str
        Values that were tried by key; empty where nothing was open.
    most : int
        At most so many racks could be tried.
    """

    shown: Shown
    tried: tuple[Fit, ...]
    values: dict[str, tuple[str, ...]]
    most: int = MOST_RACKS

    @property
    def fits(self) -> tuple[Fit, ...]:
        """The racks that reproduce the capture, the likeliest first; empty where none does."""
        return tuple(fit for fit in self.tried if fit.weight > 0)

    @property
    def reproduced(self) -> bool:
        """Some rack reproduces the capture."""
        return bool(self.fits)

    def kept(self, most: int = MOST_KEPT) -> tuple[Fit, ...]:
        """The racks that stand for the set: the likeliest, and the ends of each open value, the likeliest of these first.

        Examples
        --------
        >>> def fit(p, weight): return Fit((("rack.buffer", f"{p}p"),), {}, weight, 1.0, 1.0)
        >>> found = Calibration(Shown((), 0), (fit(60, 0.5), fit(50, 0.3), fit(80, 0.1), fit(70, 0.1)), {"rack.buffer": ("50p", "60p")})
        >>> [dict(f.settings)["rack.buffer"] for f in found.kept()]
        ['60p', '50p', '80p']
        """
        chosen: list[Fit] = list(self.fits[:1])
        for key in self.values:
            ordered = sorted(self.fits, key=lambda fit: between.position(key, dict(fit.settings)[key]))
            chosen += [end for end in (*ordered[:1], *ordered[-1:]) if end not in chosen]
        return tuple(sorted(chosen, key=lambda fit: -fit.weight)[:most])

    def shares(self, most: int = MOST_KEPT) -> dict[Settings, float]:
        """How likely each rack that is kept is: its own weight, and that of the racks of the set that are nearer to it than to another.

        Examples
        --------
        >>> def fit(p, weight): return Fit((("rack.buffer", f"{p}p"),), {}, weight, 1.0, 1.0)
        >>> found = Calibration(Shown((), 0), (fit(60, 0.5), fit(50, 0.3), fit(80, 0.1), fit(75, 0.1)), {"rack.buffer": ("50p", "60p")})
        >>> [round(share, 3) for share in found.shares().values()]
        [0.5, 0.3, 0.2]
        """
        kept = [fit.settings for fit in self.kept(most)]
        shares = dict.fromkeys(kept, 0.0)
        for fit in self.fits if kept else ():
            shares[min(kept, key=lambda rack: _distance(rack, fit.settings))] += fit.weight
        return shares

    def ranges(self) -> dict[str, tuple[str, str]]:
        """Between which values the set lies, by key."""
        found = {}
        for key in self.values:
            ordered = sorted({dict(fit.settings)[key] for fit in self.fits}, key=lambda v: between.position(key, v))
            if ordered:
                found[key] = (ordered[0], ordered[-1])
        return found

    def to_dict(self) -> dict[str, Any]:
        """As it stands in JSON."""
        return {
            "reproduced": self.reproduced,
            "ranges": {key: list(ends) for key, ends in self.ranges().items()},
            "tried": [fit.to_dict() for fit in self.tried],
        }


def most_racks(packets: float) -> int:
    """How many racks may be tried with a capture of so many packets.

    >>> [most_racks(packets) for packets in (0, 2e6, 5e6, 1e9)]
    [60, 60, 24, 12]
    """
    return max(FEWEST_RACKS, int(MOST_RACKS * min(1.0, MANY_PACKETS / max(packets, 1.0))))


def calibrate(
    shown: Shown,
    values: Mapping[str, Sequence[str]],
    replays: Replays,
    most: int = MOST_RACKS,
    told: Mapping[str, str] | None = None,
) -> Calibration:
    """Try the values that a capture leaves open, and keep those whose replay under the current setting is the capture.

    Parameters
    ----------
    shown : Shown
        What the capture measured.
    values : mapping
        Values to try by key, in ascending order (:func:`open_values`); empty: the rack as it is is tried alone.
    replays : callable
        Replays the current setting on racks.
    most : int
        At most so many racks are tried.
    told : mapping, optional
        Values among them that packets of the capture tell (:func:`fanin.calibration.space.told_values`).

    Returns
    -------
    Calibration

    Examples
    --------
    A service whose requests take as long as its queue: only a buffer of about 60 packets gives what was seen.

    >>> def replays(racks, seed):
    ...     size = [int(dict(rack)["rack.buffer"].removesuffix("p")) for rack in racks]
    ...     return [[Shown(tuple(n + k / 100 for k in range(50)), 0)] for n in size]
    >>> found = calibrate(replays([(("rack.buffer", "60p"),)], 1)[0][0], {"rack.buffer": ["32p", "64p", "128p"]}, replays)
    >>> found.ranges()["rack.buffer"], len(found.tried)
    (('54p', '64p'), 7)
    """
    tried: dict[Settings, Fit] = {}
    lists = {key: list(dict.fromkeys(options)) for key, options in values.items()}
    # Half of few racks is for what lies between those that are tried first.
    while most < MOST_RACKS and math.prod(map(len, lists.values())) > most / 2:
        longest = max(lists.values(), key=len)
        if len(longest) < 3:
            break
        # The ends stay, and the rest as evenly as before.
        last = len(longest) - 1
        longest[:] = [longest[round(place * last / (last - 1))] for place in range(last)]

    def tell(racks: Sequence[Settings]) -> None:
        new = [rack for rack in dict.fromkeys(racks) if rack not in tried][: most - len(tried)]
        seen: dict[Settings, list[Shown]] = {rack: [] for rack in new}
        for seed in range(1, SEEDS + 1):
            left = [rack for rack in new if seed == 1 or tried[rack].furthest <= HOPELESS]
            for rack, replayed in zip(left, replays(left, seed) if left else [], strict=True):
                seen[rack] += replayed
                tried[rack] = replace(_fit(rack, shown, seen[rack]), told=_at(rack, told or {}))

    tell([tuple(zip(lists, chosen, strict=True)) for chosen in itertools.product(*lists.values())])
    for _ in range(REFINEMENTS if lists else 0):
        if len(tried) >= most:
            break
        near = [rack for fit in _promising(tried.values()) for rack in _neighbours(fit, lists)]
        tell([*near, *_bracketed(tried, lists)])
        for key in lists:
            seen = {dict(rack)[key] for rack in tried}
            lists[key] = sorted(seen, key=lambda value: between.position(key, value))
    fitting = [fit for fit in tried.values() if fit.fits]
    likeliest = max(map(_log_weight, fitting), default=0.0)
    weights = dict.fromkeys(tried, 0.0)
    for rack, fit in tried.items() if fitting else ():
        weight = math.exp(min(0.0, _log_weight(fit) - likeliest))
        if fit.stays or (fit.fits and weight >= UNLIKELY):
            weights[rack] = weight
    total = math.fsum(weights.values()) or 1.0
    weighted = [replace(fit, weight=weights[rack] / total) for rack, fit in tried.items()]
    weighted.sort(key=lambda fit: (-fit.weight, -_log_weight(fit)))
    return Calibration(shown, tuple(weighted), {key: tuple(options) for key, options in lists.items()}, most)


def _distance(one: Settings, other: Settings) -> float:
    """Between two racks with the same keys: doublings of their values."""
    pairs = [(between.position(key, a), between.position(key, b)) for (key, a), (_, b) in zip(one, other, strict=True)]
    return sum(abs(math.log2(a / b)) if a > 0 and b > 0 else float(a != b) for a, b in pairs)


def _at(rack: Settings, told: Mapping[str, str]) -> bool:
    """The rack has all of these values, as far as they are open, and some are."""
    here = [value == told[key] for key, value in rack if key in told]
    return bool(here) and all(here)


def _fit(rack: Settings, shown: Shown, seeds: Sequence[Shown]) -> Fit:
    pooled = Shown.pooled(seeds)
    far = apart(shown, seeds)
    if not pooled.took_ms:
        return Fit(rack, {}, 0.0, None, None)
    return Fit(rack, far, 0.0, pooled.quantile(0.5), pooled.quantile(0.99))


def _log_weight(fit: Fit) -> float:
    """The mean must fit and has no weight of its own: the requests that make it are those that are counted as slow.

    Of these the slowest are in each of the counts, which are one piece of evidence: the furthest of them.
    """
    if not fit.apart:
        return -math.inf
    slow = [z for name, z in fit.apart.items() if name.startswith(SLOWER)]
    others = [z for name, z in fit.apart.items() if name != "mean" and not name.startswith(SLOWER)]
    return -0.5 * sum(z * z for z in (max(slow, key=abs, default=0.0), *others))


def _promising(tried: Sequence[Fit] | Any) -> list[Fit]:
    """The racks next to which better ones may lie: those that fit, or else the two that come nearest."""
    ordered = sorted(tried, key=_log_weight, reverse=True)
    return [fit for fit in ordered if fit.fits][:PROMISING] or ordered[:2]


def _bracketed(tried: Mapping[Settings, Fit], lists: Mapping[str, Sequence[str]]) -> list[Settings]:
    """The racks half of the way from one with a single statistic too far apart to the next, where that is apart in the other direction.

    >>> racks = [(("rack.buffer", size),) for size in ("32p", "64p")]
    >>> def fit(rack, **apart): return Fit(rack, apart, 0.0, 1.0, 1.0)
    >>> few, many = fit(racks[1], p50=1.0, retransmissions=-4.0), fit(racks[0], p50=3.0, retransmissions=9.0)
    >>> _bracketed(dict(zip(racks, (many, few))), {"rack.buffer": ["32p", "64p"]})
    [(('rack.buffer', '45p'),)]
    """
    found = []
    for rack, fit in tried.items():
        far = [name for name, z in fit.apart.items() if abs(z) > MOST_APART]
        if len(far) != 1:
            continue
        for key, value in rack:
            for other in _next_to(value, lists[key]):
                beside = tried.get(_moved(rack, key, other))
                middle = between.middle(key, value, other)
                if beside is not None and middle is not None and beside.apart.get(far[0], 0.0) * fit.apart[far[0]] < 0:
                    found.append(_moved(rack, key, middle))
    return found


def _moved(rack: Settings, key: str, value: str) -> Settings:
    """The rack with another value of one key."""
    return tuple((name, value if name == key else now) for name, now in rack)


def _next_to(value: str, options: Sequence[str]) -> list[str]:
    """The values before and after this one, as far as there are any."""
    place = options.index(value)
    return [options[other] for other in (place - 1, place + 1) if 0 <= other < len(options)]


def _neighbours(fit: Fit, lists: Mapping[str, Sequence[str]]) -> list[Settings]:
    """The racks around one: each value as it is or moved half of the way to the next that was tried; a slower link with a longer queue may fit as well."""
    moved: list[list[str]] = []
    for key, options in lists.items():
        value = dict(fit.settings)[key]
        middles = (between.middle(key, value, side) for side in _next_to(value, options))
        moved.append([value, *(middle for middle in middles if middle is not None)])
    return [tuple(zip(lists, chosen, strict=True)) for chosen in itertools.product(*moved)]
