"""Charts that several papers' figures are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

if TYPE_CHECKING:
    import altair as alt

COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f", "#000000"]
"""Okabe and Ito's, which survive colour blindness."""


def rows(columns: dict[str, list[Any]]) -> pl.DataFrame:
    """A frame of published points."""
    return pl.DataFrame(columns)


def log_y() -> alt.Scale:
    """A logarithmic axis."""
    import altair as alt

    return alt.Scale(type="log", nice=False)


def series(
    data: pl.DataFrame,
    x: str,
    y: str,
    colour: str,
    *,
    x_title: str | None = None,
    y_title: str | None = None,
    panel: str | None = None,
    published: pl.DataFrame | None = None,
    log_x: bool = False,
    scale: alt.Scale | None = None,
    points: bool | None = None,
    columns: int = 3,
) -> alt.TopLevelMixin:
    """Lines over a numeric axis.

    Parameters
    ----------
    data : polars.DataFrame
        Sorted by `x` within each line.
    x, y, colour : str
        Columns.
    panel : str, optional
        A column with one picture for each of its values.
    published : polars.DataFrame, optional
        Points with the same columns, drawn as black crosses with their words beside them.
    points : bool, optional
        Mark the points of the lines; where there are few unless said.
    """
    import altair as alt

    names = data[colour].unique(maintain_order=True).sort().to_list()
    marks = points if points is not None else data.height <= 400
    width = 520 if panel is None else 290
    base = alt.Chart(alt.Data(values=data.select(c for c in dict.fromkeys((x, y, colour, panel)) if c).to_dicts()))
    horizontal = alt.X(
        f"{x}:Q", title=x_title or x, scale=alt.Scale(type="log", nice=False) if log_x else alt.Undefined
    )
    vertical = alt.Y(f"{y}:Q", title=y_title or y, scale=scale if scale is not None else alt.Undefined)
    lines = base.mark_line(point={"size": 22} if marks else False, strokeWidth=1.6, clip=True).encode(
        x=horizontal,
        y=vertical,
        color=alt.Color(f"{colour}:N", title=None, scale=alt.Scale(domain=names, range=COLOURS * 3)),
    )
    layers: list[Any] = [lines]
    if published is not None and panel is None:
        layers += _published(published, x, y, colour)
    if panel is None:
        return alt.layer(*layers).properties(width=width, height=300)
    parts = []
    for value in data[panel].unique(maintain_order=True).to_list():
        layer = [lines.transform_filter(alt.FieldEqualPredicate(field=panel, equal=value))]
        if published is not None:
            layer += _published(published, x, y, colour)
        parts.append(
            alt.layer(*layer).properties(
                width=width, height=240, title=f"{panel}: {value}" if not isinstance(value, str) else value
            )
        )
    together: alt.TopLevelMixin = alt.concat(*parts, columns=columns).resolve_scale(color="shared")
    return together


def _published(points: pl.DataFrame, x: str, y: str, words: str) -> list[Any]:
    import altair as alt

    layers: list[Any] = []
    for number, point in enumerate(points.to_dicts()):
        base = alt.Chart(alt.Data(values=[point])).encode(x=f"{x}:Q", y=f"{y}:Q")
        layers.append(base.mark_point(shape="cross", color="black", size=70, filled=True))
        # Words of neighbouring points stand one below the other.
        layers.append(base.mark_text(align="left", dx=7, dy=-7 + 14 * number, fontSize=10).encode(text=f"{words}:N"))
    return layers


def bars(
    data: pl.DataFrame,
    x: str,
    y: str,
    colour: str,
    *,
    y_title: str | None = None,
    panel: str | None = None,
    columns: int = 4,
    width: int = 150,
) -> alt.TopLevelMixin:
    """Bars side by side, one group for each value of `x`, with a picture and an axis of its own for each value of `panel`."""
    import altair as alt

    def one(rows: pl.DataFrame, title: str | None, width: int) -> Any:
        chosen = rows.select(c for c in dict.fromkeys((x, y, colour)) if c)
        encoded = alt.Chart(alt.Data(values=chosen.to_dicts())).encode(
            x=alt.X(f"{x}:N", title=None, sort=None, axis=alt.Axis(labelAngle=0)),
            xOffset=alt.XOffset(f"{colour}:N", sort=None),
            y=alt.Y(f"{y}:Q", title=y_title or y),
            color=alt.Color(f"{colour}:N", title=None, sort=None, scale=alt.Scale(range=COLOURS)),
        )
        return encoded.mark_bar().properties(width=width, height=220, **({"title": title} if title else {}))

    if panel is None:
        chart: alt.TopLevelMixin = one(data, None, max(300, 110 * data[x].n_unique()))
        return chart
    parts = [
        one(data.filter(pl.col(panel) == value), str(value), width) for value in data[panel].unique(maintain_order=True)
    ]
    together: alt.TopLevelMixin = alt.concat(*parts, columns=columns).resolve_scale(color="shared", y="independent")
    return together
