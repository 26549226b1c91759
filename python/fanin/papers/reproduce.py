"""Runs what a set of claims needs, judges them, and writes what was found."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fanin import _native
from fanin.errors import FaninError, keywords
from fanin.papers import experiments
from fanin.papers.catalogue import DEFAULT, Answer, CatalogueError, Claim, Paper, Reading, load
from fanin.papers.judgement import judgement_of
from fanin.papers.linux import WHERE, OnLinux, judged_there, measured
from fanin.papers.settling import enough, first_part, glance, left, settled
from fanin.papers.verdicts import (
    DIFFERS,
    EVALUATIONS,
    NOT_RUN,
    PICTURES,
    REPRODUCED,
    UNDER,
    WHY,
    Data,
    Frames,
    Judged,
    judge,
)
from fanin.process.progress import Progress, silent

if TYPE_CHECKING:
    from fanin.papers.experiments import Batch

ON_TESTBED = "it is about a real kernel; `fanin reproduce --engine testbed` measures it"
INTERRUPTED = "interrupted before it was run; the same command goes on from there"


@dataclass(slots=True)
class ReproduceResult:
    """Claims with their verdicts.

    Attributes
    ----------
    claims : list of Judged
        In the order of the papers.
    papers : list of Paper
        Those that were asked for.
    data : dict
        Results by paper and experiment.
    batches : dict
        What was simulated, by paper and experiment.
    interrupted : bool
        It was interrupted; what was run by then is kept for the next time.
    on_linux : list of OnLinux
        Claims about real kernels on Linux's own TCP, where that was asked for.
    skipped : list of str
        What of them was not run, and why.
    notes : list of str
        What else there is to say, as of a cache that cannot be used.
    """

    claims: list[Judged]
    papers: list[Paper]
    data: dict[str, Data]
    batches: dict[tuple[str, str], list[Batch]]
    command: str
    version: str
    quick: bool
    interrupted: bool = False
    failures: dict[tuple[str, str], str] = field(default_factory=dict)
    on_linux: list[OnLinux] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    settings: dict[str, object] = field(default_factory=dict)
    """What was set besides, and in the place of, what the experiments set: such verdicts are none on the papers."""
    seeds: int | None = None
    """How many seeds each experiment had, where that was asked for."""
    evidence: dict[str, Data] = field(default_factory=dict)
    """By claim: the results that its verdict rests on, under the reading that the verdict names."""
    runs: dict[str, list[list[Batch]]] = field(default_factory=dict)
    """By claim: what was simulated for them, one list for each experiment."""
    tried: dict[str, list[tuple[str, Judged]]] = field(default_factory=dict)
    """By claim: the readings that it was judged under, and what came out; the default one first, its name is empty."""

    @property
    def complete(self) -> bool:
        """Every claim was run."""
        return all(one.verdict != NOT_RUN for one in self.claims)

    def count(self, verdict: str, paper: str | None = None) -> int:
        """How many claims have this verdict."""
        return sum(c.verdict == verdict and (paper is None or c.id.startswith(f"{paper}.")) for c in self.claims)

    def __repr__(self) -> str:
        held = sum(one.holds for one in self.claims)
        return (
            f"<ReproduceResult of {', '.join(p.name for p in self.papers)}: {held} of {len(self.claims)} claims hold>"
        )

    def _repr_html_(self) -> str:
        """For notebooks: a line per claim."""
        from fanin.pictures.notebook import card

        rows = [(one.id, one.published, one.ours, one.verdict) for one in self.claims]
        return card(repr(self).strip("<>"), ["claim", "published", "ours", "verdict"], rows)

    def to_dict(self) -> dict[str, Any]:
        """The object that ``fanin reproduce --json`` prints."""
        return {
            "version": self.version,
            "command": self.command,
            "quick": self.quick,
            "claims": [one.to_dict() for one in self.claims],
            "on_linux": [one.to_dict() for one in self.on_linux],
            "skipped": list(self.skipped),
            "notes": list(self.notes),
            **({"set": {key: str(value) for key, value in self.settings.items()}} if self.settings else {}),
            **({"seeds": self.seeds} if self.seeds else {}),
        }

    def write_files(self, folder: Path, pictures: Sequence[str] = (), *, data: bool = True) -> None:
        """Write ``gallery.html``, ``claims.json`` and, in the formats that `pictures` names, each figure to a folder.

        With `data` also a page per claim, whose values have intervals, and the data that its verdict rests on.
        """
        from fanin.papers import gallery, pages

        folder.joinpath("claims.json").write_text(json.dumps(self.to_dict(), indent=1, allow_nan=False) + "\n")
        gallery.write(self, folder, pictures)
        if data:
            pages.write(self, folder)


@dataclass(frozen=True, slots=True)
class Request:
    """An experiment under a reading, in full or as ``--quick`` has it."""

    paper: Paper
    experiment: str
    reading: Reading
    quick: bool
    seeds: int | None = None
    """How many seeds; as the experiment has it unless given."""
    cheapest: bool = False
    """Only the points that cost least."""
    upto: int = 0
    """Only the first so many of its seeds; all if 0."""

    @property
    def all_seeds(self) -> int:
        """How many seeds there are, run or not."""
        experiment = self.paper.experiments[self.experiment]
        return self.seeds or (experiment.quick if self.quick else experiment.seeds_under(self.reading))

    @property
    def is_long(self) -> bool:
        """Its first seeds may settle that a claim is reproduced."""
        return self.experiment in self.paper.experiments and enough(self.all_seeds)

    def begun(self, how_many: Callable[[int], int] = first_part) -> Request:
        """The same with the seeds that are run first; itself where that is all of them. See :mod:`fanin.papers.settling`."""
        if self.quick or self.seeds is not None or self.experiment not in self.paper.experiments:
            return self
        upto = how_many(self.all_seeds)
        return self if upto == self.all_seeds else replace(self, upto=upto)


def _fewest_seeds(request: Request) -> float:
    """Sorts those with all seeds last."""
    return request.upto or float("inf")


class Results:
    """Results of experiments by what was asked for; each is run once."""

    def __init__(self, progress: Callable[[str, int], Progress], fresh: bool) -> None:
        self._progress = progress
        self._fresh = fresh
        self._made = experiments.Made()
        self.frames: dict[Request, Frames] = {}
        self.failures: dict[Request, str] = {}
        self.batches: dict[Request, list[Batch]] = {}
        self.whole = True
        self.notes: list[str] = []

    def run(self, requests: Sequence[Request]) -> None:
        """Run what was not asked for before."""
        new = [r for r in dict.fromkeys(requests) if r not in self.batches and r.experiment in r.paper.experiments]
        for r in new:
            experiment = r.paper.experiments[r.experiment]
            self.batches[r] = experiments.batches(
                r.paper,
                experiment,
                quick=r.quick,
                reading=r.reading,
                seeds=r.seeds,
                cheapest=r.cheapest,
                upto=r.upto,
            )
        if not self.whole:
            self.failures |= dict.fromkeys(new, INTERRUPTED)
            return
        work = [batch for r in new for batch in self.batches[r]]
        done, self.whole = experiments.run_all(
            work, self._progress, fresh=self._fresh, made=self._made, note=self._note
        )
        position = 0
        for r in new:
            got = done[position : position + len(self.batches[r])]
            position += len(got)
            errors = [str(one) for one in got if isinstance(one, FaninError)]
            found = [one for one in got if one is not None and not isinstance(one, FaninError)]
            if errors:
                self.failures[r] = errors[0]
            elif len(found) < len(got):
                self.failures[r] = INTERRUPTED
            else:
                self.frames[r] = experiments.gather(found)

    def _note(self, told: str) -> None:
        if told not in self.notes:
            self.notes.append(told)

    def data(self, paper: Paper, quick: bool, reading: Reading = DEFAULT, seeds: int | None = None) -> Data:
        """Everything of a paper under a reading, each experiment over as many of its seeds as were run."""
        asked = (reading, quick, seeds)
        mine = [r for r in self.frames if r.paper is paper and (r.reading, r.quick, r.seeds) == asked]
        return Data({r.experiment: self.frames[r] for r in sorted(mine, key=_fewest_seeds)}, quick)


@keywords
def reproduce(
    what: str | Sequence[str] | None = None,
    *,
    quick: bool = False,
    folder: Path | None = None,
    command: str | None = None,
    fresh: bool = False,
    engine: str = "sim",
    settings: Mapping[str, object] | None = None,
    seeds: int | None = None,
    progress: Callable[[str, int], Progress] = silent,
) -> ReproduceResult:
    """Run the papers' experiments again and judge their claims.

    Parameters
    ----------
    what : str or sequence of str, optional
        Papers, figures or claims, such as ``"trim"``, ``"trim.fig4"``, ``"trim.fig4.window"``; everything unless given.
    quick : bool
        Fewer seeds and fewer points: a look, not a verdict.
    folder : Path, optional
        Where the papers are.
    command : str, optional
        What to state as the command that does the same.
    fresh : bool
        Run again what was run before.
    engine : str
        With ``"kernel"`` or ``"testbed"``, claims about real kernels run there, too: see :mod:`fanin.papers.linux`.
    settings : mapping, optional
        Keys of the scenarios and their values, in the place of what the experiments set: ``{"topology.buffer": "400p"}``. What is found is
        no verdict on the paper then, and no readings are tried.
    seeds : int, optional
        How many seeds each experiment has.
    progress : callable, optional
        Makes the progress display; see :mod:`fanin.process.progress`.

    Raises
    ------
    fanin.papers.CatalogueError
        When there is no such paper, figure or claim.
    """
    names = [what] if isinstance(what, str) else list(what or [])
    papers, wanted = select(names, folder)
    found = Results(progress, fresh)
    base = _asked_for(settings) if settings else DEFAULT
    known = base == DEFAULT and seeds is None
    courses = [
        _Course(paper, claim, (base, *(claim.readings if known else ())), quick, seeds) for paper, claim in wanted
    ]
    _follow(courses, found)
    judged = [course.verdict() for course in courses]
    if known:
        accepted = {n: one.held for n, one in enumerate(courses) if one.held is not None and one.number}
        judged = _name_the_broken(wanted, judged, accepted, found)

    def plain(request: Request) -> bool:
        return (request.reading, request.quick, request.seeds) == (base, quick, seeds)

    # Those with all seeds come last, and stay.
    ran = sorted(filter(plain, found.batches), key=_fewest_seeds)
    groups = {(r.paper.name, r.experiment): found.batches[r] for r in ran}
    data = {paper.name: found.data(paper, quick, base, seeds) for paper in papers}
    failures = {(r.paper.name, r.experiment): why for r, why in found.failures.items() if plain(r)}
    kept = [paper for paper in papers if any(p is paper for p, _ in wanted)]
    there, skipped = judged_there(wanted, found, quick, engine) if engine != "sim" else ([], [])
    told = command or written(names, quick, settings, seeds)
    result = ReproduceResult(
        judged, kept, data, groups, told, _native.VERSION, quick, not found.whole, failures, there, skipped, found.notes
    )
    result.settings, result.seeds = dict(settings or {}), seeds
    _tell_what_for(result, courses, found)
    return result


def _tell_what_for(result: ReproduceResult, courses: Sequence[_Course], found: Results) -> None:
    """Add to a result what each claim was tried under, and what its verdict rests on."""
    for course in courses:
        result.tried[course.claim.id] = [
            ("" if number == 0 else reading.name, one) for number, (reading, one, _) in course.tried.items()
        ]
        requests = course.evidence()
        if requests and all(request in found.frames for request in requests):
            result.evidence[course.claim.id] = Data({r.experiment: found.frames[r] for r in requests}, course.quick)
            result.runs[course.claim.id] = [found.batches[r] for r in requests]


def written(names: Sequence[str], quick: bool, settings: Mapping[str, object] | None, seeds: int | None) -> str:
    """The command that does the same.

    >>> written(["gss.fig4"], True, {"topology.buffer": "400p"}, 3)
    'fanin reproduce gss.fig4 --quick --set topology.buffer=400p --seeds 3'
    """
    words = ["fanin", "reproduce", *names, *(["--quick"] if quick else [])]
    words += [word for key, value in (settings or {}).items() for word in ("--set", f"{key}={value}")]
    return shlex.join([*words, *(["--seeds", str(seeds)] if seeds else [])])


def _asked_for(settings: Mapping[str, object]) -> Reading:
    """A reading that sets what was asked for, whatever an experiment's points set."""
    words = ", ".join(f"{key} = {value}" for key, value in settings.items())
    return Reading((Answer("set", words, "asked for on the command line", settings, {}, final=True),))


def select(names: Sequence[str], folder: Path | None) -> tuple[list[Paper], list[tuple[Paper, Claim]]]:
    """Every paper, and the claims that were asked for; the papers' evaluations are loaded.

    Raises
    ------
    fanin.papers.CatalogueError
        When there is no such paper, figure or claim.
    """
    papers = load(folder)
    wanted = [(paper, claim) for paper in papers for claim in paper.claims if _asked(claim, paper, names)]
    for name in names:
        if not any(_asked(claim, paper, [name]) for paper, claim in wanted):
            known = ", ".join(paper.name for paper in papers)
            figures = sorted({f"{p.name}.{c.figure}" for p in papers for c in p.claims if name.startswith(p.name)})
            raise CatalogueError(
                f"`{name}` is no paper, figure or claim: the papers are {known}"
                + (f", the figures {', '.join(figures)}" if figures else "")
            )
    for paper in papers:
        # A paper without a judgement has claims without an evaluation.
        judgement_of(paper)
    return papers, wanted


def _asked(claim: Claim, paper: Paper, names: Sequence[str]) -> bool:
    return not names or any(n in (paper.name, f"{paper.name}.{claim.figure}", claim.id) for n in names)


def _needs(paper: Paper, claim: Claim) -> list[str]:
    """Experiments of a claim and of its figure, those that exist."""
    evaluation = EVALUATIONS.get(claim.id)
    picture = PICTURES.get(f"{paper.name}.{claim.figure}")
    needs = [*(evaluation.needs if evaluation else ()), *(picture.needs if picture else ())]
    return [name for name in dict.fromkeys(needs) if name in paper.experiments]


def judge_under(paper: Paper, claim: Claim, found: Results, reading: Reading, quick: bool) -> Judged:
    """A claim's verdict from results that were run."""
    return judge_from(paper, claim, found, [Request(paper, name, reading, quick) for name in needed(claim)])


def judge_from(paper: Paper, claim: Claim, found: Results, requests: Sequence[Request]) -> Judged:
    """The same from these: one for each experiment that the claim is judged by."""
    evaluation = EVALUATIONS.get(claim.id)
    if evaluation is None:
        purely_real = claim.setup.startswith("real kernel") and "simulated" not in claim.setup
        known = _measured(paper, claim) if purely_real else None
        why = ON_TESTBED if purely_real else "no evaluation implemented"
        return known or Judged(claim.id, claim.published, "", NOT_RUN, why, 0)
    for request in requests:
        if request.experiment not in paper.experiments:
            why = f"paper.toml has no experiment `{request.experiment}`"
            return Judged(claim.id, claim.published, "", NOT_RUN, why, 0)
        if request in found.failures:
            return Judged(claim.id, claim.published, "", NOT_RUN, found.failures[request], 0)
    data = Data({r.experiment: found.frames[r] for r in requests}, any(r.quick for r in requests))
    return judge(claim.id, claim.published, data, claim.cause)


def _measured(paper: Paper, claim: Claim) -> Judged | None:
    """What was measured before of a claim that is about a host itself; None where it never was."""
    mine = [row for row in measured(paper.folder.parent) if row["claim"] == claim.id]
    if not mine:
        return None
    one = mine[-1]
    reason = f"measured before, {WHERE[one['engine']]} at {one['rate']}; `--engine {one['engine']}` measures it here"
    return Judged(claim.id, claim.published, one["ours"], one["verdict"], reason, 0)


GLANCE, FIRST, SHORT, ALL = range(4)
"""What is judged: the first quarter of the seeds; the first half; all of short experiments and the first half of long ones; all."""


@dataclass(slots=True)
class _Course:
    """A claim on its way to a verdict, by the rules of :mod:`fanin.papers.settling`: reading after reading until one holds."""

    paper: Paper
    claim: Claim
    readings: Sequence[Reading]
    """In the order in which they are tried."""
    quick: bool
    seeds: int | None
    number: int = 0
    """Of the reading that is tried now."""
    step: int = GLANCE
    last: bool = False
    """Nothing is tried after the reading that is tried now."""
    tried: dict[int, tuple[Reading, Judged, list[Request]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._begin(0, last=len(self.readings) == 1)

    def _begin(self, number: int, *, last: bool) -> None:
        self.number, self.last, self.step = number, last, FIRST if last else GLANCE

    def requests(self) -> list[Request]:
        """What is to be run next."""
        reading = self.readings[self.number]
        asked = [Request(self.paper, name, reading, self.quick, self.seeds) for name in needed(self.claim)]
        if self.step == GLANCE:
            return [one.begun(glance) for one in asked]
        return [one.begun() if self.step == FIRST or (self.step == SHORT and one.is_long) else one for one in asked]

    def judge(self, found: Results) -> bool:
        """Judge what was run; True when more is needed for a verdict."""
        requests = self.requests()
        one = judge_from(self.paper, self.claim, found, requests)
        cut = [request.experiment for request in requests if request.upto]
        # Few seeds may lack what all have; what cannot be run at all is told as it is.
        if cut and all(request in found.frames for request in requests):
            data = Data({r.experiment: found.frames[r] for r in requests}, self.quick)
            if self.step == GLANCE:
                done = one.verdict == DIFFERS and left(self.claim.id, data)
            else:
                done = settled(one, data, {r.experiment: r.all_seeds for r in requests}, cut)
            if not done:
                # Where no experiment is short, or all are, there is nothing between the first half and all.
                mixed = {request.is_long for request in requests if request.begun().upto} == {True, False}
                self.step = self.step + 1 if self.step == GLANCE or mixed else ALL
                return True
            one = replace(one, most=max(request.all_seeds for request in requests))
        self.tried[self.number] = (self.readings[self.number], one, requests)
        return self._goes_on(one)

    def _goes_on(self, one: Judged) -> bool:
        """To the next reading; from the last one back to the first, where a glance alone spoke against it."""
        if one.verdict != DIFFERS or (self.last and self.number == 0):
            return False
        if self.number + 1 < len(self.readings):
            self._begin(self.number + 1, last=self.number + 2 == len(self.readings))
            return True
        glanced = any(r.upto and r.upto < first_part(r.all_seeds) for r in self.tried[0][2])
        self._begin(0, last=True)
        return glanced

    @property
    def held(self) -> Reading | None:
        """The reading under which every check holds."""
        reading, one, _ = self.tried[self.number]
        return reading if one.verdict == REPRODUCED else None

    def evidence(self) -> list[Request]:
        """What the verdict rests on."""
        return self.tried[self.number if self.held else 0][2]

    def verdict(self) -> Judged:
        """That of the first reading, unless one of the others holds."""
        first, (reading, last, _) = self.tried[0][1], self.tried[self.number]
        if self.held is None or self.number == 0:
            return first
        default = "; ".join(first.failed) or first.reason.split(WHY)[0]
        reason = "; ".join(x for x in (f"under the default reading it is not so that {default}", last.reason) if x)
        return replace(
            last, verdict=UNDER, reason=reason, reading=reading.name, says=reading.says, switches=reading.switches
        )


def _follow(courses: Sequence[_Course], found: Results) -> None:
    """Run and judge until each has a verdict; what figures need besides is run with the first, on as few seeds."""
    drawn = [
        Request(one.paper, name, one.readings[0], one.quick, one.seeds).begun(first_part if one.last else glance)
        for one in courses
        for name in _needs(one.paper, one.claim)
    ]
    left = list(courses)
    while left:
        found.run([*drawn, *(request for course in left for request in course.requests())])
        left = [course for course in left if course.judge(found)]


def _name_the_broken(
    wanted: Sequence[tuple[Paper, Claim]], judged: list[Judged], accepted: Mapping[int, Reading], found: Results
) -> list[Judged]:
    """What an accepted reading breaks, on the points and seeds of ``--quick``."""
    pairs = [
        (n, other, accepted.get(other, DEFAULT))
        for n in accepted
        for other in range(len(wanted))
        if other != n and wanted[other][0] is wanted[n][0] and judged[other].holds and needed(wanted[other][1])
    ]
    pairs = [(n, other, own) for n, other, own in pairs if own != accepted[n]]
    found.run([Request(wanted[o][0], e, own, True) for _, o, own in pairs for e in needed(wanted[o][1])])
    # What does not hold on these points and seeds by itself tells nothing of the reading.
    pairs = [(n, o, own) for n, o, own in pairs if judge_under(*wanted[o], found, own, True).verdict == REPRODUCED]
    found.run([Request(wanted[o][0], e, accepted[n], True) for n, o, _ in pairs for e in needed(wanted[o][1])])
    breaks: dict[int, list[str]] = {}
    for n, other, _ in pairs:
        if judge_under(*wanted[other], found, accepted[n], True).verdict == DIFFERS:
            breaks.setdefault(n, []).append(wanted[other][1].id)
    return [replace(one, breaks=tuple(breaks.get(n, ()))) for n, one in enumerate(judged)]


def needed(claim: Claim) -> tuple[str, ...]:
    """Experiments that a claim is judged by."""
    return EVALUATIONS[claim.id].needs if claim.id in EVALUATIONS else ()
