"""From results to verdicts: what evaluations are given and what they give back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import polars as pl

from fanin.errors import FaninError

if TYPE_CHECKING:
    from fanin.papers.drawing import Figure

Frames = Mapping[str, pl.DataFrame]

REPRODUCED, UNDER, DIFFERS, NOT_RUN = "reproduced", "reproduced under a reading", "differs", "not run"
VERDICTS = (REPRODUCED, UNDER, DIFFERS, NOT_RUN)
"""Every check holds under the default reading of the paper; all hold under another that its text permits; neither; not run."""


@dataclass(frozen=True, slots=True)
class Data:
    """Results of the experiments that a claim or figure needs.

    ``data["fig4"]["flows"]`` has the experiment's axes as columns, then ``cc``, ``seed``, and the frame's own.
    """

    frames: Mapping[str, Frames]
    quick: bool = False
    half: bool = False
    """Half of the seeds, as :meth:`halves` gives them: an interval that needs them all is not asked for again."""

    def __getitem__(self, experiment: str) -> Frames:
        return self.frames[experiment]

    def halves(self) -> tuple[Data, Data]:
        """The same with the lower and with the upper half of the seeds. Experiments may have different numbers of them."""

        def cut(frames: Frames, lower: bool) -> Frames:
            seeds = _seeds(frames)
            if len(seeds) < 2:
                return frames
            middle = seeds[len(seeds) // 2]
            keep = pl.col("seed") < middle if lower else pl.col("seed") >= middle
            return {name: rows.filter(keep) for name, rows in frames.items()}

        lower, upper = ({n: cut(f, low) for n, f in self.frames.items()} for low in (True, False))
        return Data(lower, self.quick, True), Data(upper, self.quick, True)

    def seeds(self) -> list[int]:
        """Every seed that was run, in order."""
        return sorted({s for frames in self.frames.values() for s in _seeds(frames)})


def _seeds(frames: Frames) -> list[int]:
    return sorted({s for rows in frames.values() for s in rows["seed"].unique()})


@dataclass(frozen=True, slots=True)
class Outcome:
    """What we got, and whether it is inside the band.

    Attributes
    ----------
    ours : str
        In the words and units of what was published.
    holds : bool
        Every condition of the band holds.
    reason : str
        Which condition does not, or what else has to be said.
    failed : tuple of str
        The conditions that do not hold.
    anywhere : tuple of str
        Those of them that ask something of every point, without what was measured in brackets: where they fail on some points they fail on all.
    each : bool
        There are conditions of this kind, whether they hold or not: only then some of the points can decide.
    """

    ours: str
    holds: bool
    reason: str = ""
    failed: tuple[str, ...] = ()
    anywhere: tuple[str, ...] = ()
    each: bool = False


@dataclass(slots=True)
class Checks:
    """Conditions of a band, gathered one by one.

    >>> checks = Checks()
    >>> checks.that(5 > 3, "five is above three")
    >>> checks.that(1 > 3, "one is above three")
    >>> checks.outcome("5 and 1")
    Outcome(ours='5 and 1', holds=False, reason='not so: one is above three', failed=('one is above three',), anywhere=(), each=False)
    """

    failed: list[str] = field(default_factory=list)
    anywhere: list[str] = field(default_factory=list)
    each: bool = False

    def that(self, condition: bool, statement: str, *, each: bool = False) -> None:
        """Note a condition, stated as what should be true; `each` where it asks something of every point that was run."""
        self.each = self.each or each
        if not condition:
            self.failed.append(statement)
            if each:
                self.anywhere.append(statement.partition(" (")[0])

    def outcome(self, ours: str, remark: str = "") -> Outcome:
        """The verdict of all of them."""
        why = f"not so: {'; '.join(self.failed)}" if self.failed else ""
        reason = "; ".join(x for x in (why, remark) if x)
        return Outcome(ours, not self.failed, reason, tuple(self.failed), tuple(self.anywhere), self.each)


class LacksError(FaninError):
    """Results lack what an evaluation needs: there is no verdict."""


def whole(table: pl.DataFrame, algorithms: Iterable[str], flows: int) -> None:
    """Nothing, where each run of a throughput table has bytes of every flow; without one flow the others look fair.

    Parameters
    ----------
    table : polars.DataFrame
        With the columns ``cc``, ``seed``, ``flow`` and ``bytes``.
    algorithms : iterable of str
        Each of them was run.
    flows : int
        Number of flows of a run; they are numbered from 0.

    Raises
    ------
    LacksError
        When a run or a flow of it is missing.

    Examples
    --------
    >>> table = pl.DataFrame({"cc": "cubic", "seed": 1, "flow": [0, 2], "bytes": [9, 9]})
    >>> whole(table, ["cubic"], 3)
    Traceback (most recent call last):
    ...
    fanin.papers.verdicts.LacksError: of cubic, seed 1, nothing arrived of flow 1
    """
    for cc in algorithms:
        runs = table.filter(pl.col("cc") == cc)
        if runs.is_empty():
            raise LacksError(f"of {cc} there are no results")
        for (seed,), rows in runs.group_by("seed", maintain_order=True):
            there = set(rows.filter(pl.col("bytes") > 0)["flow"])
            lost = [str(flow) for flow in range(flows) if flow not in there]
            if lost:
                raise LacksError(f"of {cc}, seed {seed}, nothing arrived of flow {', '.join(lost)}")


Evaluate = Callable[[Data], Outcome]
EvaluateT = TypeVar("EvaluateT", bound=Evaluate)
Draw = Callable[[Data], "Figure"]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """How a claim is judged."""

    judge: Evaluate
    needs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Picture:
    """How a figure is drawn."""

    draw: Draw
    needs: tuple[str, ...]
    title: str
    caption: str


WHY = ". Why: "
"""In the reason of a claim that differs: between which conditions do not hold and the cause."""

EVALUATIONS: dict[str, Evaluation] = {}
"""By claim."""

ON_HOST: dict[str, Evaluation] = {}
"""By claim: what no engine simulates, a host's processor time; it needs what the testbed measures of a host."""

PICTURES: dict[str, Picture] = {}
"""By ``paper.figure``."""


def claim(name: str, *needs: str) -> Callable[[EvaluateT], EvaluateT]:
    """Register the evaluation of a claim and the experiments that it needs."""

    def register(judge: EvaluateT) -> EvaluateT:
        EVALUATIONS[name] = Evaluation(judge, needs)
        return judge

    return register


def claim_on_host(name: str, *needs: str) -> Callable[[Evaluate], Evaluate]:
    """Register the evaluation of a claim about a host itself, and what of :data:`fanin.papers.linux.MEASURED` it needs."""

    def register(judge: Evaluate) -> Evaluate:
        ON_HOST[name] = Evaluation(judge, needs)
        return judge

    return register


def figure(name: str, *needs: str, title: str, caption: str = "") -> Callable[[Draw], Draw]:
    """Register the drawing of a figure (``paper.figure``), the experiments that it needs, and the words above and below it."""

    def register(draw: Draw) -> Draw:
        PICTURES[name] = Picture(draw, needs, title, caption)
        return draw

    return register


@dataclass(frozen=True, slots=True)
class Judged:
    """A claim with its verdict, one of :data:`VERDICTS`.

    Attributes
    ----------
    reading, says : str
        The reading under which every check holds and where the paper permits it, with the verdict :data:`UNDER`; otherwise empty.
    switches : tuple of str
        What the reading sets.
    breaks : tuple of str
        Other claims of the paper that hold under the default reading or under one of their own, and not under this one.
    """

    id: str
    published: str
    ours: str
    verdict: str
    reason: str
    seeds: int
    reading: str = ""
    says: str = ""
    switches: tuple[str, ...] = ()
    breaks: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    """Conditions that do not hold."""
    most: int = 0
    """How many seeds there are, where the first half of them settled the verdict; otherwise 0."""

    @property
    def holds(self) -> bool:
        """Every check holds, under the default reading or another."""
        return self.verdict in (REPRODUCED, UNDER)

    def to_dict(self) -> dict[str, Any]:
        """As it stands in JSON."""
        found = {n: getattr(self, n) for n in ("id", "published", "ours", "verdict", "reason", "seeds")}
        if self.most:
            found["most_seeds"] = self.most
        if self.reading:
            found["reading"] = {
                "name": self.reading,
                "says": self.says,
                "switches": list(self.switches),
                "breaks": list(self.breaks),
            }
        return found


def judge(name: str, published: str, data: Data, cause: str = "") -> Judged:
    """The verdict over all seeds, if the two halves of the seeds agree with it; :data:`NOT_RUN` where the results lack what it needs.

    Parameters
    ----------
    name : str
        The claim.
    published : str
        What the paper says.
    data : Data
        With every experiment that the evaluation needs.
    cause : str
        Why ours differs, for when it does.
    """
    evaluate = (EVALUATIONS | ON_HOST)[name].judge
    seeds = data.seeds()
    try:
        found = evaluate(data)
        halves = list(map(evaluate, data.halves())) if found.holds and len(seeds) > 1 else []
    except LacksError as lacks:
        return Judged(name, published, "", NOT_RUN, f"the results are not whole: {lacks}", len(seeds))
    except KeyError as lacks:
        return Judged(name, published, "", NOT_RUN, f"the results are not whole: they lack {lacks}", len(seeds))
    reason = found.reason
    holds = found.holds
    if halves:
        unstable = [h for h in halves if not h.holds]
        if unstable:
            holds = False
            reason = f"it holds over all {len(seeds)} seeds but flips over half of them ({unstable[0].reason})"
    if not holds and cause:
        reason = f"{reason}{WHY}{cause}" if reason else cause
    verdict = REPRODUCED if holds else DIFFERS
    return Judged(name, published, found.ours, verdict, reason, len(seeds), failed=found.failed)


def listed(values: Iterable[float | int | None], digits: int = 0) -> str:
    """Numbers for a sentence.

    >>> listed([1.26, 2, None], 1)
    '1.3, 2.0, none'
    """
    return ", ".join("none" if v is None else f"{v:.{digits}f}" for v in values)
