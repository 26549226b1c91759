"""Judge the papers' claims with each algorithm robbed of its distinguishing rule: ``tools/claim_mutants.py [PAPER_OR_CLAIM ...]``.

Writes ``papers/mutants.csv``; exits 1 when a mutant passes every claim of its paper.
"""

from __future__ import annotations

import sys
from pathlib import Path

from fanin.papers import load
from fanin.papers.mutants import FAILED, FILE, KILLED, hunt, read, survivors, write
from fanin.terminal import display

PAPERS = Path(__file__).parents[1] / "papers"


def main() -> None:
    """Hunt, print a line per mutant, write the table."""
    what = sys.argv[1:]
    tested, whole = hunt(what, folder=PAPERS, progress=display.Bar)
    if not whole:
        raise SystemExit(130)
    for label in dict.fromkeys((one.paper, one.mutant) for one in tested):
        mine = [one for one in tested if (one.paper, one.mutant) == label]
        by = [one.claim for one in mine if one.result == KILLED]
        print(f"{label[0]}: {label[1]}: fails {', '.join(by) or 'nothing'} of {len(mine)} claims")
    for one in tested:
        if one.result == FAILED:
            display.note(
                f"{one.paper}: {one.mutant}: {one.claim} is not simulated and counts as not noticed: {one.why}"
            )
    papers = load(PAPERS)
    write(tested, PAPERS / FILE, papers)
    asked = [paper for paper in papers if not what or any(word.split(".")[0] == paper.name for word in what)]
    if left := survivors(read(PAPERS / FILE), asked):
        sys.exit(f"no claim of its paper notices: {'; '.join(left)}")


if __name__ == "__main__":
    main()
