"""A plan on the testbed, with the frames that the simulator gives."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from fanin import _native
from fanin.errors import EngineError, ScenarioError
from fanin.kernel.engine import UNKNOWN
from fanin.kernel.machine import scratch
from fanin.linux import program
from fanin.runs.job import Job, algorithms_of
from fanin.runs.tables import Frames, tables
from fanin.testbed import honesty, host, processes
from fanin.testbed.network import HostSettings, network
from fanin.testbed.shims import beside

if TYPE_CHECKING:
    from fanin._native import Plan, Run, Watch

_one = threading.Lock()
"""Runs of this process go one after another; :func:`fanin.testbed.host.alone` keeps other processes away."""


def run_plan(
    plan: Plan,
    watch: Watch | None = None,
    pcap: Path | None = None,
    pcap_at: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
    twin_only: bool = False,
) -> tuple[Run, dict[str, float]]:
    """Run one plan on the testbed.

    Parameters
    ----------
    plan : Plan
        A scenario's plan for one seed.
    watch : Watch, optional
        Is told the progress, and may stop it.
    pcap, pcap_at : optional
        Where to write captures, and of which places.
    environment : mapping, optional
        Of the player, beside this process's own: a library in front of it.
    twin_only : bool
        Load fanin's twin also where the kernel has a congestion control of the name.

    Returns
    -------
    fanin._native.Run
        The same columns as a simulated run's.
    dict
        How honest it was: see :mod:`fanin.testbed.honesty`.

    Raises
    ------
    fanin.ScenarioError
        When a kernel cannot do what the plan asks for.
    fanin.EngineError
        When this machine cannot, when the run failed, or when it is no result.
    """
    host.check()
    if pcap is not None:
        _native.kernel_check_places(plan, list(pcap_at))
    with scratch() as folder:
        _native.kernel_prepare(plan, folder)
        guest = json.loads((folder / "guest.json").read_text())
        with _one, host.alone():
            figures = _run(folder, guest, watch, environment or {}, twin_only)
        return _native.kernel_results(plan, folder, pcap, list(pcap_at)), figures


def _run(
    folder: Path, guest: dict[str, Any], watch: Watch | None, environment: Mapping[str, str], twin_only: bool
) -> dict[str, float]:
    """Play it, and judge how honest it was."""
    settings = [
        _settings(one, player["address"]) for one, player in zip(guest["hosts"], guest["plan"]["hosts"], strict=True)
    ]
    switch_cpu, hosts_cpu = host.cpus()
    config = {
        "namespace": "",
        "network": str(folder / "network"),
        "record": str(folder / "record"),
        "figures": str(folder / "figures.json"),
        "hosts": [{"device": f"p{number}", "address": one.address} for number, one in enumerate(settings)],
        "mtu": max(one.mtu for one in settings),
        "cpu": switch_cpu,
        "priority": processes.SWITCH_PRIORITY,
    }
    config_file, plan_file = folder / "switch.json", folder / "plan.json"
    config_file.write_text(json.dumps(config))
    processes.check_network(config_file)
    boot = folder / "boot"
    with ExitStack() as stack:
        wanted = sorted({connection["cc"] for connection in guest["plan"]["connections"]})
        missing = [cc for cc in wanted if twin_only or cc not in host.available()]
        words = boot.read_text().split() if boot.is_file() else []
        twins = {cc: stack.enter_context(program.held(_twin(cc, twin_only), _parameters(cc, words))) for cc in missing}
        made = stack.enter_context(network(settings))
        for thread in made.threads:
            processes.real_time(thread, hosts_cpu, processes.THREAD_PRIORITY)
        for one, namespace in zip(guest["plan"]["hosts"], made.hosts, strict=True):
            one["namespace"] = namespace
        for connection in guest["plan"]["connections"]:
            cc = connection["cc"]
            connection["cc"] = twins[cc].name if cc in twins else cc
        plan_file.write_text(json.dumps(guest["plan"]))
        config_file.write_text(json.dumps({**config, "namespace": made.switch}))
        duration = guest["plan"]["end_ns"] / 1e9
        with processes.switch(config_file):
            advance = watch.advance if watch is not None else lambda _: True
            processes.play(plan_file, folder / "log.json", hosts_cpu, duration, advance, environment)
    read = processes.figures(folder / "figures.json")
    log = json.loads((folder / "log.json").read_text())
    figures = honesty.row(read, sum(twin.counters.get("skipped_callbacks", 0) for twin in twins.values()))
    honesty.check(figures, (log["end_ns"] - log["start_ns"]) / 1e6, clock_steps=read["clock_steps"])
    return figures


def _settings(host_of_guest: dict[str, Any], address: str) -> HostSettings:
    tick = host.tick_us()
    for name, value in host_of_guest["sysctls"]:
        if name == "net/ipv4/tcp_rto_min_us" and int(value) < 2 * tick:
            raise ScenarioError(
                f"stack.min_rto: this kernel's timers count in {tick / 1e3:g} ms, so its least timeout is {2 * tick / 1e3:g} ms and not "
                f"{int(value) / 1e3:g} ms; raise it, or use --engine kernel"
            )
    return HostSettings(
        address=address,
        mtu=host_of_guest["mtu"],
        sysctls=[(name, value) for name, value in host_of_guest["sysctls"]],
        initial_window=host_of_guest["initial_window"],
        quickack=host_of_guest["quickack"],
    )


def _twin(cc: str, asked: bool) -> str:
    """What to load for a congestion control that this kernel does not have, or whose twin is asked for by name."""
    if cc.startswith("fanin_"):
        return cc
    # Both are RFC 8257; of the others of the same name the kernel's is another form.
    if asked or cc == "dctcp":
        return f"fanin_{cc}"
    raise EngineError(f"this kernel has no congestion control `{cc}`; it has {', '.join(host.available())}")


def _parameters(cc: str, words: Sequence[str]) -> list[str]:
    """What a twin is told of the path, of the words that the virtual kernel is started with."""
    prefix = cc.removeprefix("fanin_") + "."
    told = [word.removeprefix(prefix) for word in words if word.startswith(prefix)]
    # Hosts take time to answer, which the links' delays do not have in them: the twin goes by the smallest sample.
    return [word for word in told if not word.startswith("base_rtt_us=")]


@dataclass(frozen=True, slots=True)
class TestbedJob:
    """One run of a scenario on the testbed.

    Attributes
    ----------
    job : fanin.runs.job.Job
        What runs.
    pcap, pcap_at : optional
        Where to write captures, and of which places.
    """

    job: Job
    pcap: Path | None = None
    pcap_at: tuple[str, ...] = ()

    def run(self, watch: Watch | None = None) -> Frames:
        """The frames that the simulator gives, too, and ``testbed``: how honest the run was. What a kernel does not count is null."""
        job, cc = self.job, algorithms_of(self.job.plan())
        run = beside(job)
        plan = run.job.plan()
        results, figures = run_plan(plan, watch, self.pcap, self.pcap_at, run.environment, run.twin_only)
        made = tables(results, plan, cc, job.seed, job.frames)
        if "flows" in made:
            made["flows"] = made["flows"].with_columns(pl.lit(None, pl.UInt64).alias(name) for name in UNKNOWN)
        return {**made, "testbed": honesty.frame(figures, cc, job.seed)}
