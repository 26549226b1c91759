"""One page per claim, and the data that its verdict rests on."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from fanin import html
from fanin.papers.catalogue import searched
from fanin.papers.experiments import command_of, effort
from fanin.papers.intervals import with_intervals
from fanin.papers.linux import measured
from fanin.papers.mutants import FILE, Hunted, read
from fanin.papers.reproduce import written
from fanin.papers.verdicts import DIFFERS, EVALUATIONS, NOT_RUN, PICTURES, UNDER, WHY, Data
from fanin.process.progress import silent
from fanin.runs.executor import Threads

if TYPE_CHECKING:
    from fanin._native import Watch
    from fanin.papers.catalogue import Claim, Paper
    from fanin.papers.reproduce import ReproduceResult
    from fanin.papers.verdicts import Judged

CSV_ROWS = 100_000
"""Longer frames are written as Parquet alone."""


def write(result: ReproduceResult, folder: Path) -> None:
    """Write ``claims/<claim>.html``, and ``data/<claim>/<experiment>.<frame>`` as Parquet and CSV."""
    claims = {claim.id: (paper, claim) for paper in result.papers for claim in paper.claims}
    folder.joinpath("claims").mkdir(parents=True, exist_ok=True)
    values = _values(result)
    for judged in result.claims:
        paper, claim = claims[judged.id]
        files = write_data(judged.id, result.evidence.get(judged.id), folder)
        page = _page(result, paper, claim, judged) | {"ours": values[judged.id], "files": files}
        text = html.rendered("fanin.papers", "claim.html", **page)
        folder.joinpath("claims", f"{judged.id}.html").write_text(text, encoding="utf-8")


def _values(result: ReproduceResult) -> dict[str, str]:
    """By claim: what it states as ours, with intervals where its seeds are at hand. Each judges many samples, so on every core."""
    found = {one.id: one.ours for one in result.claims}
    works: list[tuple[str, Callable[[], str]]] = [
        (one.id, partial(with_intervals, EVALUATIONS[one.id].judge, result.evidence[one.id], one.id))
        for one in result.claims
        if one.id in result.evidence and one.id in EVALUATIONS and one.verdict != NOT_RUN
    ]

    def finished(number: int, told: str | BaseException) -> None:
        if isinstance(told, BaseException):
            raise told
        found[works[number][0]] = told

    def job(work: Callable[[], str]) -> Callable[[Watch], str]:
        return lambda _: work()

    with silent("", len(works)) as bar:
        if not Threads().map([job(work) for _, work in works], bar, finished):
            raise KeyboardInterrupt
    return found


def _page(result: ReproduceResult, paper: Paper, claim: Claim, judged: Judged) -> dict[str, Any]:
    folder = paper.folder.parent
    drawn = f"{paper.name}.{claim.figure}"
    mutants: list[Hunted] = [one for one in read(folder / FILE) if one.claim == claim.id]
    runs = [
        (group[0].experiment.name, command_of(group[0], paper.folder), effort(group))
        for group in result.runs.get(claim.id, [])
        if group
    ]
    return {
        "paper": paper,
        "claim": claim,
        "judged": judged,
        "remarks": judged.reason.partition(WHY)[0],
        "cause": claim.cause if judged.verdict in (DIFFERS, UNDER) else "",
        "tried": _tried(result, claim, folder),
        "mutants": mutants,
        "runs": runs,
        "drawn": drawn if drawn in PICTURES else "",
        "on_linux": [row for row in measured(folder) if row["claim"] == claim.id],
        "again": written([claim.id], result.quick, result.settings, result.seeds),
        "version": result.version,
        "quick": result.quick,
        "settings": result.settings,
    }


def _tried(result: ReproduceResult, claim: Claim, folder: Path) -> list[tuple[str, str, str]]:
    """Readings that were judged: now, or by the search; and those that are known and were not needed. Name, what came out, why."""
    now = {
        name: (one.verdict, "" if one.holds else "; ".join(one.failed[:1]) or one.reason)
        for name, one in result.tried.get(claim.id, [])
        if one.verdict != NOT_RUN
    }
    known = {one.name: ("not run: one before it holds", "") for one in claim.readings}
    rows = {
        row["reading"]: (f"{row['verdict']} ({row['times']} x seeds)", row["why"])
        for row in searched(folder)
        if row["claim"] == claim.id
    }
    tried = sorted((known | rows | now).items(), key=lambda one: one[0] != "")
    return [(name or "as read by default", *found) for name, found in tried]


def write_data(claim: str, evidence: Data | None, folder: Path) -> list[tuple[str, str, int]]:
    """Write the frames of a claim; the name of each file, its other form (or nothing), and its rows."""
    written: list[tuple[str, str, int]] = []
    if evidence is None:
        return written
    target = folder / "data" / claim
    target.mkdir(parents=True, exist_ok=True)
    for experiment, frames in evidence.frames.items():
        for name, rows in frames.items():
            stem = f"{experiment}.{name}"
            rows.write_parquet(target / f"{stem}.parquet")
            short = rows.height <= CSV_ROWS
            if short:
                flat = [pl.col(c) for c, kind in rows.schema.items() if not kind.is_nested()]
                rows.select(flat).write_csv(target / f"{stem}.csv")
            written.append((f"{stem}.parquet", f"{stem}.csv" if short else "", rows.height))
    return written


def digest(rows: pl.DataFrame) -> str:
    """Names what a frame says, whatever wrote its file: SHA-256 of its columns and values as text."""
    feed = hashlib.sha256()
    for name, column in zip(rows.columns, rows.iter_columns(), strict=True):
        feed.update(f"{name}:{column.dtype}\n".encode())
        feed.update("\n".join(map(repr, column.to_list())).encode())
    return feed.hexdigest()
