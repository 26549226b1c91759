"""The round-trip law: run a scenario, capture it at a host or port, and replay the capture on the same rack under the same TCP.

python tests/python/round_trip.py 200        # as many random scenarios; one line each, and a summary
"""

from __future__ import annotations

import math
import random
import struct
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import fanin
import polars as pl

ALGORITHMS = ("reno", "cubic", "dctcp", "bbr", "newreno")
SEEDS = 5


@dataclass(frozen=True, slots=True)
class Case:
    """One scenario, and where it is captured."""

    number: int
    rack: str
    workload: str
    stack: str
    cc: str
    place: str

    @property
    def scenario(self) -> str:
        lines = [
            "[topology]",
            'kind = "star"',
            self.rack,
            "[stack]",
            f'profile = "{self.stack}"',
            'nagle = "off"',
            "[[workload]]",
            self.workload,
            "[run]",
            'duration = "100s"',
            "",
        ]
        return "\n".join(lines)


def case(number: int) -> Case:
    """A random rack, workload, endpoint, algorithm and vantage point; the same for the same number."""
    rng = random.Random(number)
    senders = rng.randint(2, 32)
    rate = rng.choice((1, 1, 10))
    rack = (
        f'senders = {senders}\nrate = "{rate}Gbps"\ndelay = "{rng.choice((10, 25, 50, 100))}us"\nbuffer = "{rng.choice((40, 100, 200, 400))}p"\n'
        f'mark = "{rng.choice((20, 30))}p"\n'
    )
    size = rng.choice((2, 8, 16, 32, 64, 128))
    jitter, gap = rng.choice((5, 20, 200)), rng.choice((0.5, 2, 5, 20))
    workload = rng.choice(
        (
            f'kind = "incast"\nbytes = "{size}KB"\nrounds = 20\ngap = "{gap}ms"\njitter = "{jitter}us"\nrequest = "100B"',
            f'kind = "web_search"\ntotal = "{size * senders}KB"\nqueries = 20\ngap = "{gap}ms"\njitter = "{jitter}us"',
            f'kind = "mapreduce"\nunit = "{size}KB"\nrounds = 8\njitter = "{jitter}us"',
            f'kind = "http_on_off"\nresponses = 40\nrequest = "100B"\nclosed_loop = true\ngap = "{{ exponential = \'{gap}ms\' }}"'.replace(
                '"{', "{"
            ).replace('}"', "}"),
        )
    )
    return Case(
        number,
        rack,
        workload,
        rng.choice(("linux", "linux", "rfc")),
        rng.choice(ALGORITHMS),
        rng.choice(("client", "servers")),
    )


@dataclass(frozen=True, slots=True)
class Verdict:
    """How far the replay is from the run."""

    p50: float
    p99: float
    spread: float
    timeouts: tuple[float, float]
    drops: tuple[float, float]

    @property
    def holds(self) -> bool:
        return abs(self.p50 - 1) <= 0.10 and (abs(self.p99 - 1) <= 0.25 or max(self.p99, 1 / self.p99) <= self.spread)


def quantile(values: list[float], q: float) -> float:
    return sorted(values)[max(1, math.ceil(round(q * len(values), 9))) - 1]


def merged(files: list[Path], into: Path) -> Path:
    """One capture of several, in order of time, as a switch in front of the servers would see it: what its queue then drops is in it."""
    records = []
    for file in files:
        data, at = file.read_bytes(), 24
        while at < len(data):
            seconds, nanoseconds, stored, _ = struct.unpack_from("<IIII", data, at)
            records.append((seconds, nanoseconds, data[at : at + 16 + stored]))
            at += 16 + stored
    records.sort(key=lambda record: record[:2])
    into.write_bytes(files[0].read_bytes()[:24] + b"".join(record[2] for record in records))
    return into


def check(case: Case, folder: Path) -> Verdict:
    """Run, capture, replay, compare."""
    scenario, rack = folder / "scenario.toml", folder / "rack.toml"
    scenario.write_text(case.scenario)
    shared = "\n".join(line for line in case.rack.splitlines() if not line.startswith("senders"))
    # The capture has the jitter of the run in it.
    rack.write_text(f'[rack]\n{shared}\n[stack]\nprofile = "{case.stack}"\n[replay]\njitter = "2us"\n')
    senders = int(case.rack.split("senders = ")[1].split()[0])
    at = ["client"] if case.place == "client" else [f"s{n + 1}" for n in range(senders)]
    runs = fanin.run(scenario, cc=case.cc, seeds=SEEDS)
    captured = fanin.run(scenario, cc=case.cc, seed=1, pcap=folder / "pcap", pcap_at=at)
    capture = merged(sorted((folder / "pcap").rglob("*.pcap")), folder / "capture.pcap")
    replayed = fanin.compare(capture, rack, cc=case.cc, seeds=SEEDS)

    def times(frame: pl.DataFrame) -> list[float]:
        return frame.filter(pl.col("class") != "request")["completion_ms"].drop_nulls().to_list()

    mine, theirs = times(captured.messages), replayed.responses["completion_ms"].drop_nulls().to_list()
    tails = [quantile(times(runs.messages.filter(seed=seed)), 0.99) for seed in runs.messages["seed"].unique()]
    flows = captured.flows.filter(pl.col("class") != "request")
    return Verdict(
        p50=quantile(theirs, 0.5) / quantile(mine, 0.5),
        p99=quantile(theirs, 0.99) / quantile(mine, 0.99),
        spread=max(tails) / min(tails) * 1.05,
        timeouts=(float(flows["timeouts"].sum()), float(replayed.runs["timeouts"].mean() or 0.0)),  # type: ignore[arg-type]
        drops=(float(captured.ports["drops"].sum()), float(replayed.runs["drops"].mean() or 0.0)),  # type: ignore[arg-type]
    )


def main(count: int) -> None:
    held = 0
    for number in range(count):
        with tempfile.TemporaryDirectory() as folder:
            made = case(number)
            found = check(made, Path(folder))
        held += found.holds
        what = " ".join((made.rack + made.workload).replace('"', "").split("\n"))
        print(
            f"{number:4} {'holds' if found.holds else 'BREAKS'} p50 x{found.p50:.2f} p99 x{found.p99:.2f} (seeds x{found.spread:.2f})"
            f" timeouts {found.timeouts[0]:.0f}/{found.timeouts[1]:.1f} drops {found.drops[0]:.0f}/{found.drops[1]:.0f}"
            f" | {made.cc} {made.stack} at {made.place}: {what}",
            flush=True,
        )
    print(f"{held} of {count} hold")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
