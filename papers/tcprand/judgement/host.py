"""Section 8.4: what TCPRand costs its host (Table 1), measured on the testbed."""

from __future__ import annotations

import csv
import re
from itertools import pairwise
from pathlib import Path

import polars as pl
from fanin.papers.drawing import CROSS, CUBIC, INK, VERMILION, Axis, Figure, Key, Published, lines
from fanin.papers.numbers import number
from fanin.papers.verdicts import Checks, Data, Outcome, claim_on_host, figure, listed
from fanin.testbed.sender_cpu import LEAST

CLAIM = "tcprand.table1.cpu"

PUBLISHED = {"cubic": (4.6, 5.3, 7.9, 10.2), "tcprand": (12.5, 16.1, 28.0, 42.2)}
"""Table 1: percent of a core with 1, 10, 100 and 1000 flows."""

RATIO = (2.7, 4.1)
"""Least and greatest of the published ratios of TCPRand's cost to CUBIC's: 12.5/4.6, 16.1/5.3, 28.0/7.9, 42.2/10.2 %."""

SCHEMES = ("cubic", "tcprand")
"""What Table 1 compares: CUBIC with offload, and TCPRand, which cannot have it."""


@claim_on_host(CLAIM, "sender_cpu")
def table1(data: Data) -> Outcome:
    """TCPRand costs more than CUBIC with offload at every number of flows, by about as much as published, and both more with more flows."""
    rows = data["sender_cpu"]["runs"].sort("flows")
    shares = {
        scheme: rows.filter(scheme=scheme)["share"].to_list() for scheme in rows["scheme"].unique(maintain_order=True)
    }
    checks = Checks()
    for flows, (cubic, tcprand) in zip(
        rows["flows"].unique(maintain_order=True), zip(*(shares[name] for name in SCHEMES), strict=True), strict=True
    ):
        checks.that(tcprand > cubic, f"TCPRand costs more with {flows} flows")
        least, most = RATIO[0] / 2, RATIO[1] * 2
        checks.that(
            least <= tcprand / cubic <= most,
            f"TCPRand costs {least:.2f} to {most:.1f} times as much with {flows} flows ({tcprand / cubic:.1f} times)",
        )
    for scheme in SCHEMES:
        grows = all(b > a for a, b in pairwise(shares[scheme]))
        checks.that(grows, f"{scheme} costs more with each larger number of flows")
    rate = number(rows.select(pl.col("link_mbps").max()).item())
    told = "; ".join(f"{scheme} {listed([100 * x for x in found], 1)} %" for scheme, found in shares.items())
    flows = listed(rows["flows"].unique(maintain_order=True))
    short = rows.filter(pl.col("mbps") < LEAST * rate)
    by = f"{number(short['mbps'].min()):.0f} to {number(short['mbps'].max()):.0f} Mbps" if short.height else ""
    remark = (
        f"{' and '.join(short['scheme'].unique(maintain_order=True))} filled a core with {by}: shares are by calculation"
        if by
        else ""
    )
    return checks.outcome(f"share of a core with {flows} flows at {rate:g} Mbps: {told}", remark)


def measured() -> pl.DataFrame:
    """What :func:`table1` said of the last measurements, from ``papers/on_linux.csv``: scheme, flows, percent of a core and the rate in Mbps."""
    with Path(__file__).parents[2].joinpath("on_linux.csv").open(encoding="utf-8", newline="") as file:
        told = [row["ours"] for row in csv.DictReader(file) if row["claim"] == CLAIM]
    rows = []
    for line in told:
        flows, mbps, shares = re.fullmatch(r"share of a core with (.+) flows at (\S+) Mbps: (.+)", line).groups()  # type: ignore[union-attr]
        for part in shares.split("; "):
            scheme, found = re.fullmatch(r"(\D+) (.+) %", part).groups()  # type: ignore[union-attr]
            rows += [
                {"scheme": scheme, "flows": int(n), "percent": float(share), "mbps": float(mbps)}
                for n, share in zip(flows.split(", "), found.split(", "), strict=True)
            ]
    return pl.DataFrame(rows)


@figure(
    "tcprand.table1",
    title="Table 1. What a sender takes of a core",
    caption="As measured last on the testbed (papers/on_linux.csv); crosses: Table 1, at 1 Gbps. TCPRand is a library in front of send here, which "
    "fills a core before a link of 1 Gbps: what that rate would take is by calculation there.",
)
def draw_table1(_: Data) -> Figure:
    """Percent of a core along the number of flows."""
    rows = measured().with_columns(words=pl.col("flows").cast(pl.String))
    ticks = rows["words"].unique(maintain_order=True).to_list()
    keys = {
        "cubic": CUBIC,
        "cubic without offload": Key("CUBIC without offload", INK, (6, 3), "circle", hollow=True),
        "tcprand": Key("TCPRand", VERMILION, shape="triangle-up"),
    }
    marks = [
        Published(tick, percent, colour=keys[scheme].colour)
        for scheme, values in PUBLISHED.items()
        for tick, percent in zip(ticks, values, strict=True)
    ]
    along = Axis("words", "flows", ticks=ticks, kind="points")
    parts = []
    for rate in sorted(rows["mbps"].unique()):
        part = rows.filter(mbps=rate)
        share = Axis("percent", "share of a core (%)", (0, max(100.0, 1.05 * number(part["percent"].max()))))
        parts.append(lines(part, along, share, "scheme", keys, title=f"{rate:g} Mbps", published=marks))
    return Figure(parts, [*keys.values(), CROSS], len(parts))
