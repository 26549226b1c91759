"""The same traffic at twice the load: whether what is advised for the captured hour holds there, and what would be best.

An hour may become twice as busy since everybody asks twice as often, or since twice as many ask: half of the runs are of the one kind, half of the
other, where the clients that come are those of the capture once more, a while later, which differs from run to run so that no coincidence of
one shift decides. What the servers take for an answer, and who waits for whom, stays.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from fanin import _native
from fanin._native import Replay
from fanin.advice.judge import improves, mean_of, paired, shown_values, spoken, worse
from fanin.advice.search import Evaluator, halving
from fanin.runs.replay import ReplayJob, Traffic
from fanin.settings import Candidate, Space
from fanin.statistics.ranking import SIGNIFICANT
from fanin.statistics.seeds import Paired

SHIFTS = (0.618, 0.236, 0.854, 0.472)
"""How much later the other clients come, as a share of the mean time between two requests of a connection: spread evenly."""

HOLDS = 0.05
"""What is longer than the best at twice the load by more than this does not hold there."""

FINALISTS = 3


def twice_as_often(workload: dict[str, Any]) -> Replay:
    """The same requests of a workload file, each after half its pause."""

    def sooner(message: dict[str, Any]) -> dict[str, Any]:
        found = {**message, "start_ns": message["start_ns"] // 2, "think_ns": message["think_ns"] // 2}
        release = message.get("release", {})
        if "delay_ns" in release:
            found["release"] = {**release, "delay_ns": release["delay_ns"] // 2}
        return found

    connections = [
        {**c, "start_ns": c["start_ns"] // 2, "messages": [sooner(message) for message in c["messages"]]}
        for c in workload["connections"]
    ]
    return _native.Replay.from_json(json.dumps({**workload, "connections": connections}))


def twice_as_many(workload: dict[str, Any], shift: float) -> Replay:
    """The same requests, and all of them once more on connections of their own, later by a share of the time between two requests."""
    connections, rounds = workload["connections"], workload["rounds"]
    most = max((len(c["messages"]) for c in connections), default=1)
    span = max((message["start_ns"] for c in connections for message in c["messages"][-1:]), default=0)
    later, count = round(shift * span / most), len(connections)
    numbers = 1 + max((c["connection"] for c in connections), default=0)

    def moved(message: dict[str, Any]) -> dict[str, Any]:
        found = {**message, "start_ns": message["start_ns"] + later}
        if "release" in message:
            places = {"round": len(rounds), "connection": count}
            found["release"] = {
                key: value + places[key] if key in places else value for key, value in message["release"].items()
            }
        return found

    others = [
        {
            **connection,
            "connection": connection["connection"] + numbers,
            "start_ns": connection["start_ns"] + later,
            "messages": [moved(message) for message in connection["messages"]],
        }
        for connection in connections
    ]
    their_rounds = [
        {**r, **{key: [[c + count, m] for c, m in r[key]] for key in ("requests", "answers") if key in r}}
        for r in rounds
    ]
    both = {**workload, "connections": connections + others, "rounds": rounds + their_rounds}
    return _native.Replay.from_json(json.dumps(both))


class BusyEvaluator(Evaluator):
    """Runs candidates on the doubled traffic: odd seeds with everybody asking twice as often, even ones with twice as many.

    Parameters
    ----------
    here : Evaluator
        Of the traffic as it was captured.
    """

    def __init__(self, here: Evaluator) -> None:
        there = here.elsewhere(here.base)
        super().__init__(there.base, there.executor, there.progress, there.store, there.of_what)
        workload = json.loads(here.base.traffic.text)
        self._often = Traffic(twice_as_often(workload))
        self._many = [Traffic(twice_as_many(workload, shift)) for shift in SHIFTS]

    def job(self, candidate: Candidate, seed: int) -> ReplayJob:
        """The replay of the doubled traffic under a candidate."""
        traffic = self._often if seed % 2 else self._many[seed // 2 % len(self._many)]
        return replace(super().job(candidate, seed), traffic=traffic)


@dataclass(slots=True)
class TwiceTheLoad:
    """What was found there.

    Attributes
    ----------
    best : Candidate
        The best there.
    holds : bool
        What is advised is at most a twentieth longer than that, or cannot be told from it.
    beats_today : bool
        It is measurably better there than the current setting.
    values : dict
        Of the goal, by label: the current setting, what is advised, the best there; None where not every response was delivered.
    against_best, against_today : Paired
        Ratio of the goal, of what is advised to each.
    """

    best: Candidate
    holds: bool
    beats_today: bool
    values: dict[str, float | None]
    against_best: Paired
    against_today: Paired

    def to_dict(self) -> dict[str, Any]:
        """As it stands in JSON."""
        return {
            "best": {"cc": self.best.cc, "settings": dict(self.best.settings)},
            "holds": self.holds,
            "beats_current": self.beats_today,
            "values": dict(self.values),
            "against_best": self.against_best.to_dict(),
            "against_current": self.against_today.to_dict(),
        }


def search_doubled(
    here: Evaluator, space: Space, today: Candidate, goal: str, *, runs: int, seeds: Sequence[int]
) -> DoubledTraffic:
    """Search the doubled traffic for its own best.

    Parameters
    ----------
    here : Evaluator
        Of the traffic as it was captured.
    space : Space
        Candidates to choose from.
    today : Candidate
        What hosts run.
    goal : str
        What is to be best.
    runs : int
        About so many simulations.
    seeds : sequence of int
        On which what is found is judged.
    """
    there = BusyEvaluator(here)
    ranked = halving(there, space, today, goal, runs=runs)
    return DoubledTraffic(there, today, tuple(seeds), tuple(c for c in ranked if c != today)[:FINALISTS])


@dataclass(frozen=True, slots=True)
class DoubledTraffic:
    """The doubled traffic, searched: what is asked of it about a candidate.

    Attributes
    ----------
    evaluator : BusyEvaluator
        Runs candidates there.
    today : Candidate
        What hosts run.
    seeds : tuple of int
        On which candidates are judged.
    finalists : tuple of Candidate
        The best few there, best first.
    """

    evaluator: BusyEvaluator
    today: Candidate
    seeds: tuple[int, ...]
    finalists: tuple[Candidate, ...]

    def _costs(self, candidates: Sequence[Candidate], goal: str) -> dict[Candidate, float]:
        self.evaluator.scores(candidates, self.seeds, "judging at twice the load")
        return {c: self.evaluator.cost(c, self.seeds, goal) for c in candidates if c not in self.evaluator.failed}

    def look(self, chosen: Candidate, goal: str) -> TwiceTheLoad | None:
        """What becomes of what is advised; None where it, or the current setting, cannot be run there."""
        costs = self._costs([self.today, chosen, *self.finalists], goal)
        if self.today not in costs or chosen not in costs:
            return None
        best = min(costs, key=lambda c: (costs[c], c.changes))
        if costs[chosen] <= costs[best]:
            best = chosen
        mine, theirs, now = (self.evaluator.of(c, self.seeds) for c in (chosen, best, self.today))
        against_best, against_today = paired(mine, theirs, goal), paired(mine, now, goal)
        much = costs[chosen] - costs[best] > HOLDS * abs(costs[best])
        return TwiceTheLoad(
            best=best,
            holds=not (
                much and against_best.p is not None and against_best.p < SIGNIFICANT and worse(against_best, goal)
            ),
            beats_today=improves(against_today, goal),
            values={c.label: mean_of(self.evaluator.of(c, self.seeds), goal) for c in (self.today, chosen, best)},
            against_best=against_best,
            against_today=against_today,
        )

    def sentences(self, found: TwiceTheLoad, chosen: Candidate, goal: str) -> tuple[list[str], list[str]]:
        """For how sure we are, and for where it would hurt."""
        what = spoken(goal, self.evaluator.of_what)
        sure, hurt = [], []
        there = found.values
        if chosen != self.today:
            took = shown_values(goal, (there[self.today.label], there[chosen.label]), found.against_today)
            if found.beats_today:
                sure.append(f"At twice the load it still beats {self.today.label}: {what} {took}.")
            else:
                hurt.append(
                    f"At twice the load it is no longer measurably better than {self.today.label}: {what} {took}."
                )
        if found.holds:
            sure.append(f"At twice the load nothing better by more than {HOLDS:.0%} was found.")
        else:
            took = shown_values(goal, (there[found.best.label], there[chosen.label]), found.against_best)
            hurt.append(
                f"At twice the load {found.best.label} would be better; {what} with it and with {chosen.label}: {took}. Ask again when the load has grown."
            )
        return sure, hurt
