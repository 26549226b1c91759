"""The judgement of random scenarios: a row is outside where a measure differs by more than the bounds, and by more than the seeds of either side do."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable
from typing import Any

import polars as pl

from lab.validation.judge import (
    COMPLETION_BOUND,
    GOODPUT_BOUND,
    QUEUE_BOUND,
    QUEUE_FLOOR,
    TIMEOUT_BOUND,
    TIMEOUT_FLOOR,
    apart,
)
from lab.validation.page import seeds, table
from lab.validation.runs import Done

TRIAL_SEEDS = 3
"""Runs of a random scenario on each engine."""

LEAST_MESSAGES = 5
"""Fewer messages of a class in a run have no median worth a verdict."""

UNBOUNDED = ("queue_p99", "drops", "marks", "retransmissions")
"""Measures that no bound is set for; they are in the table."""

MEASURES = ("goodput_mbps", "queue", *UNBOUNDED, "timeouts")


def tried(done: Done, engines: tuple[str, str] = ("sim", "kernel")) -> pl.DataFrame:
    """One row for each random scenario.

    Parameters
    ----------
    done : Done
        Runs of both engines.
    engines : tuple of str
        The model's and the kernel's name.

    Returns
    -------
    polars.DataFrame
        ``case``, ``cc`` (String), ``seeds``, ``kernel_seeds`` (UInt32), the means of the measures for the model and, with ``kernel_`` in front, for
        the kernel (Float64), ``p50_ms``, ``p99_ms`` (means over runs, of the class of most messages; null without messages), ``jain`` (of the class
        with the most flows), ``outside`` (String: measures beyond bounds and spread, those of one class with its name; empty when none is).
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
        rows.append(row | {"outside": ", ".join(_broken(values, classes))})
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


def _broken(values: dict[str, Pair], classes: dict[tuple[str, str], Pair]) -> list[str]:
    """Which measures are outside."""
    outside = []
    timeouts = values["timeouts"]
    with_timeouts = max(*timeouts[0], *timeouts[1]) > 0
    if outlying(*timeouts, TIMEOUT_BOUND, TIMEOUT_FLOOR):
        outside.append("timeouts")
    timed = {name for name, measure in classes if measure == "messages"}
    several = len({name for name, _ in classes}) > 1

    def said(what: str, name: str) -> str:
        return f"{what} of {name}" if several else what

    for (name, measure), both in classes.items():
        if measure == "p50_ms" and outlying(*both, COMPLETION_BOUND):
            outside.append(said("median", name))
        if measure == "goodput_mbps" and name not in timed and not with_timeouts and outlying(*both, GOODPUT_BOUND):
            outside.append(said("goodput", name))
    if not with_timeouts and outlying(*values["queue"], QUEUE_BOUND, QUEUE_FLOOR):
        outside.append("queue")
    return outside


def outlying(model: list[float], kernel: list[float], bound: float, floor: float = 0.0) -> bool:
    """The means differ by more than the bound (relative to the kernel's) or the floor, and no seed of one side lies among the other's.

    Examples
    --------
    >>> outlying([10.0, 11.0, 12.0], [13.0, 14.0, 15.0], 0.15)
    True
    >>> outlying([10.0, 11.0, 14.0], [13.0, 14.0, 15.0], 0.15)
    False
    """
    far = apart(statistics.fmean(model), statistics.fmean(kernel), bound, floor)
    return far and (max(model) < min(kernel) or max(kernel) < min(model))


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
        "A row is outside where a mean breaks a bound and no seed of one side lies among the other's.",
        "",
    ]
    if not complete:
        lines += ["The runs were interrupted: some rows have fewer seeds than the others.", ""]
    outside = rows.filter(pl.col("outside") != "")
    if not outside.is_empty():
        lines += table(outside, COLUMNS, "outside (simulator / kernel)", "by")
    return "\n".join(lines) + "\n"
