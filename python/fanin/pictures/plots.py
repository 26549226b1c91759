"""Pictures from frames, as Altair charts: interactive HTML and SVG come from one description."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from fanin.pictures.palette import BLUE, FAINT, VERMILION

if TYPE_CHECKING:
    import altair as alt
    import polars as pl

POINTS = 400
"""Steps of a drawn distribution; finer than a screen shows."""


def distribution(values: pl.Series) -> list[dict[str, float]]:
    """An empirical distribution function, thinned to what a picture shows.

    Examples
    --------
    >>> import polars as pl
    >>> distribution(pl.Series([3.0, 1.0, 2.0]))[-1]
    {'value': 3.0, 'share': 1.0}
    """
    ordered = values.drop_nulls().sort().to_list()
    total = len(ordered)
    step = max(1, total // POINTS)
    kept = sorted({*range(0, total, step), total - 1} if total else set())
    return [{"value": float(ordered[i]), "share": (i + 1) / total} for i in kept]


def train_plots(trains: pl.DataFrame, *, title: str) -> alt.HConcatChart | None:
    """Sizes of and gaps between packet trains, by direction.

    Parameters
    ----------
    trains : polars.DataFrame
        As :attr:`fanin.TrainsResult.trains`.
    title : str
        Stands above.

    Returns
    -------
    altair.HConcatChart or None
        None when there is no train.
    """
    import altair as alt

    names = {"to_client": "to the client", "to_server": "to the server"}

    decades = [10.0**power for power in range(-6, 13)]
    # SI prefixes would write a tenth of a millisecond as "100m".
    by_axis = {
        "bytes": alt.Axis(values=decades, labelExpr="format(datum.value, '~s') + 'B'"),
        "gap_before_ms": alt.Axis(
            labelExpr="datum.value < 1 ? format(datum.value * 1000, '~r') + ' µs'"
            " : datum.value < 1000 ? format(datum.value, '~r') + ' ms' : format(datum.value / 1000, '~r') + ' s'",
            values=decades,
        ),
    }

    def panel(column: str, axis: str) -> Any:
        labels = by_axis[column]
        rows = [
            {"direction": names[direction], **point}
            for direction in names
            for point in distribution(trains.filter(trains["direction"] == direction)[column])
            if point["value"] > 0
        ]
        if not rows:
            return None
        return (
            alt.Chart(alt.InlineData(values=rows))
            .mark_line(interpolate="step-after")
            .encode(
                x=alt.X("value:Q", title=axis, scale=alt.Scale(type="log"), axis=labels),
                y=alt.Y("share:Q", title="share of trains", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format="%")),
                color=alt.Color(
                    "direction:N",
                    title=None,
                    scale=alt.Scale(domain=list(names.values()), range=[BLUE, VERMILION]),
                    # Below, where no renderer's guess at the width of its text cuts it.
                    legend=alt.Legend(orient="bottom", labelLimit=400),
                ),
                tooltip=[
                    "direction:N",
                    alt.Tooltip("value:Q", title=axis, format=",.4~r"),
                    alt.Tooltip("share:Q", format=".1%"),
                ],
            )
            .properties(width=420, height=280)
        )

    panels = [panel("bytes", "train size"), panel("gap_before_ms", "gap before the train")]
    drawn = [p for p in panels if p is not None]
    return alt.hconcat(*drawn, title=title) if drawn else None


ROUNDS = 30
"""Requests in a picture of who waits for what; more are too thin to read."""


def round_plot(
    turns: pl.DataFrame, rounds: Sequence[Sequence[tuple[int, int]]], *, title: str
) -> alt.Chart | alt.LayerChart | None:
    """Requests of a capture below each other: when each server was asked and when its answer was complete, the slowest marked.

    Parameters
    ----------
    turns : polars.DataFrame
        As :attr:`fanin.TrainsResult.turns`.
    rounds : sequence
        Per request the (connection, turn) of each answer, as :meth:`fanin.TrainsResult.rounds` gives it.
    title : str
        Stands above.

    Returns
    -------
    altair chart or None
        None when there is no request.
    """
    import altair as alt
    import polars as pl

    members = pl.DataFrame(
        [(n, *place) for n, round_ in enumerate(rounds[:ROUNDS], 1) for place in round_],
        schema={"round": pl.UInt32, "connection": pl.UInt32, "turn": pl.UInt32},
        orient="row",
    )
    first = pl.col("request_start_ms").min().over("round")
    rows = (
        members.join(turns, on=["connection", "turn"])
        .drop_nulls(["request_start_ms", "response_end_ms"])
        .with_columns(asked=pl.col("request_start_ms") - first, answered=pl.col("response_end_ms") - first)
        .with_columns(slowest=pl.col("answered") == pl.col("answered").max().over("round"))
        .select("round", "connection", "asked", "answered", "slowest")
    )
    if rows.is_empty():
        return None
    # A round with a timeout is a hundred times as long as the others.
    wide = rows["answered"].max() > 20 * rows["answered"].median()  # type: ignore[operator]
    shape: Literal["symlog", "linear"] = "symlog" if wide else "linear"
    x = alt.X("answered:Q", title="time since the request began (ms)", scale=alt.Scale(type=shape))
    y = alt.Y("round:O", title="request")
    base = alt.Chart(rows).encode(y=y, tooltip=["round", "connection", "asked", "answered"])
    asked = base.mark_tick(color=FAINT, thickness=1).encode(x=alt.X("asked:Q", scale=alt.Scale(type=shape)))
    who = alt.Scale(domain=["answer", "slowest answer: the next request waits for it"], range=[BLUE, VERMILION])
    answers = (
        base.transform_calculate(kind="datum.slowest ? 'slowest answer: the next request waits for it' : 'answer'")
        .mark_circle(size=26, opacity=0.8)
        .encode(
            x=x, color=alt.Color("kind:N", scale=who, legend=alt.Legend(title=None, orient="bottom", labelLimit=400))
        )
    )
    picture: alt.LayerChart = (asked + answers).properties(width=640, height=alt.Step(11), title=title)
    return picture
