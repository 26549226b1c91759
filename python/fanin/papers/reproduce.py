"""Runs what a set of claims needs, judges them, and writes what was found."""

from __future__ import annotations

import importlib
import importlib.util
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fanin import _native
from fanin.errors import FaninError
from fanin.papers import experiments
from fanin.papers.catalogue import CatalogueError, Claim, Paper, load
from fanin.papers.verdicts import EVALUATIONS, PICTURES, Data, Frames, Judged, judge
from fanin.progress import Progress, silent

if TYPE_CHECKING:
    from fanin.papers.experiments import Batch

NO_TESTBED = "it is about a real kernel, and there is no testbed to measure it on"


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
        Somebody stopped it; what was run by then is kept for the next time.
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

    @property
    def complete(self) -> bool:
        """Every claim was run."""
        return all(one.verdict != "not run" for one in self.claims)

    def count(self, verdict: str, paper: str | None = None) -> int:
        """How many claims have this verdict."""
        return sum(c.verdict == verdict and (paper is None or c.id.startswith(f"{paper}.")) for c in self.claims)

    def to_dict(self) -> dict[str, Any]:
        """The object that ``fanin reproduce --json`` prints."""
        return {
            "version": self.version,
            "command": self.command,
            "quick": self.quick,
            "claims": [one.to_dict() for one in self.claims],
        }

    def write_files(self, folder: Path, pictures: Sequence[str] = ()) -> None:
        """Write ``gallery.html``, ``claims.json`` and, in the formats that `pictures` names, each figure to a folder."""
        from fanin.papers.gallery import write

        folder.joinpath("claims.json").write_text(json.dumps(self.to_dict(), indent=1, allow_nan=False) + "\n")
        write(self, folder, pictures)


def reproduce(
    what: str | Sequence[str] | None = None,
    *,
    quick: bool = False,
    folder: Path | None = None,
    command: str | None = None,
    fresh: bool = False,
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
    progress : callable, optional
        Makes the progress display; see :mod:`fanin.progress`.

    Raises
    ------
    fanin.papers.CatalogueError
        When there is no such paper, figure or claim.
    """
    names = [what] if isinstance(what, str) else list(what or [])
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
        # A paper without a module has claims that nobody has written the judgement of yet.
        if importlib.util.find_spec(f"fanin.papers.{paper.name}"):
            importlib.import_module(f"fanin.papers.{paper.name}")

    needed: dict[tuple[str, str], list[Batch]] = {}
    failures: dict[tuple[str, str], str] = {}
    for paper, claim in wanted:
        for experiment in _needs(paper, claim):
            if (paper.name, experiment) not in needed:
                needed[paper.name, experiment] = experiments.batches(paper, paper.experiments[experiment], quick=quick)
    work = [batch for group in needed.values() for batch in group]
    done, whole = experiments.run_all(work, progress, fresh=fresh)

    frames: dict[str, dict[str, Frames]] = {paper.name: {} for paper in papers}
    position = 0
    for (paper_name, experiment), group in needed.items():
        got = done[position : position + len(group)]
        position += len(group)
        errors = [str(one) for one in got if isinstance(one, FaninError)]
        found = [one for one in got if one is not None and not isinstance(one, FaninError)]
        if errors:
            failures[paper_name, experiment] = errors[0]
        elif len(found) < len(got):
            failures[paper_name, experiment] = "interrupted before it was run; the same command goes on from there"
        else:
            frames[paper_name][experiment] = experiments.gather(found)
    data = {name: Data(of, quick) for name, of in frames.items()}
    judged = [_judge(paper, claim, data[paper.name], failures) for paper, claim in wanted]
    kept = [paper for paper in papers if any(p is paper for p, _ in wanted)]
    told = command or " ".join(["fanin reproduce", *names, *(["--quick"] if quick else [])])
    return ReproduceResult(judged, kept, data, needed, told, _native.VERSION, quick, not whole, failures)


def _asked(claim: Claim, paper: Paper, names: Sequence[str]) -> bool:
    return not names or any(n in (paper.name, f"{paper.name}.{claim.figure}", claim.id) for n in names)


def _needs(paper: Paper, claim: Claim) -> list[str]:
    """Experiments of a claim and of its figure, those that exist."""
    evaluation = EVALUATIONS.get(claim.id)
    picture = PICTURES.get(f"{paper.name}.{claim.figure}")
    needs = [*(evaluation.needs if evaluation else ()), *(picture.needs if picture else ())]
    return [name for name in dict.fromkeys(needs) if name in paper.experiments]


def _judge(paper: Paper, claim: Claim, data: Data, failures: dict[tuple[str, str], str]) -> Judged:
    evaluation = EVALUATIONS.get(claim.id)
    if evaluation is None:
        purely_real = claim.setup.startswith("real kernel") and "simulated" not in claim.setup
        why = NO_TESTBED if purely_real else "nobody has written how it is judged yet"
        return Judged(claim.id, claim.published, "", "not run", why, 0)
    for name in evaluation.needs:
        if name not in paper.experiments:
            return Judged(claim.id, claim.published, "", "not run", f"paper.toml has no experiment `{name}`", 0)
        if (paper.name, name) in failures:
            return Judged(claim.id, claim.published, "", "not run", failures[paper.name, name], 0)
    return judge(claim.id, claim.published, Data({n: data[n] for n in evaluation.needs}, data.quick), claim.cause)
