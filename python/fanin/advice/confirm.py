"""Advice on another engine: what it says of today's TCP and of what was found, and that it is believed."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fanin.advice.judge import headline_of, improves, mean_of, paired, shown_values, spoken
from fanin.advice.search import GOALS, Evaluator
from fanin.comparison.candidates import has
from fanin.kernel import pace
from fanin.runs.engines import engine
from fanin.settings import Candidate
from fanin.verdict import Confirmation

if TYPE_CHECKING:
    from fanin.advice.advise import Advice


def confirm(
    advice: Advice,
    here: Evaluator,
    finalists: Sequence[Candidate],
    seeds: Sequence[int],
    on: str,
    tell: Callable[[str], None],
) -> None:
    """Run today's TCP and the advised one again on another engine; where that says otherwise, the advice becomes its.

    Where today's is to be kept, the closest of the others is run beside it.

    Parameters
    ----------
    advice : Advice
        Is changed: `confirmation`, and what it makes of headline, kind and best.
    here : Evaluator
        What was simulated.
    finalists : sequence of Candidate
        The others that were judged, best first.
    seeds : sequence of int
        As were judged.
    on : str
        The engine's name.
    tell : callable
        Told what is about to happen, and how long it takes.
    """
    label = engine(on).label
    base = replace(here.base, engine=on)
    other = advice.best if advice.best != advice.today else next(iter(finalists), None)
    if other is None:
        advice.notes.append("not confirmed: there is nothing beside what hosts run today")
        return
    without = [
        c.cc for c in (advice.today, other) if not has(replace(base, settings=(*base.settings, *c.settings)), c.cc)
    ]
    if without:
        advice.notes.append(f"not confirmed: {label} has no form of {' and '.join(without)}")
        return
    there = here.elsewhere(base)
    hops = [float(score.hops) for c in (advice.today, other) for score in here.of(c, seeds)]
    tell(
        f"confirming {other.label} beside {advice.today.label} on {label}: {len(hops)} runs, {pace.estimate(hops)} on this machine"
    )
    began = time.monotonic()
    there.scores([advice.today, other], seeds, f"confirming ({pace.estimate(hops)})")
    if there.failed:
        advice.notes += [f"not confirmed: {c.label} failed on {label}: {why}" for c, why in there.failed.items()]
        return
    if there.ran == len(hops):
        pace.remember(hops, time.monotonic() - began)
    judge(advice, here, there, other, seeds, on, label)


def judge(
    advice: Advice, here: Evaluator, there: Evaluator, other: Candidate, seeds: Sequence[int], on: str, label: str
) -> None:
    """Put what was found on the other engine into the advice."""
    mine, theirs = there.of(advice.today, seeds), there.of(other, seeds)
    goal, of = advice.goal, advice.rank_of
    test = paired(theirs, mine, goal)
    better = improves(test, goal)
    holds = better if advice.best == other else not better
    values = (mean_of(mine, goal), mean_of(theirs, goal))
    found = f"{label} over {len(seeds)} seeds: {spoken(goal, of)} {shown_values(goal, values, test)} with {other.label} instead of {advice.today.label}"
    said = advice.headline
    if holds:
        sentence = f"Confirmed by {found}."
    else:
        sentence = f"Not confirmed by {found}. The simulation had said: {said}"
        if better:
            advice.kind, advice.best, advice.gain = "change", other, test
            advice.headline = f"Real Linux TCP says otherwise than the simulation: {headline_of(advice.today, other, goal, test, values, of)}"
        else:
            advice.kind, advice.best, advice.gain = "keep", advice.today, None
            advice.headline = f"Keep {advice.today.label}: on real Linux TCP {other.label} does not measurably improve the {spoken(goal, of)}."
    rows = tuple(
        {"cc": c.label, "simulated": _numbers(here, c, seeds), "there": _numbers(there, c, seeds)}
        for c in (advice.today, other)
    )
    advice.confirmation = Confirmation(engine=on, label=label, holds=holds, order=holds, sentence=sentence, rows=rows)
    advice.confidence.insert(0, sentence)


def _numbers(evaluator: Evaluator, candidate: Candidate, seeds: Sequence[int]) -> dict[str, Any]:
    scores = evaluator.of(candidate, seeds)
    return {
        **{goal: mean_of(scores, goal) for goal in GOALS},
        "timeouts": sum(score.timeouts for score in scores) / len(scores),
        "retransmissions": sum(score.retransmissions for score in scores) / len(scores),
    }
