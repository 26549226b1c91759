"""What a sender's processor does: ``python -m fanin.testbed.flood sink|send NAMESPACE ...``, two programs on plain sockets.

A process of its own, so that its processor time is the sender's alone, and TCPRand's library can stand in front of it.
"""

from __future__ import annotations

import json
import os
import resource
import select
import socket
import sys
import time
from pathlib import Path

from fanin.testbed.network import enter

CHUNK = 1 << 18
"""Bytes of one write."""

_ROOM = bytearray(1 << 22)
"""Room that is asked for and never written to."""

WARM_UP_S = 1.0
"""Before the measured time: windows open."""


def sink(address: str, flows: int) -> None:
    """Take what comes on `flows` connections, until they end; prints the port."""
    ears = socket.create_server((address, 0), backlog=max(flows, 128))
    print(ears.getsockname()[1], flush=True)
    waiting = select.epoll()
    waiting.register(ears, select.EPOLLIN)
    taken: dict[int, socket.socket] = {}
    ended = 0
    while ended < flows:
        for fd, _ in waiting.poll():
            if fd == ears.fileno():
                connection, _ = ears.accept()
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, CHUNK // 4)
                taken[connection.fileno()] = connection
                waiting.register(connection, select.EPOLLIN)
            elif not _drain(taken[fd]):
                waiting.unregister(fd)
                taken.pop(fd).close()
                ended += 1


def _drain(connection: socket.socket) -> bool:
    """Whether more can come."""
    try:
        # MSG_TRUNC: the kernel throws the bytes away, nothing is copied.
        return connection.recv_into(_ROOM, 0, socket.MSG_TRUNC) > 0
    except ConnectionError:
        return False


def send(address: str, port: int, flows: int, cc: str, seconds: float, thread: int) -> dict[str, float]:
    """Send on `flows` connections for a time.

    Parameters
    ----------
    address, port : str, int
        Of the sink.
    flows : int
        How many connections.
    cc : str
        Their congestion control.
    seconds : float
        How long the measured time is.
    thread : int
        Kernel thread that takes this host's ACKs.

    Returns
    -------
    dict
        ``seconds``, ``bytes`` (taken by the sockets), ``cpu_s`` (processor time of this process and of the thread) in the measured time.
    """
    block = memoryview(bytes(CHUNK))
    waiting = select.epoll()
    connections = {}
    for _ in range(flows):
        connection = socket.socket()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, cc.encode())
        connection.connect((address, port))
        connection.setblocking(False)
        connections[connection.fileno()] = connection
        waiting.register(connection, select.EPOLLOUT)
    sent, began, before = 0, 0.0, 0.0
    start = time.monotonic() + WARM_UP_S
    while True:
        for fd, _ in waiting.poll(0.1):
            try:
                sent += connections[fd].send(block)
            except BlockingIOError:
                continue
        now = time.monotonic()
        if not began and now >= start:
            sent, began, before = 0, now, _cpu_s(thread)
        elif began and now >= began + seconds:
            return {"seconds": now - began, "bytes": sent, "cpu_s": _cpu_s(thread) - before}


def _cpu_s(thread: int) -> float:
    own = resource.getrusage(resource.RUSAGE_SELF)
    of_thread = int(Path(f"/proc/{thread}/schedstat").read_text().split()[0])
    return own.ru_utime + own.ru_stime + of_thread * 1e-9


def main(words: list[str]) -> None:
    """``sink NAMESPACE ADDRESS FLOWS`` or ``send NAMESPACE ADDRESS PORT FLOWS CC SECONDS THREAD``."""
    what, namespace, address, *rest = words
    with Path(namespace).open("rb") as file:
        enter(file.fileno())
    if what == "sink":
        sink(address, int(rest[0]))
    else:
        port, flows, cc, seconds, thread = rest
        print(json.dumps(send(address, int(port), int(flows), cc, float(seconds), int(thread))), flush=True)
        # The sink's connections end with this process; thousands of closes are not its business.
        os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
