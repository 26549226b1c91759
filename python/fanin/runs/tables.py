"""What the engine leaves, as frames. Their columns are those of the engine's schema (docs/reference/results.md)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

import polars as pl

from fanin.statistics.frames import PS_PER_MS, frame
from fanin.statistics.schema import schema

if TYPE_CHECKING:
    from fanin._native import Plan, Replayed, Run

Frames = dict[str, pl.DataFrame]
"""Frames by their name."""


def tables(
    results: Run,
    plan: Plan | Replayed,
    cc: str,
    seed: int,
    wanted: Collection[str] | Mapping[str, Collection[str]] | None = None,
    most: int | None = None,
    replayed: Replayed | None = None,
) -> Frames:
    """The frames of one run, as described in :class:`fanin.RunResult`.

    Parameters
    ----------
    results : Run
        What the engine left.
    plan : Plan or Replayed
        What it was given, for the names of the ports.
    cc : str
        Name in the column ``cc``.
    seed : int
        Number in the column ``seed``.
    wanted : collection or mapping of str, optional
        Names of frames, and of which columns; all unless given.
    most : int, optional
        Rows of ``queue`` and of ``window`` at most; a longer trace is given as an envelope that keeps its peaks.
    replayed : Replayed, optional
        Of ``flows`` there are those alone that carry responses of a capture, with the column ``connection``.
    """
    whose = [pl.lit(cc).alias("cc"), pl.lit(seed, dtype=pl.UInt64).alias("seed")]
    ports = plan.ports
    frames = {}
    for table in schema():
        if wanted is None or table.name in wanted:
            columns = table.columns
            if isinstance(wanted, Mapping):
                columns = tuple(column for column in columns if column.name in wanted[table.name])
            native = [column.native for column in columns if column.native]
            rows = frame(results.table(table.name, native, most, replayed))
            if table.index and table.index not in rows.columns:
                rows = rows.with_row_index(table.index)
            carried = [pl.col("connection")] if "connection" in rows.columns else []
            frames[table.name] = rows.select(*whose, *(column.of(ports) for column in columns), *carried)
    if wanted is None or "runs" in wanted:
        frames["runs"] = _runs(results).select(*whose, pl.all())
    return frames


def _runs(results: Run) -> pl.DataFrame:
    return pl.DataFrame(
        {"end_ms": [results.end_ps / PS_PER_MS], "complete": [results.complete], "packet_hops": [results.packet_hops]},
        schema_overrides={"packet_hops": pl.UInt64},
    )


FRAMES = (*(table.name for table in schema()), "runs")
"""Names of the frames of a run."""
