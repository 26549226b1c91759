"""How far the model agrees with the kernel: one row for each scenario and algorithm, and the order of the algorithms."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean, variance

import polars as pl
from fanin.kernel.cache import Kernel
from fanin.process.progress import Progress, silent

from lab.validation.cases import Case
from lab.validation.runs import MORE_SEEDS, MOST_SEEDS, SEEDS, Done, Kept, engine_name, measure

GOODPUT_BOUND, QUEUE_BOUND = 0.03, 0.15
"""Relative differences of goodput and mean queue that count as agreement, where no timeout occurs."""

QUEUE_FLOOR = 1.0
"""A difference of the mean queue below this many packets counts as agreement: two ways to count the packet in transmission differ by as much."""

COMPLETION_BOUND = 0.15
"""Relative difference of the median completion time that counts as agreement."""

TIMEOUT_BOUND, TIMEOUT_FLOOR = 0.25, 2.0
"""Differences of the mean number of timeouts in a run that count as agreement: the greater of the two."""

DROP_FLOOR = 2.0
"""A difference of the mean number of drops in a run below this counts as agreement."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Relative differences that count as agreement, and are set anew for hosts with offloads.

    Attributes
    ----------
    median, tail, drops : float or None
        Of the 50th and the 99th percentile of completion times, and of drops at the bottleneck; None: any.
    """

    median: float = COMPLETION_BOUND
    tail: float | None = None
    drops: float | None = None


IDEAL = Bounds()
"""What hosts that cost nothing are held to."""

OFFLOADED = Bounds(median=0.05, tail=0.15, drops=0.15)
"""What hosts with offloads are held to: bursts decide about drops, and drops about the tail."""

CHANCE = 2.0
"""Two means that differ by fewer standard errors than this are compared over more seeds."""

MEANS = {"timeouts": "timeouts", "drops": "drops", "goodput": "goodput_mbps", "queue": "queue"}
"""Bounds of means over runs: of which measure."""

MEASURES = ("goodput_mbps", "queue", "queue_p99", "p50_ms", "p99_ms", "drops", "marks", "retransmissions", "timeouts")


def measured(
    chosen: Sequence[Case],
    kernel: Kernel,
    kept: Kept,
    bounds: Bounds,
    *,
    judge: Callable[[Done, tuple[str, str], Bounds], pl.DataFrame] | None = None,
    cc: Iterable[str] | None = None,
    seeds: int | None = None,
    progress: Callable[[str, int], Progress] = silent,
) -> Done:
    """Run every scenario on both engines, and more often where that is what may decide.

    Parameters
    ----------
    chosen, kernel, kept, cc, progress
        As :func:`lab.validation.runs.measure` takes them.
    bounds : Bounds
        What counts as agreement.
    judge : callable, optional
        Makes the rows with their verdicts: :func:`judged`, or :func:`lab.validation.trial.tried`.
    seeds : int, optional
        Runs of each row; :data:`SEEDS` unless given, and then :data:`MORE_SEEDS` where a timeout occurs. Where these break a bound there are as many
        too, and :data:`MOST_SEEDS` where the break may be chance.

    Returns
    -------
    Done
    """
    few = seeds or SEEDS
    runs = (few, max(few, MORE_SEEDS), max(few, MOST_SEEDS))
    outside = pl.col("outside") != ""
    often = outside if seeds is not None else outside | (pl.max_horizontal("timeouts", "kernel_timeouts") > 0)

    def more(done: Done) -> set[tuple[str, str]]:
        rows = (judge or judged)(done, ("sim", engine_name(kernel)), bounds)
        first = pl.col("seeds") < runs[1]
        chosen = rows.filter(pl.when(first).then(often).otherwise(outside & (pl.col("standard_errors") < CHANCE)))
        return set(chosen.select("case", "cc").iter_rows())

    return measure(chosen, kernel, kept, cc=cc, seeds=runs, more=more, progress=progress)


def judged(done: Done, engines: tuple[str, str] = ("sim", "kernel"), bounds: Bounds = IDEAL) -> pl.DataFrame:
    """One row for each scenario and algorithm.

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
        ``group``, ``case``, ``cc`` (String), ``seeds``, ``kernel_seeds`` (UInt32), each of :data:`MEASURES` for the model and, with ``kernel_`` in
        front, for the kernel (Float64; means over runs, quantiles over all messages, null where a scenario has none), ``outside`` (String: the
        bounds that are broken, by comma; empty when none is), ``standard_errors`` (Float64: by how many of its own standard errors the first of
        these that is a mean over runs differs; null where none is, or a side has one run).
    """
    rows = []
    runs = pl.DataFrame(done.rows)
    for (group, case, cc), part in runs.group_by("group", "case", "cc", maintain_order=True):
        sides = [part.filter(pl.col("engine") == engine) for engine in engines]
        if any(side.is_empty() for side in sides):
            continue
        row: dict[str, object] = {"group": group, "case": case, "cc": cc}
        row |= {"seeds": sides[0].height, "kernel_seeds": sides[1].height}
        for engine, side, prefix in zip(engines, sides, ("", "kernel_"), strict=True):
            times = pl.Series(done.completions.get((str(case), str(cc), engine), []), dtype=pl.Float64)
            for name in MEASURES:
                quantile = {"p50_ms": 0.5, "p99_ms": 0.99}.get(name)
                row[prefix + name] = times.quantile(quantile, "nearest") if quantile else side[name].mean()
        outside = broken(row, bounds)
        first = next((MEANS[name] for name in outside if name in MEANS), None)
        chance = None if first is None else standard_errors(*(side[first].to_list() for side in sides))
        rows.append(row | {"outside": ", ".join(outside), "standard_errors": chance})
    # A column may begin with a case that has no messages.
    return pl.DataFrame(rows, infer_schema_length=None)


def standard_errors(one: Sequence[float], other: Sequence[float]) -> float | None:
    """By how many standard errors of their difference two means differ; None where chance cannot be told.

    Examples
    --------
    >>> standard_errors([1.0, 3.0], [4.0, 6.0])
    2.1213203435596424
    """
    if min(len(one), len(other)) < 2:
        return None
    error = math.sqrt(sum(variance(side) / len(side) for side in (one, other)))
    return abs(fmean(one) - fmean(other)) / error if error > 0 else None


def apart(model: float, kernel: float, bound: float, floor: float = 0.0) -> bool:
    """They differ by more than the bound, relative to the kernel's, and by more than the floor."""
    return abs(model - kernel) > max(bound * abs(kernel), floor)


def broken(row: dict[str, object], bounds: Bounds = IDEAL) -> list[str]:
    """Which bounds a row breaks.

    Examples
    --------
    >>> row = {"goodput_mbps": 940.0, "queue": 30.0, "p50_ms": None, "timeouts": 0.0}
    >>> kernel = {"kernel_goodput_mbps": 941.0, "kernel_queue": 20.0, "kernel_p50_ms": None, "kernel_timeouts": 0.0}
    >>> broken(row | kernel)
    ['queue']
    """

    def values(name: str) -> tuple[float, float]:
        model, kernel = row[name], row[f"kernel_{name}"]
        assert isinstance(model, float)
        assert isinstance(kernel, float)
        return model, kernel

    def far(name: str, bound: float, floor: float = 0.0) -> bool:
        return apart(*values(name), bound, floor)

    outside = []
    with_timeouts = max(values("timeouts")) > 0
    if with_timeouts and far("timeouts", TIMEOUT_BOUND, TIMEOUT_FLOOR):
        outside.append("timeouts")
    if row["kernel_p50_ms"] is not None and far("p50_ms", bounds.median):
        outside.append("median")
    if row["kernel_p50_ms"] is not None and bounds.tail is not None and far("p99_ms", bounds.tail):
        outside.append("p99")
    if bounds.drops is not None and far("drops", bounds.drops, DROP_FLOOR):
        outside.append("drops")
    if row["kernel_p50_ms"] is None and not with_timeouts:
        if far("goodput_mbps", GOODPUT_BOUND):
            outside.append("goodput")
        if far("queue", QUEUE_BOUND, QUEUE_FLOOR):
            outside.append("queue")
    return outside


def orders(rows: pl.DataFrame) -> pl.DataFrame:
    """Kendall's tau of the algorithms' order in each scenario with several.

    Returns
    -------
    polars.DataFrame
        ``group``, ``case``, ``by`` (String: what they are ordered by: ``p50_ms`` of messages, or ``queue``), ``tau`` (Float64).
    """
    made = []
    for (group, case), part in rows.group_by("group", "case", maintain_order=True):
        if part.height < 2:
            continue
        by = "p50_ms" if part["p50_ms"].null_count() == 0 else "queue"
        bound, floor = (COMPLETION_BOUND, 0.0) if by == "p50_ms" else (QUEUE_BOUND, QUEUE_FLOOR)
        tau = kendall_tau(part[by].to_list(), part[f"kernel_{by}"].to_list(), bound, floor)
        made.append({"group": group, "case": case, "by": by, "tau": tau})
    return pl.DataFrame(made, schema={"group": pl.String, "case": pl.String, "by": pl.String, "tau": pl.Float64})


def kendall_tau(a: Sequence[float], b: Sequence[float], bound: float = 0.0, floor: float = 0.0) -> float:
    """Kendall's tau of two rankings: 1 is the same order, -1 the opposite.

    Two that differ in both rankings by less than `bound` (relative) or `floor` are tied, and agree.

    Examples
    --------
    >>> kendall_tau([1, 2, 3], [10, 20, 30]), kendall_tau([1, 2], [2, 1])
    (1.0, -1.0)
    >>> kendall_tau([1.0, 1.01], [1.01, 1.0], bound=0.15)
    1.0
    """

    def sign(x: float, y: float) -> int:
        return (x > y) - (x < y)

    def tied(x: float, y: float) -> bool:
        return abs(x - y) <= max(bound * max(abs(x), abs(y)), floor)

    pairs = []
    for i, j in combinations(range(len(a)), 2):
        if tied(a[i], a[j]) and tied(b[i], b[j]):
            pairs.append(1)
        else:
            pairs.append(sign(a[i], a[j]) * sign(b[i], b[j]))
    return sum(pairs) / len(pairs) if pairs else 1.0
