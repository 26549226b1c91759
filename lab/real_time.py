"""Predictions from captures in real time, beside what the same services then took: ``python -m lab.real_time DIR`` writes ``results/real_time_racks.csv``.

DIR has ``truth.csv``, a row for each run: ``rack``, ``cc`` (or ``cc:FLOOR`` where the servers' RTO floor was set), ``run`` (``capture``, or a number) and
``round_ms``, durations of its requests, of which the first is left out; and ``RACK.cubic.client.pcap.gz``, captured under CUBIC.
"""

from __future__ import annotations

import csv
import itertools
import math
import sys
from pathlib import Path
from statistics import mean, median, stdev

import fanin
import polars as pl

RESULTS = Path(__file__).parents[1] / "results" / "real_time_racks.csv"
CAPTURED = "cubic"
SEEDS = 10
CLEAR = 2.0
"""Means further apart than so many standard errors of their difference have an order."""


def truth(folder: Path) -> dict[tuple[str, str], list[list[float]]]:
    """Requests of each run, by rack and setting."""
    found: dict[tuple[str, str], list[list[float]]] = {}
    with (folder / "truth.csv").open() as file:
        for row in csv.DictReader(file):
            if row["run"] != "capture":
                took = [float(ms) for ms in row["round_ms"].split()]
                found.setdefault((row["rack"], row["cc"]), []).append(took[1:])
    return found


def predicted(folder: Path, rack: str, settings: list[str]) -> dict[str, tuple[float, float]]:
    """Mean and median of the requests under each setting, ms, as ``fanin compare`` has them without a rack file."""
    found: dict[str, tuple[float, float]] = {}
    for floor in dict.fromkeys(name.partition(":")[2] for name in settings):
        names = [name.partition(":")[0] for name in settings if name.partition(":")[2] == floor]
        changes = {"stack.min_rto": floor} if floor else {}
        capture = folder / f"{rack}.{CAPTURED}.client.pcap.gz"
        result = fanin.compare(capture, cc=names, baseline=CAPTURED, seeds=SEEDS, settings=changes)
        for row in result.ranking:
            spread = row.to_dict()["request_ms"]
            found[f"{row.cc}:{floor}" if floor else row.cc] = (spread["mean"]["value"], spread["p50"]["value"])
    return found


def measure(folder: Path) -> pl.DataFrame:
    """A row for each rack and setting."""
    rows = []
    measured = truth(folder)
    for rack in dict.fromkeys(rack for rack, _ in measured):
        settings = [name for other, name in measured if other == rack]
        told = predicted(folder, rack, settings)
        for name in settings:
            runs = measured[rack, name]
            means = [mean(run) for run in runs]
            row = {"rack": rack, "setting": name, "runs": len(runs), "mean_ms": mean(means)}
            row["standard_error_ms"] = stdev(means) / math.sqrt(len(means))
            row["median_ms"] = median(itertools.chain.from_iterable(runs))
            row["predicted_mean_ms"], row["predicted_median_ms"] = told[name]
            rows.append(row)
    return pl.DataFrame(rows)


def sentence(rows: pl.DataFrame) -> str:
    """How many orders, gains and medians are right."""
    ordered = close = clear = 0
    for a, b in itertools.combinations(rows.to_dicts(), 2):
        apart = abs(a["mean_ms"] - b["mean_ms"])
        if a["rack"] != b["rack"] or apart < CLEAR * math.hypot(a["standard_error_ms"], b["standard_error_ms"]):
            continue
        gain, promised = a["mean_ms"] / b["mean_ms"], a["predicted_mean_ms"] / b["predicted_mean_ms"]
        clear += 1
        ordered += (gain > 1) == (promised > 1)
        close += 1 / 1.5 <= promised / gain <= 1.5
    within = sum(abs(row["predicted_median_ms"] / row["median_ms"] - 1) <= 0.15 for row in rows.to_dicts())
    return (
        f"Of {clear} pairs whose means are {CLEAR:g} standard errors apart the order is right in {ordered}, the gain within a factor of 1.5 in {close}; "
        f"the median is within 15 % in {within} of {rows.height}."
    )


if __name__ == "__main__":
    table = measure(Path(sys.argv[1]))
    table.write_csv(RESULTS, float_precision=3)
    print(sentence(table))
