"""The page of a capture's requests: each as a waterfall, who was asked when and answered when."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from fanin import html
from fanin.pictures.palette import BLACK, LINES, MUTED
from fanin.statistics.frames import frame
from fanin.words.text import duration

if TYPE_CHECKING:
    from fanin._native import Replay
    from fanin.capture.traffic import TrainsResult

MOST_MESSAGES = 20_000
"""A page has so many messages at most; of more, every second, third ... request by duration."""

HUES = 8
"""Hues of the page's palette; more stages begin again with the first."""

NS_PER_MS = 1e6

Traced = Mapping[tuple[int, int], tuple[int, int]]
"""Per message (position of its connection in the workload, and its own), begin and end of its call in traces, ns from the start of the capture."""


def messages(replay: Replay, traced: Traced | None = None) -> pl.DataFrame:
    """Every message of every request, in order of time: what a waterfall is drawn from.

    Returns
    -------
    polars.DataFrame
        ``request``, ``group``, ``stage`` (UInt32, from 0), ``connection``, ``turn`` (UInt32, as in :attr:`fanin.TrainsResult.turns`), ``server``,
        ``label`` (String: the server, and a number where the request asks it again), ``begin_ms`` (Float64: the request's, from the start of the
        capture), ``asked_ms``, ``answered_ms`` (Float64, from the request's begin; null where the answer is not in the capture),
        ``request_bytes``, ``response_bytes`` (UInt64), ``traced_from_ms``, ``traced_to_ms`` (Float64: the call in the application's traces).

    Examples
    --------
    >>> import fanin
    >>> rows = messages(fanin.trains("tests/data/requests/two.pcap.gz").workload())
    >>> rows.filter(pl.col("request") == 1).group_by("stage").len().sort("stage").rows()
    [(0, 8), (1, 4)]
    """
    rows = frame(replay.request_messages()).sort("request", "asked_ns", maintain_order=True)
    begin = pl.col("begin_ns")
    again = pl.int_range(pl.len()).over("request", "server")
    calls = [(traced or {}).get(place, (None, None)) for place in zip(rows["position"], rows["turn"], strict=True)]
    ends = pl.DataFrame(calls, schema={"traced_from_ms": pl.Int64, "traced_to_ms": pl.Int64}, orient="row")
    return pl.concat([rows, ends], how="horizontal").select(
        *("request", "group", "stage", "connection", "turn", "server"),
        label=pl.when(again > 0).then(pl.format("{} ({})", "server", again + 1)).otherwise("server"),
        begin_ms=begin / NS_PER_MS,
        took_ms=pl.col("took_ns") / NS_PER_MS,
        asked_ms=(pl.col("asked_ns") - begin) / NS_PER_MS,
        answered_ms=(pl.col("answered_ns").cast(pl.Int64) - begin.cast(pl.Int64)) / NS_PER_MS,
        request_bytes="request_bytes",
        response_bytes="response_bytes",
        traced_from_ms=(pl.col("traced_from_ms") - begin.cast(pl.Int64)) / NS_PER_MS,
        traced_to_ms=(pl.col("traced_to_ms") - begin.cast(pl.Int64)) / NS_PER_MS,
    )


def requests(rows: pl.DataFrame) -> pl.DataFrame:
    """A row for each request of :func:`messages`.

    Columns are ``request``, ``group``, ``begin_ms``, ``took_ms`` (null where its end is not in the capture), ``messages``, ``stages`` and ``servers``.
    """
    return rows.group_by("request", maintain_order=True).agg(
        pl.col("group").first(),
        pl.col("begin_ms").first(),
        pl.col("took_ms").first(),
        messages=pl.len(),
        stages=pl.col("stage").n_unique(),
        servers=pl.col("server").n_unique(),
    )


def typical(each: pl.DataFrame) -> int | None:
    """The number of the median request; None without a complete one."""
    return _ranked(each, 0.5)


def slow(each: pl.DataFrame) -> int | None:
    """The number of one of the slowest 1 %, the quickest of these; None without a complete one."""
    return _ranked(each, 0.99, beyond=True)


def _ranked(each: pl.DataFrame, share: float, *, beyond: bool = False) -> int | None:
    done = each.drop_nulls("took_ms").sort("took_ms", "request")
    if done.is_empty():
        return None
    rank = math.floor(share * done.height) if beyond else math.ceil(share * done.height) - 1
    return int(done["request"][min(rank, done.height - 1)])


def page(found: TrainsResult, replay: Replay, *, chosen: int | None = None, traced: Traced | None = None) -> str | None:
    """The requests of a capture as HTML; None where there are none.

    Parameters
    ----------
    found : TrainsResult
        The capture.
    replay : Replay
        Its traffic towards one host.
    chosen : int, optional
        The request that is drawn first where the reader chooses; the slowest unless given.
    traced : mapping, optional
        The application's own calls, drawn above what the packets show.
    """
    from fanin.capture import closing, waiting
    from fanin.statistics.ranking import completion_statistics

    rows = messages(replay, traced)
    each = requests(rows)
    usual, tail = typical(each), slow(each)
    if usual is None or tail is None:
        return None
    slowest = int(each.drop_nulls("took_ms").sort("took_ms", descending=True)["request"][0])
    first = slowest if chosen is None else chosen
    kept = _kept(each, {usual, tail, slowest, first})
    took = completion_statistics(each["took_ms"].drop_nulls())
    servers = int(each["servers"].max())  # type: ignore[arg-type]
    payload = {
        "chart": waterfall_spec(bool(traced)),
        "requests": kept.select("request", "begin_ms", "took_ms").to_dicts(),
        "messages": _columns(rows.join(kept.select("request"), on="request", how="semi")),
        "typical": usual,
        "slow": tail,
        "chosen": first,
    }
    return html.rendered(
        __name__,
        "requests.html",
        html.libraries(),
        html.colours() + html.asset(__name__, "requests.js"),
        style=html.style(),
        payload=html.script_json(payload),
        found=found,
        file=Path(found.summary["file"]).name,
        aggregator=replay.aggregator,
        count=each.height,
        servers=servers,
        median=duration(took["p50"] or 0.0),
        p99=duration(took["p99"] or 0.0),
        number={"typical": usual, "slow": tail},
        took={number: duration(ms) for number, ms in each.drop_nulls("took_ms").select("request", "took_ms").rows()},
        sentences=[*waiting.sentences(waiting.groups(replay)), *closing.sentences(replay)],
        left_out=each.height - kept.height,
        traced=bool(traced),
        last=each.height - 1,
    )


def _kept(each: pl.DataFrame, always: set[int]) -> pl.DataFrame:
    """What a page has room for, evenly by duration."""
    step = math.ceil(int(each["messages"].sum()) / MOST_MESSAGES)
    if step <= 1:
        return each
    ordered = each.sort("took_ms", "request", nulls_last=True)["request"].gather_every(step).to_list()
    return each.filter(pl.col("request").is_in([*ordered, *always]))


def _columns(rows: pl.DataFrame) -> dict[str, list[Any]]:
    """Microseconds as whole numbers take a third of the room."""
    times = ("asked_ms", "answered_ms", "traced_from_ms", "traced_to_ms")
    told = rows.select(
        *("request", "stage", "connection", "server", "label", "request_bytes", "response_bytes"),
        *((pl.col(name) * 1e3).round(0).cast(pl.Int64).alias(name.replace("_ms", "_us")) for name in times),
    )
    return {name: told[name].to_list() for name in told.columns if told[name].null_count() < told.height}


def waterfall_spec(traced: bool) -> Any:
    """The figure of the page as Vega-Lite, in the page's colours; it reads the table ``messages``."""
    import altair as alt

    colours = [f"--hue-{n + 1}" for n in range(HUES)]
    chart = _waterfall(alt.NamedData("messages"), colours, ink="--ink", muted="--muted", traced=traced)
    spec = chart.to_dict()
    spec.pop("$schema", None)
    return spec


def waterfall(rows: pl.DataFrame, *, title: str, subtitle: str = "") -> Any:
    """A picture of one request.

    Parameters
    ----------
    rows : polars.DataFrame
        The rows of :func:`messages` of this request.
    title, subtitle : str
        Stand above.

    Returns
    -------
    altair.LayerChart
        Save it with ``chart.save("request.svg")``.
    """
    import altair as alt

    traced = rows["traced_from_ms"].null_count() < rows.height
    drawn = rows.drop_nulls("answered_ms").with_columns(stage=pl.col("stage") + 1)
    data = alt.InlineData(values=drawn.drop("begin_ms").to_dicts())
    chart = _waterfall(data, LINES, ink=BLACK, muted=MUTED, traced=traced)
    return chart.properties(
        width=620, title=alt.TitleParams(title, subtitle=subtitle, subtitleColor=MUTED, anchor="start")
    )


def _waterfall(data: Any, colours: Sequence[str], *, ink: str, muted: str, traced: bool) -> Any:
    import altair as alt

    y = alt.Y(
        "label:N",
        sort=alt.SortField("asked_ms"),
        title=None,
        axis=alt.Axis(ticks=False, domain=False, labelPadding=8, labelLimit=240),
    )
    x = alt.X(
        "asked_ms:Q",
        title="time since the request began (ms)",
        axis=alt.Axis(tickCount=8),
        # Room for the last size.
        scale=alt.Scale(zero=False, nice=False, padding=34),
    )
    tooltip = [
        alt.Tooltip("server:N"),
        alt.Tooltip("connection:Q", title="connection (tcp.stream)"),
        alt.Tooltip("stage:O"),
        alt.Tooltip("asked_ms:Q", title="asked (ms)", format=",.3f"),
        alt.Tooltip("answered_ms:Q", title="answered (ms)", format=",.3f"),
        alt.Tooltip("request_bytes:Q", title="bytes asked", format=","),
        alt.Tooltip("response_bytes:Q", title="bytes answered", format=","),
    ]
    base = alt.Chart(data).encode(y=y, tooltip=tooltip)
    hue = alt.Color(
        "hue:O",
        title="stage",
        scale=alt.Scale(domain=list(range(1, len(colours) + 1)), range=list(colours)),
        legend=None,
    )
    numbered = base.transform_calculate(
        hue=f"(datum.stage - 1) % {len(colours)} + 1",
        size="format(datum.response_bytes, '.3~s') + 'B'",
        reach="max(datum.answered_ms, isValid(datum.traced_to_ms) ? datum.traced_to_ms : 0)",
    )
    bars = numbered.mark_bar(height=alt.RelativeBandSize(0.66)).encode(x=x, x2="answered_ms:Q", color=hue)
    sizes = numbered.mark_text(align="left", baseline="middle", dx=6, fontSize=10.5, color=muted).encode(
        x="reach:Q", text="size:N"
    )
    stages = (
        alt.Chart(data)
        .transform_aggregate(at="min(asked_ms)", groupby=["stage"])
        .transform_filter("datum.stage > 1")
        .mark_rule(strokeDash=[2, 3], strokeWidth=1, color=muted)
        .encode(x="at:Q")
    )
    layers = [stages, bars, sizes]
    if traced:
        calls = base.transform_filter("isValid(datum.traced_from_ms)").mark_rule(strokeWidth=1.4, color=ink)
        layers.append(calls.encode(x="traced_from_ms:Q", x2="traced_to_ms:Q"))
        for end in ("traced_from_ms:Q", "traced_to_ms:Q"):
            layers.append(
                base.transform_filter("isValid(datum.traced_from_ms)")
                .mark_tick(size=9, thickness=1.4, color=ink)
                .encode(x=end)
            )
    return alt.layer(*layers).properties(height=alt.Step(17))
