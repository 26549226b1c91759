"""The engine `kernel`. What needs a built kernel is skipped where there is none (`fanin kernel build`); the rest runs everywhere."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import fanin
import polars as pl
import pytest
from fanin.errors import EngineError, Interrupted, ScenarioError
from fanin.kernel import build, cache, command, machine
from fanin.process.progress import Progress

from lab import validation

from .conftest import processes_in

LONG = """
[topology]
senders = 2
rate = "100Mbps"
delay = "25us"
buffer = "400p"
mark = "20p"
[stack]
profile = "linux"
[cc]
name = "dctcp"
[[workload]]
kind = "long"
[run]
duration = "500ms"
[measure]
queues = ["switch->client"]
windows = ["long"]
"""

INCAST = """
[topology]
senders = 8
rate = "1Gbps"
delay = "25us"
buffer = "100p"
[stack]
profile = "linux"
[cc]
name = "cubic"
[[workload]]
kind = "incast"
bytes = "64KB"
rounds = 3
request = "100B"
[run]
duration = "5s"
"""


def same(a: fanin.RunResult, b: fanin.RunResult) -> bool:
    frames = ("messages", "flows", "ports", "queue", "window", "runs")
    return all(getattr(a, name).equals(getattr(b, name)) for name in frames)


@pytest.mark.usefixtures("kernel")
def test_connections_that_open_before_the_first_round_do() -> None:
    text = INCAST.replace("rounds = 3", 'rounds = 3\nopen = "before"\nlead = "7ms"')
    text += '[measure]\npackets = ["client->switch"]\n'
    for engine in ("sim", "kernel"):
        packets = fanin.run("incast.toml", text=text, engine=engine).packets.sort("time_ms")
        assert packets["time_ms"][0] < 0.1
        assert 7 <= packets.filter(pl.col("payload") > 0)["time_ms"][0] < 7.1, engine


@pytest.mark.usefixtures("kernel")
def test_long_flows_repeat_bit_by_bit_and_fill_the_link() -> None:
    first = fanin.run("long.toml", text=LONG, engine="kernel")
    assert same(first, fanin.run("long.toml", text=LONG, engine="kernel"))
    goodput = first.flows["bytes_delivered"].sum() * 8 / 0.5
    # 1448 of 1500 bytes are payload: 96.5 Mbps at most; the first round trips and the handshake cost some.
    assert 90e6 < goodput < 96.6e6
    bottleneck = first.ports.filter(port="switch->client").row(0, named=True)
    assert bottleneck["marks"] > 0
    assert bottleneck["drops"] == 0
    # DCTCP holds the queue near K = 20 (RFC 8257).
    late = first.queue.filter(pl.col("time_ms") > 200)
    assert 10 < late["packets"].mean() < 35


@pytest.mark.usefixtures("kernel")
def test_incast_repeats_bit_by_bit_and_its_counts_agree() -> None:
    result = fanin.run("incast.toml", text=INCAST, engine="kernel")
    assert same(result, fanin.run("incast.toml", text=INCAST, engine="kernel"))
    assert result.runs["complete"].to_list() == [True]
    answers = result.flows.filter(pl.col("class") == "incast")
    assert answers["bytes_delivered"].to_list() == [3 * 64_000] * 8
    # Every segment that was sent was dropped somewhere or acknowledged: what was sent again is what was dropped, or spurious.
    assert (answers["retransmissions"] >= answers["drops"]).all()
    assert answers["bytes_sent"].sum() > 8 * 3 * 64_000 - 1
    ports = result.ports.filter(port="switch->client").row(0, named=True)
    assert ports["drops"] == answers["drops"].sum() + result.flows["ack_drops"].sum() * 0
    assert ports["max_queue_packets"] <= 100
    done = result.messages.filter(pl.col("class") == "incast")
    assert (done["completion_ms"] >= done["ideal_ms"] * 0.99).all()
    assert (done["first_send_ms"] >= done["release_ms"]).all()


@pytest.mark.usefixtures("kernel")
def test_the_seed_decides_the_noise_of_the_hosts() -> None:
    one, two = (fanin.run("incast.toml", text=INCAST, seed=seed, engine="kernel") for seed in (1, 2))
    assert not one.messages["done_ms"].equals(two.messages["done_ms"])


@pytest.mark.usefixtures("kernel")
def test_a_profile_that_is_no_kernel_is_refused_with_its_line() -> None:
    text = LONG.replace('profile = "linux"', 'profile = "ns2"')
    with pytest.raises(ScenarioError, match=r"long\.toml:9.*stack\.profile.*ns2"):
        fanin.run("long.toml", text=text, engine="kernel")
    with pytest.raises(ScenarioError, match=r"cc\.name.*has no `ndp`"):
        fanin.run("long.toml", text=LONG, cc="ndp", engine="kernel")


@pytest.mark.usefixtures("kernel")
def test_the_twins_run_on_real_tcp() -> None:
    result = fanin.run(
        "long.toml", text=LONG, cc=[f"{c}@linux" for c in ("trim", "dcvegas", "gss+dctcp", "l2dct")], engine="kernel"
    )
    assert not result.failures
    goodput = result.flows.group_by("cc").agg(pl.col("bytes_delivered").sum() * 8 / 0.5)
    assert (goodput["bytes_delivered"] > 70e6).all()


@pytest.mark.usefixtures("kernel")
def test_tshark_sees_the_packets_that_the_ports_counted(tmp_path: Path) -> None:
    if shutil.which("tshark") is None:
        pytest.skip("tshark is not installed")
    result = fanin.run("incast.toml", text=INCAST, engine="kernel", pcap=tmp_path, pcap_at=["switch->client", "client"])
    file = tmp_path / "switch-client.pcap"
    fields = ["-e", "tcp.len", "-e", "tcp.checksum.status", "-e", "ip.checksum.status"]
    options = ["-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"]
    command = ["tshark", "-n", "-r", str(file), "-T", "fields", *fields, *options]
    rows = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\n")[:-1]
    port = result.ports.filter(port="switch->client").row(0, named=True)
    assert len(rows) == port["packets"]
    # 1 is good; 2 is unverified, which a truncated packet may be.
    assert {row.split("\t")[2] for row in rows} == {"1"}


@pytest.mark.usefixtures("kernel")
def test_an_ordinary_user_may_run_it(kernel: cache.Kernel, tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("this is an ordinary user already")
    from fanin import _native

    place = Path("/tmp") / f"fanin-user-{os.getpid()}"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(mode=0o755)
    try:
        mine = cache.Kernel(place / "linux", place / "guest", kernel.version, kernel.hertz)
        shutil.copy(kernel.linux, mine.linux)
        shutil.copy(kernel.guest, mine.guest)
        folder = place / "run"
        folder.mkdir()
        plan = _native.Scenario.from_text(INCAST, "incast.toml").plan(1)
        _native.kernel_prepare(plan, folder)
        for path in (folder, *folder.iterdir()):
            os.chown(path, 65534, 65534)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)
                machine.start_kernel(mine, folder, 1, lambda _: True)
                code = 0
            finally:
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        assert _native.kernel_results(plan, folder).complete
    finally:
        shutil.rmtree(place, ignore_errors=True)


def test_the_model_stands_beside_the_kernel(kernel: cache.Kernel, tmp_path: Path) -> None:
    chosen = [case for case in validation.cases(quick=True) if case.messages]
    kept = validation.Kept(tmp_path)
    done = validation.measure(chosen, kernel, kept, cc=["cubic", "dctcp"], seeds=(1, 1))
    rows = validation.judged(done)
    assert done.complete
    assert rows.height == 2 * len(chosen)
    text = validation.page(rows, "python -m lab validate --quick", "0.1.0", "Linux 6.12", done.complete)
    assert "| incast, 8 x 32KB, 1Gbps, 100p | cubic |" in text
    # The same again is read, not run.
    again = validation.measure(chosen, kernel, kept, cc=["cubic", "dctcp"], seeds=(1, 1), progress=no_progress)
    assert validation.judged(again).equals(rows)


def no_progress(title: str, total: int) -> Progress:
    raise AssertionError(f"{title}: {total} runs that were kept are made again")


def test_rows_outside_the_bounds_are_counted_as_such() -> None:
    run = {"group": "long flows", "case": "long", "cc": "cubic", "seed": 1, "goodput_mbps": 900.0, "queue": 50.0}
    run |= {"queue_p99": 60.0, "drops": 0.0, "marks": 0.0, "retransmissions": 0.0, "timeouts": 0.0}
    far = {**run, "cc": "newreno", "queue": 60.0}
    runs = [{**r, "engine": "sim"} for r in (run, far)] + [{**r, "queue": 50.0, "engine": "kernel"} for r in (run, far)]
    rows = validation.judged(validation.Done(runs, {}))
    assert rows["outside"].to_list() == ["", "queue"]
    assert "1 of 2 rows within the bounds" in validation.page(
        rows, "python -m lab validate", "0.1.0", "Linux 6.12", True
    )
    assert validation.orders(rows)["tau"].to_list() == [0.0]


def test_a_break_within_two_standard_errors_is_looked_at_over_sixty_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Queues of 60 (9 to 111, or 59 and 61 by turns) against 50: an error of 8.2, and of 0.2."""
    about = {"group": "long flows", "case": "long", "goodput_mbps": 900.0, "queue_p99": 60.0}
    about |= dict.fromkeys(("drops", "marks", "retransmissions", "timeouts"), 0.0)
    queues = {"wide": (9.0, 111.0), "narrow": (59.0, 61.0)}

    def done(seeds: int) -> validation.Done:
        runs = [
            {**about, "cc": cc, "engine": engine, "seed": seed, "queue": both[seed % 2] if engine == "sim" else 50.0}
            for cc, both in queues.items()
            for engine in ("sim", "kernel")
            for seed in range(seeds)
        ]
        return validation.Done(runs, {})

    def measure(
        *_: object, seeds: tuple[int, ...], more: Callable[[validation.Done], set[object]], **__: object
    ) -> None:
        assert seeds == (3, 20, 60)
        assert more(done(4)) == {("long", "wide"), ("long", "narrow")}
        assert more(done(20)) == {("long", "wide")}
        monkeypatch.undo()

    monkeypatch.setattr(validation.judge, "measure", measure)
    validation.measured([], cache.Kernel(Path(), Path(), "6.12", 250), validation.Kept(Path()), validation.IDEAL)
    assert validation.judge.measure is validation.measure, "what was asked of it was looked at"


def test_the_scenarios_of_the_validation_can_be_built() -> None:
    chosen = validation.cases()
    assert len(chosen) >= 60
    assert len({case.name for case in chosen}) == len(chosen)
    for case in chosen:
        validation.Work(case, case.cc[0], 1, 250, None).job().plan()


# ---- with a stand-in for the kernel ----


def stand_in(folder: Path, script: str) -> cache.Kernel:
    program = folder / "linux"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    (folder / "guest").touch()
    return cache.Kernel(program, folder / "guest", "6.12.0", 250)


def is_left(folder: Path) -> bool:
    """A process still works in the folder after 20 s: one that was killed takes a moment to end."""
    deadline = time.monotonic() + 20
    while processes_in(folder) and time.monotonic() < deadline:
        time.sleep(0.05)
    return bool(processes_in(folder))


@pytest.fixture
def run_folder(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "run"
    folder.mkdir()
    yield folder
    assert not is_left(folder)


def test_a_kernel_that_stands_still_is_ended(tmp_path: Path, run_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FANIN_KERNEL_STANDSTILL_S", "0.3")
    with pytest.raises(EngineError, match=r"stood still for 0\.3 s"):
        machine.start_kernel(stand_in(tmp_path, "sleep 1000 & sleep 1000"), run_folder, 1, lambda _: True)


def test_a_kernel_that_warned_gives_no_result(tmp_path: Path, run_folder: Path) -> None:
    script = "echo 'WARNING: CPU: 0 PID: 1 at net/ipv4/tcp_input.c:2849'; touch log.json"
    with pytest.raises(EngineError, match=r"reported a fault.*tcp_input\.c:2849"):
        machine.start_kernel(stand_in(tmp_path, script), run_folder, 1, lambda _: True)


def test_a_kernel_that_stops_early_gives_no_result(tmp_path: Path, run_folder: Path) -> None:
    with pytest.raises(EngineError, match=r"stopped early \(exit code 3\); it last said: no such root"):
        machine.start_kernel(stand_in(tmp_path, "echo no such root; exit 3"), run_folder, 1, lambda _: True)


def test_whoever_asks_stops_it(tmp_path: Path, run_folder: Path) -> None:
    with pytest.raises(Interrupted):
        machine.start_kernel(stand_in(tmp_path, "sleep 1000"), run_folder, 1, lambda _: False)


def test_nothing_is_left_when_this_process_is_killed(tmp_path: Path) -> None:
    stand_in(tmp_path, "sleep 1000 & sleep 1000")
    program = f"""
import os, pathlib
from fanin.kernel import cache, machine
home = pathlib.Path({str(tmp_path)!r})
with machine.scratch() as folder:
    print(folder, flush=True)
    kernel = cache.Kernel(home / "linux", home / "guest", "6.12.0", 250)
    machine.start_kernel(kernel, folder, 1, lambda _: print("runs", flush=True) or True)
"""
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    environment = {**os.environ, "TMPDIR": str(temporary)}
    with subprocess.Popen([sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        folder = Path(child.stdout.readline().strip())
        child.stdout.readline()
        assert processes_in(folder)
        child.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 20
    while (processes_in(folder) or folder.exists()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not processes_in(folder)
    assert list(temporary.iterdir()) == []


def test_a_folder_whose_owner_was_killed_is_removed_by_the_next_run_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    program = """
import time
from fanin.kernel import machine
with machine.scratch() as folder:
    print(folder, flush=True)
    time.sleep(1000)
"""
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    left, lives = (
        subprocess.Popen([sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    )
    try:
        assert left.stdout is not None
        assert lives.stdout is not None
        abandoned, used = Path(left.stdout.readline().strip()), Path(lives.stdout.readline().strip())
        left.kill()
        left.wait()
        foreign, link = (tmp_path / name for name in ("kernel-x", "fanin-kernel-link"))
        foreign.mkdir()
        link.symlink_to(foreign)
        with machine.scratch() as mine:
            assert not abandoned.exists()
            assert {p.name for p in tmp_path.iterdir()} == {p.name for p in (used, foreign, link, mine)}
    finally:
        for process in (left, lives):
            process.kill()
            process.communicate()


# ---- building ----


def test_a_build_says_which_package_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(build.shutil, "which", lambda name: None if name in ("flex", "bc") else f"/usr/bin/{name}")
    with pytest.raises(EngineError, match=r"needs flex, bc; Debian: apt-get install flex bc"):
        build.check_tools()
    log = tmp_path / "build.log"
    log.write_text("  CC a.o\nfatal error: gelf.h: No such file or directory\n")
    assert build.failure(log, "make") == "building the kernel needs libelf-dev; Debian: apt-get install libelf-dev"
    log.write_text("\n".join(f"line {n}" for n in range(40)))
    assert "line 39" in build.failure(log, "make")
    assert "line 24\n" not in build.failure(log, "make")


def test_what_is_no_kernel_source_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(EngineError, match="no such file or folder"):
        build.find_source(tmp_path / "none.tar.xz")
    tmp_path.joinpath("text.tar.xz").write_text("Dear reader,")
    with pytest.raises(
        EngineError, match=r"text\.tar\.xz: this is no tarball, or a damaged one; name [^\n]* with --source$"
    ):
        build.find_source(tmp_path / "text.tar.xz")
    with pytest.raises(EngineError, match="no kernel source"):
        build.find_source(tmp_path)
    (tmp_path / "Makefile").write_text("VERSION = 5\nPATCHLEVEL = 10\nSUBLEVEL = 7\n")
    with pytest.raises(EngineError, match=r"it is Linux 5\.10\.7, and fanin's files are for Linux 6\.12"):
        build.find_source(tmp_path)
    monkeypatch.setattr(build, "SOURCES", tmp_path)
    with pytest.raises(EngineError, match="apt-get install linux-source-6"):
        build.find_source()


def test_a_c_file_that_registers_nothing_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "mine.c"
    file.write_text("int main(void) { return 0; }")
    with pytest.raises(EngineError, match="does not call tcp_register_congestion_control"):
        build.checked_c_file(file)


def test_a_kernel_that_is_not_built_says_how(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FANIN_KERNEL_CACHE", str(tmp_path))
    with pytest.raises(EngineError, match=r"HZ=1000\) is not built; run `fanin kernel build --hz 1000`"):
        fanin.run("long.toml", text=LONG, engine="kernel-hz1000")
    with pytest.raises(ScenarioError, match="the engine is 'linux'"):
        fanin.run("long.toml", text=LONG, engine="linux")


def test_a_wrong_source_is_refused_before_anything_is_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FANIN_KERNEL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(build, "_build_guest", lambda _: pytest.fail("the player was compiled"))
    with pytest.raises(EngineError, match="there is no such file or folder; name a kernel's source with --source"):
        build.build(tmp_path / "none.tar.xz")


def test_a_full_disk_is_what_is_said_of_a_run_and_of_a_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.joinpath("console").write_text("")
    tmp_path.joinpath("failure").write_text("")
    log = tmp_path / "build.log"
    log.write_text("ld terminated with signal 7 [Bus error]\n")
    machine._check(0, tmp_path)
    assert "Bus error" in build.failure(log, "cargo")
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=0))
    with pytest.raises(EngineError, match=f"no space is left in {tmp_path.parent}, .* TMPDIR"):
        machine._check(0, tmp_path)
    assert build.failure(log, "cargo").startswith(f"no space is left in {tmp_path}; ")


def test_a_cache_that_cannot_be_removed_is_not_said_to_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = tmp_path / "kernel"
    kept.mkdir()
    monkeypatch.setenv("FANIN_KERNEL_CACHE", str(kept))

    def refused(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    with monkeypatch.context() as only:
        only.setattr("shutil.rmtree", refused)
        with pytest.raises(EngineError, match=r"kernel: it cannot be removed \(permission denied\)"):
            command.clean()
    assert "removed" not in capsys.readouterr().err
    command.clean()
    assert not kept.exists()
