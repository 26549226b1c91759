"""Racks of network namespaces in real time: token buckets and queues of tc, an aggregator, servers, and a tap at the switch and at the aggregator.

``.venv/bin/python -m tests.python.real_racks 40`` prints the second half of `results/racks.csv`. Needs root.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import random
import selectors
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import fanin
from fanin.rack.queue import as_bps

from . import spoilt

SWITCH, CLIENT = "fanin-rr-switch", "fanin-rr-client"
PORT = 9000
SNAP = 96
SO_TIMESTAMPNS, SO_RCVBUFFORCE, OUTGOING = 35, 33, 4
FULL = 1514
"""Bytes that a shaper counts for a full packet."""


@dataclass(frozen=True)
class Rack:
    """One rack and its traffic."""

    servers: int
    mbps: int
    buffer: int
    queue: str
    shaped: bool
    offload: bool
    size: int
    cc: str
    shaper: str = "tbf"
    """What holds the rate in front of the aggregator: `tbf` or `htb`."""
    own: int | None = None
    """The rate of each server's own link, Mbps, where it is slower than the aggregator's."""

    @property
    def discipline(self) -> str:
        """The queue in front of the aggregator, for tc."""
        return f"pfifo limit {self.buffer}" if self.queue == "pfifo" else f"bfifo limit {self.buffer * FULL}"

    @property
    def bucket(self) -> str:
        """A token bucket of the rack's rate, for tc."""
        return token_bucket(self.mbps)

    @property
    def bottleneck(self) -> tuple[str, ...]:
        """What tc adds at the port to the aggregator."""
        queue = "qdisc add dev c0 handle 2: parent"
        if self.shaper == "htb":
            one = f"class add dev c0 parent 1: classid 1:1 htb rate {self.mbps}mbit burst 3200 cburst 3200"
            return ("qdisc add dev c0 root handle 1: htb default 1", one, f"{queue} 1:1 {self.discipline}")
        return (f"qdisc add dev c0 handle 1: {self.bucket}", f"{queue} 1: {self.discipline}")


def token_bucket(mbps: int) -> str:
    """A token bucket, for tc."""
    return f"root tbf rate {mbps}mbit burst 3200 limit 10mb"


def drawn(number: int) -> Rack:
    """The rack of this number."""
    draw = random.Random(number)
    return Rack(
        servers=draw.choice([6, 8, 12]),
        mbps=draw.choice([50, 100, 150, 200, 300, 400]),
        buffer=draw.choice([20, 30, 40, 60, 100]),
        queue=draw.choice(["pfifo", "pfifo", "bfifo"]),
        shaped=draw.random() < 0.7,
        offload=draw.random() < 0.7,
        size=draw.choice([16_384, 32_768, 65_536]),
        cc=draw.choice(["cubic", "reno"]),
    )


def sh(line: str) -> None:
    """Run a line of shell, which must succeed."""
    done = subprocess.run(line, shell=True, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{line}: {done.stderr.strip()}")


def server(number: int) -> str:
    """The namespace of a server."""
    return f"fanin-rr-{number}"


def up(rack: Rack) -> None:
    """Make the namespaces; :func:`down` takes them away, also when this fails."""
    sh(f"ip netns add {SWITCH}; ip -n {SWITCH} link add name sw0 type bridge; ip -n {SWITCH} link set sw0 up")
    for number in range(rack.servers + 1):
        name, port = (server(number), f"s{number}") if number else (CLIENT, "c0")
        sh(f"ip netns add {name} && ip link add ve netns {name} type veth peer name {port} netns {SWITCH}")
        sh(
            f"ip -n {SWITCH} link set {port} master sw0 up && ip -n {name} link set ve up && ip -n {name} link set lo up"
        )
        sh(f"ip -n {name} addr add 10.9.{int(number > 0)}.{number or 1}/16 dev ve")
        sh(f"ip netns exec {name} sysctl -qw net.ipv4.tcp_no_metrics_save=1")
        if rack.shaped:
            sh(f"tc -n {name} qdisc add dev ve {rack.bucket}")
        if rack.shaped and number:
            sh(f"tc -n {SWITCH} qdisc add dev {port} {rack.bucket}")
        if rack.own is not None and number:
            sh(f"tc -n {name} qdisc replace dev ve {token_bucket(rack.own)}")
        if not rack.offload:
            sh(f"ip netns exec {name} ethtool -K ve tso off gso off gro off")
    for line in rack.bottleneck:
        sh(f"tc -n {SWITCH} {line}")


def down(rack: Rack) -> None:
    """Take the namespaces away."""
    for name in (SWITCH, CLIENT, *(server(number + 1) for number in range(rack.servers))):
        subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


def captured(rack: Rack, folder: Path, *, rounds: int = 20) -> dict[str, Path]:
    """A run's captures, by where they were taken: as packets come to the switch, and at the aggregator."""
    ports = [f"s{number + 1}" for number in range(rack.servers)]
    taps = {"switch": (SWITCH, [*ports, "c0"]), "client": (CLIENT, ["+ve"])}
    files = {tap: folder / f"{tap}.pcap" for tap in taps}
    with contextlib.ExitStack() as stack:
        stack.callback(down, rack)
        up(rack)

        def start(*arguments: str, namespace: str | None = None) -> subprocess.Popen[str]:
            inside = ["ip", "netns", "exec", namespace] if namespace else []
            line = [*inside, sys.executable, "-m", "tests.python.real_racks", *arguments]
            process = subprocess.Popen(line, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2])
            stack.callback(process.wait)
            stack.callback(process.kill)
            assert process.stdout is not None
            stack.enter_context(process.stdout).readline()
            return process

        start("serve", rack.cc, *(server(number + 1) for number in range(rack.servers)))
        listening = [start("sniff", str(files[tap]), *names, namespace=where) for tap, (where, names) in taps.items()]
        addresses = [f"10.9.1.{number + 1}" for number in range(rack.servers)]
        start("ask", str(rounds), str(rack.size), *addresses, namespace=CLIENT).wait(60)
        time.sleep(0.3)
        for process in listening:
            process.send_signal(signal.SIGINT)
        for process in listening:
            process.wait(60)
    return files


# ---- what runs in the namespaces


def serve(cc: str, *namespaces: str) -> None:
    """Answer each request, eight bytes that say how many are wanted, in every namespace."""
    waiting = selectors.DefaultSelector()
    libc = ctypes.CDLL(None, use_errno=True)
    for name in namespaces:
        with Path("/run/netns", name).open() as file:
            if libc.setns(file.fileno(), 0):
                raise OSError(ctypes.get_errno(), name)
        listener = socket.create_server(("", PORT))
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, cc.encode())
        waiting.register(listener, selectors.EVENT_READ, None)
    print("ready", flush=True)
    left: dict[socket.socket, int] = {}
    block = bytes(1 << 20)
    while True:
        for key, _ in waiting.select():
            one = key.fileobj
            assert isinstance(one, socket.socket)
            if key.data is None:
                connection, _ = one.accept()
                connection.setblocking(False)
                waiting.register(connection, selectors.EVENT_READ, "")
                continue
            with contextlib.suppress(BlockingIOError):
                asked = one.recv(8) if not left.get(one) else b""
                left[one] = left.get(one, 0) + (struct.unpack("Q", asked)[0] if asked else 0)
                left[one] -= one.send(block[: left[one]])
            waiting.modify(one, selectors.EVENT_WRITE if left[one] else selectors.EVENT_READ, "")


def ask(rounds: str, size: str, *addresses: str) -> None:
    """Ask all servers, wait for all, pause, and ask again."""
    connections = [socket.create_connection((address, PORT)) for address in addresses]
    for one in connections:
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    print("ready", flush=True)
    for _ in range(int(rounds)):
        for one in connections:
            one.sendall(struct.pack("Q", int(size)))
        waiting = selectors.DefaultSelector()
        left = dict.fromkeys(connections, int(size))
        for one in connections:
            waiting.register(one, selectors.EVENT_READ)
        while any(left.values()):
            for key, _ in waiting.select():
                ready = key.fileobj
                assert isinstance(ready, socket.socket)
                left[ready] -= len(ready.recv(1 << 18))
        time.sleep(0.005)


def sniff(file: str, *names: str) -> None:
    """Keep what comes in at some interfaces (`+`: and what goes out), until interrupted."""
    keep = {name.removeprefix("+"): name.startswith("+") for name in names}
    tap = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    tap.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 400 << 20)
    tap.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    tap.settimeout(0.1)
    over: list[int] = []
    signal.signal(signal.SIGINT, lambda number, frame: over.append(number))
    packets: list[spoilt.Packet] = []
    print("ready", flush=True)
    while True:
        try:
            stored, told, _, where = tap.recvmsg(SNAP, 64)
        except TimeoutError:
            if over:
                break
            continue
        if where[0] in keep and (where[2] != OUTGOING or keep[where[0]]) and stored[12:14] == b"\x08\x00":
            seconds, ns = struct.unpack("qq", told[0][2][:16])
            length = struct.unpack_from(">H", stored, 16)[0] + spoilt.ETHERNET
            packets.append((seconds * 10**9 + ns, max(length, len(stored)), stored))
    spoilt.write(Path(file), 1, sorted(packets, key=lambda packet: packet[0]))


# ---- what is made of it


@dataclass(frozen=True)
class Told:
    """What is proposed beside the truth."""

    rate: str
    rate_within: bool
    rate_measured: bool
    rate_off: float
    buffer: str
    buffer_within: bool
    fit: bool


def told(rack: Rack, capture: Path) -> Told:
    """The proposal beside the truth. What is measured without a range is so to 7 %; a packet more or less is the link's."""
    proposal = fanin.propose_rack(capture)
    found = {finding.key: finding for finding in proposal.findings}
    speed, queue = found["rack.rate"], found["rack.buffer"]
    assert speed.value is not None
    value = as_bps(speed.value)
    sure = speed.certainty == "measured"
    low = as_bps(speed.low) if speed.low else 0.93 * value if sure else 0.0
    high = as_bps(speed.high) if speed.high else 1.07 * value if sure else float("inf")
    least, most = (int((end or queue.value or "0p")[:-1]) for end in (queue.low, queue.high))
    real = rack.mbps * 1e6
    return Told(
        rate=f"{speed.value} {speed.certainty} {speed.low}..{speed.high}",
        rate_within=0.999 * low <= real <= 1.001 * high,
        rate_measured=sure,
        rate_off=max(value / real, real / value),
        buffer=f"{queue.value} {queue.certainty} {queue.low}..{queue.high}",
        buffer_within=least - 1 <= rack.buffer <= most + 1,
        fit=proposal.fitness is not None and proposal.fitness.fit,
    )


def main(count: int) -> None:
    """Print what is told of so many racks, and how often the truth is in it."""
    rows: dict[str, list[Told]] = {"switch": [], "client": []}
    for number in range(count):
        rack = drawn(number)
        with tempfile.TemporaryDirectory() as folder:
            for tap, capture in captured(rack, Path(folder)).items():
                rows[tap].append(told(rack, capture))
                print(number, tap, rack, rows[tap][-1], flush=True)
    for tap, all_told in rows.items():
        sure = [t for t in all_told if t.rate_measured]
        off = max((t.rate_off for t in sure), default=1.0)
        print(
            f"| {tap} | {len(sure)} | {off - 1:.0%} | {sum(t.rate_off <= 1.1 for t in all_told)} | {sum(t.rate_within for t in all_told)} | "
            f"{sum(t.buffer_within for t in all_told)} | {sum(not t.fit for t in all_told)} |"
        )


if __name__ == "__main__":
    commands: dict[str, Callable[..., None]] = {"serve": serve, "ask": ask, "sniff": sniff}
    arguments: Sequence[str] = sys.argv[1:]
    if os.geteuid() != 0:
        sys.exit("needs root, to make network namespaces")
    if arguments and arguments[0] in commands:
        commands[arguments[0]](*arguments[1:])
    else:
        main(int(arguments[0]) if arguments else 10)
