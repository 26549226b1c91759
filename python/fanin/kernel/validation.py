"""`fanin validate`: the model beside the kernel, scenario by scenario, and the page that says how far they agree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import polars as pl

from fanin.progress import Progress, silent

TCP = ("newreno", "cubic", "dctcp", "bbr", "vegas")
"""Algorithms that both engines have."""

SEEDS = 3
"""Runs of each scenario, algorithm and engine."""

GOODPUT_BOUND, QUEUE_BOUND, COMPLETION_BOUND = 0.03, 0.15, 0.15
"""Relative differences that count as agreement where no timeout occurs: docs/validation.md."""


@dataclass(frozen=True, slots=True)
class Case:
    """One scenario: its name, its TOML, and whether it is about completion times (else about goodput and queue)."""

    name: str
    text: str
    messages: bool


def _star(senders: int, rate: str, delay: str, buffer: int, mark: int, workload: str, duration: str) -> str:
    return f"""
[topology]
senders = {senders}
rate = "{rate}"
delay = "{delay}"
buffer = "{buffer}p"
mark = "{mark}p"
[stack]
profile = "linux"
[[workload]]
{workload}
[run]
duration = "{duration}"
"""


def cases(quick: bool = False) -> list[Case]:
    """The scenarios, the quick ones a part of them.

    Examples
    --------
    >>> len(cases(quick=True)) < len(cases())
    True
    """
    made = []
    rates = {"100Mbps": "4s", "1Gbps": "1s", "10Gbps": "200ms"}
    for rate, duration in rates.items():
        mark = {"100Mbps": 20, "1Gbps": 20, "10Gbps": 65}[rate]
        for senders in (2, 8, 20, 48):
            for buffer in (100, 400):
                if quick and (rate != "1Gbps" or senders not in (2, 8) or buffer != 100):
                    continue
                name = f"long, {senders} senders, {rate}, {buffer}p"
                text = _star(senders, rate, "25us", buffer, mark, 'kind = "long"', duration)
                made.append(Case(name, text, messages=False))
    for senders in (8, 16, 32, 48):
        for size in ("8KB", "32KB", "64KB", "256KB"):
            if quick and (senders != 8 or size not in ("32KB", "256KB")):
                continue
            workload = f'kind = "incast"\nbytes = "{size}"\nrounds = 10\nrequest = "100B"'
            text = _star(senders, "1Gbps", "25us", 100, 20, workload, "60s")
            made.append(Case(f"incast, {senders} x {size}, 1Gbps, 100p", text, messages=True))
    for delay in ("5us", "100us", "250us"):
        if not quick:
            text = _star(8, "1Gbps", delay, 200, 20, 'kind = "long"', "1s")
            made.append(Case(f"long, 8 senders, 1Gbps, 200p, {delay} per link", text, messages=False))
    return made


def validate(
    *,
    quick: bool = False,
    cc: Sequence[str] = TCP,
    engine: str = "kernel",
    progress: Callable[[str, int], Progress] = silent,
) -> pl.DataFrame:
    """Run every scenario on both engines.

    Parameters
    ----------
    quick : bool
        A few scenarios, one seed.
    cc : sequence of str
        Algorithms.
    engine : str
        ``kernel`` or ``kernel-hz1000``.
    progress : callable
        Makes the progress display.

    Returns
    -------
    polars.DataFrame
        ``case``, ``cc``, ``engine`` (String), ``goodput_mbps``, ``queue``, ``queue_p99`` (packets), ``p50_ms``, ``p99_ms`` (Float64, of messages; null for
        long flows), ``drops``, ``marks``, ``timeouts`` (Float64): means over seeds.
    """
    from fanin.simulation import run

    chosen = cases(quick)
    rows = []
    with progress("validating", len(chosen)) as bar:
        for number, case in enumerate(chosen):
            for which in ("sim", engine):
                seeds = 1 if quick else SEEDS
                result = run(f"{case.name}.toml", text=case.text, cc=list(cc), seeds=seeds, engine=which)
                rows += [_row(case, name, which, result) for name in cc]
            bar.update(number + 1)
    return pl.DataFrame(rows)


def _row(case: Case, cc: str, engine: str, result: Any) -> dict[str, Any]:
    of = {name: getattr(result, name).filter(pl.col("cc") == cc) for name in ("flows", "ports", "messages", "runs")}
    seeds = of["runs"].height
    port = of["ports"].filter(pl.col("port") == "switch->client")
    data = of["flows"].filter(pl.col("class") != "request")
    answers = (
        of["messages"].filter(pl.col("class") != "request")["completion_ms"]
        if case.messages
        else pl.Series([], dtype=pl.Float64)
    )
    delivered = data.group_by("seed").agg(pl.col("bytes_delivered").sum()).join(of["runs"], on="seed")
    goodput = (delivered["bytes_delivered"] * 8e-3 / delivered["end_ms"]).mean()
    return {
        "case": case.name,
        "cc": cc,
        "engine": engine,
        "goodput_mbps": goodput,
        "queue": port["mean_queue_packets"].mean(),
        "queue_p99": port["p99_queue_packets"].mean(),
        "p50_ms": answers.quantile(0.5, "nearest"),
        "p99_ms": answers.quantile(0.99, "nearest"),
        "drops": port["drops"].sum() / seeds,
        "marks": port["marks"].sum() / seeds,
        "timeouts": data["timeouts"].sum() / seeds,
    }


def kendall_tau(a: Sequence[float], b: Sequence[float]) -> float:
    """Kendall's tau of two rankings: 1 is the same order, -1 the opposite.

    Examples
    --------
    >>> kendall_tau([1, 2, 3], [10, 20, 30]), kendall_tau([1, 2], [2, 1])
    (1.0, -1.0)
    """
    signs = [_sign(a[i] - a[j]) * _sign(b[i] - b[j]) for i, j in combinations(range(len(a)), 2)]
    return sum(signs) / len(signs) if signs else 1.0


def _sign(x: float) -> int:
    return (x > 0) - (x < 0)


def page(rows: pl.DataFrame, command: str, version: str) -> str:
    """The table as Markdown, with how many scenarios lie within the bounds."""
    engines = rows["engine"].unique(maintain_order=True).to_list()
    lines = [
        f"Made by `{command}` with fanin {version} and Linux 6.12: simulator (profile `linux`) / kernel, means over seeds.",
        "",
    ]
    lines += ["| scenario | TCP | goodput Mbps | mean queue | p99 queue | p50 ms | p99 ms | drops | marks | timeouts |"]
    lines += ["|---|---|---|---|---|---|---|---|---|---|"]
    inside, counted, taus = 0, 0, []
    for (case,), part in rows.group_by("case", maintain_order=True):
        ours, theirs = (part.filter(pl.col("engine") == e) for e in engines)
        for a, b in zip(ours.iter_rows(named=True), theirs.iter_rows(named=True), strict=True):
            cells = [_pair(a[c], b[c]) for c in COLUMNS]
            lines.append(f"| {case} | {a['cc']} | {' | '.join(cells)} |")
            if a["timeouts"] == b["timeouts"] == 0:
                counted += 1
                inside += _agrees(a, b)
        key = "p99_ms" if ours["p99_ms"].null_count() == 0 else "queue"
        taus.append(kendall_tau(ours[key].to_list(), theirs[key].to_list()))
    tau = sum(taus) / len(taus) if taus else 1.0
    lines += [
        "",
        f"Without timeouts on either side: {inside} of {counted} rows within the bounds (goodput {GOODPUT_BOUND:.0%}, "
        f"mean queue {QUEUE_BOUND:.0%}, median completion {COMPLETION_BOUND:.0%}).",
    ]
    lines += [
        f"Order of the algorithms (p99 of completion, else mean queue): Kendall's tau {tau:.2f} on average over {len(taus)} scenarios."
    ]
    return "\n".join(lines) + "\n"


COLUMNS = ("goodput_mbps", "queue", "queue_p99", "p50_ms", "p99_ms", "drops", "marks", "timeouts")


def _agrees(a: dict[str, Any], b: dict[str, Any]) -> bool:
    def near(x: float, y: float, bound: float) -> bool:
        return abs(x - y) <= bound * max(abs(y), 1e-9)

    if a["p50_ms"] is not None:
        return near(a["p50_ms"], b["p50_ms"], COMPLETION_BOUND)
    return near(a["goodput_mbps"], b["goodput_mbps"], GOODPUT_BOUND) and near(a["queue"], b["queue"], QUEUE_BOUND)


def _pair(a: float | None, b: float | None) -> str:
    return "-" if a is None or b is None else f"{a:.4g} / {b:.4g}"
