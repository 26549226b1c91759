"""Writes the gallery page: ``.venv/bin/python docs/gallery.py [CLAIMS_JSON]``, after ``fanin reproduce FIGURE ... --out FOLDER``.

What we got is from that file, which has to be of a run on all points, else as it stands on the page; counts, verdicts and what Linux's own
TCP gave are from `papers/verdicts.csv` and `papers/on_linux.csv`. The pictures are those of the papers' pages (``fanin reproduce PAPER --pictures svg``).
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path

import fanin
from fanin.papers import load
from fanin.papers.verdicts import VERDICTS

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGE = DOCS / "gallery.md"
sys.path.insert(0, str(ROOT / "tools"))

import verdicts  # noqa: E402

FIGURES = (
    ("trim", "trim.fig4", "trim-fig4.svg", "windows that a connection inherits, and what they do to long trains"),
    ("trim", "trim.fig8", "trim-fig8.svg", "queues of five long trains"),
    ("tcprand", "tcprand.fig2", "tcprand-fig2.svg", "outcast: a few flows lose to many at another input port"),
    ("gss", "gss.fig2-3", "gss-fig3.svg", "the model of a slow start that overshoots"),
    ("dcvegas", "dcvegas.fig4", "dcvegas-fig4.svg", "goodput of incast at 10 Gbps"),
    ("dctcp", "dctcp.fig1", "dctcp-fig1.svg", "the queue of two flows, with and without marks"),
)
HEAD = """# Gallery

One or two figures of each paper, with published and own results: the simulator's on all points, and Linux's own TCP's where the claim
was run there. "Indicative" results are from few seeds and decide nothing.
`fanin reproduce` writes all figures and claims to `papers/gallery.html`. `docs/gallery.py` makes this page.

A claim is reproduced when every check holds over all seeds and over either half of them. What fails over the first half differs, whatever the other
half gives; what holds over it, if it has four seeds or more, over either half of it and over 20 samples of its seeds drawn again is reproduced. The
other half is run only where this leaves the verdict open. A reading that others follow is left after a quarter of the seeds, if one check fails over
them and over either half of them. Pages and figures say how many seeds they are from; `--seeds N` runs N of every experiment.
"""
COLUMNS = "| claim | published | simulator | verdict | Linux's own TCP |\n|---|---|---|---|---|\n"
ROW = re.compile(r"^\| `(?P<id>[^`]+)` \| (?:[^|]|\\\|)*? \| (?P<ours>(?:[^|]|\\\|)*?) \|", re.MULTILINE)


def cell(text: str) -> str:
    """Text in a table."""
    return " ".join(text.replace("|", "\\|").split())


def counts() -> list[str]:
    """How many claims of each paper have each verdict, and of how many Linux's own TCP says the same or something else."""
    there = verdicts.read_there()
    lines = [
        "\n| paper | claims | " + " | ".join(VERDICTS) + " | on Linux's own TCP |\n",
        "|---|---|" + "---|" * len(VERDICTS) + "---|\n",
    ]
    rows = verdicts.read()
    for paper in load(ROOT / "papers"):
        mine = [rows[claim.id].verdict for claim in paper.claims]
        run = [one for one in there if one.claim in {claim.id for claim in paper.claims}]
        told = [one.told for one in run]
        known = [
            f"{told.count(name)} {name}"
            for name in [*VERDICTS, *(f"indicative: {name}" for name in VERDICTS)]
            if name in told
        ]
        lines.append(
            f"| [{paper.title}](papers/{paper.name}.md) | {len(mine)} | {' | '.join(str(mine.count(name)) for name in VERDICTS)} | "
            f"{', '.join(known) or 'not run'} |\n"
        )
    return lines


def on_linux(claim: str) -> str:
    """What Linux's own TCP gave, by engine and rate."""
    found = [one for one in verdicts.read_there() if one.claim == claim]
    return "; ".join(cell(f"{one.engine}, {one.rate}: {one.ours} ({one.told})") for one in found) or "not run"


def page(claims: Sequence[dict[str, str]]) -> str:
    """The page with what was found for these claims."""
    titles = {entry.name: entry for entry in fanin.entries("paper")}
    table = verdicts.read()
    published = {claim.id: claim.published for paper in load(ROOT / "papers") for claim in paper.claims}
    parts = [HEAD, *counts()]
    before = None
    for paper, figure, picture, what in FIGURES:
        if paper != before:
            parts.append(f"\n## {titles[paper].title}\n\n{titles[paper].source}. [What we found](papers/{paper}.md).\n")
            before = paper
        name = figure.split(".", 1)[1].replace("fig", "Fig. ")
        parts.append(f"\n![{name}: {what}](papers/{picture})\n\n*{what[0].upper()}{what[1:]}.*\n")
        rows = []
        for one in claims:
            if one["id"].startswith(f"{figure}."):
                whole = table[one["id"]]
                verdict = f"{whole.verdict}{f' ({whole.reading})' if whole.reading else ''}"
                rows.append(
                    f"| `{one['id']}` | {cell(published[one['id']])} | {cell(one['ours'])} | {verdict} | {on_linux(one['id'])} |\n"
                )
        if rows:
            parts += ["\n" + COLUMNS, *rows]
    return "".join(parts)


def on_the_page() -> list[dict[str, str]]:
    """What was found when the page was written."""
    return [
        {"id": row["id"], "ours": row["ours"].replace("\\|", "|")}
        for row in ROW.finditer(PAGE.read_text(encoding="utf-8"))
    ]


def main() -> None:
    """Write the page from the verdicts of a run, or from its own."""
    claims = on_the_page()
    if len(sys.argv) > 1:
        found = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
        if found["quick"]:
            sys.exit(f"{sys.argv[1]}: this is of `--quick`, which decides nothing; run the same without it")
        now = {one["id"]: one for one in found["claims"]}
        known = {one["id"]: one for one in claims}
        claims = list((known | now).values())
    PAGE.write_text(page(claims), encoding="utf-8")


if __name__ == "__main__":
    main()
