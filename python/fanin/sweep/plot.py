"""Pictures of sweeps: a column over another, with confidence bands over the seeds."""

from __future__ import annotations

import math
from typing import Any

import polars as pl

from fanin.errors import ScenarioError
from fanin.statistics.seeds import estimate


def bands(rows: pl.DataFrame, x: str, y: str, *, colour: str | None = None, facet: str | None = None) -> pl.DataFrame:
    """Mean and 95% confidence interval of a column for each combination of the others.

    Returns
    -------
    polars.DataFrame
        The columns `x`, `colour` and `facet`, then ``mean``, ``low``, ``high`` (Float64; low and high are the mean with one run) and
        ``runs`` (Int64). A combination with a run that has no such value is left out. Of a column that is nowhere negative, as times, counts and
        shares, no interval goes below 0: its mean cannot be there.
    """
    groups = list(dict.fromkeys(name for name in (x, colour, facet) if name is not None))
    for name in (*groups, y):
        if name not in rows.columns:
            raise ScenarioError(f"plot: there is no column `{name}`; there are {', '.join(rows.columns)}")
    if not rows[y].dtype.is_numeric():
        raise ScenarioError(f"plot: `{y}` holds no numbers; choose another column with --y")
    if "status" in rows.columns:
        rows = rows.filter(pl.col("status") == "done")
    made, floor = [], -math.inf if (rows[y] < 0).any() else 0.0
    for key, part in rows.group_by(*groups, maintain_order=True):
        found = estimate(part[y].to_list())
        if found.value is not None:
            low = found.value if found.low is None else max(floor, found.low)
            high = found.value if found.high is None else found.high
            made.append(
                {
                    **dict(zip(groups, key, strict=True)),
                    "mean": found.value,
                    "low": low,
                    "high": high,
                    "runs": part.height,
                }
            )
    if not made:
        raise ScenarioError(f"plot: no run has a value of `{y}`")
    return pl.DataFrame(made)


def plot(
    rows: pl.DataFrame, x: str, y: str, *, colour: str | None = None, facet: str | None = None, log: bool = False
) -> Any:
    """A chart of `y` over `x`, a line for each value of `colour`, a panel for each of `facet`.

    Parameters
    ----------
    rows : polars.DataFrame
        As :attr:`fanin.sweep.SweepResult.runs`.
    x, y, colour, facet : str
        Columns; `y` of numbers.
    log : bool
        The scale of `x` is logarithmic.

    Returns
    -------
    altair.Chart
        To be saved with :func:`fanin.pictures.files.save`.
    """
    import altair as alt

    found = bands(rows, x, y, colour=colour, facet=facet)
    # Whatever a column is called, Vega-Lite reads the name of its field as a path.
    field = {name: f"column_{number}" for number, name in enumerate(found.columns)}
    numeric = found[x].dtype.is_numeric()
    order = found[x].unique(maintain_order=True).to_list()
    scale = alt.Scale(type="log" if log else "linear", zero=False, nice=not log)
    if log and not numeric:
        raise ScenarioError(f"plot: `{x}` holds no numbers, so it has no log scale")
    across = alt.X(f"{field[x]}:Q", title=x, scale=scale) if numeric else alt.X(f"{field[x]}:O", title=x, sort=order)
    shared: dict[str, Any] = {"x": across}
    if colour is not None:
        names = found[colour].unique(maintain_order=True).to_list()
        shared["color"] = alt.Color(f"{field[colour]}:N", title=colour, sort=names)
    tips = [
        alt.Tooltip(field=field[name], title=name, type="quantitative" if kind.is_numeric() else "nominal")
        for name, kind in found.schema.items()
    ]
    # Altair takes rows, not Polars' own frames, without another library.
    base = alt.Chart(alt.Data(values=found.rename(field).to_dicts())).encode(**shared)
    vertical = {"y": alt.Y(f"{field['low']}:Q", title=y), "y2": f"{field['high']}:Q"}
    band = base.mark_area(opacity=0.2).encode(**vertical) if numeric else base.mark_rule().encode(**vertical)
    line = base.mark_line(point=True).encode(y=alt.Y(f"{field['mean']}:Q", title=y), tooltip=tips)
    chart = alt.layer(band, line).properties(width=360 if facet else 560, height=260 if facet else 340)
    if facet is not None:
        panels = found[facet].unique(maintain_order=True).to_list()
        chart = chart.facet(facet=alt.Facet(f"{field[facet]}:N", title=facet, sort=panels), columns=2)
    runs = found["runs"]
    least, most = min(runs.to_list()), max(runs.to_list())
    said = f"{least} runs" if least == most else f"{least} to {most} runs"
    return chart.properties(
        title=alt.Title(f"{y} over {x}", subtitle=f"mean of {said} each; bands are 95% confidence intervals")
    )
