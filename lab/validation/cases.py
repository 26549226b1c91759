"""The scenarios that both engines play."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache

from fanin.runs.job import Document

TCP = ("reno", "cubic", "dctcp", "bbr", "vegas")
"""Algorithms that both engines have."""

PLAIN = ("newreno",)
"""The same where loss recovery does without SACK, RACK and tail-loss probes."""

MARKS = {"100Mbps": 20, "1Gbps": 20, "10Gbps": 65}
"""K at each rate, packets: the DCTCP paper's (section 3.4), its value for 1 Gbps at 100 Mbps too."""

CAPTURE = "data/captures/http_onoff_8to1.pcap.gz"
"""The shipped capture that is replayed."""


OFFLOAD = 'hosts = { tso = true, gro = true, interrupt_delay = "8us", interrupt_frames = 128 }'
"""Hosts with offloads: an mlx5 card's first interrupt moderation, and programs that take no time, as both engines can have them."""


@dataclass(frozen=True, slots=True)
class Case:
    """One scenario.

    Attributes
    ----------
    name : str
        As tables show it.
    group : str
        What it varies.
    text : str
        Its TOML.
    messages : bool
        It is about completion times of messages; else about goodput and queue.
    cc : tuple of str
        Algorithms that it says something about.
    capture : str or None
        The capture that it replays, as a path in fanin's source.
    port : str
        Its bottleneck.
    """

    name: str
    group: str
    text: str
    messages: bool = False
    cc: tuple[str, ...] = TCP
    capture: str | None = None
    port: str = "switch->client"

    def offloaded(self) -> Case:
        """The same on hosts whose network cards cut and merge segments, and wait for more before they interrupt.

        Examples
        --------
        >>> cases(quick=True)[0].offloaded().text.splitlines()[0]
        'hosts = { tso = true, gro = true, interrupt_delay = "8us", interrupt_frames = 128 }'
        """
        return replace(self, name=f"{self.name}, offload", text=f"{OFFLOAD}\n{self.text}")

    def document(self) -> Document:
        """The scenario, with the file it names."""
        name = f"{self.name}.toml"
        return Document(self.text, name, "", (("workload.json", _workload(self.capture)),) if self.capture else ())


@cache
def _workload(capture: str) -> bytes:
    from fanin import trains
    from fanin.kernel.cache import sources

    return trains(sources() / capture).workload().to_json().encode()


def _star(
    workload: str,
    *,
    senders: int,
    rate: str = "1Gbps",
    delay: str = "25us",
    buffer: int,
    duration: str,
    mark: int = 0,
    queue: str = "",
    stack: str = "",
) -> str:
    """A star, with a queue discipline in place of the step of marking and a line of `[stack]` where they are given."""
    port = f"queue = {queue}" if queue else f'mark = "{mark or MARKS[rate]}p"'
    knobs = "\n".join(filter(None, (stack, 'profile = "linux"')))
    return f"""
[topology]
senders = {senders}
rate = "{rate}"
delay = "{delay}"
buffer = "{buffer}p"
{port}
[stack]
{knobs}
[[workload]]
{workload}
[run]
duration = "{duration}"
"""


LONG = 'kind = "long"\njitter = "1ms"'
"""Flows that start within a millisecond, not all in one instant."""


def _incast(size: str, rounds: int) -> str:
    return f'kind = "incast"\nbytes = "{size}"\nrounds = {rounds}\nrequest = "100B"\njitter = "20us"'


def _long_flows(quick: bool) -> Iterator[Case]:
    for rate, duration in {"100Mbps": "4s", "1Gbps": "1s", "10Gbps": "100ms"}.items():
        for senders in (2, 8, 20, 48):
            for buffer in (100, 400):
                if quick and (rate != "1Gbps" or senders not in (2, 8) or buffer != 100):
                    continue
                text = _star(LONG, senders=senders, rate=rate, buffer=buffer, duration=duration)
                yield Case(f"long, {senders} senders, {rate}, {buffer}p", "long flows", text)
    for buffer in () if quick else (50, 200):
        text = _star(LONG, senders=8, buffer=buffer, duration="1s")
        yield Case(f"long, 8 senders, 1Gbps, {buffer}p", "long flows", text)


def _incasts(quick: bool) -> Iterator[Case]:
    for senders in (8, 16, 32, 48):
        for size in ("8KB", "32KB", "64KB", "256KB"):
            if quick and (senders != 8 or size not in ("32KB", "256KB")):
                continue
            text = _star(_incast(size, 5), senders=senders, buffer=100, duration="60s")
            yield Case(f"incast, {senders} x {size}, 1Gbps, 100p", "incast", text, messages=True)
    others = [
        (16, "64KB", "1Gbps", 50),
        (16, "64KB", "1Gbps", 400),
        (8, "32KB", "100Mbps", 100),
        (12, "64KB", "10Gbps", 50),
        (32, "64KB", "10Gbps", 100),
    ]
    for senders, size, rate, buffer in () if quick else others:
        mark = min(MARKS[rate], buffer // 2)
        text = _star(_incast(size, 5), senders=senders, rate=rate, buffer=buffer, duration="60s", mark=mark)
        yield Case(f"incast, {senders} x {size}, {rate}, {buffer}p", "incast", text, messages=True)


def _round_trips() -> Iterator[Case]:
    for rtt, delay in {"10us": "2.5us", "50us": "12.5us", "200us": "50us", "500us": "125us"}.items():
        text = _star(LONG, senders=8, delay=delay, buffer=200, duration="1s")
        yield Case(f"long, 8 senders, 1Gbps, 200p, RTT {rtt}", "round trip", text)


def _thresholds() -> Iterator[Case]:
    for mark in (5, 10, 20, 40, 65):
        text = _star(LONG, senders=8, buffer=200, duration="1s", mark=mark)
        yield Case(f"long, 8 senders, 1Gbps, 200p, K {mark}", "K", text, cc=("dctcp",))


def _trains() -> Iterator[Case]:
    on_off = """kind = "http_on_off"
responses = 50
size = { uniform = ["2KB", "10KB"] }
gap = { exponential = "1ms" }
train = "256KB"
train_start = "100ms"
"""
    for senders, buffer in ((5, 50), (5, 100), (16, 100)):
        text = _star(on_off, senders=senders, buffer=buffer, duration="60s")
        yield Case(f"ON/OFF, {senders} senders, 1Gbps, {buffer}p", "ON/OFF trains", text, messages=True)
    text = _star(on_off + "new_connection = true\n", senders=8, buffer=100, duration="60s")
    yield Case("ON/OFF, 8 senders, 1Gbps, 100p, new connections", "ON/OFF trains", text, messages=True)


def _convergences() -> Iterator[Case]:
    for rate, step, duration in (("1Gbps", "200ms", "2s"), ("100Mbps", "1s", "10s")):
        workload = f'kind = "convergence"\nstep = "{step}"'
        text = _star(workload, senders=5, rate=rate, buffer=200, duration=duration)
        yield Case(f"convergence, 5 senders, {rate}, 200p", "convergence", text)


def _without_sack() -> Iterator[Case]:
    for buffer in (100, 400):
        text = _star(LONG, senders=8, buffer=buffer, duration="1s")
        yield Case(f"without SACK: long, 8 senders, 1Gbps, {buffer}p", "without SACK", text, cc=PLAIN)
    for senders, size in ((16, "64KB"), (32, "32KB")):
        text = _star(_incast(size, 5), senders=senders, buffer=100, duration="60s")
        name = f"without SACK: incast, {senders} x {size}, 1Gbps, 100p"
        yield Case(name, "without SACK", text, messages=True, cc=PLAIN)


def _replays() -> Iterator[Case]:
    workload = 'kind = "replay"\nfile = "workload.json"'
    for buffer in (40, 100):
        text = _star(workload, senders=8, delay="10us", buffer=buffer, duration="60s")
        yield Case(f"replay, http_onoff_8to1, 1Gbps, {buffer}p", "replay", text, messages=True, capture=CAPTURE)


RED = '{ name = "red", red_min = 20, red_max = 60, red_weight = 0.02 }'
"""Random early detection that reacts within some 50 packets, 0.6 ms at 1 Gbps."""


def _disciplines() -> Iterator[Case]:
    settings = {
        "RED": (RED, ""),
        "RED with ECN (RFC 3168)": (RED, 'ecn = "classic"'),
        "0.1% lost at random": ('{ name = "lossy", loss_probability = 0.001 }', ""),
    }
    for name, (queue, stack) in settings.items():
        for senders in (2, 8, 20):
            text = _star(LONG, senders=senders, buffer=200, duration="1s", queue=queue, stack=stack)
            yield Case(f"{name}, {senders} senders, 1Gbps, 200p", "queue discipline", text)


def cases(quick: bool = False) -> list[Case]:
    """The scenarios, the quick ones a part of them.

    Examples
    --------
    >>> len(cases()) >= 60, len(cases(quick=True)) < 10
    (True, True)
    """
    made = [*_long_flows(quick), *_incasts(quick)]
    if not quick:
        made += [*_round_trips(), *_thresholds(), *_trains(), *_convergences(), *_replays(), *_without_sack()]
        made += _disciplines()
    return made
