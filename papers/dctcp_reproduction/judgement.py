"""How the claims of the DCTCP reproduction follow from the results."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
from fanin.papers.drawing import (
    BLUE,
    CROSS,
    DCTCP,
    GREEN,
    INK,
    NEWRENO,
    RULE,
    VERMILION,
    Axis,
    Figure,
    Key,
    Published,
    bars,
    lines,
    samples,
    shares_over_time,
)
from fanin.papers.numbers import jain, least, mean, number, step
from fanin.papers.verdicts import Checks, Data, Outcome, claim, figure, whole

KEYS = {"newreno": replace(NEWRENO, shape="", width=1.4), "dctcp": replace(DCTCP, shape="", width=1.4)}

JOINING = 5
"""Flows of Fig. 4 and 5."""

SETTLE = 1 / 6
"""The beginning of each minute between two changes, in which flows find their share, is left out of their variation: 10 s."""


def bottleneck(frames: dict[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """Only the port in question."""
    return {name: table.filter(pl.col("port") == "switch->client") for name, table in frames.items()}


def queue_only(frames: dict[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """Only the port in question, totals of the flows, and for how much of the time windows were below 2 packets."""
    flows = (
        frames["flows"].group_by("seed", maintain_order=True).agg(pl.col("timeouts", "drops", "bytes_delivered").sum())
    )
    ports = frames["ports"].filter(pl.col("port") == "switch->client")
    queue = frames["queue"].select("seed", "time_ms", "packets")
    # Each value of the window holds until the next one.
    window = frames["window"].sort("seed", "flow", "time_ms", maintain_order=True)
    until_next = (pl.col("time_ms").shift(-1) - pl.col("time_ms")).over("seed", "flow").fill_null(0.0)
    window = window.with_columns(lasts=until_next)
    lasts = pl.col("lasts")
    small = window.group_by("seed", maintain_order=True).agg(below_2=(lasts * (pl.col("cwnd") < 2)).sum() / lasts.sum())
    return {"queue": queue, "ports": ports, "flows": flows, "windows": small}


# ---- Fig. 1 and 2: the queue


def _mean_queue(data: Data, cc: str, senders: int) -> float:
    return mean(data["queue"]["queue"].filter(pl.col("cc") == cc, pl.col("senders") == senders)["packets"])


def _queues(data: Data, senders: int, dctcp: tuple[float, float], newreno: tuple[float, float]) -> Outcome:
    checks, told = Checks(), []
    for cc, (low, high) in (("dctcp", dctcp), ("newreno", newreno)):
        ours = _mean_queue(data, cc, senders)
        told.append(f"{cc} {ours:.2f}")
        checks.that(low <= ours <= high, f"{cc}'s mean queue in {low:.1f}..{high:.1f}")
    totals = data["queue"]["flows"].filter(pl.col("cc") == "newreno", pl.col("senders") == senders)
    port = data["queue"]["ports"].filter(pl.col("cc") == "newreno", pl.col("senders") == senders)
    peak = number(port["max_queue_packets"].max())
    # A faster link runs for less time.
    seconds = mean(port["busy_ms"] / port["utilisation"]) / 1e3
    return checks.outcome(
        f"mean queue {', '.join(told)} packets",
        f"newreno reaches {peak:.0f} packets and loses {mean(totals['drops']):.0f} in {seconds:.3g} s",
    )


@claim("dctcp.fig1.queue-n2", "queue")
def fig1(data: Data) -> Outcome:
    """Mean queues of two flows."""
    return _queues(data, 2, (0.95 * 19.38, 1.05 * 19.38), (280, 380))


@claim("dctcp.fig2.queue-n20", "queue")
def fig2(data: Data) -> Outcome:
    """Mean queues of twenty flows; what share is marked and how small the windows are say why."""
    outcome = _queues(data, 20, (18, 30), (330, 395))
    port = data["queue"]["ports"].filter(pl.col("cc") == "dctcp", pl.col("senders") == 20)
    marked = number(port["marks"].sum()) / max(1.0, number(port["packets"].sum()))
    window = data["queue"]["windows"].filter(pl.col("cc") == "dctcp", pl.col("senders") == 20)
    remark = (
        f"{marked:.0%} of DCTCP's packets are marked, and {mean(window['below_2']):.0%} of the time a window is below 2"
    )
    return replace(outcome, reason=f"{outcome.reason}; {remark}")


@figure(
    "dctcp.fig1",
    "queue",
    title="Fig. 1. Queue over time with 2 flows",
    caption="First seed, sampled every 100 ms. Dashed: the published means.",
)
def draw_fig1(data: Data) -> Figure:
    """Queue against time."""
    queue = data["queue"]["queue"].filter(pl.col("senders") == 2, pl.col("seed") == pl.col("seed").min())
    time, length = Axis("s", "time (s)", (0, 60)), Axis("packets", "queue (packets)", (0, 420), [0, 100, 200, 300, 400])
    published = [
        Published(y=330.31, label="330.31", align="outside"),
        Published(y=19.38, label="19.38", align="outside"),
    ]
    panel = lines(queue.with_columns(s=pl.col("time_ms") / 1e3), time, length, "cc", KEYS, published=published)
    return Figure([panel], [*KEYS.values(), RULE])


@figure(
    "dctcp.fig2",
    "queue",
    title="Fig. 2. Distribution of the queue with 2 and 20 flows",
    caption="All seeds.",
)
def draw_fig2(data: Data) -> Figure:
    """Share of samples at or below each length, and means."""
    queue = data["queue"]["queue"]
    published = {("newreno", 2): 330.31, ("newreno", 20): 368.99, ("dctcp", 2): 19.38, ("dctcp", 20): 23.63}
    keys = {
        (cc, flows): Key(f"{KEYS[cc].name}, {flows} flows", KEYS[cc].colour, () if flows == 2 else (6, 3), width=1.8)
        for cc, flows in published
    }
    parts = {
        key: queue.filter(pl.col("cc") == cc, pl.col("senders") == flows)["packets"]
        for (cc, flows), key in keys.items()
    }
    names = {one: f"{KEYS[one[0]].name}\n{one[1]} flows" for one in published}
    means = pl.DataFrame([{"case": names[cc, n], "packets": _mean_queue(data, cc, n), "cc": cc} for cc, n in published])
    stated = {(names[one], one[0]): said for one, said in published.items()}
    filled = {cc: replace(key, kind="bar") for cc, key in KEYS.items()}
    length = Axis("packets", "mean queue (packets)", (0, 420), [0, 100, 200, 300, 400])
    panels = [
        samples(parts, Axis("packets", "queue (packets)", (0, 400)), title="distribution"),
        bars(means, "case", length, "cc", filled, title="means", published=stated, beside=False),
    ]
    return Figure(panels, [*keys.values(), CROSS], 2)


# ---- Throughput


@claim("dctcp.throughput", "queue")
def throughput(data: Data) -> Outcome:
    """Both fill at least 94 % of the line, headers included."""
    checks, told = Checks(), []
    ports = data["queue"]["ports"].filter(pl.col("senders") == 2)
    flows = data["queue"]["flows"].filter(pl.col("senders") == 2)
    for cc in ("dctcp", "newreno"):
        port = ports.filter(pl.col("cc") == cc)
        lowest = least(port["utilisation"])
        # Of 100 Mbps, whatever the rate and the length of the run.
        capacity = mean(port["sent_bytes"] / port["utilisation"])
        goodput = mean(flows.filter(pl.col("cc") == cc)["bytes_delivered"]) / capacity * 100
        told.append(f"{cc} {lowest * 100:.2f} Mbps ({goodput:.2f} without headers)")
        checks.that(lowest >= 0.94, f"{cc} at 94 % of the line rate or more")
    return checks.outcome("; ".join(told), "least of the seeds")


# ---- Fig. 3: K


def _stays(ports: pl.DataFrame, of_maximum: float) -> int:
    """The least K from which throughput never falls below a share of its maximum; one more than the greatest where it does there."""
    by_k = ports.group_by("K").agg(pl.col("utilisation").mean()).sort("K")
    low = by_k.filter(pl.col("utilisation") < of_maximum * number(by_k["utilisation"].max()))
    above = by_k.filter(pl.col("K") > (low["K"].max() if len(low) else -1))["K"]
    return int(above[0]) if len(above) else int(by_k["K"][-1]) + 1


@claim("dctcp.fig3.k-sweep", "ksweep", "ksweep_short")
def fig3(data: Data) -> Outcome:
    """Within half a percent of the maximum from K in 8..16 on; at 100 us of round trip K makes no difference."""
    ports = data["ksweep"]["ports"]
    ours = _stays(ports.filter(pl.col("hosts") == "as stated"), 0.995)
    checks = Checks()
    checks.that(8 <= ours <= 16, "throughput stays within 0.5 % of its maximum from K in 8..16 on")
    short = data["ksweep_short"]["ports"].group_by("K").agg(pl.col("utilisation").mean())["utilisation"]
    spread = 1 - number(short.min()) / number(short.max())
    checks.that(spread <= 0.01, "at 100 us of round trip throughput differs by at most 1 % over K")
    told = [f"at 100 us throughput differs by {spread:.2%} over K"]
    for hosts in ports["hosts"].unique(maintain_order=True):
        part = ports.filter(pl.col("hosts") == hosts)
        told.append(
            f"{hosts}: 95 % from K = {_stays(part, 0.95)}, 99 % from {_stays(part, 0.99)}, 99.5 % from {_stays(part, 0.995)}"
        )
    return checks.outcome(f"within 0.5 % of the maximum from K = {ours} on", "; ".join(told))


@figure(
    "dctcp.fig3",
    "ksweep",
    title="Fig. 3. Throughput of 2 flows as a function of K",
    caption="Mean over seeds, on hosts as stated and on noisier ones. Published: rising until K is about 12, as the rule K > C x RTT / 7 = 11.9 has it.",
)
def draw_fig3(data: Data) -> Figure:
    """Throughput against K."""
    by_k = data["ksweep"]["ports"].group_by("hosts", "K").agg(mbps=pl.col("utilisation").mean() * 100).sort("K")
    keys = {
        "as stated": Key("hosts as stated", BLUE, shape="square", width=2.4),
        "timing noise of 1 ms": Key("up to 1 ms of processing per packet", VERMILION, shape="triangle-up"),
        "an ACK for 8 segments": Key("an ACK for 8 segments", GREEN, (6, 3), "diamond", hollow=True),
    }
    threshold = Axis("K", "K (packets)", (0, 1.03 * float(by_k["K"].max())))  # type: ignore[arg-type]
    published = [Published(11.9, label="K > 11.9", dy=178), Published(12, 100, colour=INK)]
    panel = lines(by_k, threshold, Axis("mbps", "throughput (Mbps)", (0, 105)), "hosts", keys, published=published)
    return Figure(
        [panel], [*keys.values(), replace(CROSS, name="published maximum"), replace(RULE, name="published rule")]
    )


# ---- Fig. 4 and 5: convergence


def _minutes(data: Data) -> pl.DataFrame:
    """Seconds of every flow with the minute they are in, where at least two flows share; a second without data counts as zero.

    A run on a kernel may be shorter as a whole, so that its minutes are: one passes between the starts of two flows.
    """
    table = data["convergence"]["throughput"]
    second = number(table["time_ms"].unique().sort().diff().min())
    minute = step(table)
    table = table.with_columns(
        mbps=pl.col("bytes") * 8e-3 / second, minute=((pl.col("time_ms") - 1e-3) / minute).floor().cast(pl.Int64)
    )
    table = table.with_columns(second=pl.col("time_ms") - pl.col("minute") * minute)
    # A flow that stopped leaves a few packets to the next minute.
    busy = pl.col("time_ms").len().over("cc", "seed", "minute", "flow") > 5
    shared = table.filter(busy).filter(pl.col("flow").n_unique().over("cc", "seed", "minute") > 1)
    return shared.filter(pl.col("second") > SETTLE * minute)


@claim("dctcp.fig4-5.convergence", "convergence")
def fig4(data: Data) -> Outcome:
    """DCTCP's Jain index 0.985 or more, and NewReno's flows vary at least twice as much."""
    whole(data["convergence"]["throughput"], ("dctcp", "newreno"), JOINING)
    minutes = _minutes(data)
    flows = minutes.group_by("cc", "seed", "minute", "flow").agg(
        mbps=pl.col("mbps").mean(), deviation=pl.col("mbps").std()
    )
    index, deviation = {}, {}
    for cc in ("dctcp", "newreno"):
        part = flows.filter(pl.col("cc") == cc)
        index[cc] = (
            sum(jain(p["mbps"]) for _, p in part.group_by("seed", "minute")) / part.select("seed", "minute").n_unique()
        )
        deviation[cc] = mean(part["deviation"])
    checks = Checks()
    checks.that(index["dctcp"] >= 0.985, "DCTCP's Jain index is 0.985 or more")
    checks.that(deviation["newreno"] >= 2 * deviation["dctcp"], "NewReno's flows vary at least twice as much")
    return checks.outcome(
        f"Jain index {index['dctcp']:.3f} (dctcp) and {index['newreno']:.3f} (newreno); standard deviation of a flow's seconds "
        f"{deviation['dctcp']:.2f} and {deviation['newreno']:.2f} Mbps"
    )


@figure(
    "dctcp.fig4-5",
    "convergence",
    title="Fig. 4 and 5. Five flows that join and leave a minute apart",
    caption="First seed, intervals of 5 s. Published: DCTCP's flows keep to their share with little variability, NewReno's vary dramatically.",
)
def draw_fig4(data: Data) -> Figure:
    """Throughput of each flow against time, one panel per algorithm."""
    panels = {"dctcp": "4. DCTCP", "newreno": "5. TCP NewReno"}
    return shares_over_time(data["convergence"]["throughput"], panels, bin_ms=5000, until=560)
