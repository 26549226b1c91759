"""A plan on the virtual kernel, with the frames that the simulator gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from fanin import _native
from fanin.kernel.cache import Kernel
from fanin.kernel.machine import scratch, start_kernel
from fanin.runs.job import Job, algorithms_of
from fanin.runs.tables import Frames, tables

if TYPE_CHECKING:
    from fanin._native import Plan, Run, Watch

UNKNOWN = ("tail_probes", "undone")
"""Columns of `flows` that a kernel counts for a whole host and not for a socket: they are null."""


def run_plan(
    plan: Plan,
    kernel: Kernel,
    seed: int,
    watch: Watch | None = None,
    pcap: Path | None = None,
    pcap_at: Sequence[str] = (),
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
        _native.kernel_prepare(plan, folder)
        start_kernel(kernel, folder, seed, watch.advance if watch is not None else lambda _: True)
        return _native.kernel_results(plan, folder, pcap, list(pcap_at))


@dataclass(frozen=True, slots=True)
class KernelJob:
    """One run of a scenario on the virtual kernel.

    Attributes
    ----------
    job : fanin.runs.job.Job
        What runs.
    kernel : Kernel
        On which kernel.
    pcap, pcap_at : optional
        Where to write captures, and of which places.
    """

    job: Job
    kernel: Kernel
    pcap: Path | None = None
    pcap_at: tuple[str, ...] = ()

    def run(self, watch: Watch | None = None) -> Frames:
        """The frames that the simulator gives, too; what a kernel does not count is null."""
        job, plan = self.job, self.job.plan()
        results = run_plan(plan, self.kernel, job.seed, watch, self.pcap, self.pcap_at)
        made = tables(results, plan, algorithms_of(plan), job.seed, job.frames)
        if "flows" in made:
            made["flows"] = made["flows"].with_columns(pl.lit(None, pl.UInt64).alias(name) for name in UNKNOWN)
        return made
