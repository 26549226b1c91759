"""Claims must know the algorithm: each algorithm of a paper without its distinguishing rule has to fail one of the paper's claims.

The mutants stand in ``papers/<paper>/paper.toml`` (``[[mutant]]``). Each is judged on the claims that hold for the whole algorithm, by the same
checks, on all points and seeds, under the reading under which the claim holds; of claims that differ, which a mutant has to name, the checks that
do hold count. A check is failed when it is over all seeds and over either half. Claims about a closed form are judged with another form.
``make claim-mutants`` writes ``papers/mutants.csv``.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from fanin.papers.catalogue import DEFAULT, Claim, Mutant, Paper, Reading
from fanin.papers.judgement import judgement_of
from fanin.papers.reproduce import Request, Results, judge_under, needed, select
from fanin.papers.settling import in_words
from fanin.papers.verdicts import EVALUATIONS, REPRODUCED, Data, Evaluate
from fanin.process.progress import Progress, silent

FILE = "mutants.csv"
"""Beside the papers: what was found last."""

KILLED, SURVIVES, FAILED = "killed", "survives", "not simulated"


@dataclass(frozen=True, slots=True)
class Hunted:
    """One claim judged with one mutant.

    Attributes
    ----------
    result : str
        :data:`KILLED` when a check fails that holds for the whole algorithm, :data:`FAILED` when a simulation does not run, which kills nothing,
        otherwise :data:`SURVIVES`.
    why : str
        The first check that fails, or why a simulation does not run.
    """

    paper: str
    mutant: str
    claim: str
    result: str
    why: str


def concerns(mutant: Mutant, paper: Paper, claim: Claim) -> bool:
    """Whether the mutant names the claim, or names none and its algorithm runs in an experiment of the claim."""
    if mutant.claims:
        return claim.id in mutant.claims
    points = [point for name in needed(claim) for point in paper.experiments[name].axes[-1].points]
    return any(mutant.algorithm in (point.cc or "").split("+") for point in points)


def hunt(
    what: Sequence[str] = (),
    *,
    folder: Path | None = None,
    fresh: bool = False,
    progress: Callable[[str, int], Progress] = silent,
) -> tuple[list[Hunted], bool]:
    """Judge the claims that hold with every mutant.

    Parameters
    ----------
    what : sequence of str
        Papers, figures or claims; everything unless given.
    folder, fresh, progress
        As in :func:`fanin.papers.reproduce`.

    Returns
    -------
    list of Hunted
        By paper, mutant and claim.
    bool
        False after an interrupt.

    Raises
    ------
    fanin.papers.CatalogueError
        When there is no such paper, figure or claim.
    """
    _, wanted = select(what, folder)
    pairs = [
        (paper, mutant, claim) for paper, claim in wanted for mutant in paper.mutants if concerns(mutant, paper, claim)
    ]
    found = Results(progress, fresh)
    own = _held(dict.fromkeys((paper, claim) for paper, _, claim in pairs), found)
    tested = []
    for paper, mutant, claim in pairs:
        reading = own.get((paper, claim), DEFAULT)
        if (paper, claim) not in own and claim.id not in mutant.claims:
            continue
        without = replace(reading, answers=(*reading.answers, mutant.change))
        requests = [Request(paper, name, one, False) for one in (reading, without) for name in needed(claim)]
        found.run(requests)
        if not found.whole:
            break
        if why := next((found.failures[one] for one in requests if one in found.failures), ""):
            tested.append(Hunted(paper.name, mutant.label, claim.id, FAILED, why))
            continue
        whole = EVALUATIONS[claim.id].judge
        changed = getattr(judgement_of(paper), mutant.formula) if mutant.formula else whole
        noticed = [_failed(paper, claim, found, *how) for how in ((reading, whole), (without, changed))]
        # Of a claim that differs, a check that holds for the whole algorithm.
        by = [check for check in noticed[1] if not in_words([check]) <= in_words(noticed[0])]
        tested.append(Hunted(paper.name, mutant.label, claim.id, KILLED if by else SURVIVES, by[0] if by else ""))
    order = {one.label: n for paper in dict.fromkeys(p for p, _ in wanted) for n, one in enumerate(paper.mutants)}
    return sorted(tested, key=lambda one: (one.paper, order[one.mutant])), found.whole


def _failed(paper: Paper, claim: Claim, found: Results, reading: Reading, judge: Evaluate) -> list[str]:
    """Checks that fail over all seeds and over each half of them."""
    data = Data({name: found.frames[Request(paper, name, reading, False)] for name in needed(claim)})
    halves = [in_words(judge(half).failed) for half in data.halves()]
    return [check for check in judge(data).failed if all(in_words([check]) <= half for half in halves)]


def _held(claims: Mapping[tuple[Paper, Claim], object], found: Results) -> dict[tuple[Paper, Claim], Reading]:
    """The first reading under which each claim holds, the default one first; none for those that differ."""
    held: dict[tuple[Paper, Claim], Reading] = {}
    found.run([Request(paper, name, DEFAULT, False) for paper, claim in claims for name in needed(claim)])
    for paper, claim in claims:
        for reading in (DEFAULT, *claim.readings):
            found.run([Request(paper, name, reading, False) for name in needed(claim)])
            if judge_under(paper, claim, found, reading, False).verdict == REPRODUCED:
                held[paper, claim] = reading
                break
    return held


def survivors(tested: Sequence[Hunted], papers: Sequence[Paper]) -> list[str]:
    """Mutants that no claim kills."""
    killed = {(one.paper, one.mutant) for one in tested if one.result == KILLED}
    return [mutant.label for paper in papers for mutant in paper.mutants if (paper.name, mutant.label) not in killed]


def write(tested: Sequence[Hunted], file: Path, papers: Sequence[Paper]) -> None:
    """Write the table, in the order of the papers' mutants and claims; rows that were not tested now stay, those of mutants that are gone do not."""
    order = {
        (paper.name, mutant.label, claim.id): (p, m, c)
        for p, paper in enumerate(papers)
        for m, mutant in enumerate(paper.mutants)
        for c, claim in enumerate(paper.claims)
        if claim.id in mutant.claims or not mutant.claims
    }
    rows = {(one.paper, one.mutant, one.claim): one for one in [*read(file), *tested]}
    with file.open("w", encoding="utf-8", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(("paper", "mutant", "claim", "result", "why"))
        for key in sorted(order.keys() & rows.keys(), key=order.__getitem__):
            one = rows[key]
            writer.writerow((one.paper, one.mutant, one.claim, one.result, one.why))


def read(file: Path) -> list[Hunted]:
    """The table that was written last; empty where there is none."""
    if not file.is_file():
        return []
    with file.open(encoding="utf-8", newline="") as rows:
        return [Hunted(**row) for row in csv.DictReader(rows)]
