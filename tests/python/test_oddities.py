"""What a tap meets now and then: responses, requests and their times are those of the application, or it is said why not."""

from __future__ import annotations

import random
from pathlib import Path

import fanin
import pytest

from tests.services.judge import Counted, doubts

from . import conversations, oddities
from .conversations import ACK, CLIENT, RST, SERVER, Played, play
from .oddities import Use
from .test_conversations import held, read


def test_options_of_mptcp_change_nothing(tmp_path: Path) -> None:
    played = play(conversations.kafka, rounds=20)
    played.packets = [oddities.with_option(packet, oddities.multipath) for packet in played.packets]
    assert not doubts(held(played, played.write(tmp_path / "mptcp.pcap")))


USES = {
    "plain": Use(),
    "request in the SYN": Use(fast=True),
    "half-closed": Use(half=True),
    "half-closed, then reset": Use(half=True, reset=CLIENT),
    "client resets": Use(reset=CLIENT),
    "server resets": Use(reset=SERVER),
    "ports come again": Use(ports=12),
    "ports come again after resets": Use(ports=12, reset=CLIENT),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_how_a_connection_is_opened_and_ended_changes_nothing(use: Use, tmp_path: Path) -> None:
    played = oddities.connections(use)
    assert not doubts(held(played, played.write(tmp_path / "odd.pcap")))


@pytest.mark.parametrize("kind", [oddities.Probed, oddities.Full])
def test_probes_are_no_messages(kind: type[conversations.Wire], tmp_path: Path) -> None:
    played = play(conversations.kafka, rounds=40, kind=kind)
    assert not doubts(held(played, played.write(tmp_path / "probed.pcap")))


def test_resets_end_connections_as_they_do(tmp_path: Path) -> None:
    played = play(conversations.kafka, rounds=30, close=RST | ACK)
    assert not doubts(held(played, played.write(tmp_path / "reset.pcap")))


def test_two_aggregators_are_told_apart(tmp_path: Path) -> None:
    one, two = (play(conversations.kafka, rounds=rounds, seed=seed) for rounds, seed in ((30, 1), (40, 2)))
    old, new = bytes([10, 9, 0, 1]), bytes([10, 9, 0, 200])
    moved = [
        (at + 700_000, size, stored[:26] + stored[26:34].replace(old, new) + stored[34:])
        for at, size, stored in two.packets
    ]
    path = Played(packets=[*one.packets, *moved]).write(tmp_path / "two.pcap")
    found = fanin.trains(path)
    for address, played in (("10.9.0.1", one), ("10.9.0.200", two)):
        took = found.requests(address)["completion_ms"].drop_nulls().to_list()
        log, ours = Counted.of(0, played.took), Counted.of(0, took)
        assert ours.requests == log.requests
        assert (ours.p50, ours.p99) == pytest.approx((log.p50, log.p99), rel=0.02)


@pytest.mark.parametrize("name", ["kafka", "http-pipelined", "tls", "postgres-extended"])
@pytest.mark.parametrize("seed", range(3))
def test_a_capture_may_begin_and_end_anywhere(name: str, seed: int, tmp_path: Path) -> None:
    played = play(**conversations.SCRIPTS[name], rounds=60)
    packets, draw = sorted(played.packets), random.Random(seed)
    first, last = draw.randrange(len(packets) // 4), draw.randrange(len(packets) * 3 // 4, len(packets))
    played.packets = packets[first:last]
    counted, _ = read(played.write(tmp_path / "part.pcap"))
    log = Counted.of(0, played.took)
    inside = 60 * (last - first) / len(packets)
    assert abs(counted.requests - inside) <= 3
    assert counted.p50 == pytest.approx(log.p50, rel=0.1)
    assert counted.p99 <= 1.02 * log.p99
