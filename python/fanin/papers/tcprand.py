"""How the claims of the TCPRand paper follow from the results."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import polars as pl

from fanin import _native
from fanin.papers.drawing import bars, rows, series
from fanin.papers.numbers import jain, mean, number
from fanin.papers.verdicts import Checks, Data, Outcome, claim, figure

if TYPE_CHECKING:
    import altair as alt

ADAPTIVE = "cubic, adaptive"
CLASSES = ("F1", "F2-F3", "F4-F15")
"""The flow from the same edge switch, from the same pod, and from other pods."""

STATIC = (("cubic, rMin 200", 0.976, 0.855), ("cubic, rMin 100", 0.991, 0.85), ("cubic, rMin 50", 0.996, 0.835))
"""Variant, published fairness and published goodput at 100 packets."""

MAIN = 1000
"""Packets of buffer of the testbed's switches, as we read it."""

PER_100_S = 100 / 20
"""Runs of Fig. 13 and 14 are 20 s long; what happens in them is stated per 100 s, as published."""

# ---- what is kept of the runs


def per_class(frames: dict[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """One row per run and distance to the receiver, and one per run."""
    kind = (
        pl.when(pl.col("flow") == 0)
        .then(pl.lit("F1"))
        .when(pl.col("flow") <= 2)
        .then(pl.lit("F2-F3"))
        .otherwise(pl.lit("F4-F15"))
    )
    flows = frames["flows"].with_columns(distance=kind, mbps=pl.col("bytes_delivered") * 8 / 10e6)
    classes = flows.group_by("seed", "distance", maintain_order=True).agg(
        pl.col("mbps", "timeouts", "timeout_ms").mean()
    )
    shares = [
        (seed, jain(part["mbps"]), part["mbps"].sum()) for (seed,), part in flows.group_by("seed", maintain_order=True)
    ]
    runs = pl.DataFrame(shares, schema={"seed": pl.Int64, "jain": pl.Float64, "mbps": pl.Float64}, orient="row")
    return {"classes": classes, "runs": runs}


def near_and_far(frames: dict[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """Goodput of the near flow and mean goodput of the far ones, for each run."""
    flows = frames["flows"].with_columns(mbps=pl.col("bytes_delivered") * 8 / 10e6)
    return {"goodput": flows.group_by("seed", "class", maintain_order=True).agg(pl.col("mbps").mean())}


def by_size(frames: dict[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """Mean and greatest completion time of each class of sizes, for each run."""
    times = pl.col("completion_ms")
    classes = frames["messages"].group_by("seed", "class", maintain_order=True)
    return {"times": classes.agg(mean_ms=times.mean(), worst_ms=times.max(), flows=pl.len().cast(pl.Int64))}


def by_sender(frames: dict[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """Fairness among the senders' mean goodputs, and the total, for each run."""
    flows = frames["flows"].with_columns(mbps=pl.col("bytes_delivered") * 8 / 10e6)
    senders = flows.group_by("seed", "src", maintain_order=True).agg(pl.col("mbps").mean(), total=pl.col("mbps").sum())
    shares = [
        (seed, jain(part["mbps"]), part["total"].sum())
        for (seed,), part in senders.group_by("seed", maintain_order=True)
    ]
    return {
        "runs": pl.DataFrame(shares, schema={"seed": pl.Int64, "jain": pl.Float64, "mbps": pl.Float64}, orient="row")
    }


def drop_runs(frames: dict[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """How often the first flow lost one segment alone, two in a row and so on, and its timeouts, for each run."""
    lost = (
        frames["packets"]
        .filter(pl.col("event") == "dropped", pl.col("flow") == 0)
        .sort("seed", "time_ms", maintain_order=True)
    )
    # The next segment of the flow is lost too when the next drop continues where this one ended.
    goes_on = (pl.col("seq").shift(1) + pl.col("payload").shift(1)) == pl.col("seq")
    lost = lost.with_columns(run=(~goes_on.fill_null(False)).cum_sum().over("seed"))
    lengths = lost.group_by("seed", "run", maintain_order=True).agg(length=pl.len().clip(upper_bound=6).cast(pl.Int64))
    counts = lengths.group_by("seed", "length").agg(runs=pl.len().cast(pl.Int64)).sort("seed", "length")
    one = (
        frames["flows"]
        .filter(pl.col("flow") == 0)
        .select("seed", "timeouts", "retransmissions", "drops", "goodput_bps")
    )
    return {"lengths": counts, "flow": one}


def goodput_of_blocks(frames: dict[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """Goodput of all blocks, for each run."""
    runs = frames["messages"].group_by("seed", maintain_order=True)
    return {"runs": runs.agg(mbps=pl.col("bytes").sum() * 8 / pl.col("done_ms").max() / 1e3)}


def every_millisecond(frames: dict[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """The last window of every flow in each millisecond."""
    window = frames["window"].with_columns(ms=pl.col("time_ms").floor())
    return {"window": window.group_by("seed", "flow", "ms", maintain_order=True).agg(pl.col("cwnd").last())}


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


@figure("tcprand.fig2", "outcast", caption="Fig. 2: mean goodput by distance, 100 packets of buffer.")
def draw_fig2(data: Data) -> alt.TopLevelMixin:
    """Goodput of the classes."""
    table = data["outcast"]["classes"].filter(
        pl.col("queue") == 100, pl.col("cc").is_in(["newreno", "cubic", ADAPTIVE, "dctcp"])
    )
    return bars(
        table.group_by("cc", "distance", maintain_order=True).agg(pl.col("mbps").mean()),
        "cc",
        "mbps",
        "distance",
        y_title="Mbps per flow",
    )


# ---- Fig. 5: enqueue probability


def _enqueued(r_min: int) -> tuple[float, float, float, float]:
    return _native.rand_enqueue(r_min, 1448, 50_000, 1)


@claim("tcprand.fig5.enqueue-probability")
def fig5(_: Data) -> Outcome:
    """Within 0.04 of the published probabilities; P(X2) falls as rMin rises."""
    checks = Checks()
    x2, y2, _both, neither = _enqueued(1)
    full = _enqueued(1448)[0]
    for name, ours, published in (("X2", x2, 0.63), ("Y2", y2, 0.58), ("neither", neither, 0.11)):
        checks.that(abs(ours - published) <= 0.04, f"P({name}) within 0.04 of {published} at rMin 1")
    checks.that(full == 0, "P(X2) = 0 at rMin 1448")
    curve = [_enqueued(r)[0] for r in (1, *range(100, 1449, 100), 1448)]
    # A hundredth is less than what 1000 trials per point could show.
    checks.that(all(b <= a + 0.01 for a, b in pairwise(curve)), "P(X2) falls as rMin rises")
    return checks.outcome(f"P(X2) {x2:.2f}, P(Y2) {y2:.2f}, neither {neither:.2f} at rMin 1; P(X2) {full:.2f} at 1448")


@figure("tcprand.fig5", caption="Fig. 5: probability that X2 and Y2 are queued against rMin.")
def draw_fig5(_: Data) -> alt.TopLevelMixin:
    """The four curves."""
    names = ("X2", "Y2", "both", "neither")
    found = [
        {"rMin": r, "P": p, "which": name}
        for r in (1, *range(50, 1448, 50), 1448)
        for name, p in zip(names, _enqueued(r), strict=True)
    ]
    published = rows(
        {"rMin": [1, 1, 1], "P": [0.63, 0.58, 0.11], "which": ["published X2", "published Y2", "published neither"]}
    )
    return series(pl.DataFrame(found), "rMin", "P", "which", x_title="rMin, bytes", published=published)


# ---- Fig. 8: fairness and goodput


def _run(data: Data, queue: int, cc: str, column: str) -> float:
    return mean(data["outcast"]["runs"].filter(pl.col("queue") == queue, pl.col("cc") == cc)[column])


@claim("tcprand.fig8a.fairness", "outcast")
def fig8a(data: Data) -> Outcome:
    """Published fairness of static sizes at 100 packets; not less fair with smaller rMin; adaptive at least plain."""
    checks, told, remarks = Checks(), [], []
    known = data["outcast"]["runs"]["cc"].unique().to_list()
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
        checks.that(adaptive >= plain, f"adaptive at least as fair as plain at {queue} packets")
    return checks.outcome("; ".join(told), "; ".join(remarks))


@claim("tcprand.fig8b.goodput", "outcast")
def fig8b(data: Data) -> Outcome:
    """Published goodput relative to the plain variant; adaptive 0.95 or more."""
    checks, told = Checks(), []
    known = data["outcast"]["runs"]["cc"].unique().to_list()
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


@figure("tcprand.fig8a", "outcast", caption="Fig. 8(a): Jain's index by buffer (mean of the seeds).")
def draw_fig8a(data: Data) -> alt.TopLevelMixin:
    """Fairness of every variant."""
    table = data["outcast"]["runs"].group_by("queue", "cc", maintain_order=True).agg(pl.col("jain").mean())
    return bars(
        table.with_columns(pl.format("{} packets", pl.col("queue")).alias("queue")),
        "cc",
        "jain",
        "queue",
        y_title="Jain's index",
    )


@figure("tcprand.fig8b", "outcast", caption="Fig. 8(b): total goodput by buffer, relative to the plain variant.")
def draw_fig8b(data: Data) -> alt.TopLevelMixin:
    """Goodput of every variant."""
    table = data["outcast"]["runs"].group_by("queue", "cc", maintain_order=True).agg(pl.col("mbps").mean())
    plain = {(row["queue"], row["cc"]): row["mbps"] for row in table.to_dicts()}
    relative = [
        {**row, "share": row["mbps"] / plain[row["queue"], "newreno" if row["cc"].startswith("newreno") else "cubic"]}
        for row in table.to_dicts()
    ]
    made = pl.DataFrame(relative).with_columns(pl.format("{} packets", pl.col("queue")).alias("queue"))
    return bars(made, "cc", "share", "queue", y_title="goodput of plain")


@figure("tcprand.fig8c", "background", caption="Fig. 8(c): Jain's index with UDP background, 20 packets of buffer.")
def draw_fig8c(data: Data) -> alt.TopLevelMixin:
    """Fairness by load."""
    table = _by_load(data).with_columns(pl.format("{} Mbps", pl.col("load")).alias("load"))
    return bars(table, "load", "jain", "cc", y_title="Jain's index")


# ---- Fig. 9: timeouts


def _classes(data: Data, queue: int, cc: str, column: str) -> tuple[float, float, float]:
    table = data["outcast"]["classes"].filter(pl.col("queue") == queue, pl.col("cc") == cc)
    near, pod, far = (mean(table.filter(pl.col("distance") == name)[column]) for name in CLASSES)
    return near, pod, far


def _ratios(data: Data, queue: int, column: str) -> tuple[float, ...]:
    pairs = zip(_classes(data, queue, ADAPTIVE, column), _classes(data, queue, "cubic", column), strict=True)
    return tuple(a / b for a, b in pairs)


@claim("tcprand.fig9.timeouts", "outcast")
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
                checks.that(c > 1, f"more timeouts of {name} at 20 packets")
            else:
                checks.that(p < 1, f"shorter period of {name} at {queue} packets")
            if queue == 100:
                checks.that(c < 1, f"fewer timeouts of {name} at 100 packets")
    first = _ratios(data, 20, "timeouts")[0], _ratios(data, 20, "timeout_ms")[0]
    checks.that(1.5 <= first[0] <= 5, "F1's count ratio at 20 packets in 1.5..5")
    checks.that(0.3 <= first[1] <= 0.8, "F1's period ratio at 20 packets in 0.3..0.8")
    return checks.outcome("; ".join(told), "each for F1, F2-F3, F4-F15")


@figure("tcprand.fig9", "outcast", caption="Fig. 9: timeouts and their period, TCPRand relative to CUBIC.")
def draw_fig9(data: Data) -> alt.TopLevelMixin:
    """Ratios by class and buffer."""
    found = [
        {"queue": f"{queue} packets", "distance": name, "ratio": ratio, "what": title}
        for title, column in (("timeout count", "timeouts"), ("timeout period", "timeout_ms"))
        for queue in (20, 60, 100)
        for name, ratio in zip(CLASSES, _ratios(data, queue, column), strict=True)
    ]
    return bars(pl.DataFrame(found), "queue", "ratio", "distance", y_title="TCPRand / CUBIC", panel="what", width=260)


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
                checks.that(near > other, f"{cc}'s near flow gets more against {far}")
        lowest[cc] = min(share for far, share in shares.items() if far >= 8)
        told.append(f"{cc}: {', '.join(f'{share:.2f} of its share against {far}' for far, share in shares.items())}")
    checks.that(lowest["cubic"] < 0.7, "CUBIC's near flow falls well below its share")
    checks.that(lowest[ADAPTIVE] >= 0.7, "TCPRand's near flow stays at 0.7 of its share or more")
    return checks.outcome("; ".join(told))


@figure(
    "tcprand.fig10",
    "scale",
    caption="Fig. 10: goodput of the 2-hop flow and of the 6-hop flows against their number (mean of the seeds).",
)
def draw_fig10(data: Data) -> alt.TopLevelMixin:
    """Goodput against the number of far flows."""
    table = data["scale"]["goodput"].group_by("cc", "far", "class", maintain_order=True).agg(pl.col("mbps").mean())
    table = table.with_columns(
        flow=pl.when(pl.col("class") == "near").then(pl.lit("2-hop flow")).otherwise(pl.lit("6-hop flows"))
    )
    return series(
        table.sort("far"),
        "far",
        "mbps",
        "flow",
        x_title="6-hop flows (log)",
        y_title="Mbps per flow",
        panel="cc",
        log_x=True,
    )


# ---- Fig. 11: completion times


def _times(data: Data, sizes: str, load: float, cc: str, size: str, column: str) -> float:
    table = data["fct"]["times"].filter(
        pl.col("sizes") == sizes, pl.col("load") == load, pl.col("cc") == cc, pl.col("class") == size
    )
    return mean(table[column])


@claim("tcprand.fig11.fct", "fct")
def fig11(data: Data) -> Outcome:
    """Short flows within 10 % of CUBIC; long flows' worst on web search at load 0.8 not above; DCTCP lower in general."""
    checks, told, lower = Checks(), [], []
    for sizes in data["fct"]["times"]["sizes"].unique(maintain_order=True):
        for load in (0.2, 0.8):
            ratio = _times(data, sizes, load, ADAPTIVE, "short", "mean_ms") / _times(
                data, sizes, load, "cubic", "short", "mean_ms"
            )
            told.append(f"{sizes} {load}: short flows' mean {ratio:.2f} of cubic's")
            checks.that(abs(ratio - 1) <= 0.1, f"short flows within 10 % on {sizes} at {load}")
            for size in ("short", "mid", "long"):
                marked = _times(data, sizes, load, "dctcp", size, "mean_ms")
                lower.append(marked / _times(data, sizes, load, "cubic", size, "mean_ms"))
    worst = _times(data, "web search", 0.8, ADAPTIVE, "long", "worst_ms") / _times(
        data, "web search", 0.8, "cubic", "long", "worst_ms"
    )
    checks.that(worst <= 1, "the worst long flow on web search at 0.8 not above CUBIC's")
    below = sum(r < 1 for r in lower)
    checks.that(below > len(lower) / 2, "DCTCP below CUBIC in most cases")
    return checks.outcome(
        f"{'; '.join(told)}; worst long flow {worst:.2f}; dctcp below cubic in {below} of {len(lower)} means"
    )


@figure(
    "tcprand.fig11",
    "fct",
    caption="Fig. 11: mean completion time by class of sizes, relative to CUBIC (mean of the seeds).",
)
def draw_fig11(data: Data) -> alt.TopLevelMixin:
    """Ratios to CUBIC."""
    table = (
        data["fct"]["times"].group_by("sizes", "load", "cc", "class", maintain_order=True).agg(pl.col("mean_ms").mean())
    )
    plain = table.filter(pl.col("cc") == "cubic").drop("cc")
    ratio = table.join(plain, on=["sizes", "load", "class"], suffix="_cubic").with_columns(
        ratio=pl.col("mean_ms") / pl.col("mean_ms_cubic"),
        case=pl.format("{}, load {}", pl.col("sizes"), pl.col("load")),
    )
    return bars(
        ratio.filter(pl.col("cc") != "cubic"),
        "class",
        "ratio",
        "cc",
        y_title="of CUBIC's mean",
        panel="case",
        width=200,
    )


# ---- Fig. 12: the testbed


@claim("tcprand.fig12.testbed", "testbed")
def fig12(data: Data) -> Outcome:
    """Fairness 0.88 or more and above CUBIC's with every setting, at most 6 % of goodput lost."""
    table = (
        data["testbed"]["runs"]
        .group_by("buffer", "flows", "cc", maintain_order=True)
        .agg(pl.col("jain", "mbps").mean())
    )
    checks, told = Checks(), []
    for buffer in sorted(table["buffer"].unique().to_list(), reverse=True):
        for flows in table["flows"].unique(maintain_order=True):
            part = {
                row["cc"]: row for row in table.filter(pl.col("buffer") == buffer, pl.col("flows") == flows).to_dicts()
            }
            line = ", ".join(f"{cc} {row['jain']:.3f}" for cc, row in part.items())
            told.append(f"{flows}, {buffer} packets: {line}")
            if buffer != MAIN:
                continue
            for cc, row in part.items():
                if cc.startswith("("):
                    checks.that(row["jain"] > part["cubic"]["jain"], f"{cc} above CUBIC with {flows}")
                    checks.that(row["jain"] >= 0.88, f"{cc} at 0.88 or more with {flows}")
                    checks.that(
                        row["mbps"] >= 0.94 * part["cubic"]["mbps"],
                        f"{cc} loses at most 6 % of the goodput with {flows}",
                    )
    return checks.outcome("; ".join(told[:2]), "; ".join(told[2:]))


@figure(
    "tcprand.fig12",
    "testbed",
    caption="Fig. 12: Jain's index of the senders' mean goodputs, by setting, flows and buffer.",
)
def draw_fig12(data: Data) -> alt.TopLevelMixin:
    """Fairness of every setting."""
    table = data["testbed"]["runs"].group_by("buffer", "flows", "cc", maintain_order=True).agg(pl.col("jain").mean())
    table = table.with_columns(case=pl.format("{} packets", pl.col("buffer")))
    return bars(table, "cc", "jain", "flows", y_title="Jain's index", panel="case", width=460, columns=2)


# ---- Fig. 13 and 14: under the microscope


@claim("tcprand.fig13-14.microscope", "microscope")
def fig13(data: Data) -> Outcome:
    """More isolated drops with smaller rMin; timeouts at least five times fewer without SACK, at most 4 with it."""
    checks = Checks()
    alone, waits = _microscope(data, MAIN)
    sizes = sorted({size for _, size in alone}, reverse=True)
    shares = [alone["SACK", size] for size in sizes]
    checks.that(all(b >= a for a, b in pairwise(shares)), "the share of isolated drops rises as rMin falls")
    checks.that(waits["no SACK", 200] * 5 <= waits["no SACK", 1448], "five times fewer timeouts without SACK")
    checks.that(max(waits["SACK", size] for size in sizes) <= 4, "at most 4 timeouts with SACK")
    remarks = [f"for rMin {', '.join(map(str, sizes))}, 15 flows against one, per 100 s"]
    if 100 in data["microscope"]["flow"]["buffer"]:
        remarks.append(f"with 100 packets of buffer {_told(*_microscope(data, 100), sizes)}")
    return checks.outcome(_told(alone, waits, sizes), "; ".join(remarks))


Cells = dict[tuple[str, int], float]


def _microscope(data: Data, buffer: int) -> tuple[Cells, Cells]:
    """Share of segments lost alone, and timeouts per 100 s, by SACK and rMin."""
    lengths = data["microscope"]["lengths"].filter(pl.col("buffer") == buffer)
    flow = data["microscope"]["flow"].filter(pl.col("buffer") == buffer)
    alone: Cells = {}
    waits: Cells = {}
    for sack, size in flow.select("sack", "rmin").unique(maintain_order=True).iter_rows():
        part = lengths.filter(pl.col("sack") == sack, pl.col("rmin") == size)
        lost = number((part["length"] * part["runs"]).sum())
        alone[sack, size] = number(part.filter(pl.col("length") == 1)["runs"].sum()) / max(1.0, lost)
        waits[sack, size] = PER_100_S * mean(flow.filter(pl.col("sack") == sack, pl.col("rmin") == size)["timeouts"])
    return alone, waits


def _told(alone: Cells, waits: Cells, sizes: list[int]) -> str:
    return "; ".join(
        f"{sack}: isolated drops {', '.join(f'{alone[sack, s]:.0%}' for s in sizes)}, timeouts {', '.join(f'{waits[sack, s]:.0f}' for s in sizes)}"
        for sack in ("SACK", "no SACK")
    )


@figure(
    "tcprand.fig13-14",
    "microscope",
    caption="Fig. 13: share of the outcast flow's lost segments by length of the run they were lost in, 15 flows against it.",
)
def draw_fig13(data: Data) -> alt.TopLevelMixin:
    """Distribution of runs of drops."""
    table = (
        data["microscope"]["lengths"]
        .filter(pl.col("buffer") == MAIN)
        .group_by("sack", "rmin", "length")
        .agg(lost=(pl.col("length") * pl.col("runs")).sum())
    )
    table = table.with_columns(share=pl.col("lost") / pl.col("lost").sum().over("sack", "rmin"), case=pl.col("sack"))
    table = table.sort("case", "length", pl.col("rmin"), descending=[True, False, True]).with_columns(
        run=pl.when(pl.col("length") == 6).then(pl.lit("6+")).otherwise(pl.col("length").cast(pl.String)),
        rMin=pl.format("rMin {}", pl.col("rmin")),
    )
    return bars(table, "run", "share", "rMin", y_title="share of lost segments", panel="case", width=330, columns=2)


# ---- Fig. 15: incast


@claim("tcprand.fig15.incast", "incast")
def fig15(data: Data) -> Outcome:
    """TCPRand never more than 5 % below CUBIC; DCTCP the best."""
    table = (
        data["incast"]["runs"].group_by("senders", "cc", maintain_order=True).agg(pl.col("mbps").mean()).sort("senders")
    )
    wide = table.pivot(on="cc", index="senders")
    ratio = wide[ADAPTIVE] / wide["cubic"]
    checks = Checks()
    checks.that(number(ratio.min()) >= 0.95, "TCPRand never more than 5 % below CUBIC")
    # One or two senders lose nothing, whatever they run.
    many = wide.filter(pl.col("senders") > 2)
    best = (many["dctcp"] >= many["cubic"]).all() and (many["dctcp"] >= many[ADAPTIVE]).all()
    checks.that(bool(best), "DCTCP the best with more than two senders")
    last = wide.filter(pl.col("senders") == wide["senders"].max()).to_dicts()[0]
    told = ", ".join(f"{cc} {last[cc]:.0f} Mbps" for cc in ("cubic", ADAPTIVE, "dctcp"))
    return checks.outcome(f"TCPRand at least {number(ratio.min()):.3f} of CUBIC; with {last['senders']} senders {told}")


@figure(
    "tcprand.fig15",
    "incast",
    caption="Fig. 15: goodput of 128 KB blocks against the number of senders (mean of the seeds).",
)
def draw_fig15(data: Data) -> alt.TopLevelMixin:
    """Goodput against senders."""
    table = data["incast"]["runs"].group_by("senders", "cc", maintain_order=True).agg(pl.col("mbps").mean())
    return series(table.sort("senders"), "senders", "mbps", "cc", y_title="goodput, Mbps")


# ---- Fig. 16 and 17: convergence


def _phases(data: Data) -> dict[str, float]:
    """Mean over the phases with two flows or more of the index of their mean rates."""
    table = data["convergence"]["throughput"].with_columns(phase=((pl.col("time_ms") - 1) / 30_000).floor())
    # A flow that stopped leaves a few packets to the next phase.
    table = table.filter(pl.len().over("cc", "seed", "phase", "flow") > 5)
    flows = table.group_by("cc", "seed", "phase", "flow").agg(pl.col("bytes").sum())
    found: dict[str, list[float]] = {}
    for (cc, _, _), part in flows.group_by("cc", "seed", "phase"):
        if part.height > 1:
            found.setdefault(str(cc), []).append(jain(part["bytes"]))
    return {cc: sum(values) / len(values) for cc, values in found.items()}


def _correlation(data: Data, cc: str) -> float:
    window = data["windows"]["window"].filter(pl.col("cc") == cc, pl.col("ms") > 500)
    pairs = window.filter(pl.col("flow") == 0).join(window.filter(pl.col("flow") == 1), on=["seed", "ms"])
    return mean(pairs.group_by("seed").agg(r=pl.corr("cwnd", "cwnd_right"))["r"])


@claim("tcprand.fig16-17.convergence", "convergence", "windows")
def fig16(data: Data) -> Outcome:
    """Interval Jain within 0.03 of CUBIC's; windows less correlated."""
    index = _phases(data)
    together = {cc: _correlation(data, cc) for cc in ("cubic", ADAPTIVE)}
    checks = Checks()
    checks.that(abs(index[ADAPTIVE] - index["cubic"]) <= 0.03, "interval Jain within 0.03 of CUBIC's")
    checks.that(together[ADAPTIVE] < together["cubic"], "windows less correlated under TCPRand")
    return checks.outcome(
        f"Jain {index[ADAPTIVE]:.3f} (TCPRand) and {index['cubic']:.3f} (CUBIC); "
        f"correlation of two windows {together[ADAPTIVE]:.2f} and {together['cubic']:.2f}"
    )


@figure(
    "tcprand.fig16-17",
    "convergence",
    caption="Fig. 16: throughput of five flows that join and leave 30 s apart (first seed).",
)
def draw_fig16(data: Data) -> alt.TopLevelMixin:
    """Throughput of each flow against time."""
    table = data["convergence"]["throughput"].filter(pl.col("seed") == 1)
    table = table.with_columns(
        s=((pl.col("time_ms") - 1) / 2e3).floor() * 2 + 2, flow=pl.format("flow {}", pl.col("flow") + 1)
    )
    means = table.group_by("cc", "flow", "s", maintain_order=True).agg(mbps=pl.col("bytes").sum() * 8 / 2e6)
    return series(means, "s", "mbps", "flow", x_title="s", y_title="Mbps", panel="cc", points=False, columns=2)
