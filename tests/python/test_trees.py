"""Request trees: a client asks the aggregator, which asks its servers before it answers."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import fanin
import fanin.report
import pytest
from fanin.capture import waiting

TREES, SERVERS = 20, 4
CLIENT, AGGREGATOR = "10.0.9.9", "10.0.0.1"
SEGMENT = 1448


class Capture:
    """Packets at the aggregator, added in any order of time; microseconds."""

    def __init__(self) -> None:
        self.packets: list[tuple[float, bytes]] = []

    def tcp(
        self, at: float, ends: tuple[tuple[str, int], tuple[str, int]], seq: int, ack: int, flags: int, n: int
    ) -> None:
        (src, sport), (dst, dport) = ends
        tcp = struct.pack("!HHIIBBHHH", sport, dport, seq, ack, 5 << 4, flags, 65_000, 0, 0) + bytes(n)
        ips = [bytes(int(part) for part in ip.split(".")) for ip in (src, dst)]
        ip = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(tcp), 0, 0, 64, 6, 0) + ips[0] + ips[1]
        self.packets.append((at, bytes(12) + b"\x08\x00" + ip + tcp))

    def write(self, path: Path) -> Path:
        data = [struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65_535, 1)]
        for at, packet in sorted(self.packets, key=lambda p: p[0]):
            seconds, rest = divmod(round(at), 1_000_000)
            data.append(struct.pack("<IIII", 1_700_000_000 + seconds, rest, len(packet), len(packet)) + packet)
        path.write_bytes(b"".join(data))
        return path


class Connection:
    """A connection whose other end is 100 us away."""

    def __init__(self, capture: Capture, opener: tuple[str, int], opened: tuple[str, int], at: float) -> None:
        self.capture, self.sent = capture, {opener: 1, opened: 1}
        away = {ip: 0 if ip == AGGREGATOR else 50 for ip in (opener[0], opened[0])}
        capture.tcp(at, (opener, opened), 0, 0, 0x02, 0)
        capture.tcp(at + 2 * away[opened[0]], (opened, opener), 0, 1, 0x12, 0)
        capture.tcp(at + 2 * (away[opened[0]] + away[opener[0]]), (opener, opened), 1, 1, 0x10, 0)

    def send(self, at: float, src: tuple[str, int], size: int) -> float:
        """A message in full segments, 12 us each, and its acknowledgements; when the last of it passes the tap."""
        (dst,) = (end for end in self.sent if end != src)
        while size > 0:
            n = min(size, SEGMENT)
            self.capture.tcp(at, (src, dst), self.sent[src], self.sent[dst], 0x18 if n == size else 0x10, n)
            self.sent[src] += n
            self.capture.tcp(
                at + (1 if dst[0] == AGGREGATOR else 101), (dst, src), self.sent[dst], self.sent[src], 0x10, 0
            )
            size, last, at = size - n, at, at + 12
        return last


@pytest.fixture
def made(tmp_path: Path) -> tuple[Path, list[float]]:
    """A capture of trees, and how long each took at the tap, in us."""
    return make(tmp_path)


def make(tmp_path: Path, others: int = 0) -> tuple[Path, list[float]]:
    """The same, and so many requests to one more server that no client waits for."""
    capture, draw = Capture(), random.Random(5)
    client, servers = (CLIENT, 40_000), [(f"10.0.0.{n + 2}", 6000) for n in range(SERVERS)]
    asking = [(AGGREGATOR, 50_000 + n) for n in range(SERVERS)]
    inside = [Connection(capture, a, s, 200.0 * n) for n, (a, s) in enumerate(zip(asking, servers, strict=True))]
    outside = Connection(capture, client, (AGGREGATOR, 80), 5_000)
    now, took = 20_000.0, []
    for _ in range(TREES):
        asked = outside.send(now, client, 120)
        done = 0.0
        for n, connection in enumerate(inside):
            at = connection.send(asked + 120 + 10 * n, asking[n], 100)
            # Servers take 300 us to 2 ms, one after another so that none waits in the link.
            done = max(done, connection.send(at + 100 + 300 + 400 * n + draw.uniform(0, 300), servers[n], 4_000))
        answered = outside.send(done + 80, (AGGREGATOR, 80), 6_000)
        took.append(answered - asked)
        now = answered + 5_000 + draw.expovariate(1 / 20_000)
    if others:
        alone, asker = ("10.0.0.200", 6000), (AGGREGATOR, 51_000)
        beside = Connection(capture, asker, alone, 1_000)
        for n in range(others):
            asked = beside.send(10_000 + 997 * n + draw.uniform(0, 200), asker, 100)
            beside.send(asked + 150 + draw.uniform(0, 100), alone, 800)
    return capture.write(tmp_path / "trees.pcap"), took


def test_a_tree_lasts_from_the_clients_request_to_the_answer_that_waited_for_others(
    tmp_path: Path, made: tuple[Path, list[float]]
) -> None:
    capture, took = made
    rack = tmp_path / "rack.toml"
    rack.write_text('[rack]\nrate = "1Gbps"\ndelay = "25us"\nbuffer = "100p"\n')
    found = fanin.compare(capture, rack, cc=["cubic", "reno"], seeds=2)
    assert found.capture.aggregator == AGGREGATOR
    trees = found.trees.filter(cc="cubic", seed=1)
    # The first, too: its fan-out is of its client's message.
    assert trees.height == TREES
    # The client is 50 us away from the tap, each way, and packets take 2 or 12 us on each link.
    there = [us / 1000 + 0.1 for us in took]
    assert trees["completion_ms"].to_list() == pytest.approx(there, rel=0.08)
    # What a user waits for is what is ranked, and what the capture's trees took stands beside it.
    assert found.rank_of == "trees"
    row = found.ranking[0]
    assert row.completion_ms == row.tree_ms
    assert found.measured is not None
    assert found.measured.responses == TREES
    assert found.measured.completion_ms["p50"] == pytest.approx(sorted(there)[9], rel=0.01)
    assert "p99 request takes" in found.verdict.headline
    assert any("20 request trees are few for p99" in text for text in found.warnings)
    assert (row.trees, row.unfinished_trees) == (TREES, 0)
    assert found.to_dict()["ranking"][0]["tree_ms"]["p50"]["value"] == pytest.approx(sorted(there)[9], rel=0.08)
    # A round is a part of its tree.
    rounds = found.rounds.filter(cc="cubic", seed=1)
    assert rounds.height == TREES
    assert all(r < t for r, t in zip(rounds["completion_ms"], trees["completion_ms"], strict=True))


def test_clients_are_answered_and_servers_asked(made: tuple[Path, list[float]]) -> None:
    servers, client = waiting.sentences(fanin.trains(made[0]).groups())
    assert "the next request starts 119 us after a request of a client" in servers
    assert client.startswith("1 client is answered; an answer leaves ")
    assert "after the answer of another group of 4 servers" in client
    assert client.endswith("; 100% of answers explained")


def test_the_ranking_is_by_what_is_asked_for_and_each_way_the_report_has_all(
    tmp_path: Path, made: tuple[Path, list[float]]
) -> None:
    rack = tmp_path / "rack.toml"
    rack.write_text('[rack]\nrate = "1Gbps"\ndelay = "25us"\nbuffer = "100p"\n')
    for of in ("requests", "responses"):
        found = fanin.compare(made[0], rack, cc="cubic", seeds=1, rank_of=of)  # type: ignore[arg-type]
        assert found.ranking[0].completion_ms == found.ranking[0].times(of)  # type: ignore[arg-type]
        page = fanin.report.page(found)
        assert "20 request trees" in page
        assert "20 requests, ms" in page


def test_a_few_trees_beside_much_else_are_not_what_is_ranked(tmp_path: Path) -> None:
    capture, _ = make(tmp_path, others=300)
    rack = tmp_path / "rack.toml"
    rack.write_text('[rack]\nrate = "1Gbps"\ndelay = "25us"\nbuffer = "100p"\n')
    found = fanin.compare(capture, rack, cc="cubic", seeds=1)
    assert found.trees.height == TREES
    assert found.rank_of == "responses"


def test_connections_alone_have_no_trees(tmp_path: Path, made: tuple[Path, list[float]]) -> None:
    rack = tmp_path / "rack.toml"
    rack.write_text('[rack]\nrate = "1Gbps"\ndelay = "25us"\nbuffer = "100p"\n')
    alone = fanin.compare(made[0], rack, cc="cubic", seeds=1, independent=True)
    assert alone.trees.is_empty()
    assert alone.rank_of == "responses"
    with pytest.raises(fanin.ScenarioError, match=r"--rank-of trees.*each connection is replayed alone"):
        fanin.compare(made[0], rack, cc="cubic", seeds=1, independent=True, rank_of="trees")
    assert alone.ranking[0].tree_ms["p50"].value is None
