"""What the tests of this machine's own kernel share: a place for pins, two hosts, and a transfer between them. Needs root."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from fanin.errors import EngineError
from fanin.linux import program

CYCLES = int(os.environ.get("FANIN_CYCLES", "20"))
"""How often something is killed and taken back."""


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


@pytest.fixture
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


def wait_until(happened: object, seconds: float = 10.0) -> None:
    end = time.monotonic() + seconds
    while not happened() and time.monotonic() < end:  # type: ignore[operator]
        time.sleep(0.02)
    assert happened()  # type: ignore[operator]


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


MARKS = [pytest.mark.skipif((reason := why_not()) is not None, reason=reason or ""), pytest.mark.usefixtures("host")]
