"""Mutants of captures, racks, scenarios, sweeps and traces of applications through the commands that read them; run by `fuzz/run`, some by test_faults.py.

The modules are loaded once and each mutant is a fork, so that a crash of one is seen and the next goes on.
"""

from __future__ import annotations

import gzip
import io
import os
import random
import re
import signal
import struct
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

ROOT = Path(__file__).parents[2]
CAPTURE = ROOT / "tests/data/pcap/memcached_incast_8to1.pcap.gz"
PACKETS = 1500
"""Of the capture that is mutated: enough for rounds, little enough for many mutants."""
SLOW_S = 120
"""A mutant that takes longer hangs."""

RACK = (ROOT / "examples/rack.toml").read_text() + '\n[hosts]\ntso = true\ngro = "10us"\n'
SWEEP = """
title = "two sizes"
scenario = "scenario.toml"
seeds = 1
[axis.cc]
values = ["cubic", "dctcp"]
[axis.n]
key = "topology.senders"
values = [2, 4]
"""
SCENARIO = """
title = "some of each"
[topology]
senders = 4
rate = "1Gbps"
delay = "10us"
buffer = "64p"
mark = "20p"
[stack]
profile = "linux"
min_rto = "5ms"
[run]
duration = "50ms"
[[workload]]
kind = "incast"
bytes = "64KB"
[[workload]]
kind = "poisson"
load = 0.2
sizes = "web_search"
class = "background"
[workload.cc]
name = "trim"
"""


def bits(data: bytearray, draw: random.Random) -> None:
    """Change some bytes anywhere."""
    for _ in range(draw.choice((1, 3, 30))):
        data[draw.randrange(len(data))] = draw.randrange(256)


def numbers(data: bytearray, draw: random.Random) -> None:
    """Write extreme numbers where lengths, times and sequence numbers may stand."""
    for _ in range(draw.choice((1, 10, 100))):
        at = draw.randrange(24, len(data) - 4)
        data[at : at + 4] = draw.choice(
            (b"\0\0\0\0", b"\xff\xff\xff\xff", b"\xff\xff\xff\x7f", b"\0\0\0\x80", b"\x01\0\0\0")
        )


def cut(data: bytearray, draw: random.Random) -> None:
    """End early, or lose a stretch in the middle."""
    at = draw.randrange(24, len(data))
    del data[at : draw.choice((len(data), at + draw.randrange(1, 5000)))]


def again(data: bytearray, draw: random.Random) -> None:
    """Repeat a stretch somewhere else."""
    at = draw.randrange(24, len(data))
    piece = data[at : at + draw.randrange(1, 5000)]
    where = draw.randrange(24, len(data))
    data[where:where] = piece


def written(data: bytearray, draw: random.Random) -> None:
    """Say another number or word where a text has one."""
    places = list(re.finditer(rb'[0-9][0-9.]*|"[^"\n]*"', bytes(data)))
    for found in sorted(draw.sample(places, min(len(places), draw.choice((1, 1, 2, 5)))), key=lambda m: -m.start()):
        data[found.start() : found.end()] = draw.choice(WORDS)


WORDS = (
    b"0", b"-1", b"1e400", b"1e-300", b"nan", b"9223372036854775807", b"18446744073709551616", b"4294967295", b"1000000", b"true", b"[]", b"{}", b'""',
    b'"0"', b'"1ps"', b'"1e9s"', b'"1000Tbps"', b'"1bps"', b'"1p"', b'"4000000000p"', b'"1TB"', b'"web_search"', b'"\\u0000"', b'"../../etc/passwd"',
)  # fmt: skip


def lines(data: bytearray, draw: random.Random) -> None:
    """Lose, repeat or exchange lines."""
    rows = bytes(data).split(b"\n")
    for _ in range(draw.choice((1, 2, 5))):
        at, other = draw.randrange(len(rows)), draw.randrange(len(rows))
        how = draw.randrange(4)
        if how == 0:
            del rows[at : at + draw.choice((1, 3))]
        elif how == 1:
            rows[other:other] = rows[at : at + draw.choice((1, 4, 12))] * draw.choice((1, 1, 300))
        else:
            rows[at], rows[other] = rows[other], rows[at]
        rows = rows or [b""]
    data[:] = b"\n".join(rows)


CHANGES: tuple[Callable[[bytearray, random.Random], None], ...] = (bits, numbers, cut, again)
OF_TEXT = (*CHANGES, written, written, written, lines, lines)


def as_pcapng(pcap: bytes) -> bytes:
    """The same packets in the newer format."""

    def block(kind: int, body: bytes) -> bytes:
        body += bytes(-len(body) % 4)
        return struct.pack("<II", kind, len(body) + 12) + body + struct.pack("<I", len(body) + 12)

    linktype = struct.unpack_from("<I", pcap, 20)[0]
    made = [
        block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)),
        block(1, struct.pack("<HHI", linktype, 0, 0)),
    ]
    at, per_second = 24, 1_000_000_000 if pcap[:4] == b"\x4d\x3c\xb2\xa1" else 1_000_000
    while at < len(pcap):
        seconds, fraction, length, original = struct.unpack_from("<IIII", pcap, at)
        time_us = seconds * 1_000_000 + fraction * 1_000_000 // per_second
        packet = pcap[at + 16 : at + 16 + length]
        made.append(block(6, struct.pack("<IIIII", 0, time_us >> 32, time_us & 0xFFFFFFFF, length, original) + packet))
        at += 16 + length
    return b"".join(made)


def commands(folder: Path) -> dict[str, list[list[str]]]:
    """What reads each of the files of a folder."""
    rack, spans, out = (str(folder / name) for name in ("rack.toml", "spans.json", "out"))
    scenario, sweep = str(folder / "scenario.toml"), str(folder / "sweep.toml")

    def of_capture(capture: str) -> list[list[str]]:
        return [
            ["rack", capture, "--out", str(folder / "proposed.toml")],
            ["advise", capture, "--rack", rack, "--budget", "30", "--json"],
            ["compare", capture, "--rack", rack, "--cc", "cubic", "--seeds", "1", "--json"],
            ["compare", capture, "--rack", rack, "--cc", "cubic", "--seeds", "1", "--spans", spans, "--json"],
            ["compare", capture, "--cc", "cubic", "--seeds", "1", "--plan", str(folder / "plan.toml"), "--out", out],
            ["trains", capture, "--spans", spans, "--json"],
            ["trains", capture, "--out", out],
            ["diff", capture, str(folder / "whole.pcap")],
        ]

    captures = {name: of_capture(str(folder / name)) for name in ("mutant.pcap", "mutant.pcapng", "mutant.pcap.gz")}
    whole = of_capture(str(folder / "whole.pcap"))
    return captures | {
        "rack.toml": [words for words in whole if rack in words],
        "spans.json": [words for words in whole if spans in words],
        "scenario.toml": [
            ["run", scenario, "--json"],
            ["run", scenario, "--threads", "2", "--json"],
            ["draw", scenario, "--out", str(folder / "net.html")],
            ["sweep", sweep, "--store", str(folder / "store")],
        ],
        "sweep.toml": [["sweep", sweep, "--store", str(folder / "store")]],
    }


def ended(words: list[str]) -> tuple[int, str]:
    """Run the command in a fork; its exit code, minus a signal's number, and the end of what it said."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        code = 70
        said = io.StringIO()
        try:
            signal.alarm(SLOW_S)
            from fanin import __main__

            sys.argv = ["fanin", *words]
            with redirect_stderr(said), redirect_stdout(io.StringIO()):
                code = __main__._run()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
        except BaseException as error:
            said.write(f"{type(error).__name__}: {error}")
        os.write(write, said.getvalue()[-2000:].encode(errors="replace"))
        os._exit(code)
    os.close(write)
    with os.fdopen(read, errors="replace") as pipe:
        said_there = pipe.read()
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), said_there


def sources(folder: Path) -> dict[str, bytes]:
    """What is mutated; `folder` then has the whole capture."""
    from . import spoilt

    linktype, packets = spoilt.read(CAPTURE)
    whole = spoilt.write(folder / "whole.pcap", linktype, packets[:PACKETS])
    code, said = ended(["trains", str(whole), "--spans-out", str(folder / "spans.json")])
    assert code == 0, said
    pcap = whole.read_bytes()
    return {
        "mutant.pcap": pcap,
        "mutant.pcapng": as_pcapng(pcap),
        "mutant.pcap.gz": pcap,
        "rack.toml": RACK.encode(),
        "scenario.toml": SCENARIO.encode(),
        "sweep.toml": SWEEP.encode(),
        "spans.json": (folder / "spans.json").read_bytes(),
    }


def main(seconds: float, seed: int = 28, most: int = 1_000_000) -> int:
    """Try mutants for so long; prints those that end badly, with the file that shows it, and returns how many."""
    # Loaded once, for every fork.
    import fanin.advice
    import fanin.commands.cli
    import fanin.comparison
    import fanin.rack.proposal
    import fanin.spans
    import fanin.sweep  # noqa: F401

    draw = random.Random(seed)
    wrong = count = 0
    until = time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as top:
        folder = Path(top)
        whole = sources(folder)
        read_by = commands(folder)
        while count < most and time.monotonic() < until:
            # One file is changed at a time, a capture most often.
            spoiled = draw.choice((*whole, "mutant.pcap"))
            for name, content in whole.items():
                data = bytearray(content)
                if name == spoiled:
                    draw.choice(OF_TEXT if name.endswith((".toml", ".json")) else CHANGES)(data, draw)
                if name.endswith(".gz"):
                    data = bytearray(gzip.compress(data, 1))
                    if name == spoiled and draw.random() < 0.2:
                        draw.choice(CHANGES)(data, draw)
                (folder / name).write_bytes(data)
            words = draw.choice(read_by[spoiled])
            code, said = ended(words)
            count += 1
            left = [
                p.name for p in folder.iterdir() if p.name.startswith((".fanin-", ".new-")) or p.name.endswith(".part")
            ]
            if (
                code not in (0, 1, 2)
                or "Traceback" in said
                or (code == 2 and said.count("fanin: error: ") != 1)
                or left
            ):
                wrong += 1
                kept = Path(tempfile.mkdtemp(prefix="fanin-mutant-")) if seconds > 60 else folder
                for name in whole:
                    (kept / name).write_bytes((folder / name).read_bytes())
                print(
                    f"fanin {' '.join(words)} of {kept} ended with {code}, left {left}: {said.strip()[-300:]}",
                    flush=True,
                )
    print(f"{count} mutants, {wrong} ended badly")
    return wrong


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    __package__ = "tests.python"
    sys.exit(1 if main(float(sys.argv[1]), *map(int, sys.argv[2:])) else 0)
