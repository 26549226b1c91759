"""Runs of the scenarios on both engines, kept between one call and the next."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
from fanin.confined import admitted, apart
from fanin.kernel.cache import HERTZ, Kernel
from fanin.kernel.engine import run_plan
from fanin.kernel.kept import engine_of, handed, reader
from fanin.process.progress import Progress, silent
from fanin.runs.executor import Threads
from fanin.runs.job import Job, Settings, engine_digest
from fanin.runs.store import Store
from fanin.runs.tables import Frames, tables

from lab.validation.cases import Case

if TYPE_CHECKING:
    from fanin._native import Watch

SEEDS = 3
"""Runs of a scenario and algorithm on each engine where no timeout occurs."""

MORE_SEEDS = 20
"""The same where one does: completion times then are a distribution, not a number. And where the two engines seem to differ: that may be chance."""

MOST_SEEDS = 60
"""The same where these differ by less than two of their own standard errors, which says nothing."""

FRAMES = ("flows", "ports", "messages", "runs")

FORMAT = 1
"""Version of what is kept of a run."""

ROW = "row"
COMPLETIONS = "completions"
CLASSES = "classes"


@dataclass(frozen=True, slots=True)
class Work:
    """One run: a scenario under an algorithm with a seed, on the simulator (`kernel` is None) or on a kernel, with timers of so many hertz."""

    case: Case
    cc: str
    seed: int
    hertz: int
    kernel: Kernel | None

    @property
    def engine(self) -> str:
        """The engine's name, as ``fanin run --engine`` takes it."""
        if self.kernel is None:
            return "sim"
        return engine_name(self.kernel)

    def job(self) -> Job:
        """What is run."""
        settings: Settings = (("stack.hz", str(self.hertz)),)
        if self.kernel is None:
            settings += (("stack.common_ticks", "true"),)
        return Job(self.case.document(), self.seed, self.cc, settings, FRAMES)

    @apart
    def run(self, watch: Watch | None = None) -> Frames:
        """The measures of the run as one row, the completion times of its messages, and both for each class of flows."""
        job = self.job()
        plan = job.plan()
        results = admitted(plan).run(watch) if self.kernel is None else run_plan(plan, self.kernel, self.seed, watch)
        made = tables(results, plan, self.cc, self.seed, FRAMES)
        row = pl.DataFrame([_measures(made, self.case.port)])
        return {ROW: row, COMPLETIONS: _answers(made).select("completion_ms"), CLASSES: _classes(made)}


def _answers(frames: Frames) -> pl.DataFrame:
    return frames["messages"].filter((pl.col("class") != "request") & pl.col("completion_ms").is_not_null())


def _measures(frames: Frames, bottleneck: str) -> dict[str, float]:
    flows = frames["flows"].filter(pl.col("class") != "request")
    port = frames["ports"].filter(pl.col("port") == bottleneck)
    return {
        "goodput_mbps": float(flows["bytes_delivered"].sum()) * 8e-3 / float(frames["runs"]["end_ms"].item()),
        "queue": float(port["mean_queue_packets"].item()),
        "queue_p99": float(port["p99_queue_packets"].item()),
        "drops": float(port["drops"].item()),
        "marks": float(port["marks"].item()),
        "retransmissions": float(flows["retransmissions"].sum()),
        "timeouts": float(flows["timeouts"].sum()),
    }


def _classes(frames: Frames) -> pl.DataFrame:
    """``class``, ``goodput_mbps``, ``jain`` (index over its flows), ``messages`` (complete ones), ``p50_ms``, ``p99_ms``."""
    flows = frames["flows"].filter(pl.col("class") != "request")
    got = pl.col("bytes_delivered").cast(pl.Float64)
    ms = float(frames["runs"]["end_ms"].item())
    goodput = flows.group_by("class", maintain_order=True).agg(
        goodput_mbps=got.sum() * 8e-3 / ms, jain=got.sum() ** 2 / (pl.len() * (got**2).sum())
    )
    took = pl.col("completion_ms")
    times = (
        _answers(frames)
        .group_by("class")
        .agg(messages=pl.len(), p50_ms=took.quantile(0.5, "nearest"), p99_ms=took.quantile(0.99, "nearest"))
    )
    return goodput.join(times, on="class", how="left", maintain_order="left")


def engine_name(kernel: Kernel) -> str:
    """A kernel's engine, as ``fanin run --engine`` takes it."""
    return "kernel" if kernel.hertz == HERTZ[0] else f"kernel-hz{kernel.hertz}"


class Kept:
    """Results of earlier calls: the simulator's by engine and plan, a kernel's by kernel and what is handed to it.

    So a change of the simulator runs the simulator again and no kernel.

    Parameters
    ----------
    folder : path
        Where they are.
    """

    def __init__(self, folder: str | Path) -> None:
        self._folder = Path(folder)
        self._stores: dict[str, Store] = {}

    def _place(self, work: Work) -> tuple[Store, str]:
        job = work.job()
        if work.kernel is None:
            engine, key = f"sim-{engine_digest()}-{FORMAT}-{reader()}", job.key()
        else:
            engine, key = engine_of(work.kernel, str(FORMAT)), handed(job.plan(), work.kernel, work.seed, "rust")
        if engine not in self._stores:
            self._stores[engine] = Store(self._folder, engine=engine)
            self._stores[engine].make()
        return self._stores[engine], key

    def get(self, work: Work) -> Frames | None:
        """What is kept of a run."""
        store, key = self._place(work)
        return store.get(key)

    def put(self, work: Work, frames: Frames) -> None:
        """Keep a run."""
        store, key = self._place(work)
        store.put(key, frames, {"case": work.case.name, "cc": work.cc, "seed": work.seed, "engine": work.engine})


@dataclass
class Done:
    """Runs so far.

    Attributes
    ----------
    rows : list of dict
        A run each: ``group``, ``case``, ``cc``, ``engine``, ``seed`` and its measures.
    completions : dict
        By case, algorithm and engine, ms.
    kernel_engine : str
        The kernel's name in them.
    classes : list of dict
        A class of flows in a run each; none of runs that were kept before classes were.
    complete : bool
        Every run that the bounds ask for is there.
    """

    rows: list[dict[str, Any]]
    completions: dict[tuple[str, str, str], list[float]]
    kernel_engine: str = "kernel"
    classes: list[dict[str, Any]] = field(default_factory=list)
    complete: bool = False

    def add(self, work: Work, frames: Frames) -> None:
        """Add one run."""
        about = {"group": work.case.group, "case": work.case.name, "cc": work.cc, "engine": work.engine}
        self.rows.append({**about, "seed": work.seed, **frames[ROW].row(0, named=True)})
        if CLASSES in frames:
            self.classes += [{**about, "seed": work.seed, **row} for row in frames[CLASSES].iter_rows(named=True)]
        place = (work.case.name, work.cc, work.engine)
        self.completions.setdefault(place, []).extend(frames[COMPLETIONS]["completion_ms"].to_list())

    def with_timeouts(self) -> set[tuple[str, str]]:
        """Scenarios and algorithms with a timeout, on either engine."""
        return {(row["case"], row["cc"]) for row in self.rows if row["timeouts"] > 0}


def measure(
    chosen: Sequence[Case],
    kernel: Kernel,
    kept: Kept,
    *,
    cc: Iterable[str] | None = None,
    seeds: tuple[int, ...] = (SEEDS, MORE_SEEDS),
    more: Callable[[Done], Container[tuple[str, str]]] = Done.with_timeouts,
    progress: Callable[[str, int], Progress] = silent,
) -> Done:
    """Run every scenario on both engines, the first seed of all before the second of any.

    Parameters
    ----------
    chosen : sequence of Case
        Scenarios.
    kernel : Kernel
        On which kernel.
    kept : Kept
        Earlier runs, which are not repeated; new ones are added as they end.
    cc : iterable of str, optional
        Algorithms instead of the scenarios' own.
    seeds : tuple of int
        Runs of each scenario and algorithm, and, each time, of those among them that `more` names.
    more : callable
        Told what was run: which scenarios (names) and algorithms are run more often; those with a timeout unless given.
    progress : callable
        Makes the progress display, once for each pass.

    Returns
    -------
    Done
        Incomplete after Ctrl-C.
    """
    wanted = None if cc is None else set(cc)
    pairs = [(case, name) for case in chosen for name in case.cc if wanted is None or name in wanted]
    done = Done([], {}, engine_name(kernel))
    passes = [range(1, 2), *(range(begin + 1, end + 1) for begin, end in pairwise((1, *seeds)))]
    for number, numbers in enumerate(passes):
        todo = []
        if number > 1:
            named = more(done)
            pairs = [(case, name) for case, name in pairs if (case.name, name) in named]
        for case, name in pairs:
            for seed in numbers:
                for where in (kernel, None):
                    work = Work(case, name, seed, kernel.hertz, where)
                    frames = kept.get(work)
                    if frames is None:
                        todo.append(work)
                    else:
                        done.add(work, frames)
        if not _run(todo, kept, done, progress, f"pass {number + 1} of {len(passes)}"):
            return done
    done.complete = True
    return done


def _run(todo: list[Work], kept: Kept, done: Done, progress: Callable[[str, int], Progress], title: str) -> bool:
    """Run what is missing; false after Ctrl-C."""
    if not todo:
        return True

    def finished(number: int, outcome: Frames | BaseException) -> None:
        if isinstance(outcome, BaseException):
            raise outcome
        kept.put(todo[number], outcome)
        done.add(todo[number], outcome)

    with progress(title, len(todo)) as bar:
        return Threads().map([work.run for work in todo], bar, finished)
