"""Whose TCP runs a plan: fanin's model of it, or a real one, in virtual or in real time. Each engine is one class; plans and frames are the same."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import polars as pl

from fanin import _native
from fanin.confined import admitted
from fanin.errors import ScenarioError
from fanin.process.progress import may_be_left
from fanin.runs.tables import Frames, tables

if TYPE_CHECKING:
    from fanin._native import Plan, Replayed, Run, Scenario, Watch


@dataclass(frozen=True, slots=True)
class Captures:
    """Where to write pcap files of a run, and of which hosts, ports and switches."""

    folder: Path
    places: tuple[str, ...] = ()


class Engine(Protocol):
    """Runs plans.

    Attributes
    ----------
    name : str
        As users write it.
    label : str
        What it is, for reports.
    unknown : tuple of str
        Columns of `flows` that it cannot tell; they are null.
    """

    @property
    def name(self) -> str:
        """As users write it."""
        ...

    @property
    def label(self) -> str:
        """What it is."""
        ...

    @property
    def unknown(self) -> tuple[str, ...]:
        """Columns that it cannot tell."""
        ...

    def identity(self) -> str:
        """Names what, beside a plan, decides its results; nothing for what :func:`fanin.runs.job.engine_digest` names already."""
        ...

    def check(self, plan: Plan, scenario: Scenario | None = None) -> None:
        """Raise when it cannot do what a plan asks for, with the line of the plan's scenario if that is given.

        Raises
        ------
        fanin.ScenarioError
        """
        ...

    def run(self, plan: Plan, seed: int, watch: Watch | None = None, captures: Captures | None = None) -> Run:
        """Run one plan on this thread; other threads go on meanwhile."""
        ...


class Simulator:
    """fanin's own engine."""

    name = "sim"
    label = "the simulator"
    unknown: tuple[str, ...] = ()

    def identity(self) -> str:
        """Nothing: see :meth:`Engine.identity`."""
        return ""

    def check(self, plan: Plan, scenario: Scenario | None = None) -> None:
        """A plan is checked for the simulator as it is made."""

    def run(self, plan: Plan, seed: int, watch: Watch | None = None, captures: Captures | None = None) -> Run:
        """See :meth:`Engine.run`."""
        ready = admitted(plan, captures.folder if captures is not None else None)
        with may_be_left():
            if captures is None:
                return ready.run(watch)
            return _native.run_with_pcap(ready, captures.folder, list(captures.places), watch)[0]


def _kernel(hertz: int, own: bool = False) -> Engine:
    from fanin.kernel.cache import find
    from fanin.kernel.engine import KernelEngine

    return KernelEngine(find(hertz), own)


def _testbed() -> Engine:
    from fanin.testbed.engine import TestbedEngine
    from fanin.testbed.host import check

    check()
    return TestbedEngine()


TESTBED = "testbed"

MADE_BY: dict[str, Callable[[], Engine]] = {
    "sim": Simulator,
    "kernel": lambda: _kernel(250),
    "kernel-hz1000": lambda: _kernel(1000),
    "kernel-fanin": lambda: _kernel(250, own=True),
    TESTBED: _testbed,
}
"""What makes each engine, by name."""

ENGINES = tuple(MADE_BY)
"""Names of the engines."""


def engine(name: str) -> Engine:
    """The engine of a name.

    Raises
    ------
    fanin.ScenarioError
        When there is none of that name.
    fanin.EngineError
        When it is not there, such as a kernel that is not built.

    Examples
    --------
    >>> engine("sim").label
    'the simulator'
    """
    if name not in MADE_BY:
        raise ScenarioError(f"the engine is {name!r}; it must be one of {', '.join(ENGINES)}")
    return MADE_BY[name]()


def run_frames(
    on: Engine,
    plan: Plan,
    cc: str,
    seed: int,
    watch: Watch | None = None,
    *,
    wanted: Collection[str] | None = None,
    captures: Captures | None = None,
) -> Frames:
    """The frames of one run on an engine; see :func:`frames_of`."""
    return frames_of(on, on.run(plan, seed, watch, captures), plan, cc, seed, wanted)


def frames_of(
    on: Engine,
    run: Run,
    plan: Plan | Replayed,
    cc: str,
    seed: int,
    wanted: Collection[str] | Mapping[str, Collection[str]] | None,
    most: int | None = None,
    replayed: Replayed | None = None,
) -> Frames:
    """The frames of a run that an engine made, or `wanted` columns of them; what the engine cannot tell is null.

    With `most`, traces have at most so many rows, and with `replayed` there are those flows alone that carry its responses
    (:func:`fanin.runs.tables.tables`).
    """
    made = tables(run, plan, cc, seed, wanted, most, replayed)
    if "flows" in made:
        flows = made["flows"]
        unknown = [pl.lit(None, pl.UInt64).alias(name) for name in on.unknown if name in flows.columns]
        made["flows"] = flows.with_columns(unknown) if unknown else flows
    return made


def product_of(name: str, kept: Sequence[object]) -> list[object]:
    """What is kept of a run and by which engine it was made, for :func:`fanin.runs.job.key_of`."""
    identity = engine(name).identity()
    return [*kept, identity] if identity else list(kept)
