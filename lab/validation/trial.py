"""The judgement of random scenarios, by class of flows: a row is outside where a mean over runs breaks a bound, with more runs where that may be chance."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable
from typing import Any

import polars as pl

from lab.validation.judge import (
    DROP_FLOOR,
    GOODPUT_BOUND,
    IDEAL,
    QUEUE_BOUND,
    QUEUE_FLOOR,
    TIMEOUT_BOUND,
    TIMEOUT_FLOOR,
    Bounds,
    apart,
    standard_errors,
)
from lab.validation.page import seeds, table
from lab.validation.runs import Done

LEAST_MESSAGES = 5
"""Fewer messages of a class in a run have no median worth a verdict."""

MEASURES = ("goodput_mbps", "queue", "queue_p99", "drops", "marks", "retransmissions", "timeouts")


def tried(done: Done, engines: tuple[str, str] = ("sim", "kernel"), bounds: Bounds = IDEAL) -> pl.DataFrame:
    """One row for each random scenario.

    Parameters
    ----------
    done : Done
        Runs of both engines.
    engines : tuple of str
        The model's and the kernel's name.
    bounds : Bounds
        What counts as agreement.

    Returns
    -------
    polars.DataFrame
        ``case``, ``cc`` (String), ``seeds``, ``kernel_seeds`` (UInt32), the means of the measures for the model and, with ``kernel_`` in front, for
        the kernel (Float64), ``p50_ms``, ``p99_ms`` (means over runs, of the class of most messages; null without messages), ``jain`` (of the class
        with the most flows), ``outside`` (String: measures beyond their bounds, those of one class with its name; empty when none is),
        ``standard_errors`` (Float64: by how many of its own standard errors the first of these differs; null where none is, or a side has one run).
    """
    rows = []
    for (case, cc), part in pl.DataFrame(done.rows).group_by("case", "cc", maintain_order=True):
        sides = [part.filter(pl.col("engine") == engine) for engine in engines]
        if any(side.is_empty() for side in sides):
            continue
        row: dict[str, Any] = {"case": case, "cc": cc, "seeds": sides[0].height, "kernel_seeds": sides[1].height}
        values = {name: (sides[0][name].to_list(), sides[1][name].to_list()) for name in MEASURES}
        classes = _by_class(done.classes, str(case), str(cc), engines)
        for name, (model, kernel) in values.items():
            row |= {name: statistics.fmean(model), f"kernel_{name}": statistics.fmean(kernel)}
        for name in ("p50_ms", "p99_ms", "jain"):
            pairs = [both for (_, measure), both in classes.items() if measure == name]
            both = pairs[0] if pairs else ([], [])
            row |= {name: _mean(both[0]), f"kernel_{name}": _mean(both[1])}
        broken = _broken(values, classes, bounds)
        chance = standard_errors(*next(iter(broken.values()))) if broken else None
        rows.append(row | {"outside": ", ".join(broken), "standard_errors": chance})
    return pl.DataFrame(rows, infer_schema_length=None)


def _mean(values: list[float]) -> float | None:
    return statistics.fmean(values) if values else None


Pair = tuple[list[float], list[float]]
"""A value of each seed: the model's, the kernel's."""


def _by_class(
    rows: Iterable[dict[str, Any]], case: str, cc: str, engines: tuple[str, str]
) -> dict[tuple[str, str], Pair]:
    """The seeds' values by class of flows and measure; medians only of classes that complete messages in every run."""
    found: dict[tuple[str, str], Pair] = {}
    for row in rows:
        if (row["case"], row["cc"]) != (case, cc) or row["engine"] not in engines:
            continue
        enough = row["messages"] is not None and row["messages"] >= LEAST_MESSAGES
        for name in ("goodput_mbps", "jain", "messages", "p50_ms", "p99_ms"):
            if enough or not name.endswith("_ms"):
                value = row[name]
                if value is not None and math.isfinite(value):
                    found.setdefault((row["class"], name), ([], []))[engines.index(row["engine"])].append(value)
    return {key: both for key, both in found.items() if all(both)}


def _broken(values: dict[str, Pair], classes: dict[tuple[str, str], Pair], bounds: Bounds) -> dict[str, Pair]:
    """The measures that break a bound, and the seeds' values of each."""
    outside: dict[str, Pair] = {}
    with_timeouts = max(*values["timeouts"][0], *values["timeouts"][1]) > 0
    timed = {name for name, measure in classes if measure == "messages"}
    several = len({name for name, _ in classes}) > 1

    def look(what: str, both: Pair, bound: float | None, floor: float = 0.0) -> None:
        if bound is not None and apart(statistics.fmean(both[0]), statistics.fmean(both[1]), bound, floor):
            outside[what] = both

    look("timeouts", values["timeouts"], TIMEOUT_BOUND, TIMEOUT_FLOOR)
    for (name, measured), both in classes.items():
        of = f" of {name}" if several else ""
        if measured == "p50_ms":
            look(f"median{of}", both, bounds.median)
        if measured == "p99_ms":
            look(f"p99{of}", both, bounds.tail)
        if measured == "goodput_mbps" and name not in timed and not with_timeouts:
            look(f"goodput{of}", both, GOODPUT_BOUND)
    look("drops", values["drops"], bounds.drops, DROP_FLOOR)
    if not with_timeouts:
        look("queue", values["queue"], QUEUE_BOUND, QUEUE_FLOOR)
    return outside


COLUMNS = {
    "goodput_mbps": "goodput, Mbps",
    "queue": "mean queue",
    "queue_p99": "p99 queue",
    "p50_ms": "p50, ms",
    "p99_ms": "p99, ms",
    "drops": "drops",
    "marks": "marks",
    "retransmissions": "repeated",
    "timeouts": "timeouts",
    "jain": "Jain",
}


def trial_page(rows: pl.DataFrame, command: str, version: str, kernel: str, complete: bool) -> str:
    """The table: how many are within the bounds, and the rows that are not."""
    inside = rows.filter(pl.col("outside") == "").height
    lines = [
        f"Made by `{command}` with fanin {version} and {kernel}: {inside} of {rows.height} random scenarios within the bounds, {seeds(rows)} of each side. "
        "A row is outside where a mean breaks a bound, over 20 runs, or 60 where that may be chance.",
        "",
    ]
    if not complete:
        lines += ["The runs were interrupted: some rows have fewer seeds than the others.", ""]
    outside = rows.filter(pl.col("outside") != "")
    if not outside.is_empty():
        lines += table(outside, COLUMNS, "outside (simulator / kernel)", "by")
    return "\n".join(lines) + "\n"
