"""How the claims of the TCP-TRIM paper follow from the results.

Where a claim speaks of one run, ours is the median over seeds; "no drop" and "no timeout" must be true of every run.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import polars as pl

from fanin import _native
from fanin.papers.numbers import greatest, least, mean, median, number, share
from fanin.papers.verdicts import Checks, Data, Outcome, claim, listed

BASELINES = ("reno", "dctcp", "l2dct")
ALL = (*BASELINES, "trim")
BOTTLENECK = "switch->client"
KIB = 1024


# ---- Fig. 2: the workload


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
    per_run = flows.group_by("seed").agg(hit=(pl.col("timeouts") > 0).sum(), total=pl.col("timeouts").sum())
    hit, total = median(per_run["hit"]), median(per_run["total"])
    checks = Checks()
    checks.that(hit >= 3, "at least 3 of 5 connections time out")
    checks.that(3 <= total <= 12, "3 to 12 timeouts in all")
    typical = flows.group_by("seed").agg(pl.col("timeouts").sort()).sort("seed")["timeouts"].to_list()[0]
    drops = median(flows.group_by("seed").agg(pl.col("drops").sum())["drops"])
    return checks.outcome(
        f"{hit:g} of 5 connections time out, {total:g} timeouts in all (seed 1: {listed(typical)})",
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
    ports = fig4(data, "ports", "trim", "200 ms").filter(pl.col("name") == BOTTLENECK)
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


# ---- Fig. 5 and 7c: how likely a timeout is


def count_timeouts(frames: dict[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """Timeouts and drops of each run."""
    totals = frames["flows"].group_by("seed", maintain_order=True).agg(pl.col("timeouts", "drops").sum())
    return {"runs": totals}


def timeout_probability(data: Data, *by: str) -> pl.DataFrame:
    """Share of runs with a timeout: columns `by`, ``cc``, ``onoff``, ``p``."""
    keys = [*by, "cc"]
    parts = []
    for name, onoff in (("fig5", True), ("fig5_without", False)):
        if name in data.frames:
            found = data[name]["runs"].group_by(*keys).agg(p=(pl.col("timeouts") > 0).mean())
            parts.append(found.with_columns(onoff=pl.lit(onoff)))
    return pl.concat(parts).sort(*keys, "onoff")


@claim("trim.fig5.on-off-harm", "fig5", "fig5_without")
def on_off_harm(data: Data) -> Outcome:
    """More timeouts with the preceding responses, and a larger buffer does not heal it."""
    p = timeout_probability(data, "link", "buffer")
    both = p.pivot("onoff", index=["link", "buffer", "cc"], values="p").rename({"true": "with", "false": "without"})
    checks = Checks()
    shown = []
    for cc in BASELINES:
        worse = both.filter(pl.col("cc") == cc)
        harmless = worse.filter(pl.col("with") < pl.col("without"))
        where = ", ".join(
            f"{r['link']} {r['buffer']}: {r['with']:.2f} < {r['without']:.2f}" for r in harmless.to_dicts()
        )
        checks.that(harmless.is_empty(), f"{cc}: with ON/OFF is at least as likely everywhere ({where})")
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


# ---- equation 26 and Fig. 6: the threshold K


@claim("trim.eq26.k-guideline")
def buffer_needed(data: Data) -> Outcome:
    """The least buffer for which a K exists, and what packet size would give the published figures."""
    published = {(1e9, 200e-6): 52, (10e9, 100e-6): 331}
    checks = Checks()
    got = []
    for (rate, rtt), kilobytes in published.items():
        ours = _buffer_kb(rate, rtt, 1500)
        checks.that(abs(ours / kilobytes - 1) <= 0.2, f"{ours:.1f} KB is within 20 % of {kilobytes} KB")
        got.append(f"{ours:.1f} KB ({ours / kilobytes - 1:+.1%})")
    fits = [_packet_for(rate, rtt, kb) for (rate, rtt), kb in published.items()]
    return checks.outcome(
        f"{got[0]} and {got[1]} with 1500 B packets and an RTT without serialisation",
        f"no packet size gives both published figures: {fits[0]} B would give the first, {fits[1]} B the second; with serialisation in "
        f"the RTT the first is {_buffer_kb(1e9, 224.64e-6, 1500):.1f} KB",
    )


def _buffer_kb(rate: float, rtt: float, packet: float) -> float:
    return _native.trim_k(rate / (8 * packet), rtt, 1e6)[2] * packet / 1000


def _packet_for(rate: float, rtt: float, kilobytes: float) -> int:
    return min(range(40, 9001), key=lambda size: abs(_buffer_kb(rate, rtt, size) - kilobytes))


@claim("trim.fig6.k-works", "fig6_1g", "fig6_10g")
def k_works(data: Data) -> Outcome:
    """No drop and a busy link at every K."""
    checks = Checks()
    said = []
    for name, link in (("fig6_1g", "1 Gbps"), ("fig6_10g", "10 Gbps")):
        ports = data[name]["ports"].filter(pl.col("name") == BOTTLENECK)
        for senders in sorted(ports["senders"].unique()):
            here = ports.filter(pl.col("senders") == senders)
            lossy = here.filter(pl.col("drops") > 0)["k"].unique().sort().to_list()
            busy = here.group_by("k").agg(pl.col("utilisation").mean())["utilisation"]
            checks.that(not lossy, f"{link}, {senders} flows: no packet is dropped (dropped at {', '.join(lossy)})")
            checks.that(least(busy) >= 0.95, f"{link}, {senders} flows: utilisation stays at or above 0.95")
            said.append(
                f"{link} {senders} flows: {int(here['drops'].sum())} drops, utilisation {least(busy):.3f} at least"
            )
    return checks.outcome("; ".join(said))


# ---- Fig. 8: long trains


def queue_between(data: Data, name: str, cc: str) -> pl.DataFrame:
    """Bottleneck of the runs of one algorithm, with the mean queue while the trains last (0.8 s of the run)."""
    ports = data[name]["ports"].filter(pl.col("name") == BOTTLENECK, pl.col("cc") == cc)
    ends = data[name]["runs"].filter(pl.col("cc") == cc).select(*_shared(data[name]["runs"], ports, "seed"), "end_ms")
    keys = [c for c in ends.columns if c != "end_ms"]
    scale = pl.col("end_ms") / 800
    return ports.join(ends, on=keys).with_columns(
        queue=pl.col("mean_queue_packets") * scale, busy=pl.col("utilisation") * scale
    )


def _shared(one: pl.DataFrame, other: pl.DataFrame, *always: str) -> list[str]:
    axes = [c for c in ("senders",) if c in one.columns and c in other.columns]
    return [*axes, *always]


@claim("trim.fig8.queue-traces", "fig8")
def queue_traces(data: Data) -> Outcome:
    """Mean and greatest queue of five long trains."""
    ports = {cc: queue_between(data, "fig8", cc) for cc in ALL}
    average = {cc: median(ports[cc]["queue"]) for cc in ALL}
    drops = {cc: int(ports[cc]["drops"].sum()) for cc in ALL}
    checks = Checks()
    checks.that(least(ports["reno"]["max_queue_packets"]) == 100, "TCP fills the 100 packets")
    checks.that(least(ports["reno"]["drops"]) > 0, "TCP drops")
    for cc in ("dctcp", "l2dct"):
        checks.that(15 <= average[cc] <= 25, f"{cc}'s mean queue is in 15..25")
    checks.that(average["trim"] <= average["dctcp"], "TRIM's mean queue is at most DCTCP's")
    for cc in ALL[1:]:
        checks.that(drops[cc] == 0, f"{cc} drops nothing")
    means = ", ".join(f"{cc} {average[cc]:.1f}" for cc in ALL)
    lost = ", ".join(f"{cc} {drops[cc] / len(data.seeds()):g}" for cc in ALL)
    return checks.outcome(f"mean queue: {means} packets; drops per run: {lost}")


@claim("trim.fig8e.average-queue-vs-n", "fig8e")
def queue_against_n(data: Data) -> Outcome:
    """Average queue along the number of trains."""
    average = {cc: _along(queue_between(data, "fig8e", cc), "queue") for cc in ALL}
    checks = Checks()
    for cc in ALL:
        checks.that(
            all(b > a for a, b in zip(average[cc], average[cc][1:], strict=False)), f"{cc}'s queue rises with N"
        )
    checks.that(
        all(t > 1.5 * max(average[cc][i] for cc in ALL[1:]) for i, t in enumerate(average["reno"])),
        "TCP's is far the largest (1.5 times)",
    )
    checks.that(
        all(t < min(average[cc][i] for cc in BASELINES) for i, t in enumerate(average["trim"])),
        "TRIM's is the smallest at every N",
    )
    return checks.outcome(
        f"N = {listed(_counts(data, 'fig8e'))}: " + "; ".join(f"{cc} {listed(average[cc], 1)}" for cc in ALL)
    )


def train_goodput(data: Data) -> pl.DataFrame:
    """Goodput from 0.1 s to the last delivery: ``cc``, ``senders``, ``seed``, ``mbps``, ``timeouts``.

    What was sent by 0.9 s drains a little longer, with TCP's full buffer more than with the others'.
    """
    sums = pl.col("bytes_delivered").sum() * 8 / ((pl.col("last_delivery_ms").max() - 100) * 1e3)
    return data["fig8e"]["flows"].group_by("cc", "senders", "seed").agg(mbps=sums, timeouts=pl.col("timeouts").sum())


@claim("trim.fig8fg.drops-goodput", "fig8e")
def drops_goodput(data: Data) -> Outcome:
    """Who drops, and how busy the link is."""
    runs = {cc: queue_between(data, "fig8e", cc) for cc in ALL}
    flows = train_goodput(data)
    goodput = {cc: _along(flows.filter(pl.col("cc") == cc), "mbps") for cc in ALL}
    checks = Checks()
    said = []
    for cc in ALL:
        busy, drops = min(_along(runs[cc], "busy")), int(runs[cc]["drops"].sum())
        late = int(flows.filter(pl.col("cc") == cc)["timeouts"].sum())
        said.append(
            f"{cc} {drops / len(data.seeds()):.0f} drops and {late / len(data.seeds()):.0f} timeouts per sweep, utilisation {busy:.3f} at least"
        )
        if cc == "reno":
            checks.that(drops > 0, "TCP drops")
        else:
            checks.that(drops == 0 and late == 0, f"{cc} drops nothing and never times out")
            checks.that(busy >= 0.96, f"{cc} keeps the link at or above 0.96")
    each = "; ".join(f"{cc} {listed(goodput[cc])}" for cc in ALL)
    lowest = all(t < min(goodput[cc][i] for cc in ALL[1:]) for i, t in enumerate(goodput["reno"]))
    checks.that(lowest, "TCP's goodput is the lowest at every N")
    return checks.outcome("; ".join(said), f"goodput in Mbps along N: {each}")


def _along(rows: pl.DataFrame, column: str) -> list[float]:
    """The mean over seeds at each number of trains."""
    return rows.group_by("senders").agg(pl.col(column).mean()).sort("senders")[column].to_list()


def _counts(data: Data, name: str) -> list[int]:
    return sorted(data[name]["flows"]["senders"].unique())


# ---- Fig. 9: convergence


def shares(data: Data) -> pl.DataFrame:
    """Throughput per flow and interval of 100 ms, in Mbps, of the flows that are on: ``cc``, ``seed``, ``flow``, ``time_ms``, ``mbps``, ``phase``.

    Intervals in which a flow starts or stops, and the first 200 ms after them, are left out.
    """
    wide = data["fig9"]["throughput"].with_columns(
        mbps=pl.col("bytes") * 8 / 1e5, bin=(pl.col("time_ms") / 100).round().cast(pl.Int64)
    )
    step = (pl.col("bin") - 1) // 20
    on = (pl.col("flow") <= step) & (pl.col("flow") >= step - 5)
    quiet = (pl.col("bin") - 1) % 20 >= 2
    every = wide.select("cc", "seed").unique().join(pl.DataFrame({"bin": range(2, 202)}), how="cross")
    every = every.join(pl.DataFrame({"flow": range(5)}, schema={"flow": pl.UInt32}), how="cross").filter(on, quiet)
    found = every.join(wide.select("cc", "seed", "flow", "bin", "mbps"), on=["cc", "seed", "flow", "bin"], how="left")
    return found.with_columns(pl.col("mbps").fill_null(0.0), phase=step)


@claim("trim.fig9.convergence", "fig9")
def convergence(data: Data) -> Outcome:
    """Jain's index per interval, and how much a flow's throughput varies while the same flows are on."""
    rates = shares(data)
    # An interval in which nobody got anything has no index.
    moved = rates.filter(pl.col("mbps").sum().over("cc", "seed", "bin") > 0)
    index = pl.col("mbps").sum() ** 2 / (pl.len() * (pl.col("mbps") ** 2).sum())
    jain = moved.group_by("cc", "seed", "bin").agg(j=index, n=pl.len())
    phases = rates.group_by("cc", "seed", "phase", "flow").agg(pl.col("mbps").mean())
    slow = phases.group_by("cc", "seed", "phase").agg(j=index, n=pl.len()).filter(pl.col("n") > 1)
    fair = {cc: mean(jain.filter(pl.col("cc") == cc, pl.col("n") > 1)["j"]) for cc in ALL}
    varied = rates.group_by("cc", "seed", "phase", "flow").agg(
        cv=pl.col("mbps").std() / pl.col("mbps").mean(), n=pl.len()
    )
    vary = {cc: mean(varied.filter(pl.col("cc") == cc)["cv"]) for cc in ALL}
    checks = Checks()
    checks.that(fair["trim"] >= 0.95, "TRIM's Jain index per interval is at least 0.95")
    checks.that(vary["trim"] < min(vary["reno"], vary["dctcp"]), "TRIM's throughput varies less than TCP's and DCTCP's")
    checks.that(fair["l2dct"] == min(fair.values()), "L2DCT is the least fair")
    said = "; ".join(f"{cc} Jain {fair[cc]:.3f}, variation {vary[cc]:.2f}" for cc in ALL)
    average = ", ".join(f"{cc} {mean(slow.filter(pl.col('cc') == cc)['j']):.3f}" for cc in ALL)
    return checks.outcome(f"mean over intervals of 100 ms: {said}", f"Jain of the averages over each 2 s: {average}")


# ---- Table I: two bottlenecks

TABLE1 = {
    "reno": (259.6, 471.2, 233.9),
    "dctcp": (139.27, 814.24, 406.93),
    "l2dct": (237.93, 692.52, 335.64),
    "trim": (342.7, 638.39, 318.84),
}


def group_throughput(data: Data) -> dict[str, tuple[float, float, float]]:
    """Mbps per flow of A, B and C, over the run."""
    flows = data["table1"]["flows"].join(data["table1"]["runs"].select("cc", "seed", "end_ms"), on=["cc", "seed"])
    each = flows.with_columns(mbps=pl.col("bytes_delivered") * 8 / pl.col("end_ms") / 1000)
    found = {}
    for cc in ALL:
        of = [mean(each.filter(pl.col("cc") == cc, pl.col("class") == group)["mbps"]) for group in "ABC"]
        found[cc] = (of[0], of[1], of[2])
    return found


@claim("trim.table1.multi-hop", "table1")
def multi_hop(data: Data) -> Outcome:
    """Every cell, C against twice the published one, and the orders."""
    ours = group_throughput(data)
    checks = Checks()
    off = []
    for cc, cells in TABLE1.items():
        for group, got, said in zip("ABC", ours[cc], (cells[0], cells[1], 2 * cells[2]), strict=True):
            if abs(got / said - 1) > 0.25:
                off.append(f"{cc} {group} {got / said - 1:+.0%}")
    checks.that(not off, f"every cell is within 25 % ({', '.join(off)})")
    total = {cc: sum(v) for cc, v in ours.items()}
    gap = {cc: _deviation(v) for cc, v in ours.items()}
    checks.that(total["reno"] == min(total.values()), "TCP has the lowest total")
    checks.that(total["dctcp"] == max(total.values()), "DCTCP has the highest total")
    checks.that(gap["dctcp"] == max(gap.values()), "the spread between groups is the largest under DCTCP")
    checks.that(ours["dctcp"][0] == min(ours["dctcp"]), "A is the weakest under DCTCP")
    rows = "; ".join(f"{cc} {a:.0f}/{b:.0f}/{c:.0f}" for cc, (a, b, c) in ours.items())
    halved = ", ".join(f"{c / 2:.0f}" for _, _, c in ours.values())
    return checks.outcome(
        f"Mbps per flow, A/B/C: {rows}",
        f"C read as published, averaged over 20 flows, is {halved}; C and B sit in symmetric places, and the published C is half of B in every row",
    )


# ---- Fig. 11: thousands of connections


@claim("trim.fig11.high-concurrency", "fig11_normal", "fig11_base")
def high_concurrency(data: Data) -> Outcome:
    """Timeouts by algorithm, buffer and number of connections, in the normal and in the base case."""
    normal, base = concurrency(data, "fig11_normal"), concurrency(data, "fig11_base")
    checks = Checks()
    for name, case in (("normal", normal), ("base", base)):
        reno = case["reno"]
        checks.that(
            all(reno[k] >= max(case[cc][k] for cc in ALL) for k in reno), f"{name} case: TCP has the most everywhere"
        )
        checks.that(
            all(case["trim"][k] <= min(case[cc][k] for cc in BASELINES) for k in reno),
            f"{name} case: TRIM has the fewest everywhere",
        )
        zero = {1000: lambda b: b > 512, 2000: lambda b: b >= 2048, 3000: lambda b: b >= 2048}
        wrong = [f"{n} at {b} KB: {v:.0f}" for (n, b), v in case["trim"].items() if n in zero and zero[n](b) and v > 0]
        checks.that(
            not wrong,
            f"{name} case: TRIM has none above 512 KB at 1000, from 2 MB at 2000 and 3000 ({', '.join(wrong)})",
        )
    checks.that(
        all(v > 0 for (_, b), v in normal["reno"].items() if b == 4096), "normal case: TCP still has some at 4 MB"
    )
    many = [v for (n, _), v in normal["trim"].items() if n == 4000]
    checks.that(not many or max(many) > 0, "normal case: TRIM has some at 4000")
    for cc in ALL:
        worse = [k for k in base[cc] if base[cc][k] > normal[cc][k]]
        checks.that(
            not worse, f"{cc}: the base case has no more than the normal one ({len(worse)} of {len(base[cc])} cells do)"
        )
    total = {cc: (sum(normal[cc].values()), sum(base[cc].values())) for cc in ALL}
    d, l2 = total["dctcp"], total["l2dct"]
    checks.that(max(d[0], l2[0]) <= 2 * min(d[0], l2[0]), "DCTCP and L2DCT are alike (within 2 times)")
    checks.that(d[1] < d[0] and l2[1] < l2[0], "DCTCP and L2DCT are better in the base case")
    said = "; ".join(f"{cc} {a:.0f} and {b:.0f}" for cc, (a, b) in total.items())
    return checks.outcome(f"timeouts over all buffers and numbers of connections, normal and base case: {said}")


def concurrency(data: Data, name: str) -> dict[str, dict[tuple[int, int], float]]:
    """Mean timeouts per run by algorithm, (connections, buffer in KB)."""
    rows = data[name]["runs"].group_by("cc", "connections", "buffer").agg(pl.col("timeouts").mean())
    found: dict[str, dict[tuple[int, int], float]] = {cc: {} for cc in ALL}
    for row in rows.sort("connections", "buffer").to_dicts():
        found[row["cc"]][row["connections"], _kib(row["buffer"])] = row["timeouts"]
    return found


# ---- Table II and Fig. 12: fat-tree

PODS = (4, 6, 8, 10)


@claim("trim.table2.fat-tree-timeouts", "table2")
def fat_tree_timeouts(data: Data) -> Outcome:
    """Timeouts by pods."""
    runs = data["table2"]["runs"].group_by("cc", "k").agg(pl.col("timeouts").mean())
    count = {(r["cc"], r["k"]): r["timeouts"] for r in runs.to_dicts()}
    pods = sorted({k for _, k in count})
    checks = Checks()
    for k in pods:
        row = [count[cc, k] for cc in ALL]
        checks.that(row == sorted(row, reverse=True), f"k = {k}: TCP >= DCTCP >= L2DCT >= TRIM ({listed(row, 1)})")
    most = max(pods)
    checks.that(count["trim", most] <= 0.3 * count["reno", most], f"TRIM is at least 70 % below TCP at k = {most}")
    ours = "; ".join(f"k={k} {'/'.join(f'{count[cc, k]:.0f}' for cc in ALL)}" for k in pods)
    return checks.outcome(ours, "the order is the published one, the counts are far below it")


def completion_of_servers(frames: dict[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """When each server's whole megabyte was delivered, and timeouts, of each run."""
    done = (
        frames["messages"]
        .group_by("seed", "flow", maintain_order=True)
        .agg(pl.col("done_ms").max(), lost=pl.col("done_ms").null_count())
    )
    spent = done.group_by("seed", maintain_order=True).agg(
        mean_ms=pl.col("done_ms").mean() - 100, max_ms=pl.col("done_ms").max() - 100, unfinished=pl.col("lost").sum()
    )
    return {"runs": spent.join(count_timeouts(frames)["runs"], on="seed")}


@claim("trim.fig12.fat-tree-completion", "table2")
def fat_tree_completion(data: Data) -> Outcome:
    """Mean and greatest completion time over servers."""
    runs = (
        data["table2"]["runs"].group_by("cc", "k").agg(pl.col("mean_ms", "max_ms").mean(), pl.col("unfinished").sum())
    )
    cell = {(r["cc"], r["k"]): r for r in runs.to_dicts()}
    pods = sorted({k for _, k in cell})
    checks = Checks()
    for k in pods:
        for what in ("mean_ms", "max_ms"):
            row = {cc: cell[cc, k][what] for cc in ALL}
            checks.that(
                row["trim"] == min(row.values()),
                f"k = {k}: TRIM has the smallest {what[:-3]} ({listed(row.values())} ms)",
            )
    rise = {cc: cell[cc, pods[-1]]["max_ms"] - cell[cc, pods[0]]["max_ms"] for cc in ALL}
    checks.that(rise["reno"] == max(rise.values()), "TCP's maximum rises most steeply")
    return checks.outcome(
        "mean (max) ms: "
        + "; ".join(
            f"{cc} " + ", ".join(f"{cell[cc, k]['mean_ms']:.0f} ({cell[cc, k]['max_ms']:.0f})" for k in pods)
            for cc in ALL
        )
    )


# ---- Fig. 14: what the paper's machines did, simulated

TESTBED = ("reno", "cubic", "dctcp", "l2dct", "trim")


def completions(frames: dict[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """Completion times of the responses alone."""
    return {
        "messages": frames["messages"]
        .filter(pl.col("class") == "response")
        .select("seed", "flow", "bytes", "completion_ms", "timeouts")
    }


@claim("trim.fig14a.arct", "fig14a")
def average_completion(data: Data) -> Outcome:
    """Average response completion time along the mean size."""
    # A response that never completed makes the average infinite.
    rows = data["fig14a"]["messages"].group_by("cc", "size").agg(pl.col("completion_ms").fill_null(math.inf).mean())
    average = {(r["cc"], _kib(r["size"])): r["completion_ms"] for r in rows.to_dicts()}
    sizes = sorted({size for _, size in average})
    checks = Checks()
    beaten = [
        f"{size} KB: {listed((average[cc, size] for cc in TESTBED), 1)} ms"
        for size in sizes
        if average["trim", size] > min(average[cc, size] for cc in TESTBED)
    ]
    checks.that(not beaten, f"TRIM's is the smallest at every size ({'; '.join(beaten)})")
    growth = {cc: average[cc, sizes[-1]] - average[cc, sizes[0]] for cc in TESTBED}
    checks.that(growth["trim"] == min(growth.values()), "TRIM's grows most slowly")
    best = max(1 - average["trim", size] / average["reno", size] for size in sizes)
    checks.that(best >= 0.8, f"the reduction against Reno reaches 80 % somewhere (it reaches {best:.0%})")
    return checks.outcome(
        f"ms at {listed(sizes)} KB: "
        + "; ".join(f"{cc} {listed((average[cc, s] for s in sizes), 1)}" for cc in TESTBED)
    )


@claim("trim.fig14b.web-service", "fig14b")
def web_service(data: Data) -> Outcome:
    """The 99th percentile of completion times."""
    rows = (
        data["fig14b"]["messages"]
        .group_by("cc", "seed")
        .agg(pl.col("completion_ms").fill_null(math.inf).quantile(0.99))
    )
    p99 = {cc: median(rows.filter(pl.col("cc") == cc)["completion_ms"]) for cc in TESTBED}
    checks = Checks()
    checks.that(p99["trim"] <= 25, "TRIM's p99 is at most 25 ms")
    checks.that(p99["trim"] == min(p99.values()), "TRIM's p99 is the best of the five")
    return checks.outcome("p99: " + ", ".join(f"{cc} {v:.2f} ms" for cc, v in p99.items()))


# ---- numbers


def _deviation(values: Sequence[float]) -> float:
    return number(pl.Series(values).std())


def _links(rows: pl.DataFrame) -> list[str]:
    return sorted(rows["link"].unique())


def _kib(size: str) -> int:
    """The number in a size such as ``128KiB`` or ``1MiB``, in KiB."""
    return int(size.removesuffix("MiB")) * 1024 if size.endswith("MiB") else int(size.removesuffix("KiB"))
