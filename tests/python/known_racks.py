"""Random racks whose buffers are known, and what ``fanin rack`` makes of captures taken on them.

``.venv/bin/python -m tests.python.known_racks 40`` prints the first half of `results/racks.csv`.
"""

from __future__ import annotations

import random
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import fanin

from .conftest import merged

RUN = {"100Mbps": "1s", "1Gbps": "600ms", "10Gbps": "100ms"}
TAPS = {
    "switch": ("s[0-9]*-switch.pcap", "client-switch.pcap"),
    "servers": ("s[0-9].pcap", "s[0-9][0-9].pcap"),
    "client": ("client.pcap",),
}
"""Where captures are taken: as packets come to the switch, at the hosts that send, and at the one that receives."""


@dataclass(frozen=True)
class Rack:
    """One random rack and its traffic; hosts take up to `slow` for a packet."""

    rate: str
    buffer: int
    senders: int
    delay: str
    slow: str
    kind: str
    cc: str
    size: int

    @property
    def text(self) -> str:
        """The scenario."""
        late = "1ms" if self.kind == "spread" else "10us" if self.slow == "0us" else self.slow
        incast = f'kind = "incast"\nbytes = "{self.size}B"\nrounds = 30\njitter = "{late}"'
        mark = f'mark = "{max(5, self.buffer // 4)}p"' if self.cc == "dctcp" else ""
        return f"""
[topology]
senders = {self.senders}
rate = "{self.rate}"
delay = "{self.delay}"
buffer = "{self.buffer}p"
{mark}
[stack]
profile = "linux"
send_jitter = "{self.slow}"
[[workload]]
{'kind = "long"' if self.kind == "long" else incast}
[run]
duration = "{RUN[self.rate]}"
"""


def drawn(number: int) -> Rack:
    """The rack of this number."""
    draw = random.Random(number)
    rate = draw.choice(["100Mbps", "1Gbps", "1Gbps", "10Gbps"])
    senders, delay = draw.randint(3, 20), draw.choice(["5us", "20us", "50us", "100us"])
    buffer = round(10 ** draw.uniform(1.0, 2.7))
    size = round(10 ** draw.uniform(4.3, 5.3) * {"100Mbps": 1.0, "1Gbps": 2.4, "10Gbps": 4.5}[rate])
    slow = draw.choice(["0us", "20us", "100us", "400us"])
    kind = draw.choice(["incast", "incast", "long", "spread"])
    cc = draw.choice(["cubic", "cubic", "reno", "bbr", "dctcp"])
    if kind == "long":
        senders = min(senders, 6)
    return Rack(rate, buffer, senders, delay, slow, kind, cc, size // 2 if kind == "spread" else size)


def captured(rack: Rack, folder: Path) -> dict[str, Path]:
    """A run's captures, by where they were taken."""
    fanin.run("rack.toml", text=rack.text, cc=rack.cc, seed=1, pcap=folder / "all")
    files = list((folder / "all").iterdir())
    made = {}
    for tap, names in TAPS.items():
        mine = [file for file in files if any(file.match(name) for name in names)]
        made[tap] = merged(mine, folder / f"{tap}.pcap")
    shutil.rmtree(folder / "all")
    return made


@dataclass(frozen=True)
class Told:
    """What is proposed for the buffer, in packets."""

    real: int
    value: int
    certainty: str
    low: int
    high: int
    rate_is_right: bool

    @property
    def within(self) -> bool:
        """The real one is in the range that is told; a packet more or less is the link's, which is half through with one."""
        return self.low - 1 <= self.real <= self.high + 1


def told(rack: Rack, capture: Path) -> Told:
    """The proposal beside the truth."""
    found = {finding.key: finding for finding in fanin.propose_rack(capture).findings}
    queue = found["rack.buffer"]
    low, value, high = (int((text or queue.value or "0p")[:-1]) for text in (queue.low, queue.value, queue.high))
    return Told(rack.buffer, value, queue.certainty, low, high, found["rack.rate"].value == rack.rate)


def main(count: int) -> None:
    """Print how often the buffer is found."""
    rows: dict[str, list[Told]] = {tap: [] for tap in TAPS}
    for number in range(count):
        rack = drawn(number)
        with tempfile.TemporaryDirectory() as folder:
            for tap, capture in captured(rack, Path(folder)).items():
                rows[tap].append(told(rack, capture))
    for tap, all_told in rows.items():
        measured = [t for t in all_told if t.certainty == "measured"]
        apart = sorted(max(t.value / t.real, t.real / t.value) for t in all_told)
        error = max((abs(t.value / t.real - 1) for t in measured), default=0.0)
        print(
            f"| {tap} | {len(measured)} | {error:.0%} | {sum(abs(t.value / t.real - 1) <= 0.1 for t in all_told)} | "
            f"{sum(t.within for t in all_told)} | {apart[len(apart) // 2]:.2f} | {sum(t.rate_is_right for t in all_told)} |"
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
