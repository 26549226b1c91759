"""The verdict of a comparison: one object, whose sentences the terminal, the JSON, Python and the report all show.

A win is claimed only where the paired differences from the baseline say so, and only for what can be the answer
(:attr:`fanin.statistics.ranking.RankingRow.candidate`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from fanin.calibration.case import left_open
from fanin.capture.closing import OF_RESPONSES, misread
from fanin.capture.measured import FACTOR, FEWEST_RETRANSMISSIONS
from fanin.decision.judge import FEWEST_PAIRS, MORE_IS_BETTER, TOLERATED
from fanin.rack.facts import rack_facts
from fanin.settings.declared import stated_packets
from fanin.settings.deployable import deployment
from fanin.settings.lines import Recommendation, how_to
from fanin.statistics.seeds import estimate, paired_ratios
from fanin.words.dependence import unless
from fanin.words.text import duration, enumeration, gain, shortening

if TYPE_CHECKING:
    from fanin.comparison.result import CompareResult
    from fanin.comparison.variations import Variation
    from fanin.decision import Decision, Judged, Outcome
    from fanin.statistics.ranking import RankingRow

STATISTIC_NAMES = {"mean": "mean", "p50": "median", "p95": "p95", "p99": "p99", "p99_9": "p99.9"}
"""Statistics as people read them."""

GOAL_NAMES = {**STATISTIC_NAMES, "fairness": "fairness", "goodput": "goodput"}
"""What can be asked for, as people read it."""

PRESUMED = (
    ("cubic", "what Linux runs unless told otherwise"),
    ("reno", "standard TCP"),
    ("sack", "standard TCP with SACK"),
    ("newreno", "standard TCP"),
)
"""What hosts are presumed to run, likeliest first; the comparison is against the first that was ranked."""

LOOK_UP = (
    "Look up the rate and the buffer of the switch port to the aggregator and give them with --rack, and capture again before the queue, at the switch or "
    "at the servers, where losses and servers' own times are seen."
)
"""What to do where nothing can be advised."""

Kind = Literal["change", "keep", "undecided", "none"]


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a candidate that gains is not advised.

    Attributes
    ----------
    cc : str
        The algorithm.
    why : str
        One clause, without a full stop.
    """

    cc: str
    why: str

    def to_dict(self) -> dict[str, str]:
        """As it stands in JSON."""
        return {"cc": self.cc, "why": self.why}


@dataclass(frozen=True, slots=True)
class Confirmation:
    """What another engine said of the best of a comparison (``fanin compare --confirm``).

    Attributes
    ----------
    engine, label : str
        Such as ``kernel``, and what that is.
    holds : bool
        It advises the same, what is advised gains there as stated, or it cannot tell.
    order : bool
        No two of the algorithms are the other way round there, as far as the runs can tell.
    sentence : str
        What it found, for the terminal and the report.
    rows : tuple of dict
        Per algorithm, best there first: ``cc``, and ``simulated`` and ``there`` with ``mean``, ``p50``, ``p95``, ``p99``, ``p99_9`` (ms, with
        ``low`` and ``high``), ``times_baseline``, ``p``, ``timeouts``, ``retransmissions``, ``queue_mean_packets``, ``rank`` and ``seeds``.
    result : CompareResult or None
        The comparison on that engine, of a comparison.
    """

    engine: str
    label: str
    holds: bool
    order: bool
    sentence: str
    rows: tuple[dict[str, Any], ...]
    result: CompareResult | None = None

    def to_dict(self) -> dict[str, Any]:
        """As it stands in JSON."""
        return {
            "engine": self.engine,
            "label": self.label,
            "holds": self.holds,
            "order": self.order,
            "sentence": self.sentence,
            "rows": list(self.rows),
        }


@dataclass(frozen=True, slots=True, repr=False)
class Verdict:
    """The answer.

    Attributes
    ----------
    kind : {"change", "keep", "undecided", "none"}
        As :class:`fanin.decision.Decision`; ``none``: nothing can be advised, for the reason that `headline` gives.
    headline : str
        One sentence.
    support : tuple of str
        What else one needs before acting on it.
    cautions : tuple of str
        Why to trust it less: a simulation that does not agree with the capture, few seeds, failed algorithms, a damaged capture.
    best : str or None
        What is advised, as the ranking names it; the baseline when it is to be kept.
    by : str or None
        The statistic at which it gains, the tail before the mean; None without a gain.
    baseline, baseline_why : str or None
        What hosts are taken to run, and how that is known.
    refused : tuple of Refusal
        What gains and is not advised, since it makes something else longer.
    recommendation : Recommendation or None
        The lines that try `best` and take it back; None when nothing is to be changed or no host can run it.
    """

    kind: Kind
    headline: str
    support: tuple[str, ...]
    cautions: tuple[str, ...]
    best: str | None
    by: str | None
    baseline: str | None
    baseline_why: str | None
    refused: tuple[Refusal, ...]
    recommendation: Recommendation | None

    def __repr__(self) -> str:
        return f"<Verdict {self.kind}: {self.headline}>"

    def to_dict(self) -> dict[str, Any]:
        """As ``answer`` stands in JSON."""
        return {
            "kind": self.kind,
            "headline": self.headline,
            "support": list(self.support),
            "cautions": list(self.cautions),
            "best": self.best,
            "by": self.by,
            "refused": [refusal.to_dict() for refusal in self.refused],
        }


def presumed(names: Sequence[str]) -> str | None:
    """The algorithm that hosts are presumed to run, of these; None when none of the presumed is among them.

    Examples
    --------
    >>> presumed(["dctcp", "reno", "cubic"]), presumed(["dctcp"])
    ('cubic', None)
    """
    return next((cc for cc, _ in PRESUMED if cc in names), None)


def verdict(result: CompareResult) -> Verdict:
    """Judge a comparison with at least one ranked algorithm; where another engine was asked and says otherwise, that one is believed."""
    mine, found = verdict_of(result), result.confirmation
    if found is None or found.result is None:
        return mine
    if found.holds:
        return replace(mine, support=(found.sentence, *mine.support))
    theirs = verdict_of(found.result)
    return replace(
        theirs,
        headline=f"Real Linux TCP says otherwise than the simulation: {theirs.headline}",
        support=(found.sentence, *theirs.support),
        cautions=mine.cautions,
    )


def verdict_of(result: CompareResult) -> Verdict:
    """Judge a comparison by its own runs alone."""
    decision = result.decision
    usual = next((row for row in result.ranking if row.cc == result.baseline), None)
    kind, best = _kind(result, decision)
    judged = decision.of(best) if decision is not None and kind == "change" else None
    gained = judged.gains if judged is not None else ()
    refused = tuple(_refused(found) for found in decision.judged if found.gains and found.harms) if decision else ()
    told = _Told(result, kind, best, judged, refused if kind != "none" else ())
    why = None
    if usual is not None:
        why = "as given" if result.baseline_given else result.baseline_seen or dict(PRESUMED).get(usual.cc, "as given")
    return Verdict(
        kind=kind,
        headline=told.headline(),
        support=tuple(told.support(why)),
        cautions=tuple(_cautions(result)),
        best=best,
        by=gained[-1] if gained else None,
        baseline=usual.cc if usual else None,
        baseline_why=why,
        refused=told.refused,
        recommendation=_recommended(result, kind, best),
    )


def _kind(result: CompareResult, decision: Decision | None) -> tuple[Kind, str]:
    """What is concluded, and for which candidate."""
    first = next((row.cc for row in result.ranking if row.candidate), result.ranking[0].cc)
    if _unfit(result) is not None or (result.calibration is not None and not result.calibration.reproduced):
        return "none", result.baseline or first
    if decision is None:
        # Nothing to hold the others against.
        return ("change" if len(result.ranking) == 1 or len(result.seeds) > 1 else "undecided"), first
    return decision.kind, decision.best


def _unfit(result: CompareResult) -> str | None:
    """Why no advice can rest on the capture, or on what was read of it; None where one can."""
    fitness = result.capture.fitness
    return _misread(result) if fitness is None or fitness.fit else f"the capture is {fitness.sentence}"


def _misread(result: CompareResult) -> str | None:
    """Why no advice can rest on the requests that were read; None where one can, where traces gave them, or where responses were asked for.

    Without requests the ranking is by responses. Where these belong to requests that were not found, what each waits for is not known either.
    """
    of_responses = result.rank_of == "responses" and result.rank_of_given
    if of_responses or result.independent or result.spans is not None:
        return None
    return misread([*result.warnings, *result.capture.warnings])


SLOWEST = {
    "p95": "One {what} in 20",
    "p99": "One {what} in 100",
    "p99_9": "One {what} in 1,000",
    "p50": "Half of all {what}s",
}
"""How the requests beyond a quantile are said."""


@dataclass(frozen=True, slots=True)
class _Told:
    """The sentences of a verdict."""

    result: CompareResult
    kind: Kind
    best: str
    judged: Judged | None
    refused: tuple[Refusal, ...]

    @property
    def what(self) -> str:
        """What a user of the service waits for."""
        return "response" if self.result.rank_of == "responses" else "request"

    def headline(self) -> str:
        """The answer in one or two sentences."""
        result, usual = self.result, self.result.baseline
        unfit = _unfit(result)
        if unfit is not None:
            return f"No advice yet: {unfit}."
        if self.kind == "none" and result.calibration is not None:
            return f"No advice yet: {result.calibration.sentence()}."
        if usual is None or len(result.ranking) == 1:
            return self._alone()
        if self._nowhere():
            from fanin.comparison.variations import holds

            return f"{holds(self.best, self._asked())} On this rack: {self._answer()}"
        return self._answer()

    def _answer(self) -> str:
        """On this rack, beside what hosts run now."""
        result, usual = self.result, self.result.baseline or ""
        if self.kind == "undecided":
            count = _seeds(next(row for row in result.ranking if row.cc == usual))
            return f"{count[0].upper()}{count[1:]} cannot tell these TCPs apart: run at least {FEWEST_PAIRS}, better 10 (--seeds 10)."
        if self.kind == "keep":
            return f"Keep {usual}: nothing that was tried makes the {self.what}s of this service surely shorter by 5% or more without making others longer."
        assert self.judged is not None  # of a change
        gains = list(reversed(self.judged.gains))
        return " ".join(self._now_and_then(name, first=name == gains[0]) for name in gains)

    def _alone(self) -> str:
        row = next(row for row in self.result.ranking if row.cc == self.best)
        by = self.result.rank_by
        value = row.completion_ms[by].value
        if value is None:
            return f"With {self.best} too many {self.what}s are unfinished on this rack for a {STATISTIC_NAMES[by]}."
        return f"With {self.best}, the {STATISTIC_NAMES[by]} {self.what} takes {duration(value)} on this rack."

    @property
    def change(self) -> str:
        """What is advised, for "With ...".

        The current algorithm with other settings is said as these settings.
        """
        way = self.result.way(self.best)
        if way.cc != self.result.baseline:
            return f"{way.cc} ({', '.join(way.said(' '))})" if way.said("") else self.best
        if not way.settings:
            return self.best
        return enumeration([f"the {setting}" for setting in way.said(" at ")])

    def _more_of(self, name: str) -> str:
        """What a rate or an index is, and what it would become."""
        unit, scale = (" Mbps", 1e-6) if name == "goodput" else ("", 1.0)
        by_name = {outcome.name: outcome for outcome in self.result.every()}
        means = [
            estimate([values.get(name) for values in by_name[cc].runs.values()]).value
            for cc in (self.result.baseline or "", self.best)
        ]
        now, then = ("none" if mean is None else f"{mean * scale:.3g}{unit}" for mean in means)
        return f"The {GOAL_NAMES[name]} is {now} in the replay of {self.result.baseline}. With {self.change} it would be {then}."

    def _now_and_then(self, name: str, *, first: bool) -> str:
        """What a statistic is, and what it would become."""
        if name in MORE_IS_BETTER:
            return self._more_of(name)
        now, measured = self._now(name)
        then = self._then(name)
        who = SLOWEST[name].format(what=self.what) if name in SLOWEST else f"The mean {self.what}"
        more = " or more" if name in SLOWEST and name != "p50" else ""
        today = f"{who} takes {now}{more}" if now is not None else f"{who} is not complete"
        today += "" if measured else f" in the replay of {self.result.baseline}"
        if not first:
            return f"{today}; it would take {then}."
        runs = next(len(outcome.runs) for outcome in self.result.every() if outcome.name == self.best)
        return f"{today}. With {self.change} it would take {then} ({runs} replays)."

    def _now(self, name: str) -> tuple[str | None, bool]:
        """What the capture measured; where it has too few requests, what the replay gives."""
        measured = self.result.told()
        if name in measured:
            return duration(measured[name]), True
        value = self._replayed(name)
        return (duration(value) if value is not None else None), False

    def _replayed_otherwise(self, name: str) -> bool:
        """Replayed, what hosts run does not take what the capture measured, so that a ratio to the replay would promise too much or too little."""
        measured, replayed = self.result.told().get(name), self._replayed(name)
        return measured is not None and replayed is not None and not 1 / FACTOR <= replayed / measured <= FACTOR

    def _replayed(self, name: str) -> float | None:
        """What the current setting takes in the replay, ms."""
        return next(row for row in self.result.ranking if row.cc == self.result.baseline).completion_ms[name].value

    def _no_ratio(self, names: Sequence[str]) -> str:
        """Why the gain at these is not stated beside the replay."""
        measured = self.result.told()
        pairs = [
            f"a {STATISTIC_NAMES[name]} of {duration(self._replayed(name) or 0)} (measured: {duration(measured[name])})"
            for name in names
        ]
        return f"The replay of {self.result.baseline} has {enumeration(pairs)}, so no ratio to it is stated."

    def _then(self, name: str) -> str:
        """What it is expected to take."""
        found = self.result.expected(self.best, name)
        if found is None:
            return "not every time a value"
        one, other = (duration(end) for end in found)
        return one if one == other else f"{one} to {other}"

    def support(self, why: str | None) -> list[str]:
        """What else one needs before acting on it, what is not known of the rack first."""
        result, usual = self.result, self.result.baseline
        sentences = self._unsure() if self.kind != "none" else []
        if usual is not None and len(result.ranking) > 1:
            sentences.append(_whose(result, usual, why))
        if self.kind == "none":
            return [*sentences, LOOK_UP if _misread(result) is None else OF_RESPONSES]
        if self.judged is not None:
            names = [name for name in reversed(self.judged.gains) if name not in MORE_IS_BETTER]
            apart = [name for name in names if self._replayed_otherwise(name)]
            gains = [f"{STATISTIC_NAMES[name]} {gain(self.judged.change[name])}" for name in names if name not in apart]
            if gains:
                sentences.append(f"Beside {usual} on the same racks and seeds: {', '.join(gains)}.")
            if apart:
                sentences.append(self._no_ratio(apart))
            sentences += self._longer()
        sentences += self._marks()
        sentences += _without_a_queue(result)
        for refusal in self.refused[:3]:
            sentences.append(f"{refusal.cc} {refusal.why}, so it is not advised.")
        if len(self.refused) > 3:
            sentences.append(f"The same holds of {len(self.refused) - 3} more that were tried.")
        sentences += self._as_good()
        sentences += _about_models(result, self.best)
        return sentences

    def _longer(self) -> list[str]:
        """What the change makes longer, and is advised all the same."""
        assert self.judged is not None  # of a change
        return [
            f"The {GOAL_NAMES[name]} gets {gain(self.judged.change[name])}, by fewer milliseconds than the mean gets shorter."
            for name in self.judged.costs
        ]

    def _unsure(self) -> list[str]:
        """What is not known of the rack, and whether the answer depends on it."""
        result, sentences = self.result, []
        found = result.calibration
        others = [v for v in result.variations if v.outcomes]
        bad = []
        if self.judged is not None:
            bad = [
                other
                for place, other in enumerate(others, start=1)
                if place in self.judged.unless
                or not _shorter_there(other.outcomes, result.baseline, self.best, self.judged.gains)
            ]
        holds_on_all = bool(others) and self.judged is not None and not bad
        left = left_open(found.calibration) if found is not None and found.reproduced else None
        if left is not None:
            holds_there = f"; the answer holds on all {len(others) + 1} racks compared" if holds_on_all else ""
            sentences.append(f"Not sure about: {left[0]} (assumed {left[1]}{holds_there}).")
        elif holds_on_all:
            sentences.append(f"The answer holds on all {len(others) + 1} racks that were compared.")
        if bad and found is not None:
            likeliest = dict(found.racks()[0])
            good = [likeliest, *(other.settings for other in others if other not in bad)]
            sentences.append(unless(good, [other.settings for other in bad], result.baseline or ""))
        if found is not None and (left is None or found.widened):
            said = found.sentence()
            sentences.append(f"{said[0].upper()}{said[1:]}.")
        if self._asked() and not self._nowhere():
            from fanin.comparison.variations import holds

            sentences.append(holds(self.best, self._asked()))
        return sentences

    def _asked(self) -> list[Variation]:
        """The racks that were asked for besides."""
        return [v for v in self.result.variations if not v.outcomes]

    def _nowhere(self) -> bool:
        """The answer is another on each of them."""
        asked = self._asked()
        return bool(asked) and all(v.best != self.best for v in asked)

    def _marks(self) -> list[str]:
        """An answer that needs the switch comes with the best that does not."""
        needs = {row.cc: row.needs_ecn for row in self.result.ranking}
        decision = self.result.decision
        if self.judged is None or decision is None or not needs.get(self.best):
            return []
        without = next((found.name for found in decision.judged if found.wins and not needs.get(found.name)), None)
        told = f"{self.best} needs switches that mark packets (ECN)."
        return [f"{told} Without marks, {without} is the best." if without else told]

    def _as_good(self) -> list[str]:
        """What gains nearly as much and takes more to change, or gains more and was not near."""
        decision = self.result.decision
        if decision is None or self.judged is None:
            return []
        named = [
            found.name for found in decision.judged if found.wins and found.name not in (self.best, *decision.exposed)
        ]
        said = [
            (named[:3], "too: the simplest change is advised unless another is measurably more than 5% better"),
            (
                decision.exposed,
                f"as much, but a timeout, which so few requests need not show, costs less with {self.best}",
            ),
        ]
        return [f"{enumeration(list(n))} {'gains' if len(n) == 1 else 'gain'} {what}." for n, what in said if n]


def _whose(result: CompareResult, usual: str, why: str | None) -> str:
    if result.baseline_given:
        return f"Your hosts were said to run {usual}."
    if result.baseline_seen:
        return f"Your hosts run {usual}: {why} (another: --baseline)."
    shows = f"shows only that {result.baseline_hint}" if result.baseline_hint else "does not show it"
    return f"Your hosts are presumed to run {usual}, {why}; the capture {shows} (another: --baseline)."


def _refused(judged: Judged) -> Refusal:
    """What a candidate gains, and what it makes longer."""
    gains = enumeration([GOAL_NAMES[name] for name in judged.gains])
    parts = []
    for name in judged.harms:
        if name == "connection":
            parts.append("requests to one of the servers")
            continue
        change = judged.change[name].change.value
        much = f" {shortening(1.0, change)}" if change is not None and change > TOLERATED else " on one of the racks"
        parts.append(f"the {GOAL_NAMES[name]}{much}")
    longer = [part for part in parts if part.endswith("longer")]
    others = [part for part in parts if not part.endswith("longer")]
    said = [f"makes {enumeration(longer)}"] if longer else []
    said += [f"makes {enumeration(others)} longer"] if others else []
    return Refusal(judged.name, f"improves the {gains} but {' and '.join(said)}")


def _shorter_there(outcomes: Sequence[Outcome], now: str | None, best: str, statistics: Sequence[str]) -> bool:
    """On one rack the advised candidate is shorter, at each statistic that it gains at."""
    by_name = {outcome.name: outcome for outcome in outcomes}
    mine, theirs = by_name.get(best), by_name.get(now or "")
    if mine is None or theirs is None:
        return False
    shared = [run for run in theirs.runs if run in mine.runs]

    def shorter(name: str) -> bool:
        there = paired_ratios([mine.runs[run][name] for run in shared], [theirs.runs[run][name] for run in shared])
        return there.change.value is not None and there.change.value < 1

    return all(shorter(name) for name in statistics)


def _about_models(result: CompareResult, best: str) -> list[str]:
    row = next((row for row in result.ranking if row.cc == best), None)
    if row is None:
        return []
    if row.candidate and deployment(result.way(best).cc) is None and len(result.ranking) > 1:
        return [
            f"{best} is a model: no kernel module of it is known to fanin, so it cannot be tried on a host as it is."
        ]
    model = next((other for other in result.ranking if not other.candidate), None)
    by = result.rank_by
    mine, theirs = row.completion_ms[by].value, model.completion_ms[by].value if model else None
    if model is None or mine is None or theirs is None or theirs >= mine:
        return []
    return [
        f"Of the models that no host can run yet, {model.cc} has the shortest {STATISTIC_NAMES[by]}: {duration(theirs)}."
    ]


def _recommended(result: CompareResult, kind: Kind, best: str) -> Recommendation | None:
    if kind != "change" or best == result.baseline:
        return None
    if result.baseline is None and result.interrupted:
        # The first of several that was run, and nothing to hold it against.
        return None
    return how_to(
        result.way(best),
        aggregator=result.capture.aggregator,
        now=result.baseline or "cubic",
        rack=rack_facts(result),
        servers=result.capture.servers,
    )


def _without_a_queue(result: CompareResult) -> list[str]:
    """When the rack never loses a packet, its TCP is not what makes anybody wait: say where to look instead."""
    rows = result.ranking
    counts = [estimate.value for row in rows for estimate in (row.drops, row.timeouts)]
    fullest = max((row.queue_max_packets.value or 0.0 for row in rows), default=0.0)
    if not all(count == 0 for count in counts) or any(row.unfinished for row in rows):
        return []
    rack = rack_facts(result)
    limit = stated_packets(rack.get("receiver_buffer", rack.get("buffer")))
    of = f" of {limit:,}" if limit is not None else ""
    told = f"No packet was lost with any of them, and the port to {result.capture.aggregator} never held more than {fullest:,.0f}{of} packets"
    lost = result.measured.replayed_retransmissions if result.measured is not None else 0
    if lost >= FEWEST_RETRANSMISSIONS:
        return [
            f"{told}, while {lost:,} packets were sent again in the capture: the rack that was captured is slower, or its buffers are smaller. "
            "Correct the rack before you act on this."
        ]
    return [
        f"{told}: this rack does not slow this traffic down. Look for its tail in the hosts, in the application, or in traffic that the capture does "
        "not hold."
    ]


def _cautions(result: CompareResult) -> list[str]:
    cautions = []
    if result.interrupted:
        left = len(result.missing)
        cautions.append(
            f"The comparison was stopped early: {left} {'run is' if left == 1 else 'runs are'} missing, and what is here rests on what was done."
        )
    counts = {len(row.seeds) for row in result.ranking}
    if counts == {1} and len(result.ranking) > 1:
        cautions.append("One seed only: a difference may be chance. Run again with --seeds 10.")
    elif len(counts) > 1 and result.interrupted:
        cautions.append("Not every algorithm ran with the same seeds; the table says how many each row rests on.")
    unfinished = [row.cc for row in result.ranking if row.unfinished]
    if unfinished:
        cautions.append(
            f"Some responses were not complete when the run ended, with {enumeration(unfinished)}. They count as slower than any that were."
        )
    cautions += [f"{failure.cc} could not be run: {failure.message}" for failure in result.failures]
    cautions += result.warnings
    cautions += result.capture.warnings
    return cautions


def _seeds(row: RankingRow) -> str:
    return "1 seed" if len(row.seeds) == 1 else f"{len(row.seeds)} seeds"
