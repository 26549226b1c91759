"""Sections IV.C and IV.D: thousands of connections, and fat-trees (Fig. 11, Table II and Fig. 12)."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import polars as pl
from fanin.papers.drawing import BOTH, CROSS, RULE, VERMILION, Axis, Figure, Published, lines
from fanin.papers.numbers import greatest
from fanin.papers.verdicts import Checks, Data, Outcome, claim, figure, listed

from .common import ALL, BASELINES, KEYS, in_words, keys, kib, sizes

TIMEOUTS = Axis("timeouts", "timeouts", (0, 30_000), [0, 1, 10, 100, 1000, 10_000], "symlog", ",d")
"""Logarithmic above 1, with a place for none."""

# ---- Fig. 11: thousands of connections


@claim("trim.fig11.high-concurrency", "fig11_normal", "fig11_base")
def high_concurrency(data: Data) -> Outcome:
    """Timeouts by algorithm, buffer and number of connections, in the normal and in the base case."""
    normal, base = concurrency(data, "fig11_normal"), concurrency(data, "fig11_base")
    checks = Checks()
    for name, case in (("normal", normal), ("base", base)):
        reno = case["reno"]
        checks.that(
            all(reno[k] >= max(case[cc][k] for cc in ALL) for k in reno),
            f"{name} case: TCP has the most everywhere",
            each=True,
        )
        checks.that(
            all(case["trim"][k] <= min(case[cc][k] for cc in BASELINES) for k in reno),
            f"{name} case: TRIM has the fewest everywhere",
            each=True,
        )
        zero = {1000: lambda b: b > 512, 2000: lambda b: b >= 2048, 3000: lambda b: b >= 2048}
        wrong = [f"{n} at {b} KB: {v:.0f}" for (n, b), v in case["trim"].items() if n in zero and zero[n](b) and v > 0]
        checks.that(
            not wrong,
            f"{name} case: TRIM has none above 512 KB at 1000, from 2 MB at 2000 and 3000 ({', '.join(wrong)})",
            each=True,
        )
    checks.that(
        all(v > 0 for (_, b), v in normal["reno"].items() if b == 4096),
        "normal case: TCP still has some at 4 MB",
        each=True,
    )
    many = [v for (n, _), v in normal["trim"].items() if n == 4000]
    checks.that(not many or max(many) > 0, "normal case: TRIM has some at 4000")
    for cc in ALL:
        worse = [k for k in base[cc] if base[cc][k] > normal[cc][k]]
        checks.that(
            not worse,
            f"{cc}: the base case has no more than the normal one ({len(worse)} of {len(base[cc])} cells do)",
            each=True,
        )
    # The base case has fewer buffers.
    total = {cc: (sum(normal[cc][k] for k in base[cc]), sum(base[cc].values())) for cc in ALL}
    d, l2 = total["dctcp"], total["l2dct"]
    checks.that(max(d[0], l2[0]) <= 2 * min(d[0], l2[0]), "DCTCP and L2DCT are alike (within 2 times)")
    checks.that(d[1] < d[0] and l2[1] < l2[0], "DCTCP and L2DCT are better in the base case")
    said = "; ".join(f"{cc} {a:.0f} and {b:.0f}" for cc, (a, b) in total.items())
    return checks.outcome(
        f"timeouts over all numbers of connections and the buffers of both cases, normal and base case: {said}"
    )


def concurrency(data: Data, name: str) -> dict[str, dict[tuple[int, int], float]]:
    """Mean timeouts per run by algorithm, (connections, buffer in KB)."""
    rows = data[name]["runs"].group_by("cc", "connections", "buffer").agg(pl.col("timeouts").mean())
    found: dict[str, dict[tuple[int, int], float]] = {cc: {} for cc in ALL}
    for row in rows.sort("connections", "buffer").to_dicts():
        found[row["cc"]][row["connections"], kib(row["buffer"])] = row["timeouts"]
    return found


@figure(
    "trim.fig11",
    "fig11_normal",
    "fig11_base",
    title="Fig. 11. Timeouts of 1000 to 4000 connections against the buffer",
    caption="Mean over seeds; normal case: connections stay open, base case: a new one for each response. The scale is logarithmic above 1. "
    "Crosses: buffers with which TRIM has none, as published.",
)
def draw_fig11(data: Data) -> Figure:
    """Timeouts along the buffer, the two cases beside each other."""
    found = {}
    for name, case in (("fig11_normal", "normal"), ("fig11_base", "base")):
        rows = (
            data[name]["runs"].group_by("cc", "connections", "buffer").agg(pl.col("timeouts").cast(pl.Float64).mean())
        )
        for count in rows["connections"].unique():
            part = rows.filter(pl.col("connections") == count)
            found[count, case] = part.sort(pl.col("buffer").map_elements(kib, return_dtype=pl.Int64)).with_columns(
                size=in_words("buffer")
            )
    least_without = {1000: 1024, 2000: 2048, 3000: 2048}
    parts = []
    # A number of connections that only one case was run with comes last, so that the others stand in pairs.
    for count, case in sorted(found, key=lambda one: ((one[0], "base") not in found, one[0], one[1] == "base")):
        rows = found[count, case]
        buffer = Axis("size", "buffer", ticks=sizes(rows, "buffer"), kind="points")
        none = [
            Published(size, 0, colour=VERMILION)
            for size, kilobytes in zip(sizes(rows, "buffer"), sorted(map(kib, rows["buffer"].unique())), strict=True)
            if kilobytes >= least_without.get(count, 1 << 20)
        ]
        parts.append(
            lines(rows, buffer, TIMEOUTS, "cc", keys(*ALL), title=f"{count} connections, {case} case", published=none)
        )
    return Figure(parts, [*keys(*ALL).values(), replace(CROSS, name="published: none with TRIM", colour=VERMILION)], 2)


# ---- Table II and Fig. 12: fat-tree

PODS = (4, 6, 8, 10)

DRAWN_OBJECTS = 50
"""Small objects per host in the drawing of Table II, which is judged for each number tried."""

PUBLISHED_TIMEOUTS = {
    "reno": (13, 85, 452, 1738),
    "dctcp": (9, 75, 440, 859),
    "l2dct": (9, 71, 274, 493),
    "trim": (8, 39, 141, 285),
}
"""Table II along :data:`PODS`."""


@claim("trim.table2.fat-tree-timeouts", "table2")
def fat_tree_timeouts(data: Data) -> Outcome:
    """Timeouts by pods, for some number of small objects per host that is the same for every number of pods."""
    runs = data["table2"]["runs"].group_by("objects", "cc", "k").agg(pl.col("timeouts").mean())
    tried = [_table_with(runs.filter(pl.col("objects") == n), n) for n in sorted(set(runs["objects"]))]
    best = next((one for one in tried if one.holds), tried[0])
    others = "; ".join(one.ours for one in tried if one is not best)
    return replace(best, reason="; ".join(x for x in (best.reason, f"otherwise {others}") if x))


def _table_with(runs: pl.DataFrame, objects: int) -> Outcome:
    count = {(r["cc"], r["k"]): r["timeouts"] for r in runs.to_dicts()}
    pods = sorted({k for _, k in count})
    checks = Checks()
    for k in pods:
        row = [count[cc, k] for cc in ALL]
        checks.that(row == sorted(row, reverse=True), f"k = {k}: TCP >= DCTCP >= L2DCT >= TRIM ({listed(row, 1)})")
    most = max(pods)
    reno, dctcp, l2dct, trim = (count[cc, most] for cc in ALL)
    checks.that(
        reno > dctcp and l2dct > trim,
        f"k = {most}: TCP above DCTCP and L2DCT above TRIM ({listed([reno, dctcp, l2dct, trim], 1)})",
    )
    checks.that(trim <= 0.3 * reno, f"TRIM is at least 70 % below TCP at k = {most}")
    published = PUBLISHED_TIMEOUTS["reno"][PODS.index(most)]
    checks.that(
        published / 5 <= reno <= 5 * published,
        f"TCP's {reno:.0f} timeouts at k = {most} within a factor of 5 of the published {published}",
    )
    ours = ", ".join(f"k={k} {'/'.join(f'{count[cc, k]:.0f}' for cc in ALL)}" for k in pods)
    return checks.outcome(f"with {objects} small objects per host: {ours}")


@figure(
    "trim.table2",
    "table2",
    title="Table II. Timeouts in a fat-tree against its number of pods",
    caption="Mean over seeds, 50 small objects per host; the scale is logarithmic above 1.",
)
def draw_table2(data: Data) -> Figure:
    """Timeouts along the number of pods."""
    runs = data["table2"]["runs"].filter(pl.col("objects") == DRAWN_OBJECTS)
    ours = runs.group_by("cc", "k").agg(pl.col("timeouts").cast(pl.Float64).mean()).sort("k")
    ours = ours.with_columns(pods=pl.col("k").cast(pl.String))
    said = pl.DataFrame(
        [
            {"line": f"published {cc}", "pods": str(k), "timeouts": float(v)}
            for cc, row in PUBLISHED_TIMEOUTS.items()
            for k, v in zip(PODS, row, strict=True)
        ]
    )
    rows = pl.concat([said, ours.select("pods", "timeouts", line="cc").select(said.columns)])
    dashed = {f"published {cc}": replace(RULE, colour=KEYS[cc].colour) for cc in ALL}
    crosses = [
        Published(str(k), v, colour=KEYS[cc].colour)
        for cc, row in PUBLISHED_TIMEOUTS.items()
        for k, v in zip(PODS, row, strict=True)
    ]
    pods = Axis("pods", "pods", ticks=[str(k) for k in PODS], kind="points")
    panel = lines(rows, pods, TIMEOUTS, "line", {**dashed, **keys(*ALL)}, published=crosses, height=240)
    return Figure([panel], [*keys(*ALL).values(), BOTH])


@claim("trim.fig12.fat-tree-completion", "fig12")
def fat_tree_completion(data: Data) -> Outcome:
    """Mean and greatest completion time over servers."""
    runs = data["fig12"]["runs"].group_by("cc", "k").agg(pl.col("mean_ms", "max_ms").mean(), pl.col("unfinished").sum())
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
    rise = {cc: max(cell[cc, b]["max_ms"] - cell[cc, a]["max_ms"] for a, b in pairwise(pods)) for cc in ALL}
    checks.that(
        rise["reno"] == max(rise.values()),
        f"the steepest rise of a maximum between two consecutive k is TCP's ({listed(rise.values())} ms)",
    )
    return checks.outcome(
        "mean (max) ms: "
        + "; ".join(
            f"{cc} " + ", ".join(f"{cell[cc, k]['mean_ms']:.0f} ({cell[cc, k]['max_ms']:.0f})" for k in pods)
            for cc in ALL
        )
    )


@figure(
    "trim.fig12",
    "fig12",
    title="Fig. 12. Completion times in the 10 Gbps fat-tree",
    caption="From 0.1 s until a server's megabyte is delivered; mean over seeds. The axes begin at 400 ms, when the large object of every server "
    "starts. Published: TRIM the smallest everywhere, and TCP's tail rises sharply.",
)
def draw_fig12(data: Data) -> Figure:
    """Mean and greatest completion time along the number of pods."""
    rows = data["fig12"]["runs"].group_by("cc", "k").agg(pl.col("mean_ms", "max_ms").mean()).sort("k")
    rows = rows.with_columns(pods=pl.col("k").cast(pl.String))
    pods = Axis("pods", "pods", ticks=list(dict.fromkeys(rows["pods"])), kind="points")
    parts = []
    for column, title in (("mean_ms", "mean over servers"), ("max_ms", "greatest of the servers")):
        span = greatest(rows[column]) - 400
        axis = Axis(column, "completion time (ms)", (400 - 0.03 * span, 400 + 1.1 * span))
        parts.append(lines(rows, pods, axis, "cc", keys(*ALL), title=title))
    return Figure(parts, list(keys(*ALL).values()), 2)
