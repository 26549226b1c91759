"""Small captures of what a tap meets now and then: connections that are opened, used and closed as few are, and packets that few stacks send.

As :mod:`.conversations`, but each round opens connections of its own.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass

from .conversations import ACK, CLIENT, FIN, RST, SERVER, SYN, Ends, Net, Played, Wire, body, get, ok, service_time
from .spoilt import ETHERNET, Packet


def header(stored: bytes) -> tuple[int, int, int]:
    """Where TCP begins, how long its header is, and its flags. Ethernet and IPv4."""
    at = ETHERNET + (stored[ETHERNET] & 15) * 4
    return at, (stored[at + 12] >> 4) * 4, stored[at + 13]


def with_option(packet: Packet, option: Callable[[int, int], bytes]) -> Packet:
    """With an option, which is made of the packet's flags and bytes of data; its length is a multiple of 4. Ethernet and IPv4."""
    at, original, stored = packet
    tcp, length, flags = header(stored)
    data = struct.unpack_from(">H", stored, ETHERNET + 2)[0] - (tcp - ETHERNET) - length
    more = option(flags, data)
    total = struct.pack(">H", len(stored) + len(more) - ETHERNET)
    offset = bytes([(length + len(more)) // 4 << 4])
    new = stored[: ETHERNET + 2] + total + stored[ETHERNET + 4 : tcp + 12] + offset + stored[tcp + 13 : tcp + length]
    return at, original + len(more), new + more + stored[tcp + length :]


def multipath(flags: int, data: int) -> bytes:
    """What MPTCP adds (RFC 8684): MP_CAPABLE in the handshake, then a data sequence signal without its checksum."""
    if flags & SYN:
        key = bytes(8) if flags & ACK else b""
        return bytes([30, 4 + len(key), 0x01, 0x81]) + key
    if data:
        return bytes([30, 18, 0x20, 0x05]) + bytes(12) + struct.pack(">H", data) + b"\1\1"
    return bytes([30, 8, 0x20, 0x01]) + bytes(4)


@dataclass(frozen=True)
class Use:
    """How a round uses a connection."""

    fast: bool = False
    """The request is in the SYN (TCP Fast Open, RFC 7413), and the first segment of the answer may be sent before the handshake is over."""
    half: bool = False
    """The client has nothing more to ask and says so with its request (half-closed)."""
    reset: int | None = None
    """This side ends it with a reset: the client when it has the answer, the server behind its answer."""
    ports: int = 0
    """So many ports serve in turn, so that they come again; none: each connection has its own."""


def connections(use: Use, rounds: int = 40, seed: int = 1) -> Played:
    """Rounds in each of which every server is asked over a connection of its own."""
    net = Net()
    wire = Wire(net, seed)
    draw, played = wire.draw, wire.played
    at, opened = 0.01, 0
    for _ in range(rounds):
        begin, ready = at, []
        for server in range(net.servers):
            port = 20_000 + opened % use.ports if use.ports else 20_000 + opened
            opened += 1
            answer = ok(body(draw))
            ends, had = ask(wire, server, at + server * 4e-6, port, use)
            ready.append((had + service_time(draw), server, ends, answer))
        for now, _server, ends, answer in sorted(ready, key=lambda each: each[:2]):
            at = max(at, wire.answer(ends, now, answer))
            leave(wire, ends, wire.free, use)
        played.took.append((at - begin) * 1e3)
        played.responses += net.servers
        at += draw.uniform(2e-3, 6e-3)
    return played


def ask(wire: Wire, server: int, at: float, port: int, use: Use) -> tuple[Ends, float]:
    """Opens a connection and asks; also when the server has the request."""
    request, rtt = get("a"), wire.net.rtt
    if not use.fast:
        ends = wire.open(server, at, port)
        had = wire.ask(ends, at + rtt + 12e-6, [request])
    else:
        ends = Ends(server, port, [wire.draw.getrandbits(32) for _ in range(2)], [7, 1])
        wire.packet(ends, CLIENT, at, request, SYN)
        ends.sequence[CLIENT] += 1 + len(request)
        wire.packet(ends, SERVER, at + rtt, b"", SYN | ACK)
        ends.sequence[SERVER] += 1
        wire.packet(ends, CLIENT, at + rtt + 3e-6, b"")
        had = at + rtt / 2
    if use.half:
        wire.packet(ends, CLIENT, at + rtt + 15e-6, b"", FIN | ACK)
        ends.sequence[CLIENT] += 1
    return ends, had


def leave(wire: Wire, ends: Ends, at: float, use: Use) -> None:
    """Ends a connection whose answer came."""
    if use.reset is not None:
        wire.packet(ends, use.reset, at + 8e-6, b"", RST | ACK)
        return
    first, second = (SERVER, CLIENT) if use.half else (CLIENT, SERVER)
    wire.packet(ends, first, at + 8e-6, b"", FIN | ACK)
    ends.sequence[first] += 1
    if not use.half:
        wire.packet(ends, second, at + 8e-6 + wire.net.rtt, b"", FIN | ACK)
        ends.sequence[second] += 1
    wire.packet(ends, 1 - second if use.half else first, at + 12e-6 + wire.net.rtt, b"")


class Probed(Wire):
    """Each end probes whether the other is there: a keep-alive one byte below what it sent, which is answered, after every fourth answer."""

    def answer(self, ends: Ends, at: float, data: bytes) -> float:
        end = super().answer(ends, at, data)
        if self.draw.randrange(4) == 0:
            for n, side in enumerate((CLIENT, SERVER)):
                probe = end + 400e-6 + n * 300e-6
                ends.sequence[side] -= 1
                self.packet(ends, side, probe, b"")
                ends.sequence[side] += 1
                self.packet(ends, 1 - side, probe + self.net.rtt, b"")
        return end


class Full(Wire):
    """A receiver that has no room after half of every tenth answer: its window is probed twice, and opens."""

    def answer(self, ends: Ends, at: float, data: bytes) -> float:
        half = len(data) // 2 // self.net.mss * self.net.mss
        if half == 0 or self.draw.randrange(10):
            return super().answer(ends, at, data)
        for n in range(0, half, self.net.mss):
            self.free = max(self.free, at + self.net.rtt / 2) + (self.net.mss + 90) * 8 / self.net.rate
            self.packet(ends, SERVER, self.free, data[n : n + self.net.mss])
            ends.sequence[SERVER] += self.net.mss
        now, free = self.free, self.free
        self.packet(ends, CLIENT, now + 3e-6, b"", window=0)
        for probe in (now + 5e-3, now + 15e-3):
            ends.sequence[SERVER] -= 1
            self.packet(ends, SERVER, probe, b"")
            ends.sequence[SERVER] += 1
            self.packet(ends, CLIENT, probe + 3e-6, b"", window=0)
        self.packet(ends, CLIENT, now + 20e-3, b"")
        end = super().answer(ends, now + 20e-3 + self.net.rtt / 2, data[half:])
        # The others' answers did not wait for it.
        self.free = free
        return end
