"""Section 8.4: what TCPRand costs its host (Table 1), measured on the testbed."""

from __future__ import annotations

import polars as pl
from fanin.papers.numbers import number
from fanin.papers.verdicts import Checks, Data, Outcome, claim_on_host, listed


@claim_on_host("tcprand.table1.cpu", "sender_cpu")
def table1(data: Data) -> Outcome:
    """TCPRand costs more than CUBIC with offload at every number of flows, and both cost more with the most flows than with one."""
    rows = data["sender_cpu"]["runs"].sort("flows")
    shares = {
        scheme: rows.filter(scheme=scheme)["share"].to_list() for scheme in rows["scheme"].unique(maintain_order=True)
    }
    checks = Checks()
    for flows, (cubic, tcprand) in zip(
        rows["flows"].unique(maintain_order=True), zip(shares["cubic"], shares["tcprand"], strict=True), strict=True
    ):
        checks.that(tcprand > cubic, f"TCPRand costs more with {flows} flows")
    for scheme, found in shares.items():
        checks.that(found[-1] > found[0], f"{scheme} costs more with more flows")
    rate = number(rows.select(pl.col("link_mbps").max()).item())
    told = "; ".join(f"{scheme} {listed([100 * x for x in found], 1)} %" for scheme, found in shares.items())
    flows = listed(rows["flows"].unique(maintain_order=True))
    return checks.outcome(f"share of a core with {flows} flows at {rate:g} Mbps: {told}")
