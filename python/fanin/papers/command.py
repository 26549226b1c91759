"""The command `fanin reproduce`: arguments and printing."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

import typer
from rich.console import Console
from rich.table import Table

from fanin.disk.files import output_folder
from fanin.errors import ScenarioError
from fanin.papers.bundle import verify
from fanin.papers.bundle import write as write_bundle
from fanin.papers.catalogue import load, papers_folder
from fanin.papers.linux import PUBLISHED, WHERE
from fanin.papers.readings import Search, search
from fanin.papers.reproduce import ReproduceResult, reproduce, written
from fanin.papers.searching import Verdict, search_deep
from fanin.papers.searching import write as write_searched
from fanin.papers.verdicts import DIFFERS, NOT_RUN, REPRODUCED, UNDER, Judged
from fanin.terminal import display
from fanin.terminal.answer import print_json
from fanin.terminal.markup import escape

COLOURS = {REPRODUCED: "green", UNDER: "cyan", DIFFERS: "dark_orange3", NOT_RUN: "bright_black"}
SHORT = {REPRODUCED: "reproduced", UNDER: "under a reading", DIFFERS: "differs", NOT_RUN: "not run"}
FORMATS = ("svg", "pdf", "png")


def command(
    what: list[str],
    *,
    quick: bool,
    fresh: bool,
    out: Path | None,
    pictures: str | None,
    as_json: bool,
    why: bool = False,
    engine: str = "sim",
    settings: Mapping[str, str] | None = None,
    seeds: int | None = None,
    bundle: Path | None = None,
) -> None:
    """Run, print, write; exit 1 when a claim could not be run, 130 when interrupted."""
    formats = pictures.split(",") if pictures else []
    if unknown := [one for one in formats if one not in FORMATS]:
        raise ScenarioError(
            f"command line `--pictures {pictures}`: {unknown[0]} is no format; there are {', '.join(FORMATS)}"
        )
    told = written(what, quick, settings, seeds)
    told += f" --engine {engine}" if engine != "sim" else ""
    told += f" --out {shlex.quote(str(out))}" if out else ""
    # With --json alone nothing is written; the gallery of everything else goes beside the papers, but for what is no verdict on them.
    changed = bool(settings) or seeds is not None
    folder = out or (None if as_json or changed else papers_folder())
    result = reproduce(
        what,
        quick=quick,
        fresh=fresh,
        engine=engine,
        command=told,
        settings=settings,
        seeds=seeds,
        progress=display.Bar,
    )
    if folder is not None:
        with output_folder(folder) as scratch:
            result.write_files(scratch, formats, data=out is not None)
    if as_json:
        print_json(result.to_dict())
    else:
        _print(result, why)
    if changed:
        display.note("with --set or --seeds this is no verdict on the paper; it is in none of its tables")
    if folder is not None:
        display.note(f"gallery: {folder / 'gallery.html'}")
    if result.interrupted:
        display.note("interrupted: what was run is kept, and the same command goes on from there")
        raise SystemExit(130)
    if bundle is not None:
        write_bundle(result, what, bundle)
        display.note(f"archive: {bundle} (`fanin reproduce --verify {bundle}` runs it again)")
    if not result.complete:
        raise typer.Exit(1)


def command_search(what: list[str], *, fresh: bool) -> None:
    """Search for readings under which claims that differ hold, and write what was found beside the papers; exit 130 when interrupted."""
    out = _console()

    def told(one: Verdict) -> None:
        why = f": {one.why}" if one.why else ""
        out.print(
            escape(f"{one.claim}: {one.reading or 'as read by default'}: {one.verdict} ({one.times:g} x seeds){why}")
        )
        write_searched([one], papers_folder())

    _, whole = search_deep(what, fresh=fresh, told=told, progress=display.Bar)
    if not whole:
        display.note("interrupted: what was run is kept, and the same command goes on from there")
        raise SystemExit(130)


def command_verify(archive: Path, *, fresh: bool) -> None:
    """Run an archive's claims again; exit 1 when something is not as it says."""
    wrong, frames = verify(archive, fresh=fresh, progress=display.Bar)
    for line in wrong:
        display.note(line)
    if wrong:
        raise typer.Exit(1)
    display.note(f"{archive}: verdicts, values and {frames} tables of data are the same here")


def command_readings(what: list[str], *, pairs: bool, fresh: bool, as_json: bool) -> None:
    """Try every reading, print what each changes, and write the tables beside the papers; exit 130 when interrupted."""
    words = ["fanin", "reproduce", *what, "--readings", *(["--pairs"] if pairs else [])]
    found = search(what, pairs=pairs, fresh=fresh, command=shlex.join(words), progress=display.Bar)
    if as_json:
        print_json(found.to_dict())
    else:
        _print_readings(found)
    for told in found.notes:
        display.note(told)
    if not found.whole:
        display.note("interrupted: what was run is kept, and the same command goes on from there")
        raise SystemExit(130)
    # A part of a paper is no table of it.
    names = {one.paper for one in found.tried} if not what or all("." not in word for word in what) else set()
    for file in found.write_files([paper for paper in load() if paper.name in names]):
        display.note(f"table: {file}")


def _console() -> Console:
    width = None if sys.stdout.isatty() else display.WIDTH_WITHOUT_TERMINAL
    return Console(file=sys.stdout, width=width, highlight=False)


def _print(result: ReproduceResult, why: bool) -> None:
    out = _console()
    for paper in result.papers:
        table = Table(title=escape(paper.title), title_justify="left", show_lines=why)
        names = [
            one.id if why else one.id.split(".", 1)[1] for one in result.claims if one.id.startswith(f"{paper.name}.")
        ]
        longest = max(map(len, [*names, "claim"]))
        table.add_column("claim", no_wrap=True, min_width=longest)
        # Without reasons a claim is one line: what is longer is cut here and stands whole in the gallery. The rest is borders and verdict.
        room = max(10, (out.width - longest - max(map(len, SHORT.values())) - 13) // 2)
        for name in ("published", "ours"):
            table.add_column(name, max_width=room, no_wrap=not why, overflow="fold" if why else "ellipsis")
        table.add_column("verdict", no_wrap=True, min_width=max(map(len, SHORT.values())))
        for one in result.claims:
            if one.id.startswith(f"{paper.name}."):
                ours = escape(one.ours) + (f"\n[dim]{escape(_reason(one))}[/dim]" if why and _reason(one) else "")
                verdict = f"[{COLOURS[one.verdict]}]{SHORT[one.verdict]}[/]"
                name = escape(one.id.split(".", 1)[1] if not why else one.id)
                table.add_row(name, escape(one.published), ours, verdict)
        out.print(table)
    for one in result.claims:
        if one.verdict == UNDER:
            breaks = f"; breaks {', '.join(one.breaks)}" if one.breaks else ""
            out.print(f"{one.id}: {escape(one.reading)} ({escape('; '.join(one.switches))}){breaks}", style="cyan")
    if result.on_linux:
        out.print(_on_linux(result))
    for told in [*result.skipped, *result.notes]:
        display.note(told)
    scores = Table(title="Scoreboard", title_justify="left")
    scores.add_column("paper")
    for verdict in COLOURS:
        scores.add_column(SHORT[verdict], justify="right")
    for paper in result.papers:
        scores.add_row(paper.name, *(str(result.count(verdict, paper.name)) for verdict in COLOURS))
    scores.add_row("all", *(str(result.count(verdict)) for verdict in COLOURS))
    out.print(scores)
    if not why:
        display.note("reasons: --why prints them, the gallery has them too")


def _on_linux(result: ReproduceResult) -> Table:
    """The same claims on Linux's own TCP, beside what was simulated."""
    engine = result.on_linux[0].engine
    table = Table(title=f"Linux's own TCP {WHERE[engine]}", title_justify="left", show_lines=True)
    for name in ("claim", "bottleneck"):
        table.add_column(name, no_wrap=True)
    for name in ("published", engine, "simulated"):
        table.add_column(name, ratio=1)
    table.add_column("its verdict", no_wrap=True)
    simulated = {one.id: one.ours for one in result.claims}
    for there in result.on_linux:
        one = there.judged
        # The simulation ran at the published rate alone.
        beside = simulated.get(one.id, "") if there.rate == PUBLISHED else ""
        cells = [one.id, there.rate, escape(one.published), escape(one.ours), escape(beside)]
        table.add_row(*cells, f"[{COLOURS[one.verdict]}]{SHORT[one.verdict]}[/]")
    return table


def _reason(one: Judged) -> str:
    seeds = f"{one.seeds} seed{'' if one.seeds == 1 else 's'}" if one.seeds else ""
    reading = f"{one.says}: {'; '.join(one.switches)}" if one.reading else ""
    breaks = f"the same reading breaks {', '.join(one.breaks)}" if one.breaks else ""
    return "; ".join(x for x in (reading, breaks, one.reason, seeds) if x)


def _print_readings(found: Search) -> None:
    out = _console()
    for paper in dict.fromkeys(one.paper for one in found.tried):
        rows = found.of(paper)
        table = Table(title=f"Readings of {paper} (points and seeds of --quick)", title_justify="left")
        table.add_column("reading", ratio=1)
        table.add_column("hold", justify="right")
        for name in ("more than by default", "fewer"):
            table.add_column(name, ratio=1)
        for one in rows:
            holds = sum(verdict == REPRODUCED for verdict in one.verdicts.values())
            cells = (", ".join(claim.split(".")[1] for claim in claims) for claims in (one.gained, one.lost))
            table.add_row(escape(one.reading.name or "default"), f"{holds} of {len(one.verdicts)}", *cells)
        out.print(table)
