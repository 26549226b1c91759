"""Runs experiments on every core, and remembers what was run."""

from __future__ import annotations

import ast
import contextlib
import inspect
import itertools
import os
import shlex
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from fanin.disk.cache import cache_folder
from fanin.errors import FaninError, OutputError
from fanin.papers.catalogue import DEFAULT, Experiment, Paper, Point, Reading
from fanin.papers.judgement import judgement_of
from fanin.papers.settling import parts
from fanin.process.progress import Progress
from fanin.runs.executor import Threads
from fanin.runs.job import Document, Job, key_of
from fanin.runs.store import Store
from fanin.runs.tables import Frames
from fanin.simulation import toml
from fanin.testbed.honesty import valid

if TYPE_CHECKING:
    from fanin._native import Watch

SECONDS_PER_BATCH = 4.0
"""About this much work is one piece: it is what an interruption loses, and what the end of a run waits for."""

SLOWER = {"kernel": 40.0}
"""How many times as long as simulated a run takes on an engine: the 300 runs of trim.fig13 took 348 s of processor time, simulated 9."""

KEEP_DAYS = 14
"""Results of an engine that was not used for so long are thrown away."""


@dataclass(frozen=True, slots=True)
class Batch:
    """One combination of an experiment's points, over some seeds."""

    experiment: Experiment
    points: tuple[Point, ...]
    seeds: tuple[int, ...]
    reduce: Callable[[Frames], Frames] | None
    reading: Reading = DEFAULT

    @property
    def cost(self) -> float:
        """Seconds, roughly."""
        cost = self.experiment.cost * len(self.seeds) * SLOWER.get(self.reading.engine, 1.0)
        for point in self.points:
            cost *= point.cost
        return cost

    @property
    def cc(self) -> str | None:
        """The algorithm that is run."""
        return self.points[-1].cc

    def settings(self) -> dict[str, str]:
        """What is changed in the scenario; a point of the experiment has the last word over a reading, but for its own defaults."""
        changed: dict[str, object] = {}
        for point in self.points:
            changed |= point.default
        changed |= self.reading.settings(self.experiment.name, self.cc)
        for point in self.points:
            changed |= point.settings
        name = self.experiment.name
        changed = {key: value for key, value in changed.items() if not self.reading.dropped(key, name, self.cc)}
        changed |= self.reading.settings(self.experiment.name, self.cc, final=True)
        return {key: toml(value) for key, value in changed.items()}

    def jobs(self) -> list[Job]:
        """Its simulations."""
        document = Document.read(self.experiment.scenario)
        settings = tuple(self.settings().items())
        frames, engine = self.experiment.frames, self.reading.engine
        cc = self.reading.algorithm(self.cc)
        return [Job(document, seed, cc, settings, frames, engine) for seed in self.seeds]

    def labels(self) -> dict[str, str | int | float]:
        """By axis of the experiment: which of its points this is."""
        return {axis.name: point.label for axis, point in zip(self.experiment.axes, self.points, strict=True)}

    def names(self) -> list[str]:
        """Of each simulation: what it is and what is kept of it. The same in two experiments or under two readings: the same rows."""
        reduce = _tree(self.reduce) if self.reduce else ""
        kept = [sorted(self.experiment.frames), reduce]
        return [key_of(job.written(), kept) for job in self.jobs()]

    def key(self) -> str:
        """Names what it gives: every simulation, the labels, and what is kept of them."""
        return key_of(" ".join(self.names()), list(self.labels().items()))


class Made:
    """What one command has simulated: experiments and readings have many simulations in common, and none is run twice."""

    def __init__(self) -> None:
        self._of: dict[str, tuple[int, Frames]] = {}

    def whole(self, batch: Batch, simulate: Callable[[Batch], Frames]) -> Frames:
        """A batch's frames, of which only the seeds are simulated that were not before."""
        names = dict(zip(batch.seeds, batch.names(), strict=True))
        new = tuple(seed for seed, name in names.items() if name not in self._of)
        if new:
            frames = simulate(replace(batch, seeds=new))
            self._of |= {names[seed]: (seed, frames) for seed in new}
            if new == batch.seeds:
                return frames
        parts = [self._of[name] for name in names.values()]
        return {
            frame: pl.concat(
                [frames[frame].filter(pl.col("seed") == seed) for seed, frames in parts], how="vertical_relaxed"
            )
            for frame in parts[0][1]
        }


@cache
def _tree(function: Callable[..., object]) -> str:
    """A function's source as a tree: how it is laid out and commented does not matter."""
    return ast.dump(ast.parse(inspect.getsource(function)))


def batches(
    paper: Paper,
    experiment: Experiment,
    *,
    quick: bool,
    reading: Reading = DEFAULT,
    seeds: int | None = None,
    cheapest: bool = False,
    upto: int = 0,
) -> list[Batch]:
    """Everything of an experiment, in pieces of about the same length; with its own number of seeds unless another is given.

    With `cheapest` only the points that cost least along each axis, but all algorithms. With `upto` only the first so many seeds, where
    :mod:`fanin.papers.settling` cuts them.
    """
    own = experiment.quick if quick else experiment.seeds_under(reading)
    last = seeds or own
    pieces = (
        [range(1, last + 1)] if quick or seeds else [one for one in parts(last) if not upto or one.stop - 1 <= upto]
    )
    left_out = reading.without
    axes = [[p for p in axis.points if (p.quick or not quick) and p.label not in left_out] for axis in experiment.axes]
    if cheapest:
        least = [min(p.cost for p in points) for points in axes[:-1]]
        axes[:-1] = [[p for p in points if p.cost == cost] for points, cost in zip(axes[:-1], least, strict=True)]
    reduce = getattr(judgement_of(paper), experiment.reduce) if experiment.reduce else None
    found = []
    for points in itertools.product(*axes):
        one = Batch(experiment, points, (1,), reduce, reading)
        size = max(1, round(SECONDS_PER_BATCH / max(one.cost, 1e-6)))
        found += [
            Batch(experiment, points, tuple(part[begin : begin + size]), reduce, reading)
            for part in pieces
            for begin in range(0, len(part), size)
        ]
    return found


def command_of(batch: Batch, folder: Path) -> str:
    """The command that runs the first of a batch's simulations alone."""
    words = ["fanin", "run", str(folder / batch.experiment.scenario.name)]
    if cc := batch.reading.algorithm(batch.cc):
        words += ["--cc", cc]
    for key, value in batch.settings().items():
        words += ["--set", f"{key}={value}"]
    return shlex.join([*words, "--seed", str(batch.seeds[0])])


def effort(group: Sequence[Batch]) -> str:
    """What the simulations of an experiment take, for a sentence."""
    runs = sum(len(batch.seeds) for batch in group)
    seeds = len({seed for batch in group for seed in batch.seeds})
    seconds = sum(batch.cost for batch in group)
    told = f"{runs} simulation{'' if runs == 1 else 's'} over {seeds} seed{'' if seeds == 1 else 's'}"
    return f"{told}, about {max(1, round(seconds))} s of processor time"


def run_all(
    work: Sequence[Batch],
    progress: Callable[[str, int], Progress],
    *,
    fresh: bool = False,
    made: Made | None = None,
    note: Callable[[str], None] = lambda _: None,
) -> tuple[list[Frames | FaninError | None], bool]:
    """Run batches, or find them where they were kept.

    Parameters
    ----------
    fresh : bool
        Run again what was kept.
    made : Made, optional
        What the same command simulated before; what is run is added.
    note : callable
        Told in a sentence when results cannot be kept. They are simulated all the same.

    Returns
    -------
    list
        For each batch its frames, the error that ended it, or None when an interrupt came first.
    bool
        False after an interrupt.
    """
    before = made or Made()
    store = None
    try:
        store = kept_results()
    except OutputError as error:
        # The rest of the sentence is about stores that a command names.
        why = str(error).split("; ")[0]
        note(f"results are not kept, and the next time is not faster: {why}; XDG_CACHE_HOME names another place")
    # Taken once, before anything runs: a scenario may be edited meanwhile.
    keys = [batch.key() for batch in work]
    # Where a reading changes nothing for an algorithm, several batches are one.
    first = {key: i for i, key in reversed(list(enumerate(keys)))}
    done: list[Frames | FaninError | None] = [None if fresh or store is None else store.get(key) for key in keys]
    left = sorted((i for i in first.values() if done[i] is None), key=lambda i: -work[i].cost)
    total = sum(work[i].cost for i in left)

    def job(batch: Batch, key: str) -> Callable[[Watch], Frames]:
        def simulate(watch: Watch) -> Frames:
            frames = _labelled(batch, before.whole(batch, lambda rest: run(rest, watch)))
            if store is not None:
                # A full disk costs the next run time, not this one its results.
                with contextlib.suppress(OutputError):
                    store.put(key, frames)
            return frames

        return simulate

    def finished(number: int, outcome: Frames | BaseException) -> None:
        if isinstance(outcome, BaseException) and not isinstance(outcome, FaninError):
            raise outcome
        done[left[number]] = outcome

    if not left:
        return done, True
    # The bar counts thousandths of the work, by cost: batches differ by orders of magnitude.
    with progress(f"simulating ({len(left)} of {len(work)} batches are new)", 1000) as bar:
        shares = [work[i].cost / total * 1000 for i in left]
        weighted = _Weighted(bar, shares)
        whole = Threads().map(
            [weighted.track(n, job(work[i], keys[i])) for n, i in enumerate(left)], weighted, finished
        )
    return [done[first[key]] for key in keys], whole


class _Weighted:
    """A display of work whose pieces differ in length."""

    def __init__(self, bar: Progress, shares: list[float]) -> None:
        self._bar = bar
        self._shares = shares
        self._watches: dict[int, Watch] = {}
        self._done: set[int] = set()

    def __enter__(self) -> _Weighted:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def track(self, number: int, job: Callable[[Watch], Frames]) -> Callable[[Watch], Frames]:
        def tracked(watch: Watch) -> Frames:
            self._watches[number] = watch
            try:
                return job(watch)
            finally:
                self._done.add(number)

        return tracked

    def update(self, done: float) -> None:
        running = {n: w.fraction for n, w in list(self._watches.items()) if n not in self._done}
        self._bar.update(
            sum(self._shares[n] for n in list(self._done)) + sum(self._shares[n] * f for n, f in running.items())
        )


def run(batch: Batch, watch: Watch) -> Frames:
    """Simulate one batch on this thread; other threads go on meanwhile."""
    runs = [valid(partial(job.run, watch)) for job in batch.jobs()]
    # The batch's axis of algorithms is named `cc`; it tells apart readings of one algorithm, which have the engine's name in common.
    made = {
        name: pl.concat([frames[name] for frames in runs]).drop("cc").with_columns(pl.col("seed").cast(pl.Int64))
        for name in batch.experiment.frames
    }
    if batch.reduce:
        made = batch.reduce(made)
    # Seed after seed: the rows are the same whichever seeds are run together.
    return {name: rows.sort("seed", maintain_order=True) for name, rows in made.items()}


def _labelled(batch: Batch, made: Frames) -> Frames:
    """With the experiment's axes as columns."""
    labels = [pl.lit(label).alias(axis) for axis, label in batch.labels().items()]
    return {name: rows.select(*labels, pl.all()) for name, rows in made.items()}


def gather(done: Sequence[Frames]) -> Frames:
    """One frame per name from the batches of one experiment."""
    names = done[0].keys()
    return {name: pl.concat([frames[name] for frames in done], how="vertical_relaxed") for name in names}


def kept_results() -> Store:
    """Where batches are kept.

    Raises
    ------
    fanin.OutputError
        When nothing can be kept there.
    """
    folder = cache_folder() / "reproduce"
    store = Store(folder)
    store.make()
    with contextlib.suppress(OSError):
        os.utime(folder / store.engine)
    for engine in store.engines():
        with contextlib.suppress(OSError):
            if time.time() - (folder / engine).stat().st_mtime > KEEP_DAYS * 86400:
                shutil.rmtree(folder / engine)
    return store
