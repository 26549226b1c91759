"""How a series of the papers' figures is drawn: its colour, dash and mark, the same in a panel and in the legend."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from fanin.pictures.palette import PAPER


@dataclass(frozen=True, slots=True)
class Key:
    """How one series is drawn, and what the legend calls it: colour, dash and mark differ, so none depends on colour alone."""

    name: str
    colour: str
    dash: tuple[int, ...] = ()
    shape: str = ""
    hollow: bool = False
    width: float = 1.8
    kind: Literal["line", "bar", "cross"] = "line"


def mark_points(base: Any, key: Key) -> Any:
    """The marks of a series."""
    return base.mark_point(
        shape=key.shape,
        filled=True,
        fill=PAPER if key.hollow else key.colour,
        stroke=key.colour,
        strokeWidth=1.3,
        opacity=1,
        size=46 if key.width > 2.5 else 36,
    )


def mark_crosses(base: Any, colour: str) -> list[Any]:
    """The crosses of what was published."""
    shape = "M-1,-1L1,1M1,-1L-1,1"
    # What lies below is kept off by an edge of paper.
    return [
        base.mark_point(shape=shape, filled=False, stroke=PAPER, strokeWidth=5, opacity=1, size=44),
        base.mark_point(shape=shape, filled=False, stroke=colour, strokeWidth=2, opacity=1, size=44),
    ]
