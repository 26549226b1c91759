"""Pictures from frames, as Altair charts: interactive HTML and SVG come from one description."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import altair as alt
    import polars as pl

POINTS = 400
"""Steps of a drawn distribution; finer than a screen shows."""

# Okabe and Ito's palette: told apart by people with any colour vision.
BLUE, ORANGE = "#0072B2", "#D55E00"


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

    def panel(column: str, axis: str) -> Any:
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
                x=alt.X(
                    "value:Q", title=axis, scale=alt.Scale(type="log"), axis=alt.Axis(format="~s", labelOverlap=True)
                ),
                y=alt.Y("share:Q", title="share of trains", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format="%")),
                color=alt.Color(
                    "direction:N", title=None, scale=alt.Scale(domain=list(names.values()), range=[BLUE, ORANGE])
                ),
                tooltip=[
                    "direction:N",
                    alt.Tooltip("value:Q", title=axis, format=".4~s"),
                    alt.Tooltip("share:Q", format=".1%"),
                ],
            )
            .properties(width=420, height=280)
        )

    panels = [panel("bytes", "train size (bytes)"), panel("gap_before_ms", "gap before the train (ms)")]
    drawn = [p for p in panels if p is not None]
    return alt.hconcat(*drawn, title=title) if drawn else None
