"""The picture of the capture's rounds: who was asked when, and which answer was the last."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fanin.comparison.result import CompareResult

WIDTH, ROW, LEFT, BELOW = 1080, 12, 40, 34
"""Pixels: the plot, a round, the numbers of rounds, the axis."""

OUTLIER = 20
"""A round longer than so many medians would squeeze all others: it is cut at the edge, and said to be."""


def picture(result: CompareResult) -> dict[str, Any] | None:
    """Positions in the drawing, one row per round; None without rounds.

    Returns
    -------
    dict or None
        ``width``, ``height``, ``base`` (pixels), ``rows`` (``y``, ``asked``, ``answers``, ``slowest``, ``slowest_ms``, ``cut``), ``ticks``
        (``x``, ``label``).
    """
    rounds = [each for each in result.captured_rounds if each]
    if not rounds:
        return None
    longest = [max(answered for _, answered in each) for each in rounds]
    shown = [took for took in longest if took <= OUTLIER * median(longest)]
    end = 1.05 * max(shown) or 1.0

    def at(ms: float) -> float:
        return round(LEFT + (WIDTH - LEFT) * min(ms / end, 1.0), 1)

    rows = [
        {
            "y": ROW * n + ROW,
            "asked": [at(asked) for asked, _ in each],
            "answers": [at(answered) for _, answered in each],
            "slowest": at(took),
            "slowest_ms": took,
            "cut": took > end,
        }
        for n, (each, took) in enumerate(zip(rounds, longest, strict=True))
    ]
    step = _step(end)
    ticks = [{"x": at(n * step), "label": f"{n * step:g}"} for n in range(int(end / step) + 1)]
    base = ROW * (len(rows) + 1)
    return {"width": WIDTH, "height": base + BELOW, "base": base, "rows": rows, "ticks": ticks}


def _step(end: float) -> float:
    """Between two ticks: 1, 2 or 5 of a power of ten, six ticks or a few more.

    Examples
    --------
    >>> _step(5.4), _step(0.31)
    (1.0, 0.05)
    """
    power = 1e-6
    while True:
        for factor in (1, 2, 5):
            if end / (factor * power) <= 8:
                return float(f"{factor * power:.3g}")
        power *= 10
