"""The loader on this machine's own kernel: twins in and out, each failure in a sentence, nothing left behind. Needs root."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import unified_diff
from pathlib import Path

import pytest
from fanin.errors import EngineError
from fanin.linux import program
from fanin.settings.candidates import Candidate
from fanin.settings.lines import how_to

from .conftest import TWINS

CYCLES = int(os.environ.get("FANIN_CYCLES", "20"))


def available() -> list[str]:
    return sorted(Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split())


def why_not() -> str | None:
    """The reason to skip, if there is one."""
    if os.geteuid() != 0:
        return "needs root"
    try:
        checks = program.call("check")["checks"]
    except EngineError as error:
        return str(error)
    missing = [c["what"] for c in checks if not c["ok"] and c["what"] not in ("bpffs", "ECN", "tcp_rto_min_us")]
    return f"this host lacks {', '.join(missing)}" if missing else None


pytestmark = pytest.mark.skipif((reason := why_not()) is not None, reason=reason or "")


@pytest.fixture(autouse=True)
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A BPF file system and a state folder of the test's own; afterwards nothing of it is in the kernel."""
    pins = tmp_path / "bpf"
    pins.mkdir()
    if subprocess.run(["mount", "-t", "bpf", "bpf", str(pins)], check=False, capture_output=True).returncode:
        pytest.skip("cannot mount a BPF file system here")
    monkeypatch.setenv("FANIN_BPFFS", str(pins))
    monkeypatch.setenv("FANIN_STATE", str(tmp_path / "state"))
    before = available()
    try:
        yield pins
        program.call("unload", "--all")
        assert available() == before
        assert not (pins / "fanin").exists()
    finally:
        subprocess.run(["umount", str(pins)], check=False)


def fanin(*words: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "fanin", "linux", *words],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | env,
    )


def refused(done: subprocess.CompletedProcess[str]) -> str:
    """The one sentence on standard error."""
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    return " ".join(done.stderr.split())


@pytest.mark.parametrize("name", TWINS)
def test_every_twin_loads_and_unloads(name: str) -> None:
    loaded = program.call("load", name)["loaded"]
    assert loaded in available()
    [row] = program.call("status")["loaded"]
    assert row["algorithm"] == name
    assert row["counters"]["skipped_callbacks"] == 0
    assert program.call("unload", name)["unloaded"] == [loaded]
    assert loaded not in available()


def test_parameters_reach_the_twin_and_wrong_ones_are_named() -> None:
    program.call(
        "load", "trim", "--param", "rate_pps=81274", "--param", "base_rtt_us=100", "--param", "buffer_packets=100"
    )
    program.call("unload", "trim")
    with pytest.raises(
        EngineError, match="fanin_trim has no parameter `rate`; it has rate_pps, buffer_packets, base_rtt_us, k_us"
    ):
        program.call("load", "trim", "--param", "rate=3")
    with pytest.raises(EngineError, match="must be a whole number"):
        program.call("load", "trim", "--param", "k_us=fast")


def test_each_failure_is_a_sentence_and_leaves_nothing(host: Path, tmp_path: Path) -> None:
    before = available()
    assert "fanin has nothing to load for `cubik`" in refused(fanin("load", "cubik"))
    assert "has no BTF" in refused(fanin("load", "trim", FANIN_BTF="/nonexistent"))
    old = tmp_path / "old_btf"
    old.write_bytes(b"\0tcp_sock\0bpf_struct_ops_tcp_congestion_ops\0")
    assert "its BTF has no `bpf_struct_ops_link`" in refused(fanin("load", "trim", FANIN_BTF=str(old)))
    assert "must be a writable BPF file system" in refused(fanin("load", "trim", FANIN_BPFFS="/proc"))
    subprocess.run(["mount", "-o", "remount,ro", str(host)], check=True)
    assert "must be a writable BPF file system" in refused(fanin("load", "trim"))
    subprocess.run(["mount", "-o", "remount,rw", str(host)], check=True)
    assert "is not loaded" in refused(fanin("unload", "trim"))
    nobody = subprocess.run(
        ["setpriv", "--reuid", "65534", "--clear-groups", program.find(), "load", "trim"],
        capture_output=True,
        text=True,
        check=False,
    )
    if "ermission denied" not in nobody.stderr:
        assert "needs root" in nobody.stderr
    assert available() == before
    assert not (host / "fanin").exists()


def test_loaded_twice_and_a_clash_of_names(tmp_path: Path) -> None:
    program.call("load", "dctcp")
    assert "already loaded" in refused(fanin("load", "dctcp"))
    # In another BPF file system the load belongs to another user of the tool.
    other = tmp_path / "other"
    other.mkdir()
    subprocess.run(["mount", "-t", "bpf", "bpf", str(other)], check=True)
    try:
        assert "registered as `fanin_dctcp`, not by fanin" in refused(fanin("load", "dctcp", FANIN_BPFFS=str(other)))
    finally:
        subprocess.run(["umount", str(other)], check=True)


def wait_until(happened: object, seconds: float = 10.0) -> None:
    end = time.monotonic() + seconds
    while not happened() and time.monotonic() < end:  # type: ignore[operator]
        time.sleep(0.02)
    assert happened()  # type: ignore[operator]


def test_a_held_load_is_gone_with_its_process_however_it_ends() -> None:
    for end in (signal.SIGKILL, signal.SIGTERM):
        child = subprocess.Popen(
            [program.find(), "load", "vegas", "--hold"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
        )
        wait_until(lambda: "fanin_vegas" in available())
        child.send_signal(end)
        child.communicate()
        wait_until(lambda: "fanin_vegas" not in available())


def test_a_load_killed_at_any_moment_is_all_there_or_not_at_all() -> None:
    for i in range(12):
        child = subprocess.Popen(
            [program.find(), "load", "dctcp"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        time.sleep(0.008 * i)
        child.kill()
        child.wait()
        # The kernel frees what was not pinned in its own time.
        listed = bool(program.call("status")["loaded"])
        wait_until(lambda listed=listed: ("fanin_dctcp" in available()) == listed)
        program.call("unload", "--all")


def mounted(place: Path) -> list[str]:
    """Sources of the BPF file systems at a place."""
    lines = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    return [source for source, where, kind, *_ in lines if (where, kind) == (str(place), "bpf")]


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where pins belong, without a file system for them."""
    place = tmp_path / "bare"
    place.mkdir()
    monkeypatch.setenv("FANIN_BPFFS", str(place))
    yield place
    while mounted(place):
        subprocess.run(["umount", str(place)], check=True)


def test_a_file_system_for_pins_is_mounted_where_there_is_none_and_goes_with_the_last_pin(bare: Path) -> None:
    program.call("load", "dctcp")
    assert mounted(bare) == ["fanin-host"]
    program.call("load", "trim")
    program.call("unload", "dctcp")
    assert mounted(bare) == ["fanin-host"]
    program.call("unload", "trim")
    assert mounted(bare) == []
    # What another program has pinned there stays, and so does the file system.
    program.call("load", "dctcp")
    (bare / "anothers").mkdir()
    program.call("unload", "dctcp")
    assert mounted(bare) == ["fanin-host"]
    assert "anothers" in [path.name for path in bare.iterdir()]


def test_no_file_system_is_mounted_over_files_or_where_it_would_go_with_the_command(bare: Path) -> None:
    alone = subprocess.run(
        ["unshare", "--mount", program.find(), "load", "dctcp"], capture_output=True, text=True, check=False
    )
    assert "must be a writable BPF file system" in refused(alone)
    (bare / "file").touch()
    assert "must be a writable BPF file system" in refused(fanin("load", "dctcp"))
    assert (mounted(bare), [path.name for path in bare.iterdir()]) == ([], ["file"])
    assert "fanin_dctcp" not in available()


def everything(namespace: str, folders: tuple[Path, ...]) -> str:
    """Whatever a command may change: routes, sysctls, congestion controls, modules, mounts, and files of these folders.

    The kernel's own multicast routes of IPv6 come some time after a device is up.
    """
    shown = subprocess.run(
        f"ip -n {namespace} -4 route show table all; ip -n {namespace} -6 route show table all | grep -v '^multicast';"
        f"ip netns exec {namespace} sysctl -a 2>/dev/null | grep -E '^net[.](core|ipv4|ipv6)[.]' | grep -v -E 'fastopen_key|_mem |congestion';"
        "ls /sys/module; cat /proc/modules 2>/dev/null; grep bpf /proc/self/mounts",
        shell=True, capture_output=True, text=True, check=False,
    ).stdout  # fmt: skip
    files = sorted(str(path) for folder in folders for path in folder.rglob("*") if path.name != "lock")
    return "\n".join([shown, *available(), *files])


@contextmanager
def a_host(name: str) -> Iterator[None]:
    """A network namespace with an address on a device, as after a boot."""
    made = f"""
        set -e; ip netns add {name}; ip -n {name} link add d0 type veth peer name d1; ip -n {name} link set lo up
        for d in d0 d1; do ip -n {name} link set $d addrgenmode none; done
        ip -n {name} addr add 10.99.0.2/24 dev d0; ip -n {name} link set d1 up; ip -n {name} link set d0 up
    """
    done = subprocess.run(made, shell=True, capture_output=True, text=True, check=False)
    try:
        if done.returncode:
            pytest.skip(f"namespaces cannot be made here: {done.stderr.strip()}")
        yield
    finally:
        subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


PLAN = """
format = 1
[servers]
hosts = ["10.99.0.2"]
peers = ["10.99.0.1", "10.99.0.7"]
twin = "dctcp"
route = { congctl = "fanin_dctcp", rto_min = "7ms", initcwnd = "3" }
sysctl = { "net.ipv4.tcp_slow_start_after_idle" = "0" }
"""


def test_after_kills_and_restarts_at_any_moment_undo_leaves_all_as_before(host: Path, tmp_path: Path) -> None:
    """``FANIN_CYCLES=1000`` for many."""
    name, state, plan = f"fanin-test-{os.getpid()}-k", tmp_path / "state", tmp_path / "plan.toml"
    plan.write_text(PLAN)
    state.mkdir()
    of_host = ["ip", "netns", "exec", name, program.find(), "--state", str(state)]
    draw, cut = random.Random(28), 0
    before = ""
    for cycle in range(CYCLES):
        with a_host(name):
            before = before or everything(name, (host, state))
            for words in (["apply", str(plan)], ["undo"]):
                child = subprocess.Popen([*of_host, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                time.sleep(draw.uniform(0, 0.15))
                child.kill()
                cut += child.wait() != 0
            if cycle % 2:
                restart(host, state, name)
            done = subprocess.run([*of_host, "undo"], capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
            wait_until(lambda: "fanin_dctcp" not in available())
            after = everything(name, (host, state))
            assert list(unified_diff(before.splitlines(), after.splitlines(), n=0)) == [], f"cycle {cycle}"
    assert cut > CYCLES / 2


def restart(pins: Path, state: Path, name: str) -> None:
    """What a boot does: settings and pins are gone; a state that lies on a disk is of an earlier boot."""
    for file in state.glob("net-*.json"):
        told = json.loads(file.read_text())
        assert re.fullmatch("[0-9a-f-]{36}", told["boot"])
        file.write_text(json.dumps(told | {"boot": "0" * 36}))
    subprocess.run(["umount", str(pins)], check=True)
    subprocess.run(["mount", "-t", "bpf", "bpf", str(pins)], check=True)
    subprocess.run(
        f"for d in d0 d1 lo; do ip -n {name} link set $d down; done; ip -n {name} addr flush dev d0;"
        f"ip -n {name} route flush table all; ip -n {name} link set d1 up; ip -n {name} link set lo up;"
        f"ip -n {name} addr add 10.99.0.2/24 dev d0; ip -n {name} link set d0 up;"
        f"ip netns exec {name} sysctl -q -w net.ipv4.tcp_slow_start_after_idle=1",
        shell=True, check=True, capture_output=True,
    )  # fmt: skip


def ids() -> tuple[int, int]:
    """Programs and maps in the kernel."""
    count = [
        subprocess.run(["bpftool", kind, "list", "-j"], capture_output=True, text=True, check=True).stdout
        for kind in ("prog", "map")
    ]
    programs, maps = (len(json.loads(text or "[]")) for text in count)
    return programs, maps


def test_many_cycles_leave_the_kernel_as_it_was() -> None:
    try:
        before = ids()
    except FileNotFoundError:
        pytest.skip("bpftool is missing")
    for _ in range(CYCLES):
        program.call("load", "dctcp")
        program.call("unload", "dctcp")
    # Fewer, where the kernel had not yet freed what an earlier test took back.
    wait_until(lambda: all(now <= then for now, then in zip(ids(), before, strict=True)))


# ---- traffic, in namespaces of the test's own

SERVER = """
import socket
s = socket.create_server(("10.99.0.1", 5001))
print("ready", flush=True)
c, _ = s.accept()
while c.recv(1 << 16):
    pass
"""
CLIENT = """
import socket, sys, time
c = socket.create_connection(("10.99.0.1", 5001))
print(c.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).split(b"\\0")[0].decode(), flush=True)
end = time.monotonic() + float(sys.argv[1])
sent = 0
while time.monotonic() < end:
    sent += c.send(b"x" * 65536)
print(sent, flush=True)
"""


@pytest.fixture
def namespaces() -> Iterator[tuple[str, str]]:
    """A sender and a receiver joined by a veth; the sender's ACKs are processed in a kernel thread."""
    sender, receiver = (f"fanin-test-{os.getpid()}-{end}" for end in "sr")

    def sh(text: str) -> None:
        subprocess.run(text, shell=True, check=True, capture_output=True)

    try:
        sh(f"ip netns add {sender}; ip netns add {receiver}")
        sh(f"ip link add eth0 netns {sender} type veth peer name eth0 netns {receiver}")
        for name, address in ((sender, "10.99.0.2/24"), (receiver, "10.99.0.1/24")):
            sh(f"ip -n {name} link set lo up; ip -n {name} addr add {address} dev eth0; ip -n {name} link set eth0 up")
        sh(f"ip netns exec {sender} ethtool -K eth0 gro on")
        sh(f"ip netns exec {sender} sh -c 'echo 1 > /sys/class/net/eth0/threaded'")
        yield sender, receiver
    except subprocess.CalledProcessError as error:
        pytest.skip(f"namespaces cannot be made here: {error.stderr.decode().strip()}")
    finally:
        for name in (sender, receiver):
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


def within(name: str, *words: str) -> list[str]:
    return ["ip", "netns", "exec", name, *words]


def start(command: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def line(child: subprocess.Popen[str]) -> str:
    assert child.stdout
    return child.stdout.readline().strip()


@pytest.mark.parametrize("name", TWINS)
def test_a_transfer_uses_the_twin_and_its_counters_say_so(name: str, namespaces: tuple[str, str]) -> None:
    sender, receiver = namespaces
    linux = program.call("load", name)["loaded"]
    made = subprocess.run(
        within(sender, sys.executable, "-m", "fanin", "linux", "route", "10.99.0.1", name),
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    server = start(within(receiver, sys.executable, "-c", SERVER))
    assert line(server) == "ready"
    client = start(within(sender, sys.executable, "-c", CLIENT, "0.5"))
    assert line(client) == linux
    # Taken back while a socket uses it: the socket goes on, new ones cannot have it.
    counters = program.call("status")["loaded"][0]["counters"]
    assert counters["sockets"] >= 1
    sent = int(line(client))
    assert sent > 1_000_000
    counters = program.call("status")["loaded"][0]["counters"]
    assert counters["acks"] > 50
    assert counters["skipped_callbacks"] == 0
    undone = subprocess.run(
        within(sender, sys.executable, "-m", "fanin", "linux", "route", "10.99.0.1", "--undo"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert undone.returncode == 0, undone.stderr
    for child in (client, server):
        child.communicate(timeout=10)


ASKED = """
import socket, sys
c = socket.create_connection(("10.99.0.2", 5001))
for _ in range(20):
    c.send(b"?")
    left = 100_000
    while left:
        left -= len(c.recv(left))
print("done", flush=True)
"""
ANSWERING = """
import socket
s = socket.create_server(("10.99.0.2", 5001))
print("ready", flush=True)
c, _ = s.accept()
while c.recv(1):
    c.sendall(b"x" * 100_000)
"""
WINDOWS = """
import socket, struct, sys
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800))
s.settimeout(5)
print("ready", flush=True)
most = 0
while True:
    try:
        frame = s.recv(65535)
    except TimeoutError:
        break
    ip = frame[14:]
    tcp = ip[(ip[0] & 15) * 4:]
    if tcp[13] & 1:
        break
    if tcp[13] & 2 or ip[12:16] != bytes([10, 99, 0, 1]):
        continue
    most = max(most, struct.unpack("!H", tcp[14:16])[0])
print(most, flush=True)
"""


def test_a_receivers_algorithm_sets_the_windows_on_the_wire_and_is_taken_back(namespaces: tuple[str, str]) -> None:
    sender, receiver = namespaces
    command = [sys.executable, "-m", "fanin", "linux"]

    def on_receiver(*words: str) -> str:
        done = subprocess.run(within(receiver, *command, *words), capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    seen = {}
    # One window of 2 packets; without, the kernel's own is far above.
    for loaded in (True, False):
        if loaded:
            said = on_receiver(
                "load", "iatcp", "--device", "eth0", "--param", "rate_mbps=100", "--param", "base_rtt_us=240"
            )
            assert "iatcp on eth0" in said
            again = subprocess.run(
                within(receiver, *command, "load", "ictcp", "--device", "eth0"),
                capture_output=True,
                text=True,
                check=False,
            )
            assert "iatcp@eth0 is already loaded" in refused(again)
        server = start(within(sender, sys.executable, "-c", ANSWERING))
        assert line(server) == "ready"
        tap = start(within(sender, sys.executable, "-c", WINDOWS))
        assert line(tap) == "ready"
        client = start(within(receiver, sys.executable, "-c", ASKED))
        assert line(client) == "done"
        seen[loaded] = int(line(tap))
        for child in (client, server, tap):
            child.communicate(timeout=10)
        if loaded:
            [row] = program.call("status")["receivers"]
            assert (row["algorithm"], row["device"]) == ("iatcp", "eth0")
            assert row["counters"]["connections"] == 1
            assert row["counters"]["packets"] >= 20
            assert row["counters"]["windows_rewritten"] > 100
            assert "iatcp@eth0" in on_receiver("unload", "iatcp")
            assert program.call("status")["receivers"] == []
    # In units of 2^scale bytes, which the kernel chooses by its memory.
    assert seen[True] in {-(-2 * 1448 // 2**scale) for scale in range(15)}
    assert seen[False] > 10 * seen[True]


def test_what_a_receivers_algorithm_needs_is_said(namespaces: tuple[str, str]) -> None:
    _, receiver = namespaces
    assert "works on a device: --device NAME" in refused(fanin("load", "ictcp"))
    assert "there is no network device `fanin-none`" in refused(fanin("load", "ictcp", "--device", "fanin-none"))
    assert "is for senders and takes no --device" in refused(fanin("load", "trim", "--device", "lo"))
    assert "ictcp@lo has no parameter `rate`" in refused(fanin("load", "ictcp", "--device", "lo", "--param", "rate=3"))
    assert "receiver's algorithm" in refused(fanin("trial", "10.99.0.2", "ictcp"))
    # Held by a process, it goes with it.
    held = within(receiver, program.find(), "load", "ictcp", "--device", "eth0", "--hold")
    child = subprocess.Popen(held, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert json.loads(line(child))["loaded"] == "ictcp@eth0"
    links = within(receiver, "bpftool", "net", "show", "dev", "eth0")
    child.kill()
    child.communicate()
    if shutil.which("bpftool"):
        wait_until(lambda: "fanin_" not in subprocess.run(links, capture_output=True, text=True, check=False).stdout)


def test_unloading_while_a_socket_uses_it_takes_the_name_and_leaves_the_socket(namespaces: tuple[str, str]) -> None:
    sender, receiver = namespaces
    program.call("load", "dcvegas")
    subprocess.run(
        within(sender, "ip", "route", "add", "10.99.0.1/32", "dev", "eth0", "congctl", "fanin_dcvegas"), check=True
    )
    server = start(within(receiver, sys.executable, "-c", SERVER))
    assert line(server) == "ready"
    client = start(within(sender, sys.executable, "-c", CLIENT, "0.6"))
    assert line(client) == "fanin_dcvegas"
    program.call("unload", "dcvegas")
    assert "fanin_dcvegas" not in available()
    assert int(line(client)) > 1_000_000
    for child in (client, server):
        child.communicate(timeout=10)


def test_a_trial_takes_everything_back_at_its_end_and_when_it_is_killed(namespaces: tuple[str, str]) -> None:
    sender, _ = namespaces
    trial = within(
        sender, sys.executable, "-m", "fanin", "linux", "trial", "10.99.0.1", "trim", "--for", "1s", "--json"
    )
    done = subprocess.run(trial, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["stopped"] is None

    def shown_routes() -> str:
        shown = subprocess.run(["ip", "-n", sender, "route"], capture_output=True, text=True, check=True)
        return shown.stdout

    assert "congctl" not in shown_routes()
    assert "fanin_trim" not in available()
    trial[-2:] = ["60s"]
    child = subprocess.Popen(trial, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_until(lambda: "fanin_trim" in shown_routes())
    child.kill()
    child.wait()
    wait_until(lambda: "fanin_trim" not in available())
    wait_until(lambda: "congctl" not in shown_routes())


def kernel_as(namespace: str) -> str:
    """What a plan with a twin may change: routes, TCP's sysctls, pins, modules, congestion controls, and what is kept."""
    shown = [
        f"ip -4 -n {namespace} route show table all",
        f"ip netns exec {namespace} sysctl -a 2>/dev/null | grep '^net.ipv4.tcp' | grep -v -E 'tcp_fastopen_key|_mem'",
        f"find {os.environ['FANIN_BPFFS']} -path '*/fanin*' | sort; find {os.environ['FANIN_STATE']} -name '*.json*' | sort",
        "cut -d' ' -f1 /proc/modules | sort",
    ]
    return subprocess.run(["sh", "-c", "; ".join(shown)], capture_output=True, text=True, check=True).stdout


def same_again(namespace: str, before: str) -> None:
    """The kernel frees what it had loaded in its own time."""
    for _ in range(500):
        if kernel_as(namespace) == before:
            return
        time.sleep(0.02)
    assert kernel_as(namespace).splitlines() == before.splitlines()


@pytest.fixture
def plan(namespaces: tuple[str, str], tmp_path: Path) -> list[str]:
    """The sender's command with a plan of TRIM, as `fanin compare --plan` writes it; its last word is the plan."""
    told = how_to(Candidate("trim"), aggregator="10.99.0.1", now="cubic", servers=["10.99.0.2"], rack={"rate": "1Gbps"})
    assert told is not None
    assert told.plan is not None
    file = tmp_path / "plan.toml"
    file.write_text(told.plan.toml("trim"))
    return within(namespaces[0], program.find(), "apply", str(file))


def test_a_plan_loads_its_twin_gives_it_to_connections_and_undo_takes_both_back(
    namespaces: tuple[str, str], plan: list[str]
) -> None:
    sender, receiver = namespaces
    undo = [*plan[:-2], "undo"]
    before = kernel_as(sender)
    for _ in range(2):
        done = subprocess.run(plan, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    changes = json.loads(done.stdout)["changes"]
    assert changes[0] == {"loaded": "trim", "device": None, "params": {"rate_pps": 81274}}
    assert [change["route"] for change in changes[1:]] == ["10.99.0.1"]
    server = start(within(receiver, sys.executable, "-c", SERVER))
    assert line(server) == "ready"
    client = start(within(sender, sys.executable, "-c", CLIENT, "0.5"))
    assert line(client) == "fanin_trim"
    assert int(line(client)) > 1_000_000
    for child in (client, server):
        child.communicate(timeout=10)
    file = Path(plan[-1])
    file.write_text(file.read_text().replace("81274", "81275"))
    assert "trim is loaded with other parameters" in refused(
        subprocess.run(plan, capture_output=True, text=True, check=False)
    )
    done = subprocess.run(undo, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, '{"undone":2}\n')
    same_again(sender, before)


def test_a_plan_that_fails_leaves_neither_twin_nor_route(namespaces: tuple[str, str], plan: list[str]) -> None:
    before = kernel_as(namespaces[0])
    file = Path(plan[-1])
    good = file.read_text()
    for wrong, said in (
        (good.replace('["10.99.0.1"]', '["10.99.0.1", "172.31.0.9"]'), "unreachable"),
        (good.replace("rate_pps", "rate"), "has no parameter `rate`"),
        (good.replace('twin = "trim"', 'twin = "trimm"'), "nothing to load for `trimm`"),
    ):
        file.write_text(wrong)
        assert said in refused(subprocess.run(plan, capture_output=True, text=True, check=False))
        same_again(namespaces[0], before)


def test_a_plan_with_a_twin_killed_at_any_moment_is_taken_back_byte_for_byte(
    namespaces: tuple[str, str], plan: list[str]
) -> None:
    """After each cycle all is as before: ``FANIN_CYCLES=1000`` for many."""
    sender, _ = namespaces
    before = kernel_as(sender)
    undo = [*plan[:-2], "undo"]
    killed = 0
    for cycle in range(CYCLES):
        for command in (plan, undo):
            child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            # From before it began to after it ended: a load takes some 60 ms.
            time.sleep(0.004 * (cycle % 20))
            child.kill()
            killed += child.wait() != 0
        done = subprocess.run(undo, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        same_again(sender, before)
    assert killed > CYCLES // 4


def test_ctrl_c_takes_a_trial_back_and_says_so(namespaces: tuple[str, str]) -> None:
    sender, _ = namespaces
    words = ["-m", "fanin", "linux", "trial", "10.99.0.1", "trim", "--for", "60s"]
    command = within(sender, sys.executable, *words)

    def shown_routes() -> str:
        shown = ["ip", "-n", sender, "route"]
        return subprocess.run(shown, capture_output=True, text=True, check=True).stdout

    for end in (signal.SIGINT, signal.SIGTERM):
        child = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
        wait_until(lambda: "fanin_trim" in shown_routes(), 30)
        # As a terminal does: to everything that runs there.
        os.killpg(child.pid, end)
        said = " ".join(child.communicate(timeout=30)[1].split())
        assert child.returncode == 130
        assert re.search(r"interrupted: taken back after [\d.]+ s, the twin and the route$", said), said
        assert "congctl" not in shown_routes()
        assert "fanin_trim" not in available()


def test_a_trial_is_taken_back_at_once_when_round_trips_get_longer(namespaces: tuple[str, str]) -> None:
    sender, receiver = namespaces
    server = start(within(receiver, sys.executable, "-c", SERVER))
    assert line(server) == "ready"
    client = start(within(sender, sys.executable, "-c", CLIENT, "60"))
    line(client)
    words = ["-m", "fanin", "linux", "trial", "10.99.0.1", "dctcp", "--for", "120s", "--json"]
    trial = subprocess.Popen(
        within(sender, sys.executable, *words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )

    def shown_routes() -> str:
        shown = ["ip", "-n", sender, "route"]
        return subprocess.run(shown, capture_output=True, text=True, check=True).stdout

    try:
        wait_until(lambda: "fanin_dctcp" in shown_routes(), 60)
        # A queue of 300 ms where there was none.
        slow = ["tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", "2mbit", "burst", "16kb", "limit", "80kb"]
        if subprocess.run(within(sender, *slow), check=False, capture_output=True).returncode:
            pytest.skip("this kernel has no tbf to make a queue with")
        said, error = trial.communicate(timeout=60)
        assert trial.returncode == 0, error
        answer = json.loads(said)
        assert "the p99 RTT rose" in answer["stopped"]
        assert answer["seconds"] < 100
        assert "congctl" not in shown_routes()
        assert "fanin_dctcp" not in available()
    finally:
        for child in (trial, client, server):
            child.kill()
            child.communicate()
