"""Every line that fanin prints for hosts, typed into two network namespaces, and what takes it back: the hosts are then as they were, bit by bit."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from fanin.settings import Candidate, how_to
from fanin.settings.declared import End
from fanin.settings.hosts import HOST_SETTINGS, HostSetting
from fanin.settings.lines import Recommendation, recommendation

AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
ALLOWED = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control")
SERVER, AGGREGATOR = "fanin-server", "fanin-aggregator"
DEVICE = {SERVER: "s0", AGGREGATOR: "a0"}

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("ip") is None or shutil.which("ss") is None,
    reason="needs root, ip and ss, to make network namespaces",
)


class Hosts:
    """A server, 10.98.0.2, and the aggregator, 10.98.0.1 and fd98::1, on one link; each with a /run/fanin of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in (SERVER, AGGREGATOR):
            (folder / name).mkdir()
        self._made = not Path("/run/fanin").exists()
        Path("/run/fanin").mkdir(exist_ok=True)
        sh(f"ip netns add {AGGREGATOR}")
        sh(f"ip link add s0 netns {SERVER} type veth peer name a0 netns {AGGREGATOR}")
        for name in (SERVER, AGGREGATOR):
            # The kernel's own link-local addresses would come some seconds later, in the middle of a test.
            sh(f"ip -n {name} link set {DEVICE[name]} addrgenmode none")
            sh(f"ip -n {name} link set {DEVICE[name]} up; ip -n {name} link set lo up")
        for name, last in ((SERVER, 2), (AGGREGATOR, 1)):
            while "state UP" not in sh(f"ip -n {name} link show {DEVICE[name]}"):
                time.sleep(0.05)
            sh(f"ip -n {name} addr add 10.98.0.{last}/24 dev {DEVICE[name]}")
            sh(f"ip -n {name} addr add fd98::{last}/64 dev {DEVICE[name]} nodad")
        # Linkwatch and IPv6 add their own routes within a second of the link's coming up.
        seen = [""]
        while seen[-1] == "" or len(set(seen[-5:])) > 1 or len(seen) < 6:
            seen.append("".join(sh(f"ip -n {name} -6 route show table all") for name in (SERVER, AGGREGATOR)))
            time.sleep(0.1)

    def close(self) -> None:
        if self._made:
            Path("/run/fanin").rmdir()

    def on(self, name: str, *lines: str) -> str:
        """Types lines on a host, each in a shell of its own; what they print."""
        said = ""
        for line in lines:
            # `ip netns exec` has a mount namespace of its own.
            typed = f"mount --bind {self.folder / name} /run/fanin\n{line}"
            words = ["ip", "netns", "exec", name, "bash", "-c", typed]
            done = subprocess.run(words, capture_output=True, text=True, check=False)
            assert done.returncode == 0, f"{line}\n{done.stderr}"
            said += done.stdout
        return said

    def state(self, name: str) -> dict[str, str]:
        """All that the lines could have changed."""
        asked = {
            "routes": "ip route show table all; ip -6 route show table all",
            "sysctls": "sysctl -a --pattern '^net\\.ipv4\\.tcp_' 2>/dev/null | grep -v available",
            "device": f"ip -d link show dev {DEVICE[name]}; tc qdisc show dev {DEVICE[name]}",
            "kept": "ls /run/fanin",
        }
        return {what: self.on(name, line) for what, line in asked.items()}


def sh(command: str) -> str:
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stderr}"
    return done.stdout


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[Hosts]:
    made = subprocess.run(["ip", "netns", "add", SERVER], capture_output=True, text=True, check=False)
    if made.returncode:
        pytest.skip(f"no network namespace can be made here: {made.stderr.strip()}")
    try:
        both = Hosts(tmp_path)
        yield both
        both.close()
    finally:
        for name in (SERVER, AGGREGATOR):
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


def needs_kernel(cc: str) -> None:
    if (
        cc not in AVAILABLE.read_text().split()
        and subprocess.run(["sh", "-c", f"modprobe tcp_{cc}"], check=False).returncode
    ):
        pytest.skip(f"this kernel has no tcp_{cc}")


def typed_and_taken_back(
    hosts: Hosts, name: str, lines: Sequence[str], undo: Sequence[str], shown: dict[str, str]
) -> None:
    """The lines show in the host's settings, twice typed they save nothing anew, and undone all is as it was."""
    before = hosts.state(name)
    hosts.on(name, *lines, *lines)
    after = hosts.state(name)
    for what, text in shown.items():
        assert text in after[what], f"{text} is not in the {what}: {after[what]}"
    hosts.on(name, *undo)
    assert hosts.state(name) == before


def told_of(candidate: Candidate, aggregator: str, server: str) -> Recommendation:
    told = how_to(candidate, aggregator=aggregator, now="cubic", servers=[server])
    assert told is not None
    return told


@pytest.mark.parametrize("family", [4, 6])
@pytest.mark.parametrize("cc", ["reno", "cubic", "bbr", "dctcp"])
def test_a_congestion_control_is_typed_and_taken_back(hosts: Hosts, cc: str, family: int) -> None:
    needs_kernel(cc)
    aggregator, server = ("10.98.0.1", "10.98.0.2") if family == 4 else ("fd98::1", "fd98::2")
    told = recommendation(cc, aggregator=aggregator, servers=[server], now="cubic", mark="20p")
    assert told is not None
    typed_and_taken_back(hosts, SERVER, told.trial, told.undo, {"routes": f"congctl {cc}"})
    hosts.on(SERVER, told.check)
    assert bool(told.at_aggregator) == (cc == "dctcp")
    if told.at_aggregator:
        typed_and_taken_back(
            hosts, AGGREGATOR, told.at_aggregator, told.undo_at_aggregator, {"routes": f"congctl {cc}"}
        )
    # Outside the machine's own namespace the kernel lets only unrestricted modules be the default.
    if {cc, "bbr"} <= set(ALLOWED.read_text().split()):
        # What the host ran is what it goes back to, though nobody told fanin.
        hosts.on(SERVER, "sysctl -qw net.ipv4.tcp_congestion_control=bbr")
        shown = {"sysctls": f"net.ipv4.tcp_congestion_control = {cc}\n"}
        typed_and_taken_back(hosts, SERVER, [told.everywhere], [told.undo_everywhere], shown)


FLOOR = Candidate("cubic", (("stack.min_rto", "20ms"), ("stack.initial_window", "4")))


def test_a_floor_is_typed_at_both_ends_and_taken_back(hosts: Hosts) -> None:
    told = told_of(FLOOR, "10.98.0.1", "10.98.0.2")
    typed_and_taken_back(
        hosts, SERVER, told.trial, told.undo, {"routes": "10.98.0.1 dev s0 proto kernel scope link src 10.98.0.2 "}
    )
    typed_and_taken_back(
        hosts,
        AGGREGATOR,
        told.at_aggregator,
        told.undo_at_aggregator,
        {"routes": "10.98.0.2 dev a0 proto kernel scope link src 10.98.0.1 rto_min lock 20ms"},
    )


def test_a_floor_for_all_connections_is_typed_and_taken_back(hosts: Hosts) -> None:
    """`ss -ti` of a connection whose route says nothing: its timer has the floor, and 200 ms when the line is taken back."""
    if not Path("/proc/sys/net/ipv4/tcp_rto_min_us").exists():
        pytest.skip("this kernel has no tcp_rto_min_us (Linux 6.11)")
    told = told_of(Candidate("reno", (("stack.min_rto", "20ms"),)), "10.98.0.1", "10.98.0.2")
    shown = {"sysctls": "net.ipv4.tcp_rto_min_us = 20000\n"}
    typed_and_taken_back(hosts, SERVER, [told.everywhere], [told.undo_everywhere], shown)
    for name in (SERVER, AGGREGATOR):
        hosts.on(name, told.everywhere)
    said = said_of_a_connection(hosts, told.check)
    assert " reno " in said, said
    assert 20 <= rto_of(said) < 60, said
    for name in (SERVER, AGGREGATOR):
        hosts.on(name, told.undo_everywhere)
    assert rto_of(said_of_a_connection(hosts, told.check)) >= 200


def test_a_kernel_without_the_sysctl_of_the_floor_is_left_as_it_was(hosts: Hosts) -> None:
    told = told_of(Candidate("reno", (("stack.min_rto", "20ms"),)), "10.98.0.1", "10.98.0.2")
    before = hosts.state(SERVER)
    older = told.everywhere.replace("tcp_rto_min_us", "tcp_no_such_sysctl")
    with pytest.raises(AssertionError, match="No such file"):
        hosts.on(SERVER, older)
    assert hosts.state(SERVER) == before


OWN = "10.98.0.1 dev s0 proto static scope link src 10.98.0.2 metric 7 mtu lock 1400 advmss 1300 initcwnd 20 rto_min lock 100ms congctl reno"


def test_a_route_of_ones_own_keeps_what_it_has_and_comes_back(hosts: Hosts) -> None:
    hosts.on(SERVER, f"ip route add {OWN.replace('rto_min lock', 'rto_min')}")
    told = told_of(FLOOR, "10.98.0.1", "10.98.0.2")
    shown = "src 10.98.0.2 metric 7 mtu lock 1400 advmss 1300 initcwnd 4 rto_min lock 20ms congctl cubic"
    typed_and_taken_back(hosts, SERVER, told.trial, told.undo, {"routes": shown})
    other = Candidate("reno")
    told = told_of(other, "10.98.0.1", "10.98.0.2")
    typed_and_taken_back(
        hosts, SERVER, told.trial, told.undo, {"routes": "initcwnd 20 rto_min lock 100ms congctl reno"}
    )


def test_a_route_over_several_next_hops_keeps_them(hosts: Hosts) -> None:
    hosts.on(
        SERVER,
        "ip route add 10.99.0.0/16 proto static mtu 1400 nexthop via 10.98.0.7 dev s0 weight 1 nexthop via 10.98.0.8 dev s0 weight 3",
    )
    told = told_of(FLOOR, "10.99.0.1", "10.98.0.2")
    hosts.on(SERVER, *told.trial)
    shown = hosts.on(SERVER, "ip -o route show exact 10.99.0.1")
    assert all(text in shown for text in ("proto static mtu 1400", "rto_min lock 20ms", "10.98.0.7", "weight 3")), shown
    hosts.on(SERVER, *told.undo)
    assert hosts.on(SERVER, "ip route show exact 10.99.0.1") == ""


@pytest.mark.parametrize("setting", HOST_SETTINGS, ids=lambda s: s.option)
def test_every_setting_of_hosts_is_typed_and_taken_back(hosts: Hosts, setting: HostSetting) -> None:
    name, peer = (AGGREGATOR, "10.98.0.2") if setting.end is End.AGGREGATOR else (SERVER, "10.98.0.1")
    if setting.place == "sysctl" and not Path(f"/proc/sys/net/ipv4/{setting.option}").exists():
        pytest.skip(f"this kernel has no {setting.option}")
    if setting.place == "qdisc":
        tried = subprocess.run(["tc", "-n", name, "qdisc", "add", "dev", DEVICE[name], "root", "fq"], check=False)
        if tried.returncode:
            pytest.skip("this kernel has no qdisc fq")
        hosts.on(name, f"tc qdisc del dev {DEVICE[name]} root")
    tabbed = setting.value.replace(" ", "\t")
    shown = {
        "route": ("routes", f"{setting.option} {setting.value}"),
        "sysctl": ("sysctls", f"{setting.option} = {tabbed}"),
        "device": ("device", f"{setting.option} {setting.value}"),
        "qdisc": ("device", "qdisc fq"),
    }[setting.place]
    text = shown[1].replace("rto_min ", "rto_min lock ")
    typed_and_taken_back(hosts, name, setting.lines([peer]), setting.undo([peer]), {shown[0]: text})


def said_of_a_connection(hosts: Hosts, check: str) -> str:
    """What a line says on the server while the aggregator has a connection to it that has answered once."""
    listen = "import socket; s=socket.create_server(('10.98.0.2',9000)); c,_=s.accept(); c.recv(1); c.sendall(b'x'); c.recv(1)"
    ask = """
import socket, time
for _ in range(100):
    try:
        s = socket.create_connection(("10.98.0.2", 9000))
        break
    except OSError:
        time.sleep(0.1)
s.sendall(b"x")
s.recv(1)
print("up", flush=True)
input()
"""
    python = shutil.which("python3") or "python3"
    within = ["ip", "netns", "exec"]
    with (
        subprocess.Popen([*within, SERVER, python, "-c", listen], stdout=subprocess.PIPE) as server,
        subprocess.Popen(
            [*within, AGGREGATOR, python, "-c", ask], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as client,
    ):
        assert client.stdout is not None
        assert client.stdout.readline()
        said = hosts.on(SERVER, check)
        client.communicate(b"\n", timeout=20)
        server.wait(timeout=20)
    return said


def rto_of(said: str) -> float:
    """The retransmission timer of a connection, ms."""
    return float(said.split(" rto:")[1].split()[0])


def test_a_connection_uses_what_was_typed(hosts: Hosts) -> None:
    """`ss -ti` of a connection that the aggregator opened to the server: the server's congestion control, window and timer are those of its route."""
    told = told_of(
        Candidate("reno", (("stack.min_rto", "20ms"), ("stack.initial_window", "4"))), "10.98.0.1", "10.98.0.2"
    )
    hosts.on(SERVER, *told.trial)
    hosts.on(AGGREGATOR, *told.at_aggregator)
    said = said_of_a_connection(hosts, told.check)
    assert " reno " in said, said
    assert "cwnd:4" in said, said
    # 20 ms and the round trip, in jiffies; 200 ms and more without the floor.
    assert 20 <= rto_of(said) < 60, said
