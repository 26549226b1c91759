"""What a capture and a replay of it show, and how far apart the two are."""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import stdev

from fanin.disk import aside

MEDIAN_TOLERANCE = 0.08
"""Standard deviation of the logarithm of a replay's median beside a real one: the simulator's own error (`python -m lab validate`) and the hosts' costs."""

SLOWER_THAN = (1.5, 3.0, 8.0)
"""Requests slower than so many medians of the capture are counted: repairs within a round trip or two, window stalls, and timeouts."""

SLOWER = "slower than "
"""What the names of these counts begin with."""

SHARE_TOLERANCE = 0.4
"""Relative standard deviation of the replay's count of slow requests that is the model's own: one lost tail more or less is chaotic."""

CLUSTERED = 2.0
"""Slow requests come in clusters: the variance of their count is so many times a binomial one."""

LOSS_TOLERANCE = 0.3
"""Standard deviation of the logarithm of the replay's retransmissions beside real ones."""

FEW_LOSSES = 5.0
"""So many retransmissions more or less say nothing."""

HOSTS_MS = 0.01
"""What hosts take for a packet, ms: a replay knows no wait that is as short, and medians of so little are not told apart."""

FEWEST = 10
"""With fewer requests a capture is not held against a replay."""


@dataclass(frozen=True, slots=True)
class Shown:
    """What a capture, or one replay of it, shows of the current setting.

    Attributes
    ----------
    took_ms : sequence of float
        Durations of the requests in ascending order, without those that waited for handshakes.
    retransmissions : int or None
        Segments that the servers sent again; None where the tap cannot see it.
    """

    took_ms: Sequence[float]
    retransmissions: int | None

    @classmethod
    def of(cls, took_ms: Sequence[float | None], retransmissions: int | None) -> Shown:
        """From durations in any order; what was not complete is left out.

        Examples
        --------
        >>> Shown.of([3.0, None, 1.0], 7)
        Shown(took_ms=array('d', [1.0, 3.0]), retransmissions=7)
        """
        return cls(aside.held(sorted(ms for ms in took_ms if ms is not None)), retransmissions)

    @classmethod
    def pooled(cls, replays: Sequence[Shown]) -> Shown:
        """The durations of several replays."""
        return cls.of([ms for replay in replays for ms in replay.took_ms], None)

    def quantile(self, p: float) -> float:
        """By nearest rank, ms.

        Examples
        --------
        >>> Shown((1.0, 2.0, 3.0, 4.0), 0).quantile(0.5)
        2.0
        """
        return self.took_ms[min(len(self.took_ms), max(1, math.ceil(round(p * len(self.took_ms), 9)))) - 1]

    def slower(self, than_ms: float) -> int:
        """How many requests took longer."""
        return len(self.took_ms) - bisect.bisect_right(self.took_ms, than_ms)


def apart(capture: Shown, replays: Sequence[Shown]) -> dict[str, float]:
    """How far replays of the current setting are from the capture, in standard deviations of chance and of the model's own error.

    Parameters
    ----------
    capture : Shown
        One sample.
    replays : sequence of Shown
        The same requests, replayed with a seed each.

    Returns
    -------
    dict of str to float
        By statistic: ``p50``, ``mean``, ``slower than 1.5 medians`` and so on, ``retransmissions``. Positive: the replay has more. Empty where the capture
        has too few requests to be held against anything.

    Examples
    --------
    >>> steady = Shown(tuple(10 + n / 100 for n in range(100)), 40)
    >>> max(abs(z) for z in apart(steady, [steady, steady]).values()) < 0.1
    True
    >>> slow = Shown(tuple(13 + n / 100 for n in range(100)), 40)
    >>> round(apart(steady, [slow, slow])["p50"], 1)
    3.1
    """
    known = [replay for replay in replays if replay.took_ms]
    if len(capture.took_ms) < FEWEST or not known:
        return {}
    pooled = Shown.pooled(known)
    found = {"p50": _median(capture, known, pooled), "mean": _mean(capture, known)}
    median = capture.quantile(0.5)
    for factor in SLOWER_THAN:
        counts = [(shown.slower(factor * median), len(shown.took_ms)) for shown in (capture, pooled)]
        found[f"{SLOWER}{factor:g} medians"] = _slow(*counts)
    losses = [replay.retransmissions for replay in known if replay.retransmissions is not None]
    if capture.retransmissions is not None and losses:
        found["retransmissions"] = _losses(capture.retransmissions, losses)
    return found


def _slow(seen: tuple[int, int], replayed: tuple[int, int]) -> float:
    """The difference of two counts of slow requests, each of so many.

    Both are samples of one share: what none of n replayed requests shows may happen to some of as many others (rule of three).
    """
    (here, count), (there, of) = seen, replayed
    expected, share = count * there / of, (here + there) / (count + of)
    chance = CLUSTERED * count * share * (1 - share) * (1 + count / of)
    # One request more or less is no evidence.
    return (expected - here) / math.sqrt(chance + (SHARE_TOLERANCE * expected) ** 2 + 1.0)


def _median(capture: Shown, replays: Sequence[Shown], pooled: Shown) -> float:
    """The log ratio of medians. Both are of samples; the capture is of one run, and runs differ by what the replays differ by."""
    median = max(capture.quantile(0.5), 1e-9)
    ratio = math.log(max(pooled.quantile(0.5), 1e-9) / median)
    between = stdev([math.log(max(replay.quantile(0.5), 1e-9)) for replay in replays]) if len(replays) > 1 else 0.0
    chance = between * math.sqrt(1 + 1 / len(replays))
    return ratio / math.hypot(
        MEDIAN_TOLERANCE, HOSTS_MS / median, _median_error(capture), _median_error(pooled), chance
    )


def _median_error(shown: Shown) -> float:
    """Standard deviation of the logarithm of a median, by the order statistics around it: where some requests had losses and some had none it is large."""
    error = 0.5 * math.sqrt(CLUSTERED / len(shown.took_ms))
    low, high = (max(shown.quantile(p), 1e-9) for p in (max(0.5 - error, 0.0), min(0.5 + error, 1.0)))
    return math.log(high / low) / 2


def _mean(capture: Shown, replays: Sequence[Shown]) -> float:
    """The log ratio of means. The capture's error is that of a mean of clustered requests, the replays' what they differ by."""
    mean, count = math.fsum(capture.took_ms) / len(capture.took_ms), len(capture.took_ms)
    variance = math.fsum((ms - mean) ** 2 for ms in capture.took_ms) / (count - 1)
    sampling = math.sqrt(CLUSTERED * variance / count) / max(mean, 1e-9)
    means = [math.fsum(replay.took_ms) / len(replay.took_ms) for replay in replays]
    there = math.fsum(means) / len(means)
    chance = sampling * math.sqrt(1 + 1 / len(replays))
    return math.log(max(there, 1e-9) / max(mean, 1e-9)) / math.hypot(MEDIAN_TOLERANCE, chance)


def _losses(seen: int, replayed: Sequence[int]) -> float:
    mean = sum(replayed) / len(replayed)
    spread = math.sqrt(sum((n - mean) ** 2 for n in replayed) / len(replayed)) / (mean + FEW_LOSSES)
    chance = math.sqrt(1 / (seen + FEW_LOSSES) + spread**2)
    return math.log((mean + FEW_LOSSES) / (seen + FEW_LOSSES)) / math.hypot(LOSS_TOLERANCE, chance)
