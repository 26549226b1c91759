"""Section IV.E: what the paper's machines did, simulated (Fig. 14)."""

from __future__ import annotations

import math

import polars as pl
from fanin.papers.drawing import CROSS, RULE, VERMILION, Axis, Figure, Published, lines, samples
from fanin.papers.numbers import median
from fanin.papers.verdicts import Checks, Data, Outcome, claim, figure, listed

from .common import in_words, keys, kib, sizes

TESTBED = ("reno", "cubic", "dctcp", "l2dct", "trim")


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
