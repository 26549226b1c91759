"""A capture's traffic on a rack, as plain data."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import polars as pl

from fanin import _native
from fanin.confined import apart
from fanin.runs.engines import Captures, engine, frames_of, product_of
from fanin.runs.executor import Threads, at_once, need_memory
from fanin.runs.job import Document, Settings, key_of
from fanin.runs.tables import Frames
from fanin.statistics.frames import frame

if TYPE_CHECKING:
    from fanin._native import Rack, RackPlan, Replay, Replayed, Run, Watch


class Traffic:
    """What a capture says that applications did; travels as the text of its workload file.

    Parameters
    ----------
    replay : Replay
        As :meth:`fanin.TrainsResult.workload` gives it.
    """

    __slots__ = ("_text", "replay")

    def __init__(self, replay: Replay) -> None:
        self.replay = replay
        self._text: str | None = None

    @property
    def text(self) -> str:
        """The workload file."""
        if self._text is None:
            self._text = self.replay.to_json()
        return self._text

    def digest(self) -> str:
        """Names the traffic."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    def __reduce__(self) -> tuple[object, ...]:
        return _unpickled, (self.text,)


def _unpickled(text: str) -> Traffic:
    return Traffic(_native.Replay.from_json(text))


@dataclass(frozen=True, slots=True)
class Unmoved:
    """Servers that stay as they are beside those that a job is about.

    Attributes
    ----------
    cc : str
        Their algorithm.
    settings : tuple of (str, str)
        Their values by key on top of the rack.
    servers : tuple of str
        Their addresses.
    """

    cc: str
    settings: Settings
    servers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReplayJob:
    """One replay of a capture's traffic.

    Attributes
    ----------
    rack : Document
        The rack file.
    traffic : Traffic
        What is replayed.
    cc : str
        Algorithm.
    seed : int
        With which seed.
    settings : tuple of (str, str)
        Values by key on top of the rack.
    trace : bool
        The queue to the aggregator, the servers' windows and the slowest responses' packets are recorded.
    beside : Unmoved or None
        Servers that run something else.
    engine : str
        Whose TCP runs: one of :data:`fanin.runs.engines.ENGINES`.
    """

    rack: Document
    traffic: Traffic
    cc: str
    seed: int
    settings: Settings = ()
    trace: bool = False
    beside: Unmoved | None = None
    engine: str = "sim"

    def plan(self) -> RackPlan:
        """Everything resolved for the seed."""
        made = rack_of(self.rack, self.settings).plan(self.traffic.replay, self.cc, self.seed, report=self.trace)
        if self.beside is None:
            return made
        other = rack_of(self.rack, self.beside.settings).plan(self.traffic.replay, self.beside.cc, self.seed)
        return made.mixed(other, list(self.beside.servers))

    def key(self, product: object) -> str:
        """Names what is kept of it."""
        return key_of(self.plan().plan.identity(), product_of(self.engine, [product]))

    def check(self) -> None:
        """Raise when the engine cannot do it.

        Raises
        ------
        fanin.ScenarioError, fanin.EngineError
        """
        for settings, cc in self._ways():
            rack_of(self.rack, settings).accept(cc)
        if self.engine != "sim":
            engine(self.engine).check(self.plan().plan)

    def _ways(self) -> list[tuple[Settings, str]]:
        """The settings and the algorithm of the servers that it is about, and of those beside them."""
        beside = [] if self.beside is None else [(self.beside.settings, self.beside.cc)]
        return [(self.settings, self.cc), *beside]

    @apart
    def run(self, watch: Watch | None = None, captures: Captures | None = None) -> Frames:
        """Run on this thread: the frames of a run, ``where``, a row for each response of the capture, and ``members``.

        ``where`` has ``connection``, ``response``, ``flow``, ``first``, ``last`` (numbers of its messages; UInt32), ``server`` (String),
        ``bytes`` (UInt64) and ``port`` (String), the name of the port to the aggregator. ``members`` has a row for each message of a round of
        the capture: ``round``, ``group``, ``message``, and ``answer``, which is 1 for an answer and 0 for a request (UInt32).
        """
        made, run = self.simulated(watch, captures)
        results = self.frames(made, run)
        return {**results, "where": where(made, self.traffic.replay), "members": frame(made.rounds())}

    def simulated(self, watch: Watch | None = None, captures: Captures | None = None) -> tuple[Replayed, Run]:
        """Run on this thread: where everything went in what was run, and what the run left."""
        made = self.plan()
        return made.replayed, engine(self.engine).run(made.plan, self.seed, watch, captures)

    def frames(
        self,
        made: Replayed,
        run: Run,
        wanted: Mapping[str, Collection[str]] | None = None,
        most: int | None = None,
        *,
        carrying: bool = False,
    ) -> Frames:
        """The frames of a run, or the columns that are wanted; traces of at most so many rows; with `carrying`, of the flows that carry responses."""
        whose = made if carrying else None
        return frames_of(engine(self.engine), run, made, self.cc, self.seed, wanted, most, whose)


PER_CONNECTION = 2_500
"""Bytes that a replay takes per connection while it runs, its plan and its results included: 1.0 KB of 200,000 connections, 2.0 KB with its traces;
0.9 KB of a million, 1.2 KB with its traces."""


def beside_each_other(job: ReplayJob) -> Threads | None:
    """Where replays as large as this run, as many at once as there is memory for; None: where any do.

    Raises
    ------
    fanin.errors.MemoryLimitError
        When there is not enough for one: before it begins.
    """
    if job.engine != "sim":
        return None
    connections = job.traffic.replay.connections
    need_memory(PER_CONNECTION * connections, f"a replay of {connections} connections")
    return Threads(at_once(PER_CONNECTION * connections))


def where(made: Replayed, replay: Replay) -> pl.DataFrame:
    """Which messages and which flow each response of the capture became."""
    servers = dict(enumerate(replay.servers))
    return frame(made.responses()).with_columns(
        pl.col("server").replace_strict(servers, return_dtype=pl.String),
        pl.lit(made.ports[made.port]).alias("port"),
    )


@lru_cache(maxsize=256)
def rack_of(rack: Document, settings: Settings = ()) -> Rack:
    """The rack of a file with values on top, as the engine reads it.

    Raises
    ------
    fanin.ScenarioError
        When something in it is wrong.
    """
    return _native.Rack.from_text(rack.text, rack.name, rack.place(), list(settings))
