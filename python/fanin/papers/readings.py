"""`fanin reproduce --readings`: every way to read a paper that its text leaves open, and which claims hold under it.

The open questions and their answers stand in ``papers/<paper>/paper.toml``. A reading is one answer to one question, or with
``--pairs`` also one answer to each of two. All are judged on the points and seeds of ``--quick``.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fanin.papers.catalogue import DEFAULT, Claim, Paper, Reading
from fanin.papers.reproduce import Request, Results, judge_under, needed, select
from fanin.papers.verdicts import DIFFERS, REPRODUCED
from fanin.process.progress import Progress, silent


@dataclass(frozen=True, slots=True)
class Tried:
    """A reading of a paper, and the verdict of each claim under it.

    Attributes
    ----------
    gained, lost : tuple of str
        Claims that hold under it and not under the default reading, and the other way round.
    """

    paper: str
    reading: Reading
    verdicts: dict[str, str]
    gained: tuple[str, ...]
    lost: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """As it stands in JSON."""
        return {
            "paper": self.paper,
            "reading": self.reading.name,
            "says": self.reading.says,
            "switches": list(self.reading.switches),
            "verdicts": self.verdicts,
            "gained": list(self.gained),
            "lost": list(self.lost),
        }


@dataclass(slots=True)
class Search:
    """What a search found: for each paper the default reading first."""

    tried: list[Tried]
    command: str
    whole: bool
    notes: list[str] = field(default_factory=list)

    def of(self, paper: str) -> list[Tried]:
        """The readings of one paper."""
        return [one for one in self.tried if one.paper == paper]

    def to_dict(self) -> dict[str, Any]:
        """The object that ``fanin reproduce --readings --json`` prints."""
        return {"command": self.command, "readings": [one.to_dict() for one in self.tried]}

    def markdown(self, paper: str) -> str:
        """The page of one paper: what holds by default, and the readings that change a verdict."""
        rows = self.of(paper)
        by_verdict = {
            verdict: [_short(claim) for claim, given in rows[0].verdicts.items() if given == verdict]
            for verdict in (REPRODUCED, DIFFERS)
        }
        changing = [one for one in rows[1:] if one.gained or one.lost]
        unchanged = [one.reading.name for one in rows[1:] if one not in changing]
        cells = [
            f"| {one.reading.name} | {', '.join(map(_short, one.gained))} | {', '.join(map(_short, one.lost))} |"
            for one in changing
        ]
        table = ["", "| reading | then holds | then differs |", "|---|---|---|", *cells] if cells else []
        return "\n".join(
            [
                f"# Readings of `{paper}`",
                "",
                f"Written by `{self.command}`, on the points and seeds of `--quick`. A reading answers questions of `paper.toml` (`[[question]]`).",
                "",
                f"By default every check holds of: {', '.join(by_verdict[REPRODUCED]) or 'none'}. Not of: {', '.join(by_verdict[DIFFERS]) or 'none'}.",
                *table,
                "",
                f"These change no verdict: {'; '.join(unchanged) or 'none'}.",
                "",
                f"Most claims at once: {_best(rows)}.",
                "",
            ]
        )

    def write_files(self, papers: Sequence[Paper]) -> list[Path]:
        """Write ``readings.md`` beside each paper."""
        written = []
        for paper in papers:
            if self.of(paper.name):
                file = paper.folder / "readings.md"
                file.write_text(self.markdown(paper.name), encoding="utf-8")
                written.append(file)
        return written


def _short(claim: str) -> str:
    """A claim's name without its paper's."""
    return claim.split(".", 1)[1]


def _best(rows: Sequence[Tried]) -> str:
    def count(one: Tried) -> int:
        return sum(v == REPRODUCED for v in one.verdicts.values())

    most = max(map(count, rows))
    names = [one.reading.name or "the default reading" for one in rows if count(one) == most]
    return f"{most} of {len(rows[0].verdicts)}, under {' or '.join(names[:4])}{' or others' if len(names) > 4 else ''}"


def readings_of(paper: Paper, pairs: bool) -> list[Reading]:
    """Every reading to try: the default, each answer alone, what the claims name, and with `pairs` every two answers together."""
    alone = [Reading((answer,)) for answer in paper.answers]
    named = [reading for claim in paper.claims for reading in claim.readings]
    both = [
        Reading(two) for two in itertools.combinations(paper.answers, 2) if pairs and two[0].question != two[1].question
    ]
    return list({reading.name: reading for reading in (DEFAULT, *alone, *named, *both)}.values())


def search(
    what: Sequence[str] = (),
    *,
    pairs: bool = False,
    folder: Path | None = None,
    command: str = "fanin reproduce --readings",
    fresh: bool = False,
    progress: Callable[[str, int], Progress] = silent,
) -> Search:
    """Judge claims under every reading of their papers.

    Parameters
    ----------
    what : sequence of str
        Papers, figures or claims; everything unless given.
    pairs : bool
        Two answers at a time too.
    folder, command, fresh, progress
        As in :func:`fanin.papers.reproduce`.

    Raises
    ------
    fanin.papers.CatalogueError
        When there is no such paper, figure or claim.
    """
    papers, wanted = select(what, folder)
    claims = {paper: [c for p, c in wanted if p is paper and needed(c)] for paper in papers}
    readings = {paper: readings_of(paper, pairs) for paper in papers if claims[paper] and paper.answers}
    found = Results(progress, fresh)
    found.run(
        [
            Request(paper, experiment, reading, True)
            for paper, every in readings.items()
            for reading in every
            for claim in claims[paper]
            for experiment in needed(claim)
        ]
    )
    tried = [one for paper, every in readings.items() for one in _tried(paper, every, claims[paper], found)]
    return Search(tried, command, found.whole, found.notes)


def _tried(paper: Paper, readings: Sequence[Reading], claims: Sequence[Claim], found: Results) -> list[Tried]:
    made: list[Tried] = []
    for reading in readings:
        verdicts = {c.id: judge_under(paper, c, found, reading, True).verdict for c in claims}
        plain = made[0].verdicts if made else verdicts
        gained = tuple(c for c, v in verdicts.items() if v == REPRODUCED and plain[c] == DIFFERS)
        lost = tuple(c for c, v in verdicts.items() if v == DIFFERS and plain[c] == REPRODUCED)
        made.append(Tried(paper.name, reading, verdicts, gained, lost))
    return made
