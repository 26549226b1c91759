"""A rack of network namespaces in real time, with token buckets of tc on every link, a queue in front of the aggregator, and three taps."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

SWITCH, CLIENT = "fanin-lab-switch", "fanin-lab-client"
TAPS = ("aggregator", "switch", "servers")
PROGRAMS = ("ip", "tc", "ethtool", "tcpdump", "dumpcap")
LOCK = Path(tempfile.gettempdir(), "fanin-lab.lock")
BURST = 3200
"""Bytes of the token buckets."""
CURRENT = "cubic"
"""What hosts run: what Linux runs unless told otherwise. A new namespace has what its machine runs."""


def server(number: int) -> str:
    """The namespace of a server, from zero."""
    return f"fanin-lab-{number + 1}"


def address(number: int) -> str:
    """The IP address of a server, from zero."""
    return f"10.9.1.{number + 1}"


def begin() -> None:
    """Start a laboratory's command: ends where there can be no rack here, and goes before what else this machine does, which is not to be measured."""
    if (why := missing()) is not None:
        sys.exit(why)
    with contextlib.suppress(OSError):
        os.nice(-10)


def missing() -> str | None:
    """Why there can be no rack here; None where there can."""
    if os.geteuid() != 0:
        return "needs root, to make network namespaces"
    absent = [program for program in PROGRAMS if shutil.which(program) is None]
    if absent:
        return f"needs {', '.join(absent)}"
    probe = f"fanin-lab-probe-{os.getpid()}"
    made = subprocess.run(["ip", "netns", "add", probe], capture_output=True, text=True, check=False)
    if made.returncode:
        return f"cannot make network namespaces: {made.stderr.strip()}"
    port = ["ip", "-n", probe, "link", "add", "b0", "type", "bridge"]
    bucket = f"tc -n {probe} qdisc add dev lo root tbf rate 1mbit burst 3200 limit 9000".split()
    failed = [run for run in (port, bucket) if subprocess.run(run, capture_output=True, check=False).returncode]
    subprocess.run(["ip", "netns", "del", probe], capture_output=True, check=False)
    return f"`{' '.join(failed[0])}` fails on this kernel" if failed else None


def batch(program: str, lines: Sequence[str]) -> None:
    """Give lines to `ip` or `tc`, all of which must succeed."""
    done = subprocess.run(
        [*program.split(), "-batch", "-"], input="\n".join(lines), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{program}: {done.stderr.strip()}")


@contextlib.contextmanager
def rack(servers: int, mbps: int, buffer: int, *, offload: bool) -> Iterator[None]:
    """Namespaces of an aggregator, a switch and so many servers, which are removed at the end."""
    hosts = [CLIENT, *(server(number) for number in range(servers))]
    bucket = f"root tbf rate {mbps}mbit burst {BURST} limit 10mb"
    links = ["link add name sw0 type bridge", "link set sw0 up"]
    shapers = [f"qdisc add dev c0 handle 1: {bucket}", f"qdisc add dev c0 parent 1: handle 2: pfifo limit {buffer}"]
    for number, host in enumerate(hosts):
        port = f"s{number}" if number else "c0"
        links += [f"link add {port} type veth peer name ve netns {host}", f"link set {port} master sw0 up"]
        shapers += [f"qdisc add dev {port} {bucket}"] if number else []
    with contextlib.ExitStack() as stack:
        # Another laboratory on this machine has namespaces of the same names.
        fcntl.flock(stack.enter_context(LOCK.open("w")), fcntl.LOCK_EX)
        stack.callback(remove, (SWITCH, *hosts))
        batch("ip", [f"netns add {name}" for name in (SWITCH, *hosts)])
        batch(f"ip -n {SWITCH}", links)
        batch(f"tc -n {SWITCH}", shapers)
        for number, host in enumerate(hosts):
            own = address(number - 1) if number else "10.9.0.1"
            batch(f"ip -n {host}", ["link set lo up", "link set ve up", f"addr add {own}/16 dev ve"])
            batch(f"tc -n {host}", [f"qdisc add dev ve {bucket}"])
            # By the route: in a namespace the sysctl takes only what the machine allows everyone.
            batch(
                f"ip -n {host}",
                [f"route replace 10.9.0.0/16 dev ve proto kernel scope link src {own} congctl {CURRENT}"],
            )
            if not offload:
                within = ["ip", "netns", "exec", host, "ethtool", "-K", "ve", "tso", "off", "gso", "off", "gro", "off"]
                subprocess.run(within, capture_output=True, check=True)
        yield


def remove(names: Sequence[str]) -> None:
    """Remove namespaces, as far as they are there."""
    for name in names:
        subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


@contextlib.contextmanager
def taps(folder: Path, servers: int, snaplen: int, which: Sequence[str] = TAPS) -> Iterator[dict[str, Path]]:
    """Captures while the block runs: the file of each tap."""
    ports = [word for number in range(servers) for word in ("-i", f"s{number + 1}")]
    cut = ["-s", str(snaplen)]
    told = {
        "aggregator": (CLIENT, "pcap", ["tcpdump", "-qni", "ve", *cut, "-B", "65536", "tcp"]),
        "switch": (SWITCH, "pcap", ["tcpdump", "-qni", "any", *cut, "-B", "65536", "tcp"]),
        "servers": (SWITCH, "pcapng", ["dumpcap", "-q", *cut, "-B", "16", "-f", "tcp", *ports]),
    }
    files, running = {}, []
    for tap in which:
        where, suffix, line = told[tap]
        files[tap] = folder / f"{tap}.{suffix}"
        line = ["ip", "netns", "exec", where, "nice", "-n", "-10", *line, "-w", str(files[tap])]
        process = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        running.append(process)
    for process in running:
        assert process.stderr is not None
        # What both programs say when their interfaces are open.
        while (said := process.stderr.readline()) and not said.startswith(("listening", "File:", "tcpdump: listening")):
            pass
    time.sleep(0.2)
    try:
        yield files
        # What they have not read yet is lost when they end.
        time.sleep(1.5)
    finally:
        for process in running:
            process.send_signal(signal.SIGINT)
        for process in running:
            process.communicate(timeout=60)
