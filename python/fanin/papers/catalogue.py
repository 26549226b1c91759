"""What `papers/` says: papers, their claims, and the experiments that answer them."""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fanin.errors import FaninError


class CatalogueError(FaninError, ValueError):
    """Something in `papers/` cannot be used, or a paper, figure or claim that was asked for does not exist."""


@dataclass(frozen=True, slots=True)
class Point:
    """One value of an axis: what it is called in results, and what it sets in the scenario."""

    label: str | int | float
    settings: Mapping[str, object]
    cost: float = 1.0
    quick: bool = True
    cc: str | None = None
    """The algorithm, on the axis of algorithms."""
    default: Mapping[str, object] = field(default_factory=dict)
    """What it sets unless a reading sets it otherwise."""


@dataclass(frozen=True, slots=True)
class Axis:
    """A column of the results: every combination of the axes' points is run."""

    name: str
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class Experiment:
    """A scenario under every combination of algorithms, settings and seeds.

    Attributes
    ----------
    name : str
        How evaluations find it.
    scenario : Path
        Scenario file.
    axes : tuple of Axis
        The last is ``cc``: the algorithms.
    seeds, quick : int
        How many seeds in full and with ``--quick``.
    frames : tuple of str
        What is kept of each run: names of frames of :class:`fanin.RunResult`.
    reduce : str or None
        Function of the paper's module that makes smaller frames of each batch of runs before they are kept.
    cost : float
        Seconds of one run, roughly: long runs begin first, and the estimate of the time left weighs by it.
    """

    name: str
    scenario: Path
    axes: tuple[Axis, ...]
    seeds: int
    quick: int
    frames: tuple[str, ...]
    reduce: str | None
    cost: float
    most: int | None = None
    """The most seeds that it has, whatever a reading asks for."""

    def seeds_under(self, reading: Reading) -> int:
        """How many seeds its verdict has under a reading, in full."""
        asked = self.seeds * reading.times
        return asked if self.most is None else min(asked, self.most)


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """One answer to a question that a paper leaves open.

    Attributes
    ----------
    question, name : str
        As in ``initial window: 10``.
    says : str
        The place in the paper that leaves it open, or that permits this answer.
    settings : mapping
        What it sets in every scenario.
    parts : mapping
        What it sets where the algorithm's name has this part, as ``trim`` or ``gss``.
    experiments : tuple of str
        The experiments that it is about; all if empty.
    final : bool
        It has the last word over the points of an experiment, as a change to the algorithm itself has.
    replace : mapping
        Parts of an algorithm's name that another takes the place of; the empty name leaves the part out.
    drop : tuple of str
        What keys of an experiment's points begin with that are left out.
    """

    question: str
    name: str
    says: str
    settings: Mapping[str, object]
    parts: Mapping[str, Mapping[str, object]]
    experiments: tuple[str, ...] = ()
    final: bool = False
    replace: Mapping[str, str] = field(default_factory=dict)
    drop: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """Question and answer."""
        return f"{self.question}: {self.name}"


@dataclass(frozen=True, slots=True)
class Reading:
    """How a paper can be read: an answer to each of some of its open questions. The default reading answers none.

    >>> window = Answer("initial window", "10", "section 3.3", {"stack.initial_window": 10}, {})
    >>> Reading((window,)).name
    'initial window: 10'
    """

    answers: tuple[Answer, ...] = ()
    engine: str = "sim"
    """Whose TCP runs."""
    without: tuple[str | int, ...] = ()
    """Labels of points that are not run on this engine."""
    times: int = 1
    """How many times an experiment's seeds its verdict needs, as ``fanin reproduce --search`` found or ``under`` in ``paper.toml`` says."""

    @property
    def name(self) -> str:
        """Every answer; empty for the default reading."""
        return " + ".join(answer.label for answer in self.answers)

    @property
    def says(self) -> str:
        """Where the paper permits it."""
        return "; ".join(dict.fromkeys(answer.says for answer in self.answers))

    @property
    def switches(self) -> tuple[str, ...]:
        """What it sets, as a scenario's keys; a part of an algorithm's name stands before what is set for it alone."""
        found = [f"{key} = {value}" for answer in self.answers for key, value in answer.settings.items()]
        found += [
            f"{part}: {key} = {value}"
            for answer in self.answers
            for part, settings in answer.parts.items()
            for key, value in settings.items()
        ]
        return tuple(found)

    def algorithm(self, cc: str | None) -> str | None:
        """The algorithm that runs in the place of another."""
        parts = (cc or "").split("+")
        for answer in self.answers:
            parts = [new for part in parts for new in answer.replace.get(part, part).split("+")]
        # What takes the place of `newreno` may be `tcprand+newreno`, also where `tcprand` is there already.
        return "+".join(dict.fromkeys(part for part in parts if part)) or None

    def dropped(self, key: str, experiment: str, cc: str | None) -> bool:
        """Whether a key that a point sets is left out under one algorithm, since what runs does not know it."""
        parts = (cc or "").split("+")
        about = [a for a in self.answers if not a.experiments or experiment in a.experiments]
        about = [a for a in about if not (a.parts or a.replace) or {*a.parts, *a.replace}.intersection(parts)]
        return any(key.startswith(start) for answer in about for start in answer.drop)

    def settings(self, experiment: str, cc: str | None, *, final: bool = False) -> dict[str, object]:
        """What it sets in one scenario under one algorithm: before the experiment's points do, or finally."""
        found: dict[str, object] = {}
        for answer in self.answers:
            if answer.final != final or (answer.experiments and experiment not in answer.experiments):
                continue
            found |= answer.settings
            for part, settings in answer.parts.items():
                if part in (cc or "").split("+"):
                    found |= settings
        return found


DEFAULT = Reading()


@dataclass(frozen=True, slots=True)
class Shown:
    """A command that anybody can run, and what it gave: why a claim differs.

    Attributes
    ----------
    run : str
        From the folder above `papers`.
    gives : str
        Its numbers, beside those that they are to be compared with.
    """

    run: str
    gives: str


@dataclass(frozen=True, slots=True)
class Claim:
    """What a paper publishes, as something that can be checked.

    Attributes
    ----------
    id : str
        ``paper.figure.what``, sometimes ``paper.what``.
    kind : {"value", "shape"}
        A number with a band (`within`), or a relation (`holds_when`).
    setup, published, band : str
        Word for word; for a shape `published` is the relation.
    note : str
        What is odd about it.
    cause : str
        Why ours differs, found by experiment; empty while it does not.
    known : str
        Readings under which it is known to hold, in words.
    readings : tuple of Reading
        The same as settings: tried in this order where the default reading fails.
    shown : tuple of Shown
        Experiments that show the cause.
    no_mutant : str
        Why it holds whatever rule an algorithm lacks; empty where it fails for a mutant.
    """

    id: str
    kind: str
    setup: str
    published: str
    band: str
    note: str
    cause: str
    known: str = ""
    readings: tuple[Reading, ...] = ()
    shown: tuple[Shown, ...] = ()
    no_mutant: str = ""

    @property
    def figure(self) -> str:
        """Figure or table, the second part of the id."""
        return self.id.split(".")[1]


@dataclass(frozen=True, slots=True, eq=False)
class Mutant:
    """An algorithm, a model or a workload of a paper without the rule that distinguishes it: some claim of the paper must fail for it.

    Attributes
    ----------
    algorithm, name : str
        As in ``dctcp: alpha fixed at 1``.
    rule : str
        The rule that is taken away, and where the paper states it.
    change : Answer
        What is changed, as a reading's answer is.
    claims : tuple of str
        Claims that are judged with it; all that hold and in whose experiments the algorithm runs if empty.
    formula : str
        Function of the paper's judgement that judges a claim about a closed form with the changed form; nothing is simulated then.
    """

    algorithm: str
    name: str
    rule: str
    change: Answer
    claims: tuple[str, ...] = ()
    formula: str = ""

    @property
    def label(self) -> str:
        """Algorithm and change."""
        return f"{self.algorithm}: {self.name}"


@dataclass(frozen=True, slots=True, eq=False)
class Paper:
    """One paper."""

    name: str
    title: str
    source: str
    proposes: str
    folder: Path
    claims: tuple[Claim, ...]
    experiments: Mapping[str, Experiment] = field(default_factory=dict)
    answers: tuple[Answer, ...] = ()
    """Every answer to every question that the paper leaves open, but for the default ones."""
    mutants: tuple[Mutant, ...] = ()


def papers_folder() -> Path:
    """Where the papers are: those of the source tree that this module stands in, or those that `make wheel` packed.

    They belong to one version with this package and hold Python that is executed. So ``papers`` of the working folder is used only where there
    are no others; other papers are named by `folder` of :func:`fanin.reproduce`.

    Raises
    ------
    CatalogueError
        When there is none.
    """
    here = Path(__file__).resolve()
    local = Path("papers")
    for folder in (here.parents[3] / "papers", here.parent / "published", local):
        if (folder / "index.toml").is_file():
            # The shorter name of the same folder, for messages.
            return local if local.is_dir() and local.samefile(folder) else folder
    raise CatalogueError(
        "there is no folder `papers` with an index.toml here: go to fanin's source tree, which has them"
    )


def load(folder: Path | None = None) -> list[Paper]:
    """Every paper of the index, in its order.

    Raises
    ------
    CatalogueError
        With file and key, when something in it cannot be used.
    """
    folder = folder or papers_folder()
    index = _read(folder / "index.toml")
    found = searched(folder)
    return [_paper(folder / str(place), name, found) for name, place in index.get("papers", {}).items()]


SEARCHED = "searched.csv"
"""Beside the papers: every reading that ``fanin reproduce --search`` judged."""


def searched(folder: Path) -> list[dict[str, str]]:
    """What the search of readings found: rows of claim, reading, verdict, seeds as a multiple of the experiments' own, and why; [] before."""
    file = folder / SEARCHED
    if not file.is_file():
        return []
    with file.open(encoding="utf-8", newline="") as rows:
        return list(csv.DictReader(rows))


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise CatalogueError(f"{file}: it cannot be read ({(error.strerror or 'unknown reason').lower()})") from error
    except tomllib.TOMLDecodeError as error:
        raise CatalogueError(f"{file}: it is not TOML: {error}") from error


def _paper(folder: Path, name: str, found: Sequence[Mapping[str, str]]) -> Paper:
    file = folder / "paper.toml"
    table = _read(file)
    try:
        answers = tuple(answer for row in table.pop("question", []) for answer in _answers(row))
        claims = tuple(_claim(row, name, answers, found) for row in table.pop("claim", []))
        experiments = {row["name"]: _experiment(row, folder) for row in table.pop("experiment", [])}
        mutants = tuple(_mutant(row) for row in table.pop("mutant", []))
        known = {claim.id for claim in claims}
        if unknown := [claim for one in mutants for claim in one.claims if claim not in known]:
            raise ValueError(f"mutant of `{unknown[0]}`: there is no such claim")
        heading = (table["title"], table["source"], table["proposes"])
        return Paper(name, *heading, folder, claims, experiments, answers, mutants)
    except KeyError as error:
        raise CatalogueError(f"{file}: the key {error} is missing") from error
    except ValueError as error:
        raise CatalogueError(f"{file}: {error}") from error


def _answers(row: dict[str, Any]) -> list[Answer]:
    return [
        Answer(
            row["name"],
            str(answer["name"]),
            answer.get("says", row["says"]),
            answer.get("set", {}),
            answer.get("cc", {}),
            tuple(answer.get("experiments", ())),
            drop=tuple(answer.get("drop", ())),
        )
        for answer in row["answers"]
    ]


def _mutant(row: dict[str, Any]) -> Mutant:
    change = Answer(
        row["algorithm"],
        row["name"],
        row["rule"],
        row.get("set", {}),
        row.get("cc", {}),
        final=True,
        replace=row.get("replace", {}),
        drop=tuple(row.get("drop", ())),
    )
    claims, formula = tuple(row.get("claims", ())), row.get("formula", "")
    return Mutant(row["algorithm"], row["name"], row["rule"], change, claims, formula)


def _reading(text: str, answers: tuple[Answer, ...], claim: str, times: int = 1) -> Reading:
    known = {answer.label: answer for answer in answers}
    if missing := [label for label in text.split(" + ") if label not in known]:
        raise ValueError(f"claim `{claim}`: no question has the answer `{missing[0]}`")
    return Reading(tuple(known[label] for label in text.split(" + ")), times=times)


def _claim(row: dict[str, Any], paper: str, answers: tuple[Answer, ...], found: Sequence[Mapping[str, str]]) -> Claim:
    kind = row["kind"]
    if not row["id"].startswith(f"{paper}.") or kind not in ("value", "shape"):
        raise ValueError(f"claim `{row['id']}`: its id must begin with `{paper}.` and its kind be value or shape")
    # A relation is its own band.
    published, band = (row["published"], row["within"]) if kind == "value" else (row["holds_when"], "")
    stated = [one if isinstance(one, dict) else {"reading": one} for one in row.get("under", [])]
    readings = tuple(_reading(one["reading"], answers, row["id"], one.get("times", 1)) for one in stated)
    named = {reading.name for reading in readings}
    # What the search found comes after what was known; an answer that was taken out of the paper's questions ends its rows.
    labels = {answer.label for answer in answers}
    mine = [one for one in found if one["claim"] == row["id"] and one["verdict"] == "yes" and one["reading"]]
    hold = [one for one in mine if one["reading"] not in named]
    readings += tuple(
        _reading(one["reading"], answers, row["id"], int(one["times"]))
        for one in hold
        if labels.issuperset(one["reading"].split(" + "))
    )
    note, cause, known, no_mutant = (str(row.get(key, "")) for key in ("note", "cause", "readings", "no_mutant"))
    shown = tuple(Shown(one["run"], one["gives"]) for one in row.get("shown", []))
    return Claim(row["id"], kind, row["setup"], published, band, note, cause, known, readings, shown, no_mutant)


def _experiment(row: dict[str, Any], folder: Path) -> Experiment:
    axes = [_axis(axis) for axis in row.get("axes", [])]
    algorithms = [_algorithm(one) for one in row["cc"]]
    axes.append(Axis("cc", tuple(algorithms)))
    seeds = row.get("seeds", 1)
    return Experiment(
        name=row["name"],
        scenario=folder / row["scenario"],
        axes=tuple(axes),
        seeds=seeds,
        quick=min(seeds, row.get("quick", seeds)),
        frames=tuple(row.get("frames", ["flows"])),
        reduce=row.get("reduce"),
        cost=float(row.get("cost", 0.01)),
        most=row.get("most"),
    )


def _axis(row: dict[str, Any]) -> Axis:
    if "values" in row:
        quick = row.get("quick", row["values"])
        return Axis(row["name"], tuple(Point(v, {row["key"]: v}, quick=v in quick) for v in row["values"]))
    return Axis(row["name"], tuple(_point(point) for point in row["points"]))


def _point(row: dict[str, Any]) -> Point:
    return Point(
        row["label"],
        row.get("set", {}),
        row.get("cost", 1.0),
        row.get("quick", True),
        default=row.get("default", {}),
    )


def _algorithm(row: str | dict[str, Any]) -> Point:
    if isinstance(row, str):
        return Point(row, {}, cc=row)
    label = row.get("label", row["name"])
    return Point(label, row.get("set", {}), row.get("cost", 1.0), row.get("quick", True), cc=row["name"])
