"""Columns of a comparison's frames, in their order; :class:`fanin.CompareResult` says what they mean."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from fanin.disk import aside
from fanin.statistics.ranking import STATISTICS
from fanin.statistics.schema import schema

# Polars before 1.32 numbers the words of each frame by itself, unless told to do it once, and sorts by those numbers, unless told to sort by the words.
if not hasattr(pl, "Categories"):
    pl.enable_string_cache()

WORD = pl.Categorical("lexical")
"""Names of algorithms and hosts: there are few, and millions of rows."""

STATE = pl.Enum(next(column.codes for table in schema() for column in table.columns if column.name == "state"))
"""States of a sender."""

RUNS: dict[str, pl.DataType | type[pl.DataType]] = {
    "cc": WORD,
    "seed": pl.UInt64,
    **dict.fromkeys(STATISTICS, pl.Float64),
    **dict.fromkeys(("timeouts", "retransmissions", "drops", "marks"), pl.UInt64),
    **dict.fromkeys(("goodput_bps", "queue_mean_packets", "queue_p99_packets", "queue_max_packets"), pl.Float64),
    **dict.fromkeys(("responses", "unfinished"), pl.UInt64),
    **dict.fromkeys((f"request_{name}" for name in STATISTICS), pl.Float64),
    **dict.fromkeys(("requests", "unfinished_requests"), pl.UInt64),
    **dict.fromkeys((f"stage_{name}" for name in STATISTICS), pl.Float64),
    **dict.fromkeys(("stages", "unfinished_stages"), pl.UInt64),
    **dict.fromkeys((f"tree_{name}" for name in STATISTICS), pl.Float64),
    **dict.fromkeys(("trees", "unfinished_trees"), pl.UInt64),
    "end_ms": pl.Float64,
    "packet_hops": pl.UInt64,
}
"""Columns of :attr:`CompareResult.runs`."""

RESPONSES: dict[str, pl.DataType | type[pl.DataType]] = {
    "cc": WORD,
    "seed": pl.UInt64,
    "connection": pl.UInt32,
    "server": WORD,
    "response": pl.UInt32,
    "bytes": pl.UInt64,
    "release_ms": pl.Float64,
    "done_ms": pl.Float64,
    "completion_ms": pl.Float64,
    "timeouts": pl.UInt32,
}
"""Columns of :attr:`CompareResult.responses`."""

ROUNDS: dict[str, pl.DataType | type[pl.DataType]] = {
    "cc": WORD,
    "seed": pl.UInt64,
    **dict.fromkeys(("round", "group", "requests"), pl.UInt32),
    **dict.fromkeys(("release_ms", "done_ms", "completion_ms"), pl.Float64),
}
"""Columns of :attr:`CompareResult.rounds`."""

STAGES: dict[str, pl.DataType | type[pl.DataType]] = {
    "stage" if name == "round" else name: kind for name, kind in ROUNDS.items()
}
"""Columns of :attr:`CompareResult.stages`."""

TREES: dict[str, pl.DataType | type[pl.DataType]] = {
    "cc": WORD,
    "seed": pl.UInt64,
    **dict.fromkeys(("connection", "turn"), pl.UInt32),
    **dict.fromkeys(("release_ms", "done_ms", "completion_ms"), pl.Float64),
}
"""Columns of :attr:`CompareResult.trees`."""

PAUSES: dict[str, pl.DataType | type[pl.DataType]] = {
    "connection": pl.UInt32,
    "response": pl.UInt32,
    "pause_ms": pl.Float64,
}
"""Columns of :attr:`CompareResult.pauses`."""

FLOWS: dict[str, pl.DataType | type[pl.DataType]] = {
    "cc": WORD,
    "seed": pl.UInt64,
    "flow": pl.UInt32,
    "connection": pl.UInt32,
    "src": WORD,
    "dst": WORD,
    **dict.fromkeys(
        ("segments", "bytes_sent", "bytes_delivered", "retransmissions", "timeouts", "drops", "marks"), pl.UInt64
    ),
    "max_cwnd": pl.Float64,
    "min_rtt_ms": pl.Float64,
}
"""Columns of :attr:`CompareResult.flows`."""

QUEUE: dict[str, pl.DataType | type[pl.DataType]] = {
    "cc": WORD,
    "time_ms": pl.Float64,
    "packets": pl.UInt32,
    "bytes": pl.UInt64,
}
"""Columns of :attr:`CompareResult.queue`."""

WINDOW: dict[str, pl.DataType | type[pl.DataType]] = {
    "cc": WORD,
    "connection": pl.UInt32,
    "time_ms": pl.Float64,
    **dict.fromkeys(("cwnd", "ssthresh", "in_flight", "srtt_ms"), pl.Float64),
    "state": STATE,
}
"""Columns of :attr:`CompareResult.window`."""

PACKETS: dict[str, pl.DataType | type[pl.DataType]] = {
    "cc": WORD,
    "connection": pl.UInt32,
    "time_ms": pl.Float64,
    "event": pl.String,
    "seq": pl.UInt64,
    "payload": pl.UInt32,
}
"""Columns of :attr:`CompareResult.packets`."""

KEPT = {
    "runs": RUNS,
    "responses": RESPONSES,
    "rounds": ROUNDS,
    "stages": STAGES,
    "trees": TREES,
    "flows": FLOWS,
    "queue": QUEUE,
    "window": WINDOW,
    "packets": PACKETS,
}
"""What is kept of each run."""


def written(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The same columns with words as they are, for a store."""
    return {name: pl.String if isinstance(kind, pl.Categorical | pl.Enum) else kind for name, kind in schema.items()}


MANY_ROWS = 10_000
"""Rows from which on a column is looked for among those of other runs."""

LAST = 16
"""Of so many other columns: runs come seed by seed, one of each candidate."""


class Typed:
    """Frames of runs as a comparison holds them: documented columns in their order, words as numbers.

    A store has the words themselves, since the numbers depend on what a process met first. Who was asked for how much is the same in every run, and
    most connections lose nothing under any algorithm: columns that are equal are held once, or a million connections take 0.16 GB in each run.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], list[pl.Series]] = {}

    def of(self, frames: dict[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
        """Those of one run."""
        # Column by column: a query for each of some thousand small frames costs more than the casts.
        return {
            name: pl.DataFrame(
                [self.held(name, frame.get_column(column).cast(kind)) for column, kind in KEPT[name].items()]
            )
            for name, frame in frames.items()
        }

    def held(self, table: str, column: pl.Series) -> pl.Series:
        """The column, or its equal of another run."""
        if column.len() < MANY_ROWS:
            return column
        known = self._known.setdefault((table, column.name), [])
        for other in known:
            if other.equals(column):
                return other
        column = _of_its_own(column)
        known.append(column)
        del known[:-LAST]
        return column


def _of_its_own(column: pl.Series) -> pl.Series:
    """A copy: a column that came from the engine holds the memory of all that came with it."""
    there = aside.column(column)
    return column.head(1).append(column[1:]).rechunk() if there is column else there
