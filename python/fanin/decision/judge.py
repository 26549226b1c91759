"""The judgement: what gains, what it must not cost, and the simplest of the nearly best."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from fanin.decision.outcome import FEWEST_EVENTS, Outcome, tail_of
from fanin.stats import Paired, holm, paired_ratios

CLAIM = 0.005
"""A gain is claimed where chance makes one as large less often than this. The level is fixed, not divided by the number of candidates, so that a
candidate more or less never turns an answer round; with twenty of them one comparison in ten has one gain by chance."""

WORTHWHILE = 0.97
"""What is shorter by less than this ratio is no reason to change a TCP, however certain."""

TOLERATED = 1.05
"""A statistic may be longer by this ratio at most."""

HARM = 0.05
"""A statistic that is longer is measurably so where chance makes it as much longer less often than this."""

NEARLY = 1.05
"""Of candidates whose sure gain is within this ratio of the best the simplest is advised."""

FEWEST_PAIRS = 3
"""With fewer pairs of runs an interval says nothing."""

GUARDED = ("mean", "p50", "p95", "p99", "p99_9")
"""What a change must not make longer."""

MOST_CONNECTIONS = 256
"""Connections that are guarded one by one; a service with more has connections per request, whose names mean nothing."""

MORE_IS_BETTER = ("fairness", "goodput")
"""Of all other statistics less is better."""

Goal = Literal["mean", "p50", "p95", "p99", "p99_9", "fairness", "goodput"]
"""What may be asked for in place of body and tail."""

Kind = Literal["change", "keep", "undecided"]


@dataclass(frozen=True, slots=True)
class Judged:
    """One candidate beside the current setting.

    Attributes
    ----------
    name : str
        The candidate.
    cost : tuple of int
        As :attr:`Outcome.cost`.
    change : dict of str to Paired
        By statistic the ratio candidate / current over pairs of runs, with its 95 % interval (withheld below three pairs) and p.
    gains : tuple of str
        Statistics at which it is measurably and worthwhile better, the most telling first.
    harms : tuple of str
        Statistics that it makes measurably longer by more than :data:`TOLERATED`, over all runs or on one rack; ``connection``: one connection's.
    sure : float
        The ratio that is surely reached: geometric mean, over the statistics of the goal, of the upper ends of the intervals; 1 without a gain.
    """

    name: str
    cost: tuple[int, ...]
    change: dict[str, Paired]
    gains: tuple[str, ...]
    harms: tuple[str, ...]
    sure: float

    @property
    def wins(self) -> bool:
        """It gains and harms nothing."""
        return bool(self.gains) and not self.harms


@dataclass(frozen=True, slots=True)
class Decision:
    """The answer.

    Attributes
    ----------
    kind : {"change", "keep", "undecided"}
        ``undecided``: the runs are too few to tell.
    best, current : str
        What is advised, and what runs now; equal unless `kind` is ``change``.
    by : tuple of str
        The statistics that were to gain.
    judged : tuple of Judged
        Every other candidate, those that win first, in the order in which they would be advised.
    """

    kind: Kind
    best: str
    current: str
    by: tuple[str, ...]
    judged: tuple[Judged, ...] = field(default_factory=tuple)

    def of(self, name: str) -> Judged | None:
        """The judgement of one candidate; None of the current setting and of what was not run."""
        return next((judged for judged in self.judged if judged.name == name), None)


def decide(
    outcomes: Sequence[Outcome], current: str, goal: Goal | None = None, measured: Mapping[str, float] | None = None
) -> Decision:
    """Decide between the current setting and other candidates.

    A change is advised if it makes the mean or the tail of requests (or the statistic that `goal` names) measurably shorter and nothing measurably
    longer by more than 5 %. Of all such the one whose sure gain is largest is advised, and of those within 5 % of it the simplest.

    Parameters
    ----------
    outcomes : sequence of Outcome
        Of all candidates, the current setting among them, in any order.
    current : str
        The name of the current setting.
    goal : str, optional
        One statistic in place of body and tail.
    measured : mapping, optional
        By statistic what the current setting was measured to take, ms. What is shorter than the current setting's runs and not than this is no gain.

    Returns
    -------
    Decision

    Raises
    ------
    ValueError
        When no outcome is the current setting's.

    Examples
    --------
    >>> def runs(mean, p99): return {(0, seed): {"mean": mean + seed / 100, "p50": 1.0, "p99": p99 + seed / 10} for seed in range(5)}
    >>> slow, fast = Outcome("cubic", (0, 0), runs(3.0, 200.0), 1000), Outcome("cubic, floor 20ms", (1, 1), runs(1.5, 20.0), 1000)
    >>> twin = Outcome("trim", (4, 1), runs(1.48, 19.9), 1000)
    >>> decide([slow, fast, twin], "cubic").best
    'cubic, floor 20ms'
    >>> decide([slow, Outcome("bbr", (2, 1), runs(3.5, 20.0), 1000)], "cubic").kind
    'keep'
    """
    now = next((outcome for outcome in outcomes if outcome.name == current), None)
    if now is None:
        raise ValueError(f"no outcome is the current setting's, {current!r}")
    by = _wanted(now, goal)
    others = sorted((outcome for outcome in outcomes if outcome.name != current), key=lambda o: o.name)
    judged = [_judged(outcome, now, by, measured or {}) for outcome in others]
    judged.sort(key=lambda found: (not found.wins, found.sure, found.cost, found.name))
    winners = [found for found in judged if found.wins]
    if winners:
        nearly = [found for found in winners if found.sure <= NEARLY * winners[0].sure]
        best = min(nearly, key=lambda found: (found.cost, found.sure, found.name))
        return Decision("change", best.name, current, by, (best, *(found for found in judged if found is not best)))
    few = len(now.runs) < FEWEST_PAIRS
    return Decision("undecided" if few and others else "keep", current, current, by, tuple(judged))


def _wanted(now: Outcome, goal: Goal | None) -> tuple[str, ...]:
    if goal is not None:
        return (goal,)
    tail = tail_of(now)
    return ("mean", tail) if tail is not None else ("mean",)


def _judged(outcome: Outcome, now: Outcome, by: tuple[str, ...], measured: Mapping[str, float]) -> Judged:
    shared = [run for run in now.runs if run in outcome.runs]
    names = list(dict.fromkeys([*by, *GUARDED]))
    change = {name: _paired(outcome, now, name, shared) for name in names}
    # A goal that was asked for is judged however few requests lie beyond it.
    told = {name for name in names if now.tells(name) or (len(by) == 1 and name in by)}
    gains = tuple(
        name
        for name in by
        if name in told
        and _gains(change[name], name, outcome, now, shared)
        and _expected(outcome, name) <= WORTHWHILE * measured.get(name, math.inf)
    )
    racks = list(dict.fromkeys(run[0] for run in shared))
    harms = [name for name in names if name in told and _harms(change[name], name, outcome, now, shared)]
    for rack in racks if len(racks) > 1 else ():
        mine = [run for run in shared if run[0] == rack]
        on_rack = {name: _paired(outcome, now, name, mine) for name in names if name in told and name not in harms}
        harms += [name for name, paired in on_rack.items() if _harms(paired, name, outcome, now, mine)]
    if _one_connection_longer(outcome, now, shared):
        harms.append("connection")
    return Judged(outcome.name, outcome.cost, change, gains, tuple(harms), _sure(change, by, gains))


def _paired(outcome: Outcome, now: Outcome, name: str, runs: Sequence[tuple[object, object]]) -> Paired:
    """Ratio of a statistic; of what is better the more it is, the inverse, so that below one is always better."""
    mine, theirs = ([o.runs[run].get(name) for run in runs] for o in (outcome, now))
    if name in MORE_IS_BETTER:
        mine, theirs = theirs, mine
    paired = paired_ratios(mine, theirs)
    if len(runs) >= FEWEST_PAIRS:
        return paired
    return Paired(type(paired.change)(paired.change.value), None)


def _expected(outcome: Outcome, name: str) -> float:
    """The geometric mean over the runs; 0 where there is none, since then nothing is known against it."""
    values = [value for run in outcome.runs.values() if (value := run.get(name)) is not None and value > 0]
    return math.exp(math.fsum(math.log(value) for value in values) / len(values)) if values else 0.0


def _missing(outcome: Outcome, name: str, runs: Sequence[tuple[object, object]]) -> int:
    return sum(outcome.runs[run].get(name) is None for run in runs)


def _gains(paired: Paired, name: str, outcome: Outcome, now: Outcome, runs: Sequence[tuple[object, object]]) -> bool:
    if paired.p is None or paired.p >= CLAIM:
        return False
    if paired.change.value is None:
        return _missing(outcome, name, runs) < _missing(now, name, runs)
    high = paired.change.high
    return paired.change.value <= WORTHWHILE and high is not None and high < 1.0


def _harms(paired: Paired, name: str, outcome: Outcome, now: Outcome, runs: Sequence[tuple[object, object]]) -> bool:
    if paired.change.value is None:
        return _missing(outcome, name, runs) > _missing(now, name, runs)
    if paired.change.value <= TOLERATED:
        return False
    # Without an interval harm that may be chance is harm.
    return paired.p is None or paired.p < HARM


def _one_connection_longer(outcome: Outcome, now: Outcome, runs: Sequence[tuple[object, object]]) -> bool:
    """One connection's responses take measurably longer, however many others take less time."""
    shared = [run for run in runs if run in outcome.connections and run in now.connections]
    names = sorted({str(name): name for run in shared for name in now.connections[run]}.items())
    if len(shared) < FEWEST_PAIRS or len(names) > MOST_CONNECTIONS:
        return False
    tests = []
    for _, name in names:
        pairs = [(outcome.connections[run].get(name), now.connections[run].get(name)) for run in shared]
        tests.append(paired_ratios([a for a, _ in pairs], [b for _, b in pairs]))
    corrected = holm([test.p for test in tests])
    return any(
        p is not None and p < HARM and test.change.value is not None and test.change.value > TOLERATED
        for test, p in zip(tests, corrected, strict=True)
    )


def _sure(change: dict[str, Paired], by: tuple[str, ...], gains: tuple[str, ...]) -> float:
    if not gains:
        return 1.0
    # Where the current setting leaves requests unfinished and the candidate none there is no ratio: that is the most that can be gained.
    ends = [(change[name].change.high or 0.01) if name in gains else 1.0 for name in by]
    return math.exp(math.fsum(math.log(max(end, 1e-9)) for end in ends) / len(ends))


__all__ = ["CLAIM", "FEWEST_EVENTS", "TOLERATED", "WORTHWHILE", "Decision", "Goal", "Judged", "decide"]
