"""The figures as Altair charts.

Each chart reads a named table, so the page can put what the reader chose into it. A chart states its height, the page its width, and a
colour may be the name of one of the page's variables (``--muted``), so that figures follow its light and dark.
"""

from __future__ import annotations

from typing import Any

import altair as alt

DASHES = ([1, 0], [7, 3], [2, 3])
"""Solid for the first hues of the palette, then the same hues dashed, then dotted."""

HUES = 8
"""Hues of the page's palette (``--hue-1`` to ``--hue-8`` in page.css)."""


def specs(names: list[str]) -> dict[str, Any]:
    """Every figure of the page as Vega-Lite, by name."""
    figures = {
        "bars": bars(names),
        "cdf": curves(names, tail=False),
        "tail": curves(names, tail=True),
        "responses": responses(names),
        "queue": queue(names),
        "window": window(names),
        "sizes": train_curve("sizes", "train size (bytes)", "~s"),
        "gaps": train_curve("gaps", "gap before a train (ms)", "~g"),
    }
    return {name: _without_schema(chart.to_dict()) for name, chart in figures.items()}


def bars(names: list[str]) -> Any:
    """One statistic of every algorithm with its confidence interval; table ``estimates``, of one statistic."""
    base = alt.Chart(alt.NamedData("estimates")).encode(
        y=alt.Y(
            "cc:N",
            sort=names,
            title=None,
            axis=alt.Axis(
                ticks=False,
                domain=False,
                labelPadding=8,
                labelLimit=220,
                labelFont="--mono",
                labelFontSize=12.5,
                labelColor="--ink",
            ),
        ),
    )
    dimmed = alt.condition("datum.shown", alt.value(1.0), alt.value(0.3))
    time = alt.X(
        "value:Q",
        title="completion time (ms)",
        scale=alt.Scale(domain=[0, alt.ExprRef("greatest")], nice=False),
        axis=alt.Axis(tickCount=6),
    )
    body = base.mark_bar(height=alt.RelativeBandSize(0.62)).encode(
        x=time, color=_color(names), opacity=dimmed, tooltip=_estimate_tooltip()
    )
    whisker = base.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=1.5).encode(x="low:Q", x2="high:Q")
    caps = [
        base.transform_filter("isValid(datum.low)").mark_tick(size=7, thickness=1.5).encode(x=f"{end}:Q")
        for end in ("low", "high")
    ]
    usual = (
        alt.Chart(alt.NamedData("estimates"))
        .transform_filter("datum.usual && isValid(datum.value)")
        .mark_rule(strokeDash=[3, 3], strokeWidth=1)
        .encode(x="value:Q")
    )
    text = base.mark_text(align="left", baseline="middle", dx=8).encode(x=alt.X("reach:Q"), text="label:N")
    greatest = alt.param(name="greatest", value=1)
    return alt.layer(usual, body, whisker, *caps, text).add_params(greatest).properties(height=26 * len(names))


def curves(names: list[str], *, tail: bool) -> Any:
    """Completion-time distributions, or the share of responses beyond each time; table ``curves``. The p99 is drawn across."""
    if tail:
        y = alt.Y(
            "beyond:Q",
            title="share that takes longer",
            scale=alt.Scale(type="log", domain=[alt.ExprRef("least"), 1], nice=False),
            axis=_decades("~%"),
        )
        level = 0.01
    else:
        y = alt.Y(
            "share:Q",
            title="share done",
            scale=alt.Scale(domain=[0, 1]),
            axis=alt.Axis(format="%", values=[0, 0.25, 0.5, 0.75, 0.9, 1]),
        )
        level = 0.99
    table = alt.NamedData("curves")
    lines = (
        alt.Chart(table)
        .mark_line(interpolate="step-before" if tail else "step-after", strokeWidth=2, clip=True)
        .encode(
            x=alt.X("ms:Q", title="completion time (ms)", scale=alt.Scale(type="log", nice=False), axis=_decades("~g")),
            y=y,
            color=_color(names),
            strokeDash=_dash(names),
        )
    )
    layers = alt.layer(lines, *_p99(table, names, level, below=not tail))
    return layers.add_params(alt.param(name="least", value=1e-4)).properties(height=340)


def _p99(table: Any, names: list[str], level: float, *, below: bool) -> tuple[Any, Any, Any]:
    """The level of the p99: a rule, its label above or below it, and where each algorithm's curve crosses it."""
    rule = (
        alt.Chart(alt.InlineData(values=[{"level": level}]))
        .mark_rule(strokeDash=[2, 2], strokeWidth=1)
        .encode(y="level:Q")
    )
    label = (
        alt.Chart(alt.InlineData(values=[{"level": level}]))
        .mark_text(
            align="left",
            baseline="top" if below else "bottom",
            dx=4,
            dy=4 if below else -3,
            text="p99",
            fontWeight="bold",
        )
        .encode(y="level:Q", x=alt.value(0))
    )
    # The nearest rank, as in the ranking: `beyond` counts the response itself too, so by it the next one would be taken.
    crossing = (
        alt.Chart(table)
        .transform_filter("datum.share >= 0.99")
        .transform_aggregate(ms="min(ms)", groupby=["cc"])
        .transform_calculate(level=str(level))
        .mark_point(filled=True, size=70, opacity=1)
        .encode(
            x="ms:Q",
            y="level:Q",
            color=_color(names),
            tooltip=[
                alt.Tooltip("cc:N", title="algorithm"),
                alt.Tooltip("ms:Q", title="p99 of all seeds (ms)", format=".4~g"),
            ],
        )
    )
    return rule, label, crossing


def responses(names: list[str]) -> Any:
    """Each response at its release, over the whole run; tables ``responses`` and ``span``, the span of time that other figures show."""
    scale = alt.Scale(domain=[0, alt.ExprRef("end_ms")], nice=False)
    chosen = alt.Chart(alt.NamedData("span")).mark_rect(opacity=0.16, color="--hue-1").encode(x="from:Q", x2="to:Q")
    points = (
        alt.Chart(alt.NamedData("responses"))
        .mark_point(filled=True, size=16, opacity=0.6, clip=True)
        .encode(
            x=alt.X("ms:Q", title="released at (ms)", scale=scale, axis=alt.Axis(format="~r", tickCount=10)),
            y=alt.Y("completion:Q", title="completion (ms)", scale=alt.Scale(type="log"), axis=_decades("~g")),
            color=_color(names),
            shape=alt.Shape(
                "outcome:N",
                scale=alt.Scale(domain=["done", "unfinished"], range=["circle", "triangle-up"]),
                legend=None,
            ),
            size=alt.condition("datum.timeouts > 0", alt.value(34), alt.value(14)),
            tooltip=[
                alt.Tooltip("cc:N", title="algorithm"),
                alt.Tooltip("connection:N"),
                alt.Tooltip("bytes:Q", format=","),
                alt.Tooltip("ms:Q", title="released at (ms)", format=".3f"),
                alt.Tooltip("completion:Q", title="completion (ms)", format=".4~g"),
                alt.Tooltip("outcome:N"),
                alt.Tooltip("timeouts:Q"),
            ],
        )
    )
    return alt.layer(chosen, points).add_params(alt.param(name="end_ms", value=1)).properties(height=190)


def queue(names: list[str]) -> Any:
    """Queue of the port to the aggregator, a strip per algorithm; table ``queue``, whose kinds are queue, buffer and mark."""
    base = alt.Chart().encode(x=_strip_time(), y=alt.Y("value:Q", title="packets", axis=alt.Axis(tickCount=3)))
    body = (
        base.transform_filter("datum.kind == 'queue'")
        .mark_area(interpolate="step-after", line={"strokeWidth": 1}, fillOpacity=0.35, clip=True)
        .encode(color=_color(names))
    )
    limits = [
        base.transform_filter(f"datum.kind == '{kind}'").mark_line(
            strokeDash=dash, strokeWidth=1, color="--muted", clip=True
        )
        for kind, dash in (("buffer", [1, 0]), ("mark", [4, 3]))
    ]
    return _strips(alt.layer(body, *limits).properties(height=74), "queue", names)


def window(names: list[str]) -> Any:
    """One sender's cwnd (line), ssthresh (dashed) and timeouts (ticks), a strip per algorithm; table ``window``."""
    y = alt.Y(
        "value:Q",
        title="packets",
        scale=alt.Scale(type="log", base=2, nice=False),
        axis=alt.Axis(tickCount=4, format="~g"),
    )
    base = alt.Chart().encode(x=_strip_time())
    cwnd = (
        base.transform_filter("datum.kind == 'cwnd'")
        .mark_line(interpolate="step-after", strokeWidth=1.5, clip=True)
        .encode(y=y, color=_color(names))
    )
    ssthresh = (
        base.transform_filter("datum.kind == 'ssthresh'")
        .mark_line(interpolate="step-after", strokeDash=[4, 3], strokeWidth=1, color="--muted", clip=True)
        .encode(y=y)
    )
    timeouts = (
        base.transform_filter("datum.kind == 'timeout'")
        .mark_point(shape="triangle-down", filled=True, size=60, clip=True)
        .encode(y=alt.value(6), tooltip=[alt.Tooltip("ms:Q", title="timeout at (ms)", format=".3f")])
    )
    return _strips(alt.layer(ssthresh, cwnd, timeouts).properties(height=90), "window", names)


def train_curve(table: str, title: str, number: str) -> Any:
    """A distribution over the capture's trains; table ``sizes`` or ``gaps``."""
    return (
        alt.Chart(alt.NamedData(table))
        .mark_line(interpolate="step-after", strokeWidth=2)
        .encode(
            x=alt.X("value:Q", title=title, scale=alt.Scale(type="log", nice=False), axis=_decades(number)),
            y=alt.Y(
                "share:Q",
                title="share of trains",
                scale=alt.Scale(domain=[0, 1]),
                axis=alt.Axis(format="%", tickCount=5),
            ),
            tooltip=[
                alt.Tooltip("value:Q", title=title, format=".4~s"),
                alt.Tooltip("share:Q", title="at most", format=".1%"),
            ],
        )
        .properties(height=220)
    )


def _decades(number: str) -> alt.Axis:
    """An axis of a logarithmic scale with grid lines at powers of ten only."""
    power = "abs(log(datum.value) / LN10 - round(log(datum.value) / LN10)) < 1e-6"
    lines = {"condition": {"test": power, "value": "--hair"}, "value": "transparent"}
    return alt.Axis(format=number, tickCount=6, gridColor=lines)


def _strip_time() -> alt.X:
    scale = alt.Scale(domain=[alt.ExprRef("from_ms"), alt.ExprRef("to_ms")], nice=False)
    return alt.X(
        "ms:Q", title="time of the run (ms)", scale=scale, axis=alt.Axis(format="~r", grid=False, tickCount=10)
    )


def _strips(layers: Any, table: str, names: list[str]) -> Any:
    row = alt.Row(
        "cc:N",
        sort=names,
        title=None,
        header=alt.Header(labelOrient="top", labelAnchor="start", labelAngle=0, labelPadding=2),
    )
    span = [alt.param(name=name, value=value) for name, value in (("from_ms", 0), ("to_ms", 1))]
    return layers.facet(row=row, data=alt.NamedData(table)).add_params(*span).properties(spacing=10)


def _color(names: list[str]) -> alt.Color:
    """A hue per algorithm, by rank; the page puts its own colour where a chart names one of its variables."""
    return alt.Color(
        "cc:N", scale=alt.Scale(domain=names, range=[f"--hue-{i % HUES + 1}" for i in range(len(names))]), legend=None
    )


def _dash(names: list[str]) -> alt.StrokeDash:
    dashes = [DASHES[min(i // HUES, len(DASHES) - 1)] for i in range(len(names))]
    return alt.StrokeDash("cc:N", scale=alt.Scale(domain=names, range=dashes), legend=None)


def _estimate_tooltip() -> list[alt.Tooltip]:
    return [
        alt.Tooltip("cc:N", title="algorithm"),
        alt.Tooltip("value:Q", title="mean over seeds (ms)", format=".4~g"),
        alt.Tooltip("low:Q", title="95% interval from (ms)", format=".4~g"),
        alt.Tooltip("high:Q", title="to (ms)", format=".4~g"),
    ]


def _without_schema(spec: dict[str, Any]) -> dict[str, Any]:
    """The page says itself that it is Vega-Lite, and holds no address of any kind."""
    spec.pop("$schema", None)
    spec.pop("config", None)
    return spec
