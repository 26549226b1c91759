"""The library of TCPRand in front of a program that sends over loopback; needs `make linux`, no root."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

LIBRARY = Path(__file__).parents[2] / "target" / "release" / "libfanin_tcprand.so"
pytestmark = pytest.mark.skipif(not LIBRARY.exists(), reason=f"{LIBRARY.name} is not built: `make linux`")

MSS = 1000
BYTES = 200_000

SENDER = """
import socket, struct, sys, threading, time
mss, total, write, pace, pause = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5])
listener = socket.create_server(("127.0.0.1", 0))
client = socket.socket()
client.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, mss + 12)  # timestamps take twelve bytes
client.connect(listener.getsockname())
server, _ = listener.accept()
def read():
    left = total
    while left:
        left -= len(server.recv(65536))
reader = threading.Thread(target=read)
reader.start()
if pace:
    client.setsockopt(socket.SOL_SOCKET, 47, struct.pack("Q", pace))  # SO_MAX_PACING_RATE
for _ in range(total // write):
    client.sendall(bytes(write))
    time.sleep(pause)
reader.join()
info = client.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 192)
retransmitted, = struct.unpack_from("I", info, 100)
segments, = struct.unpack_from("I", info, 156)  # tcpi_data_segs_out
print(segments - retransmitted)
"""


def segments(write: int, *, least: int, pace: int = 0, pause: float = 0.0, total: int = BYTES) -> int:
    """Data segments that carry ``total`` bytes in writes of ``write`` bytes, paced to ``pace`` bytes per second."""
    arguments = [str(value) for value in (MSS, total, write, pace, pause)]
    environment = os.environ | {"LD_PRELOAD": str(LIBRARY), "FANIN_TCPRAND_MIN": str(least)}
    command = [sys.executable, "-c", SENDER, *arguments]
    return int(subprocess.run(command, env=environment, check=True, capture_output=True, text=True, timeout=60).stdout)


def test_a_record_goes_on_with_the_next_write_while_its_beginning_waits() -> None:
    # Paced to 50 kB/s, a write of 100 bytes takes 2 ms to leave: nearly all of 400 find data that waits. Full segments are 40.
    assert segments(100, least=MSS, pace=50_000, total=40_000) < 200


def test_a_write_that_finds_nothing_waiting_is_a_segment_of_its_own() -> None:
    assert segments(100, least=MSS, pause=0.002, total=10_000) == 100


def test_sizes_of_one_long_write_are_those_of_the_rule() -> None:
    # Uniform on 500 to 1000: 267 segments on average, and a standard deviation of 3.
    assert 250 <= segments(BYTES, least=500) <= 285
