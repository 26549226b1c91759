"""Which candidates can still be advised after a part of the runs, so that the others need not be run to the end."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from fanin.decision.judge import (
    HARM,
    NEARLY,
    TOLERATED,
    WORTHWHILE,
    Case,
    Goal,
    Judged,
    current_of,
    decide,
    shorter_than_measured,
)
from fanin.decision.outcome import Outcome

CHECKS = (3, 5)
"""After so many runs of each it is asked who goes on; with fewer an interval spans nearly everything, and more than half of the runs would let one be
advised that was left."""

ALWAYS = 4
"""So many of the best go on, however far ahead of them the first is: it may yet do harm on another rack."""


def running(
    outcomes: Sequence[Outcome],
    current: str,
    goal: Goal | None = None,
    measured: Mapping[str, float] | None = None,
    runs: int | None = None,
) -> tuple[str, ...]:
    """The candidates that can still be advised, by the runs that there are.

    One drops out that clearly makes something longer; that is hardly short enough for any gain to be claimed; that stays behind the sure gain of
    others even at the better end of its interval; or that another of its kind of change, or of a simpler one, is measurably better than: the best of
    each kind go on, since a dearer one may be far behind on another rack. What dropped out would not be advised by its runs so far either
    (:func:`decide`).

    Parameters
    ----------
    outcomes : sequence of Outcome
        On one rack, the current setting's among them.
    current, goal, measured
        As :func:`decide`.
    runs : int, optional
        How many runs of each there are to be.

    Returns
    -------
    tuple of str
        In the order of `outcomes`, without the current setting.

    Examples
    --------
    >>> def of(name, cost, mean):
    ...     return Outcome(name, (cost, 1), {(0, s): {"mean": mean + s / 1000, "p50": 1.0, "p99": 10 * mean + s / 100} for s in range(4)}, 1000)
    >>> running([of("cubic", 0, 3.0), of("reno", 2, 3.0), of("bbr", 2, 9.0), of("trim", 4, 1.0)], "cubic", runs=10)
    ('trim',)
    """
    now = current_of(outcomes, current)
    case = Case(now, goal, measured or {}, {}, runs)
    every = runs is None or len(now.runs) >= runs
    judged = {o.name: case.judged(o) for o in outcomes if o.name != current}
    left = {name: found for name, found in judged.items() if _open(found, case.by, every=every)}
    ahead = sorted(found.sure for found in left.values() if found.wins)
    behind = NEARLY * ahead[ALWAYS - 1] if len(ahead) >= ALWAYS else math.inf
    by_name = {outcome.name: outcome for outcome in outcomes}
    winners = [by_name[name] for name, found in left.items() if found.wins]

    def beaten(name: str) -> bool:
        mine = by_name[name]
        return any(
            case.beats(other, mine) for other in winners if other is not mine and other.cost[:1] <= mine.cost[:1]
        )

    return tuple(name for name, found in left.items() if _at_best(found, case.by) <= behind and not beaten(name))


def still_promising(
    outcomes: Sequence[Outcome], current: str, goal: Goal | None = None, measured: Mapping[str, float] | None = None
) -> tuple[str, ...]:
    """Where all runs advise nothing, the candidates that may turn out better in more of them.

    Parameters
    ----------
    outcomes, current, goal, measured
        As :func:`running`.

    Returns
    -------
    tuple of str
        In the order of `outcomes`; empty where the answer is a change, or nothing gains.

    Examples
    --------
    Three of ten runs have a timeout under the current setting: chance may have made it.

    >>> def of(name, cost, means): return Outcome(name, (cost, 1), {(0, s): {"mean": mean} for s, mean in enumerate(means)}, 10)
    >>> now, floor = of("cubic", 0, [4, 4, 4, 9, 4, 9, 4, 4, 9, 4]), of("cubic, floor 5ms", 1, [4, 4, 4, 5, 4, 5, 4, 4, 5, 4])
    >>> still_promising([now, floor], "cubic")
    ('cubic, floor 5ms',)
    >>> still_promising([now, of("bbr", 2, [6] * 10)], "cubic")
    ()
    """
    decision = decide(outcomes, current, goal, measured)
    if decision.kind != "keep":
        return ()
    left = running(outcomes, current, goal, measured)
    return tuple(
        outcome.name
        for outcome in outcomes
        if outcome.name in left and any(shorter_than_measured(outcome, name, measured or {}) for name in decision.by)
    )


def _open(found: Judged, by: Sequence[str], *, every: bool) -> bool:
    """After all runs: it makes nothing longer, and is shorter, if not measurably. After a few: it may yet turn out so."""
    if not every:
        return not _harmful(found) and _may_gain(found, by)
    changes = [found.change[name].change for name in by]
    return not found.harms and any(c.value is None or c.value <= WORTHWHILE for c in changes)


def _harmful(found: Judged) -> bool:
    """By twice what is tolerated, since few runs leave doubt; what one connection loses is not told by so few."""
    paired = [found.change[name] for name in found.harms if name in found.change]
    return any(p.p is not None and p.p < HARM and (p.change.value or 0.0) > TOLERATED**2 for p in paired)


def _may_gain(found: Judged, by: Sequence[str]) -> bool:
    """Half of the way to the better end of an interval there is a gain that would be claimed; about one time in ten a mean lies further out."""
    changes = [found.change[name].change for name in by]
    return any(c.value is None or c.low is None or math.sqrt(c.value * c.low) <= WORTHWHILE for c in changes)


def _at_best(found: Judged, by: Sequence[str]) -> float:
    """The sure gain if every statistic ends up at the better end of its interval; 0 where nothing is known against it."""
    ends = [found.change[name].change.low for name in by]
    known = [end for end in ends if end is not None and end > 0]
    return math.exp(math.fsum(math.log(min(end, 1.0)) for end in known) / len(ends)) if len(known) == len(ends) else 0.0


__all__ = ["ALWAYS", "CHECKS", "running", "still_promising"]
