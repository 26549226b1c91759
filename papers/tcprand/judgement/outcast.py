"""Sections 2, 3 and 6.1 to 6.3: outcast in a fat-tree and its cure (Fig. 2, 5 and 8 to 10)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import polars as pl
from fanin import _native
from fanin.papers.drawing import (
    BLUE,
    CROSS,
    GREEN,
    GREY,
    MUTED,
    ORDERED,
    PURPLE,
    RULE,
    VERMILION,
    Axis,
    Figure,
    Key,
    Published,
    bars,
    lines,
)
from fanin.papers.numbers import mean
from fanin.papers.verdicts import Checks, Data, Frames, Outcome, claim, figure

from .common import ADAPTIVE, BARS

CLASSES = ("F1", "F2-F3", "F4-F15")
"""The flow from the same edge switch, from the same pod, and from other pods."""

STATIC = (("cubic, rMin 200", 0.976, 0.855), ("cubic, rMin 100", 0.991, 0.85), ("cubic, rMin 50", 0.996, 0.835))
"""Variant, published fairness and published goodput at 100 packets."""

VARIANTS = {
    "newreno": "NewReno",
    "newreno, rMin 200": "NewReno\nrMin 200",
    "newreno, rMin 50": "NewReno\nrMin 50",
    "cubic": "CUBIC",
    "cubic, rMin 200": "CUBIC\nrMin 200",
    "cubic, rMin 100": "CUBIC\nrMin 100",
    "cubic, rMin 50": "CUBIC\nrMin 50",
    ADAPTIVE: "TCPRand",
    "dctcp": "DCTCP",
}
"""Labels of Fig. 8."""

VARIANTS_OF = [
    [cc for cc in VARIANTS if cc.startswith("newreno")],
    [cc for cc in VARIANTS if cc.startswith("cubic") and cc != ADAPTIVE],
    [ADAPTIVE, "dctcp"],
]
"""Its panels."""

QUEUES = {n: Key(f"{n} packets", colour, kind="bar") for n, colour in zip((20, 60, 100), ORDERED, strict=True)}

DISTANCES = {
    name: Key(words, colour, kind="bar")
    for name, words, colour in zip(
        CLASSES, ("F1 (2 hops)", "F2-F3 (4 hops)", "F4-F15 (6 hops)"), (VERMILION, PURPLE, GREY), strict=True
    )
}

# ---- Fig. 2: outcast


@claim("tcprand.fig2.outcast", "outcast")
def fig2(data: Data) -> Outcome:
    """Near gets the least, then the pod's, far the most."""
    checks, told = Checks(), []
    for cc in ("newreno", "cubic"):
        near, pod, far = _classes(data, 100, cc, "mbps")
        told.append(f"{cc} F1 {near:.1f}, F2-F3 {pod:.1f}, F4-F15 {far:.1f} Mbps")
        checks.that(near < pod < far, f"F1 below F2-F3 below F4-F15 with {cc}")
        waits = _classes(data, 100, cc, "timeouts")
        told[-1] += f" (timeouts {waits[0]:.0f}, {waits[1]:.0f}, {waits[2]:.0f})"
    return checks.outcome("; ".join(told), "with 100 packets of buffer")


@figure(
    "tcprand.fig2",
    "outcast",
    title="Fig. 2. Goodput of each of the 15 flows of Fig. 1",
    caption="Mean over seeds, 100 packets of buffer. Published: the flow from S1, under the receiver's own switch, is the most outcast one, "
    "those from S2 and S3, in its pod, come second.",
)
def draw_fig2(data: Data) -> Figure:
    """Goodput of the flows, coloured by their distance."""
    table = (
        data["outcast"]["flows"]
        .filter(pl.col("queue") == 100)
        .with_columns(sender=(pl.col("flow") + 1).cast(pl.String))
    )
    means = table.group_by("cc", "flow", "sender", "distance").agg(pl.col("mbps").mean()).sort("flow")
    goodput = Axis("mbps", "goodput (Mbps)", (0, 100))
    names = list(dict.fromkeys(means["sender"]))
    parts = [
        bars(
            means.filter(pl.col("cc") == cc),
            "sender",
            goodput,
            "distance",
            DISTANCES,
            groups=names,
            title=title,
            beside=False,
        )
        for cc, title in (("newreno", "NewReno, senders S1 to S15"), ("cubic", "CUBIC, senders S1 to S15"))
    ]
    return Figure(parts, list(DISTANCES.values()), 2)


# ---- Fig. 5: enqueue probability


def _enqueued(r_min: int) -> tuple[float, float, float, float]:
    return _native.rand_enqueue(r_min, 1448, 50_000, 1)


@claim("tcprand.fig5.enqueue-probability")
def fig5(_: Data, enqueued: Callable[[int], tuple[float, float, float, float]] = _enqueued) -> Outcome:
    """Within 0.04 of the published probabilities; P(X2) falls as rMin rises."""
    checks = Checks()
    x2, y2, _both, neither = enqueued(1)
    full = enqueued(1448)[0]
    for name, ours, published in (("X2", x2, 0.63), ("Y2", y2, 0.58), ("neither", neither, 0.11)):
        checks.that(abs(ours - published) <= 0.04, f"P({name}) within 0.04 of {published} at rMin 1")
    checks.that(full == 0, "P(X2) = 0 at rMin 1448")
    curve = [enqueued(r)[0] for r in (1, *range(100, 1449, 100), 1448)]
    # A hundredth is less than what 1000 trials per point could show.
    checks.that(all(b <= a + 0.01 for a, b in pairwise(curve)), "P(X2) falls as rMin rises")
    return checks.outcome(f"P(X2) {x2:.2f}, P(Y2) {y2:.2f}, neither {neither:.2f} at rMin 1; P(X2) {full:.2f} at 1448")


def fig5_of_full_packets(data: Data) -> Outcome:
    """The mutant of Fig. 5: no packet is shorter than another."""
    return fig5(data, lambda _: _enqueued(1448))


@figure(
    "tcprand.fig5",
    title="Fig. 5. Probability that X2 and Y2 are queued at congestion, against rMin",
    caption="From 50,000 trials per point, where the paper has 1000.",
)
def draw_fig5(_: Data) -> Figure:
    """The four curves."""
    keys = {
        "Y2": Key("Y2", VERMILION, width=2.0),
        "X2": Key("X2", BLUE, width=2.0),
        "both": Key("both", GREEN, (6, 3), width=2.0),
        "neither": Key("neither", MUTED, (2, 3), width=2.0),
    }
    found = [
        {"rMin": r, "P": p, "which": name}
        for r in (1, *range(50, 1401, 50), 1425, 1448)
        for name, p in zip(("X2", "Y2", "both", "neither"), _enqueued(r), strict=True)
    ]
    smallest, likely = (
        Axis("rMin", "rMin (bytes)", (0, 1448), [1, 200, 400, 600, 800, 1000, 1200, 1448], format="d"),
        Axis("P", "probability", (0, 1)),
    )
    published = [
        Published(1, 0.63, "0.63", BLUE, dx=9, dy=-9),
        Published(1, 0.58, "0.58", VERMILION, dx=9, dy=11),
        Published(1, 0.11, "0.11", MUTED, dx=9, dy=-9),
        Published(1448, 0, "0", BLUE, align="right", dx=10, dy=-10),
    ]
    return Figure(
        [lines(pl.DataFrame(found), smallest, likely, "which", keys, published=published)], [*keys.values(), CROSS]
    )


# ---- Fig. 8: fairness and goodput


def _with(data: Data, queue: int) -> Frames:
    """The runs with so many packets of queue; those with 20 are an experiment of its own, with more seeds."""
    return data["outcast_20" if queue == 20 else "outcast"]


def _by_queue(data: Data, value: pl.Expr) -> pl.DataFrame:
    """Its mean over the runs with each queue and variant."""
    runs = pl.concat([_with(data, queue)["runs"] for queue in (20, 100)], how="vertical_relaxed")
    return runs.group_by("queue", "cc", maintain_order=True).agg(value.mean())


def _run(data: Data, queue: int, cc: str, column: str) -> float:
    return mean(_with(data, queue)["runs"].filter(pl.col("queue") == queue, pl.col("cc") == cc)[column])


@claim("tcprand.fig8a.fairness", "outcast", "outcast_20")
def fig8a(data: Data) -> Outcome:
    """Published fairness of static sizes at 100 packets; not less fair with smaller rMin; adaptive at least plain."""
    checks, told, remarks = Checks(), [], []
    known = _with(data, 100)["runs"]["cc"].unique().to_list()
    for cc, published, _ in STATIC:
        if cc in known:
            ours = _run(data, 100, cc, "jain")
            told.append(f"{cc} {ours:.3f}")
            checks.that(abs(ours - published) <= 0.03, f"{cc} within 0.03 of {published}")
    for base in ("newreno", "cubic"):
        ladder = [base, *(c for c in (f"{base}, rMin {r}" for r in (200, 100, 50)) if c in known)]
        for queue in (20, 60, 100):
            steps = [_run(data, queue, cc, "jain") for cc in ladder]
            # A hundredth is within what seeds differ by.
            holds = all(b >= a - 0.01 for a, b in pairwise(steps))
            checks.that(
                holds,
                f"{base} not less fair with smaller rMin at {queue} packets ({', '.join(f'{s:.3f}' for s in steps)})",
            )
    for queue in (20, 60, 100):
        plain, adaptive, marked = (_run(data, queue, cc, "jain") for cc in ("cubic", ADAPTIVE, "dctcp"))
        remarks.append(f"{queue} packets: cubic {plain:.3f}, adaptive {adaptive:.3f}, dctcp {marked:.3f}")
        checks.that(adaptive >= plain, f"adaptive at least as fair as plain at {queue} packets", each=True)
    marked = sum(_run(data, queue, "dctcp", "jain") for queue in (20, 60, 100)) / 3
    checks.that(marked >= 0.88, f"DCTCP balanced (mean Jain {marked:.3f}, 0.88 or more)", each=True)
    return checks.outcome("; ".join(told), "; ".join(remarks))


@claim("tcprand.fig8b.goodput", "outcast", "outcast_20")
def fig8b(data: Data) -> Outcome:
    """Published goodput relative to the plain variant; adaptive 0.95 or more."""
    checks, told = Checks(), []
    known = _with(data, 100)["runs"]["cc"].unique().to_list()
    for cc, _, published in STATIC:
        if cc in known:
            ours = _run(data, 100, cc, "mbps") / _run(data, 100, "cubic", "mbps")
            told.append(f"{cc} {ours:.3f}")
            checks.that(abs(ours - published) <= 0.05, f"{cc} within 0.05 of {published}")
    marked = _run(data, 20, "dctcp", "mbps") / _run(data, 20, "cubic", "mbps")
    checks.that(abs(marked - 0.936) <= 0.05, "DCTCP at 20 packets within 0.05 of 0.936")
    least = min(_run(data, queue, ADAPTIVE, "mbps") / _run(data, queue, "cubic", "mbps") for queue in (20, 60, 100))
    checks.that(least >= 0.95, "adaptive keeps 0.95 or more")
    return checks.outcome(f"{'; '.join(told)}; dctcp at 20 packets {marked:.3f}; adaptive at least {least:.3f}")


@claim("tcprand.fig8c.background", "background")
def fig8c(data: Data) -> Outcome:
    """TCPRand above plain at every load, by less as it grows; DCTCP 0.80..0.97 at 450 Mbps."""
    checks, told, gains = Checks(), [], []
    table = _by_load(data)
    for load in (150, 300, 450):
        plain, adaptive, marked = (_cell(table, load, cc) for cc in ("cubic", ADAPTIVE, "dctcp"))
        gains.append(adaptive - plain)
        told.append(f"{load} Mbps: cubic {plain:.3f}, adaptive {adaptive:.3f}, dctcp {marked:.3f}")
        checks.that(adaptive > plain, f"TCPRand above plain at {load} Mbps")
    checks.that(gains[0] >= gains[1] >= gains[2], "the gain falls as the load grows")
    marked = _cell(table, 450, "dctcp")
    checks.that(0.80 <= marked <= 0.97, "DCTCP in 0.80..0.97 at 450 Mbps")
    return checks.outcome("; ".join(told))


def _by_load(data: Data) -> pl.DataFrame:
    return data["background"]["runs"].group_by("load", "cc", maintain_order=True).agg(pl.col("jain").mean())


def _cell(table: pl.DataFrame, load: int, cc: str) -> float:
    return mean(table.filter(pl.col("load") == load, pl.col("cc") == cc)["jain"])


@figure(
    "tcprand.fig8a",
    "outcast",
    "outcast_20",
    "hosts",
    title="Fig. 8(a). Fairness by queue length",
    caption="Jain's index, mean over seeds. Last: other senders below TCPRand, and byte counting and Nagle's algorithm (section 5.2).",
)
def draw_fig8a(data: Data) -> Figure:
    """Fairness of every variant."""
    table = _by_queue(data, pl.col("jain").alias("value"))
    index = Axis("value", "Jain's index", (0, 1.08), [0, 0.2, 0.4, 0.6, 0.8, 1])
    figure = _by_variant(table, index, {(cc, 100): fair for cc, fair, _ in STATIC})
    others = data["hosts"]["runs"].group_by("cc", maintain_order=True).agg(value=pl.col("jain").mean())
    rows = others.with_columns(host=pl.col("cc").str.replace_all(", ", "\n"), queue=pl.lit(100))
    panel = bars(rows, "host", index, "queue", QUEUES, title="other hosts", beside=False, width=66 * rows.height)
    return Figure([*figure.parts, panel], figure.keys, 2)


@figure(
    "tcprand.fig8b",
    "outcast",
    "outcast_20",
    title="Fig. 8(b). Total goodput by queue length",
    caption="Relative to the plain variant, NewReno or CUBIC; mean over seeds.",
)
def draw_fig8b(data: Data) -> Figure:
    """Goodput of every variant."""
    table = _by_queue(data, pl.col("mbps"))
    plain = {(row["queue"], row["cc"]): row["mbps"] for row in table.to_dicts()}
    relative = [
        {**row, "value": row["mbps"] / plain[row["queue"], "newreno" if row["cc"].startswith("newreno") else "cubic"]}
        for row in table.to_dicts()
    ]
    published = {**{(cc, 100): goodput for cc, _, goodput in STATIC}, ("dctcp", 20): 0.936}
    axis = Axis("value", "total goodput, of plain", (0, 1.12), [0, 0.2, 0.4, 0.6, 0.8, 1])
    return _by_variant(pl.DataFrame(relative), axis, published)


def _by_variant(table: pl.DataFrame, axis: Axis, published: Mapping[tuple[str, int], float]) -> Figure:
    """A panel for the variants of NewReno, of CUBIC, and for TCPRand beside DCTCP."""
    found = set(table["cc"])
    table = table.with_columns(variant=pl.col("cc").replace_strict(VARIANTS, return_dtype=pl.String))
    stated = {(VARIANTS[cc], queue): value for (cc, queue), value in published.items()}
    parts: list[Any] = []
    for names in VARIANTS_OF:
        groups = [VARIANTS[cc] for cc in names if cc in found]
        parts.append(
            bars(table, "variant", axis, "queue", QUEUES, groups=groups, published=stated, width=66 * len(groups))
        )
    return Figure(parts, [*QUEUES.values(), CROSS], 3)


@figure(
    "tcprand.fig8c",
    "background",
    title="Fig. 8(c). Fairness by background traffic",
    caption="Jain's index with 20 packets of queue, mean over seeds.",
)
def draw_fig8c(data: Data) -> Figure:
    """Fairness by load."""
    table = _by_load(data).with_columns(pl.format("{} Mbps", pl.col("load")).alias("load"))
    axis = Axis("jain", "Jain's index", (0, 1.08), [0, 0.2, 0.4, 0.6, 0.8, 1])
    panel = bars(table, "load", axis, "cc", BARS, published={("450 Mbps", "dctcp"): 0.887}, values=".2f")
    return Figure([panel], [*BARS.values(), CROSS])


# ---- Fig. 9: timeouts


def _classes(data: Data, queue: int, cc: str, column: str) -> tuple[float, float, float]:
    table = _with(data, queue)["classes"].filter(pl.col("queue") == queue, pl.col("cc") == cc)
    near, pod, far = (mean(table.filter(pl.col("distance") == name)[column]) for name in CLASSES)
    return near, pod, far


def _ratios(data: Data, queue: int, column: str) -> tuple[float, ...]:
    pairs = zip(_classes(data, queue, ADAPTIVE, column), _classes(data, queue, "cubic", column), strict=True)
    return tuple(a / b for a, b in pairs)


@claim("tcprand.fig9.timeouts", "outcast", "outcast_20")
def fig9(data: Data) -> Outcome:
    """Signs of the ratios of count and period in every cell, and F1's two values at 20 packets."""
    checks, told = Checks(), []
    for queue in (20, 60, 100):
        count, period = _ratios(data, queue, "timeouts"), _ratios(data, queue, "timeout_ms")
        told.append(
            f"{queue} packets: count {', '.join(f'{r:.2f}' for r in count)}, period {', '.join(f'{r:.2f}' for r in period)}"
        )
        for name, c, p in zip(CLASSES, count, period, strict=True):
            if queue == 20:
                checks.that(c > 1, f"more timeouts of {name} at 20 packets", each=True)
            else:
                checks.that(p < 1, f"shorter period of {name} at {queue} packets", each=True)
            if queue == 100:
                checks.that(c < 1, f"fewer timeouts of {name} at 100 packets", each=True)
    first = _ratios(data, 20, "timeouts")[0], _ratios(data, 20, "timeout_ms")[0]
    checks.that(1.5 <= first[0] <= 5, "F1's count ratio at 20 packets in 1.5..5", each=True)
    checks.that(0.3 <= first[1] <= 0.8, "F1's period ratio at 20 packets in 0.3..0.8", each=True)
    return checks.outcome("; ".join(told), "each for F1, F2-F3, F4-F15")


@figure(
    "tcprand.fig9",
    "outcast",
    "outcast_20",
    title="Fig. 9. Timeouts of TCPRand, relative to CUBIC",
    caption="Ratios of means over seeds. At the dashed line TCPRand is as CUBIC; below it, it is better.",
)
def draw_fig9(data: Data) -> Figure:
    """Ratios by class and buffer."""
    parts = []
    for title, column, first in (
        ("(a) number of timeouts", "timeouts", 3.0),
        ("(b) time in timeouts", "timeout_ms", 0.5),
    ):
        found = pl.DataFrame(
            [
                {"queue": f"{queue} packets", "distance": name, "ratio": ratio}
                for queue in (20, 60, 100)
                for name, ratio in zip(CLASSES, _ratios(data, queue, column), strict=True)
            ]
        )
        axis = Axis("ratio", "TCPRand / CUBIC", (0, 1.12 * max(float(found["ratio"].max()), first)))  # type: ignore[arg-type]
        stated = {("20 packets", "F1"): first}
        parts.append(
            bars(
                found,
                "queue",
                axis,
                "distance",
                DISTANCES,
                title=title,
                published=stated,
                values=".2f",
                marks=[Published(y=1)],
            )
        )
    return Figure(parts, [*DISTANCES.values(), CROSS, Key("as CUBIC", RULE.colour, RULE.dash, width=RULE.width)], 2)


# ---- Fig. 10: scale


@claim("tcprand.fig10.scale", "scale")
def fig10(data: Data) -> Outcome:
    """The near flow gets more up to two far ones; then CUBIC's falls well below its share and TCPRand's stays at 0.7 of it or more."""
    table = data["scale"]["goodput"].group_by("cc", "far", "class").agg(pl.col("mbps").mean())
    checks, told, lowest = Checks(), [], {}
    for cc in table["cc"].unique().sort().to_list():
        shares = {}
        for far in sorted(table["far"].unique().to_list()):
            part = table.filter(pl.col("cc") == cc, pl.col("far") == far)
            near, other = (mean(part.filter(pl.col("class") == name)["mbps"]) for name in ("near", "far"))
            shares[far] = near / ((near + far * other) / (far + 1))
            if far <= 2:
                checks.that(near > other, f"{cc}'s near flow gets more against {far}", each=True)
        lowest[cc] = min(share for far, share in shares.items() if far >= 8)
        told.append(f"{cc}: {', '.join(f'{share:.2f} of its share against {far}' for far, share in shares.items())}")
    checks.that(lowest["cubic"] < 0.7, "CUBIC's near flow falls well below its share")
    checks.that(lowest[ADAPTIVE] >= 0.7, "TCPRand's near flow stays at 0.7 of its share or more", each=True)
    return checks.outcome("; ".join(told))


@figure(
    "tcprand.fig10",
    "scale",
    title="Fig. 10. One 2-hop flow against a number of 6-hop flows in an 8-ary fat-tree",
    caption="Goodput per flow, mean over seeds; both axes are logarithmic. Published: up to two 6-hop flows the 2-hop flow gets more; then CUBIC's falls "
    "below its share, and TCPRand's stays at it.",
)
def draw_fig10(data: Data) -> Figure:
    """Goodput against the number of far flows."""
    table = data["scale"]["goodput"].group_by("cc", "far", "class").agg(pl.col("mbps").mean()).sort("far")
    total = table.with_columns(all=pl.col("mbps") * pl.when(pl.col("class") == "near").then(1).otherwise(pl.col("far")))
    share = total.group_by("cc", "far").agg(mbps=pl.col("all").sum() / (pl.col("far").first() + 1)).sort("far")
    rows = pl.concat(
        [table.select("cc", "far", "class", "mbps"), share.select("cc", "far", pl.lit("share").alias("class"), "mbps")]
    )
    keys = {
        "share": Key("fair share", GREY, (4, 3), width=1.4),
        "far": Key("6-hop flows", BLUE, shape="square"),
        "near": Key("2-hop flow", VERMILION, shape="triangle-up"),
    }
    counts = sorted(rows["far"].unique())
    far = Axis("far", "6-hop flows", (0.85, 135), counts, "log", "d")
    goodput = Axis("mbps", "goodput per flow (Mbps)", (2, 1000), [2, 5, 10, 20, 50, 100, 200, 500, 1000], "log", "d")
    titles = {"cubic": "(a) CUBIC", ADAPTIVE: "(b) TCPRand"}
    parts = [
        lines(rows.filter(pl.col("cc") == cc), far, goodput, "class", keys, title=title)
        for cc, title in titles.items()
        if cc in set(rows["cc"])
    ]
    return Figure(parts, list(keys.values()), 2)
