"""A plan on the testbed, with the frames that the simulator gives."""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections import defaultdict
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
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
from fanin.testbed import honesty, host, processes, web
from fanin.testbed.network import HostSettings, network
from fanin.testbed.shims import PLAIN, Manner, beside

if TYPE_CHECKING:
    from fanin._native import Plan, Run, Scenario, Watch
    from fanin.runs.engines import Captures

_one = threading.Lock()
"""Runs of this process go one after another; :func:`fanin.testbed.host.alone` keeps other processes away."""


def run_plan(
    plan: Plan,
    watch: Watch | None = None,
    pcap: Path | None = None,
    pcap_at: Sequence[str] = (),
    manner: Manner = PLAIN,
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
    manner : Manner
        What runs beside the plan.

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
        with _one, host.alone():
            figures = _run(folder, watch, manner)
        return _native.kernel_results(plan, folder, pcap, list(pcap_at)), figures


def _run(folder: Path, watch: Watch | None, manner: Manner) -> dict[str, float]:
    """Play what is prepared in a folder, and judge how honest it was."""
    guest = json.loads((folder / "guest.json").read_text())
    work = guest["plan"]
    settings = [_settings(one, at["address"]) for one, at in zip(guest["hosts"], work["hosts"], strict=True)]
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
    config_file, plan_file, boot = folder / "switch.json", folder / "plan.json", folder / "boot"
    config_file.write_text(json.dumps(config))
    processes.check_network(config_file)
    with ExitStack() as stack:
        before = _skipped()
        words = boot.read_text().split() if boot.is_file() else []
        twins = _loaded(stack, work["connections"], words, manner)
        receivers = _receivers(work) if manner.receiver else set()
        # A window of one packet must not wait for a delayed ACK.
        settings = [replace(one, quickack=True) if n in receivers else one for n, one in enumerate(settings)]
        if manner.http:
            algorithms = web.server_algorithms(work)
            settings = [replace(one, congctl=algorithms.get(number, "")) for number, one in enumerate(settings)]
        made = stack.enter_context(network(settings))
        for thread in made.threads:
            processes.real_time(thread, hosts_cpu, processes.THREAD_PRIORITY)
        for one, namespace in zip(work["hosts"], made.hosts, strict=True):
            one["namespace"] = namespace
        for number in sorted(receivers):
            of_host = program.held(manner.receiver, manner.receiver_params, made.device, made.hosts[number])
            stack.enter_context(of_host)
        deadlines = next((twin.deadlines for twin in twins if twin.deadlines is not None), None)
        if manner.http and deadlines is not None and any("deadline_ns" in message for message in work["messages"]):
            raise ScenarioError(
                "cc.name: nginx does not tell the kernel the deadlines of its responses; use --engine testbed"
            )
        plan_file.write_text(json.dumps({**work, "http": manner.http, "deadline_map": deadlines}))
        config_file.write_text(json.dumps({**config, "namespace": made.switch}))
        if manner.http:
            stack.enter_context(web.servers(work, made.hosts, folder, hosts_cpu, manner.environment))
        # The library of a shim goes in front of whoever sends: the servers, or the player.
        environment = {} if manner.http else manner.environment
        with processes.switch(config_file):
            advance = watch.advance if watch is not None else lambda _: True
            processes.play(plan_file, folder / "log.json", hosts_cpu, work["end_ns"] / 1e9, advance, environment)
        skipped = _skipped() - before
    read = processes.figures(folder / "figures.json")
    log = json.loads((folder / "log.json").read_text())
    skipped += sum(twin.counters.get("skipped_callbacks", 0) for twin in twins)
    figures = honesty.row(read, skipped)
    honesty.check(figures, (log["end_ns"] - log["start_ns"]) / 1e6, clock_steps=read["clock_steps"])
    return figures


def _loaded(
    stack: ExitStack, connections: list[dict[str, Any]], words: list[str], manner: Manner
) -> list[program.Held]:
    """Twins of the congestion controls that this kernel does not have, by whose names the connections ask for them from now on."""
    twins = []
    for cc in sorted({connection["cc"] for connection in connections}):
        if manner.twin_only or cc not in host.available():
            twin = stack.enter_context(program.held(_twin(cc, manner.twin_only), _parameters(cc, words)))
            twins.append(twin)
            for connection in connections:
                connection["cc"] = twin.name if connection["cc"] == cc else connection["cc"]
    return twins


def _receivers(work: dict[str, Any]) -> set[int]:
    """Hosts that receive more than they send: what a receiver's algorithm is for. Endless messages count before all others."""
    balance: dict[int, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for message in work["messages"]:
        flow = work["flows"][message["flow"]]
        connection = work["connections"][flow["connection"]]
        ends = (connection["client"], connection["server"])
        sender, receiver = ends if flow["from_client"] else ends[::-1]
        endless, size = (1, 0) if message["bytes"] is None else (0, message["bytes"])
        for host_number, sign in ((sender, -1), (receiver, 1)):
            before = balance[host_number]
            balance[host_number] = (before[0] + sign * endless, before[1] + sign * size)
    return {host_number for host_number, received in balance.items() if received > (0, 0)}


def _skipped() -> int:
    """Callbacks that the kernel has skipped of twins that were loaded before the run and stay."""
    if not any(name.startswith("fanin_") for name in host.available()):
        return 0
    return sum(row["counters"].get("skipped_callbacks", 0) for row in program.call("status")["loaded"])


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


class TestbedEngine:
    """The running kernel's TCP in namespaces, in real time, as :class:`fanin.runs.engines.Engine` describes an engine."""

    name = "testbed"
    label = f"Linux {os.uname().release}'s TCP in network namespaces of this host"
    unknown = UNKNOWN

    def identity(self) -> str:
        """The running kernel, and the programs that are the switch, the hosts and what is loaded."""
        programs = [program.find(), *(host.program(name) for name in host.PROGRAMS)]
        digests = [hashlib.sha256(Path(file).read_bytes()).hexdigest()[:16] for file in programs]
        return " ".join([self.name, os.uname().release, *digests])

    def check(self, plan: Plan, scenario: Scenario | None = None) -> None:
        """Raise with what a kernel cannot do."""
        if scenario is not None:
            _native.kernel_check(scenario, plan)
        elif (limit := _native.kernel_limit(plan)) is not None:
            raise ScenarioError(": ".join(limit))

    def run(self, plan: Plan, seed: int, watch: Watch | None = None, captures: Captures | None = None) -> Run:
        """Run one plan whose algorithms the kernel has."""
        folder, places = (captures.folder, captures.places) if captures is not None else (None, ())
        return run_plan(plan, watch, folder, places)[0]


SERVERS_ONLY = (
    *("retransmissions", "timeouts", "timeout_ms", "bytes_acked", "srtt_ms", "min_rtt_ms", "cwnd", "max_cwnd"),
    *("fast_recoveries", "ecn_reductions"),
)
"""Columns of `flows` that only the sender's socket knows: null where that is nginx's."""


@dataclass(frozen=True, slots=True)
class TestbedJob:
    """One run of a scenario on the testbed.

    Attributes
    ----------
    job : fanin.runs.job.Job
        What runs.
    pcap, pcap_at : optional
        Where to write captures, and of which places.
    http : bool
        Over HTTP, with nginx at every server.
    """

    job: Job
    pcap: Path | None = None
    pcap_at: tuple[str, ...] = ()
    http: bool = False

    def run(self, watch: Watch | None = None) -> Frames:
        """The frames that the simulator gives, too, and ``testbed``: how honest the run was. What a kernel does not count is null."""
        job, cc = self.job, algorithms_of(self.job.plan())
        inner, manner = beside(job)
        plan = inner.plan()
        results, figures = run_plan(plan, watch, self.pcap, self.pcap_at, replace(manner, http=self.http))
        made = tables(results, plan, cc, job.seed, job.frames)
        if "flows" in made:
            made["flows"] = made["flows"].with_columns(pl.lit(None, pl.UInt64).alias(name) for name in UNKNOWN)
            if self.http:
                of_nginx = pl.col("class") != "request"
                made["flows"] = made["flows"].with_columns(
                    # What nginx has read is what it has acknowledged.
                    pl.when(of_nginx).then("bytes_delivered").otherwise("bytes_acked").alias("bytes_delivered"),
                    *(pl.when(of_nginx).then(None).otherwise(pl.col(name)).alias(name) for name in SERVERS_ONLY),
                )
        if "messages" in made and self.http:
            made["messages"] = made["messages"].with_columns(pl.lit(None, pl.UInt32).alias("timeouts"))
        return {**made, "testbed": honesty.frame(figures, cc, job.seed)}
