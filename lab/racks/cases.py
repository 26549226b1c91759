"""The racks and services of `results/truth.csv`."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

ROUNDS = 20
"""Rounds of each run: with three seeds, the p99 of sixty."""


@dataclass(frozen=True, slots=True)
class RackCase:
    """One service on one rack.

    Attributes
    ----------
    name, group : str
        As the table shows it, and what its group varies.
    text : str
        The scenario.
    """

    name: str
    group: str
    text: str


def _case(
    group: str, servers: int, size: str, *, rate: str = "1Gbps", delay: str = "25us", buffer: int = 100, mark: int = 20
) -> RackCase:
    name = f"{servers} x {size}, {rate}, {buffer}p, {delay} per link"
    text = f"""
[topology]
senders = {servers}
rate = "{rate}"
delay = "{delay}"
buffer = "{buffer}p"
mark = "{mark}p"
[stack]
profile = "linux"
[[workload]]
kind = "incast"
bytes = "{size}"
rounds = {ROUNDS}
gap = "2ms"
request = "300B"
jitter = "50us"
[run]
duration = "120s"
"""
    return RackCase(name, group, text)


def cases() -> list[RackCase]:
    """All of them.

    Examples
    --------
    >>> len(cases()) >= 30, len({case.name for case in cases()}) == len(cases())
    (True, True)
    """
    made = [_case("fan-in and size", n, size) for n, size in product((6, 12, 20, 32), ("8KB", "32KB", "64KB", "128KB"))]
    made += [
        _case("buffer", n, size, buffer=buffer) for n, size, buffer in product((12, 32), ("32KB", "64KB"), (40, 300))
    ]
    made += [
        _case("10 Gbps", n, size, rate="10Gbps", delay="10us", buffer=200, mark=65)
        for n, size in product((12, 32), ("64KB", "256KB"))
    ]
    made += [_case("round trip", n, "64KB", delay=delay) for n, delay in product((12, 32), ("5us", "100us"))]
    return made
