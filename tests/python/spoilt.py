"""Captures spoilt on purpose: what taps, filters and tools do to a file."""

from __future__ import annotations

import gzip
import random
import struct
from collections.abc import Callable, Iterable
from pathlib import Path

Packet = tuple[int, int, bytes]
"""Nanoseconds since 1970, bytes on the wire, what is stored."""

ETHERNET = 14


def read(path: Path) -> tuple[int, list[Packet]]:
    """The link type and packets of a little-endian pcap file, plain or gzip."""
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    magic, linktype = struct.unpack_from("<I16xI", data)
    unit = {0xA1B2C3D4: 1_000, 0xA1B23C4D: 1}[magic]
    packets, at = [], 24
    while at < len(data):
        seconds, fraction, stored, original = struct.unpack_from("<IIII", data, at)
        packets.append((seconds * 10**9 + fraction * unit, original, data[at + 16 : at + 16 + stored]))
        at += 16 + stored
    return linktype, packets


def write(path: Path, linktype: int, packets: Iterable[Packet]) -> Path:
    """A pcap file with nanoseconds."""
    with path.open("wb") as file:
        file.write(struct.pack("<IHHIIII", 0xA1B23C4D, 2, 4, 0, 0, 262_144, linktype))
        for ns, original, stored in packets:
            file.write(struct.pack("<IIII", *divmod(ns, 10**9), len(stored), original) + stored)
    return path


def sampled(packets: list[Packet], one_in: int, seed: int = 1) -> list[Packet]:
    """One packet of so many, at random, as sFlow samples."""
    draw = random.Random(seed)
    return [packet for packet in packets if draw.randrange(one_in) == 0]


def rounded(packets: list[Packet], ns: int) -> list[Packet]:
    """Time stamps of a clock that counts so many nanoseconds."""
    return [(at - at % ns, original, stored) for at, original, stored in packets]


def paced(packets: list[Packet], speed: float) -> list[Packet]:
    """Time stamps of a clock that runs so many times as fast."""
    first = packets[0][0]
    return [(first + round((at - first) * speed), original, stored) for at, original, stored in packets]


def leapt(packets: list[Packet], ns: int) -> list[Packet]:
    """Time stamps of a clock that is set forward once, halfway."""
    half = len(packets) // 2
    return packets[:half] + [(at + ns, original, stored) for at, original, stored in packets[half:]]


def again(packets: list[Packet], ns: int, change: Callable[[bytes], bytes] = lambda stored: stored) -> list[Packet]:
    """Each packet a second time so much later, as from a second tap."""
    late = [(at + ns, original, change(stored)) for at, original, stored in packets]
    return sorted([*packets, *late], key=lambda packet: packet[0])


def tagged(stored: bytes) -> bytes:
    """With an 802.1Q tag (VLAN 7)."""
    return stored[:12] + b"\x81\x00\x00\x07" + stored[12:]


def translated(stored: bytes) -> bytes:
    """With other addresses and a client's port of its own, as NAT makes them. Ethernet and IPv4."""
    at = ETHERNET + 12
    swapped = bytes(200 if byte == 10 else byte for byte in stored[at : at + 8])
    return stored[:at] + swapped + stored[at + 8 :]


def bare(packet: Packet) -> bool:
    """An acknowledgement without data. Ethernet and IPv4."""
    stored = packet[2]
    header = (stored[ETHERNET] & 15) * 4
    flags = stored[ETHERNET + header + 13]
    data = struct.unpack_from(">H", stored, ETHERNET + 2)[0] - header - (stored[ETHERNET + header + 12] >> 4) * 4
    return data == 0 and flags & 0b111 == 0


def thinned(packets: list[Packet], one_in: int) -> list[Packet]:
    """Of the bare acknowledgements one of so many."""
    kept, count = [], 0
    for packet in packets:
        if bare(packet):
            count += 1
            if count % one_in:
                continue
        kept.append(packet)
    return kept


def from_address(packets: list[Packet], wanted: Callable[[bytes], bool]) -> list[Packet]:
    """What was sent by some hosts. Ethernet and IPv4."""
    return [packet for packet in packets if wanted(packet[2][ETHERNET + 12 : ETHERNET + 16])]


def ends(packet: Packet) -> frozenset[bytes]:
    """Addresses and ports of a connection: of IPv4 on Ethernet, a host and its port each."""
    stored = packet[2]
    ports = ETHERNET + (stored[ETHERNET] & 15) * 4
    hosts = ETHERNET + 12
    return frozenset(stored[hosts + 4 * n :][:4] + stored[ports + 2 * n :][:2] for n in (0, 1))


def without(packets: list[Packet], number: int, share: float = 0.0) -> list[Packet]:
    """Without a connection, by its number in order of first packets, after that share of the capture's time."""
    gone = list(dict.fromkeys(map(ends, packets)))[number]
    since = packets[0][0] + share * (packets[-1][0] - packets[0][0])
    return [packet for packet in packets if packet[0] < since or ends(packet) != gone]
