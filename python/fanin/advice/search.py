"""Successive halving: many candidates on few seeds, the better ones on more.

A run's p99 differs more between candidates than between seeds for most of them, so that few seeds rule most out (Jamieson and Talwalkar,
"Non-stochastic Best Arm Identification and Hyperparameter Optimization", 2016). It begins with one knob turned at a time; those that go on bring
their neighbours, which have one knob more turned, the best one's first, and at the end what differs from the best few in one knob is tried, so that
a product of knobs need not be run as a whole. The space is a small table of values, not a continuum that a model would have to be fitted to: that is
why no optimisation library is used.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import polars as pl

from fanin.comparison.replays import MeasuredReplay
from fanin.errors import AlgorithmError, EngineError, Interrupted, ScenarioError
from fanin.process.progress import cores
from fanin.runs.executor import Executor
from fanin.runs.kept import run_kept
from fanin.runs.replay import ReplayJob, beside_each_other, rack_of
from fanin.runs.tables import Frames
from fanin.settings import Candidate, Space
from fanin.statistics.ranking import COUNTED, RankBy, RankOf, column

if TYPE_CHECKING:
    from fanin.process.progress import Progress
    from fanin.runs.store import Store

RUNGS = (2, 4, 8)
"""Seeds of each round."""

LAST, LAST_SEEDS = 8, 24
"""So many of the best are put in order on more seeds, before the best of them are judged."""

KEEP = 3
"""One in so many goes on to the next round, and at least so many."""

GOALS = ("mean", "p50", "p95", "p99", "p99_9", "fairness", "goodput")
"""What can be asked for in place of body and tail."""

BOTH = "both"
"""Body and tail: the geometric mean of the mean and p99."""

TAILS: tuple[RankBy, ...] = ("p50", "p95", "p99", "p99_9")
"""Goals that are percentiles."""


def first(count: int) -> range:
    """So many seeds of the search: none that a candidate is judged on, so that luck in the search is not taken for merit.

    Examples
    --------
    >>> first(2)
    range(1001, 1003)
    """
    return range(1001, 1001 + count)


@dataclass(frozen=True, slots=True)
class Score:
    """What one run of a candidate gave.

    Attributes
    ----------
    goals : dict
        Value by goal; None where a percentile fell on an unfinished response.
    timeouts, retransmissions, hops : int
        Counts; of packets, one for each port that they passed.
    servers : dict
        Sum over the connections of each server of their mean completion times in milliseconds; None where a response was unfinished. Not the
        connections themselves: a search keeps the scores of some thousand runs.
    """

    goals: dict[str, float | None]
    timeouts: int
    retransmissions: int
    hops: int
    servers: dict[str, float | None]

    def cost(self, goal: str) -> float:
        """Less is better, whatever the goal."""
        value = self.goals[goal]
        if value is None:
            return math.inf
        return -value if goal in ("fairness", "goodput") else value


def scored(frames: Frames, of: RankOf) -> Score:
    """The score of a run; times are those of request trees, rounds or responses."""
    row = frames["runs"].row(0, named=True)
    responses = frames["responses"]
    each = responses.group_by("connection", "server", maintain_order=True).agg(
        pl.col("completion_ms").sum().alias("spent"),
        pl.col("completion_ms").mean().alias("mean"),
        pl.col("completion_ms").null_count().alias("unfinished"),
        pl.col("bytes").sum(),
    )
    mean = row[column("mean", of)] if not row[COUNTED[of][1]] else None
    p99 = row[column("p99", of)]
    rates = [b / s for b, s in each.select("bytes", "spent").rows() if s and s > 0]
    squares = math.fsum(r * r for r in rates)
    return Score(
        goals={
            **{name: row[column(name, of)] for name in TAILS},
            "mean": mean,
            BOTH: math.sqrt(mean * p99) if mean is not None and p99 is not None else None,
            # Jain's index over the connections' bytes per time spent in responses.
            "fairness": math.fsum(rates) ** 2 / (len(rates) * squares) if squares else None,
            "goodput": row["goodput_bps"],
        },
        timeouts=row["timeouts"],
        retransmissions=row["retransmissions"],
        hops=row["packet_hops"],
        servers={
            server: None if unfinished else spent
            for server, spent, unfinished in each.group_by("server", maintain_order=True)
            .agg(pl.col("mean").sum(), pl.col("unfinished").sum())
            .rows()
        },
    )


class SearchInterruptedError(Interrupted):
    """A search was stopped on request; `runs` of its runs are in the store.

    Parameters
    ----------
    runs : int
        How many.
    """

    def __init__(self, runs: int) -> None:
        super().__init__(f"the search was stopped after {runs} runs")
        self.runs = runs


class Evaluator:
    """Runs candidates and remembers what they gave, by the times of request trees, rounds or responses (`of_what`)."""

    def __init__(
        self,
        base: ReplayJob,
        executor: Executor | None,
        progress: Callable[[str, int], Progress],
        store: Store | None = None,
        of: RankOf = "responses",
    ) -> None:
        self.base = base
        self.of_what = of
        self.failed: dict[Candidate, str] = {}
        self.runs = self.ran = 0
        self.executor = executor
        self.progress = progress
        self.store = store
        self.known: dict[tuple[Candidate, int], Score] = {}
        """By candidate and seed."""

    def scores(self, candidates: Sequence[Candidate], seeds: Sequence[int], title: str) -> None:
        """See to it that every candidate that runs has a score for each seed."""
        wanted = []
        for seed in seeds:
            for candidate in candidates:
                if (candidate, seed) in self.known or candidate in self.failed:
                    continue
                try:
                    job = self.job(candidate, seed)
                    rack_of(job.rack, job.settings)
                    wanted.append(((candidate, seed), job))
                except (ScenarioError, AlgorithmError) as error:
                    self.failed[candidate] = str(error)

        def finished(number: int, outcome: Frames | BaseException) -> None:
            which = wanted[number][0]
            if isinstance(outcome, ScenarioError | AlgorithmError | EngineError):
                self.failed[which[0]] = str(outcome)
            elif isinstance(outcome, BaseException):
                raise outcome
            else:
                self.known[which] = scored(outcome, self.of_what)

        if wanted:
            self._run([job for _, job in wanted], finished, title)

    def _run(
        self, jobs: Sequence[ReplayJob], finished: Callable[[int, Frames | BaseException], None], title: str
    ) -> None:
        """Run jobs, except what the store has."""
        measured = [MeasuredReplay(job) for job in jobs]
        done: list[bool] = []

        def counted(number: int, outcome: Frames | BaseException) -> None:
            done.append(not isinstance(outcome, BaseException))
            finished(number, outcome)

        found, whole = run_kept(
            measured,
            counted,
            store=self.store,
            progress=self.progress,
            title=title,
            executor=self.executor or beside_each_other(self.base),
            durable=self.base.engine != "sim",
        )
        if not whole:
            raise SearchInterruptedError(self.runs + sum(done)) if self.store is not None else KeyboardInterrupt
        self.runs += len(jobs)
        self.ran += len(jobs) - found

    def elsewhere(self, base: ReplayJob) -> Evaluator:
        """The same of another replay: on another engine, or of other traffic."""
        return Evaluator(base, self.executor, self.progress, self.store, self.of_what)

    def job(self, candidate: Candidate, seed: int) -> ReplayJob:
        """The replay under a candidate."""
        return replace(self.base, cc=candidate.cc, seed=seed, settings=(*self.base.settings, *candidate.settings))

    def scores_of(self, jobs: Sequence[ReplayJob], title: str) -> list[Score]:
        """Scores of jobs that are no candidate's. An error or an interrupt of one ends all."""
        found: dict[int, Score] = {}

        def finished(number: int, outcome: Frames | BaseException) -> None:
            if isinstance(outcome, BaseException):
                raise outcome
            found[number] = scored(outcome, self.of_what)

        self._run(jobs, finished, title)
        return [found[number] for number in range(len(jobs))]

    def of(self, candidate: Candidate, seeds: Sequence[int]) -> list[Score]:
        """Scores in the order of the seeds."""
        return [self.known[candidate, seed] for seed in seeds]

    def cost(self, candidate: Candidate, seeds: Sequence[int], goal: str) -> float:
        """Mean over the seeds; less is better."""
        return math.fsum(score.cost(goal) for score in self.of(candidate, seeds)) / len(seeds)


def halving(evaluator: Evaluator, space: Space, today: Candidate, goal: str, *, runs: int) -> list[Candidate]:
    """The best few candidates, best first.

    Parameters
    ----------
    evaluator : Evaluator
        Runs them.
    space : Space
        What to choose from.
    today : Candidate
        What hosts run: it goes through every round.
    goal : str
        One of :data:`GOALS`, or :data:`BOTH`.
    runs : int
        About so many simulations: each round may take an equal part of those that are left, and at least :data:`KEEP` candidates.
    """
    # Equally good ones: what changes less first, then the order of the space.
    left = sorted(space.simplest(), key=lambda c: c.changes)
    tried: dict[Candidate, None] = {}
    before = 0
    for number, count in enumerate(RUNGS, 1):
        seeds = first(count)
        room = (runs - evaluator.runs) // (len(RUNGS) - number + 1)
        fitting: list[Candidate] = [today]
        for candidate in left:
            room -= count - before if candidate in tried else count
            if room < 0 and len(fitting) > KEEP:
                break
            fitting.append(candidate)
        left = list(dict.fromkeys(fitting))
        tried |= dict.fromkeys(left)
        evaluator.scores(left, seeds, f"round {number} of {len(RUNGS)}: {len(left)} candidates")
        left = [candidate for candidate in left if candidate not in evaluator.failed]
        left.sort(key=lambda c: (evaluator.cost(c, seeds, goal), c.changes))
        before = count
        if number < len(RUNGS):
            # Where the goal cannot decide, the tail does: its best go on too.
            tail = sorted(left, key=lambda c: (evaluator.cost(c, seeds, "p99_9"), c.changes))[:KEEP]
            left = list(dict.fromkeys([*left[: max(KEEP, math.ceil(len(left) / KEEP))], *tail]))
            grown = [n for c in left for n in space.neighbours(c)]  # as many as there is room for
            left = list(dict.fromkeys([*left, *(n for n in grown if n not in tried)]))
    return _around(evaluator, space, left, tried, goal, runs)


def _around(
    evaluator: Evaluator, space: Space, left: list[Candidate], tried: dict[Candidate, None], goal: str, runs: int
) -> list[Candidate]:
    """The same with what differs from the best few in one knob, on all the seeds: what the best K is depends on the RTO floor beside it."""
    seeds = first(RUNGS[-1])
    near = [n for c in left[:KEEP] for n in (*space.siblings(c), *space.neighbours(c))]
    near = [n for n in dict.fromkeys(near) if n not in tried][: max(0, runs - evaluator.runs) // len(seeds)]
    if near:
        evaluator.scores(near, seeds, f"around the best: {len(near)} candidates")
    found = [c for c in (*left, *near) if c not in evaluator.failed]
    found.sort(key=lambda c: (evaluator.cost(c, seeds, goal), c.changes))
    return _once_more(evaluator, found, goal, runs)


def _once_more(evaluator: Evaluator, ranked: list[Candidate], goal: str, runs: int) -> list[Candidate]:
    """The same with the best few in the order of more seeds: on eight, luck is worth some per cent of a p99."""
    more = first(LAST_SEEDS)
    room = max(0, runs - evaluator.runs) // (LAST_SEEDS - RUNGS[-1])
    best = ranked[: min(LAST, room)]
    if len(best) < 2:
        return ranked
    evaluator.scores(best, more, f"the best {len(best)} on {LAST_SEEDS} seeds")
    whole = [c for c in best if c not in evaluator.failed]
    whole.sort(key=lambda c: (evaluator.cost(c, more, goal), c.changes))
    return whole + ranked[len(best) :]


def runs_within(seconds: float, base: ReplayJob) -> int:
    """About how many simulations this machine does in that time, by one that is run now. A count, not a clock, then decides the search."""
    began = time.perf_counter()
    MeasuredReplay(base).run()
    each = max(time.perf_counter() - began, 1e-3)
    return max(1, int(seconds * cores() / each))
