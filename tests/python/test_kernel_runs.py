"""What runs on the engine `kernel`: interrupted, with datagrams, across several switches, and how timeouts are counted.

What needs a built kernel is skipped where there is none (`fanin kernel build`).
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import fanin
import polars as pl
import pytest
from fanin import _native
from fanin.kernel import cache, machine
from fanin.runs.store import Store
from fanin.statistics.frames import frame
from fanin.sweep import sweep

from .conftest import processes_in

pytestmark = pytest.mark.usefixtures("kernel")

COUNTERS = (
    "TCPTimeouts",
    "TCPSackRecoveryFail",
    "TCPSackFailures",
    "TCPLossFailures",
    "TCPRenoRecoveryFail",
    "TCPRenoFailures",
)


def scenario(workload: str, *, topology: str = "senders = 4", duration: str = "2s", cc: str = "cubic") -> str:
    return f"""
[topology]
{topology}
rate = "1Gbps"
delay = "25us"
buffer = "100p"
mark = "20p"
[stack]
profile = "linux"
[cc]
name = "{cc}"
{workload}
[run]
duration = "{duration}"
"""


def test_ctrl_c_leaves_no_process_and_no_folder(tmp_path: Path) -> None:
    file, temporary = tmp_path / "long.toml", tmp_path / "tmp"
    temporary.mkdir()
    file.write_text(scenario('[[workload]]\nkind = "long"', duration="1000s"))
    command = [sys.executable, "-m", "fanin", "run", str(file), "--engine", "kernel"]
    environment = {**os.environ, "TMPDIR": str(temporary)}
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.DEVNULL) as child:
        deadline = time.monotonic() + 120
        while not list(temporary.glob("fanin-kernel-*/progress")) and time.monotonic() < deadline:
            assert child.poll() is None
            time.sleep(0.05)
        assert processes_in(temporary)
        child.send_signal(signal.SIGINT)
        assert child.wait(timeout=120) == 130
    deadline = time.monotonic() + 20
    while (processes_in(temporary) or list(temporary.iterdir())) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not processes_in(temporary)
    assert list(temporary.iterdir()) == []


def test_datagrams_are_sent_at_their_rate_and_lost_where_the_queue_is_full() -> None:
    workload = '[[workload]]\nkind = "cbr"\nrate = "400Mbps"\npacket = "1500B"\nstop = "100ms"'
    text = scenario(workload, duration="200ms")
    on_kernel, simulated = (fanin.run("cbr.toml", text=text, engine=engine).background for engine in ("kernel", "sim"))
    # 400 Mbps in packets of 12000 bits, for 100 ms, from each of four.
    assert on_kernel["sent"].to_list() == simulated["sent"].to_list()
    assert on_kernel["sent"].sum() == pytest.approx(4 * 400e6 / 12e3 * 0.1, rel=0.01)
    assert (on_kernel["received"] + on_kernel["dropped"] == on_kernel["sent"]).all()
    # 1.6 Gbps into 1 Gbps: three eighths are lost, but for what the buffer holds at the end.
    assert on_kernel["dropped"].sum() / on_kernel["sent"].sum() == pytest.approx(3 / 8, abs=0.02)
    assert on_kernel["dropped"].sum() == pytest.approx(simulated["dropped"].sum(), rel=0.03)


def test_a_queue_discipline_loses_what_the_simulators_does() -> None:
    queue = 'senders = 1\nqueue = { name = "lossy", loss_of = "30, 41" }'
    workload = '[[workload]]\nkind = "long"\nbytes = "150KB"'
    text = scenario(workload, topology=queue).replace('mark = "20p"', "")
    for engine in ("kernel", "sim"):
        result = fanin.run("lossy.toml", text=text, engine=engine)
        assert result.flows["retransmissions"].to_list() == result.flows["drops"].to_list() == [2]
        assert result.flows["fast_recoveries"].to_list() == [1]


def test_a_lost_handshake_costs_the_host_that_asks_its_timeout_and_no_data() -> None:
    """Where an answer to a SYN is lost both hosts' timers expire, and Linux counts both. The slots of its wheel are the simulator's."""
    text = """
[topology]
kind = "dumbbell"
pairs = 30
rate = "1Gbps"
delay = "10us"
bottleneck_rate = "100Mbps"
bottleneck_delay = "10us"
buffer = "8p"
[stack]
profile = "linux"
[cc]
name = "cubic"
[[workload]]
kind = "http_on_off"
responses = 2
size = "20KB"
gap = "1ms"
closed_loop = true
request = "100B"
new_connection = true
[run]
duration = "20s"
"""
    asked: list[int] = []
    for engine in ("kernel", "sim"):
        common = text if engine == "kernel" else text.replace("[cc]", "common_ticks = true\n[cc]")
        result = fanin.run("opening.toml", text=common, engine=engine)
        answers = [f.filter(pl.col("class") == "http_on_off") for f in (result.flows, result.messages)]
        assert answers[0]["timeouts"].sum() == answers[1]["timeouts"].sum()
        # SYNs are among what is dropped, not among what is sent again.
        requests = result.flows.filter(pl.col("class") == "request")
        assert requests["drops"].sum() > requests["retransmissions"].sum()
        asked.append(requests["timeouts"].sum())
        slow = result.messages.filter((pl.col("class") == "request") & pl.col("completion_ms").is_between(1000, 1100))
        assert slow["completion_ms"].median() == pytest.approx(1024, abs=3)
    assert min(asked) > 20
    assert asked[0] == pytest.approx(asked[1], rel=0.3)


def test_red_keeps_the_kernels_queue_where_it_keeps_the_simulators() -> None:
    queue = 'senders = 8\nqueue = { name = "red", red_min = 20, red_max = 60, red_weight = 0.02 }'
    text = scenario('[[workload]]\nkind = "long"', topology=queue, duration="1s", cc="reno").replace('mark = "20p"', "")
    text = text.replace("[stack]", '[stack]\necn = "classic"')
    on_kernel, simulated = (fanin.run("red.toml", text=text, engine=engine).ports for engine in ("kernel", "sim"))
    for name, apart in (("marks", 0.15), ("mean_queue_packets", 0.1)):
        assert on_kernel[name].max() == pytest.approx(simulated[name].max(), rel=apart)
    assert simulated["marks"].sum() > 500


def test_a_discipline_that_changes_the_order_is_not_the_kernels() -> None:
    text = scenario('[[workload]]\nkind = "long"', topology='senders = 4\nqueue = { name = "sfq" }')
    with pytest.raises(fanin.FaninError, match="sfq") as told:
        fanin.run("sfq.toml", text=text.replace('mark = "20p"', ""), engine="kernel")
    assert "sfq.toml:4" in str(told.value)


def test_a_run_may_have_more_connections_than_a_process_has_files_by_default() -> None:
    pages = """[[workload]]
kind = "http_on_off"
responses = 150
size = { uniform = ["1KB", "2KB"] }
gap = { exponential = "1ms" }
new_connection = true"""
    result = fanin.run("pages.toml", text=scenario(pages, topology="senders = 8"), engine="kernel")
    messages = result.messages
    assert messages.height == 1200
    assert messages["completion_ms"].null_count() == 0


def test_across_several_switches_packets_take_the_paths_of_the_simulator() -> None:
    workload = '[[workload]]\nkind = "incast"\nbytes = "64KB"\nrounds = 2\nrequest = "300B"'
    topology = 'kind = "leaf_spine"\nleaves = 3\nspines = 2\nhosts_per_leaf = 3'
    text = scenario(workload, topology=topology, cc="dctcp")
    on_kernel, simulated = (fanin.run("leaves.toml", text=text, engine=engine) for engine in ("kernel", "sim"))
    assert on_kernel.runs["complete"].to_list() == [True]
    used = [set(run.ports.filter(pl.col("packets") > 0)["port"]) for run in (on_kernel, simulated)]
    assert used[0] == used[1]
    assert any("spine" in port for port in used[0])
    assert on_kernel.flows["bytes_delivered"].sum() == simulated.flows["bytes_delivered"].sum()


def test_every_expiry_of_the_retransmission_timer_is_counted(kernel: cache.Kernel) -> None:
    workload = '[[workload]]\nkind = "incast"\nbytes = "64KB"\nrounds = 3\nrequest = "300B"'
    plan = _native.Scenario.from_text(scenario(workload, topology="senders = 32", duration="30s"), "incast.toml").plan(
        1
    )
    with machine.scratch() as folder:
        _native.kernel_prepare(plan, folder)
        machine.start_kernel(kernel, folder, 1, lambda _: True)
        hosts = json.loads((folder / "log.json").read_text())["timeouts"]
        run = _native.kernel_results(plan, folder)
    assert len(hosts) == 33
    counted = {name: sum(host[name] for host in hosts) for name in COUNTERS}
    timeouts = frame(run.table("flows"))["timeouts"].sum()
    # Each expiry is counted once by the sockets and once by TCPTimeouts; the others say in which state it struck.
    assert 0 < counted["TCPTimeouts"] == timeouts
    assert 0 < sum(counted.values()) - counted["TCPTimeouts"] <= timeouts


def test_engines_are_an_axis_of_a_sweep(tmp_path: Path) -> None:
    workload = '[[workload]]\nkind = "incast"\nbytes = "32KB"\nrequest = "300B"'
    (tmp_path / "incast.toml").write_text(scenario(workload))
    file = tmp_path / "both.toml"
    file.write_text('scenario = "incast.toml"\nseeds = 1\nengine = ["sim", "kernel"]\n[axis.cc]\nvalues = ["cubic"]\n')
    store = Store(tmp_path / "store")
    found = sweep(file, store=store)
    assert found.runs["engine"].to_list() == ["sim", "kernel"]
    assert found.failed == 0
    assert found.runs["key"].n_unique() == 2
    assert "--engine kernel" in found.runs["command"][1]
    assert found.runs["p50_ms"][0] == pytest.approx(found.runs["p50_ms"][1], rel=0.25)
    again = sweep(file, store=store)
    assert (again.found, again.ran) == (2, 0)
