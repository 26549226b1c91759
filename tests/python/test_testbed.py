"""The engine testbed: this machine's own TCP in namespaces, through the simulator's ports in real time. Needs root.

Nothing here asserts a time: this machine may be busy. A run that is not honest says so, and the test that wanted it is skipped.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import fanin
import polars as pl
import pytest
from fanin.errors import EngineError, ScenarioError
from fanin.runs.job import Document, Job
from fanin.testbed import honesty, host, web
from fanin.testbed.sender_cpu import sender_cpu

Made = TypeVar("Made")

LONG = """
title = "Two long flows"
[topology]
senders = 2
rate = "100Mbps"
receiver_rate = "20Mbps"
delay = "100us"
buffer = "60p"
mark = "20p"
[stack]
profile = "linux"
[[workload]]
kind = "long"
[run]
duration = "2s"
[measure]
queues = ["switch->client"]
"""

INCAST = """
title = "A small incast"
[topology]
senders = 4
rate = "100Mbps"
delay = "100us"
buffer = "100p"
[stack]
profile = "linux"
[[workload]]
kind = "incast"
bytes = "20KB"
rounds = 3
[run]
duration = "20s"
"""

ENGINES = ("testbed", "sim")

MANY = """
[topology]
senders = 12
rate = "1Gbps"
receiver_rate = "100Mbps"
delay = "100us"
buffer = "60p"
[stack]
profile = "linux"
[cc]
name = "{cc}"
[[workload]]
kind = "incast"
bytes = "16KB"
rounds = 4
request = "100B"
open = "before"
[run]
duration = "20s"
"""


def why_not() -> str | None:
    """The reason to skip, if there is one."""
    try:
        host.check()
    except EngineError as error:
        return str(error)
    return None


def has_twins() -> bool:
    from fanin.linux import program

    try:
        return all(
            c["ok"] for c in program.call("check")["checks"] if c["what"] not in ("bpffs", "ECN", "tcp_rto_min_us")
        )
    except EngineError:
        return False


pytestmark = pytest.mark.skipif((reason := why_not()) is not None, reason=reason or "")


def of_the_kernel() -> tuple[set[str], set[str], set[str]]:
    """What a run could leave behind: network devices, congestion controls, processes."""
    names = {path.name for path in Path("/sys/class/net").iterdir()}
    programs = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = entry.joinpath("cmdline").read_bytes().split(b"\0")[:3]
            except OSError:
                continue
            # Of this tree: another may have its tests running.
            if any(word == os.fsencode(host.program(name)) for word in words for name in host.PROGRAMS):
                programs.add(f"{entry.name} {b' '.join(words).decode(errors='replace')}")
    return names, set(host.available()), programs


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    before = of_the_kernel()
    yield
    for _ in range(100):
        left = [after - there for after, there in zip(of_the_kernel(), before, strict=True)]
        if not any(left):
            return
        time.sleep(0.05)
    assert left == [set()] * 3


def run(text: str, **more: object) -> fanin.RunResult:
    """A run, again when this machine was too busy for it or another run had the testbed; skips when it stays so."""
    attempt = partial(fanin.run, "scenario.toml", text=text, **{"engine": "testbed", **more})  # type: ignore[arg-type]
    return in_the_end(attempt)


def in_the_end(attempt: Callable[[], Made]) -> Made:
    """What an attempt makes when this machine leaves it alone; skips when it does not."""
    try:
        return honesty.valid(attempt, wait_s=10)
    except (honesty.DisturbedError, honesty.HeldError) as why:
        pytest.skip(str(why))


def test_reno_fills_the_line_and_the_buffer() -> None:
    result = run(LONG, cc="reno")
    port = result.ports.filter(port="switch->client").row(0, named=True)
    assert port["utilisation"] > 0.9
    assert port["max_queue_packets"] == 60
    assert port["drops"] > 0
    assert port["offered_packets"] == port["packets"] + port["drops"]
    assert result.queue["packets"].max() == 60
    delivered = result.flows["bytes_delivered"].sum()
    # 20 Mbps for 2 s are 5 MB, headers included.
    assert 4_000_000 < delivered < 5_000_000
    assert result.flows["retransmissions"].sum() >= port["drops"] - result.flows["drops"].sum()
    [figures] = result.testbed.to_dicts()
    assert figures["released"] > 3000
    assert figures["ring_drops"] == figures["strays"] == figures["refused"] == figures["skipped_callbacks"] == 0


def test_dctcp_keeps_the_queue_at_its_threshold() -> None:
    if not has_twins() and "dctcp" not in host.available():
        pytest.skip("this kernel has no dctcp and takes no BPF twin")
    result = run(LONG, cc="dctcp")
    port = result.ports.filter(port="switch->client").row(0, named=True)
    assert port["drops"] == 0
    assert 5 < port["mean_queue_packets"] < 35
    assert 0 < port["marks"] < port["packets"]
    assert result.flows["ece_acks"].min() > 0


DEADLINES = """
[topology]
senders = 8
rate = "1Gbps"
receiver_rate = "100Mbps"
delay = "100us"
buffer = "250p"
mark = "20p"
[stack]
profile = "linux"
[cc]
name = "d2tcp"
[[workload]]
kind = "incast"
class = "near"
from = ["s1", "s2", "s3", "s4"]
bytes = "256KB"
rounds = 5
deadline = "120ms"
[[workload]]
kind = "incast"
class = "far"
from = ["s5", "s6", "s7", "s8"]
bytes = "256KB"
rounds = 5
deadline = "400ms"
[run]
duration = "5s"
"""


def test_sockets_tell_d2tcp_their_deadlines_and_the_near_ones_go_first() -> None:
    if not has_twins():
        pytest.skip("this kernel takes no BPF twin")
    usual = {}
    for cc in ("d2tcp", "dctcp"):
        done = run(DEADLINES, cc=cc).messages
        usual[cc] = dict(done.group_by("class").agg(pl.col("completion_ms").median()).iter_rows())
    # Fair shares of 100 Mbps are 171 ms for each of eight times 256 KB; simulated 128 and 187 ms.
    assert usual["d2tcp"]["near"] < 0.85 * usual["d2tcp"]["far"]
    assert usual["d2tcp"]["near"] < 0.9 * usual["dctcp"]["near"]
    assert usual["dctcp"]["near"] == pytest.approx(usual["dctcp"]["far"], rel=0.15)


@pytest.mark.parametrize("r_min", [200, 0])
def test_tcprand_sends_segments_of_the_sizes_that_it_draws(r_min: int) -> None:
    text = LONG.replace("[measure]", '[measure]\npackets = ["switch->client"]')
    text = text.replace("[[workload]]", f'[cc]\nname = "tcprand+cubic"\nrand_rmin = "{r_min}B"\n[[workload]]')
    result = run(text)
    assert result.runs["cc"].unique().to_list() == ["tcprand+cubic"]
    sizes = result.packets.filter((pl.col("event") == "delivered") & (pl.col("payload") > 0))["payload"]
    assert sizes.len() > 2000
    assert sizes.max() == 1448
    if r_min:
        # Uniform on 200 to 1448: the mean of 2000 lies within 4 standard errors of 8 bytes.
        # A write of 65,536 bytes that is sent before the next one comes ends in a segment of any length.
        assert (sizes < 200).sum() <= sizes.sum() / 65_536
        assert abs(float(sizes.mean()) - 824) < 40  # type: ignore[arg-type]
        assert abs(float(sizes.quantile(0.5)) - 824) < 60  # type: ignore[arg-type]
    else:
        assert 900 < float(sizes.mean()) < 1448  # type: ignore[arg-type]
        assert sizes.n_unique() > 300


@pytest.mark.parametrize("cc", ["iatcp", "ictcp"])
def test_a_receivers_windows_keep_an_incast_below_the_buffer(cc: str) -> None:
    # Initial windows of ten packets each overflow it; windows of two do not.
    text = MANY.format(cc=cc)
    held, free = run(text), run(MANY.format(cc="reno"))
    assert held.runs["cc"].unique().to_list() == [cc]
    assert held.messages["done_ms"].null_count() == 0
    ports = [result.ports.filter(pl.col("port") == "switch->client").row(0, named=True) for result in (held, free)]
    assert ports[0]["drops"] == 0
    assert ports[1]["drops"] > 50
    assert ports[0]["max_queue_packets"] <= 4 * 12


def test_a_receivers_program_stands_before_the_receiver_of_endless_flows() -> None:
    held = run(LONG, cc="iatcp", settings={"run.duration": "1s"})
    port = held.ports.filter(pl.col("port") == "switch->client").row(0, named=True)
    assert held.runs["cc"].unique().to_list() == ["iatcp"]
    assert port["drops"] == 0


def test_a_receivers_program_fills_the_line_of_one_flow() -> None:
    # Its window is the path's content, by the least round trip: one that no packet made leaves one packet.
    settings = {"topology.senders": "1", "topology.receiver_rate": "100Mbps"}
    sent = [int(run(LONG, cc="iatcp", settings=settings, engine=e).flows["bytes_delivered"].sum()) for e in ENGINES]
    assert sent[0] > 0.6 * sent[1]


def test_a_job_runs_on_the_testbed_as_on_any_engine() -> None:
    job = Job(Document(MANY.format(cc="ictcp"), "many.toml"), seed=1, engine="testbed", frames=("runs", "ports"))
    made = in_the_end(job.run)
    assert set(made) == {"runs", "ports"}
    assert made["runs"]["cc"].to_list() == ["ictcp"]
    assert job.key() != replace(job, engine="sim").key()
    assert job.command().endswith("--engine testbed --seed 1")


def test_claims_that_are_about_no_real_kernel_are_named() -> None:
    result = fanin.reproduce("gss.fig4", quick=True, engine="testbed")
    assert result.on_linux == []
    assert result.skipped == ["on the testbed: none of these claims is about a real kernel"]


def test_a_parameter_that_a_receivers_program_lacks_is_refused() -> None:
    with pytest.raises(
        fanin.ScenarioError, match=r"cc\.iatcp_spread_first: the program in front of a receiver's kernel"
    ):
        run(MANY.format(cc="iatcp"), settings={"cc.iatcp_spread_first": "false"})


def test_every_message_of_an_incast_arrives_and_is_counted_once() -> None:
    result = run(INCAST, cc="cubic")
    assert result.runs["complete"].all()
    assert result.messages["done_ms"].null_count() == 0
    assert result.flows["bytes_delivered"].to_list() == [60_000] * 4
    assert (result.messages["completion_ms"] >= result.messages["ideal_ms"]).all()


def test_nginx_answers_every_request_and_the_client_sees_each_byte() -> None:
    missing = [name for name in web.PROGRAMS if shutil.which(name) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} is missing")
    text = INCAST.replace('bytes = "20KB"', 'bytes = "20KB"\nrequest = "150B"\nopen = "before"')
    plain, http = (run(text, cc="cubic", engine=engine) for engine in ("testbed", "testbed-http"))
    assert http.runs["complete"].all()
    for result in (plain, http):
        answers = result.flows.filter(pl.col("class") != "request")
        assert answers["bytes_delivered"].to_list() == [60_000] * 4
        assert result.messages["done_ms"].null_count() == 0
    sent = [result.flows.filter(pl.col("class") != "request")["bytes_sent"].sum() for result in (plain, http)]
    # A header of nginx's before each of 12 responses: 100 to 400 bytes.
    retransmitted = plain.flows["drops"].sum() + http.flows["drops"].sum()
    if not retransmitted:
        assert 1_200 < sent[1] - sent[0] < 4_800
    asked = http.flows.filter(pl.col("class") == "request")
    assert asked["bytes_sent"].to_list() == asked["bytes_delivered"].to_list() == [3 * 150] * 4
    assert http.flows.filter(pl.col("class") != "request")["timeouts"].null_count() == 4


def test_http_needs_requests_that_are_answered_at_once() -> None:
    if any(shutil.which(name) is None for name in web.PROGRAMS):
        pytest.skip("nginx is missing")
    with pytest.raises((EngineError, ScenarioError), match=r"no HTTP response|does not answer at once|has no response"):
        run(LONG, cc="reno", engine="testbed-http")


def test_captures_hold_the_packets_of_a_place(tmp_path: Path) -> None:
    result = run(INCAST, cc="reno", pcap=tmp_path, pcap_at=["switch->client"])
    [file] = tmp_path.glob("*.pcap*")
    trains = fanin.trains(file)
    assert trains is not None
    assert result.ports.filter(port="switch->client")["packets"].item() > 0


def test_what_this_machine_cannot_carry_is_refused_in_a_sentence() -> None:
    fast = LONG.replace("20Mbps", "40Gbps").replace("100Mbps", "40Gbps")
    with pytest.raises(
        EngineError, match=r"packets would reach a host at 40 Gbps, .* lower the rate to 1.2 Gbps at most"
    ):
        fanin.run("fast.toml", text=fast, cc="reno", engine="testbed")
    short = LONG.replace('profile = "linux"', 'profile = "linux"\nmin_rto = "1ms"')
    if host.tick_us() > 500:
        with pytest.raises(ScenarioError, match=r"stack.min_rto: this kernel's timers count in"):
            fanin.run("short.toml", text=short, cc="reno", engine="testbed")
    with pytest.raises(ScenarioError, match=r"stack.profile"):
        fanin.run("ns2.toml", text=LONG.replace("linux", "ns2"), cc="reno", engine="testbed")
    if "bic" not in host.available():
        with pytest.raises((EngineError, ScenarioError), match="bic"):
            fanin.run("bic.toml", text=LONG, cc="bic", engine="testbed")


def test_a_run_that_is_not_honest_is_an_error_and_no_result() -> None:
    fair = honesty.row(
        dict.fromkeys(
            ("late", "lateness_sum_ns", "lateness_max_ns", "stalls", "stall_sum_ns", "stall_max_ns", "misordered"), 0
        )
        | dict.fromkeys(("misordered_max_ns", "ring_drops", "strays", "refused", "cpu_ns", "first_ns"), 0)
        | {"released": 1000, "released_bytes": 1_000_000, "last_ns": 1_000_000_000},
        skipped=0,
    )
    honesty.check(fair, 1000)
    assert fair["achieved_mbps"] == 8.0
    for key, value, words in (
        ("skipped_callbacks", 1, "1 callbacks of the twin were skipped"),
        ("ring_drops", 2, "2 packets found no room"),
        ("refused", 3, "3 packets were refused"),
        ("late", 100, "10.0% of the packets were released more than 50 us late"),
        ("misordered", 20, "2.0% of the packets were seen after later ones had been decided"),
        ("stalled_ms", 30, "without its CPU for 3.0% of the run"),
        ("longest_stall_ms", 80, "without its CPU for 80 ms at once"),
    ):
        with pytest.raises(EngineError, match=words):
            honesty.check({**fair, key: value}, 1000)
    with pytest.raises(EngineError, match="the wall clock was set"):
        honesty.check(fair, 1000, clock_steps=1)


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_run_that_is_stopped_leaves_nothing(tmp_path: Path, sign: signal.Signals) -> None:
    file = tmp_path / "long.toml"
    file.write_text(LONG.replace('"2s"', '"60s"'))
    command = [sys.executable, "-m", "fanin", "run", str(file), "--engine", "testbed", "--cc", "reno"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        began = time.monotonic()
        while time.monotonic() - began < 60 and process.poll() is None:
            if any("fanin-player" in name for name in of_the_kernel()[2]):
                break
            time.sleep(0.1)
        assert process.poll() is None, "it ended before it played"
        os.kill(process.pid, sign)
        assert process.wait(30) != 0
    finally:
        process.kill()
        process.wait()
    # `nothing_is_left` looks at the rest.


def test_a_second_run_says_who_has_the_testbed() -> None:
    with host.alone(), pytest.raises(EngineError, match=f"another run holds the testbed \\(process {os.getpid()}\\)"):
        fanin.run("long.toml", text=LONG, cc="reno", engine="testbed")


def test_the_processor_time_of_a_sender_is_its_own() -> None:
    # A library that asks TCP before each record costs more than segments of 64 KB, however busy the machine is.
    try:
        rows = sender_cpu(flows=(1, 8), seconds=0.5, mbps=50)
    except EngineError as error:
        if "this machine sent" in str(error) or "holds the testbed" in str(error):
            pytest.skip(str(error))
        raise
    assert rows["scheme"].unique(maintain_order=True).to_list() == ["cubic", "cubic without offload", "tcprand"]
    assert rows["flows"].to_list() == [1, 8, 1, 8, 1, 8]
    assert rows["mbps"].is_between(45, 75).all()
    assert rows["share"].is_between(0, 1.1, closed="none").all()
    cubic, plain, tcprand = (
        rows.filter(scheme=name)["ms_per_mb"] for name in rows["scheme"].unique(maintain_order=True)
    )
    assert (tcprand > cubic).all()
    # What offload saves one sender, whose segments are the largest.
    assert plain[0] > cubic[0]


def test_a_sender_that_fills_its_core_before_its_link_is_told_by_what_the_link_would_take() -> None:
    try:
        rows = sender_cpu(flows=(1,), seconds=0.2, mbps=30_000)
    except EngineError as error:
        if "this machine sent" in str(error) or "holds the testbed" in str(error):
            pytest.skip(str(error))
        raise
    slower = rows.filter(pl.col("mbps") < 27_000)
    assert "tcprand" in slower["scheme"]
    # ms per MB at 30 Gbps, 3,750 MB a second, of 1,000 ms.
    assert slower["share"].to_list() == pytest.approx([3.75 * each for each in slower["ms_per_mb"]])
    assert (slower["share"] > 1).all()
