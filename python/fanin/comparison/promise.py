"""What a candidate is expected to take, with all that is known of the doubt: chance between runs, the racks that fit, and the model's own error."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING

from fanin.statistics.seeds import estimate_positive

if TYPE_CHECKING:
    from fanin.decision import Outcome

MODEL_ERROR = 0.12
"""Standard deviation of the logarithm of what is got beside what was replayed: 12 settings that were typed on racks in real time (docs/validation.md)
took from 0.89 to 1.33 times the replays' mean, 0.124 at the root of the mean square."""

BEYOND = 0.025
"""The share of what is expected that lies below the lower end, and above the upper one."""

NORMAL_975 = 1.959964
"""An interval of 95 % reaches so many standard deviations either way."""


def expected(
    outcome: Outcome, statistic: str, weights: Mapping[Hashable, float] | None = None
) -> tuple[float, float] | None:
    """Between what a statistic is expected on real hosts: 95 % of the weighted mixture of what each rack gives.

    On a rack the logarithm of what is got is taken as normal around that of the replays' geometric mean; its variance is that of this mean, and that of
    the model beside real hosts (:data:`MODEL_ERROR`). To the upper end of the mean comes what timeouts may add that no replay shows
    (:meth:`fanin.decision.Outcome.unseen`).

    Parameters
    ----------
    outcome : Outcome
        The candidate's runs.
    statistic : str
        A completion time, such as ``mean``.
    weights : mapping, optional
        By rack how likely it is; equal unless given.

    Returns
    -------
    tuple of float or None
        The ends, ms; None where on one rack requests of a run were unfinished, or nothing was run.

    Examples
    --------
    >>> from fanin.decision import Outcome
    >>> def of(*means): return Outcome("bbr", (2, 1), {(r, s): {"mean": m} for r, m in enumerate(means) for s in range(5)}, 1000)
    >>> [[round(end, 1) for end in expected(o, "mean", w)] for o, w in ((of(10.0), None), (of(10.0, 20.0), {0: 0.99, 1: 0.01}))]
    [[7.9, 12.7], [7.9, 13.0]]
    >>> [round(end, 1) for end in expected(of(10.0, 20.0), "mean")]
    [8.2, 24.4]

    A timer of 200 ms that none of 300 requests waited for may add 2 ms:

    >>> few = Outcome("bbr", (2, 1), {(0, s): {"mean": 10.0} for s in range(5)}, 60, timer_ms=200.0)
    >>> [round(end, 1) for end in expected(few, "mean")]
    [7.9, 14.7]
    """
    racks = list(dict.fromkeys(rack for rack, _ in outcome.runs))
    total = math.fsum((weights or {}).get(rack, 0.0) for rack in racks)
    parts = []
    for rack in racks:
        found = estimate_positive([values.get(statistic) for run, values in outcome.runs.items() if run[0] == rack])
        if found.value is None or found.value <= 0:
            return None
        chance = math.log(found.high / found.low) / (2 * NORMAL_975) if found.low and found.high else 0.0
        share = (weights or {}).get(rack, 0.0) / total if total > 0 else 1 / len(racks)
        parts.append((share, math.log(found.value), math.hypot(chance, MODEL_ERROR)))
    unseen = outcome.unseen() if statistic == "mean" else 0.0
    return (_quantile(parts, BEYOND), _quantile(parts, 1 - BEYOND) + unseen) if parts else None


def _quantile(parts: list[tuple[float, float, float]], p: float) -> float:
    """Of a mixture of normal distributions, each a weight, a mean and a deviation; by halving the interval."""
    low, high = (edge(mean + sign * 9 * sd for _, mean, sd in parts) for edge, sign in ((min, -1), (max, 1)))
    for _ in range(60):
        middle = (low + high) / 2
        below = math.fsum(w * 0.5 * math.erfc((mean - middle) / (sd * math.sqrt(2))) for w, mean, sd in parts)
        low, high = (middle, high) if below < p else (low, middle)
    return math.exp((low + high) / 2)
