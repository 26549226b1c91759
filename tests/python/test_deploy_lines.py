"""The lines that a report advises, typed into hosts: two network namespaces that the test makes and removes."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from fanin.deployable import recommendation

AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
ALLOWED = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control")
SERVER, AGGREGATOR = "fanin-server", "fanin-aggregator"

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("ip") is None or shutil.which("ss") is None,
    reason="needs root, ip and ss, to make network namespaces",
)


def sh(command: str, namespace: str | None = None) -> str:
    words = ["sh", "-c", command] if namespace is None else ["ip", "netns", "exec", namespace, "sh", "-c", command]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stderr}"
    return done.stdout


@pytest.fixture
def hosts() -> Iterator[None]:
    """A server, 10.98.0.2, and the aggregator, 10.98.0.1 and fd98::1, on one link."""
    made = subprocess.run(["ip", "netns", "add", SERVER], capture_output=True, text=True, check=False)
    if made.returncode:
        pytest.skip(f"no network namespace can be made here: {made.stderr.strip()}")
    try:
        sh(f"ip netns add {AGGREGATOR}")
        sh(f"ip link add s0 netns {SERVER} type veth peer name a0 netns {AGGREGATOR}")
        for name, device, last in ((SERVER, "s0", 2), (AGGREGATOR, "a0", 1)):
            sh(f"ip -n {name} addr add 10.98.0.{last}/24 dev {device}")
            sh(f"ip -n {name} addr add fd98::{last}/64 dev {device} nodad")
            sh(f"ip -n {name} link set {device} up; ip -n {name} link set lo up")
        yield
    finally:
        for name in (SERVER, AGGREGATOR):
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


@pytest.mark.parametrize("aggregator", ["10.98.0.1", "fd98::1"])
@pytest.mark.parametrize("cc", ["reno", "cubic", "bbr", "dctcp"])
def test_the_advised_lines_change_new_connections_and_are_taken_back(hosts: None, cc: str, aggregator: str) -> None:
    told = recommendation(cc, aggregator=aggregator, now="cubic", mark="20p")
    assert told is not None
    loads = [line for line in told.trial if line.startswith("modprobe")]
    if cc not in AVAILABLE.read_text().split():
        tried = [subprocess.run(["sh", "-c", line], capture_output=True, check=False) for line in loads]
        if not loads or any(one.returncode for one in tried):
            pytest.skip(f"this kernel has no tcp_{cc}")
    family = "-6" if ":" in aggregator else "-4"
    routes = f"ip {family} route show {aggregator}"
    assert sh(routes, SERVER) == ""
    for line in told.trial:
        if line not in loads:
            sh(line, SERVER)
    assert f"congctl {cc}" in sh(routes, SERVER)
    sh(told.check, SERVER)
    for line in told.undo:
        sh(line, SERVER)
    assert sh(routes, SERVER) == ""
    # Outside the machine's own namespace the kernel lets only unrestricted modules be the default.
    if not {cc, "cubic"} <= set(ALLOWED.read_text().split()):
        return
    usual = "sysctl -n net.ipv4.tcp_congestion_control"
    sh(told.everywhere, SERVER)
    assert sh(usual, SERVER).strip() == cc
    sh(told.undo_everywhere, SERVER)
    assert sh(usual, SERVER).strip() == "cubic"
