"""What the papers' figures are drawn with: axes, lines, bars, and marks for what was published, in one hand for all papers.

A figure is a list of panels with one legend (:mod:`fanin.papers.legend`). The page lays the panels out for its width; a file on its
own has them in rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import polars as pl

from fanin.papers import legend
from fanin.papers.marks import Key as Key
from fanin.papers.marks import mark_crosses, mark_points
from fanin.pictures.palette import BLUE as BLUE
from fanin.pictures.palette import GREEN as GREEN
from fanin.pictures.palette import GREY as GREY
from fanin.pictures.palette import HAIR as HAIR
from fanin.pictures.palette import INK as INK
from fanin.pictures.palette import MUTED as MUTED
from fanin.pictures.palette import ORANGE as ORANGE
from fanin.pictures.palette import ORDERED as ORDERED
from fanin.pictures.palette import PAPER as PAPER
from fanin.pictures.palette import PURPLE as PURPLE
from fanin.pictures.palette import SKY as SKY
from fanin.pictures.palette import VERMILION as VERMILION
from fanin.statistics.frames import thin

# The page gives each of these names a dark twin (gallery.css).

WIDTH, HEIGHT = 320, 200
"""Pixels of a panel: three stand beside each other on a desk, one fits a telephone."""

FONT = "Liberation Sans, Arial, Helvetica, sans-serif"

CONFIG: dict[str, Any] = {
    "font": FONT,
    "background": None,
    "view": {"stroke": None},
    "concat": {"spacing": 22},
    "axis": {
        "labelFontSize": 11,
        "titleFontSize": 11.5,
        "titleFontWeight": "normal",
        "titleColor": INK,
        "labelColor": MUTED,
        "gridColor": HAIR,
        "gridWidth": 0.8,
        "domainColor": MUTED,
        "tickColor": MUTED,
        "tickSize": 4,
        "labelFlush": False,
        "labelLimit": 160,
        "titlePadding": 7,
    },
    "axisX": {"tickCount": 6},
    "axisY": {"tickCount": 5},
}


CROSS = Key("published", INK, kind="cross")
RULE = Key("published", MUTED, dash=(4, 3), width=1.2)
BOTH = Key("published", INK, dash=(4, 3), width=1.2, kind="cross")
"""Legend entries of :class:`Published`: crosses, dashed lines, or both."""

RENO = Key("TCP Reno", INK, shape="circle", width=2.2)
NEWRENO = replace(RENO, name="NewReno")
CUBIC = Key("CUBIC", PURPLE, shape="square")
DCTCP = Key("DCTCP", BLUE, shape="square", width=2.8)
L2DCT = Key("L2DCT", GREEN, (6, 3), "diamond", hollow=True)
OWN = Key("", VERMILION, shape="triangle-up")
"""What a paper itself proposes has one colour in all of them; a paper gives it its name."""

FLOWS = [Key(f"flow {n + 1}", colour, width=1.1) for n, colour in enumerate((BLUE, VERMILION, GREEN, PURPLE, ORANGE))]
"""Of a run's flows, where they are drawn one by one."""


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis of a panel.

    Attributes
    ----------
    column : str
        What is drawn along it.
    title : str
        With the unit.
    domain : tuple, optional
        First and last value; from the data unless given.
    ticks : sequence, optional
        Where labels stand; for ``"points"`` the labels themselves, in order.
    kind : str
        ``"symlog"`` is logarithmic above 1 and has a place for 0; ``"points"`` are words at equal distances.
    format : str
        Of the labels, as d3-format has it.
    """

    column: str
    title: str = ""
    domain: tuple[float, float] | None = None
    ticks: Sequence[float | str] | None = None
    kind: Literal["linear", "log", "symlog", "points"] = "linear"
    format: str | None = None


@dataclass(frozen=True, slots=True)
class Published:
    """What the paper states: a cross where it gives both numbers, a dashed line across where it gives one, a stretch with `end`.

    The word of a line across may stand ``"outside"``, right of the plot.
    """

    x: float | str | None = None
    y: float | None = None
    label: str = ""
    colour: str = MUTED
    end: float | str | None = None
    align: Literal["left", "right", "center", "outside"] = "left"
    dx: float = 6
    dy: float = -6


@dataclass(frozen=True, slots=True)
class Figure:
    """Panels with a legend."""

    parts: list[Any]
    keys: list[Key] = field(default_factory=list)
    columns: int = 1

    def chart(self) -> Any:
        """All of it as one chart, for a file."""
        import altair as alt

        rows = [self.parts[i : i + self.columns] for i in range(0, len(self.parts), self.columns)]
        # Each panel has scales of its own: groups of bars differ in number.
        own: dict[str, Any] = {"color": "independent", "xOffset": "independent"}
        beside = [alt.hconcat(*row).resolve_scale(**own) for row in rows]
        grid = alt.vconcat(*beside).resolve_scale(**own)
        if not self.keys:
            return grid
        return alt.vconcat(
            legend.strip(self.keys, min(self.columns, len(self.parts)) * (WIDTH + 70) - 40), grid, spacing=10
        )


def lines(
    rows: pl.DataFrame,
    x: Axis,
    y: Axis,
    by: str,
    keys: Mapping[Any, Key],
    *,
    title: str = "",
    published: Sequence[Published] = (),
    step: bool = False,
    clip: bool = False,
    width: int = WIDTH,
    height: int = HEIGHT,
) -> Any:
    """Lines of numbers, those of later keys above those of earlier ones.

    Parameters
    ----------
    rows : polars.DataFrame
        Sorted by `x` within each line.
    by : str
        Column whose values choose the key.
    keys : mapping
        What to draw; values that do not occur are left out.
    step : bool
        Hold each value until the next.
    """
    layers: list[Any] = []
    for value, key in keys.items():
        part = rows.filter(pl.col(by) == value).select(x.column, y.column)
        if part.is_empty():
            continue
        base = _over(_finite(part), x, y)
        layers.append(
            base.mark_line(
                color=key.colour,
                strokeDash=list(key.dash) or [1, 0],
                strokeWidth=key.width,
                interpolate="step-after" if step else "linear",
                clip=clip,
            )
        )
        if key.shape:
            layers.append(mark_points(base, key))
    return _panel([*_behind(published, x, y), *layers, *_published(published, x, y)], title, width, height)


def bars(
    rows: pl.DataFrame,
    x: str,
    y: Axis,
    by: str,
    keys: Mapping[Any, Key],
    *,
    groups: Sequence[str] | None = None,
    title: str = "",
    published: Mapping[tuple[str, Any], float] | None = None,
    marks: Sequence[Published] = (),
    values: str | None = None,
    beside: bool = True,
    width: int = WIDTH,
    height: int = HEIGHT,
) -> Any:
    r"""Bars side by side, one group for each value of `x`.

    Parameters
    ----------
    groups : sequence, optional
        Values of `x` in order; a ``\n`` in one begins a new line of its label.
    published : mapping, optional
        Values by group and key, drawn as crosses at the bars.
    values : str, optional
        Write each value above its bar in this format.
    beside : bool
        False where a group has one bar, whose key only colours it.
    """
    import altair as alt

    order = list(keys)
    names = list(groups) if groups is not None else rows[x].unique(maintain_order=True).to_list()
    shown = rows.filter(pl.col(by).is_in(order), pl.col(x).is_in(names)).select(x, y.column, by)
    place: dict[str, Any] = {
        "x": alt.X(
            f"{x}:N",
            title=None,
            sort=names,
            scale=alt.Scale(paddingInner=0.28, paddingOuter=0.14),
            axis=alt.Axis(labelAngle=0, labelExpr="split(datum.label, '\\n')", ticks=False, labelPadding=6),
        ),
    }
    if beside:
        place["xOffset"] = alt.XOffset(f"{by}:N", sort=order, scale=alt.Scale(domain=order))
    base = alt.Chart(alt.Data(values=_finite(shown))).encode(**place, y=_channel(y, alt.Y))
    colour = alt.Color(f"{by}:N", legend=None, scale=alt.Scale(domain=order, range=[keys[k].colour for k in order]))
    layers: list[Any] = [base.mark_bar().encode(color=colour)]
    if published:
        crosses = [{x: group, by: key, y.column: value} for (group, key), value in published.items() if group in names]
        over = alt.Chart(alt.Data(values=crosses)).encode(**place, y=_channel(y, alt.Y))
        layers += mark_crosses(over, INK)
    horizontal = Axis(x, kind="points", ticks=names)
    layers += [*_behind(marks, horizontal, y), *_published(marks, horizontal, y)]
    if values:
        # Where a cross stands, the two are compared by eye.
        free = [row for row in _finite(shown) if (row[x], row[by]) not in (published or {})]
        over = alt.Chart(alt.Data(values=free)).encode(
            **place, y=_channel(y, alt.Y), text=alt.Text(f"{y.column}:Q", format=values)
        )
        layers.append(over.mark_text(dy=-6, fontSize=9.5, color=PAPER, stroke=PAPER, strokeWidth=3, strokeJoin="round"))
        layers.append(over.mark_text(dy=-6, fontSize=9.5, color=MUTED))
    return _panel(layers, title, width, height)


def samples(
    parts: Mapping[Key, pl.Series], x: Axis, *, title: str = "", published: Sequence[Published] = (), steps: int = 300
) -> Any:
    """Empirical distribution functions, each thinned to a number of steps."""
    shares = pl.Series("share", [i / steps for i in range(steps + 1)])
    frames = []
    for number, values in enumerate(parts.values()):
        ordered = values.drop_nulls().sort().cast(pl.Float64).alias(x.column)
        places = [round(i * (ordered.len() - 1) / steps) for i in range(steps + 1)]
        frames.append(pl.DataFrame([ordered.gather(places), shares]).with_columns(part=pl.lit(number)))
    plain = {number: replace(key, shape="") for number, key in enumerate(parts)}
    return lines(pl.concat(frames), x, Axis("share", "CDF", (0, 1)), "part", plain, title=title, published=published)


def surface(rows: pl.DataFrame, x: Axis, y: Axis, value: str, steps: Mapping[float, Key], *, title: str = "") -> Any:
    """A quantity over a grid, in steps: cells at or above a step have its colour, those below all of them none.

    Parameters
    ----------
    rows : polars.DataFrame
        One row per point of a grid whose lines are at equal distances along both axes.
    value : str
        Column that is drawn.
    steps : mapping
        Least value of each step and how the legend shows it, in rising order.
    """
    import altair as alt

    def edges(axis: Axis) -> tuple[pl.Expr, pl.Expr]:
        places = rows[axis.column].unique().sort().cast(pl.Float64)
        half = float(places.diff().min() or 1.0) / 2  # type: ignore[arg-type]
        at = pl.col(axis.column).cast(pl.Float64)
        return (at - half).alias(axis.column), (at + half).alias(f"{axis.column}_end")

    cells = rows.with_columns(*edges(x), *edges(y))
    layers: list[Any] = []
    bounds = [*steps, math.inf]
    for (least, key), above in zip(steps.items(), bounds[1:], strict=True):
        part = cells.filter(pl.col(value) >= least, pl.col(value) < above)
        if not part.is_empty():
            base = _over(part.select(x.column, f"{x.column}_end", y.column, f"{y.column}_end").to_dicts(), x, y)
            # Cells touch: without an edge of their own colour a renderer leaves hairlines between them.
            cell = base.mark_rect(color=key.colour, stroke=key.colour, strokeWidth=0.6, clip=True)
            layers.append(cell.encode(x2=alt.X2(f"{x.column}_end"), y2=alt.Y2(f"{y.column}_end")))
    return _panel(layers, title, WIDTH, HEIGHT)


def trace(
    rows: pl.DataFrame, value: Axis, key: Key, *, until: float, title: str = "", published: Sequence[Published] = ()
) -> Any:
    """One quantity of one run against time, thinned without losing a peak; `rows` has ``time_ms``."""
    shown = seconds(rows, value.column, 0.0, until).with_columns(one=pl.lit(0))
    time = Axis("s", "time (s)", (0, until))
    return lines(shown, time, value, "one", {0: key}, title=title, published=published, step=True, clip=True)


def seconds(
    rows: pl.DataFrame, value: str, since: float, until: float, by: Sequence[str] = (), points: int = 360
) -> pl.DataFrame:
    """What was between two times, thinned, with the time in seconds as ``s``; the last value before them opens it."""
    milliseconds = pl.col("time_ms")
    ordered = rows.sort("time_ms", maintain_order=True).with_columns(_one=pl.lit(0))
    lines_by = [*by, "_one"]
    before = ordered.filter(milliseconds < since * 1e3).group_by(lines_by, maintain_order=True).last()
    inside = ordered.filter(milliseconds.is_between(since * 1e3, until * 1e3))
    kept = pl.concat([before.select(inside.columns).with_columns(time_ms=pl.lit(since * 1e3)), inside]).sort(
        "time_ms", maintain_order=True
    )
    thinned = thin(kept, "time_ms", value, by=lines_by, points=points)
    return thinned.with_columns(s=milliseconds / 1e3)


def shares_over_time(
    throughput: pl.DataFrame,
    panels: Mapping[str, str],
    *,
    bin_ms: float,
    until: float,
    names: str = "flow {}",
) -> Figure:
    """Throughput of each flow of the first seed against time, one panel per algorithm.

    An interval in which a flow that sends before and after delivered nothing counts as zero.

    Parameters
    ----------
    throughput : polars.DataFrame
        ``cc``, ``seed``, ``flow``, ``time_ms`` (the end of an interval), ``bytes``.
    panels : mapping
        Title of each algorithm's panel.
    bin_ms : float
        Length of the intervals drawn.
    until : float
        End of the time axis, in seconds.
    names : str
        What the legend calls a flow.
    """
    first = throughput.filter(pl.col("seed") == pl.col("seed").min())
    bins = first.with_columns(bin=((pl.col("time_ms") - 1e-3) / bin_ms).floor().cast(pl.Int64))
    sums = bins.group_by("cc", "flow", "bin").agg(mbps=pl.col("bytes").sum() * 8 / bin_ms / 1e3)
    spans = sums.group_by("cc", "flow").agg(begin=pl.col("bin").min(), end=pl.col("bin").max() + 1)
    spans = spans.select("cc", "flow", bin=pl.int_ranges("begin", "end"))
    whole = spans.explode("bin").join(sums, on=["cc", "flow", "bin"], how="left").sort("cc", "flow", "bin")
    shown = whole.with_columns(pl.col("mbps").fill_null(0.0), s=(pl.col("bin") + 0.5) * bin_ms / 1e3)
    most = float(shown.filter(pl.col("cc").is_in(list(panels)))["mbps"].max())  # type: ignore[arg-type]
    step = 10 ** math.floor(math.log10(most)) / 2
    time = Axis("s", "time (s)", (0, until))
    rate = Axis("mbps", "throughput (Mbps)", (0, math.ceil(1.02 * most / step) * step))
    parts = [
        lines(
            shown.filter(pl.col("cc") == cc),
            time,
            rate,
            "flow",
            dict(enumerate(FLOWS)),
            title=title,
            clip=True,
        )
        for cc, title in panels.items()
    ]
    return Figure(parts, [replace(key, name=names.format(n + 1)) for n, key in enumerate(FLOWS)], 2)


# ---- below the panels


def _channel(axis: Axis, side: Any) -> Any:
    """The axis as Altair has it."""
    import altair as alt

    title = axis.title or None
    if axis.kind == "points":
        words = alt.Axis(labelAngle=0, grid=False, labelExpr="split(datum.label, '\\n')")
        return side(
            f"{axis.column}:O",
            title=title,
            sort=list(axis.ticks or []),
            scale=alt.Scale(type="point", padding=0.35),
            axis=words,
        )
    scale: dict[str, Any] = {"nice": axis.domain is None and axis.kind == "linear"}
    if axis.kind != "linear":
        scale["type"] = axis.kind
    if axis.domain is not None:
        scale["domain"] = list(axis.domain)
    options: dict[str, Any] = {}
    if axis.ticks is not None:
        options["values"] = list(axis.ticks)
        # Vega drops every other of the values that exceed the count of the configuration.
        options["tickCount"] = len(axis.ticks) + 1
        # Each of them, even where Vega would rather thin a logarithmic axis.
        options["labelOverlap"] = False
    if axis.format is not None:
        options["format"] = axis.format
    return side(f"{axis.column}:Q", title=title, scale=alt.Scale(**scale), axis=alt.Axis(**options))


def _finite(rows: pl.DataFrame) -> list[dict[str, Any]]:
    """Rows for a chart: what never happened is infinitely much to the evaluations, and a gap to a drawing."""
    floats = [name for name, kind in rows.schema.items() if kind.is_float()]
    return rows.with_columns(pl.when(pl.col(name).is_finite()).then(pl.col(name)) for name in floats).to_dicts()


def _over(data: list[dict[str, Any]], x: Axis, y: Axis) -> Any:
    import altair as alt

    return alt.Chart(alt.Data(values=data)).encode(x=_channel(x, alt.X), y=_channel(y, alt.Y))


def _panel(layers: list[Any], title: str, width: int, height: int) -> Any:
    import altair as alt

    if title:
        # As a mark: at the same place whatever the axis beside it, so that the panels of a row stand on one line.
        words: dict[str, Any] = {
            "x": 0,
            "y": -15,
            "align": "left",
            "baseline": "middle",
            "fontSize": 12,
            "fontWeight": 600,
            "color": INK,
        }
        layers = [*layers, alt.Chart(alt.Data(values=[{}])).mark_text(text=title, **words)]
    return alt.layer(*layers).properties(width=width, height=height)


def _behind(marks: Sequence[Published], x: Axis, y: Axis) -> list[Any]:
    """The lines across, which the data may hide."""
    import altair as alt

    layers = []
    for mark in marks:
        dashed: dict[str, Any] = {"strokeDash": [4, 3], "color": mark.colour, "strokeWidth": 1.2}
        if mark.end is not None:
            ends = [{x.column: mark.x, y.column: mark.y}, {x.column: mark.end, y.column: mark.y}]
            layers.append(_over(ends, x, y).mark_line(**{**dashed, "strokeWidth": 2.5}))
        elif mark.x is None:
            chart = alt.Chart(alt.Data(values=[{y.column: mark.y}]))
            layers.append(chart.mark_rule(**dashed).encode(y=_channel(y, alt.Y)))
        elif mark.y is None:
            chart = alt.Chart(alt.Data(values=[{x.column: mark.x}]))
            layers.append(chart.mark_rule(**dashed).encode(x=_channel(x, alt.X)))
    return layers


def _published(marks: Sequence[Published], x: Axis, y: Axis) -> list[Any]:
    """Crosses and words, above the data."""
    import altair as alt

    layers: list[Any] = []
    for mark in marks:
        here = {x.column: mark.x, y.column: mark.y}
        base = alt.Chart(alt.Data(values=[here]))
        placed: dict[str, Any] = {}
        fixed: dict[str, Any] = {}
        if mark.x is None:
            fixed["x"] = 0 if mark.align == "left" else "width"
        else:
            placed["x"] = _channel(x, alt.X)
        if mark.y is None:
            # Beside the upper end of an upright line.
            fixed["y"] = 0
        else:
            placed["y"] = _channel(y, alt.Y)
        if mark.x is not None and mark.y is not None and mark.end is None:
            layers += mark_crosses(base.encode(**placed), mark.colour)
        if mark.label:
            outside = mark.align == "outside"
            words: dict[str, Any] = {
                "align": "left" if outside else mark.align,
                "baseline": "middle",
                "dx": -abs(mark.dx) if mark.align == "right" else mark.dx,
                "dy": 0 if outside else mark.dy,
                "fontSize": 10.5,
                "text": mark.label,
                **fixed,
            }
            halo = base.mark_text(**words, stroke=PAPER, strokeWidth=3.5, strokeJoin="round", color=PAPER)
            layers += [halo.encode(**placed), base.mark_text(**words, color=mark.colour).encode(**placed)]
    return layers
