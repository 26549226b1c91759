"""The command `fanin reproduce`: arguments and printing."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from fanin import display
from fanin.errors import ScenarioError
from fanin.files import output_folder
from fanin.papers.catalogue import papers_folder
from fanin.papers.reproduce import ReproduceResult, reproduce

COLOURS = {"reproduced": "green", "differs": "dark_orange3", "not run": "bright_black"}
FORMATS = ("svg", "pdf", "png")


def command(
    what: list[str], *, quick: bool, fresh: bool, out: Path | None, pictures: str | None, as_json: bool
) -> None:
    """Run, print, write; exit 1 when a claim could not be run, 130 when interrupted."""
    formats = pictures.split(",") if pictures else []
    if unknown := [one for one in formats if one not in FORMATS]:
        raise ScenarioError(
            f"command line `--pictures {pictures}`: {unknown[0]} is no format; there are {', '.join(FORMATS)}"
        )
    words = ["fanin", "reproduce", *what]
    words += ["--quick"] if quick else []
    words += ["--out", str(out)] if out else []
    # With --json alone nothing is written; the gallery of everything else goes beside the papers.
    folder = out or (None if as_json else papers_folder())
    result = reproduce(what, quick=quick, fresh=fresh, command=shlex.join(words), progress=display.Bar)
    if folder is not None:
        with output_folder(folder) as scratch:
            result.write_files(scratch, formats)
    if as_json:
        json.dump(result.to_dict(), sys.stdout, allow_nan=False)
        sys.stdout.write("\n")
    else:
        _print(result)
    if folder is not None:
        display.note(f"gallery: {folder / 'gallery.html'}")
    if result.interrupted:
        display.note("interrupted: what was run is kept, and the same command goes on from there")
        raise typer.Exit(130)
    if not result.complete:
        raise typer.Exit(1)


def _print(result: ReproduceResult) -> None:
    width = None if sys.stdout.isatty() else display.WIDTH_WITHOUT_TERMINAL
    out = Console(file=sys.stdout, width=width, highlight=False)
    for paper in result.papers:
        table = Table(title=escape(paper.title), title_justify="left", show_lines=True)
        table.add_column("claim", no_wrap=True)
        for name in ("published", "ours"):
            table.add_column(name, ratio=1)
        table.add_column("verdict", no_wrap=True)
        table.add_column("seeds", justify="right")
        for one in result.claims:
            if one.id.startswith(f"{paper.name}."):
                ours = escape(one.ours) + (f"\n[dim]{escape(one.reason)}[/dim]" if one.reason else "")
                verdict = f"[{COLOURS[one.verdict]}]{one.verdict}[/]"
                table.add_row(escape(one.id), escape(one.published), ours, verdict, str(one.seeds or ""))
        out.print(table)
    scores = Table(title="Scoreboard", title_justify="left")
    scores.add_column("paper")
    for verdict in COLOURS:
        scores.add_column(verdict, justify="right")
    for paper in result.papers:
        scores.add_row(paper.name, *(str(result.count(verdict, paper.name)) for verdict in COLOURS))
    scores.add_row("all", *(str(result.count(verdict)) for verdict in COLOURS))
    out.print(scores)
