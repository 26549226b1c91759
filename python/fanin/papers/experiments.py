"""Runs experiments on every core, and remembers what was run."""

from __future__ import annotations

import ast
import contextlib
import hashlib
import importlib
import inspect
import itertools
import json
import os
import shlex
import shutil
import tempfile
import time
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from fanin import _native
from fanin.errors import FaninError
from fanin.frames import frame
from fanin.papers.catalogue import Experiment, Paper, Point
from fanin.papers.verdicts import Frames
from fanin.progress import Progress, on_every_core
from fanin.simulation import EVENTS, STATES, toml

if TYPE_CHECKING:
    from fanin._native import Plan, Run, Watch

SECONDS_PER_BATCH = 4.0
"""About this much work is one piece: it is what an interruption loses, and what the end of a run waits for."""

KEEP_DAYS = 14
"""Results of an engine that nobody used for so long are thrown away."""


@dataclass(frozen=True, slots=True)
class Batch:
    """One combination of an experiment's points, over some seeds."""

    experiment: Experiment
    points: tuple[Point, ...]
    seeds: tuple[int, ...]
    reduce: Callable[[dict[str, pl.DataFrame]], dict[str, pl.DataFrame]] | None

    @property
    def cost(self) -> float:
        """Seconds, roughly."""
        cost = self.experiment.cost * len(self.seeds)
        for point in self.points:
            cost *= point.cost
        return cost

    @property
    def cc(self) -> str | None:
        """The algorithm that is run."""
        return self.points[-1].cc

    def settings(self) -> dict[str, str]:
        """What is changed in the scenario."""
        return {key: toml(value) for point in self.points for key, value in point.settings.items()}

    def key(self) -> str:
        """Names what it gives: the scenario without its comments, every change, the seeds, and what is kept."""
        text = self.experiment.scenario.read_text(encoding="utf-8")
        table = tomllib.loads(text)
        # As a tree: how it is laid out and commented does not matter.
        reduce = ast.dump(ast.parse(inspect.getsource(self.reduce))) if self.reduce else ""
        said = [table, self.cc, sorted(self.settings().items()), self.seeds, self.experiment.frames, reduce]
        digest = hashlib.sha256(json.dumps(said, sort_keys=True, default=str).encode())
        for file in _files_named_in(table, self.experiment.scenario.parent):
            digest.update(file.read_bytes())
        return digest.hexdigest()[:32]


def batches(paper: Paper, experiment: Experiment, *, quick: bool) -> list[Batch]:
    """Everything of an experiment, in pieces of about the same length."""
    seeds = range(1, (experiment.quick if quick else experiment.seeds) + 1)
    axes = [[p for p in axis.points if p.quick or not quick] for axis in experiment.axes]
    reduce = (
        getattr(importlib.import_module(f"fanin.papers.{paper.name}"), experiment.reduce) if experiment.reduce else None
    )
    found = []
    for points in itertools.product(*axes):
        one = Batch(experiment, points, (1,), reduce)
        size = max(1, round(SECONDS_PER_BATCH / max(one.cost, 1e-6)))
        for first in range(0, len(seeds), size):
            found.append(Batch(experiment, points, tuple(seeds[first : first + size]), reduce))
    return found


def command_of(batch: Batch, folder: Path) -> str:
    """The command that runs the first of a batch's simulations alone."""
    words = ["fanin", "run", str(folder / batch.experiment.scenario.name)]
    if batch.cc:
        words += ["--cc", batch.cc]
    for key, value in batch.settings().items():
        words += ["--set", f"{key}={value}"]
    return shlex.join([*words, "--seed", str(batch.seeds[0])])


def run_all(
    work: Sequence[Batch], progress: Callable[[str, int], Progress], *, fresh: bool = False
) -> tuple[list[Frames | FaninError | None], bool]:
    """Run batches, or find them where they were kept.

    Returns
    -------
    list
        For each batch its frames, the error that ended it, or None when somebody interrupted first.
    bool
        False when somebody interrupted.
    """
    store = Store()
    # Taken once, before anything runs: somebody may edit a scenario meanwhile.
    keys = [batch.key() for batch in work]
    done: list[Frames | FaninError | None] = [None if fresh else store.get(key) for key in keys]
    left = sorted((i for i, found in enumerate(done) if found is None), key=lambda i: -work[i].cost)
    total = sum(work[i].cost for i in left)

    def job(batch: Batch, key: str) -> Callable[[Watch], Frames]:
        def simulate(watch: Watch) -> Frames:
            frames = run(batch, watch)
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
        whole = on_every_core(
            [weighted.track(n, job(work[i], keys[i])) for n, i in enumerate(left)], weighted, finished
        )
    return done, whole


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


def run(batch: Batch, watch: Watch) -> dict[str, pl.DataFrame]:
    """Simulate one batch on this thread; other threads go on meanwhile."""
    scenario = _native.Scenario.from_file(batch.experiment.scenario).changed(
        batch.cc, None, list(batch.settings().items())
    )
    parts: dict[str, list[pl.DataFrame]] = {name: [] for name in batch.experiment.frames}
    for seed in batch.seeds:
        plan = scenario.plan(seed)
        results = plan.run(watch)
        for name in parts:
            parts[name].append(_raw(name, results, plan, seed))
    made = {name: _in_ms(name, pl.concat(rows)) for name, rows in parts.items()}
    if batch.reduce:
        made = batch.reduce(made)
    labels = [
        pl.lit(point.label).alias(axis.name) for axis, point in zip(batch.experiment.axes, batch.points, strict=True)
    ]
    return {name: rows.select(*labels, pl.all()) for name, rows in made.items()}


def _raw(name: str, results: Run, plan: Plan, seed: int) -> pl.DataFrame:
    if name == "runs":
        rows = pl.DataFrame(
            {"end_ps": [results.end_ps], "complete": [results.complete], "packet_hops": [results.packet_hops]}
        )
    else:
        rows = frame(getattr(results, name)())
    number = {"messages": "message", "flows": "flow"}.get(name)
    if number:
        rows = rows.with_row_index(number)
    if name == "ports":
        rows = rows.with_columns(utilisation=pl.col("busy_ps") / max(results.end_ps, 1))
    if name in ("queue", "packets"):
        rows = rows.with_columns(pl.col("port").replace_strict(dict(enumerate(plan.ports)), return_dtype=pl.String))
    return rows.select(pl.lit(seed).cast(pl.Int64).alias("seed"), pl.all())


def _in_ms(name: str, rows: pl.DataFrame) -> pl.DataFrame:
    """Picoseconds as milliseconds, codes as words, and what follows from the columns."""
    if name == "messages":
        rows = rows.with_columns(completion_ms=(pl.col("done_ps") - pl.col("release_ps")) / 1e9)
    if name == "flows":
        busy = pl.col("last_delivery_ps").cast(pl.Float64) - pl.col("first_send_ps")
        rows = rows.with_columns(goodput_bps=pl.when(busy > 0).then(pl.col("bytes_delivered") * 8e12 / busy))
    for column, words in (("state", STATES), ("event", EVENTS)):
        if column in rows.columns:
            rows = rows.with_columns(pl.col(column).replace_strict(dict(enumerate(words)), return_dtype=pl.String))
    times = [c for c in rows.columns if c.endswith("_ps")]
    return rows.with_columns(**{f"{c.removesuffix('_ps')}_ms": pl.col(c) / 1e9 for c in times}).drop(times)


def gather(done: Sequence[Frames]) -> Frames:
    """One frame per name from the batches of one experiment."""
    names = done[0].keys()
    return {name: pl.concat([frames[name] for frames in done], how="vertical_relaxed") for name in names}


# ---- what was run before


class Store:
    """Results on disk by what they are results of; each engine has its own, since a changed engine may change any number."""

    def __init__(self) -> None:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fanin" / "reproduce"
        self._folder = base / engine_digest()
        self._usable = True
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            os.utime(self._folder)
        except OSError:
            # Without a cache everything works, only not twice as fast.
            self._usable = False
            return
        for other in base.iterdir():
            with contextlib.suppress(OSError):
                if time.time() - other.stat().st_mtime > KEEP_DAYS * 86400:
                    shutil.rmtree(other)

    def get(self, key: str) -> Frames | None:
        """What was kept under this key; None if nothing, or if it is damaged."""
        folder = self._folder / key
        if not folder.is_dir():
            return None
        try:
            return {file.stem: pl.read_parquet(file) for file in sorted(folder.iterdir())}
        except (OSError, pl.exceptions.PolarsError):
            return None

    def put(self, key: str, frames: Frames) -> None:
        """Keep it, whole or not at all."""
        if not self._usable:
            return
        try:
            scratch = Path(tempfile.mkdtemp(prefix=".new-", dir=self._folder))
        except OSError:
            return
        try:
            for name, rows in frames.items():
                rows.write_parquet(scratch / f"{name}.parquet")
            target = self._folder / key
            if target.is_dir():
                shutil.rmtree(target)
            scratch.rename(target)
        except OSError:
            # A full disk costs the next run time, not this one its results.
            shutil.rmtree(scratch, ignore_errors=True)


@cache
def engine_digest() -> str:
    """Names the engine that is loaded."""
    return hashlib.sha256(Path(str(_native.__file__)).read_bytes()).hexdigest()[:16]


def _files_named_in(thing: Any, folder: Path) -> list[Path]:
    """Files that a scenario names by a relative path."""
    if isinstance(thing, dict):
        return [file for value in thing.values() for file in _files_named_in(value, folder)]
    if isinstance(thing, list):
        return [file for value in thing for file in _files_named_in(value, folder)]
    if (isinstance(thing, str) and "/" in thing) or (isinstance(thing, str) and thing.endswith(".csv")):
        return [folder / thing] if (folder / thing).is_file() else []
    return []
