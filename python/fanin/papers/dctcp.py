"""How the claims of the DCTCP reproduction follow from the results."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from fanin.papers.drawing import rows, series
from fanin.papers.numbers import jain, least, mean, number
from fanin.papers.verdicts import Checks, Data, Outcome, claim, figure

if TYPE_CHECKING:
    import altair as alt

PORT = "switch->client"

PHASE_MS = 60_000.0
"""Flows join and leave once a minute."""

SETTLE_MS = 10_000.0
"""The beginning of each minute, in which flows find their share, is left out of their variation."""


def bottleneck(frames: dict[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """Only the port in question."""
    return {
        name: table.filter(pl.col("port" if "port" in table.columns else "name") == "switch->client")
        for name, table in frames.items()
    }


def queue_only(frames: dict[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """Only the port in question, and totals of the flows."""
    flows = (
        frames["flows"].group_by("seed", maintain_order=True).agg(pl.col("timeouts", "drops", "bytes_delivered").sum())
    )
    ports = frames["ports"].filter(pl.col("port" if "port" in frames["ports"].columns else "name") == "switch->client")
    return {"queue": frames["queue"].select("seed", "time_ms", "packets"), "ports": ports, "flows": flows}


# ---- Fig. 1 and 2: the queue


def _mean_queue(data: Data, cc: str, senders: int) -> float:
    return mean(data["queue"]["queue"].filter(pl.col("cc") == cc, pl.col("senders") == senders)["packets"])


def _queues(data: Data, senders: int, dctcp: tuple[float, float], newreno: tuple[float, float]) -> Outcome:
    checks, told = Checks(), []
    for cc, (low, high) in (("dctcp", dctcp), ("newreno", newreno)):
        ours = _mean_queue(data, cc, senders)
        told.append(f"{cc} {ours:.2f}")
        checks.that(low <= ours <= high, f"{cc}'s mean queue in {low:.0f}..{high:.0f}")
    totals = data["queue"]["flows"].filter(pl.col("cc") == "newreno", pl.col("senders") == senders)
    peak = number(
        data["queue"]["ports"]
        .filter(pl.col("cc") == "newreno", pl.col("senders") == senders)["max_queue_packets"]
        .max()
    )
    return checks.outcome(
        f"mean queue {', '.join(told)} packets",
        f"newreno reaches {peak:.0f} packets and loses {mean(totals['drops']):.0f} in 60 s",
    )


@claim("dctcp.fig1.queue-n2", "queue")
def fig1(data: Data) -> Outcome:
    """Mean queues of two flows."""
    return _queues(data, 2, (15, 25), (280, 380))


@claim("dctcp.fig2.queue-n20", "queue")
def fig2(data: Data) -> Outcome:
    """Mean queues of twenty flows."""
    return _queues(data, 20, (18, 40), (330, 395))


@figure(
    "dctcp.fig1", "queue", caption="Fig. 1: queue of two flows over time (first seed); crosses are the published means."
)
def draw_fig1(data: Data) -> alt.TopLevelMixin:
    """Queue against time."""
    queue = (
        data["queue"]["queue"]
        .filter(pl.col("senders") == 2, pl.col("seed") == 1)
        .with_columns(s=pl.col("time_ms") / 1e3)
    )
    published = rows(
        {"s": [40.0, 40.0], "packets": [19.38, 330.31], "cc": ["published mean 19.38", "published mean 330.31"]}
    )
    return series(queue, "s", "packets", "cc", x_title="s", y_title="queue, packets", published=published, points=False)


@figure(
    "dctcp.fig2",
    "queue",
    caption="Fig. 2: distribution of the queue with 2 and 20 flows; crosses are the published means.",
)
def draw_fig2(data: Data) -> alt.TopLevelMixin:
    """Share of samples at or below each length."""
    lines = []
    for (cc, senders), part in data["queue"]["queue"].group_by("cc", "senders", maintain_order=True):
        sizes = part["packets"].sort()
        at = [sizes[int(q / 100 * (len(sizes) - 1))] for q in range(101)]
        lines += [{"packets": int(v), "share": q / 100, "flows": f"{cc}, {senders} flows"} for q, v in enumerate(at)]
    means = [(19.38, "dctcp, 2"), (23.63, "dctcp, 20"), (330.31, "newreno, 2"), (368.99, "newreno, 20")]
    published = rows(
        {"packets": [m for m, _ in means], "share": [0.5] * 4, "flows": [f"published mean: {n}" for _, n in means]}
    )
    return series(
        pl.DataFrame(lines), "packets", "share", "flows", x_title="queue, packets", published=published, points=False
    )


# ---- Throughput


@claim("dctcp.throughput", "queue")
def throughput(data: Data) -> Outcome:
    """Both fill at least 94 % of the line, headers included."""
    checks, told = Checks(), []
    ports = data["queue"]["ports"].filter(pl.col("senders") == 2)
    flows = data["queue"]["flows"].filter(pl.col("senders") == 2)
    for cc in ("dctcp", "newreno"):
        lowest = least(ports.filter(pl.col("cc") == cc)["utilisation"])
        goodput = mean(flows.filter(pl.col("cc") == cc)["bytes_delivered"]) * 8 / 60e6
        told.append(f"{cc} {lowest * 100:.2f} Mbps ({goodput:.2f} without headers)")
        checks.that(lowest >= 0.94, f"{cc} at 94 % of the line rate or more")
    return checks.outcome("; ".join(told), "least of the seeds")


# ---- Fig. 3: K


def _reaches(ports: pl.DataFrame, of_maximum: float) -> int:
    by_k = ports.group_by("K").agg(pl.col("utilisation").mean()).sort("K")
    enough = by_k.filter(pl.col("utilisation") >= of_maximum * number(by_k["utilisation"].max()))
    return int(enough["K"][0])


@claim("dctcp.fig3.k-sweep", "ksweep")
def fig3(data: Data) -> Outcome:
    """95 % of the maximum first at K in 8..16."""
    ports = data["ksweep"]["ports"]
    ours = _reaches(ports.filter(pl.col("hosts") == "as stated"), 0.95)
    checks = Checks()
    checks.that(8 <= ours <= 16, "95 % of the maximum is first reached at K in 8..16")
    told = []
    for hosts in ports["hosts"].unique(maintain_order=True):
        part = ports.filter(pl.col("hosts") == hosts)
        told.append(
            f"{hosts}: 95 % at K = {_reaches(part, 0.95)}, 99 % at {_reaches(part, 0.99)}, 99.5 % at {_reaches(part, 0.995)}"
        )
    return checks.outcome(f"95 % of the maximum at K = {ours}", "; ".join(told))


@figure(
    "dctcp.fig3", "ksweep", caption="Fig. 3: throughput of two flows against K, on hosts as stated and on noisier ones."
)
def draw_fig3(data: Data) -> alt.TopLevelMixin:
    """Throughput against K."""
    by_k = (
        data["ksweep"]["ports"].group_by("hosts", "K", maintain_order=True).agg(mbps=pl.col("utilisation").mean() * 100)
    )
    published = rows({"K": [12], "mbps": [100.0], "hosts": ["published: the maximum is reached"]})
    return series(by_k, "K", "mbps", "hosts", y_title="Mbps of 100", published=published)


# ---- Fig. 4 and 5: convergence


def _minutes(data: Data) -> pl.DataFrame:
    """Seconds of every flow with the minute they are in, where at least two flows share; a second without data counts as zero."""
    table = data["convergence"]["throughput"].with_columns(
        mbps=pl.col("bytes") * 8 / 1e6, minute=((pl.col("time_ms") - 1) / PHASE_MS).floor().cast(pl.Int64)
    )
    table = table.with_columns(second=pl.col("time_ms") - pl.col("minute") * PHASE_MS)
    # A flow that stopped leaves a few packets to the next minute.
    busy = pl.col("time_ms").len().over("cc", "seed", "minute", "flow") > 5
    shared = table.filter(busy).filter(pl.col("flow").n_unique().over("cc", "seed", "minute") > 1)
    return shared.filter(pl.col("second") > SETTLE_MS)


@claim("dctcp.fig4-5.convergence", "convergence")
def fig4(data: Data) -> Outcome:
    """DCTCP's Jain index 0.97 or more, and NewReno's flows vary at least twice as much."""
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
    checks.that(index["dctcp"] >= 0.97, "DCTCP's Jain index is 0.97 or more")
    checks.that(deviation["newreno"] >= 2 * deviation["dctcp"], "NewReno's flows vary at least twice as much")
    return checks.outcome(
        f"Jain index {index['dctcp']:.3f} (dctcp) and {index['newreno']:.3f} (newreno); standard deviation of a flow's seconds "
        f"{deviation['dctcp']:.2f} and {deviation['newreno']:.2f} Mbps"
    )


@figure(
    "dctcp.fig4-5",
    "convergence",
    caption="Fig. 4 and 5: throughput of five flows that join and leave a minute apart (first seed).",
)
def draw_fig4(data: Data) -> alt.TopLevelMixin:
    """Throughput of each flow against time, one picture per algorithm."""
    table = data["convergence"]["throughput"].filter(pl.col("seed") == 1)
    table = table.with_columns(
        s=((pl.col("time_ms") - 1) / 5e3).floor() * 5 + 5, flow=pl.format("flow {}", pl.col("flow") + 1)
    )
    means = table.group_by("cc", "flow", "s", maintain_order=True).agg(mbps=pl.col("bytes").sum() * 8 / 5e6)
    return series(means, "s", "mbps", "flow", x_title="s", y_title="Mbps", panel="cc", points=False, columns=2)
