"""What offload does to BBR in a shallow buffer: answers of an incast, on both engines, with and without it, as the buffer grows."""

from __future__ import annotations

from collections.abc import Callable

import fanin
import polars as pl
from fanin.process.progress import Progress

from lab.validation.cases import OFFLOAD

BUFFERS = (50, 100, 200, 400, 800)
"""Packets."""

HOSTS = {"offload": OFFLOAD, "no offload": 'hosts = "ideal"'}

SCENARIO = """
HOSTS
[topology]
senders = 8
rate = "1Gbps"
delay = "25us"
buffer = "BUFFERp"
[stack]
profile = "linux"
[[workload]]
kind = "incast"
bytes = "64KB"
rounds = 20
request = "100B"
jitter = "20us"
[run]
duration = "60s"
"""


def measure(ccs: tuple[str, ...], seeds: int, progress: Callable[[str, int], Progress]) -> pl.DataFrame:
    """Run it.

    Parameters
    ----------
    ccs : tuple of str
        Algorithms.
    seeds : int
        Runs of each.
    progress : callable
        Makes the progress display.

    Returns
    -------
    polars.DataFrame
        ``engine``, ``hosts``, ``cc`` (String), ``buffer`` (Int64, packets), ``mean_ms``, ``p99_ms`` (Float64; of answers), ``drops``
        (Float64, per run).
    """
    rows = []
    points = [(e, h, cc, b) for e in ("sim", "kernel") for h in HOSTS for cc in ccs for b in BUFFERS]
    with progress("runs", len(points)) as bar:
        for number, (engine, hosts, cc, buffer) in enumerate(points):
            text = SCENARIO.replace("HOSTS", HOSTS[hosts]).replace("BUFFER", str(buffer))
            settings = {"stack.common_ticks": True} if engine == "sim" else {}
            result = fanin.run("offload.toml", text=text, cc=cc, seeds=seeds, engine=engine, settings=settings)
            took = result.messages.filter(pl.col("class") == "incast")["completion_ms"]
            drops = result.ports.filter(pl.col("port") == "switch->client")["drops"].sum() / seeds
            place = {"engine": engine, "hosts": hosts, "cc": cc, "buffer": buffer}
            rows.append({**place, "mean_ms": took.mean(), "p99_ms": took.quantile(0.99, "nearest"), "drops": drops})
            bar.update(number + 1)
    return pl.DataFrame(rows)
