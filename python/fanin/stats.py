"""The statistics of a comparison: order statistics per run, Student's t over runs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Estimate:
    """A statistic over seeds.

    Attributes
    ----------
    value : float or None
        Mean of the per-seed values. None when a seed gave none (the percentile fell on a response that was never completed).
    low, high : float or None
        95% confidence interval, Student's t over the per-seed values. None with fewer than two seeds.
    """

    value: float | None
    low: float | None = None
    high: float | None = None

    def to_dict(self) -> dict[str, float | None]:
        """As it stands in JSON."""
        return {"value": self.value, "low": self.low, "high": self.high}


def estimate(values: Sequence[float | None]) -> Estimate:
    """Mean and 95% confidence interval of independent values, one per seed.

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
