"""The engines `testbed` and `kernel` on the same scenarios, and every sender-side algorithm on this Linux."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

import polars as pl
from fanin.errors import EngineError, ScenarioError
from fanin.process.progress import Progress, silent
from fanin.simulation import RunResult, run
from fanin.testbed import honesty

WAIT_S = 10.0
"""How long to wait for another run to end."""

ENGINES = ("testbed", "kernel")

BESIDE_CC = ("reno", "cubic", "dctcp")

SENDERS = (
    "reno",
    "cubic",
    "bbr",
    "dctcp",
    "l2dct",
    "vegas@linux",
    "dcvegas",
    "trim",
    "gss+newreno",
    "gss+cubic",
    "gss+dctcp",
    "tcprand+newreno",
    "tcprand+cubic",
    "iatcp",
    "ictcp",
)
"""The algorithms of the five papers and what they compare themselves with, as far as a Linux host can run them."""


def _star(workload: str, *, senders: int, rate: str, buffer: int, mark: int, delay: str, duration: str) -> str:
    return f"""
[topology]
senders = {senders}
rate = "1Gbps"
receiver_rate = "{rate}"
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


def _long(senders: int, rate: str, buffer: int, mark: int = 20, delay: str = "100us", duration: str = "4s") -> str:
    text = 'kind = "long"\njitter = "10ms"'
    return _star(text, senders=senders, rate=rate, buffer=buffer, mark=mark, delay=delay, duration=duration)


def _incast(senders: int, size: str, rounds: int, rate: str = "100Mbps", buffer: int = 100) -> str:
    text = f'kind = "incast"\nbytes = "{size}"\nrounds = {rounds}\nrequest = "100B"\nopen = "before"'
    return _star(text, senders=senders, rate=rate, buffer=buffer, mark=20, delay="100us", duration="20s")


SCENARIOS: dict[str, str] = {
    "2 long flows, 100 Mbps, 400p": _long(2, "100Mbps", 400),
    "8 long flows, 100 Mbps, 100p": _long(8, "100Mbps", 100),
    "20 long flows, 100 Mbps, 400p": _long(20, "100Mbps", 400),
    "2 long flows, 100 Mbps, 50p": _long(2, "100Mbps", 50, mark=10),
    "2 long flows, 100 Mbps, 10 ms": _long(2, "100Mbps", 100, delay="2500us"),
    "4 long flows, 400 Mbps, 200p": _long(4, "400Mbps", 200, duration="2s"),
    "incast, 8 x 32 KB, 100 Mbps": _incast(8, "32KB", 10),
    "incast, 16 x 32 KB, 100 Mbps": _incast(16, "32KB", 5),
    "incast, 24 x 16 KB, 100 Mbps": _incast(24, "16KB", 5),
    "incast, 8 x 64 KB, 400 Mbps": _incast(8, "64KB", 10, rate="400Mbps"),
}
"""Scenarios that a machine with two CPUs carries."""

FIGURES: dict[str, str] = {
    "2 long flows": _long(2, "100Mbps", 250),
    "incast": _incast(16, "16KB", 5),
}
"""What every algorithm runs."""


def measure(
    scenarios: dict[str, str],
    algorithms: Sequence[str],
    engines: Sequence[str],
    progress: Callable[[str, int], Progress] = silent,
) -> pl.DataFrame:
    """Run every scenario under every algorithm on every engine.

    Returns
    -------
    polars.DataFrame
        ``case``, ``cc``, ``engine`` (String), ``goodput_mbps``, ``queue`` (mean, packets), ``drops``, ``marks``, ``p50_ms``, ``p99_ms`` (of
        responses; null without), ``timeouts``, ``late`` (share of packets released late; null for `kernel`), ``why`` (String: why there is no
        result; null where there is one).
    """
    rows = []
    with progress("side by side", len(scenarios) * len(algorithms) * len(engines)) as bar:
        for case, text in scenarios.items():
            for cc in algorithms:
                for engine in engines:
                    rows.append({"case": case, "cc": cc, "engine": engine, **_measured(case, text, cc, engine)})
                    bar.update(len(rows))
    return pl.DataFrame(rows, infer_schema_length=None)


def _measured(case: str, text: str, cc: str, engine: str) -> dict[str, float | str | None]:
    names = ("goodput_mbps", "queue", "drops", "marks", "p50_ms", "p99_ms", "timeouts", "late", "why")
    empty: dict[str, float | str | None] = dict.fromkeys(names)
    settings = {"cc.rand_rmin": "200B"} if cc == "tcprand+newreno" else None
    attempt = partial(run, f"{case}.toml", text=text, cc=cc, engine=engine, settings=settings)
    try:
        return {**empty, **_of(honesty.valid(attempt, WAIT_S))}
    except (EngineError, ScenarioError) as error:
        return {**empty, "why": str(error)}


def _of(result: RunResult) -> dict[str, float | str | None]:
    port = result.ports.filter(pl.col("port") == "switch->client").row(0, named=True)
    answers = result.messages.filter((pl.col("class") != "request") & pl.col("completion_ms").is_not_null())
    flows = result.flows.filter(pl.col("class") != "request")
    times = answers["completion_ms"]
    late = None
    if result.testbed.height:
        [figures] = result.testbed.to_dicts()
        late = float(figures["late"]) / max(1.0, float(figures["released"]))
    return {
        "goodput_mbps": float(flows["bytes_delivered"].sum()) * 8e-3 / float(result.runs["end_ms"].item()),
        "queue": float(port["mean_queue_packets"]),
        "drops": float(port["drops"]),
        "marks": float(port["marks"]),
        "p50_ms": times.quantile(0.5, "nearest"),
        "p99_ms": times.quantile(0.99, "nearest"),
        "timeouts": float(flows["timeouts"].sum()),
        "late": late,
    }


# ---- Markdown


def beside_table(rows: pl.DataFrame) -> list[str]:
    """The two engines side by side, each figure as testbed / kernel."""
    lines = [
        "| scenario | TCP | goodput, Mbps | mean queue | drops | marks | p50, ms | p99, ms | timeouts | late releases |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    names = ("goodput_mbps", "queue", "drops", "marks", "p50_ms", "p99_ms", "timeouts")
    for (case, cc), part in rows.group_by("case", "cc", maintain_order=True):
        sides = [part.filter(pl.col("engine") == engine).row(0, named=True) for engine in ENGINES]
        told = [why for side in sides if (why := side["why"])]
        if told:
            lines.append(f"| {case} | `{cc}` | no result: {told[0].split('. Leave')[0]} | | | | | | | |")
            continue
        cells = [" / ".join(number(side[name]) for side in sides) for name in names]
        late = sides[0]["late"]
        lines.append(f"| {case} | `{cc}` | {' | '.join(cells)} | {late:.1%} |")
    return lines


def figures_tables(rows: pl.DataFrame) -> list[str]:
    """Every algorithm's figures on this Linux."""
    names = ("goodput_mbps", "queue", "drops", "marks", "p50_ms", "p99_ms", "timeouts")
    lines: list[str] = []
    titles = {
        "goodput_mbps": "goodput, Mbps",
        "queue": "mean queue",
        "p50_ms": "p50, ms",
        "p99_ms": "p99, ms",
    }
    about = {
        "2 long flows": "Two long flows for 4 s, receiver's link 100 Mbps, four links of 100 us, 250 packets of buffer, K = 20.",
        "incast": "Incast: 16 responses of 16 KB in each of 5 rounds, on open connections, receiver's link 100 Mbps, 100 packets, K = 20.",
    }
    for (case,), part in rows.group_by("case", maintain_order=True):
        shown = [name for name in names if part[name].drop_nulls().len()]
        lines += ["", about[str(case)], ""]
        lines += ["| algorithm | " + " | ".join(titles.get(name, name) for name in shown) + " |"]
        lines += ["|---" * (len(shown) + 1) + "|"]
        for row in part.iter_rows(named=True):
            cells = [number(row[name]) for name in shown]
            if row["why"]:
                cells = [f"no result: {row['why'].split('. Leave')[0]}", *[""] * (len(shown) - 1)]
            lines.append(f"| `{row['cc']}` | {' | '.join(cells)} |")
    return lines


def number(value: float | None) -> str:
    """A figure of a table.

    Examples
    --------
    >>> number(94.137), number(0.25), number(12345.0), number(None)
    ('94.1', '0.25', '12345', '-')
    """
    if value is None:
        return "-"
    return f"{value:.0f}" if value >= 1000 or value == int(value) else f"{value:.3g}"


def chosen(names: Iterable[str], text: str | None) -> list[str]:
    """Names that contain a text."""
    return [name for name in names if text is None or text in name]
