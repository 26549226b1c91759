"""Sections II and IV.A: what idle connections inherit, and the same traffic with TRIM (Fig. 2, 4, 5 and 7)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl
from fanin.papers.drawing import (
    BLUE,
    BOTH,
    CROSS,
    FLOWS,
    GREY,
    INK,
    OWN,
    RULE,
    VERMILION,
    Axis,
    Figure,
    Key,
    Published,
    lines,
    samples,
    seconds,
    trace,
)
from fanin.papers.numbers import greatest, least, mean, median, number, share
from fanin.papers.verdicts import Checks, Data, Outcome, claim, figure, listed

from .common import ALL, BASELINES, BOTTLENECK, KEYS, KIB, in_words, keys, kib, sizes

# ---- Fig. 1 and 2: the workload

PACKET = 1460
"""Bytes of a packet, in which the paper counts windows."""

TRACED = 0.1
"""Seconds of Fig. 1 that are drawn."""


@claim("trim.fig2.train-size", "fig2")
def train_size(data: Data) -> Outcome:
    """Five statements about sizes and gaps, of the draws that reached the simulator."""
    messages = data["fig2"]["messages"].sort("seed", "release_ms")
    sizes = messages["bytes"]
    gaps = messages.select(pl.col("release_ms").diff().over("seed"))["release_ms"].drop_nulls()

    def between(low: float, high: float) -> float:
        return share((sizes > low * KIB) & (sizes <= high * KIB))

    small, middle, large = between(0, 4), between(4, 128), between(128, 1e9)
    shortest, longest = number(gaps.quantile(0.01)), number(gaps.quantile(0.99))
    smallest, biggest = least(sizes), greatest(sizes)
    checks = Checks()
    checks.that(smallest >= 500 and 200 * KIB < biggest <= 256 * KIB, "sizes go from 0.5 KB to 256 KB")
    checks.that(small < 0.2, "under 20 % are at most 4 KB")
    checks.that(abs(middle - 0.7) <= 0.03, "about 70 % are in 4..128 KB")
    checks.that(abs(large - 0.1) <= 0.01, "10 % are above 128 KB")
    checks.that(0.1 <= shortest < 1 and 1 < longest < 10, "gaps go from hundreds of us to several ms")
    return checks.outcome(
        f"{smallest:.0f} B to {biggest:.0f} B; {small:.1%} at or below 4 KB, {middle:.1%} in 4..128 KB, {large:.1%} above; "
        f"98 % of gaps in {shortest * 1000:.0f} us..{longest:.1f} ms"
    )


@figure(
    "trim.fig2",
    "fig2",
    "fig1",
    title="Fig. 1 and 2. Packet trains of the traced web server: how they follow each other, their sizes, and gaps between them",
    caption="As drawn by the simulator. Fig. 1 is the first seed at 1 Gbps; the paper's is of the trace, and it states no number. Crosses: what the paper "
    "states of sizes, under 20 % up to 4 KB and 10 % above 128 KB. Of gaps it says that they last from hundreds of us to several ms.",
)
def draw_fig2(data: Data) -> Figure:
    """Packets of one connection over time, distribution of train sizes and of gaps."""
    messages = data["fig2"]["messages"].sort("seed", "release_ms")
    gaps = messages.select(pl.col("release_ms").diff().over("seed"))["release_ms"].drop_nulls()
    ours = Key("ours", BLUE)
    size = Axis("kb", "size of a train (KB)", (0.4, 320), [0.5, 1, 4, 16, 64, 128, 256], "log")
    gap = Axis("ms", "gap (ms)", (0.1, 10), [0.1, 0.2, 0.5, 1, 2, 5, 10], "log")
    stated = [
        Published(0.5, 0.0, colour=INK),
        Published(4, 0.2, "under 20 %", INK, align="right"),
        Published(128, 0.9, "90 %", INK, align="right"),
        Published(256, 1.0, colour=INK),
    ]
    sent = data["fig1"]["throughput"].sort("time_ms").with_columns(packets=pl.col("bytes").cum_sum() / PACKET)
    parts = [
        trace(sent, Axis("packets", "packet of the connection"), ours, until=TRACED, title="1 sequence number"),
        samples({ours: messages["bytes"] / KIB}, size, title="2(a) sizes", published=stated),
        samples({ours: gaps}, gap, title="2(b) gaps"),
    ]
    return Figure(parts, [ours, CROSS], 3)


# ---- Fig. 4 and 7: five servers


def window_at(windows: pl.DataFrame, time_ms: float) -> pl.DataFrame:
    """The last window of each flow before a time: ``seed``, ``flow``, ``cwnd``."""
    before = windows.filter(pl.col("time_ms") < time_ms).sort("time_ms")
    return before.group_by("seed", "flow").agg(pl.col("cwnd").last())


def spread(windows: pl.DataFrame) -> tuple[float, float]:
    """Least and greatest of a run's windows, each as the median over seeds."""
    each = windows.group_by("seed").agg(low=pl.col("cwnd").min(), high=pl.col("cwnd").max())
    return median(each["low"]), median(each["high"])


def fig4(data: Data, frame: str, cc: str, rto: str) -> pl.DataFrame:
    """The runs of one algorithm with one RTOmin."""
    return data["fig4"][frame].filter(pl.col("cc") == cc, pl.col("rto") == rto)


@claim("trim.fig4.window", "fig4")
def inherited_windows(data: Data) -> Outcome:
    """The windows at 0.3 s, and that silence leaves them alone until the long trains."""
    windows, messages = fig4(data, "window", "reno", "200 ms"), fig4(data, "messages", "reno", "200 ms")
    low, high = spread(window_at(windows, 300))
    late_low, late_high = spread(window_at(windows, 500))
    silence = (
        messages.filter(pl.col("class") == "http_on_off").group_by("seed", "flow").agg(pl.col("done_ms").max() + 1)
    )
    then = windows.join(silence, on=["seed", "flow"]).filter(
        pl.col("time_ms") > pl.col("done_ms"), pl.col("time_ms") < 500
    )
    still_sending = silence.group_by("seed").agg((pl.col("done_ms") > 301).sum())["done_ms"]
    checks = Checks()
    checks.that(low >= 800 and high <= 1000, "each of the five windows is in 800..1000 at 0.3 s")
    checks.that(late_low >= 800 and late_high <= 1000, "each of the five windows is in 800..1000 at 0.5 s")
    checks.that(then.is_empty(), "no window changes between its last response and 0.5 s")
    return checks.outcome(
        f"the five windows are {low:.0f}..{high:.0f} at 0.3 s and {late_low:.0f}..{late_high:.0f} at 0.5 s",
        f"random gaps of mean 1 ms add up to 0.2 s only on average: {median(still_sending):.0f} of 5 connections still send at 0.3 s, "
        "and each window stays as its last response left it",
    )


@claim("trim.fig4.timeouts", "fig4")
def timeouts(data: Data) -> Outcome:
    """Timeouts per connection."""
    flows = fig4(data, "flows", "reno", "200 ms")
    per_run = flows.group_by("seed").agg(
        hit=(pl.col("timeouts") > 0).sum(), twice=(pl.col("timeouts") > 1).sum(), total=pl.col("timeouts").sum()
    )
    hit, twice, total = (median(per_run[name]) for name in ("hit", "twice", "total"))
    checks = Checks()
    checks.that(hit >= 3, "at least 3 of 5 connections time out")
    checks.that(twice >= 3, f"at least 3 of 5 connections time out twice ({twice:g})")
    checks.that(3 <= total <= 12, "3 to 12 timeouts in all")
    typical = flows.group_by("seed").agg(pl.col("timeouts").sort()).sort("seed")["timeouts"].to_list()[0]
    drops = median(flows.group_by("seed").agg(pl.col("drops").sum())["drops"])
    return checks.outcome(
        f"{hit:g} of 5 connections time out, {twice:g} twice, {total:g} timeouts in all (seed 1: {listed(typical)})",
        f"{drops:.0f} packets are dropped, all of the long trains"
        if _drops_before(data, "reno", "200 ms") == 0
        else "",
    )


@claim("trim.fig4.rto-1ms", "fig4")
def small_rto(data: Data) -> Outcome:
    """A small RTOmin neither shrinks the windows nor saves the packets."""
    low, high = spread(window_at(fig4(data, "window", "reno", "1 ms"), 500))
    dropped = fig4(data, "packets", "reno", "1 ms").filter(pl.col("event") == "dropped", pl.col("time_ms") >= 500)
    per_run = [dropped.filter(pl.col("seed") == s).height for s in data.seeds()]
    checks = Checks()
    checks.that(low > 800, "inherited windows are above 800")
    checks.that(min(per_run) > 0, "packets are dropped from 0.5 s on in every run")
    return checks.outcome(
        f"windows {low:.0f}..{high:.0f}; {median(pl.Series(per_run)):.0f} packets dropped from 0.5 s on"
    )


@claim("trim.fig7.queue", "fig4")
def trim_queue(data: Data) -> Outcome:
    """The same traffic with TRIM."""
    ports = fig4(data, "ports", "trim", "200 ms").filter(pl.col("port") == BOTTLENECK)
    flows, messages = fig4(data, "flows", "trim", "200 ms"), fig4(data, "messages", "trim", "200 ms")
    windows = fig4(data, "window", "trim", "200 ms")
    queue = median(ports["max_queue_packets"])
    end = median(messages.group_by("seed").agg(pl.col("done_ms").max())["done_ms"])
    before = windows.filter(pl.col("time_ms") < 500).group_by("seed").agg(pl.col("cwnd").max())["cwnd"]
    started = windows.filter(pl.col("time_ms") >= 500, pl.col("in_flight") > 0).sort("time_ms")
    probing = started.group_by("seed", "flow").agg(pl.col("cwnd").first())["cwnd"]
    rates = (
        fig4(data, "throughput", "trim", "200 ms")
        .filter(pl.col("time_ms").is_between(500.5, 515))
        .group_by("seed", "time_ms")
    )
    peak = median(rates.agg(pl.col("bytes").sum() * 8 / 10e3).group_by("seed").agg(pl.col("bytes").max())["bytes"])
    lost, late = int(flows["drops"].sum()), int(flows["timeouts"].sum())
    checks = Checks()
    checks.that(queue <= 25, "the queue stays at or below 25 packets")
    checks.that(lost == 0 and late == 0, "no drop and no timeout in any run")
    checks.that(end < 600, "the last transfer ends before 0.6 s")
    checks.that(median(before) <= 25, "windows stay at or below 25 before 0.5 s")
    checks.that(greatest(probing) == 2.0, "the window is 2 at the long train's first transmission")
    return checks.outcome(
        f"queue at most {queue:g}; {lost} drops, {late} timeouts in all runs; last completion at {end / 1000:.3f} s; windows at most "
        f"{median(before):.1f} before 0.5 s and {greatest(probing):g} when the long train starts; {peak:.0f} Mbps then"
    )


def _drops_before(data: Data, cc: str, rto: str) -> int:
    packets = fig4(data, "packets", cc, rto)
    return packets.filter(pl.col("event") == "dropped", pl.col("time_ms") < 500).height


def first_seed(data: Data, frame: str, cc: str, rto: str) -> pl.DataFrame:
    """One run of Fig. 4 or 7."""
    rows = fig4(data, frame, cc, rto)
    return rows.filter(pl.col("seed") == pl.col("seed").min())


def throughput(rows: pl.DataFrame, until: float, most: float, title: str, published: list[Published]) -> Any:
    """Mbps in intervals of 10 ms."""
    bins = pl.DataFrame({"bin": range(1, int(until * 100) + 1)})
    found = rows.group_by(bin=(pl.col("time_ms") / 10).round().cast(pl.Int64)).agg(
        mbps=pl.col("bytes").sum() * 8 / 10e3
    )
    whole = bins.join(found, on="bin", how="left").with_columns(pl.col("mbps").fill_null(0.0), s=pl.col("bin") * 0.01)
    time, rate = Axis("s", "time (s)", (0, until)), Axis("mbps", "throughput (Mbps)", (0, most))
    return lines(
        whole.with_columns(one=pl.lit(0)), time, rate, "one", {0: Key("", BLUE)}, title=title, published=published
    )


QUEUE, DROPS = Key("queue", GREY, width=1.0), Key("dropped packets", VERMILION, shape="circle", width=0)


def queue_and_drops(
    data: Data, cc: str, rto: str, title: str, until: float, most: float, published: list[Published]
) -> Any:
    """The bottleneck's queue, and above it the moments at which packets are dropped."""
    queue = seconds(first_seed(data, "queue", cc, rto), "packets", 0.0, until).select(
        "s", "packets", what=pl.lit("queue")
    )
    lost = first_seed(data, "packets", cc, rto).filter(pl.col("event") == "dropped", pl.col("time_ms") < until * 1e3)
    # Drops within a millisecond are one mark.
    spots = lost.select(
        s=(pl.col("time_ms") / 1000).round(3), packets=pl.lit(104).cast(queue["packets"].dtype), what=pl.lit("drops")
    ).unique()
    time, length = Axis("s", "time (s)", (0, until)), Axis("packets", "queue (packets)", (0, most))
    both = pl.concat([queue, spots])
    return lines(
        both, time, length, "what", {"queue": QUEUE, "drops": DROPS}, title=title, published=published, step=True
    )


@figure(
    "trim.fig4",
    "fig4",
    title="Fig. 4. Connection 5 with TCP, and RTOmin of 200 ms and of 1 ms",
    caption="Seed 1; throughput in intervals of 10 ms. The queue, which is not in the paper, shows what is lost: only packets of the long "
    "trains, which start at 0.5 s. Published: timeouts at about 0.5 s and 0.7 s, a window close to 900 from 0.3 s to 0.5 s.",
)
def draw_fig4(data: Data) -> Figure:
    """Throughput and window of connection 5 with both timers."""
    inherited = Published(0.3, 900, "close to 900", INK, end=0.5, dx=8, dy=12)
    size = Axis("cwnd", "window (packets)", (0, 1100))
    parts = []
    for rto, names in (("200 ms", "(a) (b)"), ("1 ms", "(c) (d)")):
        one, other = names.split()
        rows = first_seed(data, "throughput", "reno", rto).filter(pl.col("flow") == 4)
        stalls = [Published(s, label="timeout", dy=8) for s in (0.5, 0.7)] if rto == "200 ms" else []
        parts.append(throughput(rows, 1.2, 140, f"{one} throughput, RTOmin {rto}", stalls))
        window = first_seed(data, "window", "reno", rto).filter(pl.col("flow") == 4)
        key = Key("", BLUE, width=1.4)
        parts.append(trace(window, size, key, until=1.2, title=f"{other} window, RTOmin {rto}", published=[inherited]))
    for rto in ("200 ms", "1 ms"):
        parts.append(queue_and_drops(data, "reno", rto, f"queue, RTOmin {rto}", 1.2, 115, []))
    return Figure(parts, [Key("connection 5", BLUE), QUEUE, DROPS, RULE], 2)


@figure(
    "trim.fig7",
    "fig4",
    title="Fig. 7(a) and (b). The traffic of Fig. 4 with TRIM",
    caption="Seed 1; throughput in intervals of 10 ms. The two lower pictures are not in the paper: the windows around the start of the long "
    "trains, where each falls to 2 and is set anew, and the queue of 100 packets, of which the paper states that 20 are never exceeded.",
)
def draw_fig7(data: Data) -> Figure:
    """The same traffic with TRIM."""
    rows = first_seed(data, "throughput", "trim", "200 ms")
    windows = first_seed(data, "window", "trim", "200 ms")
    peak = [Published(0.5, 800, "about 800", INK, align="right"), Published(0.6, label="all done", dy=8)]
    by_flow = {n: replace(key, name=f"connection {n + 1}", width=0.9) for n, key in enumerate(FLOWS)}

    def shown(since: float, until: float, title: str, published: list[Published]) -> Any:
        part = seconds(windows, "cwnd", since, until, ["flow"])
        time, size = Axis("s", "time (s)", (since, until)), Axis("cwnd", "window (packets)", (0, 24))
        return lines(part, time, size, "flow", by_flow, title=title, published=published, step=True, clip=True)

    parts = [
        throughput(rows, 0.7, 900, "(a) throughput of all five", peak),
        shown(0, 0.7, "(b) windows", [Published(y=20, label="at most 20 before 0.5 s")]),
        shown(0.499, 0.512, "windows when the long trains start", [Published(y=2, label="2", align="right")]),
        queue_and_drops(data, "trim", "200 ms", "queue", 0.7, 26, [Published(y=20, label="at most 20")]),
    ]
    return Figure(parts, [*by_flow.values(), BOTH], 2)


# ---- Fig. 5 and 7c: how likely a timeout is


def timeout_probability(data: Data, *by: str) -> pl.DataFrame:
    """Share of runs with a timeout: columns `by`, ``cc``, ``onoff``, ``p``, and of how many, ``n``."""
    keys = [*by, "cc"]
    parts = []
    for name, onoff in (("fig5", True), ("fig5_without", False)):
        if name in data.frames:
            found = data[name]["runs"].group_by(*keys).agg(p=(pl.col("timeouts") > 0).mean(), n=pl.len())
            parts.append(found.with_columns(onoff=pl.lit(onoff)))
    return pl.concat(parts).sort(*keys, "onoff")


@claim("trim.fig5.on-off-harm", "fig5", "fig5_without")
def on_off_harm(data: Data) -> Outcome:
    """More timeouts with the preceding responses, and a larger buffer does not heal it."""
    p = timeout_probability(data, "link", "buffer")
    both = p.pivot("onoff", index=["link", "buffer", "cc"], values=["p", "n"]).rename(
        {"p_true": "with", "p_false": "without"}
    )
    # Two-sided 95 % interval of the difference of two shares, with half a run added to each side (Agresti and Caffo 2000: one
    # success and one failure per sample), so that shares of 0 and 1 have one too.
    shares = {
        name: (pl.col(name) * pl.col(n) + 1) / (pl.col(n) + 2)
        for name, n in (("with", "n_true"), ("without", "n_false"))
    }
    spread = sum(
        (q * (1 - q) / (pl.col(n) + 2) for q, n in zip(shares.values(), ("n_true", "n_false"), strict=True)),
        pl.lit(0.0),
    )
    both = both.with_columns(upper=shares["with"] - shares["without"] + 1.96 * spread.sqrt())
    checks = Checks()
    shown = []
    for cc in BASELINES:
        worse = both.filter(pl.col("cc") == cc)
        harmless = worse.filter(pl.col("upper") < 0)
        where = ", ".join(
            f"{r['link']} {r['buffer']}: {r['with']:.2f} < {r['without']:.2f}" for r in harmless.to_dicts()
        )
        checks.that(
            harmless.is_empty(),
            f"{cc}: with ON/OFF is at least as likely everywhere, up to the sampling error ({where})",
        )
        largest = worse.filter(pl.col("buffer") == "1MiB")
        shown.append(f"{cc} {listed(largest['with'], 2)} (without {listed(largest['without'], 2)})")
    reno = both.filter(pl.col("cc") == "reno")
    checks.that(
        least(reno.filter(pl.col("buffer") == "1MiB")["with"]) > 0.6,
        "Reno with ON/OFF stays above 0.6 at 1 MB",
    )
    for cc in ("dctcp", "l2dct"):
        pairs = both.filter(pl.col("cc") == cc).join(reno, on=["link", "buffer"], suffix="_reno")
        above = pairs.filter(pl.col("with") > pl.col("with_reno"))
        checks.that(above.is_empty() and mean(pairs["with"]) < mean(pairs["with_reno"]), f"{cc} lies below Reno")
        checks.that(least(pairs["with"]) > 0, f"{cc} lies above 0 everywhere")
    return checks.outcome(f"P(timeout) with ON/OFF at 1 MB, {' and '.join(_links(both))}: {'; '.join(shown)}")


@claim("trim.fig7c.timeout-probability", "fig5")
def trim_timeout_probability(data: Data) -> Outcome:
    """TRIM's share of runs with a timeout, cell by cell: link, buffer, number of senders."""
    p = timeout_probability(data, "link", "buffer", "senders").filter(pl.col("onoff"))
    trim = p.filter(pl.col("cc") == "trim")
    others = p.filter(pl.col("cc") != "trim").join(trim, on=["link", "buffer", "senders"], suffix="_trim")
    beaten = others.filter(pl.col("p") < pl.col("p_trim"))
    cells, zero = trim.height, trim.filter(pl.col("p") == 0).height
    checks = Checks()
    where = ", ".join(
        f"{r['link']} {r['buffer']} {r['senders']} senders: {r['cc']} {r['p']:.2f} < {r['p_trim']:.2f}"
        for r in beaten.to_dicts()[:4]
    )
    checks.that(beaten.is_empty(), f"TRIM's is the lowest in every cell ({beaten.height} comparisons lost: {where})")
    checks.that(zero > cells / 2, "it is 0 in more than half of the cells")
    means = ", ".join(f"{cc} {mean(p.filter(pl.col('cc') == cc)['p']):.2f}" for cc in ALL)
    return checks.outcome(f"0 in {zero} of {cells} cells; mean over the cells: {means}")


ON_OFF = {
    False: Key("long trains alone", GREY, (5, 3), "circle", hollow=True, width=3.0),
    True: replace(OWN, name="after ON/OFF responses", shape="circle"),
}


@figure(
    "trim.fig5",
    "fig5",
    "fig5_without",
    title="Fig. 5. How likely a timeout is, with and without the responses before the long trains",
    caption="Each point is the share of runs with a timeout, over 2 to 40 senders.",
)
def draw_fig5(data: Data) -> Figure:
    """TCP, DCTCP and L2DCT, one panel each, for both links."""
    p = timeout_probability(data, "link", "buffer").with_columns(size=in_words("buffer"))
    buffer, likely = Axis("size", "buffer", ticks=sizes(p, "buffer"), kind="points"), Axis("p", "P(timeout)", (0, 1))
    parts = []
    for link in _links(p):
        for cc in BASELINES:
            rows = p.filter(pl.col("link") == link, pl.col("cc") == cc)
            rows = _along_buffer(rows)
            stated = [Published("1 MB", 0.6, "> 60 %", INK, dx=8, dy=0)] if cc == "reno" else []
            parts.append(
                lines(rows, buffer, likely, "onoff", ON_OFF, title=f"{KEYS[cc].name}, {link}", published=stated)
            )
    return Figure(parts, [*ON_OFF.values(), CROSS], 3)


@figure(
    "trim.fig7c",
    "fig5",
    title="Fig. 7(c). How likely a timeout is with TRIM",
    caption="As Fig. 5 after ON/OFF responses. Published: with TRIM much lower than with the others everywhere, and in most cases none.",
)
def draw_fig7c(data: Data) -> Figure:
    """With TRIM."""
    p = timeout_probability(data, "link", "buffer").filter(pl.col("onoff")).with_columns(size=in_words("buffer"))
    buffer, likely = Axis("size", "buffer", ticks=sizes(p, "buffer"), kind="points"), Axis("p", "P(timeout)", (0, 1))
    parts = [
        lines(_along_buffer(p.filter(pl.col("link") == link)), buffer, likely, "cc", keys(*ALL), title=link)
        for link in _links(p)
    ]
    return Figure(parts, list(keys(*ALL).values()), 2)


def _along_buffer(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.sort(pl.col("buffer").map_elements(kib, return_dtype=pl.Int64))


def _links(rows: pl.DataFrame) -> list[str]:
    return sorted(rows["link"].unique())
