"""The values of an axis: listed, evenly spaced, or drawn."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

from fanin.errors import ScenarioError

Value = str | int | float | bool
"""A value as a scenario takes it."""

WHOLE = {"p", "B"}
"""Units that come in whole numbers."""


@dataclass(frozen=True, slots=True)
class Range:
    """Values between two quantities of one unit, both included.

    Attributes
    ----------
    low, high : float
        In `unit`.
    unit : str
        As written, such as ``us``; empty for a plain number.
    log : bool
        Spaced evenly in the logarithm.
    whole : bool
        Rounded to whole numbers.
    """

    low: float
    high: float
    unit: str
    log: bool
    whole: bool

    @classmethod
    def of(cls, low: object, high: object, *, log: bool, where: str) -> Range:
        """From the two ends as written.

        Examples
        --------
        >>> Range.of("10p", "1000p", log=True, where="axis").points(3)
        ['10p', '100p', '1000p']
        >>> Range.of(1, 9, log=False, where="axis").points(5)
        [1, 3, 5, 7, 9]
        """
        (a, unit, a_whole), (b, other, b_whole) = _quantity(low, where), _quantity(high, where)
        if unit != other:
            raise ScenarioError(f"{where}: from {low} to {high} has two units; write both ends in the same")
        if not a < b:
            raise ScenarioError(f"{where}: from {low} to {high} holds nothing; the first must be less")
        if log and a <= 0:
            raise ScenarioError(f"{where}: a log range starts above 0, and this one at {low}")
        return cls(a, b, unit, log, unit in WHOLE or (not unit and a_whole and b_whole))

    def at(self, share: float) -> Value:
        """The value at this share of the way."""
        ratio, width = self.high / self.low if self.log else 0.0, self.high - self.low
        value = self.low * ratio**share if self.log else self.low + width * share
        number: float | int = round(value) if self.whole else float(f"{value:.6g}")
        # Never with an exponent, which quantities do not have.
        return f"{number:.12f}".rstrip("0").rstrip(".") + self.unit if self.unit else number

    def points(self, count: int) -> list[Value]:
        """So many values, evenly spaced; those that rounding makes equal come once."""
        shares = [i / (count - 1) for i in range(count)] if count > 1 else [0.5]
        return list(dict.fromkeys(self.at(share) for share in shares))


def _quantity(written: object, where: str) -> tuple[float, str, bool]:
    if isinstance(written, int | float) and not isinstance(written, bool):
        return float(written), "", isinstance(written, int)
    found = re.fullmatch(r"\s*([0-9.]+(?:e[+-]?[0-9]+)?)\s*([A-Za-z]*)\s*", str(written))
    try:
        if found and math.isfinite(float(found[1])):
            return float(found[1]), found[2], "." not in found[1]
    except ValueError:
        pass
    raise ScenarioError(f'{where}: {written!r} is no quantity; write a number with its unit, such as "20us"')


def drawn(ranges: Sequence[Range | Sequence[Value]], count: int, *, latin: bool, seed: int) -> list[tuple[Value, ...]]:
    """Points of a space, at random or as a Latin hypercube.

    Parameters
    ----------
    ranges : sequence
        Each axis: a range, or the values to choose from.
    count : int
        How many points.
    latin : bool
        Each axis is cut into `count` equal parts, and each part is used once.
    seed : int
        Of the draw.

    Examples
    --------
    >>> points = drawn([Range(0.0, 8.0, "", False, False)], 4, latin=True, seed=1)
    >>> sorted(int(value // 2) for (value,) in points)
    [0, 1, 2, 3]
    """
    source = random.Random(seed)
    columns = []
    for axis in ranges:
        if latin:
            shares = [(part + source.random()) / count for part in range(count)]
            source.shuffle(shares)
        else:
            shares = [source.random() for _ in range(count)]
        columns.append(
            [axis.at(s) if isinstance(axis, Range) else axis[min(int(s * len(axis)), len(axis) - 1)] for s in shares]
        )
    return list(zip(*columns, strict=True))
