"""What `fanin rack` says of racks in real time: tbf and htb, queues in packets and bytes, random early detection, slower links of the servers.

``.venv/bin/python -m lab.racks.real_time 0 64 results/rack_queues.csv`` needs root and, for RED, clang.
"""

from __future__ import annotations

import os
import platform
import random
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

import polars as pl

from tests.python.real_racks import FULL, Rack, captured, told

ENOUGH = 20_000_000
"""Bytes of answers that a rack carries where six rounds are not more."""
PLAIN = 28
"""Racks from this number on have random early detection,"""
SLOWER = 40
"""and from this one on servers whose own links are slower than the aggregator's."""
RED = Path(__file__).with_name("red.bpf.c")


@dataclass(frozen=True)
class Early(Rack):
    """A rack whose port drops early, from a sixth of the buffer to the half, as tc-red(8) has it; without offloads, as it drops what it gets whole."""

    program: str = ""

    @property
    def bottleneck(self) -> tuple[str, ...]:
        """What tc adds at the port to the aggregator."""
        program = f"filter add dev c0 egress bpf da obj {self.program} sec classifier"
        return (*super().bottleneck, "qdisc add dev c0 clsact", program)

    @staticmethod
    def of(rack: Rack, folder: Path) -> Early:
        """A rack with a program of its rate and thresholds, compiled into the folder."""
        limit = rack.buffer * FULL
        values = {
            "BYTES_PER_SECOND": f"{rack.mbps * 125_000}ull",
            "LEAST": limit // 6,
            "MOST": limit // 2,
            "LIMIT": limit,
        }
        given = [f"-D{name}={value}" for name, value in values.items()]
        headers = f"-I/usr/include/{platform.machine()}-linux-gnu"
        made = folder / "red.o"
        subprocess.run(["clang", "-O2", "-g", "-target", "bpf", headers, *given, "-c", RED, "-o", made], check=True)
        return Early(**(asdict(rack) | {"queue": "pfifo", "offload": False}), program=str(made))


def drawn(number: int) -> Rack:
    """The rack of this number; shapers and queues take turns."""
    if number >= SLOWER:
        return slower(random.Random(f"slow{number - SLOWER}"))
    draw = random.Random(f"queue {number}")
    return Rack(
        servers=draw.choice([4, 8, 12, 16, 24]),
        mbps=draw.choice([100, 200, 300, 500, 1000]),
        buffer=draw.choice([20, 40, 80, 150, 400]),
        queue=("pfifo", "bfifo")[number % 2],
        shaped=draw.random() < 0.5,
        offload=draw.random() < 0.6,
        size=draw.choice([8_192, 32_768, 65_536, 131_072, 262_144]),
        cc=draw.choice(["cubic", "reno"]),
        shaper=("tbf", "htb")[number // 2 % 2],
    )


def slower(draw: random.Random) -> Rack:
    """A rack whose servers' own links have a fifth to seven tenths of the rate of the aggregator's."""
    mbps = draw.choice([200, 300, 500, 1000])
    return Rack(
        servers=draw.choice([2, 3, 4, 8, 12]),
        mbps=mbps,
        buffer=draw.choice([40, 100, 400]),
        queue="pfifo",
        shaped=False,
        offload=draw.random() < 0.6,
        size=draw.choice([32_768, 131_072, 262_144]),
        cc=draw.choice(["cubic", "reno"]),
        own=int(mbps * draw.choice([0.2, 0.35, 0.5, 0.7])),
    )


def rows(number: int) -> list[dict[str, object]]:
    """What is said of a rack at its two taps, beside the truth."""
    rack = drawn(number)
    rounds = max(6, min(20, ENOUGH // (rack.servers * rack.size)))
    with tempfile.TemporaryDirectory() as folder:
        here = Early.of(rack, Path(folder)) if PLAIN <= number < SLOWER else rack
        said = {tap: told(rack, capture) for tap, capture in captured(here, Path(folder), rounds=rounds).items()}
    traffic = f"{here.servers} x {here.size // 1024} KB, {'offloads' if here.offload else 'no offloads'}"
    return [
        {
            "rack": number,
            "queue": f"{here.shaper} {'RED' if isinstance(here, Early) else here.queue}{'' if here.own is None else ', slower servers'}",
            "traffic": traffic,
            "tap": tap,
            "mbps": rack.mbps,
            "buffer": rack.buffer,
            "rate": one.rate,
            "rate_within": one.rate_within,
            "buffer_said": one.buffer,
            "buffer_within": one.buffer_within,
            "fit": one.fit,
        }
        for tap, one in said.items()
    ]


def main(first: int, end: int, file: Path) -> None:
    """Measure racks from the first to before the end, and write their rows after each."""
    all_rows: list[dict[str, object]] = []
    for number in range(first, end):
        all_rows += rows(number)
        print(*all_rows[-2:], sep="\n", flush=True)
        pl.DataFrame(all_rows).write_csv(file)


if __name__ == "__main__":
    if os.geteuid() != 0:
        sys.exit("needs root, to make network namespaces")
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
