"""Algorithms that act at the receiver, and one that needs deadlines, inside the kernel's real TCP. Needs a built kernel."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

import fanin
import polars as pl
import pytest
from fanin import _native
from fanin.kernel import cache
from fanin.kernel.engine import replay

from .test_kernel import INCAST, LONG, same

pytestmark = pytest.mark.usefixtures("kernel")

SEGMENT = 1448
"""Payload of a full segment."""

TWENTY = INCAST.replace("senders = 8", "senders = 20")
SHORT = LONG.replace("500ms", "200ms")


class Tcp(NamedTuple):
    """What a packet of a capture says."""

    to: bytes
    syn: bool
    window: int
    scale: int | None
    payload: int
    end: int
    """Of what it acknowledges."""


def packets(file: Path, host: bytes) -> Iterator[Tcp]:
    """TCP packets that `host` sent."""
    data, at = file.read_bytes(), 24
    while at < len(data):
        kept = struct.unpack_from("<I", data, at + 8)[0]
        ip, at = data[at + 16 + 14 : at + 16 + kept], at + 16 + kept
        if ip[12:16] != host:
            continue
        total = struct.unpack_from("!H", ip, 2)[0]
        tcp = ip[(ip[0] & 15) * 4 :]
        ports, _, ack, offset, flags, window = struct.unpack_from("!4sIIBBH", tcp)
        header, options, scale = (offset >> 4) * 4, 20, None
        while options < header and tcp[options]:
            if tcp[options] == 3:
                scale = tcp[options + 2]
            options += 1 if tcp[options] == 1 else tcp[options + 1]
        yield Tcp(ip[16:20] + ports, bool(flags & 2), window, scale, total - (ip[0] & 15) * 4 - header, ack)


def offers(folder: Path, host: bytes) -> tuple[list[float], list[int]]:
    """Windows of the client's ACKs after the first data, in segments, and by how much right edges moved."""
    scales: dict[bytes, int] = {}
    edges: dict[bytes, int] = {}
    windows, moves = [], []
    acked: dict[bytes, int] = {}
    for packet in packets(folder / "client.pcap", host):
        if packet.syn:
            scales[packet.to] = packet.scale or 0
            continue
        first = acked.setdefault(packet.to, packet.end)
        if packet.payload or packet.end == first:
            continue
        window = packet.window << scales[packet.to]
        windows.append(window / SEGMENT)
        edge = packet.end + window
        moves.append(edge - edges.get(packet.to, edge))
        edges[packet.to] = edge
    return windows, moves


def client_address(folder: Path) -> bytes:
    """The host that all packets of the capture leave or reach."""
    data = (folder / "client.pcap").read_bytes()
    first, second = data[24 + 16 + 26 : 24 + 16 + 30], data[24 + 16 + 30 : 24 + 16 + 34]
    return max((second, first), key=lambda host: sum(1 for _ in packets(folder / "client.pcap", host)))


DEADLINES = """
[topology]
senders = 8
rate = "1Gbps"
delay = "25us"
buffer = "250p"
mark = "20p"
[stack]
profile = "linux"
[cc]
name = "d2tcp"
[[workload]]
kind = "incast"
from = ["s1", "s2", "s3", "s4"]
bytes = "256KB"
rounds = 5
deadline = "12ms"
class = "near"
[[workload]]
kind = "incast"
from = ["s5", "s6", "s7", "s8"]
bytes = "256KB"
rounds = 5
deadline = "60ms"
class = "far"
[run]
duration = "5s"
"""
"""Eight answers of 256 KB take 17 ms together: half of them should be there in 12."""


@pytest.mark.parametrize("cc", ["iatcp", "ictcp", "ictcp+cubic", "iatcp+trim"])
def test_windows_of_receivers_are_those_that_the_same_events_give_here(kernel: cache.Kernel, cc: str) -> None:
    for text in (SHORT, TWENTY):
        plan = _native.Scenario.from_text(text, "scenario.toml").changed(cc=cc).plan(1)
        ends, events, packets, difference = replay(plan, kernel, 1, "rust")
        assert difference is None
        # Both ends of a connection receive: requests, and what they ask for.
        assert ends >= 2
        assert events >= packets > 500


@pytest.mark.parametrize("cc", ["iatcp", "ictcp"])
def test_advertised_windows_are_near_the_simulators_and_no_right_edge_moves_back(cc: str, tmp_path: Path) -> None:
    mean, median = {}, {}
    for engine in ("sim", "kernel"):
        run = fanin.run("incast.toml", text=TWENTY, cc=cc, engine=engine, pcap=tmp_path / engine, pcap_at=["client"])
        windows, moves = offers(tmp_path / engine, client_address(tmp_path / engine))
        # Every segment is acknowledged, and by itself.
        assert len(windows) == pytest.approx(20 * 3 * 46, rel=0.03)
        assert min(moves) >= 0
        mean[engine] = fmean(windows)
        done = run.messages.filter(pl.col("class") == "incast")["completion_ms"]
        median[engine] = done.median()
        assert run.messages["timeouts"].sum() == 0
    # A kernel's windows are whole multiples of 128 bytes, rounded up.
    assert mean["kernel"] == pytest.approx(mean["sim"], rel=0.1)
    assert median["kernel"] == pytest.approx(median["sim"], rel=0.1)


def test_control_at_the_receiver_avoids_the_timeouts_of_reno() -> None:
    run = fanin.run("incast.toml", text=TWENTY.replace("100p", "64p"), cc=["reno", "iatcp", "ictcp"], engine="kernel")
    timeouts = dict(run.messages.group_by("cc").agg(pl.col("timeouts").sum()).iter_rows())
    assert timeouts["reno"] > 0
    assert timeouts["iatcp"] == timeouts["ictcp"] == 0


@pytest.mark.parametrize("cc", ["iatcp", "ictcp+cubic", "d2tcp"])
def test_a_run_under_control_is_the_same_when_it_is_repeated(cc: str) -> None:
    first, second = (fanin.run("incast.toml", text=TWENTY, cc=cc, engine="kernel") for _ in range(2))
    assert same(first, second)


def test_a_senders_algorithm_runs_below_a_receivers() -> None:
    # Over Linux's own, and over fanin's; with a parameter of the receiver's part.
    text = TWENTY.replace('name = "cubic"', 'name = "iatcp+cubic"\niatcp_round = "up"')
    assert not fanin.run("incast.toml", text=text, engine="kernel").failures
    for cc in ("ictcp+reno", "ictcp+dctcp", "iatcp+trim"):
        done = fanin.run("incast.toml", text=TWENTY, cc=cc, engine="kernel").messages
        assert done.filter(pl.col("class") == "incast")["done_ms"].null_count() == 0


def test_windows_of_d2tcp_are_those_that_the_same_events_and_deadlines_give_here(kernel: cache.Kernel) -> None:
    plan = _native.Scenario.from_text(DEADLINES, "scenario.toml").plan(1)
    _, events, acks, difference = replay(plan, kernel, 1, "rust")
    assert difference is None
    assert events >= acks > 500


def test_deadlines_reach_d2tcp_in_the_kernel() -> None:
    usual = {}
    for engine, cc in (("sim", "d2tcp"), ("kernel", "d2tcp"), ("kernel", "dctcp")):
        done = fanin.run("deadlines.toml", text=DEADLINES, cc=cc, engine=engine).messages
        medians = dict(done.group_by("class").agg(pl.col("completion_ms").median()).iter_rows())
        usual[engine, cc] = medians["far"] / medians["near"]
    # Those that are late give up less at a mark. DCTCP knows of no deadlines.
    assert usual["kernel", "dctcp"] == pytest.approx(1, abs=0.15)
    assert usual["kernel", "d2tcp"] > 1.3
    assert usual["kernel", "d2tcp"] == pytest.approx(usual["sim", "d2tcp"], rel=0.15)


def test_without_deadlines_d2tcp_is_dctcp() -> None:
    text = DEADLINES.replace('deadline = "12ms"\n', "").replace('deadline = "60ms"\n', "")
    d2tcp, dctcp = (fanin.run("x.toml", text=text, cc=cc, engine="kernel-fanin") for cc in ("d2tcp", "dctcp"))
    assert d2tcp.messages["done_ms"].equals(dctcp.messages["done_ms"])
