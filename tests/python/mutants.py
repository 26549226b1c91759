"""Mutants of captures, racks and traces of applications through `rack`, `advise`, `compare` and `trains`; run by `fuzz/run`, and a few by test_faults.py.

The modules are loaded once and each mutant is a fork, so that a crash of one is seen and the next goes on.
"""

from __future__ import annotations

import io
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

ROOT = Path(__file__).parents[2]
CAPTURE = ROOT / "tests/data/pcap/memcached_incast_8to1.pcap.gz"
RACK = ROOT / "examples/rack.toml"
PACKETS = 1500
"""Of the capture that is mutated: enough for rounds, little enough for many mutants."""
SLOW_S = 120
"""A mutant that takes longer hangs."""


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


CHANGES: tuple[Callable[[bytearray, random.Random], None], ...] = (bits, numbers, cut, again)

SPANS = (
    b'{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"front"}}]},"scopeSpans":[{"spans":['
    b'{"traceId":"0102030405060708090a0b0c0d0e0f10","spanId":"0102030405060708","name":"get","kind":3,'
    b'"startTimeUnixNano":"1700000000000000000","endTimeUnixNano":"1700000000001000000"}]}]}]}'
)


def commands(folder: Path) -> list[list[str]]:
    """What reads the mutants of a folder."""
    rack, capture = str(folder / "rack.toml"), str(folder / "mutant.pcap")
    return [
        ["rack", capture, "--out", str(folder / "proposed.toml")],
        ["advise", capture, "--rack", rack, "--json"],
        ["compare", capture, "--rack", rack, "--cc", "cubic", "--seeds", "1", "--json"],
        ["trains", capture, "--spans", str(folder / "spans.json"), "--json"],
    ]


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


def main(seconds: float, seed: int = 28, most: int = 1_000_000) -> int:
    """Try mutants for so long; prints those that end badly, with the file that shows it, and returns how many."""
    # Loaded once, for every fork.
    import fanin.advice
    import fanin.cli
    import fanin.comparison
    import fanin.rack
    import fanin.spans  # noqa: F401

    from . import spoilt

    draw = random.Random(seed)
    wrong = count = 0
    until = time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as top:
        folder = Path(top)
        linktype, packets = spoilt.read(CAPTURE)
        whole = spoilt.write(folder / "whole.pcap", linktype, packets[:PACKETS]).read_bytes()
        while count < most and time.monotonic() < until:
            sources = {"mutant.pcap": whole, "rack.toml": RACK.read_bytes(), "spans.json": SPANS}
            # One file is changed at a time, the capture most often.
            spoiled = draw.choice(("mutant.pcap", "mutant.pcap", "rack.toml", "spans.json"))
            for name, content in sources.items():
                data = bytearray(content)
                if name == spoiled:
                    draw.choice(CHANGES)(data, draw)
                (folder / name).write_bytes(data)
            words = draw.choice(commands(folder))
            code, said = ended(words)
            count += 1
            if code not in (0, 1, 2) or "Traceback" in said or (code == 2 and said.count("fanin: error: ") != 1):
                wrong += 1
                kept = Path(tempfile.mkdtemp(prefix="fanin-mutant-")) if seconds > 60 else folder
                for name in sources:
                    (kept / name).write_bytes((folder / name).read_bytes())
                print(f"fanin {words[0]} of {kept} ended with {code}: {said.strip()[-300:]}", flush=True)
    print(f"{count} mutants, {wrong} ended badly")
    return wrong


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    __package__ = "tests.python"
    sys.exit(1 if main(float(sys.argv[1]), *map(int, sys.argv[2:])) else 0)
