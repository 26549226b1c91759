"""The figures of the TCP-TRIM paper, redrawn from our runs: the paper's axes and series."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from fanin.frames import thin
from fanin.papers import trim
from fanin.papers.verdicts import Data, figure

NAMES = {"reno": "TCP", "cubic": "CUBIC", "dctcp": "DCTCP", "l2dct": "L2DCT", "trim": "TCP-TRIM"}
# Okabe and Ito's palette, told apart with any colour vision.
COLOURS = {"TCP": "#000000", "CUBIC": "#CC79A7", "DCTCP": "#0072B2", "L2DCT": "#009E73", "TCP-TRIM": "#D55E00"}
PUBLISHED = "#888888"


def series(rows: pl.DataFrame) -> alt.Color:
    """Colours of the algorithms that occur."""
    names = [NAMES[cc] for cc in NAMES if cc in set(rows["cc"])]
    return alt.Color("cc:N", title=None, scale=alt.Scale(domain=names, range=[COLOURS[n] for n in names]))


def values(rows: pl.DataFrame) -> alt.Data:
    """Rows for a chart, algorithms by the paper's names."""
    if "cc" in rows.columns:
        rows = rows.with_columns(pl.col("cc").replace_strict(NAMES, return_dtype=pl.String))
    return alt.Data(values=rows.to_dicts())


def lines(rows: pl.DataFrame, x: Any, y: Any, title: str = "", width: int = 340, height: int = 220) -> Any:
    """A line with points per algorithm."""
    return (
        alt.Chart(values(rows), title=title)
        .mark_line(point=True)
        .encode(x=x, y=y, color=series(rows))
        .properties(width=width, height=height)
    )


def rule(value: float, text: str) -> Any:
    """A published value, as a dashed line."""
    base = alt.Chart(alt.Data(values=[{"y": value, "text": text}]))
    line = base.mark_rule(strokeDash=[5, 4], color=PUBLISHED).encode(y="y:Q")
    return line + base.mark_text(align="left", dx=4, dy=-6, color=PUBLISHED, x=0).encode(y="y:Q", text="text:N")


def cdf(samples: pl.Series, points: int = 300) -> list[dict[str, float]]:
    """An empirical distribution function, thinned."""
    ordered = samples.sort()
    count = ordered.len()
    return [{"value": float(ordered[int(i * (count - 1) / points)]), "share": i / points} for i in range(points + 1)]


@figure(
    "trim.fig2",
    "fig2",
    caption="As drawn by the simulator. Dashed: the shares that the paper states at 4 KB and 128 KB.",
)
def fig2(data: Data) -> Any:
    """Distribution of train sizes and of gaps."""
    messages = data["fig2"]["messages"].sort("seed", "release_ms")
    gaps = messages.select(pl.col("release_ms").diff().over("seed"))["release_ms"].drop_nulls()

    def panel(samples: pl.Series, title: str) -> Any:
        return (
            alt.Chart(alt.Data(values=cdf(samples)))
            .mark_line(color="#0072B2")
            .encode(
                x=alt.X("value:Q", title=title, scale=alt.Scale(type="log")),
                y=alt.Y("share:Q", title="CDF", scale=alt.Scale(domain=[0, 1])),
            )
            .properties(width=340, height=220)
        )

    marks = alt.Data(values=[{"value": 4, "share": 0.2}, {"value": 128, "share": 0.9}])
    stated = alt.Chart(marks).mark_rule(strokeDash=[5, 4], color=PUBLISHED)
    sizes = panel(messages["bytes"] / 1024, "train size (KB)") + stated.encode(x="value:Q") + stated.encode(y="share:Q")
    return sizes | panel(gaps, "gap (ms)")


def one_run(data: Data, frame: str, cc: str, rto: str) -> pl.DataFrame:
    """The first seed."""
    rows = trim.fig4(data, frame, cc, rto)
    return rows.filter(pl.col("seed") == pl.col("seed").min())


def throughput(data: Data, cc: str, rto: str, flow: int | None) -> Any:
    """Mbps in intervals of 10 ms, of one connection or of all."""
    rows = one_run(data, "throughput", cc, rto)
    if flow is not None:
        rows = rows.filter(pl.col("flow") == flow)
    bins = pl.DataFrame({"bin": range(1, 121)})
    found = rows.group_by(bin=(pl.col("time_ms") / 10).round().cast(pl.Int64)).agg(
        mbps=pl.col("bytes").sum() * 8 / 10e3
    )
    whole = bins.join(found, on="bin", how="left").with_columns(pl.col("mbps").fill_null(0.0), s=pl.col("bin") * 0.01)
    return (
        alt.Chart(values(whole))
        .mark_line(color="#0072B2")
        .encode(x=alt.X("s:Q", title="time (s)"), y=alt.Y("mbps:Q", title="throughput (Mbps)"))
        .properties(width=340, height=180)
    )


def window(data: Data, cc: str, rto: str, flows: list[int], end: float = 1.2) -> Any:
    """Windows in packets, with timeouts to be seen as falls to 1."""
    rows = one_run(data, "window", cc, rto).filter(pl.col("flow").is_in(flows), pl.col("time_ms") <= end * 1000)
    kept = thin(rows.sort("time_ms"), "time_ms", "cwnd", by=["flow"], points=500)
    shown = kept.select(
        (pl.col("time_ms") / 1000).alias("s"), "cwnd", (pl.col("flow") + 1).cast(pl.String).alias("connection")
    )
    return (
        alt.Chart(values(shown))
        .mark_line(interpolate="step-after", strokeWidth=1.2)
        .encode(
            x=alt.X("s:Q", title="time (s)", scale=alt.Scale(domain=[0, end])),
            y=alt.Y("cwnd:Q", title="window (packets)"),
            color=alt.Color("connection:N", title="connection"),
        )
        .properties(width=340, height=180)
    )


def drops(data: Data, cc: str, rto: str) -> Any:
    """When packets are dropped, and the queue."""
    queue = one_run(data, "queue", cc, rto).filter(pl.col("time_ms").is_between(80, 1200))
    kept = thin(queue, "time_ms", "packets", by=["port"], points=500).select(
        (pl.col("time_ms") / 1000).alias("s"), "packets"
    )
    lost = one_run(data, "packets", cc, rto).filter(pl.col("event") == "dropped", pl.col("time_ms") < 1200)
    spots = lost.select(s=(pl.col("time_ms") / 1000).round(3), packets=pl.lit(100)).unique()
    line = (
        alt.Chart(values(kept))
        .mark_line(interpolate="step-after", color="#555555", strokeWidth=1)
        .encode(
            x=alt.X("s:Q", title="time (s)", scale=alt.Scale(domain=[0, 1.2])),
            y=alt.Y("packets:Q", title="queue (packets), drops in red", scale=alt.Scale(domain=[0, 105])),
        )
    )
    return (
        line + alt.Chart(values(spots)).mark_tick(color="red", thickness=2).encode(x="s:Q", y="packets:Q")
    ).properties(width=340, height=180)


@figure(
    "trim.fig4",
    "fig4",
    caption="Seed 1, connection 5, RTOmin 200 ms above and 1 ms below: throughput in 10 ms, window, and the bottleneck's queue with its drops. "
    "Dashed: the paper's 'close to 900'.",
)
def fig4(data: Data) -> Any:
    """Throughput and window of connection 5 with both timers."""
    rows = [
        throughput(data, "reno", rto, 4)
        | (window(data, "reno", rto, [4]) + rule(900, "published: close to 900"))
        | drops(data, "reno", rto)
        for rto in ("200 ms", "1 ms")
    ]
    return alt.vconcat(*rows).resolve_scale(color="independent")


@figure(
    "trim.fig7",
    "fig4",
    caption="Seed 1. Total throughput in 10 ms, the five windows, and the bottleneck's queue. Dashed: the paper's 20 packets.",
)
def fig7(data: Data) -> Any:
    """The same traffic with TRIM."""
    return (
        throughput(data, "trim", "200 ms", None)
        | (window(data, "trim", "200 ms", [0, 1, 2, 3, 4], 0.7) + rule(20, "published: at most 20"))
        | drops(data, "trim", "200 ms")
    ).resolve_scale(color="independent")


def probability(data: Data, algorithms: tuple[str, ...], experiments: tuple[str, ...]) -> Any:
    """P(timeout) along the buffer, by link, with and without the preceding responses."""
    p = trim.timeout_probability(Data({n: data[n] for n in experiments}), "link", "buffer").filter(
        pl.col("cc").is_in(algorithms)
    )
    p = p.with_columns(
        kb=pl.col("buffer").map_elements(trim._kib, return_dtype=pl.Int64),
        traffic=pl.when("onoff").then(pl.lit("with ON/OFF")).otherwise(pl.lit("without")),
    )
    panels = []
    for link in sorted(p["link"].unique()):
        here = p.filter(pl.col("link") == link)
        x = alt.X("kb:Q", title="buffer (KB)", scale=alt.Scale(type="log", base=2))
        y = alt.Y("p:Q", title="probability of a timeout", scale=alt.Scale(domain=[0, 1]))
        panels.append(
            lines(here, x, y, title=link).encode(
                strokeDash=alt.StrokeDash(
                    "traffic:N", title=None, legend=alt.Legend(symbolType="stroke", symbolStrokeColor="black")
                )
            )
        )
    return alt.hconcat(*panels)


@figure(
    "trim.fig5", "fig5", "fig5_without", caption="Each point is the share of runs with a timeout, over 2 to 40 senders."
)
def fig5(data: Data) -> Any:
    """TCP, DCTCP and L2DCT."""
    return probability(data, trim.BASELINES, ("fig5", "fig5_without"))


@figure("trim.fig7c", "fig5", caption="As Fig. 5 with the preceding responses, TRIM added.")
def fig7c(data: Data) -> Any:
    """With TRIM."""
    return probability(data, trim.ALL, ("fig5",))


@figure(
    "trim.fig6",
    "fig6_1g",
    "fig6_10g",
    caption="Every K of equation 26: utilisation (least over seeds) and dropped packets (sum over seeds).",
)
def fig6(data: Data) -> Any:
    """Utilisation and drops along K."""
    panels = []
    for name, link in (("fig6_1g", "1 Gbps, 50 us"), ("fig6_10g", "10 Gbps, 25 us")):
        ports = data[name]["ports"].filter(pl.col("name") == trim.BOTTLENECK)
        rows = ports.group_by("senders", "k").agg(pl.col("utilisation").min(), pl.col("drops").sum())
        rows = rows.with_columns(
            us=pl.col("k").str.strip_suffix(" us").cast(pl.Float64), flows=pl.col("senders").cast(pl.String)
        ).sort("us")
        for column, title in (("utilisation", "utilisation"), ("drops", "dropped packets")):
            scale = alt.Scale(domain=[0, 1]) if column == "utilisation" else alt.Scale()
            panels.append(
                alt.Chart(values(rows), title=link)
                .mark_line(point=True)
                .encode(
                    x=alt.X("us:Q", title="K (us)", scale=alt.Scale(zero=False)),
                    y=alt.Y(f"{column}:Q", title=title, scale=scale),
                    color=alt.Color("flows:N", title="flows", scale=alt.Scale(range=["#0072B2", "#D55E00"])),
                )
                .properties(width=230, height=190)
            )
    return alt.hconcat(*panels)


@figure("trim.fig8", "fig8", caption="Seed 1, sampled every 100 us. Dashed: the marking threshold of 20 packets.")
def fig8(data: Data) -> Any:
    """Queue over time."""
    queue = data["fig8"]["queue"].filter(pl.col("seed") == pl.col("seed").min())
    panels = []
    for cc in trim.ALL:
        rows = thin(queue.filter(pl.col("cc") == cc), "time_ms", "packets", by=["cc"], points=400)
        shown = rows.select((pl.col("time_ms") / 1000).alias("s"), "packets")
        line = (
            alt.Chart(values(shown), title=NAMES[cc])
            .mark_line(interpolate="step-after", strokeWidth=0.8, color=COLOURS[NAMES[cc]])
            .encode(
                x=alt.X("s:Q", title="time (s)"),
                y=alt.Y("packets:Q", title="queue (packets)", scale=alt.Scale(domain=[0, 105])),
            )
        )
        panels.append((line + rule(20, "")).properties(width=230, height=180))
    return alt.hconcat(*panels)


@figure("trim.fig8e", "fig8e", caption="Mean over seeds.")
def fig8e(data: Data) -> Any:
    """Average queue along the number of trains."""
    rows = pl.concat(
        [trim.queue_between(data, "fig8e", cc).group_by("cc", "senders").agg(pl.col("queue").mean()) for cc in trim.ALL]
    ).sort("senders")
    return lines(rows, alt.X("senders:Q", title="long trains"), alt.Y("queue:Q", title="average queue (packets)"))


@figure("trim.fig8fg", "fig8e", caption="Mean over seeds.")
def fig8fg(data: Data) -> Any:
    """Drops and goodput along the number of trains."""
    rows = pl.concat([trim.queue_between(data, "fig8e", cc) for cc in trim.ALL])
    lost = rows.group_by("cc", "senders").agg(pl.col("drops").mean()).sort("senders")
    good = trim.train_goodput(data).group_by("cc", "senders").agg(pl.col("mbps").mean()).sort("senders")
    x = alt.X("senders:Q", title="long trains")
    return lines(lost, x, alt.Y("drops:Q", title="dropped packets")) | lines(
        good, x, alt.Y("mbps:Q", title="goodput (Mbps)", scale=alt.Scale(zero=False))
    )


@figure("trim.fig9", "fig9", caption="Seed 1: throughput of each connection in intervals of 100 ms.")
def fig9(data: Data) -> Any:
    """Throughput of five connections that join and leave."""
    rates = data["fig9"]["throughput"].filter(pl.col("seed") == pl.col("seed").min())
    panels = []
    for cc in trim.ALL:
        shown = rates.filter(pl.col("cc") == cc).select(
            (pl.col("time_ms") / 1000).alias("s"),
            (pl.col("bytes") * 8 / 1e5).alias("mbps"),
            pl.format("c{}", pl.col("flow") + 1).alias("connection"),
        )
        panels.append(
            alt.Chart(values(shown), title=NAMES[cc])
            .mark_line(strokeWidth=1)
            .encode(
                x=alt.X("s:Q", title="time (s)"),
                y=alt.Y("mbps:Q", title="throughput (Mbps)", scale=alt.Scale(domain=[0, 1000])),
                color=alt.Color("connection:N", title=None),
            )
            .properties(width=420, height=190)
        )
    return alt.vconcat(panels[0] | panels[1], panels[2] | panels[3])


@figure("trim.table1", "table1", caption="Circles: published, group C doubled (see the note). Bars: ours.")
def table1(data: Data) -> Any:
    """Throughput per flow of each group."""
    ours = trim.group_throughput(data)
    rows = []
    for cc, cells in trim.TABLE1.items():
        for group, got, said in zip("ABC", ours[cc], (cells[0], cells[1], 2 * cells[2]), strict=True):
            rows.append({"cc": NAMES[cc], "group": group, "ours": got, "published": said})
    base = alt.Chart(alt.Data(values=rows))
    x = alt.X("group:N", title=None, axis=alt.Axis(labelAngle=0))
    bars = base.mark_bar(color="#56B4E9").encode(x=x, y=alt.Y("ours:Q", title="Mbps per flow"))
    dots = base.mark_point(color="black", size=70).encode(x=x, y="published:Q")
    return (
        (bars + dots)
        .properties(width=140, height=200)
        .facet(column=alt.Column("cc:N", title=None, sort=[NAMES[c] for c in trim.ALL]))
    )


@figure(
    "trim.fig11", "fig11_normal", "fig11_base", caption="Mean over seeds; the scale is logarithmic above 1 (symlog)."
)
def fig11(data: Data) -> Any:
    """Timeouts along the buffer."""
    panels = []
    for name, case in (("fig11_normal", "normal"), ("fig11_base", "base")):
        rows = data[name]["runs"].group_by("cc", "connections", "buffer").agg(pl.col("timeouts").mean())
        rows = rows.with_columns(kb=pl.col("buffer").map_elements(trim._kib, return_dtype=pl.Int64)).sort("kb")
        row = [
            lines(
                rows.filter(pl.col("connections") == n),
                alt.X("kb:Q", title="buffer (KB)", scale=alt.Scale(type="log", base=2)),
                alt.Y("timeouts:Q", title="RTOs", scale=alt.Scale(type="symlog")),
                title=f"{n} connections, {case} case",
                width=220,
                height=180,
            )
            for n in sorted(rows["connections"].unique())
        ]
        panels.append(alt.hconcat(*row))
    return alt.vconcat(*panels)


PUBLISHED_TIMEOUTS = {
    "reno": (13, 85, 452, 1738),
    "dctcp": (9, 75, 440, 859),
    "l2dct": (9, 71, 274, 493),
    "trim": (8, 39, 141, 285),
}


@figure(
    "trim.table2",
    "table2",
    caption="Dashed: published. Solid: ours, mean over seeds. The scale is logarithmic above 1 (symlog).",
)
def table2(data: Data) -> Any:
    """Timeouts along the number of pods."""
    ours = (
        data["table2"]["runs"]
        .group_by("cc", "k")
        .agg(pl.col("timeouts").cast(pl.Float64).mean())
        .with_columns(whose=pl.lit("ours"))
    )
    said = pl.DataFrame(
        [
            {"cc": cc, "k": k, "timeouts": float(v), "whose": "published"}
            for cc, row in PUBLISHED_TIMEOUTS.items()
            for k, v in zip(trim.PODS, row, strict=True)
        ]
    )
    rows = pl.concat([ours.select(said.columns), said], how="vertical_relaxed").sort("k")
    y = alt.Y("timeouts:Q", title="timeouts", scale=alt.Scale(type="symlog"))
    return lines(rows, alt.X("k:O", title="pods", axis=alt.Axis(labelAngle=0)), y).encode(
        strokeDash=alt.StrokeDash(
            "whose:N", title=None, legend=alt.Legend(symbolType="stroke", symbolStrokeColor="black")
        )
    )


@figure("trim.fig12", "table2", caption="From 0.1 s until a server's megabyte is delivered; mean over seeds.")
def fig12(data: Data) -> Any:
    """Mean and greatest completion time along the number of pods."""
    rows = data["table2"]["runs"].group_by("cc", "k").agg(pl.col("mean_ms", "max_ms").mean()).sort("k")
    x = alt.X("k:O", title="pods", axis=alt.Axis(labelAngle=0))
    return lines(rows, x, alt.Y("mean_ms:Q", title="mean completion time (ms)", scale=alt.Scale(zero=False))) | lines(
        rows, x, alt.Y("max_ms:Q", title="greatest completion time (ms)", scale=alt.Scale(zero=False))
    )


@figure("trim.fig14a", "fig14a", caption="Mean over seeds; simulated with Linux's profile.")
def fig14a(data: Data) -> Any:
    """Average completion time along the mean size."""
    rows = data["fig14a"]["messages"].group_by("cc", "size").agg(pl.col("completion_ms").mean())
    rows = rows.with_columns(kb=pl.col("size").map_elements(trim._kib, return_dtype=pl.Int64)).sort("kb")
    x = alt.X("kb:Q", title="mean response size (KB)", scale=alt.Scale(type="log", base=2))
    return lines(rows, x, alt.Y("completion_ms:Q", title="ARCT (ms)"))


@figure(
    "trim.fig14b",
    "fig14b",
    caption="All seeds; simulated with Linux's profile. Dashed: the paper's 25 ms for TCP-TRIM.",
)
def fig14b(data: Data) -> Any:
    """Distribution of completion times."""
    rows = data["fig14b"]["messages"]
    parts = [
        pl.DataFrame(cdf(rows.filter(pl.col("cc") == cc)["completion_ms"].drop_nulls())).with_columns(cc=pl.lit(cc))
        for cc in trim.TESTBED
    ]
    every = pl.concat(parts)
    chart = (
        alt.Chart(values(every))
        .mark_line()
        .encode(
            x=alt.X("value:Q", title="completion time (ms)", scale=alt.Scale(type="log")),
            y=alt.Y("share:Q", title="CDF", scale=alt.Scale(domain=[0, 1])),
            color=series(every),
        )
        .properties(width=420, height=240)
    )
    mark = alt.Chart(alt.Data(values=[{"value": 25}])).mark_rule(strokeDash=[5, 4], color=PUBLISHED)
    return chart + mark.encode(x="value:Q")
