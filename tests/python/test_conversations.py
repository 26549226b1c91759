"""Ordinary protocols and forms of links that a tap may meet: responses, requests and their times are those of the application."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path

import fanin
import pytest

from tests.services.judge import Counted, doubts

from . import conversations, spoilt
from .conversations import Net, Played, play


def read(path: Path) -> tuple[Counted, fanin.TrainsResult]:
    """What the capture is read as."""
    found = fanin.trains(path)
    workload = json.loads(found.workload().to_json())
    responses = sum(m.get("took_ns") is not None for c in workload["connections"] for m in c["messages"])
    return Counted.of(responses, found.requests()["completion_ms"].drop_nulls().to_list()), found


def held(played: Played, path: Path) -> fanin.TrainsResult:
    """Holds what is read against what the application knows: to the request, and times to a fiftieth."""
    log, (counted, found) = Counted.of(played.responses, played.took), read(path)
    assert (counted.responses, counted.requests) == (log.responses, log.requests)
    assert (counted.p50, counted.p99) == pytest.approx((log.p50, log.p99), rel=0.02)
    return found


@pytest.mark.parametrize("snaplen", [262_144, 128])
@pytest.mark.parametrize("name", conversations.SCRIPTS)
def test_what_an_ordinary_protocol_says_is_read_or_it_is_said_why_not(name: str, snaplen: int, tmp_path: Path) -> None:
    played = play(**conversations.SCRIPTS[name], rounds=30)
    path = played.write(tmp_path / "capture.pcap", snaplen)
    if snaplen < 1_000 and name.startswith("redis-pipeline"):
        # Commands are cut off that no packet shows.
        told = [warning["message"] for warning in fanin.trains(path).warnings if warning["kind"] == "messages-unread"]
        assert ["larger snaplen" in sentence for sentence in told] == [True]
        return
    found = held(played, path)
    # Several requests in a packet that is cut: there might be more.
    assert (snaplen < 1_000 and name == "http-pipelined") or not doubts(found)


def test_an_upgrade_is_a_handshake_and_messages_behind_it_are_told_by_turns(tmp_path: Path) -> None:
    played = play(conversations.websocket, rounds=30, opening=conversations.websocket_opening)
    counted, _ = read(played.write(tmp_path / "websocket.pcap"))
    assert counted.responses == played.responses
    assert counted.requests == 30
    assert counted.p50 == pytest.approx(Counted.of(0, played.took).p50, rel=0.05)


@pytest.mark.parametrize("name", ["redis-pipeline-10", "tls"])
def test_two_bytes_of_payload_are_said_to_be_too_few(name: str, tmp_path: Path) -> None:
    path = play(**conversations.SCRIPTS[name], rounds=20).write(tmp_path / "cut.pcap", snaplen=68)
    assert "messages-unread" in doubts(fanin.trains(path))


def ipv4(protocol: int, inside: bytes) -> bytes:
    """An outer header."""
    return struct.pack(">BBHHHBBH8x", 0x45, 0, 20 + len(inside), 0, 0x4000, 64, protocol, 0) + inside


FORMS: dict[str, tuple[Callable[[bytes], bytes], int]] = {
    "VLAN": (spoilt.tagged, 1),
    "QinQ": (lambda s: s[:12] + b"\x88\xa8\0\x09\x81\0\0\x07" + s[12:], 1),
    "cooked": (lambda s: b"\0\0\0\1\0\6" + bytes(8) + s[12:], 113),
    "cooked, version 2": (lambda s: s[12:14] + b"\0\0\0\0\0\3\0\1\0\6" + bytes(8) + s[14:], 276),
    "raw": (lambda s: s[14:], 101),
    "GRE": (lambda s: s[:14] + ipv4(47, b"\0\0\x08\0" + s[14:]), 1),
    "ERSPAN": (lambda s: s[:14] + ipv4(47, b"\x10\0\x88\xbe\0\0\0\1" + bytes(8) + s), 1),
    "MPLS": (lambda s: s[:12] + b"\x88\x47\0\1\x01\x40" + s[14:], 1),
}
"""What the frame becomes, and the file's link type."""


@pytest.mark.parametrize("form", FORMS)
def test_the_form_of_the_link_changes_nothing(form: str, tmp_path: Path) -> None:
    change, linktype = FORMS[form]
    played = play(conversations.kafka, rounds=20)
    played.packets = [(at, len(new := change(stored)), new) for at, _, stored in played.packets]
    held(played, played.write(tmp_path / "form.pcap", linktype=linktype))


@pytest.mark.parametrize(
    "net",
    [
        Net(ipv6=True),
        Net(ipv6=True, extension=b"\x3c\0\1\4\0\0\0\0" + b"\6\0\1\4\0\0\0\0"),
        Net(mss=8_948),
        Net(merged=16),
        Net(merged=60, ipv6=True),
        Net(stamps=False, numbered=False),
    ],
    ids=["IPv6", "extension headers", "jumbo frames", "merged", "above 64 KiB", "neither stamps nor numbers"],
)
def test_the_forms_of_packets_change_nothing(net: Net, tmp_path: Path) -> None:
    played = play(conversations.kafka, rounds=20, net=net)
    held(played, played.write(tmp_path / "form.pcap"))


@pytest.mark.parametrize(
    "net", [Net(), Net(stamps=False), Net(numbered=False)], ids=["Linux", "no stamps", "no numbers"]
)
@pytest.mark.parametrize("ns", [3_000, 400_000])
def test_a_copy_behind_a_translation_of_the_servers_addresses_counts_once(net: Net, ns: int, tmp_path: Path) -> None:
    def translated(stored: bytes) -> bytes:
        ends = [stored[at : at + 4] for at in (26, 30)]
        new = [end if end == bytes([10, 9, 0, 1]) else bytes([172, 16, 0, end[3]]) for end in ends]
        return stored[:26] + b"".join(new) + stored[34:]

    played = play(conversations.kafka, rounds=20, net=net)
    played.packets = spoilt.again(played.packets, ns, translated)
    found = held(played, played.write(tmp_path / "nat.pcap"))
    assert [reason.kind for reason in found.fitness.reasons] == ["translated-copies"]
    assert sum(c["copy_of"] is not None for c in found.connections) == net.servers
