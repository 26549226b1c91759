"""A comparison that no simulator ran, of the shape that `fanin.compare` returns: deterministic, small, with every trap a report must survive."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from typing import Any

import polars as pl
from fanin.comparison import CaptureSummary, CompareResult, Failure
from fanin.comparison.columns import ROUNDS, TREES
from fanin.comparison.outcomes import outcomes
from fanin.comparison.result import Alone
from fanin.decision import Outcome
from fanin.settings.candidates import Candidate
from fanin.statistics.ranking import STATISTICS, RankOf, completion_statistics, rank
from fanin.words.verdict import presumed

HOSTILE = "</script><img src=x onerror=\"document.title='pwned'\"><!--"
"""Text that a page which trusts its input would execute."""

ALGORITHMS = {
    # name: (typical completion in ms, share that meets a timeout, needs the switch, queue it keeps)
    "dctcp": (2.1, 0.0, True, 18),
    "trim": (2.3, 0.0004, False, 22),
    "gss+newreno": (2.9, 0.004, False, 60),
    "cubic": (3.2, 0.03, False, 85),
    "newreno": (3.3, 0.028, False, 80),
    "reno": (3.4, 0.035, False, 80),
}

RACK = f"""# {HOSTILE}
[rack]
rate = "1Gbps"
delay = "10us"
buffer = "100p"
mark = "20p"
"""

SERVERS = [f"10.77.0.{11 + i}" for i in range(8)]
HASHES = {cc: f"{i:08x}" * 8 for i, cc in enumerate(ALGORITHMS, start=0x5CA1AB1E)}
RESPONSES = 60
"""Responses per connection."""

COMPANY = {
    "connections": list(range(8)), "servers": 8, "upstream": False, "rounds": RESPONSES, "requests": 8 * RESPONSES,
    "spread": {"p10_ns": 165_346, "median_ns": 233_748, "p90_ns": 1_908_184},
    "released_by": [
        {"event": "answers", "waits_for": "all", "requests": 8 * RESPONSES, "delay": {"p10_ns": 1_350_718, "median_ns": 4_313_341, "p90_ns": 12_619_633}}
    ],
}  # fmt: skip
"""Who waits for whom: all are asked together."""


def result(
    *,
    seeds: int = 3,
    ccs: tuple[str, ...] = tuple(ALGORITHMS),
    hostile: bool = False,
    trees: bool = False,
    **changes: Any,
) -> CompareResult:
    """A comparison of `ccs`; with `hostile`, every text that comes from outside carries markup; with `trees`, it is ranked by request trees."""
    servers = [f"{server}{HOSTILE}" for server in SERVERS] if hostile else SERVERS
    responses = pl.DataFrame(
        [row for cc in ccs for seed in range(1, seeds + 1) for row in _responses(cc, seed, servers)],
        schema={
            "cc": pl.String, "seed": pl.UInt64, "connection": pl.UInt32, "server": pl.String, "response": pl.UInt32, "bytes": pl.UInt64,
            "release_ms": pl.Float64, "done_ms": pl.Float64, "completion_ms": pl.Float64, "timeouts": pl.UInt32,
        },
        orient="row",
    )  # fmt: skip
    longer = {what: _longer(responses, by) for what, by in (("request", 1.5), ("tree", 2.0)) if trees}
    runs = pl.DataFrame([_run(cc, seed, responses, longer) for cc in ccs for seed in range(1, seeds + 1)])
    needs = {cc: ALGORITHMS[cc][2] for cc in ccs}
    rank_of: RankOf = "trees" if trees else "responses"
    made = CompareResult(
        ranking=rank(runs, needs, HASHES, "p99", rank_of, baseline=presumed(ccs)),
        rank_of=rank_of,
        outcomes=judged(runs, responses, ccs, rank_of),
        rounds=longer.get("request", pl.DataFrame(schema=ROUNDS)),
        trees=longer.get("tree", pl.DataFrame(schema=TREES)),
        baseline=presumed(ccs),
        rank_by="p99",
        failures=[Failure("ia-tcp", HOSTILE)] if hostile else [],
        missing=[],
        capture=CaptureSummary(
            file=f"{HOSTILE}.pcap" if hostile else "service.pcap.gz",
            packets=73483,
            tcp_packets=73483,
            connections=8,
            payload_bytes=61_000_000,
            duration_s=6.5,
            aggregator="10.77.0.1",
            aggregator_found=True,
            servers=tuple(SERVERS),
            responses=RESPONSES * len(SERVERS),
            warnings=(HOSTILE,) if hostile else (),
        ),
        responses=responses,
        flows=pl.DataFrame(),
        runs=runs,
        queue=_queue(ccs),
        window=_window(ccs),
        trains=_trains(),
        seeds=tuple(range(1, seeds + 1)),
        trace_seed=1,
        port="switch->client",
        rack_path=f"{HOSTILE}.toml" if hostile else "rack.toml",
        rack_text=RACK,
        scenario_hash="5ca1ab1e" * 8,
        command=f"fanin compare service.pcap.gz --rack rack.toml{' ' + HOSTILE if hostile else ''}",
        version="0.0.0",
        elapsed_s=12.3,
        groups=[COMPANY],
        alone=Alone(cc="dctcp", together_ms=5.04, alone_ms=1.44),
    )
    return replace(made, **changes)


def judged(
    runs: pl.DataFrame, responses: pl.DataFrame, ccs: tuple[str, ...], of: RankOf = "responses"
) -> tuple[Outcome, ...]:
    """What the runs of each algorithm gave, to be judged."""
    return outcomes(runs, responses, {cc: Candidate(cc) for cc in ccs}, presumed(ccs) or ccs[0], of)


def _responses(cc: str, seed: int, servers: list[str]) -> list[tuple[Any, ...]]:
    typical, timeouts, _, _ = ALGORITHMS[cc]
    draw = random.Random(f"{cc}/{seed}")
    rows = []
    for connection, server in enumerate(servers):
        now = draw.uniform(0, 3)
        for number in range(RESPONSES):
            late = draw.random() < timeouts
            took = typical * math.exp(draw.gauss(0, 0.5)) + (200 if late else 0)
            rows.append(
                (cc, seed, connection, server, number, draw.randrange(2_000, 40_000), now, now + took, took, int(late))
            )
            now += took + draw.expovariate(1 / 8)
    return rows


def _longer(responses: pl.DataFrame, by: float) -> pl.DataFrame:
    """What waits for responses: as many of one connection, each so many times as long."""
    return responses.filter(pl.col("connection") == 0).with_columns(pl.col("completion_ms") * by)


def _run(cc: str, seed: int, responses: pl.DataFrame, longer: dict[str, pl.DataFrame]) -> dict[str, Any]:
    mine = responses.filter((pl.col("cc") == cc) & (pl.col("seed") == seed))
    late = int(mine["timeouts"].sum())
    _, _, marks, queue = ALGORITHMS[cc]
    return {
        "cc": cc,
        "seed": seed,
        **completion_statistics(mine["completion_ms"].to_list()),
        **dict(item for what in ("request", "stage", "tree") for item in _of(what, cc, seed, longer.get(what)).items()),
        "timeouts": late,
        "retransmissions": 9 * late + seed,
        "drops": 8 * late,
        "marks": 900 + seed if marks else 0,
        "goodput_bps": 8e8 - 1e6 * late,
        "queue_mean_packets": queue / 3 + seed / 10,
        "queue_p99_packets": float(queue),
        "queue_max_packets": float(queue + 3),
        "responses": mine.height,
        "unfinished": mine["done_ms"].null_count(),
        "end_ms": mine["done_ms"].max(),
        "packet_hops": 400_000,
    }


def _of(what: str, cc: str, seed: int, frame: pl.DataFrame | None) -> dict[str, Any]:
    """The columns of a run for requests, or for request trees."""
    times = frame.filter(cc=cc, seed=seed)["completion_ms"].to_list() if frame is not None else []
    told = completion_statistics(times) if times else dict.fromkeys(STATISTICS)
    return {
        **{f"{what}_{name}": told[name] for name in STATISTICS},
        f"{what}s": len(times),
        f"unfinished_{what}s": 0,
    }


def _queue(ccs: tuple[str, ...]) -> pl.DataFrame:
    parts = []
    for cc in ccs:
        most = ALGORITHMS[cc][3]
        times = [i * 0.05 for i in range(20_000)]
        packets = [round(most * max(0.0, math.sin(t / 9)) ** 2 * (0.8 + 0.2 * math.sin(t * 7))) for t in times]
        packets[7_777] = 99 if cc == "cubic" else packets[7_777]  # one lonely peak
        parts.append(
            pl.DataFrame({"cc": cc, "time_ms": times, "packets": packets, "bytes": [1500 * p for p in packets]})
        )
    return pl.concat(parts).with_columns(pl.col("packets").cast(pl.UInt32), pl.col("bytes").cast(pl.UInt64))


def _window(ccs: tuple[str, ...]) -> pl.DataFrame:
    parts = []
    for cc in ccs:
        for connection in range(len(SERVERS)):
            times = [i * 1.5 + connection / 10 for i in range(600)]
            phase = [(i + 11 * connection) % 120 for i in range(600)]
            cwnd = [2.0 + p / 4 for p in phase]
            parts.append(
                pl.DataFrame(
                    {
                        "cc": cc,
                        "connection": connection,
                        "time_ms": times,
                        "cwnd": cwnd,
                        "ssthresh": [None if i < 120 else 16.0 for i in range(600)],
                        "in_flight": cwnd,
                        "srtt_ms": [0.3] * 600,
                        "state": ["loss" if p < 3 and i > 10 else "open" for i, p in enumerate(phase)],
                    }
                )
            )
    return pl.concat(parts).with_columns(pl.col("connection").cast(pl.UInt32))


def _trains() -> pl.DataFrame:
    draw = random.Random("trains")
    rows = []
    for connection in range(len(SERVERS)):
        now, gap = 0.0, None
        for _ in range(80):
            size = int(math.exp(draw.gauss(9, 1)))
            rows.append((connection, now, now + 0.4, size // 1448 + 1, size, 0, gap))
            gap = draw.expovariate(1 / 3)
            now += 0.4 + gap
    return pl.DataFrame(
        rows,
        schema={
            "connection": pl.UInt32, "start_ms": pl.Float64, "end_ms": pl.Float64, "packets": pl.UInt64, "bytes": pl.UInt64,
            "retransmitted_bytes": pl.UInt64, "gap_before_ms": pl.Float64,
        },
        orient="row",
    )  # fmt: skip
