"""A real comparison with the completion times of a test's own choosing."""

from __future__ import annotations

from dataclasses import replace

import fanin
from fanin.decision import Outcome
from fanin.settings.candidates import Candidate
from fanin.statistics.seeds import Estimate


def with_times(real: fanin.CompareResult, **times: tuple[float, float]) -> fanin.CompareResult:
    """`real` with these algorithms instead, by name mean and p99 in ms over ten seeds; cubic has 5 and 50 unless it is given."""
    cubic = next(row for row in real.ranking if row.cc == "cubic")
    rows, outcomes = [], []
    for cc, (mean, p99) in {"cubic": (5.0, 50.0), **times}.items():
        values = {"mean": mean, "p50": 1.0, "p95": p99 / 2, "p99": p99, "p99_9": 1.5 * p99}
        runs = {(0, seed): {k: v * (1 + seed / 1000) for k, v in values.items()} for seed in range(10)}
        outcomes.append(Outcome(cc, (0,) if cc == "cubic" else (1,), runs, requests=1000))
        shown = {**cubic.completion_ms, **{name: Estimate(value) for name, value in values.items()}}
        rows.append(replace(cubic, cc=cc, completion_ms=shown))
    rows.sort(key=lambda row: row.completion_ms["p99"].value or 0.0)
    ways = {row.cc: Candidate(row.cc) for row in rows}
    return replace(real, ranking=rows, outcomes=tuple(outcomes), ways=ways, measured=None)
