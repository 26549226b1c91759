"""Section 8.4: what TCPRand costs its host (Table 1), measured on the testbed."""

from __future__ import annotations

from itertools import pairwise

import polars as pl
from fanin.papers.numbers import number
from fanin.papers.verdicts import Checks, Data, Outcome, claim_on_host, listed

RATIO = (2.7, 4.1)
"""Least and greatest of the published ratios of TCPRand's cost to CUBIC's: 12.5/4.6, 16.1/5.3, 28.0/7.9, 42.2/10.2 %."""


@claim_on_host("tcprand.table1.cpu", "sender_cpu")
def table1(data: Data) -> Outcome:
    """TCPRand costs more than CUBIC with offload at every number of flows, by about as much as published, and both more with more flows."""
    rows = data["sender_cpu"]["runs"].sort("flows")
    shares = {
        scheme: rows.filter(scheme=scheme)["share"].to_list() for scheme in rows["scheme"].unique(maintain_order=True)
    }
    checks = Checks()
    for flows, (cubic, tcprand) in zip(
        rows["flows"].unique(maintain_order=True), zip(shares["cubic"], shares["tcprand"], strict=True), strict=True
    ):
        checks.that(tcprand > cubic, f"TCPRand costs more with {flows} flows")
        least, most = RATIO[0] / 2, RATIO[1] * 2
        checks.that(
            least <= tcprand / cubic <= most,
            f"TCPRand costs {least:.2f} to {most:.1f} times as much with {flows} flows ({tcprand / cubic:.1f} times)",
        )
    for scheme, found in shares.items():
        checks.that(all(b > a for a, b in pairwise(found)), f"{scheme} costs more with each larger number of flows")
    rate = number(rows.select(pl.col("link_mbps").max()).item())
    told = "; ".join(f"{scheme} {listed([100 * x for x in found], 1)} %" for scheme, found in shares.items())
    flows = listed(rows["flows"].unique(maintain_order=True))
    return checks.outcome(f"share of a core with {flows} flows at {rate:g} Mbps: {told}")
