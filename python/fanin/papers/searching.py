"""`fanin reproduce --search`: every answer, pair and triple of a paper's open questions that bears on a claim, on all points.

A claim that differs as read by default is judged under each reading with few seeds first, then with twice as many, until the verdict over all
seeds and those over either half agree, or a bound is reached. The points of ``--quick`` and then the cheapest ones come first: a check that asks
something of every point and fails on these fails on all, which makes the readings of a long experiment affordable. A claim is said to hold on no
fewer seeds than its experiments have. What holds
is written to ``searched.csv`` beside the papers, which :func:`fanin.papers.load` reads: the claim's readings have it from then on. A reading that
stands there is not judged anew unless ``--fresh`` asks for it, and runs are kept as those of ``fanin reproduce``, so that an interrupted search
goes on where it was.
"""

from __future__ import annotations

import csv
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from fanin.papers.catalogue import DEFAULT, SEARCHED, Answer, Claim, Paper, Reading, papers_folder, searched
from fanin.papers.experiments import batches
from fanin.papers.reproduce import Request, Results, needed, select
from fanin.papers.verdicts import EVALUATIONS, Data
from fanin.process.progress import Progress, silent

SHARES = (0.25, 0.5, 1, 2, 4)
"""Seeds that a reading is judged with, as multiples of the experiments' own, until its verdict is stable."""

SOME_POINTS = (("quick", "the points of --quick"), ("cheapest", "the cheapest points"))
"""What is judged before all points, in this order."""

YES, NO, UNDECIDED = "yes", "no", "undecided"


@dataclass(frozen=True, slots=True)
class Verdict:
    """One claim under one reading.

    Attributes
    ----------
    verdict : str
        ``yes`` and ``no`` over all seeds and over either half; ``undecided`` when they still disagree with the most seeds.
    times : float
        Seeds as a multiple of the experiments' own.
    why : str
        The first check that fails.
    """

    claim: str
    reading: str
    verdict: str
    times: float
    why: str


def bearing(paper: Paper, claim: Claim) -> list[Answer]:
    """Answers that change a simulation of the claim's experiments."""
    experiments = [paper.experiments[name] for name in needed(claim)]
    plain = [[batch.settings() for batch in batches(paper, one, quick=False, seeds=1)] for one in experiments]

    def changes(answer: Answer) -> bool:
        return any(
            [batch.settings() for batch in batches(paper, one, quick=False, reading=Reading((answer,)), seeds=1)]
            != known
            for one, known in zip(experiments, plain, strict=True)
        )

    return [answer for answer in paper.answers if changes(answer)]


def readings_to_try(answers: Sequence[Answer], depth: int) -> Iterator[Reading]:
    """The default reading, each answer, then every pair and so on of answers to different questions; the fewest answers first."""
    yield DEFAULT
    for size in range(1, depth + 1):
        for some in itertools.combinations(answers, size):
            if len({answer.question for answer in some}) == size:
                yield Reading(some)


def decide(paper: Paper, claim: Claim, reading: Reading, found: Results) -> Verdict | None:
    """Judge with more and more seeds until the verdict is stable; None after an interrupt or where a simulation fails."""
    evaluate = EVALUATIONS[claim.id].judge
    for some, named in SOME_POINTS:
        data = _run(paper, claim, reading, found, SHARES[0], some)
        if data is None:
            return None
        found_here = evaluate(data)
        # Without such a check the cheapest points decide nothing, and the judgement may ask for others.
        if not found_here.each:
            break
        halves = [set(evaluate(half).anywhere) for half in data.halves()]
        if fails := [check for check in found_here.anywhere if all(check in half for half in halves)]:
            return Verdict(claim.id, reading.name, NO, SHARES[0], f"on {named}: {fails[0]}")
    why = ""
    for share in SHARES:
        data = _run(paper, claim, reading, found, share)
        if data is None:
            return None
        whole = evaluate(data)
        why = whole.failed[0] if whole.failed else ""
        agreed = {whole.holds, *(evaluate(half).holds for half in data.halves())}
        if agreed == {False}:
            return Verdict(claim.id, reading.name, NO, share, why)
        if agreed == {True} and share >= 1:
            return Verdict(claim.id, reading.name, YES, share, "")
    return Verdict(claim.id, reading.name, UNDECIDED, SHARES[-1], why or "the halves of the seeds disagree")


def _run(paper: Paper, claim: Claim, reading: Reading, found: Results, share: float, points: str = "") -> Data | None:
    """What the claim is judged on with a share of the seeds, on all points or on some of :data:`SOME_POINTS`.

    None after an interrupt or where a simulation fails.
    """
    requests = [
        Request(paper, one.name, reading, points == "quick", max(2, round(one.seeds * share)), points == "cheapest")
        for one in map(paper.experiments.__getitem__, needed(claim))
    ]
    found.run(requests)
    if any(request in found.failures for request in requests):
        return None
    return Data({request.experiment: found.frames[request] for request in requests})


def search_deep(
    what: Sequence[str] = (),
    *,
    depth: int = 3,
    folder: Path | None = None,
    fresh: bool = False,
    told: Callable[[Verdict], None] = lambda _: None,
    progress: Callable[[str, int], Progress] = silent,
) -> tuple[list[Verdict], bool]:
    """Look for a reading under which each claim that differs holds; a claim is done with the first.

    Parameters
    ----------
    what : sequence of str
        Papers, figures or claims; everything unless given.
    depth : int
        The most answers that a reading has.
    fresh : bool
        Judge again the readings that ``searched.csv`` has, and run again what was run before.
    told : callable
        Given each verdict as it is found.
    folder, progress
        As in :func:`fanin.papers.reproduce`.

    Returns
    -------
    list of Verdict
        Those that are new, by claim, in the order in which the readings were tried.
    bool
        False after an interrupt.

    Raises
    ------
    fanin.papers.CatalogueError
        When there is no such paper, figure or claim.
    """
    _, wanted = select(what, folder)
    before = [] if fresh else searched(folder or papers_folder())
    known = {(row["claim"], row["reading"]): row["verdict"] for row in before}
    made: list[Verdict] = []
    whole = True
    for paper, claim in wanted:
        if not needed(claim):
            continue
        for reading in readings_to_try(bearing(paper, claim), depth):
            if verdict_before := known.get((claim.id, reading.name)):
                if verdict_before == YES:
                    break
                continue
            # Frames of many readings would fill the memory; they are kept on disk.
            found = Results(progress, fresh)
            verdict = decide(paper, claim, reading, found)
            whole = whole and found.whole
            if not whole:
                return made, False
            if verdict is None:
                continue
            made.append(verdict)
            told(verdict)
            if verdict.verdict == YES:
                break
    return made, whole


def write(verdicts: Sequence[Verdict], folder: Path) -> Path:
    """Write what was found beside the papers; other claims' rows, and other readings of these, stay."""
    file = folder / SEARCHED
    now = {(one.claim, one.reading) for one in verdicts}
    kept = [row for row in searched(folder) if (row["claim"], row["reading"]) not in now]
    mine = [
        {"claim": v.claim, "reading": v.reading, "verdict": v.verdict, "times": f"{v.times:g}", "why": v.why}
        for v in verdicts
    ]
    rows = sorted([*kept, *mine], key=lambda row: row["claim"])
    with file.open("w", encoding="utf-8", newline="") as out:
        writer = csv.DictWriter(out, ("claim", "reading", "verdict", "times", "why"), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return file
