"""Sections 7 and 8.2: what the paper's machines did, simulated (Fig. 12 to 14, 16 and 17)."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import polars as pl
from fanin.papers.drawing import (
    CROSS,
    CUBIC,
    DCTCP,
    FLOWS,
    GREEN,
    INK,
    ORANGE,
    ORDERED,
    RULE,
    SKY,
    VERMILION,
    Axis,
    Figure,
    Key,
    Published,
    bars,
    lines,
    seconds,
    shares_over_time,
)
from fanin.papers.numbers import jain, mean, number, step
from fanin.papers.verdicts import Checks, Data, Outcome, claim, figure, whole
from fanin.statistics.seeds import paired_differences

from .common import ADAPTIVE


def per_100_s(flow: pl.DataFrame) -> float:
    """What makes counts of runs counts per 100 s, as published; runs of Fig. 13 and 14 are 20 s long, on a kernel shorter."""
    return 100 / round(number(flow["seconds"].max()), 1)


# ---- Fig. 12: the testbed


EVEN = "(1, 1, 1)"
"""One flow from each sender: no outcast."""

DEFAULT = "(1, 1, 1, 1)"

CONSERVATIVE = "(1, 1, inf, 1)"
"""Section 7.1's most conservative setting, which gains 16 to 41 % over CUBIC there."""


@claim("tcprand.fig12.testbed", "testbed")
def fig12(data: Data) -> Outcome:
    """Fairness 0.88 or more and above CUBIC's with every setting, at most 6 % of goodput lost; the conservative one gains 10 % somewhere."""
    table = data["testbed"]["runs"].group_by("flows", "cc", maintain_order=True).agg(pl.col("jain", "mbps").mean())
    checks, told, gains = Checks(), [], []
    for flows in table["flows"].unique(maintain_order=True):
        part = {row["cc"]: row for row in table.filter(pl.col("flows") == flows).to_dicts()}
        line = ", ".join(f"{cc} {row['jain']:.3f}" for cc, row in part.items())
        told.append(f"{flows}: {line}")
        # The band is about outcast; what no flow suffers from cannot be cured.
        if flows == EVEN:
            kept = part[DEFAULT]["mbps"] / part["cubic"]["mbps"]
            told[-1] += f"; {DEFAULT} keeps {kept:.3f} of the goodput (published: loses about 1 %)"
            continue
        gains.append(100 * (part[CONSERVATIVE]["jain"] / part["cubic"]["jain"] - 1))
        for cc, row in part.items():
            if cc.startswith("("):
                checks.that(row["jain"] > part["cubic"]["jain"], f"{cc} above CUBIC with {flows}", each=True)
                checks.that(row["jain"] >= 0.88, f"{cc} at 0.88 or more with {flows}", each=True)
                checks.that(
                    row["mbps"] >= 0.94 * part["cubic"]["mbps"],
                    f"{cc} loses at most 6 % of the goodput with {flows}",
                    each=True,
                )
    gained = " and ".join(f"{gain:.0f} %" for gain in gains)
    checks.that(
        max(gains, default=0.0) >= 10,
        f"the conservative setting gains 10 % over CUBIC or more in one of the cases ({gained})",
    )
    return checks.outcome("; ".join(told[:2]), "; ".join([f"the conservative setting gains {gained}", *told[2:]]))


@figure(
    "tcprand.fig12",
    "testbed",
    title="Fig. 12. Fairness and total goodput with flows from three senders",
    caption="Mean over seeds. The four numbers are the variance and mean of the adaptive rule and its factors for begin and end; the switches' buffer, "
    "which is not stated, is 1000 packets.",
)
def draw_fig12(data: Data) -> Figure:
    """Fairness and goodput of every setting."""
    table = data["testbed"]["runs"].group_by("flows", "cc", maintain_order=True).agg(pl.col("jain", "mbps").mean())
    plain = table.filter(pl.col("cc") == "cubic").select("flows", plain="mbps")
    table = table.join(plain, on="flows").with_columns(share=pl.col("mbps") / pl.col("plain"))
    keys = {
        "cubic": replace(CUBIC, kind="bar"),
        "(1, 1, inf, 1)": Key("TCPRand (1, 1, ∞, 1)", ORANGE, kind="bar"),
        "(1, 1, 1, 1)": Key("TCPRand (1, 1, 1, 1)", VERMILION, kind="bar"),
        "(1, 1, 1, 0)": Key("TCPRand (1, 1, 1, 0)", SKY, kind="bar"),
        "(1, 0, 1, 0)": Key("TCPRand (1, 0, 1, 0)", GREEN, kind="bar"),
        "dctcp": replace(DCTCP, kind="bar"),
    }
    fair = Axis("jain", "Jain's index", (0, 1.12), [0, 0.2, 0.4, 0.6, 0.8, 1])
    good = Axis("share", "total goodput, of CUBIC's", (0, 1.12), [0, 0.2, 0.4, 0.6, 0.8, 1])
    stated = [Published(y=0.9, label="0.9", align="outside")]
    parts = [
        bars(table, "flows", fair, "cc", keys, title="fairness", marks=stated),
        bars(table, "flows", good, "cc", keys, title="goodput"),
    ]
    return Figure(parts, [*keys.values(), replace(RULE, name="published: TCPRand never below")], 2)


# ---- Fig. 13 and 14: under the microscope


@claim("tcprand.fig13-14.microscope", "microscope")
def fig13(data: Data) -> Outcome:
    """More isolated drops with smaller rMin; timeouts at least five times fewer without SACK, at most 4 with it."""
    checks = Checks()
    alone, waits = _microscope(data)
    sizes = sorted({size for _, size in alone}, reverse=True)
    shares = [alone["SACK", size] for size in sizes]
    checks.that(all(b >= a for a, b in pairwise(shares)), "the share of isolated drops rises as rMin falls")
    checks.that(waits["no SACK", 200] * 5 <= waits["no SACK", 1448], "five times fewer timeouts without SACK")
    checks.that(max(waits["SACK", size] for size in sizes) <= 4, "at most 4 timeouts with SACK")
    return checks.outcome(
        _told(alone, waits, sizes), f"for rMin {', '.join(map(str, sizes))}, 15 flows against one, per 100 s"
    )


Cells = dict[tuple[str, int], float]


def _microscope(data: Data) -> tuple[Cells, Cells]:
    """Share of segments lost alone, and timeouts per 100 s, by SACK and rMin."""
    lengths = data["microscope"]["lengths"]
    flow = data["microscope"]["flow"]
    alone: Cells = {}
    waits: Cells = {}
    for sack, size in flow.select("sack", "rmin").unique(maintain_order=True).iter_rows():
        part = lengths.filter(pl.col("sack") == sack, pl.col("rmin") == size)
        lost = number((part["length"] * part["runs"]).sum())
        alone[sack, size] = number(part.filter(pl.col("length") == 1)["runs"].sum()) / max(1.0, lost)
        waits[sack, size] = per_100_s(flow) * mean(
            flow.filter(pl.col("sack") == sack, pl.col("rmin") == size)["timeouts"]
        )
    return alone, waits


def _told(alone: Cells, waits: Cells, sizes: list[int]) -> str:
    return "; ".join(
        f"{sack}: isolated drops {', '.join(f'{alone[sack, s]:.0%}' for s in sizes)}, timeouts {', '.join(f'{waits[sack, s]:.0f}' for s in sizes)}"
        for sack in ("SACK", "no SACK")
    )


@figure(
    "tcprand.fig13-14",
    "microscope",
    "microscope_m",
    "microscope_grid",
    title="Fig. 13 and 14. Drops, timeouts and retransmissions of the outcast flow, against 15 flows",
    caption="Mean over seeds, all flows with the same rMin, 1000 packets of buffer. Timeouts and retransmissions are stated per 100 s, as published. "
    "Published: the share of isolated drops rises and runs of drops shrink as rMin falls. Last: against 5 and 25 flows, and with an rMin of its own.",
)
def draw_fig13(data: Data) -> Figure:
    """Runs of drops, timeouts and retransmissions along rMin."""
    flow = data["microscope"]["flow"]
    sizes = sorted(flow["rmin"].unique(), reverse=True)
    lengths = data["microscope"]["lengths"]
    lost = lengths.group_by("sack", "rmin", "length").agg(lost=(pl.col("length") * pl.col("runs")).sum())
    lost = lost.with_columns(share=100 * pl.col("lost") / pl.col("lost").sum().over("sack", "rmin"))
    # A run length that never occurred has no row.
    grid = lost.select("sack", "rmin").unique().join(pl.DataFrame({"length": range(1, 7)}), how="cross")
    lost = grid.join(lost, on=["sack", "rmin", "length"], how="left").with_columns(pl.col("share").fill_null(0.0))
    lost = lost.sort(pl.col("rmin"), descending=True).with_columns(words=pl.col("rmin").cast(pl.String))
    flow = flow.group_by("sack", "rmin").agg(pl.col("timeouts", "retransmissions").mean() * per_100_s(flow))
    flow = flow.sort("rmin", descending=True).with_columns(words=pl.col("rmin").cast(pl.String))
    both = {
        "no SACK": Key("without SACK", INK, (6, 3), "circle", hollow=True, width=2.0),
        "SACK": Key("with SACK", VERMILION, shape="triangle-up"),
    }
    along = Axis("words", "rMin (bytes)", ticks=[str(s) for s in sizes], kind="points")
    alone = lost.filter(pl.col("length") == 1)
    share = Axis("share", "share of lost segments (%)", (0, 100))
    parts = [lines(alone, along, share, "sack", both, title="13(a) lost alone")]
    runs = {
        n: Key(f"{n}{'+' if n == 6 else ''} in a row", colour, dash, shape="circle", width=1.6)
        for n, (colour, dash) in zip(
            range(2, 7),
            (("#0b4a7d", ()), ("#3d8fc4", ()), ("#9ecae9", ()), (ORANGE, ()), (VERMILION, (4, 2))),
            strict=True,
        )
    }
    parts.append(
        lines(
            lost.filter(pl.col("sack") == "SACK"),
            along,
            replace(share, domain=(0, 60)),
            "length",
            runs,
            title="13(b) lost in a row, with SACK",
        )
    )
    waits = [
        Published("1448", 204, "204", INK, dx=8),
        Published("200", 9, "9", INK, align="right", dx=8, dy=-8),
        *(Published(str(size), 0, colour=VERMILION) for size in sizes),
    ]
    parts.append(
        lines(
            flow,
            along,
            Axis("timeouts", "timeouts in 100 s", (0, 230)),
            "sack",
            both,
            title="14 timeouts",
            published=waits,
        )
    )
    again = Axis("retransmissions", "retransmissions in 100 s", (0, 1.1 * float(flow["retransmissions"].max())))  # type: ignore[arg-type]
    parts.append(lines(flow, along, again, "sack", both, title="14 retransmissions"))
    others, sizes_of_others = _against_more(data)
    return Figure([*parts, *others], [*both.values(), *runs.values(), *sizes_of_others.values(), CROSS], 2)


def _against_more(data: Data) -> tuple[list[Any], dict[int, Key]]:
    """Timeouts against 5 and 25 flows, and retransmissions where the one flow and the others have different rMin, without SACK."""
    sizes = sorted({*data["microscope_m"]["flow"]["rmin"], *data["microscope_grid"]["flow"]["rmin"]}, reverse=True)
    keys = {
        size: Key(f"rMin {size} of the others", colour, kind="bar")
        for size, colour in zip(sizes, ORDERED, strict=False)
    }
    many = data["microscope_m"]["flow"]
    counted = many.group_by("many", "sack", "rmin").agg(pl.col("timeouts").mean() * per_100_s(many))
    rows = counted.with_columns(case=pl.format("{} flows\n{}", "many", "sack")).sort("many", "sack")
    timeouts = Axis("timeouts", "timeouts in 100 s", (0, 1.1 * max(1.0, number(rows["timeouts"].max()))))
    each = data["microscope_grid"]["flow"]
    grid = each.group_by("one", "rmin").agg(pl.col("retransmissions").mean() * per_100_s(each))
    cells = grid.sort("one", descending=True).with_columns(case=pl.format("its own {}", "one"))
    again = Axis("retransmissions", "in 100 s", (0, 1.1 * number(cells["retransmissions"].max())))
    return [
        bars(rows, "case", timeouts, "rmin", keys, title="timeouts against 5 and 25 flows"),
        bars(cells, "case", again, "rmin", keys, title="14 retransmissions, no SACK, by rMin"),
    ], keys


# ---- Fig. 16 and 17: convergence

JOINING = 5
"""Flows of Fig. 16."""

LEAST_SEEDS = 20
"""Fewer do not tell two correlations apart."""


def _phases(data: Data) -> dict[str, float]:
    """Mean over the phases with two flows or more of the index of their mean rates."""
    rates = data["convergence"]["throughput"]
    # 30 s, shorter with --quick on a kernel.
    apart = step(rates)
    table = rates.with_columns(phase=((pl.col("time_ms") - 1) / apart).floor())
    # A flow that stopped leaves a few packets to the next phase.
    table = table.filter(pl.len().over("cc", "seed", "phase", "flow") > 5)
    flows = table.group_by("cc", "seed", "phase", "flow").agg(pl.col("bytes").sum())
    found: dict[str, list[float]] = {}
    for (cc, _, _), part in flows.group_by("cc", "seed", "phase"):
        if part.height > 1:
            found.setdefault(str(cc), []).append(jain(part["bytes"]))
    return {cc: sum(values) / len(values) for cc, values in found.items()}


def _correlations(data: Data, cc: str) -> list[float]:
    """Of each seed, in their order."""
    window = data["windows"]["window"].filter(pl.col("cc") == cc, pl.col("ms") > 500)
    pairs = window.filter(pl.col("flow") == 0).join(window.filter(pl.col("flow") == 1), on=["seed", "ms"])
    return pairs.group_by("seed").agg(r=pl.corr("cwnd", "cwnd_right")).sort("seed")["r"].to_list()


@claim("tcprand.fig16-17.convergence", "convergence", "windows")
def fig16(data: Data) -> Outcome:
    """Interval Jain within 0.03 of CUBIC's; windows less correlated."""
    whole(data["convergence"]["throughput"], ("cubic", ADAPTIVE), JOINING)
    index = _phases(data)
    each = {cc: _correlations(data, cc) for cc in ("cubic", ADAPTIVE)}
    together = {cc: sum(values) / len(values) for cc, values in each.items()}
    less = paired_differences(each[ADAPTIVE], each["cubic"]).change
    checks = Checks()
    checks.that(abs(index[ADAPTIVE] - index["cubic"]) <= 0.03, "interval Jain within 0.03 of CUBIC's")
    if data.half:
        checks.that(together[ADAPTIVE] < together["cubic"], "windows less correlated under TCPRand")
    else:
        interval = "unknown" if less.low is None or less.high is None else f"[{less.low:+.2f}, {less.high:+.2f}]"
        enough = data.quick or len(each["cubic"]) >= LEAST_SEEDS
        checks.that(
            enough and less.high is not None and less.high < 0,
            f"windows less correlated under TCPRand (they cannot be told apart: difference {less.value:+.2f}, 95 % interval {interval})",
        )
    return checks.outcome(
        f"Jain {index[ADAPTIVE]:.3f} (TCPRand) and {index['cubic']:.3f} (CUBIC); "
        f"correlation of two windows {together[ADAPTIVE]:.2f} and {together['cubic']:.2f}"
    )


@figure(
    "tcprand.fig16-17",
    "convergence",
    "windows",
    title="Fig. 16 and 17. Five flows that join and leave, and the windows of two",
    caption="First seed; throughput in intervals of 2 s. Published: both converge alike; the windows of two flows are rather synchronised with CUBIC and "
    "less so with TCPRand.",
)
def draw_fig16(data: Data) -> Figure:
    """Throughput of each flow, then two windows, against time."""
    titles = {"cubic": "CUBIC", ADAPTIVE: "TCPRand"}
    above = shares_over_time(
        data["convergence"]["throughput"],
        {cc: f"16({letter}) {name}" for letter, (cc, name) in zip("ab", titles.items(), strict=True)},
        bin_ms=2000,
        until=280,
    )
    window = data["windows"]["window"].filter(pl.col("seed") == pl.col("seed").min()).rename({"ms": "time_ms"})
    since, until = 5.0, 15.0
    shown = seconds(window.filter(pl.col("cc").is_in(list(titles))), "cwnd", since, until, ["cc", "flow"])
    size = Axis("cwnd", "window (packets)", (0, 1.1 * float(shown["cwnd"].max())))  # type: ignore[arg-type]
    time = Axis("s", "time (s)", (since, until))
    below = [
        lines(
            shown.filter(pl.col("cc") == cc),
            time,
            size,
            "flow",
            dict(enumerate(FLOWS[:2])),
            title=f"17({letter}) {name}",
            step=True,
        )
        for letter, (cc, name) in zip("ab", titles.items(), strict=True)
    ]
    return Figure([*above.parts, *below], above.keys, 2)
