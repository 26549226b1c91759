"""From a capture to one sentence that can be acted on: a comparison that a search has given more candidates."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fanin.advice.busy import TwiceTheLoad, search_doubled
from fanin.advice.consequences import coexistence, hurts, other_racks
from fanin.advice.search import BOTH, GOALS, RUNGS, Evaluator, first, halving, runs_within
from fanin.comparison import SEEDS, compare
from fanin.comparison.candidates import Choice, Unmarked, deployable, space_of, table_of
from fanin.decision import Goal
from fanin.disk.files import shown
from fanin.errors import ScenarioError
from fanin.process.progress import Progress, silent
from fanin.runs.executor import Executor
from fanin.runs.kept import usual_store
from fanin.runs.replay import ReplayJob
from fanin.settings import Candidate, Space
from fanin.statistics.ranking import RankOf
from fanin.statistics.seeds import Paired, estimate
from fanin.words.verdict import GOAL_NAMES

if TYPE_CHECKING:
    from fanin.comparison import CompareResult
    from fanin.decision import Outcome
    from fanin.settings.lines import Recommendation
    from fanin.words.verdict import Confirmation

FINALISTS = 3
TAIL_FINALISTS = 2
"""Besides the best by the goal, the best by p99.9 are judged, and the best of each kind of change."""

BUSY_SEEDS = range(1, 31)
"""Seeds of the judgement at twice the load."""

BUDGET = 1000
"""Simulations of the search unless said: a minute or less for captures of some ten thousand packets."""


@dataclass(slots=True, repr=False)
class Advice:
    """What to do, and how far to trust it.

    Attributes
    ----------
    kind : {"change", "keep", "undecided", "none"}
        As :attr:`fanin.words.verdict.Verdict.kind`.
    headline : str
        One sentence.
    goal : str
        The statistic at which `best` gains; where nothing changes what was asked for, else the tail.
    today, best : Candidate
        What hosts run, and what is advised; equal when it is to be kept.
    gain : Paired or None
        Ratio of the goal, `best` over `today`, paired by rack and seed with its 95 % interval (of fairness and goodput the inverse); None when
        nothing changes.
    values : dict
        By goal, the mean over the runs of `today` and `best`; None where a run left requests unfinished.
    comparison : CompareResult
        What it rests on.
    rank_of : {"trees", "requests", "stages", "responses"}
        Whose completion times.
    hurts : list of str
        Where it would hurt, a sentence each.
    coexistence : list of str
        What happens while half of the servers are not moved.
    confidence : list of str
        What else one needs before acting on it.
    recommendation : Recommendation or None
        The lines that try it on one host pair and take it back.
    busy : TwiceTheLoad or None
        What becomes of it at twice the load, and what would be best there.
    confirmation : Confirmation or None
        What another engine said, where it was asked.
    tried, runs : int
        Candidates and simulations.
    notes : list of str
        What else a reader should know.
    """

    kind: str
    headline: str
    goal: str
    today: Candidate
    best: Candidate
    gain: Paired | None
    values: dict[str, tuple[float | None, float | None]]
    comparison: CompareResult
    rank_of: RankOf = "responses"
    hurts: list[str] = field(default_factory=list)
    coexistence: list[str] = field(default_factory=list)
    confidence: list[str] = field(default_factory=list)
    recommendation: Recommendation | None = None
    busy: TwiceTheLoad | None = None
    confirmation: Confirmation | None = None
    tried: int = 0
    runs: int = 0
    notes: list[str] = field(default_factory=list)

    def __repr__(self) -> str:
        return f"<Advice for {self.comparison.capture.file}: {self.headline}>"

    def _repr_html_(self) -> str:
        """For notebooks: the advice, what it changes, and the lines that try it and take it back."""
        from fanin.pictures.notebook import card

        rows: list[tuple[object, ...]] = [(GOAL_NAMES[name], *pair) for name, pair in self.values.items()]
        told = [*self.hurts, *self.coexistence, *self.confidence]
        if self.recommendation is not None:
            told += [f"try: {line}" for line in self.recommendation.trial]
            told += [f"on the aggregator: {line}" for line in self.recommendation.at_aggregator]
            told += [f"take it back: {line}" for line in self.recommendation.undo]
            told += [f"on the aggregator: {line}" for line in self.recommendation.undo_at_aggregator]
        return card(self.headline, ["goal", self.today.label, self.best.label], rows) + "".join(
            f"<p>{escape(sentence)}</p>" for sentence in told
        )

    def to_dict(self) -> dict[str, Any]:
        """The object that ``fanin advise --json`` prints."""
        result = self.comparison
        change = self.gain.change if self.gain else None
        return {
            "version": result.version,
            "command": result.command,
            "capture": result.capture.file,
            "fitness": result.capture.fitness.to_dict() if result.capture.fitness else None,
            "rack": result.rack_path,
            "kind": self.kind,
            "headline": self.headline,
            "goal": self.goal,
            "rank_of": self.rank_of,
            "current": {"cc": self.today.cc, "settings": dict(self.today.settings)},
            "best": {"cc": self.best.cc, "settings": dict(self.best.settings)},
            "gain": None if change is None else {**change.to_dict(), "p": self.gain.p if self.gain else None},
            "values": {name: {"current": a, "best": b} for name, (a, b) in self.values.items()},
            "measured": result.measured.to_dict() if result.measured else None,
            "calibration": result.calibration.to_dict() if result.calibration else None,
            "hurts": list(self.hurts),
            "coexistence": list(self.coexistence),
            "confidence": list(self.confidence),
            "recommendation": self.recommendation.to_dict() if self.recommendation else None,
            "twice_the_load": self.busy.to_dict() if self.busy else None,
            "confirmation": self.confirmation.to_dict() if self.confirmation else None,
            "tried": self.tried,
            "runs": self.runs,
            "notes": list(self.notes),
        }


def advise(
    capture: str | Path,
    rack: str | Path | None = None,
    *,
    goal: Goal | None = None,
    rank_of: RankOf | None = None,
    cc: str | Sequence[str] | None = None,
    baseline: str | None = None,
    switch: bool = True,
    budget: int | str = BUDGET,
    confirm: int = 0,
    aggregator: str | None = None,
    settings: Mapping[str, object] | None = None,
    executor: Executor | None = None,
    keep: bool = True,
    tell: Callable[[str], None] = lambda _: None,
    command: str | None = None,
    progress: Callable[[str, int], Progress] = silent,
) -> Advice:
    """Search for the transport and settings that serve a capture's traffic best, and compare what it finds as :func:`fanin.compare` does.

    The racks that reproduce the capture, the seeds and the judgement are the comparison's; the search only adds candidates to it.

    Parameters
    ----------
    capture : path
        pcap or pcapng, plain or gzip.
    rack : path, optional
        The rack (TOML); as the capture speaks for it unless given (:func:`fanin.propose_rack`).
    goal : {"mean", "p50", "p95", "p99", "p99_9", "fairness", "goodput"}, optional
        What is to be best: completion times, Jain's index over connections, or payload per second. Unless given, the mean or the tail is to gain, and
        nothing may get measurably longer (:func:`fanin.decision.decide`).
    rank_of : {"trees", "requests", "stages", "responses"}, optional
        Whose completion times, as :func:`fanin.compare`'s: unless given, what a user of the service waits for, as far as the capture shows it.
    cc : str or sequence of str, optional
        Algorithms; what hosts can run unless given.
    baseline : str, optional
        The congestion control that the hosts run; unless given, what the capture shows, else what is presumed.
    switch : bool
        The switch may change: marking threshold, and the share of a shared buffer that one port may take.
    budget : int or str
        About how many simulations the search may take, or, as ``"60s"``, how long: as many as this machine does in that time, by one that is timed, so
        that the same call may answer otherwise on another machine. The judgement of what it found comes after it.
    confirm : int
        So many of the best, and the current setting, are run again on the engine ``kernel``; its answer is taken.
    aggregator : str, optional
        Address of the host that the responses go to; the likeliest unless given.
    settings : mapping, optional
        Values by key on top of the rack file.
    executor : Executor, optional
        Where the search's runs happen; on every core of this machine unless given.
    keep : bool
        Results are kept in the store, and found there the next time.
    tell : callable, optional
        Told what is about to begin and takes long, with an estimate.
    command : str, optional
        What to state as the command that does the same.
    progress : callable, optional
        Makes the progress display; see :mod:`fanin.process.progress`.

    Returns
    -------
    Advice

    Raises
    ------
    fanin.CaptureError, fanin.ScenarioError, fanin.AlgorithmError
        When the capture, the rack or a name cannot be used.
    """
    if goal is not None and goal not in GOALS:
        raise ScenarioError(f"the goal is {goal!r}; it must be one of {', '.join(GOAL_NAMES.values())}")
    search = _Search(
        goal,
        *parsed_budget(budget),
        algorithms=cc is not None,
        switch=switch,
        executor=executor,
        keep=keep,
        progress=progress,
    )
    result = compare(
        capture,
        rack,
        cc=cc,
        seeds=SEEDS,
        goal=goal,
        baseline=baseline,
        rank_of=rank_of,
        aggregator=aggregator,
        settings=settings,
        confirm=confirm,
        keep=keep,
        tell=tell,
        command=shown(command or f"fanin advise {capture}{'' if rack is None else f' --rack {rack}'}"),
        progress=progress,
        further=search,
    )
    if result.baseline is None:
        raise ScenarioError("the capture does not show which congestion control the hosts run; name it with --baseline")
    advice = _advice(result, search)
    if search.evaluator is not None and search.space is not None:
        _look_around(advice, search, search.evaluator, search.space)
    advice.tried += len(result.ways)
    advice.runs += result.runs.height
    return advice


@dataclass(slots=True)
class _Search:
    """Gives a comparison more candidates: what is best among all that can be set on the likeliest rack."""

    goal: Goal | None
    count: int
    seconds: float | None
    algorithms: bool
    switch: bool
    executor: Executor | None
    keep: bool
    progress: Callable[[str, int], Progress]
    evaluator: Evaluator | None = None
    space: Space | None = None

    @property
    def wanted(self) -> str:
        """What candidates are put in order by."""
        return self.goal or BOTH

    def __call__(self, base: ReplayJob, choice: Choice, of: RankOf) -> Sequence[Candidate]:
        """Search, on the likeliest rack."""
        assert choice.baseline is not None  # a comparison asks only then
        names = list(choice.candidates)
        # Algorithms that need marks are left out of a comparison on a rack that makes none; here the switch may be told to.
        if self.switch and not self.algorithms:
            names = [*deployable(base, choice.baseline), choice.baseline]
        names = [name for name in dict.fromkeys(names) if name not in choice.settings]
        self.evaluator = Evaluator(base, self.executor, self.progress, usual_store() if self.keep else None, of)
        self.space = space_of(base, names, switch=self.switch)
        today = Candidate(choice.baseline)
        if self.seconds is not None:
            self.count = runs_within(self.seconds, replace(base, cc=today.cc, seed=1))
        ranked = halving(self.evaluator, self.space, today, self.wanted, runs=self.count)
        others = [c for c in ranked if c != today]
        evaluator, seeds = self.evaluator, first(RUNGS[-1])
        by_tail = sorted(others, key=lambda c: (evaluator.cost(c, seeds, "p99_9"), c.changes))
        # The judgement prefers the simplest of the nearly best: the best of each kind of change is there to be preferred.
        of_each_kind = {c.cost(today.cc)[0]: c for c in reversed(others)}
        return list(dict.fromkeys([*others[:FINALISTS], *by_tail[:TAIL_FINALISTS], *of_each_kind.values()]))

    def may_mark(self, unmarked: Unmarked) -> bool:
        """These were looked at with a switch that marks."""
        return self.switch and self.space is not None and set(unmarked.names) <= set(self.space.algorithms)


def _advice(result: CompareResult, search: _Search) -> Advice:
    """What the comparison says."""
    told = result.verdict
    today = Candidate(result.baseline or "")
    changes = told.kind == "change" and told.best is not None
    best = result.way(told.best) if changes and told.best is not None else today
    names = {today: result.baseline or "", best: told.best or ""}
    there = result.confirmation
    believed = there.result if there is not None and not there.holds else None
    decision = (believed or result).decision
    judged = decision.of(told.best) if decision is not None and changes and told.best is not None else None
    goal = told.by or search.goal or (decision.by[-1] if decision is not None else "p99")
    every = {outcome.name: outcome for outcome in result.every()}
    values = {
        name: (_mean(every.get(names[today]), name), _mean(every.get(names[best]), name))
        for name in GOALS
        if any(name in run for run in every[names[today]].runs.values())
    }
    advice = Advice(
        told.kind,
        told.headline,
        goal,
        today,
        best,
        judged.change[goal] if judged is not None else None,
        values,
        result,
        result.rank_of,
        confidence=list(told.support),
        recommendation=told.recommendation,
        confirmation=result.confirmation,
        notes=[*told.cautions, *result.notes],
    )
    if judged is not None and names[best] in every:
        advice.hurts = hurts(every[names[best]], every[names[today]], judged)
    return advice


def _mean(outcome: Outcome | None, name: str) -> float | None:
    return None if outcome is None else estimate([values.get(name) for values in outcome.runs.values()]).value


def _look_around(advice: Advice, search: _Search, evaluator: Evaluator, space: Space) -> None:
    """What becomes of it at twice the load, while half of the servers stay as they are, and on a rack that is a little another."""
    busy = search_doubled(
        evaluator, space, advice.today, search.wanted, runs=max(1, search.count // 2), seeds=BUSY_SEEDS
    )
    advice.busy = busy.look(advice.best, advice.goal)
    if advice.busy is not None:
        sure, hurt = busy.sentences(advice.busy, advice.best, advice.goal)
        advice.confidence, advice.hurts = advice.confidence + sure, advice.hurts + hurt
    if advice.best != advice.today:
        evaluator.scores([advice.today, advice.best], BUSY_SEEDS[:4], "beside hosts that stay")
        advice.coexistence = coexistence(evaluator, advice.today, advice.best, BUSY_SEEDS[:4])
        if len(advice.comparison.judged_racks()) == 1:
            advice.confidence += other_racks(
                evaluator, advice.today, advice.best, advice.goal, table_of(evaluator.base), BUSY_SEEDS[:3]
            )
    advice.tried = len({c for of in (evaluator, busy.evaluator) for c, _ in of.known})
    advice.runs = evaluator.runs + busy.evaluator.runs
    if search.seconds is not None:
        advice.notes.append(
            f"{search.seconds:g} s are {search.count} simulations on this machine; `--budget {search.count}` repeats it on any"
        )
    advice.notes += [f"{c.label} cannot run: {why}" for c, why in evaluator.failed.items()]


def parsed_budget(budget: int | str) -> tuple[int, float | None]:
    """A budget as a count of simulations and, where it was said as a time, seconds.

    Examples
    --------
    >>> parsed_budget(500), parsed_budget("500"), parsed_budget("5min")
    ((500, None), (500, None), (0, 300.0))
    """
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*(s|min|h)?", str(budget).strip())
    number = float(found[1]) if found else 0.0
    if found is None or not number > 0 or (found[2] is None and number != int(number)):
        raise ScenarioError(
            f"command line `--budget {budget}`: it must be a number of simulations such as 1000, or a time such as 60s or 5min"
        )
    if found[2] is None:
        return int(number), None
    return 0, number * {"s": 1.0, "min": 60.0, "h": 3600.0}[found[2]]
