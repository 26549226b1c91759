"""From a capture and a rack to one sentence that can be acted on, and what speaks for and against it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from typing import Any

from fanin import _native
from fanin.advice.busy import TwiceTheLoad, search_doubled
from fanin.advice.confirm import confirm as confirm_on
from fanin.advice.consequences import coexistence, hurts, other_racks, stability
from fanin.advice.judge import (
    GOAL_NAMES,
    MORE_IS_BETTER,
    headline_of,
    mean_of,
    measurably_better,
    paired,
    spoken,
    worse,
)
from fanin.advice.search import GOALS, RUNGS, Evaluator, halving, runs_within
from fanin.comparison.candidates import chosen, deployable
from fanin.errors import CaptureError, ScenarioError, suggest
from fanin.files import shown
from fanin.fitness import Fitness
from fanin.measured import seen_baseline
from fanin.progress import Progress, silent
from fanin.rack import in_short, proposed
from fanin.ranking import SIGNIFICANT, RankOf, known, waited_for
from fanin.runs.engines import engine as find_engine
from fanin.runs.executor import Executor, Threads
from fanin.runs.job import Document, RunWarning
from fanin.runs.kept import usual_store
from fanin.runs.replay import ReplayJob, Traffic
from fanin.settings import Candidate, Space, how_to
from fanin.settings.lines import Recommendation
from fanin.simulation import changed
from fanin.stats import Paired
from fanin.traffic import trains
from fanin.verdict import Confirmation

CLOSE, CLOSE_SEEDS = 0.3, range(1011, 1041)
"""Candidates within this share of the best on the judged seeds, and the further seeds that tell them apart."""

CONFIRMING = ("kernel", "kernel-hz1000")
"""Engines that can confirm: those whose TCP is real, and which give the same again."""

JUDGED_SEEDS = range(1001, 1011)
"""Seeds of the last round: none that the search has seen, so that luck in the search is not taken for merit."""

FINALISTS = 3
TAIL_FINALISTS = 2
"""Besides the best by the goal, the best by p99.9 are judged: it decides where the goal cannot."""

MAY_BE = 0.1
"""A gain by this share that the judged seeds cannot tell from chance is looked at on more before today's is kept."""

NEAR = 0.03
"""A candidate that holds at twice the load, or a simpler one, is preferred if its cost is at most so much higher."""

BUDGET = 1000
"""Simulations of the search unless said: a minute or less for captures of some ten thousand packets."""


@dataclass(slots=True, repr=False)
class Advice:
    """What to do, and how far to trust it.

    Attributes
    ----------
    kind : {"change", "tail", "keep"}
        ``tail``: the goal is not measurably different, and p99.9 is better. ``keep``: nothing measurably beats what hosts run today.
    headline : str
        One sentence.
    goal : str
        What decided: what was asked for, or ``p99_9`` where that could not.
    rank_of : {"trees", "rounds", "responses"}
        Whose completion times.
    today, best : Candidate
        What hosts run, and what is advised; equal when it is to be kept.
    gain : Paired or None
        Ratio of the goal, `best` over `today`, paired by seed with its 95% interval; None when nothing changes.
    values : dict
        By goal, the mean over the seeds of `today` and `best`.
    hurts : list of str
        Where it would hurt, a sentence each.
    coexistence : list of str
        What happens while half of the servers are not moved.
    confidence : list of str
        Rank stability over seeds, and over a rack that is a fifth faster, slower, deeper or shallower.
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
    fitness : Fitness or None
        Whether the capture is fit to judge by; always so of an advice that was given.
    """

    kind: str
    headline: str
    goal: str
    today: Candidate
    best: Candidate
    gain: Paired | None
    values: dict[str, tuple[float | None, float | None]]
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
    fitness: Fitness | None = None
    capture: str = ""
    rack: str = ""
    command: str = ""

    def __repr__(self) -> str:
        return f"<Advice for {self.capture}: {self.headline}>"

    def _repr_html_(self) -> str:
        """For notebooks: the advice, what it changes, and the lines that try it and take it back."""
        from fanin.notebook import card

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
        change = self.gain.change if self.gain else None
        return {
            "version": _native.VERSION,
            "command": self.command,
            "capture": self.capture,
            "fitness": self.fitness.to_dict() if self.fitness else None,
            "rack": self.rack,
            "kind": self.kind,
            "headline": self.headline,
            "goal": self.goal,
            "rank_of": self.rank_of,
            "today": {"cc": self.today.cc, "settings": dict(self.today.settings)},
            "best": {"cc": self.best.cc, "settings": dict(self.best.settings)},
            "gain": None if change is None else {**change.to_dict(), "p": self.gain.p if self.gain else None},
            "values": {name: {"today": a, "best": b} for name, (a, b) in self.values.items()},
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
    goal: str = "p99",
    rank_of: RankOf | None = None,
    cc: str | Sequence[str] | None = None,
    baseline: str | None = None,
    switch: bool = True,
    budget: int | str = BUDGET,
    confirm: str | None = None,
    aggregator: str | None = None,
    settings: Mapping[str, object] | None = None,
    executor: Executor | None = None,
    keep: bool = True,
    tell: Callable[[str], None] = lambda _: None,
    command: str | None = None,
    progress: Callable[[str, int], Progress] = silent,
) -> Advice:
    """Search for the transport and settings that serve a capture's traffic best on a rack.

    Parameters
    ----------
    capture : path
        pcap or pcapng, plain or gzip.
    rack : path, optional
        The rack (TOML); as the capture speaks for it unless given (:func:`fanin.propose_rack`).
    goal : {"p99", "p99_9", "mean", "fairness", "goodput"}
        What is to be best: completion times, Jain's index over connections, or payload per second.
    rank_of : {"trees", "rounds", "responses"}, optional
        Whose completion times, as :func:`fanin.compare`'s: unless given, what a user of the service waits for, as far as the capture shows it.
    cc : str or sequence of str, optional
        Algorithms; what hosts can run unless given.
    baseline : str, optional
        What the hosts run today; unless given, what the capture shows, else what is presumed.
    switch : bool
        The switch may change: marking threshold, and the share of a shared buffer that one port may take.
    budget : int or str
        About how many simulations the search may take, or, as ``"60s"``, how long: as many as this machine does in that time, by one that is timed, so
        that the same call may answer otherwise on another machine. The judgement of what it found comes after it.
    confirm : str, optional
        An engine, ``kernel`` or ``kernel-hz1000``, that what is advised is run on again beside what hosts run today; it is believed.
    aggregator : str, optional
        Address of the host that the responses go to; the likeliest unless given.
    settings : mapping, optional
        Values by key on top of the rack file.
    executor : Executor, optional
        Where runs happen; on every core of this machine unless given.
    keep : bool
        Results are kept in the store, and found there the next time.
    tell : callable, optional
        Told what is about to begin and takes long, with an estimate.
    command : str, optional
        What to state as the command that does the same.
    progress : callable, optional
        Makes the progress display; see :mod:`fanin.progress`.

    Returns
    -------
    Advice

    Raises
    ------
    fanin.CaptureError, fanin.ScenarioError, fanin.AlgorithmError
        When the capture, the rack or a name cannot be used.
    """
    if goal not in GOALS:
        raise ScenarioError(f"the goal is {goal!r}; it must be one of {', '.join(GOAL_NAMES.values())}")
    if confirm is not None:
        if confirm not in CONFIRMING:
            raise ScenarioError(f"command line `--confirm {confirm}`: {suggest(confirm, CONFIRMING)}")
        find_engine(confirm)  # raises when it is not built, before anything takes long
    known(rank_of)
    count, seconds = parsed_budget(budget)
    common = changed(settings)
    if rack is not None:
        _native.Rack.from_file(rack, common)
    # As the file says: a change may say what is to become of the rack.
    found = trains(capture, rack=rack, progress=progress)
    if not found.fitness.fit:
        raise CaptureError(f"{capture}: no advice yet: the capture is {found.fitness.sentence}")
    replay = found.workload(aggregator)
    of = waited_for(replay, rank_of)
    proposal = None
    if rack is None:
        proposal = proposed(found, replay.aggregator, f"fanin rack {shown(str(capture))}")
    document = Document(proposal.text, "rack.toml", "") if proposal is not None else Document.of_rack(str(rack))
    table = document.table()
    for key, value in common:
        section, _, name = key.partition(".")
        table.setdefault(section, {})[name] = value
    shown_today = seen_baseline(found, replay.aggregator) if baseline is None else None
    job = ReplayJob(document, Traffic(replay), "", 0, tuple(common))
    choice = chosen(cc, baseline, job, shown_today.cc if shown_today else None)
    if choice.baseline is None:
        raise ScenarioError("it is not known what the hosts run today; say it with --baseline")
    # Algorithms that need marks are left out of a comparison on a rack that makes none; here the switch may be told to.
    names = list(choice.names)
    if switch and cc is None:
        names = list(dict.fromkeys([*deployable(job, choice.baseline), choice.baseline]))
    if replay.responses == 0:
        raise CaptureError(
            f"{capture}: no response with payload goes to {replay.aggregator}; name another host with --aggregator"
        )

    evaluator = Evaluator(job, executor or Threads(), progress, usual_store() if keep else None, of)
    today = Candidate(choice.baseline)
    space = Space(names, table, switch=switch)
    if seconds is not None:
        count = runs_within(seconds, replace(job, cc=today.cc, seed=1))
    ranked = halving(evaluator, space, today, goal, runs=count)
    searched = evaluator.runs
    others = [c for c in ranked if c != today]
    by_tail = sorted(others, key=lambda c: (evaluator.cost(c, range(1, RUNGS[-1] + 1), "p99_9"), c.changes))
    finalists = list(dict.fromkeys([*others[:FINALISTS], *by_tail[:TAIL_FINALISTS]]))
    evaluator.scores([today, *finalists], JUDGED_SEEDS, "judging on fresh seeds")
    finalists = [c for c in finalists if c not in evaluator.failed]
    busy = search_doubled(evaluator, space, today, goal, runs=max(1, count // 2), seeds=[*JUDGED_SEEDS, *CLOSE_SEEDS])
    advice = decided(evaluator, today, finalists, goal, busy.prefer)
    if confirm is not None:
        confirm_on(advice, evaluator, finalists, list(JUDGED_SEEDS), confirm, tell)
    advice.busy = busy.look(advice.best, advice.goal)
    if advice.busy is not None:
        sure, hurt = busy.sentences(advice.busy, advice.best, advice.goal)
        advice.confidence, advice.hurts = advice.confidence + sure, advice.hurts + hurt
    advice.tried = len({c for of in (evaluator, busy.evaluator) for c, _ in of.known})
    if seconds is not None:
        advice.notes.append(
            f"{seconds:g} s are {count} simulations on this machine, of which the search took {searched}; `--budget {count}` repeats it on any"
        )
    advice.fitness = found.fitness
    advice.capture, advice.rack = shown(str(capture)), shown(str(rack or "rack.toml"))
    advice.command = shown(command or f"fanin advise {capture}{'' if rack is None else f' --rack {rack}'}")
    if proposal is not None:
        advice.notes.append(
            f"the rack was proposed from the capture ({in_short(proposal)}): `fanin rack {shown(str(capture))} --out rack.toml`, correct it, and ask again "
            "with --rack"
        )
        advice.notes += [str(remark) for remark in proposal.remarks if isinstance(remark, RunWarning)]
    if baseline is None:
        seen = shown_today is not None and shown_today.cc == today.cc
        how = f"run {today.cc}: {shown_today.why}" if seen and shown_today else f"are presumed to run {today.cc}"
        advice.notes.append(f"the hosts {how} (another: --baseline)")
    advice.notes += [f"{c.label} cannot run: {why}" for c, why in evaluator.failed.items()]
    if advice.kind != "keep":
        advice.recommendation = how_to(
            advice.best, aggregator=replay.aggregator, now=today.cc, rack=table.get("rack", {}), servers=replay.servers
        )
        advice.coexistence = coexistence(evaluator, today, advice.best, JUDGED_SEEDS[:4])
        advice.confidence += other_racks(evaluator, today, advice.best, advice.goal, table, JUDGED_SEEDS[:3])
    advice.runs = evaluator.runs + busy.evaluator.runs
    return advice


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


Preference = Callable[[Sequence[Candidate], str, float], list[Candidate]]
"""Of candidates that are equally good by a goal, those to prefer, and what is near to the best of them."""


def as_they_are(equal: Sequence[Candidate], goal: str, near: float) -> list[Candidate]:
    """Prefer none."""
    return list(equal)


def decided(
    evaluator: Evaluator,
    today: Candidate,
    finalists: Sequence[Candidate],
    goal: str,
    prefer: Preference = as_they_are,
) -> Advice:
    """Judge the finalists on the judged seeds, and before today's is kept once more on forty what these seeds leave in doubt."""
    advice = judged(evaluator, today, finalists, goal, prefer=prefer)
    doubtful = _doubtful(evaluator, today, finalists, goal) if advice.kind == "keep" else []
    if not doubtful:
        return advice
    evaluator.scores([today, *doubtful], CLOSE_SEEDS, "telling whether to keep it")
    doubtful = [c for c in doubtful if c not in evaluator.failed]
    return judged(evaluator, today, doubtful, goal, [*JUDGED_SEEDS, *CLOSE_SEEDS], SIGNIFICANT / 2, prefer)


def _doubtful(evaluator: Evaluator, today: Candidate, finalists: Sequence[Candidate], goal: str) -> list[Candidate]:
    """Finalists that may be better than today's by a tenth, while the judged seeds cannot tell: rare timeouts make such a spread."""
    seeds = list(JUDGED_SEEDS)
    now = evaluator.cost(today, seeds, goal)
    return [c for c in finalists if evaluator.cost(c, seeds, goal) < now - MAY_BE * abs(now)]


def _least(
    evaluator: Evaluator, better: Sequence[Candidate], goal: str, judged: Sequence[int], prefer: Preference
) -> Candidate:
    """The best of these; among equals what is preferred, then the one that changes least. Close ones are run on more seeds before one is preferred."""
    seeds = list(judged)

    def near(candidates: Sequence[Candidate], share: float) -> list[Candidate]:
        least = min(evaluator.cost(c, seeds, goal) for c in candidates)
        return [c for c in candidates if evaluator.cost(c, seeds, goal) <= least + share * abs(least)]

    close = near(better, CLOSE)
    if len(close) > 1 and not set(CLOSE_SEEDS) <= set(seeds):
        evaluator.scores(close, CLOSE_SEEDS, "telling the best from the next")
        seeds += CLOSE_SEEDS
        close = [c for c in close if c not in evaluator.failed]
    return min(prefer(near(close, NEAR), goal, NEAR), key=lambda c: (c.changes, evaluator.cost(c, seeds, goal)))


def judged(
    evaluator: Evaluator,
    today: Candidate,
    finalists: Sequence[Candidate],
    goal: str,
    seeds: Sequence[int] = JUDGED_SEEDS,
    level: float = SIGNIFICANT,
    prefer: Preference = as_they_are,
) -> Advice:
    """Compare the finalists with what hosts run today, seed by seed; a second look has to be surer (`level`)."""
    of = evaluator.of_what
    mine = evaluator.of(today, seeds)
    scores = {c: evaluator.of(c, seeds) for c in finalists}
    by_goal = {c: paired(found, mine, goal) for c, found in scores.items()}
    by_tail = {c: paired(found, mine, "p99_9") for c, found in scores.items()}
    kind, measure = "change", goal
    better = [
        c for c in measurably_better(by_goal, goal, level) if not worse(by_tail[c], "p99_9") or goal in MORE_IS_BETTER
    ]
    if not better and goal not in MORE_IS_BETTER:
        kind, measure = "tail", "p99_9"
        better = [c for c in measurably_better(by_tail, "p99_9", level) if not worse(by_goal[c], goal)]
        # The tail alone is a weaker reason: what also leaves the mean as it is comes first.
        better = [c for c in better if not worse(paired(scores[c], mine, "mean"), "mean")] or better
    if not better:
        values = {name: (mean_of(mine, name), mean_of(mine, name)) for name in GOALS}
        near = finalists[0].label if finalists else "nothing else"
        said = f"Keep {today.cc}: on {len(seeds)} fresh seeds nothing measurably improves the {spoken(goal, of)} (closest: {near})."
        return Advice("keep", said, goal, today, today, None, values, of)
    best = _least(evaluator, better, measure, seeds, prefer)
    theirs = scores[best]
    values = {name: (mean_of(mine, name), mean_of(theirs, name)) for name in GOALS}
    gain = (by_goal if kind == "change" else by_tail)[best]
    headline = headline_of(today, best, measure, gain, values[measure], of)
    if kind == "tail":
        headline += f" The {spoken(goal, of)} is not measurably different."
    advice = Advice(kind, headline, measure, today, best, gain, values, of)
    advice.hurts = hurts(theirs, mine, measure, of)
    stable = stability(evaluator, [today, *better], best, measure, seeds, NEAR)
    advice.confidence = [
        f"Over resampled seeds, {best.label} beats {today.label} at the {spoken(measure, of)} in {stable[0]:.0%}, "
        f"and is within {NEAR:.0%} of the best that could be advised in {stable[1]:.0%}."
    ]
    return advice
