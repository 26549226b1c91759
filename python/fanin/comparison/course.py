"""The course of a comparison: the capture is read, its rack calibrated, the candidates run there and on the other racks that give the capture."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from fanin.calibration import as_calibrated, judge_racks
from fanin.capture.measured import seen_baseline
from fanin.capture.traffic import trains as read_trains
from fanin.comparison.candidates import Choice, Unmarked, chosen, listed, with_candidates, with_host_settings
from fanin.comparison.confirm import confirm
from fanin.comparison.on_rack import ROUNDS_DRAWN, compared
from fanin.comparison.question import CONFIRMING, GivenRack, Question
from fanin.comparison.replays import MeasuredReplay
from fanin.comparison.variations import Variation, under, variation
from fanin.decision.running import running
from fanin.disk.files import shown
from fanin.errors import AlgorithmError, CaptureError, ScenarioError
from fanin.kernel import pace
from fanin.process.progress import Progress
from fanin.rack.proposal import in_short, proposed
from fanin.runs.engines import engine as find_engine
from fanin.runs.job import Document, RunWarning
from fanin.runs.replay import ReplayJob, Traffic, rack_of
from fanin.settings.candidates import Candidate
from fanin.simulation import in_force, owned, toml
from fanin.spans import fit
from fanin.statistics.ranking import RankOf, waited_for

if TYPE_CHECKING:
    from fanin.calibration import Calibrated
    from fanin.capture.measured import Today
    from fanin.capture.traffic import TrainsResult
    from fanin.comparison.result import CompareResult
    from fanin.rack.proposal import RackProposal
    from fanin.runs.store import Store
    from fanin.spans import Fitted

SEEDS_ELSEWHERE = 5
"""Runs per algorithm on a rack that was not asked for: whether the answer depends on what the capture does not show."""

PROPOSED = "rack.toml"
"""Name of a rack that was proposed from the capture."""


class Further(Protocol):
    """More candidates for a comparison."""

    def __call__(self, base: ReplayJob, choice: Choice, of: RankOf) -> Sequence[Candidate]:
        """Given the replay on the likeliest rack, what would be compared, and what is timed."""
        ...

    def may_mark(self, unmarked: Unmarked) -> bool:
        """These were looked at with a switch that marks."""
        ...


@dataclass(frozen=True, slots=True)
class Teller:
    """Who hears how far it is: a sentence before what takes long, and the progress display."""

    tell: Callable[[str], None]
    progress: Callable[[str, int], Progress]


@dataclass(frozen=True, slots=True)
class Reading:
    """What a capture gives.

    Attributes
    ----------
    found : TrainsResult
        The capture.
    traffic : Traffic
        What is replayed.
    of : {"trees", "requests", "stages", "responses"}
        What is timed.
    today : Today or None
        What the capture shows of the current TCP, where it was not named.
    spans : Fitted or None
        The application's own words.
    """

    found: TrainsResult
    traffic: Traffic
    of: RankOf
    today: Today | None
    spans: Fitted | None


@dataclass(frozen=True, slots=True)
class Place:
    """The rack of a comparison.

    Attributes
    ----------
    document : Document
        The file.
    proposal : RackProposal or None
        What the capture speaks for, where no file was given.
    settings : tuple of (str, str)
        Values that calibration found on top of a given file.
    less_likely : tuple of dict
        Other racks that give the capture.
    calibration : Calibrated or None
        None where it was not looked at.
    """

    document: Document
    proposal: RackProposal | None
    settings: tuple[tuple[str, str], ...] = ()
    less_likely: tuple[dict[str, str], ...] = ()
    calibration: Calibrated | None = None

    @property
    def reproduced(self) -> bool:
        """Some rack gives the capture."""
        return self.calibration is not None and self.calibration.reproduced


def read(question: Question, tell: Teller, *, to_advise: bool) -> Reading:
    """Read the capture; with `to_advise` one that is not fit to judge is an error."""
    capture = question.capture
    on = question.file.as_it_is() if question.file is not None else None
    found = read_trains(capture, gap=question.gap, rack=on, progress=tell.progress)
    if to_advise and not found.fitness.fit:
        raise CaptureError(f"{capture}: no advice yet: the capture is {found.fitness.sentence}")
    replay, spans = found.workload(question.aggregator), None
    if replay.rounds:
        # While the workload is at hand: the report, which draws them, would make it again.
        found.round_times(replay.aggregator, most=ROUNDS_DRAWN, replay=replay)
    if question.spans is not None:
        replay, spans = fit(found, replay, question.spans)
    if question.independent:
        replay = replay.independent()
    of = waited_for(replay, question.rank_of, alone=question.independent)
    if replay.responses == 0:
        raise CaptureError(
            f"{capture}: no response with payload goes to {replay.aggregator}, so there is nothing to replay; name another host with --aggregator"
        )
    today = seen_baseline(found, replay.aggregator) if question.baseline is None else None
    return Reading(found, Traffic(replay), of, today, spans)


def placed(question: Question, reading: Reading) -> Place:
    """The rack as given, else as the capture speaks for it."""
    given = question.file
    if given is not None:
        return Place(Document(given.text, given.path, str(given.folder)), None)
    aggregator = reading.traffic.replay.aggregator
    proposal = proposed(reading.found, aggregator, f"fanin rack {shown(str(question.capture))}")
    question.check_others(GivenRack(proposal.text, PROPOSED, Path()))
    return Place(Document(proposal.text, PROPOSED, "."), proposal)


@dataclass(frozen=True, slots=True)
class Course:
    """A comparison of some candidates of one capture, on one rack and those that give the capture as well."""

    question: Question
    reading: Reading
    place: Place
    choice: Choice
    store: Store | None
    tell: Teller

    @classmethod
    def of(cls, question: Question, reading: Reading, store: Store | None, tell: Teller) -> Course:
        """What is compared, on the rack as it is known before calibration."""
        place = placed(question, reading)
        course = cls(question, reading, place, Choice([], [], None, []), store, tell)
        seen, alone = reading.today, question.independent
        choice = chosen(question.cc, question.baseline, course.job(), seen.cc if seen else None)
        if any(key.startswith("cc.") for key, _ in question.changes):
            owned(question.changes, choice.names)
        if question.everything and not alone:
            choice = with_host_settings(choice, course.job())
        return replace(course, choice=choice)

    def job(self, more: Mapping[str, str] | None = None, engine: str | None = None) -> ReplayJob:
        """The replay on the rack, with some values on top."""
        on_top = ((key, toml(value)) for key, value in (more or {}).items())
        settings = (*self.question.changes, *self.place.settings, *on_top)
        return ReplayJob(
            self.place.document, self.reading.traffic, "", 0, settings, engine=engine or self.question.engine
        )

    def run(self, job: ReplayJob, seeds: Sequence[int], choice: Choice, **how: Any) -> CompareResult:
        """Compare on one rack."""
        question = self.question
        return compared(
            job,
            self.reading.found,
            choice,
            store=self.store,
            shown_today=self.reading.today,
            given=question.baseline is not None,
            calibrated=self.place.reproduced,
            goal=question.goal,
            seeds=list(seeds),
            rank_by=question.rank_by,
            rank_of=self.reading.of,
            independent=question.independent,
            progress=self.tell.progress,
            **how,
        )

    def calibrated(self) -> Course:
        """The same on the likeliest of the racks that give the capture under the current TCP; as it is where that cannot be looked at."""
        question, place = self.question, self.place
        if self.choice.baseline is None or question.independent or question.engine != "sim":
            return self
        calibration = None
        with suppress(ScenarioError, AlgorithmError):
            # What is wrong is said of the runs that follow.
            calibration = judge_racks(
                self.job(),
                self.reading.found,
                self.choice.baseline,
                self.reading.of,
                place.proposal,
                measure=MeasuredReplay,
                fixed=question.fixed,
                store=self.store,
                progress=self.tell.progress,
            )
        place = replace(place, calibration=calibration)
        if calibration is None or not calibration.reproduced:
            return replace(self, place=place)
        likeliest, *others = calibration.racks()
        place = replace(place, less_likely=tuple(dict(other) for other in others))
        if place.proposal is not None:
            proposal = as_calibrated(place.proposal, calibration)
            place = replace(place, proposal=proposal, document=replace(place.document, text=proposal.text))
        else:
            place = replace(place, settings=tuple((key, toml(value)) for key, value in likeliest))
        return replace(self, place=place)

    def searched(self, further: Further) -> Course:
        """The same with more candidates, unless the rack is known not to give the capture."""
        if self.choice.baseline is None or (self.place.calibration is not None and not self.place.reproduced):
            return self
        choice = with_candidates(self.choice, further(self.job(), self.choice, self.reading.of))
        if choice.unmarked is not None and further.may_mark(choice.unmarked):
            choice = replace(choice, unmarked=replace(choice.unmarked, become="searched"))
        return replace(self, choice=choice)

    def compared(self, command: str | None) -> CompareResult:
        """The candidates on the rack, told of as a whole: which rack, and what was typed."""
        question, place = self.question, self.place
        if question.engine != "sim":
            self._tell_how_long(len(self.choice.names) * len(question.numbers))
        began = time.monotonic()
        result = self.run(
            self.job(),
            question.numbers,
            self.choice,
            traced=question.traced,
            pcap=question.pcap,
            pcap_at=question.pcap_at,
            narrow=self.narrow,
        )
        if question.engine != "sim" and not result.found and not result.interrupted:
            pace.remember(result.runs["packet_hops"].to_list(), time.monotonic() - began)
        spans, rack = self.reading.spans, "" if question.file is None else f" --rack {question.rack}"
        return replace(
            result,
            capture=replace(result.capture, aggregator_found=question.aggregator is None),
            rank_of_given=question.rank_of is not None,
            rack_path=place.document.name,
            rack_text=place.document.text,
            rack_proposed=place.proposal is not None,
            settings={**dict(question.changes), **dict(place.settings)},
            calibration=place.calibration,
            spans=spans,
            command=shown(command or f"fanin compare {question.capture}{rack} --seeds {len(question.numbers)}"),
            warnings=[*self._proposed(), *self._of_interest(result), *self._in_force(result), *self._of_the_proposal()],
            notes=[
                *(spans.sentences() if spans is not None else ()),
                *(place.calibration.notes() if place.calibration is not None else ()),
                *result.notes,
            ],
        )

    @property
    def narrow(self) -> bool:
        """What can no longer be advised after a few runs is not run further."""
        return self.question.cc is None and self.question.engine == "sim" and not self.question.independent

    def _of_interest(self, result: CompareResult) -> list[str]:
        """A result's warnings. Where no algorithm was named (--cc), those about one that can no longer be advised are left out."""
        if not self.narrow or result.baseline is None or not result.outcomes:
            return result.warnings
        names = {result.ways[name].cc for name in self._left(result, result.baseline) if name in result.ways}
        return [w for w in result.warnings if not isinstance(w, RunWarning) or w.cc is None or w.cc in names]

    def _left(self, result: CompareResult, baseline: str) -> set[str]:
        """The current setting, and the candidates that may still be advised."""
        return {baseline, *running(result.outcomes, baseline, self.question.goal, result.told())}

    def choice_of(self, result: CompareResult) -> Choice:
        """What was compared, with what came to it in the course of the runs."""
        return with_candidates(self.choice, list(result.ways.values()))

    def confirmed(self, result: CompareResult) -> CompareResult:
        """The best and the current setting once more, on the kernel's own TCP."""
        job = self.job(engine=CONFIRMING)

        def again(names: list[str], seeds: list[int], label: str) -> CompareResult:
            usual = result.baseline if result.baseline in names else names[0]
            choice = replace(
                self.choice_of(result), names=names, candidates=names, baseline=usual, notes=[], unmarked=None
            )
            return self.run(job, seeds, choice, traced=None, label=label, doubted=False)

        found = confirm(result, self.question.confirm, job, again, self.tell.tell)
        return replace(
            result,
            confirmation=found.confirmation,
            warnings=[*result.warnings, *found.warnings],
            notes=[*result.notes, *found.notes],
            interrupted=result.interrupted or found.interrupted,
        )

    def elsewhere(self, result: CompareResult) -> CompareResult:
        """The same on the other racks: those that were asked for, else those that give the capture as well."""
        question, choice = self.question, self.choice_of(result)
        others: Sequence[dict[str, str]] = question.others or self.place.less_likely
        if self.narrow and not question.vary and result.baseline is not None:
            # Only what may be advised is looked at: whether the answer depends on what the capture leaves open.
            left = self._left(result, result.baseline)
            choice = choice.only(left)
            others = others if len(left) > 1 else ()
        seeds = question.numbers if question.vary else question.numbers[:SEEDS_ELSEWHERE]
        variations, notes, interrupted = list[Variation](), list[str](), result.interrupted
        for number, other in enumerate(others, start=1):
            if interrupted:
                notes.append(f"interrupted: {len(others) - number + 1} of {len(others)} other racks were not tried")
                break
            try:
                label = f"rack {number} of {len(others)}"
                another = self.run(self.job(other), seeds, choice, traced=None, label=label, doubted=False)
            except KeyboardInterrupt:
                interrupted = True
                continue
            interrupted |= another.interrupted
            if another.ranking and not another.interrupted:
                made = variation(other, another)
                # Racks that were asked for may be none that gives the capture: they are shown, and decide nothing.
                variations.append(replace(made, outcomes=()) if question.vary else made)
        return replace(result, variations=variations, notes=[*result.notes, *notes], interrupted=interrupted)

    def told(self, result: CompareResult) -> CompareResult:
        """What the answer gives on each of the other racks."""
        if not result.ranking:
            return result
        answer, by = result.verdict, self.question.rank_by
        return replace(result, variations=[under(answer, o, by) if o.outcomes else o for o in result.variations])

    def _tell_how_long(self, runs: int) -> None:
        """Say how long a comparison on another engine takes, by the packets of the capture: each passes two ports."""
        hops = [2.0 * self.reading.found.summary["tcp_packets"]] * runs
        label = find_engine(self.question.engine).label
        self.tell.tell(f"comparing on {label}: {runs} runs, {pace.estimate(hops)} on this machine")

    def _in_force(self, result: CompareResult) -> Sequence[str]:
        """Of each value that was changed and is what it was; nothing is said of a value that an algorithm did not take."""
        if not self.question.changes or result.failures:
            return []
        names, replay = result.runs["cc"].unique(maintain_order=True).to_list(), self.reading.traffic.replay
        document = self.place.document
        return in_force(
            self.question.changes,
            lambda kept: [rack_of(document, kept).check(replay, result.way(name).cc)[0] for name in names],
        )

    def _proposed(self) -> list[str]:
        """That the rack was proposed, and what of it was assumed."""
        proposal = self.place.proposal
        if proposal is None:
            return []
        assumed = [f.key.removeprefix("rack.") for f in proposal.findings if f.certainty == "assumed"]
        told = f"; assumed, since the capture does not show it: {listed(assumed)}" if assumed else ""
        return [
            f"the rack was proposed from the capture ({in_short(proposal)}{told}): correct it and compare again with --rack"
        ]

    def _of_the_proposal(self) -> Sequence[str]:
        return self.place.proposal.warnings if self.place.proposal is not None else ()
