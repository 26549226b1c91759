"""Section IV.E: what the paper's machines did, simulated (Fig. 13 and 14)."""

from __future__ import annotations

import math

import polars as pl
from fanin.papers.drawing import CROSS, RULE, VERMILION, Axis, Figure, Key, Published, lines, samples, trace
from fanin.papers.numbers import greatest, median
from fanin.papers.verdicts import Checks, Data, Outcome, claim, figure, listed

from .common import KEYS, in_words, keys, kib, sizes

TESTBED = ("reno", "cubic", "dctcp", "l2dct", "trim")


WITHOUT_DROPS = ("dctcp", "l2dct", "trim")
"""Those that keep the queue short."""


@claim("trim.fig13.testbed", "fig13")
def long_trains(data: Data) -> Outcome:
    """Drops, queue and goodput along the number of long trains."""
    per_run = ("cc", "trains", "seed")
    rows = data["fig13"]["ports"].join(data["fig13"]["flows"], on=per_run)
    table = rows.group_by("cc", "trains").agg(
        pl.col("drops").min().alias("least_drops"),
        pl.col("drops").max().alias("most_drops"),
        queue=pl.col("mean_queue_packets").mean(),
        mbps=pl.col("mbps").mean(),
    )
    at = {(row["cc"], row["trains"]): row for row in table.to_dicts()}
    trains = sorted({n for _, n in at})
    checks = Checks()
    for cc in ("reno", "cubic"):
        none = [n for n in trains if at[cc, n]["least_drops"] == 0]
        checks.that(not none, f"{cc} drops at every number of trains (not with {listed(none)})")
    for cc in WITHOUT_DROPS:
        some = [f"{at[cc, n]['most_drops']} with {n}" for n in trains if at[cc, n]["most_drops"] > 0]
        checks.that(not some, f"{cc} drops nothing (it drops {', '.join(some)})")
    longer = [
        f"{n} trains: {listed((at[cc, n]['queue'] for cc in TESTBED), 1)}"
        for n in trains
        if at["trim", n]["queue"] > min(at[cc, n]["queue"] for cc in TESTBED)
    ]
    checks.that(not longer, f"TRIM's mean queue is the shortest at every number of trains ({'; '.join(longer)})")
    for cc in WITHOUT_DROPS:
        low = [
            f"{at[cc, n]['mbps'] / at['cubic', n]['mbps']:.1%} with {n}"
            for n in trains
            if at[cc, n]["mbps"] < 0.97 * at["cubic", n]["mbps"]
        ]
        checks.that(not low, f"{cc}'s goodput is within 3 % of CUBIC's (it is {', '.join(low)})")
    return checks.outcome(
        f"mean queue with {listed(trains)} trains: "
        + "; ".join(f"{cc} {listed((at[cc, n]['queue'] for n in trains), 1)}" for cc in TESTBED),
        "Mbps: " + "; ".join(f"{cc} {listed(at[cc, n]['mbps'] for n in trains)}" for cc in TESTBED),
    )


@figure(
    "trim.fig13",
    "fig13",
    "fig13_queue",
    title="Fig. 13. Long trains of two servers at 1 Gbps",
    caption="(a) to (e): the queue with four trains, seed 1, sampled every millisecond. (f) to (h): mean over seeds. With Linux's profile and 100 "
    "packets of buffer, which is not stated; the claim holds with 1000. The paper gives no numbers.",
)
def draw_fig13(data: Data) -> Figure:
    """Queues with four trains; mean queue, drops and goodput along the number of trains."""
    queue = data["fig13_queue"]["queue"]
    length = Axis("packets", "queue (packets)", (0, 1.15 * greatest(queue["packets"])))
    parts = [
        trace(
            queue.filter(pl.col("cc") == cc),
            length,
            Key("", KEYS[cc].colour, width=0.9),
            until=1.0,
            title=f"({letter}) {KEYS[cc].name}",
        )
        for letter, cc in zip("abcde", TESTBED, strict=True)
    ]
    rows = data["fig13"]["ports"].join(data["fig13"]["flows"], on=["cc", "trains", "seed"])
    rows = rows.group_by("cc", "trains").agg(pl.col("mean_queue_packets", "mbps", "drops").mean()).sort("trains")
    rows = rows.with_columns(words=pl.col("trains").cast(pl.String))
    along = Axis("words", "long trains", ticks=rows["words"].unique(maintain_order=True).to_list(), kind="points")
    for letter, what, of in (
        ("f", "mean queue", Axis("mean_queue_packets", "mean queue (packets)")),
        ("g", "drops", Axis("drops", "packets dropped")),
        ("h", "goodput", Axis("mbps", "goodput (Mbps)", (800, 1000))),
    ):
        parts.append(lines(rows, along, of, "cc", keys(*TESTBED), title=f"({letter}) {what}"))
    return Figure(parts, [*keys(*TESTBED).values()], 3)


@claim("trim.fig14a.arct", "fig14a")
def average_completion(data: Data) -> Outcome:
    """Average response completion time along the mean size."""
    # A response that never completed makes the average infinite.
    rows = data["fig14a"]["messages"].group_by("cc", "size").agg(pl.col("completion_ms").fill_null(math.inf).mean())
    average = {(r["cc"], kib(r["size"])): r["completion_ms"] for r in rows.to_dicts()}
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


@figure(
    "trim.fig14a",
    "fig14a",
    title="Fig. 14(a). Average response completion time (ARCT) beside two large transfers at 100 Mbps",
    caption="Mean over seeds; simulated with Linux's profile. The picture on the right is the abstract's claim: 'up to 80 %'.",
)
def draw_fig14a(data: Data) -> Figure:
    """Average completion time along the mean size, and what it is of Reno's."""
    rows = data["fig14a"]["messages"].group_by("cc", "size").agg(pl.col("completion_ms").mean())
    rows = rows.sort(pl.col("size").map_elements(kib, return_dtype=pl.Int64)).with_columns(words=in_words("size"))
    plain = rows.filter(pl.col("cc") == "reno").select("size", reno="completion_ms")
    rows = rows.join(plain, on="size", maintain_order="left").with_columns(
        less=100 * (1 - pl.col("completion_ms") / pl.col("reno"))
    )
    size = Axis("words", "mean response size", ticks=sizes(rows, "size"), kind="points")
    parts = [
        lines(rows, size, Axis("completion_ms", "ARCT (ms)"), "cc", keys(*TESTBED), title="ARCT"),
        lines(
            rows,
            size,
            Axis("less", "below Reno's (%)", (-40, 100)),
            "cc",
            keys(*TESTBED),
            title="reduction against Reno",
            published=[Published(y=80, label="TRIM: up to 80 %")],
        ),
    ]
    return Figure(parts, [*keys(*TESTBED).values(), RULE], 2)


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


@figure(
    "trim.fig14b",
    "fig14b",
    title="Fig. 14(b). Completion times of 4000 responses of a web service",
    caption="All seeds; simulated with Linux's profile.",
)
def draw_fig14b(data: Data) -> Figure:
    """Distribution of completion times."""
    rows = data["fig14b"]["messages"]
    parts = {key: rows.filter(pl.col("cc") == cc)["completion_ms"] for cc, key in keys(*TESTBED).items()}
    time = Axis("ms", "completion time (ms)", (0.08, 300), [0.1, 1, 10, 25, 100], "log")
    stated = [Published(25, 0.99, "TRIM: 99 %", VERMILION, dx=2, dy=14)]
    return Figure([samples(parts, time, published=stated)], [*keys(*TESTBED).values(), CROSS])
