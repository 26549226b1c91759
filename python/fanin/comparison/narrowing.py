"""The runs of a comparison on one rack: all at once, or in portions after which candidates come and go."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from fanin.comparison.candidates import Choice, listed, paired, rto_floors_ms, with_candidates
from fanin.comparison.outcomes import outcomes
from fanin.comparison.replays import Outcome, run_all
from fanin.decision.running import CHECKS, running, still_promising

if TYPE_CHECKING:
    from fanin.decision import Outcome as Judgeable
    from fanin.decision.judge import Goal
    from fanin.process.progress import Progress
    from fanin.runs.replay import ReplayJob
    from fanin.runs.store import Store
    from fanin.statistics.ranking import RankOf

MOST_TIMES = 3
"""Up to so many times the runs are made where they decide nothing: a service that loses a request in a thousand to a timeout shows it in few of ten."""


@dataclass(frozen=True, slots=True)
class Runs:
    """How candidates are run on one rack.

    Attributes
    ----------
    base : ReplayJob
        Rack, traffic and engine.
    seeds : sequence of int
        Of each candidate.
    traced : int or None
        The seed whose queue and windows are kept.
    captures : tuple or None
        The folder for pcap files of the traced runs, and of what.
    progress : callable
        Makes the display.
    label : str
        Its title.
    store : Store or None
        Where results are looked up and kept.
    """

    base: ReplayJob
    seeds: Sequence[int]
    traced: int | None
    captures: tuple[Path, Sequence[str]] | None
    progress: Callable[[str, int], Progress]
    label: str
    store: Store | None

    def of(self, choice: Choice) -> Outcome:
        """Every candidate under every seed."""
        return self._run(choice, choice.names, self.seeds)

    def narrowed(
        self, choice: Choice, of: RankOf, goal: Goal | None, measured: Mapping[str, float]
    ) -> tuple[Outcome, Choice, list[str]]:
        """The runs in portions, what was run, and what is said of that.

        After the first portion the best other TCPs are tried with a host setting too (:func:`fanin.comparison.candidates.paired`); after each a
        candidate that can no longer be advised is not run further (:func:`fanin.decision.running`). Where all of them decide nothing, though something
        gains as far as they show, there are more.
        """
        first, *later = self._portions()
        outcome = self._run(choice, choice.names, first)
        if later and not outcome.interrupted:
            so_far, runs = _so_far(self.base, outcome, choice, of, goal), outcome.frame("runs")
            waits = set(runs.filter(pl.col("timeouts") > 0)["cc"])
            pairs = paired(choice, self.base, so_far, waits, len(self.seeds), goal)
            choice = with_candidates(choice, pairs)
            outcome = self._more(outcome, choice, [pair.label for pair in pairs], first)
        able = left = [name for name in choice.names if any(key[0] == name for key in outcome.frames)]
        for number, portion in enumerate(later, start=1):
            if outcome.interrupted:
                break
            so_far = _so_far(self.base, outcome, choice.only(left), of, goal)
            left = _still_running(so_far, choice, left, goal, measured, len(self.seeds))
            outcome = self._more(outcome, choice, left, portion)
            if outcome.interrupted:
                unbegun = [(name, seed) for other in later[number:] for seed in other for name in left]
                outcome = replace(outcome, missing=[*outcome.missing, *unbegun])
        if later:
            outcome, left = self._longer(outcome, choice, left, of, goal, measured)
        return outcome, choice, _not_run_further(able, left)

    def _longer(
        self,
        outcome: Outcome,
        choice: Choice,
        left: list[str],
        of: RankOf,
        goal: Goal | None,
        measured: Mapping[str, float],
    ) -> tuple[Outcome, list[str]]:
        """The runs, and more of them for as long as nothing is decided and something may still gain; what was run to the end."""
        count = len(self.seeds)
        for number in range(1, MOST_TIMES):
            if outcome.interrupted or choice.baseline is None:
                break
            so_far = _so_far(self.base, outcome, choice.only(left), of, goal)
            promising = still_promising(so_far, choice.baseline, goal, measured) if so_far else ()
            if not promising:
                break
            left = [name for name in left if name == choice.baseline or name in promising]
            first = max(self.seeds) + 1 + (number - 1) * count
            outcome = self._more(outcome, choice, left, range(first, first + count))
        return outcome, left

    def _run(self, choice: Choice, names: list[str], seeds: Sequence[int]) -> Outcome:
        captures = self.captures if self.traced in seeds else None
        ways = choice.ways()
        return run_all(
            self.base, names, list(seeds), self.traced, captures, self.progress, self.label, self.store, ways
        )

    def _more(self, outcome: Outcome, choice: Choice, names: list[str], seeds: Sequence[int]) -> Outcome:
        """The outcome with these runs as well; after Ctrl-C with those that were made."""
        if not names:
            return outcome
        try:
            return outcome.plus(self._run(choice, names, seeds))
        except KeyboardInterrupt:
            missing = [(name, seed) for seed in seeds for name in names]
            return replace(outcome, interrupted=True, missing=[*outcome.missing, *missing])

    def _portions(self) -> list[list[int]]:
        """The seeds in portions, the traced one in the first; one portion where more would save little."""
        seeds = self.seeds
        if len(seeds) < 2 * CHECKS[-1]:
            return [list(seeds)]
        # Stable: the others stay in their order.
        ordered = sorted(seeds, key=lambda seed: seed != self.traced)
        ends = [0, *CHECKS, len(seeds)]
        return [sorted(ordered[begin:end]) for begin, end in itertools.pairwise(ends)]


def _so_far(base: ReplayJob, outcome: Outcome, choice: Choice, of: RankOf, goal: Goal | None) -> tuple[Judgeable, ...]:
    """What the runs of the candidates gave; nothing where the current setting has none."""
    if choice.baseline is None or not any(name == choice.baseline for name, _ in outcome.frames):
        return ()
    responses = outcome.frame("responses")
    # What one connection loses is judged by all runs, not by a few.
    needed = responses if goal == "fairness" else responses.clear()
    candidates = {name: way for name, way in choice.ways().items() if name in choice.candidates}
    return outcomes(outcome.frame("runs"), needed, candidates, choice.baseline, of, goal, timer_ms=rto_floors_ms(base))


def _still_running(
    so_far: Sequence[Judgeable],
    choice: Choice,
    left: list[str],
    goal: Goal | None,
    measured: Mapping[str, float],
    runs: int,
) -> list[str]:
    """The current setting, and what can still be advised instead of it; everything where nothing is known of the current one."""
    if not so_far or choice.baseline is None:
        return left
    open_yet = {choice.baseline, *running(so_far, choice.baseline, goal, measured, runs)}
    return [name for name in left if name in open_yet]


def _not_run_further(able: Sequence[str], left: Sequence[str]) -> list[str]:
    """What is said of candidates that were run less often than others."""
    dropped = [name for name in able if name not in left]
    if not dropped:
        return []
    return [
        f"after a part of the runs {len(dropped)} of {len(able)} candidates could no longer be advised, and were not run further: {listed(dropped)} "
        "(named with --cc they are run to the end)"
    ]
