"""Sections 6.4 and 8.1: completion times under real workloads, and incast (Fig. 11 and 15)."""

from __future__ import annotations

import polars as pl
from fanin.papers.drawing import ORDERED, RULE, Axis, Figure, Key, Published, bars, lines
from fanin.papers.numbers import mean, number
from fanin.papers.verdicts import Checks, Data, Outcome, claim, figure, listed

from .common import ADAPTIVE, BARS, KEYS

# ---- Fig. 11: completion times


def _times(data: Data, sizes: str, load: float, cc: str, size: str, column: str) -> float:
    table = data["fct"]["times"].filter(
        pl.col("sizes") == sizes, pl.col("load") == load, pl.col("cc") == cc, pl.col("class") == size
    )
    return mean(table[column])


@claim("tcprand.fig11.fct", "fct")
def fig11(data: Data) -> Outcome:
    """Short flows at most 10 % above CUBIC's; long flows' worst on web search at load 0.8 below; DCTCP lower in general."""
    checks, told, lower = Checks(), [], []
    for sizes in data["fct"]["times"]["sizes"].unique(maintain_order=True):
        for load in (0.2, 0.8):
            ratio = _times(data, sizes, load, ADAPTIVE, "short", "mean_ms") / _times(
                data, sizes, load, "cubic", "short", "mean_ms"
            )
            told.append(f"{sizes} {load}: short flows' mean {ratio:.2f} of cubic's")
            checks.that(ratio <= 1.1, f"short flows at most 10 % above CUBIC's on {sizes} at {load}")
            late = [_times(data, sizes, load, cc, "short", "late") for cc in (ADAPTIVE, "cubic")]
            quick = [_times(data, sizes, load, cc, "short", "punctual_ms") for cc in (ADAPTIVE, "cubic")]
            told[-1] += (
                f" ({late[0]:.2f} against {late[1]:.2f} per run took a second or more; without them {quick[0] / quick[1]:.2f})"
            )
            for size in ("short", "mid", "long"):
                marked = _times(data, sizes, load, "dctcp", size, "mean_ms")
                lower.append(marked / _times(data, sizes, load, "cubic", size, "mean_ms"))
    worst = _times(data, "web search", 0.8, ADAPTIVE, "long", "worst_ms") / _times(
        data, "web search", 0.8, "cubic", "long", "worst_ms"
    )
    # "The 100 percentile FCT (especially of long flows) of TCPRand under high traffic load decreases."
    checks.that(worst < 1, "the worst long flow on web search at 0.8 below CUBIC's")
    below = sum(r < 1 for r in lower)
    checks.that(below > len(lower) / 2, "DCTCP below CUBIC in most cases")
    return checks.outcome(
        f"{'; '.join(told)}; worst long flow {worst:.2f}; dctcp below cubic in {below} of {len(lower)} means"
    )


@figure(
    "tcprand.fig11",
    "fct",
    title="Fig. 11. Completion times by workload, load and size of flows, relative to CUBIC",
    caption="Ratios of means over seeds; short flows have less than 100 KB, long ones 10 MB or more. Published: TCPRand's short flows as CUBIC's, its "
    "worst long flow of web search at load 0.8 not above CUBIC's, DCTCP below CUBIC in general.",
)
def draw_fig11(data: Data) -> Figure:
    """Ratios to CUBIC of the mean and of the worst."""
    parts = []
    shown = {cc: BARS[cc] for cc in (ADAPTIVE, "dctcp")}
    words = {"data mining": ("(a)", "(b)"), "web search": ("(c)", "(d)")}
    loads = data["fct"]["times"]["load"].unique().sort().to_list()
    for sizes in [name for name in words if name in set(data["fct"]["times"]["sizes"])]:
        for letter, column, what in zip(words[sizes], ("mean_ms", "worst_ms"), ("mean", "worst"), strict=True):
            cells = [
                {
                    "case": f"{size}\nload {load}",
                    "cc": cc,
                    "ratio": _times(data, sizes, load, cc, size, column)
                    / _times(data, sizes, load, "cubic", size, column),
                }
                for load in loads
                for size in ("short", "mid", "long")
                for cc in shown
            ]
            axis = Axis("ratio", "of CUBIC's")
            parts.append(
                bars(
                    pl.DataFrame(cells),
                    "case",
                    axis,
                    "cc",
                    shown,
                    title=f"{letter} {sizes}, {what}",
                    values=".2f",
                    marks=[Published(y=1)],
                )
            )
    return Figure(parts, [*shown.values(), Key("as CUBIC", RULE.colour, RULE.dash, width=RULE.width)], 2)


# ---- Fig. 15: incast


@claim("tcprand.fig15.incast", "incast", "incast_more")
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
    more = data["incast_more"]["runs"].group_by("queue", "block", "senders", "cc").agg(pl.col("mbps").mean())
    cells = more.pivot(on="cc", index=["queue", "block", "senders"]).with_columns(r=pl.col(ADAPTIVE) / pl.col("cubic"))
    worst = cells.sort("r").to_dicts()[0]
    return checks.outcome(
        f"TCPRand at least {number(ratio.min()):.3f} of CUBIC; with {last['senders']} senders {told}",
        f"beyond the claim, with buffers of {listed(sorted(set(cells['queue'])))} packets and blocks of "
        f"{' and '.join(sorted(set(cells['block'])))}, at least {worst['r']:.3f} ({worst['senders']} senders, {worst['block']}, "
        f"{worst['queue']} packets)",
    )


@figure(
    "tcprand.fig15",
    "incast",
    "incast_more",
    title="Fig. 15. Goodput of blocks of 128 KB against the number of senders",
    caption="Mean over seeds, 100 packets of buffer. Published: DCTCP the best in general, TCPRand no worse than CUBIC. "
    "Last: the same with other buffers and blocks.",
)
def draw_fig15(data: Data) -> Figure:
    """Goodput against senders, whole and near its greatest; then TCPRand's of CUBIC's with other buffers and blocks."""
    table = data["incast"]["runs"].group_by("senders", "cc").agg(pl.col("mbps").mean()).sort("senders")
    senders = Axis("senders", "senders", (0, 41), [1, 10, 20, 30, 40])
    parts = [
        lines(table, senders, Axis("mbps", "goodput (Mbps)", span), "cc", KEYS, title=title)
        for span, title in (((0, 1000), "goodput"), ((900, 1000), "the same from 900 Mbps"))
    ]
    more = data["incast_more"]["runs"].group_by("queue", "block", "senders", "cc").agg(pl.col("mbps").mean())
    wide = more.pivot(on="cc", index=["queue", "block", "senders"]).sort("queue", "block", "senders")
    ratios = wide.with_columns(
        ratio=pl.col(ADAPTIVE) / pl.col("cubic"), case=pl.format("{} packets, {}", "queue", "block")
    )
    cases = {
        case: Key(case, colour, dash, shape="circle")
        for case, (colour, dash) in zip(
            ratios["case"].unique(maintain_order=True),
            ((c, d) for c in ORDERED for d in ((), (6, 3))),
            strict=False,
        )
    }
    axis = Axis("ratio", "TCPRand / CUBIC", (0.9, 1.1))
    parts.append(
        lines(ratios, senders, axis, "case", cases, title="other buffers and blocks", published=[Published(y=1)])
    )
    return Figure(parts, [*KEYS.values(), *cases.values()], 3)
