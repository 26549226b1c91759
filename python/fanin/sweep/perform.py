"""Runs what a store does not have yet."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from fanin.errors import FaninError, OutputError, ScenarioError
from fanin.process.progress import Progress, silent
from fanin.runs.engines import engine as find_engine
from fanin.runs.engines import product_of
from fanin.runs.executor import Executor, Threads
from fanin.runs.job import Document, Job, key_of
from fanin.runs.store import Store, default_folder
from fanin.runs.summary import COLUMNS, NEEDS, summary
from fanin.runs.tables import Frames
from fanin.statistics.seeds import estimate
from fanin.sweep.plan import Point, Sweep, read

if TYPE_CHECKING:
    from fanin._native import Watch

ROUND_GROWTH = 2
"""A cell's seeds at most double in one round, since the first estimates of a variance are poor."""


@dataclass(frozen=True, slots=True)
class Until:
    """Seeds are added to each cell until the 95% confidence interval of a statistic is narrow.

    Attributes
    ----------
    share : float
        Half the interval over the mean.
    statistic : str
        A column of the results.
    max_seeds : int
        A cell that is not narrow by then is given up.
    """

    share: float
    statistic: str = "p99_ms"
    max_seeds: int = 200

    @classmethod
    def of(cls, ci: object, statistic: object = "p99_ms", max_seeds: object = 200, *, where: str = "[until]") -> Until:
        """From words as in ``ci = "5%"``.

        Examples
        --------
        >>> Until.of("5%")
        Until(share=0.05, statistic='p99_ms', max_seeds=200)
        """
        text = str(ci).strip()
        try:
            share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
        except ValueError:
            share = math.nan
        if not 0 < share < 1:
            raise ScenarioError(f"{where}: ci is {ci!r}; it must be a share such as 5%")
        numeric = [name for name, (kind, _) in COLUMNS.items() if kind not in (pl.String, pl.Boolean)]
        if statistic not in numeric:
            raise ScenarioError(f"{where}: there is no statistic {statistic!r}; there are {', '.join(numeric)}")
        if not isinstance(max_seeds, int) or isinstance(max_seeds, bool) or max_seeds < 2:
            raise ScenarioError(f"{where}: max_seeds is {max_seeds!r}; it must be a whole number from 2")
        return cls(share, str(statistic), max_seeds)

    def more(self, values: Sequence[float | None]) -> int:
        """How many seeds to add to a cell with these values; 0 when it is narrow, or as narrow as it gets.

        Examples
        --------
        >>> Until(0.05).more([1.0, 1.0, 1.0]), Until(0.05).more([1.0, 2.0, 3.0]), Until(0.05).more([1.0])
        (0, 3, 1)
        """
        known = [value for value in values if value is not None]
        if len(known) < len(values):
            return 0  # a percentile that falls on an unfinished message has no mean
        room = self.max_seeds - len(values)
        if len(known) < 2:
            return min(room, 2 - len(known))
        found = estimate(known)
        half = (found.high or 0.0) - (found.value or 0.0)
        aim = self.share * abs(found.value or 0.0)
        if half <= aim:
            return 0
        needed = math.ceil(len(known) * (half / aim) ** 2) if aim > 0 else self.max_seeds
        return max(0, min(room, needed - len(known), len(known) * (ROUND_GROWTH - 1)))


MOST_CELLS = 30
"""Rows of a sweep in a notebook's cell."""


@dataclass(slots=True, repr=False)
class SweepResult:
    """What a sweep found.

    Attributes
    ----------
    sweep : Sweep
        What was asked for.
    runs : polars.DataFrame
        One row per run: the axes, then the columns of :data:`fanin.runs.summary.COLUMNS`, then ``status`` (``done`` or ``failed``), ``error``,
        ``command`` (that repeats it alone) and ``key`` (in the store).
    found : int
        Runs that the store had.
    ran : int
        Runs that were simulated now.
    missing : int
        Runs that an interruption left.
    unsettled : int
        Cells whose interval was not narrow enough with the most seeds.
    """

    sweep: Sweep
    runs: pl.DataFrame
    found: int
    ran: int
    missing: int = 0
    unsettled: int = 0
    notes: list[str] = field(default_factory=list)

    def __repr__(self) -> str:
        more = [(self.failed, "failed"), (self.missing, "not run"), (self.unsettled, "cells unsettled")]
        told = "".join(f", {count} {what}" for count, what in more if count)
        return f"<SweepResult of {self.sweep.name}: {self.runs.height} runs, {self.ran} of them now{told}>"

    def _repr_html_(self) -> str:
        """For notebooks: the means of the first cells."""
        from fanin.pictures.notebook import card

        axes, columns = list(self.sweep.axes), ["mean_ms", "p99_ms", "timeouts", "drops"]
        done = self.runs.filter(pl.col("status") == "done")
        means = done.group_by(axes, maintain_order=True).agg(pl.len().alias("runs"), *(pl.mean(c) for c in columns))
        shown = means.head(MOST_CELLS)
        more = f"; the first {shown.height} of {means.height} cells" if means.height > shown.height else ""
        return card(repr(self).strip("<>") + more, shown.columns, shown.rows())

    @property
    def failed(self) -> int:
        """Runs that failed."""
        return self.runs.filter(pl.col("status") == "failed").height

    @property
    def interrupted(self) -> bool:
        """It was stopped before the end; the same command goes on."""
        return self.missing > 0


@dataclass(frozen=True, slots=True)
class SweepJob:
    """A simulation, of which one row is kept, and the frames that were asked for."""

    job: Job
    keep: tuple[str, ...] = ()

    def key(self) -> str:
        """Names the row and frames."""
        return key_of(self.job.plan().identity(), product_of(self.job.engine, ["summary", *sorted(self.keep)]))

    def run(self, watch: Watch | None = None) -> Frames:
        """Simulate and summarise."""
        frames = Job.run(self._wanting(), watch)
        return {"summary": summary(frames), **{name: frames[name] for name in self.keep}}

    def _wanting(self) -> Job:
        wanted = tuple(dict.fromkeys((*NEEDS, *self.keep)))
        return replace(self.job, frames=wanted)

    def shipped(self, taken: dict[str, bytes]) -> SweepJob:
        """For another machine: with the files that the scenario names, the large ones put into `taken`."""
        return replace(self, job=replace(self.job, scenario=_shipped(self.job.scenario, taken)))

    def look_up(self, watch: Watch | None = None) -> str:
        """As :meth:`key`, as work for an executor."""
        return self.key()


def _shipped(document: Document, taken: dict[str, bytes]) -> Document:
    travelling, blobs = _travelling(document)
    taken.update(blobs)
    return travelling


@lru_cache(maxsize=16)
def _travelling(document: Document) -> tuple[Document, dict[str, bytes]]:
    """Made once for all jobs of a scenario."""
    taken: dict[str, bytes] = {}
    return document.shipped(taken), taken


def sweep(
    what: str | Path | Sweep,
    *,
    store: Store | str | Path | None = None,
    executor: Executor | None = None,
    until: Until | None = None,
    progress: Callable[[str, int], Progress] = silent,
) -> SweepResult:
    """Run every cell of a sweep under every seed, except what the store has.

    Parameters
    ----------
    what : path or Sweep
        ``sweep.toml``, or what :func:`fanin.sweep.read` made of one.
    store : Store or path, optional
        Where results are kept; ``$FANIN_STORE`` or the user's cache unless given.
    executor : Executor, optional
        Where runs happen; on every core of this machine unless given. Results do not depend on it.
    until : Until, optional
        Instead of the file's ``[until]``.
    progress : callable, optional
        Makes the progress display; see :mod:`fanin.process.progress`.

    Returns
    -------
    SweepResult
        After Ctrl-C, of what was done until then: what is under way is finished first. A run that fails is a row.

    Raises
    ------
    fanin.ScenarioError
        When the file is wrong.
    fanin.OutputError
        When the store cannot be written; what it holds is whole, and the same call goes on.
    """
    plan = what if isinstance(what, Sweep) else read(what)
    for name in {point.engine for point in plan.points}:
        find_engine(name)  # raises when it is not there, before anything runs
    place = store if isinstance(store, Store) else Store(store or default_folder())
    place.make()
    if until is None and plan.until:
        until = Until.of(
            plan.until.get("ci"), plan.until.get("statistic", "p99_ms"), plan.until.get("max_seeds", 200),
            where=f"{plan.file}: [until]",
        )  # fmt: skip
    work = _Work(plan, place, executor or Threads(), progress)
    wanted = [(number, seed) for number in range(len(plan.points)) for seed in plan.seeds]
    work.do(wanted, "running")
    unsettled = 0
    while until is not None and not work.interrupted:
        more, unsettled = _more_seeds(work, until)
        if not more:
            break
        wanted += more
        work.do(more, f"narrowing {until.statistic} to {until.share:.3g}")
    result = SweepResult(
        plan,
        work.frame(),
        work.found,
        work.ran,
        missing=sum(1 for which in wanted if which not in work.rows),
        unsettled=unsettled,
    )
    _keep_results(place, plan, result.runs)
    return result


def _more_seeds(work: _Work, until: Until) -> tuple[list[tuple[int, int]], int]:
    """Seeds that each cell still needs, and how many cells are as wide with the most."""
    more, unsettled = [], 0
    for number in range(len(work.plan.points)):
        rows = {seed: row for (cell, seed), row in work.rows.items() if cell == number}
        if any(row["status"] == "failed" for row in rows.values()):
            continue
        count = until.more([row[until.statistic] for row in rows.values()])
        if not count and len(rows) >= until.max_seeds:
            unsettled += 1
        unused = (seed for seed in range(1, len(rows) + count + 1_000_000) if seed not in rows)
        more += [(number, next(unused)) for _ in range(count)]
    return more, unsettled


class _Work:
    """Rows of a sweep as they come."""

    def __init__(self, plan: Sweep, store: Store, executor: Executor, progress: Callable[[str, int], Progress]) -> None:
        self.plan = plan
        self.rows: dict[tuple[int, int], dict[str, Any]] = {}
        self.found = 0
        self.ran = 0
        self.interrupted = False
        self._store = store
        self._executor = executor
        self._progress = progress

    def do(self, wanted: Sequence[tuple[int, int]], title: str) -> None:
        """Find or run these cells and seeds."""
        jobs = {which: SweepJob(self.plan.points[which[0]].job(which[1]), self.plan.keep) for which in wanted}
        by_key = self._look_up(jobs)
        if self.interrupted:
            return
        left = []
        for key, same in by_key.items():
            kept = self._store.get(key, ["summary"])
            # What another program wrote may have a digest that fits, and be no summary: it is missing as well.
            if kept is None or not _is_summary(kept["summary"]):
                left.append(key)
            else:
                self.found += 1
                self._done(same, kept, key)
        if not left:
            return

        failures = 0

        def finished(number: int, outcome: Frames | BaseException) -> None:
            nonlocal failures
            key, same = left[number], by_key[left[number]]
            if isinstance(outcome, Exception) and not isinstance(outcome, OutputError):
                failures += 1
                for which in same:
                    self._failed(which, outcome)
            elif isinstance(outcome, BaseException):
                raise outcome
            else:
                job = jobs[same[0]].job
                self._store.put(key, outcome, {"command": _any_file(job)})
                self.ran += 1
                self._done(same, outcome, key)
            note = getattr(bar, "say", None)
            if note is not None and failures:
                note(f"{failures} failed")

        with self._progress(f"{title} ({self.found} of {len(by_key)} found in the store)", len(left)) as bar:
            works = [jobs[by_key[key][0]].run for key in left]
            if not self._executor.map(works, bar, finished, finish_running=True):
                self.interrupted = True

    def _look_up(self, jobs: dict[tuple[int, int], SweepJob]) -> dict[str, list[tuple[int, int]]]:
        """Cells and seeds by the key of their results; what is no valid scenario has failed."""
        order = list(jobs)
        keys: dict[tuple[int, int], str] = {}

        def finished(number: int, outcome: str | BaseException) -> None:
            if isinstance(outcome, FaninError):
                self._failed(order[number], outcome)
            elif isinstance(outcome, BaseException):
                raise outcome
            else:
                keys[order[number]] = outcome

        with self._progress("checking", len(order)) as bar:
            if not Threads().map([jobs[which].look_up for which in order], bar, finished):
                self.interrupted = True
        by_key: dict[str, list[tuple[int, int]]] = {}
        for which in order:
            if which in keys:
                by_key.setdefault(keys[which], []).append(which)
        return by_key

    def _done(self, same: Iterable[tuple[int, int]], frames: Frames, key: str) -> None:
        row = frames["summary"].row(0, named=True)
        for which in same:
            self.rows[which] = {**row, "status": "done", "error": None, "key": key}

    def _failed(self, which: tuple[int, int], error: Exception) -> None:
        empty = dict.fromkeys(COLUMNS)
        self.rows[which] = {
            **empty, "seed": which[1], "status": "failed", "error": str(error) or type(error).__name__, "key": None,
        }  # fmt: skip

    def frame(self) -> pl.DataFrame:
        """All rows, by cell and seed."""
        axes = self.plan.axes
        rows = []
        for (number, seed), row in sorted(self.rows.items()):
            point = self.plan.points[number]
            rows.append({**row, **dict(point.labels), "command": point.job(seed).command()})
        kinds = {name: _kind(self.plan.points, name) for name in axes}
        for row in rows:
            for name in axes:
                if kinds[name] == pl.String:
                    row[name] = str(row[name])
        schema: dict[str, Any] = {
            **kinds,
            **{name: kind for name, (kind, _) in COLUMNS.items() if name not in kinds},
            **dict.fromkeys(("status", "error", "command", "key"), pl.String),
        }
        return pl.DataFrame(rows, schema=schema)


def _is_summary(rows: pl.DataFrame) -> bool:
    """One run's row, as :func:`fanin.runs.summary` makes it."""
    return rows.height == 1 and rows.schema == pl.Schema({name: kind for name, (kind, _) in COLUMNS.items()})


def _kind(points: Sequence[Point], axis: str) -> type[pl.DataType]:
    """The type of an axis's column: of numbers where all values are."""
    values = [dict(point.labels)[axis] for point in points]
    if all(isinstance(v, bool) for v in values):
        return pl.Boolean
    if all(isinstance(v, int) and not isinstance(v, bool) for v in values):
        return pl.Int64
    if all(isinstance(v, int | float) and not isinstance(v, bool) for v in values):
        return pl.Float64
    return pl.String


def _any_file(job: Job) -> str:
    """The command without the folder of the scenario: equal for equal results of sweeps in two places."""
    return job.command().replace(job.scenario.name, Path(job.scenario.name).name)


def _keep_results(store: Store, plan: Sweep, runs: pl.DataFrame) -> None:
    """Leave the rows where queries and plots find them."""
    store.keep_sweep(plan.name, runs)
