"""How two candidates compare by paired seeds where nothing is decided: at twice the load, beside hosts that are not moved."""

from __future__ import annotations

import math
from collections.abc import Sequence

from fanin.advice.search import Score
from fanin.decision.judge import MORE_IS_BETTER
from fanin.statistics.ranking import ONE, SIGNIFICANT, RankOf
from fanin.statistics.seeds import Paired, paired_ratios
from fanin.words.text import significant
from fanin.words.verdict import GOAL_NAMES


def spoken(goal: str, of: RankOf) -> str:
    """A goal in a sentence.

    Examples
    --------
    >>> spoken("p99_9", "requests"), spoken("fairness", "requests")
    ('p99.9 request', 'fairness')
    """
    return GOAL_NAMES[goal] if goal in MORE_IS_BETTER else f"{GOAL_NAMES[goal]} {ONE[of]}"


def worse(test: Paired, goal: str) -> bool:
    """Significantly worse than the current setting. Where percentiles fell on unfinished responses there is no ratio, and the worse is assumed."""
    if test.p is None or test.p >= SIGNIFICANT:
        return False
    ratio = test.change.value
    if ratio is None:
        return True
    return ratio < 1 if goal in MORE_IS_BETTER else ratio > 1


def improves(test: Paired, goal: str) -> bool:
    """Significantly better than the current setting."""
    return test.p is not None and test.p < SIGNIFICANT and not worse(test, goal)


def paired(theirs: Sequence[Score], mine: Sequence[Score], goal: str) -> Paired:
    """Ratio of a goal, theirs over mine, by seed."""
    return paired_ratios([s.goals[goal] for s in theirs], [s.goals[goal] for s in mine])


def mean_of(scores: Sequence[Score], goal: str) -> float | None:
    """Mean over the seeds; None when one has no value."""
    values = [score.goals[goal] for score in scores]
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known and len(known) == len(values) else None


def shown_values(goal: str, values: tuple[float | None, float | None], gain: Paired) -> str:
    """Before, after, and the ratio with its interval.

    Examples
    --------
    >>> from fanin.statistics.seeds import Estimate
    >>> shown_values("p99", (8.0, 4.0), Paired(Estimate(0.5, 0.4, 0.6), 0.01))
    '8.00 ms -> 4.00 ms (ratio 0.5; 95% interval of the ratio 0.4 to 0.6)'
    """
    unit, scale = {"goodput": ("Mbps", 1e-6), "fairness": ("", 1.0)}.get(goal, ("ms", 1.0))
    before, after = ("none" if v is None else f"{significant(v * scale)} {unit}".strip() for v in values)
    change = gain.change
    if change.value is None:
        return f"{before} -> {after}"
    interval = f"; 95% interval of the ratio {change.low:.3g} to {change.high:.3g}" if change.low is not None else ""
    return f"{before} -> {after} (ratio {change.value:.3g}{interval})"
