"""A plan on the virtual kernel, with the frames that the simulator gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fanin import _native
from fanin.disk.files import shown
from fanin.errors import MissingAlgorithmError, ScenarioError
from fanin.kernel.cache import HERTZ, Kernel
from fanin.kernel.machine import scratch, start_kernel

if TYPE_CHECKING:
    from fanin._native import Plan, Run, Scenario, Watch
    from fanin.runs.engines import Captures

UNKNOWN = ("tail_probes", "undos")
"""Columns of `flows` that a kernel counts for a whole host and not for a socket: they are null."""


def run_plan(
    plan: Plan,
    kernel: Kernel,
    seed: int,
    watch: Watch | None = None,
    pcap: Path | None = None,
    pcap_at: Sequence[str] = (),
    whose: str = "rust",
) -> Run:
    """Run one plan on the virtual kernel.

    Parameters
    ----------
    plan : Plan
        A scenario's plan for one seed.
    kernel : Kernel
        From :func:`fanin.kernel.find`.
    seed : int
        Seeds the kernel's random numbers.
    watch : Watch, optional
        Is told the progress, and may stop it.
    pcap, pcap_at : optional
        Where to write captures, and of which places.
    whose : str
        Whose algorithms run: as :func:`fanin._native.kernel_prepare` takes it.

    Returns
    -------
    fanin._native.Run
        The same columns as a simulated run's.

    Raises
    ------
    fanin.ScenarioError
        When a kernel cannot do what the plan asks for.
    fanin.EngineError
        When the run failed.
    """
    if pcap is not None:
        _native.kernel_check_places(plan, list(pcap_at))
    with scratch() as folder:
        _native.kernel_prepare(plan, folder, whose, kernel.hertz)
        start_kernel(kernel, folder, seed, watch.advance if watch is not None else lambda _: True)
        return _native.kernel_results(plan, folder, pcap, list(pcap_at))


@dataclass(frozen=True, slots=True)
class KernelEngine:
    """Real Linux TCP in virtual time, as :class:`fanin.runs.engines.Engine` describes an engine."""

    kernel: Kernel
    own: bool = False
    """Fanin's algorithms run even where Linux has its own."""

    @property
    def name(self) -> str:
        """As users write it."""
        if self.own:
            return "kernel-fanin"
        return "kernel" if self.kernel.hertz == HERTZ[0] else f"kernel-hz{self.kernel.hertz}"

    @property
    def label(self) -> str:
        """What it is, for reports."""
        own = " under fanin's algorithms" if self.own else ""
        return f"Linux {self.kernel.version}'s TCP{own} in virtual time (HZ={self.kernel.hertz})"

    @property
    def whose(self) -> str:
        """Whose algorithms run."""
        return "rust-always" if self.own else "rust"

    @property
    def unknown(self) -> tuple[str, ...]:
        """Columns of `flows` that it cannot tell."""
        return UNKNOWN

    def identity(self) -> str:
        """The kernel, with everything of fanin's in it, and the program that plays the workload: their names hold hashes."""
        return f"{self.kernel.linux.name} {self.kernel.guest.name} {self.whose}"

    def check(self, plan: Plan, scenario: Scenario | None = None) -> None:
        """Raise with what a kernel cannot do."""
        if scenario is not None:
            _native.kernel_check(scenario, plan, self.whose, self.kernel.hertz)
        elif (limit := _native.kernel_limit(plan, self.whose, self.kernel.hertz)) is not None:
            key, _ = limit
            raise (MissingAlgorithmError if key == "cc.name" else ScenarioError)(": ".join(limit))
        for name in plan.algorithms:
            if name.endswith(".c"):
                self._check_built_in(Path(name))

    def _check_built_in(self, file: Path) -> None:
        """A C file runs as the kernel was built with it, so it must be the same now."""
        own = next((one for one in self.kernel.extra if one.name == file.name), None)
        if own is not None and own.read_bytes() == file.read_bytes():
            return
        why = "has no" if own is None else "was built with another version of"
        option = "" if self.kernel.hertz == HERTZ[0] else f" --hz {self.kernel.hertz}"
        raise MissingAlgorithmError(
            f"cc.name: the virtual kernel {why} {shown(file)}; run `fanin kernel build{option} --cc {shown(file)}`"
        )

    def run(self, plan: Plan, seed: int, watch: Watch | None = None, captures: Captures | None = None) -> Run:
        """Run one plan."""
        folder, places = (captures.folder, captures.places) if captures is not None else (None, ())
        return run_plan(plan, self.kernel, seed, watch, folder, places, self.whose)


def replay(plan: Plan, kernel: Kernel, seed: int, whose: str = "rust-always") -> tuple[int, int, int, str | None]:
    """Run a plan, then tell fresh algorithms what those in the kernel were told.

    Parameters
    ----------
    plan, kernel, seed
        As :func:`run_plan`.
    whose : str
        Whose algorithms run.

    Returns
    -------
    tuple
        How many ends of connections, events and ACKs there were, and the first decision that differs, if any.
    """
    with scratch() as folder:
        _native.kernel_prepare(plan, folder, whose, kernel.hertz, notes=True)
        start_kernel(kernel, folder, seed, lambda _: True)
        return _native.kernel_replay(folder)
