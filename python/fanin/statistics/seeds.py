"""The statistics of a comparison: order statistics per run, Student's t over runs, pairs of runs that share a seed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Estimate:
    """A statistic over seeds.

    Attributes
    ----------
    value : float or None
        Mean of the per-seed values: the geometric mean of times and ratios (:func:`estimate_positive`), the arithmetic mean of counts
        (:func:`estimate`). None when a seed gave none (the percentile fell on a response that was never completed).
    low, high : float or None
        95% confidence interval, Student's t over the per-seed values or their logarithms. None with fewer than two seeds.
    """

    value: float | None
    low: float | None = None
    high: float | None = None

    def to_dict(self) -> dict[str, float | None]:
        """As it stands in JSON."""
        return {"value": self.value, "low": self.low, "high": self.high}


def estimate(values: Sequence[float | None]) -> Estimate:
    """Arithmetic mean and 95% confidence interval of independent values, one per seed.

    Parameters
    ----------
    values : sequence of float or None
        One per seed; None where the seed has no such value.

    Examples
    --------
    >>> estimate([1.0, 2.0, 3.0])
    Estimate(value=2.0, low=-0.484..., high=4.484...)
    >>> estimate([5.0])
    Estimate(value=5.0, low=None, high=None)
    >>> estimate([5.0, None])
    Estimate(value=None, low=None, high=None)
    """
    known = [v for v in values if v is not None]
    if not known or len(known) < len(values):
        return Estimate(None)
    n = len(known)
    mean = math.fsum(known) / n
    if n < 2:
        return Estimate(mean)
    variance = math.fsum((v - mean) ** 2 for v in known) / (n - 1)
    half = student_t_975(n - 1) * math.sqrt(variance / n)
    return Estimate(mean, mean - half, mean + half)


def estimate_positive(values: Sequence[float | None]) -> Estimate:
    """Geometric mean and 95% confidence interval of independent positive values: the estimate of their logarithms, taken back.

    The interval of a time so never reaches below zero, and the ratio of two such means is the mean of the ratios.

    Parameters
    ----------
    values : sequence of float or None
        One per seed; None where the seed has no such value. A value of zero or less makes the estimate that of :func:`estimate`.

    Examples
    --------
    >>> estimate_positive([1.0, 4.0])
    Estimate(value=2.0..., low=0.00029..., high=13365...)
    >>> estimate_positive([5.0])
    Estimate(value=5.0, low=None, high=None)
    """
    if any(v is not None and v <= 0 for v in values):
        return estimate(values)
    if len(values) == 1:
        return Estimate(values[0])
    logs = estimate([None if v is None else math.log(v) for v in values])
    return Estimate(*(None if v is None else math.exp(v) for v in (logs.value, logs.low, logs.high)))


@dataclass(frozen=True, slots=True)
class Paired:
    """Two algorithms under the same seeds.

    Runs of one seed share what the seed draws (jitter, ties), so their difference varies less than either: the test is on differences.

    Attributes
    ----------
    change : Estimate
        Of a time: how many times as long, the geometric mean of the ratios. Of a count: how many more, the mean of the differences.
        None where a seed has no value.
    p : float or None
        Probability of a difference at least as large by chance (two-sided). None with fewer than two common seeds.
    """

    change: Estimate
    p: float | None

    def to_dict(self) -> dict[str, Any]:
        """As it stands in JSON."""
        return {"change": self.change.to_dict(), "p": self.p}


def paired_ratios(mine: Sequence[float | None], theirs: Sequence[float | None]) -> Paired:
    """Compare two sequences of positive values, pair by pair: Student's t over the logarithms of their ratios.

    Where a value is missing (the percentile fell on a response that was never completed) it counts as longer than any, and the
    sign test decides.

    Parameters
    ----------
    mine, theirs : sequence of float or None
        One value per seed, in the same order of seeds.

    Examples
    --------
    >>> found = paired_ratios([2.0, 2.2, 2.1], [1.0, 1.0, 1.0])
    >>> round(found.change.value, 2), found.p < 0.01
    (2.1, True)
    >>> paired_ratios([1.0], [2.0])
    Paired(change=Estimate(value=0.5, low=None, high=None), p=None)
    """
    pairs = list(zip(mine, theirs, strict=True))
    if any(a is None or b is None or a <= 0 or b <= 0 for a, b in pairs):
        more = sum((math.inf if a is None else a) > (math.inf if b is None else b) for a, b in pairs)
        less = sum((math.inf if a is None else a) < (math.inf if b is None else b) for a, b in pairs)
        return Paired(Estimate(None), sign_test(more, less) if len(pairs) > 1 else None)
    logs = [math.log(a / b) for a, b in pairs if a is not None and b is not None]
    return Paired(estimate_positive([math.exp(x) for x in logs]), _t_test(logs))


def weighted_ratios(strata: Sequence[tuple[float, Sequence[float | None], Sequence[float | None]]]) -> Paired:
    """Compare pairs of several strata, of which each counts by its weight and not by how many pairs it has.

    The estimate is the weighted mean of the strata's mean log ratios; its error is that of a stratified sample, with Satterthwaite's degrees of
    freedom (Satterthwaite 1946), rounded down. One stratum alone, a missing value, or a stratum of one pair: as :func:`paired_ratios` of all pairs.

    Parameters
    ----------
    strata : sequence of (float, sequence, sequence)
        Weight, and the values of both sides. What has no pair counts nothing.

    Examples
    --------
    >>> likely, unlikely = (0.9, [1.0, 1.1, 0.9], [2.0, 2.1, 1.9]), (0.1, [2.0, 2.1, 1.9], [2.0, 2.1, 1.9])
    >>> round(weighted_ratios([likely, unlikely]).change.value, 2)
    0.53
    >>> weighted_ratios([likely]) == paired_ratios(likely[1], likely[2])
    True
    """
    known = [(weight, mine, theirs) for weight, mine, theirs in strata if mine and weight > 0]
    flat = [[value for _, *sides in known for value in sides[side]] for side in (0, 1)]
    usable = all(value is not None and value > 0 for side in flat for value in side)
    if len(known) < 2 or not usable or any(len(mine) < 2 for _, mine, _ in known):
        return paired_ratios(*flat)
    total = math.fsum(weight for weight, _, _ in known)
    center, parts = 0.0, []
    for weight, mine, theirs in known:
        logs = [math.log(a / b) for a, b in zip(mine, theirs, strict=True) if a is not None and b is not None]
        mean, share = math.fsum(logs) / len(logs), weight / total
        variance = math.fsum((x - mean) ** 2 for x in logs) / (len(logs) - 1)
        center += share * mean
        parts.append((share**2 * variance / len(logs), len(logs) - 1))
    squared = math.fsum(part for part, _ in parts)
    error = math.sqrt(squared)
    if error <= 1e-12 * max(abs(center), 1e-300):
        exact = math.exp(center)
        return Paired(Estimate(exact, exact, exact), 1.0 if center == 0 else 0.0)
    spread = math.fsum(part**2 / degrees for part, degrees in parts)
    degrees = max(1, math.floor(squared**2 / spread)) if spread > 0 else sum(d for _, d in parts)
    half = student_t_975(degrees) * error
    change = Estimate(*(math.exp(x) for x in (center, center - half, center + half)))
    return Paired(change, student_t_two_sided(center / error, degrees))


def paired_differences(mine: Sequence[float], theirs: Sequence[float]) -> Paired:
    """Compare two sequences of counts, pair by pair: Student's t over their differences.

    Examples
    --------
    >>> paired_differences([3, 3, 3], [1, 1, 1]).change.value
    2.0
    """
    differences = [a - b for a, b in zip(mine, theirs, strict=True)]
    return Paired(estimate(differences), _t_test(differences))


def _t_test(values: Sequence[float]) -> float | None:
    """Two-sided p of a mean of zero. Values that do not vary are exact: 1 when they are zero, 0 otherwise."""
    n = len(values)
    if n < 2:
        return None
    mean = math.fsum(values) / n
    deviation = math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (n - 1))
    if deviation <= 1e-12 * abs(mean):
        return 1.0 if mean == 0 else 0.0
    return student_t_two_sided(mean / (deviation / math.sqrt(n)), n - 1)


def sign_test(more: int, less: int) -> float:
    """Two-sided p of the sign test: so many pairs with the first greater, so many with it less, ties left out.

    Examples
    --------
    >>> sign_test(5, 0), sign_test(1, 1)
    (0.0625, 1.0)
    """
    n, k = more + less, min(more, less)
    return min(1.0, 2 * sum(math.comb(n, i) for i in range(k + 1)) / 2**n) if n else 1.0


def holm(ps: Sequence[float | None]) -> list[float | None]:
    """Correct p values for their number (Holm 1979): the least is multiplied by how many there are, the next by one less, and so on.

    Examples
    --------
    >>> holm([0.01, 0.04, None, 0.03])
    [0.03, 0.06, None, 0.06]
    """
    order = sorted((p, i) for i, p in enumerate(ps) if p is not None)
    corrected: list[float | None] = [None] * len(ps)
    so_far = 0.0
    for place, (p, i) in enumerate(order):
        so_far = max(so_far, min(1.0, p * (len(order) - place)))
        corrected[i] = so_far
    return corrected


def extremes(values: Iterable[float | None]) -> tuple[float, float] | None:
    """Least and greatest of the values there are.

    Examples
    --------
    >>> extremes([2.0, None, 1.0]), extremes([None])
    ((1.0, 2.0), None)
    """
    known = [v for v in values if v is not None]
    return (min(known), max(known)) if known else None


def nearest_rank(ordered: Sequence[float], total: int, q: float) -> float | None:
    """The smallest value that at least a share `q` of `total` values does not exceed.

    `ordered` may hold fewer than `total` values: the rest are known only to be greater (responses that were not completed).

    Examples
    --------
    >>> nearest_rank([1.0, 2.0, 3.0, 4.0], 4, 0.5)
    2.0
    >>> nearest_rank([1.0, 2.0, 3.0], 4, 0.99) is None
    True
    """
    if total == 0:
        return None
    # Rounded first: 0.999 * 1000 is 999.0000000000001 in binary, and must be rank 999.
    rank = max(1, math.ceil(round(q * total, 9)))
    return ordered[rank - 1] if rank <= len(ordered) else None


# Two-sided 95% quantiles of Student's t for 1 to 30 degrees of freedom, as in any table.
_T_975 = (
    12.706205, 4.302653, 3.182446, 2.776445, 2.570582, 2.446912, 2.364624, 2.306004, 2.262157, 2.228139,
    2.200985, 2.178813, 2.160369, 2.144787, 2.131450, 2.119905, 2.109816, 2.100922, 2.093024, 2.085963,
    2.079614, 2.073873, 2.068658, 2.063899, 2.059539, 2.055529, 2.051831, 2.048407, 2.045230, 2.042272,
)  # fmt: skip
_Z_975 = 1.959964


def student_t_975(degrees: int) -> float:
    """97.5% quantile of Student's t.

    Above 30 degrees of freedom by the Cornish-Fisher expansion (Abramowitz and Stegun 26.7.5), right to 1e-5.

    Examples
    --------
    >>> round(student_t_975(4), 3), round(student_t_975(120), 4)
    (2.776, 1.9799)
    """
    if degrees < 1:
        raise ValueError("Student's t needs at least one degree of freedom")
    if degrees <= len(_T_975):
        return _T_975[degrees - 1]
    z, n = _Z_975, degrees
    return (
        z
        + (z**3 + z) / (4 * n)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * n**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * n**3)
    )


def student_t_two_sided(t: float, degrees: int) -> float:
    """Probability that Student's t is further from zero than `t` (Abramowitz and Stegun 26.7.3 and 26.7.4, exact).

    Examples
    --------
    >>> round(student_t_two_sided(2.776445, 4), 6), student_t_two_sided(0.0, 3)
    (0.05, 1.0)
    """
    if degrees < 1:
        raise ValueError("Student's t needs at least one degree of freedom")
    theta = math.atan(abs(t) / math.sqrt(degrees))
    sin, cos = math.sin(theta), math.cos(theta)
    odd = degrees % 2 == 1
    # The series of cos^2: from cos with factors 2/3, 4/5, ...; or from 1 with factors 1/2, 3/4, ...
    term = cos if odd else 1.0
    total = 0.0 if degrees == 1 else term
    for k in range(2 if odd else 1, degrees - 2, 2):
        term *= cos * cos * k / (k + 1)
        total += term
    inside = 2 / math.pi * (theta + sin * total) if odd else sin * total
    return max(0.0, 1.0 - inside)
