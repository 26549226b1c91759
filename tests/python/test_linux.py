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

from .conftest import TWINS
from .linux_host import CLIENT, CYCLES, MARKS, SERVER, available, fanin, line, refused, start, wait_until, within

pytest_plugins = ["tests.python.linux_host"]
pytestmark = MARKS


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
