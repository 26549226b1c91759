"""The legend of a figure: as part of the page, where it wraps, and as a strip above the panels of a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from markupsafe import Markup, escape

from fanin.papers.marks import Key, mark_crosses, mark_points
from fanin.pictures.palette import INK, PAPER

OUTLINES = {
    "circle": "M-3.2,0a3.2,3.2 0 1,0 6.4,0a3.2,3.2 0 1,0 -6.4,0",
    "square": "M-2.9,-2.9h5.8v5.8h-5.8z",
    "triangle-up": "M0,-3.7L3.7,2.9H-3.7z",
    "diamond": "M0,-4L4,0L0,4L-4,0z",
}
"""Of the marks of :class:`~fanin.papers.drawing.Key`, about as large as Vega draws them."""

SAMPLE, CHARACTER, GAP, ROW = 24, 6.0, 18, 18
"""Pixels of a strip: the sample of a line, about a letter of 11 points, between entries, and from row to row."""


def html(keys: Sequence[Key]) -> Markup:
    """Entries of a list.

    >>> html([Key("a < b", "#0072b2", kind="bar")])
    Markup('<li><svg viewBox="-13 -6 26 12" width="26" height="12" aria-hidden="true"><path d="M-5,-5h10v10h-10z" fill="#0072b2"/></svg>a &lt; b</li>')
    """
    return Markup("").join(
        Markup('<li><svg viewBox="-13 -6 26 12" width="26" height="12" aria-hidden="true">{}</svg>{}</li>').format(
            _symbol(key), escape(key.name)
        )
        for key in keys
    )


def _symbol(key: Key) -> Markup:
    if key.kind == "bar":
        return Markup('<path d="M-5,-5h10v10h-10z" fill="{}"/>').format(key.colour)
    if key.kind == "cross":
        edge = Markup('<path d="M-4,-4L4,4M4,-4L-4,4" fill="none" stroke="{}" stroke-width="5"/>').format(PAPER)
        cross = Markup('<path d="M-4,-4L4,4M4,-4L-4,4" fill="none" stroke="{}" stroke-width="2"/>').format(key.colour)
        return (_symbol(replace(key, kind="line")) + edge if key.dash else Markup()) + cross
    dash = " ".join(map(str, key.dash))
    line = Markup('<path d="M-12,0H12" fill="none" stroke="{}" stroke-width="{}" stroke-dasharray="{}"/>').format(
        key.colour, key.width, dash
    )
    if not key.shape:
        return line
    fill = PAPER if key.hollow else key.colour
    return line + Markup('<path d="{}" fill="{}" stroke="{}" stroke-width="1.3"/>').format(
        OUTLINES[key.shape], fill, key.colour
    )


def strip(keys: Sequence[Key], width: float) -> Any:
    """A chart as wide as `width` with as many rows as the entries need."""
    import altair as alt

    x = y = 0.0
    layers: list[Any] = []
    for key in keys:
        wide = SAMPLE + 8 + CHARACTER * len(key.name)
        if x and x + wide > width:
            x, y = 0.0, y + ROW
        middle = {"x": alt.value(x + SAMPLE / 2), "y": alt.value(y + ROW / 2)}
        base = alt.Chart(alt.Data(values=[{}]))
        dashed = key.kind == "cross" and key.dash
        if key.kind == "line" or dashed:
            rule = base.mark_rule(color=key.colour, strokeDash=list(key.dash) or [1, 0], strokeWidth=key.width)
            layers.append(rule.encode(x=alt.value(x), x2=alt.value(x + SAMPLE), y=alt.value(y + ROW / 2)))
        if key.kind == "bar":
            square = base.mark_point(shape="square", size=100, filled=True, color=key.colour, opacity=1)
            layers.append(square.encode(**middle))
        elif key.kind == "cross":
            layers += mark_crosses(base.encode(**middle), key.colour)
        elif key.shape:
            layers.append(mark_points(base.encode(**middle), key))
        words = base.mark_text(align="left", baseline="middle", fontSize=11, color=INK, text=key.name)
        layers.append(words.encode(x=alt.value(x + SAMPLE + 6), y=alt.value(y + ROW / 2)))
        x += wide + GAP
    return alt.layer(*layers).properties(width=width, height=y + ROW)
