"""The judgement: what gains, what it must not cost, and the simplest of the nearly best."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from fanin.decision.outcome import FEWEST_EVENTS, Outcome, Run, tail_of
from fanin.statistics.seeds import Paired, holm, paired_ratios, weighted_ratios

CLAIM = 0.005
"""A gain is claimed where chance makes one as large less often than this. The level is fixed, not divided by the number of candidates, so that a
candidate more or less never turns an answer round; with twenty of them one comparison in ten has one gain by chance."""

TOLERATED = 1.05
"""A statistic may be longer by this ratio at most."""

HARM = 0.05
"""A statistic that is longer is measurably so where chance makes it as much longer less often than this."""

NEARLY = 1.05
"""A costlier change is advised where it is measurably better than a simpler one by more than this ratio, over the same racks and seeds: at mean and tail
together, or at the mean and no worse at the tail. Two sure gains that lie 5 % apart differ by less than what each is known to: by their order one
service's captures would get now this, now that."""

WORTHWHILE = 1 / NEARLY
"""What is not surely shorter by this ratio, at the worse end of its interval, is no reason to change a TCP: to change nothing is simplest of all."""

FEWEST_PAIRS = 3
"""With fewer pairs of runs an interval says nothing."""

RARE = 0.1
"""Of racks that are less likely than this a change may do harm on one and be advised all the same: it is said on which."""

GUARDED = ("mean", "p50", "p95", "p99", "p99_9")
"""What a change must not make longer."""

BODY = ("p50", "p95")
"""Quantiles of the body may get longer by as much as the mean gets shorter, unless they are what is to gain: a median of 2 ms in place of 1 where one
request in five no longer waits 200 ms for a timeout is no harm."""

MOST_CONNECTIONS = 256
"""Connections that are guarded one by one; a service with more has connections per request, whose names mean nothing."""

MORE_IS_BETTER = ("fairness", "goodput")
"""Of all other statistics less is better."""

Goal = Literal["mean", "p50", "p95", "p99", "p99_9", "fairness", "goodput"]
"""What may be asked for in place of body and tail."""

Kind = Literal["change", "keep", "undecided"]


@dataclass(frozen=True, slots=True)
class Judged:
    """One candidate beside the current setting.

    Attributes
    ----------
    name : str
        The candidate.
    cost : tuple of int
        As :attr:`Outcome.cost`.
    change : dict of str to Paired
        By statistic the ratio candidate / current over pairs of runs, with its 95 % interval (withheld below three pairs) and p.
    gains : tuple of str
        Statistics at which it is measurably and worthwhile better, the most telling first.
    harms : tuple of str
        Statistics that it makes measurably longer by more than :data:`TOLERATED`, over all racks or on one that is not :data:`RARE`;
        ``connection``: what users wait for who need one connection.
    unless : tuple
        The rare racks on which it makes something measurably longer.
    costs : tuple of str
        Quantiles of the body that it makes measurably longer, by less than the mean gets shorter.
    sure : float
        The ratio that is surely reached: geometric mean, over the statistics of the goal, of the upper ends of the intervals; 1 without a gain.
    """

    name: str
    cost: tuple[int, ...]
    change: dict[str, Paired]
    gains: tuple[str, ...]
    harms: tuple[str, ...]
    sure: float
    unless: tuple[Hashable, ...] = ()
    costs: tuple[str, ...] = ()

    @property
    def wins(self) -> bool:
        """It gains and harms nothing."""
        return bool(self.gains) and not self.harms


@dataclass(frozen=True, slots=True)
class Decision:
    """The answer.

    Attributes
    ----------
    kind : {"change", "keep", "undecided"}
        ``undecided``: the runs are too few to tell.
    best, current : str
        What is advised, and what runs now; equal unless `kind` is ``change``.
    by : tuple of str
        The statistics that were to gain.
    judged : tuple of Judged
        Every other candidate, those that win first, in the order in which they would be advised.
    exposed : tuple of str
        What would be advised in place of `best` but for timeouts that the runs may not have shown (:meth:`Case.surer`).
    """

    kind: Kind
    best: str
    current: str
    by: tuple[str, ...]
    judged: tuple[Judged, ...] = field(default_factory=tuple)
    exposed: tuple[str, ...] = ()

    def of(self, name: str) -> Judged | None:
        """The judgement of one candidate; None of the current setting and of what was not run."""
        return next((judged for judged in self.judged if judged.name == name), None)


@dataclass(frozen=True, slots=True)
class Case:
    """What candidates are judged beside.

    Attributes
    ----------
    now : Outcome
        The current setting's runs.
    goal : str or None
        One statistic in place of body and tail.
    measured : mapping
        By statistic what the current setting was measured to take, ms.
    weights : mapping
        By rack how likely it is; equal where it is empty.
    runs : int or None
        How many runs there are to be on the first rack, where these are not all.
    """

    now: Outcome
    goal: Goal | None = None
    measured: Mapping[str, float] = field(default_factory=dict)
    weights: Mapping[Hashable, float] = field(default_factory=dict)
    runs: int | None = None

    @property
    def by(self) -> tuple[str, ...]:
        """The statistics that are to gain."""
        if self.goal is not None:
            return (self.goal,)
        tail = tail_of(self.now, self.runs)
        return ("mean", tail) if tail is not None else ("mean",)

    def judged(self, outcome: Outcome) -> Judged:
        """One candidate beside the current setting."""
        by, now = self.by, self.now
        shared = [run for run in now.runs if run in outcome.runs]
        names = list(dict.fromkeys([*by, *GUARDED]))
        change = {name: self._paired(outcome, name, shared) for name in names}
        # A goal that was asked for is judged however few requests lie beyond it.
        told = {name for name in by if now.tells(name, self.runs) or self.goal is not None}
        guarded = [name for name in names if name in told or now.guards(name, self.runs)]
        gains = tuple(
            name
            for name in by
            if name in told
            and _gains(change[name], name, outcome, now, shared)
            and shorter_than_measured(outcome, name, self.measured)
        )
        longer = [name for name in guarded if _harms(change[name], name, outcome, now, shared)]
        harms = [name for name in longer if not self._made_up(name, outcome, shared)]
        unless: list[Hashable] = []
        racks = list(dict.fromkeys(run[0] for run in shared))
        for rack in racks if len(racks) > 1 else ():
            mine = [run for run in shared if run[0] == rack]
            left = [name for name in guarded if name not in harms]
            longer_there = [n for n in left if _harms(self._paired(outcome, n, mine), n, outcome, now, mine)]
            there = [name for name in longer_there if not self._made_up(name, outcome, mine)]
            if there and self._share(rack, racks) < RARE:
                unless.append(rack)
            else:
                harms += there
        if _one_connection_longer(outcome, now, shared):
            harms.append("connection")
        costs = tuple(name for name in longer if name not in harms)
        sure = _sure(change, by, gains)
        return Judged(outcome.name, outcome.cost, change, gains, tuple(harms), sure, tuple(unless), costs)

    def _made_up(self, name: str, outcome: Outcome, runs: Sequence[Run]) -> bool:
        """The mean makes up for a quantile of the body that gets longer; not for one that is to gain."""
        return name in BODY and name not in self.by and _made_up_for(name, outcome, self.now, runs)

    def _share(self, rack: Hashable, racks: Sequence[Hashable]) -> float:
        """How likely a rack is among these."""
        total = math.fsum(self.weights.get(other, 0.0) for other in racks)
        return self.weights.get(rack, 0.0) / total if total > 0 else 1 / len(racks)

    def beats(self, one: Outcome, other: Outcome) -> bool:
        """The first is measurably better than the second by more than :data:`NEARLY`: at what is to gain together, or at the mean with no longer tail."""
        shared = [run for run in other.runs if run in one.runs]
        paired = self._ratio(
            shared, lambda run: _together(one, run, self.by), lambda run: _together(other, run, self.by)
        )
        if paired.change.value is None:
            return (
                paired.p is not None
                and paired.p < HARM
                and _incomplete(one, self.by, shared) < _incomplete(other, self.by, shared)
            )
        if _ahead(paired):
            return True
        # Tails that hang on one timeout more or less in a run hide what the mean shows.
        mean, *tails = self.by
        return _ahead(self._between(one, other, mean, shared)) and not any(
            _harms(self._between(one, other, tail, shared), tail, one, other, shared) for tail in tails
        )

    def surer(self, one: Outcome, other: Outcome) -> bool:
        """The first bounds what timeouts cost that the runs need not show: with these its mean is shorter by more than :data:`NEARLY`.

        Nor is it measurably worse by as much. On Linux one request of 60 to 180 waited for a timer where no replay did (docs/validation.md).
        """
        if self.by[0] != "mean" or self.beats(other, one):
            return False
        shared = [run for run in other.runs if run in one.runs]
        means = [self._mean(each, shared) for each in (one, other)]
        risks = [each.unseen(len(shared)) for each in (one, other)]
        return risks[0] < risks[1] and NEARLY * (means[0] + risks[0]) < means[1] + risks[1]

    def _mean(self, outcome: Outcome, runs: Sequence[Run]) -> float:
        """The mean request, ms, over racks by their weights; infinite where requests were unfinished, or without a run."""
        racks = list(dict.fromkeys(run[0] for run in runs))
        found = 0.0
        for rack in racks:
            values = [outcome.runs[run].get("mean") for run in runs if run[0] == rack]
            known = [value for value in values if value is not None]
            found += self._share(rack, racks) * math.fsum(known) / len(known) if len(known) == len(values) else math.inf
        return found if racks else math.inf

    def _paired(self, outcome: Outcome, name: str, runs: Sequence[Run]) -> Paired:
        """Ratio of a statistic to the current setting's."""
        return self._between(outcome, self.now, name, runs)

    def _between(self, one: Outcome, other: Outcome, name: str, runs: Sequence[Run]) -> Paired:
        """Ratio of a statistic of two; of what is better the more it is, the inverse, so that below one is always better."""
        if name in MORE_IS_BETTER:
            one, other = other, one
        return self._ratio(runs, lambda run: one.runs[run].get(name), lambda run: other.runs[run].get(name))

    def _ratio(
        self, runs: Sequence[Run], one: Callable[[Run], float | None], other: Callable[[Run], float | None]
    ) -> Paired:
        """Ratio of two values of each run, over racks by their weights."""
        racks = list(dict.fromkeys(run[0] for run in runs))
        of = {rack: [run for run in runs if run[0] == rack] for rack in racks}
        paired = weighted_ratios(
            [
                (self._share(rack, racks), [one(run) for run in mine], [other(run) for run in mine])
                for rack, mine in of.items()
            ]
        )
        if len(runs) >= FEWEST_PAIRS:
            return paired
        return Paired(type(paired.change)(paired.change.value), None)


def decide(
    outcomes: Sequence[Outcome],
    current: str,
    goal: Goal | None = None,
    measured: Mapping[str, float] | None = None,
    weights: Mapping[Hashable, float] | None = None,
) -> Decision:
    """Decide between the current setting and other candidates.

    A change is advised if it makes the mean or the tail of requests (or the statistic that `goal` names) measurably shorter and nothing measurably
    longer by more than 5 %. Of all such the simplest is advised that none of the others is measurably better than by more than 5 %, or surer by as much
    (:meth:`Case.surer`), and of equally simple ones that whose sure gain is largest.

    Parameters
    ----------
    outcomes : sequence of Outcome
        Of all candidates, the current setting among them, in any order.
    current : str
        The name of the current setting.
    goal : str, optional
        One statistic in place of body and tail.
    measured : mapping, optional
        By statistic what the current setting was measured to take, ms. What is shorter than the current setting's runs and not than this is no gain.
    weights : mapping, optional
        By rack how likely it is; equal unless given. Ratios are weighted means over racks, however many runs each has.

    Returns
    -------
    Decision

    Raises
    ------
    ValueError
        When no outcome is the current setting's.

    Examples
    --------
    >>> def runs(mean, p99): return {(0, seed): {"mean": mean + seed / 100, "p50": 1.0, "p99": p99 + seed / 10} for seed in range(5)}
    >>> slow, fast = Outcome("cubic", (0, 0), runs(3.0, 200.0), 1000), Outcome("cubic, floor 20ms", (1, 1), runs(1.5, 20.0), 1000)
    >>> twin = Outcome("trim", (4, 1), runs(1.48, 19.9), 1000)
    >>> decide([slow, fast, twin], "cubic").best
    'cubic, floor 20ms'
    >>> decide([slow, Outcome("bbr", (2, 1), runs(3.5, 20.0), 1000)], "cubic").kind
    'keep'
    """
    now = current_of(outcomes, current)
    case = Case(now, goal, measured or {}, weights or {})
    others = sorted((outcome for outcome in outcomes if outcome.name != current), key=lambda o: o.name)
    judged = [case.judged(outcome) for outcome in others]
    judged.sort(key=lambda found: (not found.wins, found.sure, found.cost, found.name))
    enough = {outcome.name for outcome in others if _ran_through(outcome, now)}
    winners = [found for found in judged if found.wins and found.name in enough]
    if winners:
        best, exposed = _simplest(winners, {outcome.name: outcome for outcome in outcomes}, case)
        others_judged = (found for found in judged if found is not best)
        return Decision("change", best.name, current, case.by, (best, *others_judged), exposed)
    few = now.likeliest < FEWEST_PAIRS
    return Decision("undecided" if few and others else "keep", current, current, case.by, tuple(judged))


def _ahead(paired: Paired) -> bool:
    """Better by more than :data:`NEARLY` at the worse end of its interval."""
    return paired.change.high is not None and paired.change.high * NEARLY < 1


def _simplest(winners: Sequence[Judged], outcomes: Mapping[str, Outcome], case: Case) -> tuple[Judged, tuple[str, ...]]:
    """The simplest of those that none is measurably better than, or surer; and what is simpler but for one that is surer.

    A candidate more never lets one in that was left out.
    """

    def left(without: Callable[[Outcome, Outcome], bool], among: Sequence[Judged]) -> list[Judged]:
        return [
            found
            for found in among
            if not any(without(outcomes[other.name], outcomes[found.name]) for other in winners if other is not found)
        ]

    def order(found: Judged) -> tuple[tuple[int, ...], float, str]:
        return found.cost, found.sure, found.name

    # Ratios have an order, so that one is left; where requests are unfinished there may be a circle.
    unbeaten = left(case.beats, winners) or list(winners[:1])
    best = min(left(case.surer, unbeaten) or unbeaten, key=order)
    return best, tuple(found.name for found in sorted(unbeaten, key=order) if order(found) < order(best))


def _together(outcome: Outcome, run: Run, by: Sequence[str]) -> float | None:
    """The geometric mean of some statistics of a run, the less the better; None where one has no value."""
    values = [outcome.runs[run].get(name) for name in by]
    logs = [
        -math.log(value) if name in MORE_IS_BETTER else math.log(value)
        for name, value in zip(by, values, strict=True)
        if value is not None and value > 0
    ]
    return math.exp(math.fsum(logs) / len(logs)) if len(logs) == len(values) else None


def on_average(outcome: Outcome, by: Sequence[str]) -> float:
    """What some statistics are together over the runs, the less the better; infinite where a run has no value of one."""
    values = [_together(outcome, run, by) for run in outcome.runs]
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known and len(known) == len(values) else math.inf


def exposed(outcome: Outcome, runs: int) -> bool:
    """Timeouts that none of so many runs shows could make its mean longer by more than :data:`NEARLY` allows."""
    mean = on_average(outcome, ("mean",))
    return outcome.unseen(runs) > (NEARLY - 1) * mean


def _incomplete(outcome: Outcome, by: Sequence[str], runs: Sequence[Run]) -> int:
    return sum(_together(outcome, run, by) is None for run in runs)


def _ran_through(outcome: Outcome, now: Outcome) -> bool:
    """It has most of the runs, and some on every rack: what was left after a few (:func:`fanin.decision.running`) is not advised by these."""
    racks = {rack for rack, _ in now.runs} <= {rack for rack, _ in outcome.runs}
    return racks and 2 * sum(run in outcome.runs for run in now.runs) > len(now.runs)


def current_of(outcomes: Sequence[Outcome], current: str) -> Outcome:
    """The current setting's outcome; ValueError where there is none."""
    now = next((outcome for outcome in outcomes if outcome.name == current), None)
    if now is None:
        raise ValueError(f"no outcome is the current setting's, {current!r}")
    return now


def _expected(outcome: Outcome, name: str) -> float:
    """The geometric mean over the runs; 0 where there is none, since then nothing is known against it."""
    values = [value for run in outcome.runs.values() if (value := run.get(name)) is not None and value > 0]
    return math.exp(math.fsum(math.log(value) for value in values) / len(values)) if values else 0.0


def shorter_than_measured(outcome: Outcome, name: str, measured: Mapping[str, float]) -> bool:
    """What is shorter than the replay of the current setting and not than this itself was measured to be is no gain."""
    return _expected(outcome, name) <= WORTHWHILE * measured.get(name, math.inf)


def _missing(outcome: Outcome, name: str, runs: Sequence[tuple[object, object]]) -> int:
    return sum(outcome.runs[run].get(name) is None for run in runs)


def _gains(paired: Paired, name: str, outcome: Outcome, now: Outcome, runs: Sequence[tuple[object, object]]) -> bool:
    if paired.p is None or paired.p >= CLAIM:
        return False
    if paired.change.value is None:
        return _missing(outcome, name, runs) < _missing(now, name, runs)
    high = paired.change.high
    return high is not None and high <= WORTHWHILE


def _harms(paired: Paired, name: str, outcome: Outcome, now: Outcome, runs: Sequence[tuple[object, object]]) -> bool:
    if paired.change.value is None:
        return _missing(outcome, name, runs) > _missing(now, name, runs)
    if paired.change.value <= TOLERATED:
        return False
    # Without an interval harm that may be chance is harm.
    return paired.p is None or paired.p < HARM


def _made_up_for(name: str, outcome: Outcome, now: Outcome, runs: Sequence[tuple[object, object]]) -> bool:
    """The mean gets shorter by more milliseconds than this quantile gets longer; not where one of them has no value in some run."""

    def longer(statistic: str) -> float:
        pairs = [(outcome.runs[run].get(statistic), now.runs[run].get(statistic)) for run in runs]
        known = [then - before for then, before in pairs if then is not None and before is not None]
        return math.fsum(known) / len(known) if len(known) == len(pairs) and known else math.inf

    return longer(name) < -longer("mean")


def _one_connection_longer(outcome: Outcome, now: Outcome, runs: Sequence[tuple[object, object]]) -> bool:
    """Users who need one connection wait measurably longer, however many others wait less."""
    shared = [run for run in runs if run in outcome.connections and run in now.connections]
    names = sorted({str(name): name for run in shared for name in now.connections[run]}.items())
    if len(shared) < FEWEST_PAIRS or len(names) > MOST_CONNECTIONS:
        return False
    tests = []
    for _, name in names:
        pairs = [(outcome.connections[run].get(name), now.connections[run].get(name)) for run in shared]
        tests.append(paired_ratios([a for a, _ in pairs], [b for _, b in pairs]))
    corrected = holm([test.p for test in tests])
    return any(
        p is not None and p < HARM and test.change.value is not None and test.change.value > TOLERATED
        for test, p in zip(tests, corrected, strict=True)
    )


def _sure(change: dict[str, Paired], by: tuple[str, ...], gains: tuple[str, ...]) -> float:
    if not gains:
        return 1.0
    # Where the current setting leaves requests unfinished and the candidate none there is no ratio: that is the most that can be gained.
    ends = [(change[name].change.high or 0.01) if name in gains else 1.0 for name in by]
    return math.exp(math.fsum(math.log(max(end, 1e-9)) for end in ends) / len(ends))


__all__ = ["CLAIM", "FEWEST_EVENTS", "TOLERATED", "WORTHWHILE", "Decision", "Goal", "Judged", "decide"]
