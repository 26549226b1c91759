"""What is done with a store as a whole: listed, checked, cleaned, exported."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from fanin.disk.scratch import remove
from fanin.process.progress import Progress, silent
from fanin.runs.store import Entry, Store


@dataclass(slots=True)
class Contents:
    """How much is in a store.

    Attributes
    ----------
    engines : dict
        Per engine, how many entries and bytes.
    sweeps : dict
        Per sweep, how many rows its last time left; None where its file is spoilt.
    scratch : int
        Folders that killed processes left.
    """

    engines: dict[str, tuple[int, int]] = field(default_factory=dict)
    sweeps: dict[str, int | None] = field(default_factory=dict)
    scratch: int = 0


def contents(store: Store) -> Contents:
    """Count what is there."""
    found = Contents(scratch=len(store.scratch()))
    for engine in store.engines():
        sizes = [entry.bytes() for entry in Store(store.folder, engine=engine).entries()]
        found.engines[engine] = (len(sizes), sum(sizes))
    for name, file in store.sweeps().items():
        try:
            found.sweeps[name] = pl.scan_parquet(file).select(pl.len()).collect().item()
        except pl.exceptions.PolarsError:
            found.sweeps[name] = None
    return found


def verify(store: Store, progress: Callable[[str, int], Progress] = silent) -> tuple[int, list[Entry]]:
    """Read every entry of every engine against its digests.

    Returns
    -------
    int
        How many were read.
    list of Entry
        Those that are damaged; the next sweep that needs one runs it again.
    """
    every = list(store.entries(every_engine=True))
    damaged = []
    with progress("verifying", max(1, len(every))) as bar:
        for number, entry in enumerate(every, 1):
            if entry.frames() is None:
                damaged.append(entry)
            bar.update(number)
    return len(every), damaged


def clean(store: Store, *, other_engines: bool = False) -> tuple[int, int]:
    """Remove damaged entries and what killed processes left; with `other_engines`, also results of engines that are not loaded.

    Returns
    -------
    (int, int)
        How many entries or folders, and how many bytes.
    """
    removed = freed = 0
    for folder in store.scratch():
        freed += sum(file.stat().st_size for file in [folder, *folder.rglob("*")] if file.is_file())
        remove(folder)
        removed += 1
    for entry in verify(store)[1]:
        freed += entry.bytes()
        shutil.rmtree(entry.folder, ignore_errors=True)
        removed += 1
    if other_engines:
        for engine in store.engines():
            if engine != store.engine:
                for entry in Store(store.folder, engine=engine).entries():
                    freed += entry.bytes()
                    removed += 1
                shutil.rmtree(store.folder / engine, ignore_errors=True)
    return removed, freed


def export(store: Store, target: Path) -> int:
    """Write the rows of every run of the loaded engine to one file: Parquet or, by its ending, CSV.

    Returns
    -------
    int
        How many rows.
    """
    from fanin.disk.files import output_folder
    from fanin.errors import OutputError, ScenarioError

    if target.suffix not in (".parquet", ".csv"):
        raise ScenarioError(f"command line `{target}`: the name must end in .parquet or .csv")
    rows = []
    for entry in store.entries():
        frames = entry.frames(["summary"]) if entry.holds("summary") else None
        if frames is not None:
            command = entry.about().get("command", "")
            rows.append(frames["summary"].with_columns(command=pl.lit(command), key=pl.lit(entry.key)))
    if not rows:
        raise OutputError(f"{store.folder}: the store has no rows of this engine ({store.engine}) to export")
    table = pl.concat(rows)
    with output_folder(target.parent, "another name") as scratch, (scratch / target.name).open("wb") as file:
        (table.write_csv if target.suffix == ".csv" else table.write_parquet)(file)
    return table.height
