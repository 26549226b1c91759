"""Writes the gallery page: ``fanin reproduce --quick --out FOLDER``, then ``.venv/bin/python docs/gallery.py FOLDER/claims.json``.

The pictures are those of the papers' pages (``fanin reproduce PAPER --pictures svg``).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import fanin

DOCS = Path(__file__).parent
FIGURES = (
    ("trim", "trim.fig4", "trim-fig4.svg", "windows that a connection inherits, and what they do to long trains"),
    ("trim", "trim.fig8", "trim-fig8.svg", "queues of five long trains"),
    ("tcprand", "tcprand.fig2", "tcprand-fig2.svg", "outcast: a few flows lose to many at another input port"),
    ("gss", "gss.fig2-3", "gss-fig3.svg", "the model of a slow start that overshoots"),
    ("dcvegas", "dcvegas.fig4", "dcvegas-fig4.svg", "goodput of incast at 10 Gbps"),
    ("dctcp", "dctcp.fig1", "dctcp-fig1.svg", "the queue of two flows, with and without marks"),
)
HEAD = """# Gallery

One or two figures of each paper, and what was published beside what the simulator gives on the points and seeds of `--quick`.
All figures and claims: `fanin reproduce` writes them to `papers/gallery.html`. This page is made by `docs/gallery.py`.
"""


def cell(text: str) -> str:
    """Text in a table."""
    return " ".join(text.replace("|", "\\|").split())


def main() -> None:
    """Write the page from the verdicts of a run."""
    titles = {entry.name: entry for entry in fanin.entries("paper")}
    claims = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))["claims"]
    parts = [HEAD]
    before = None
    for paper, figure, picture, what in FIGURES:
        if paper != before:
            parts.append(f"\n## {titles[paper].title}\n\n{titles[paper].source}. [What we found](papers/{paper}.md).\n")
            before = paper
        name = figure.split(".", 1)[1].replace("fig", "Fig. ")
        parts.append(f"\n![{name}: {what}](papers/{picture})\n\n*{what[0].upper()}{what[1:]}.*\n")
        rows = [
            f"| `{one['id']}` | {cell(one['published'])} | {cell(one['ours'])} | {one['verdict']} |\n"
            for one in claims
            if one["id"].startswith(f"{figure}.")
        ]
        if rows:
            parts += ["\n| claim | published | ours | verdict |\n|---|---|---|---|\n", *rows]
    DOCS.joinpath("gallery.md").write_text("".join(parts), encoding="utf-8")


if __name__ == "__main__":
    main()
