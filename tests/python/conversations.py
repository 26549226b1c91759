"""Small captures of services whose applications are known to the byte: a stand-in for each protocol, and for each form of link.

An aggregator asks all servers at once, waits for the last answer, thinks, and asks again. Answers meet in one queue. The tap is at the aggregator.
"""

from __future__ import annotations

import heapq
import random
import struct
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import spoilt
from .spoilt import Packet

FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16
CLIENT, SERVER = 0, 1

Exchange = tuple[Sequence[bytes], Sequence[tuple[float, bytes]]]
"""What the client writes at once, and what the server answers: seconds after it has all (or after its write before), and bytes."""

Script = Callable[[random.Random, int, int], Sequence[Exchange]]
"""Of round and server, the exchanges that follow each other."""


@dataclass(frozen=True)
class Net:
    """Where the conversations take place."""

    servers: int = 6
    mss: int = 1448
    rate: float = 1e9
    rtt: float = 100e-6
    ipv6: bool = False
    stamps: bool = True
    numbered: bool = True
    merged: int = 1
    """Segments that an offload hands to the tap as one packet."""
    extension: bytes = b""
    """IPv6 extension headers; the first byte of each is set to what follows."""
    port: int = 9000


@dataclass
class Played:
    """A capture, and what the application knows."""

    packets: list[Packet] = field(default_factory=list)
    responses: int = 0
    """Answers to requests."""
    took: list[float] = field(default_factory=list)
    """Milliseconds from the first request of a round to the last byte of its answers."""

    def write(self, path: Path, snaplen: int = 262_144, linktype: int = 1) -> Path:
        """A pcap file."""
        cut = sorted(((at, original, stored[:snaplen]) for at, original, stored in self.packets), key=lambda p: p[0])
        return spoilt.write(path, linktype, cut)


@dataclass
class Ends:
    """One connection."""

    number: int
    client_port: int
    sequence: list[int]
    idents: list[int]
    unacked: int = 0


class Wire:
    """Packets of connections as a tap at the client sees them."""

    def __init__(self, net: Net, seed: int) -> None:
        self.net, self.draw, self.played = net, random.Random(seed), Played()
        self.free = 0.0

    def open(self, number: int, at: float, port: int | None = None) -> Ends:
        """A handshake; the connection is open a round trip later."""
        ends = Ends(
            number, port or 40_000 + number, [self.draw.getrandbits(32) for _ in range(2)], [number * 7 + 1, number + 1]
        )
        self.packet(ends, CLIENT, at, b"", SYN)
        ends.sequence[CLIENT] += 1
        self.packet(ends, SERVER, at + self.net.rtt, b"", SYN | ACK)
        ends.sequence[SERVER] += 1
        self.packet(ends, CLIENT, at + self.net.rtt + 10e-6, b"")
        return ends

    def packet(self, ends: Ends, side: int, at: float, payload: bytes, flags: int = ACK, window: int = 4_000) -> None:
        """One packet passes the tap."""
        net = self.net
        sent = at - (net.rtt / 2 if side == SERVER else 0)
        options = b""
        if flags & SYN:
            options = struct.pack(">BBHBBBBBB", 2, 4, net.mss + (12 if net.stamps else 0), 4, 2, 1, 3, 3, 7) + b"\1\1"
        if net.stamps:
            options += struct.pack(
                ">BBBBII", 1, 1, 8, 10, 1_000 * (side + 1) + int(sent * 1e3), 5_000 + int((sent - net.rtt) * 1e3)
            )
        ports = (ends.client_port, net.port)
        source, target = (ports[0], ports[1]) if side == CLIENT else (ports[1], ports[0])
        mine, other = ends.sequence[side] % 2**32, ends.sequence[1 - side] % 2**32
        if flags == SYN:
            other = 0
        length = 20 + len(options)
        head = struct.pack(">HHIIBBHHH", source, target, mine, other, length // 4 << 4, flags, window, 0, 0)
        segment = head + options + payload
        ident = ends.idents[side] % 65_536 or 1
        pieces = max(1, -(-len(payload) // net.mss))
        ends.idents[side] += pieces
        # Stands for the checksum: equal for equal packets only.
        check = zlib.crc32(segment + bytes([ident & 255, ident >> 8] if net.numbered else b"")) & 0xFFFF
        segment = segment[:16] + struct.pack(">H", check) + segment[18:]
        self.record(at, self.network(ends.number, side, segment, ident if net.numbered else 0))

    def network(self, number: int, side: int, segment: bytes, ident: int) -> bytes:
        """In an Ethernet frame."""
        ends = (1, number + 2) if side == CLIENT else (number + 2, 1)
        if self.net.ipv6:
            extension = self.net.extension
            source, target = (bytes.fromhex("fd00") + bytes(13) + bytes([n]) for n in ends)
            following = 0 if extension else 6
            length = len(segment) + len(extension)
            head = struct.pack(">IHBB", 6 << 28 | 0xABCDE + number, length if length < 65_536 else 0, following, 64)
            return bytes(12) + b"\x86\xdd" + head + source + target + extension + segment
        source, target = (bytes([10, 9, 0, n]) for n in ends)
        total = 20 + len(segment)
        head = struct.pack(">BBHHHBBH", 0x45, 0, total if total < 65_536 else 0, ident, 0x4000, 64, 6, 0)
        return bytes(12) + b"\x08\x00" + head + source + target + segment

    def record(self, at: float, frame: bytes) -> None:
        """As the tap stores it."""
        self.played.packets.append((1_700_000_000 * 10**9 + round(at * 1e9), len(frame), frame))

    def ask(self, ends: Ends, at: float, writes: Sequence[bytes]) -> float:
        """The client writes; returns when its server has all."""
        for data in writes:
            step = self.net.mss * self.net.merged
            for n in range(0, len(data), step):
                last = n + step >= len(data)
                piece = data[n : n + step]
                self.packet(ends, CLIENT, at, piece, ACK | (PSH if last else 0))
                ends.sequence[CLIENT] += len(piece)
                at += 2e-6
        return at + self.net.rtt / 2

    def answer(self, ends: Ends, at: float, data: bytes) -> float:
        """The server writes at `at`; returns when its client has all."""
        step = self.net.mss * self.net.merged
        for n in range(0, len(data), step):
            last = n + step >= len(data)
            piece = data[n : n + step]
            self.free = max(self.free, at + self.net.rtt / 2) + (len(piece) + 90) * 8 / self.net.rate
            self.packet(ends, SERVER, self.free, piece, ACK | (PSH if last else 0))
            ends.sequence[SERVER] += len(piece)
            ends.unacked += 1
            if ends.unacked >= 2 or last:
                ends.unacked = 0
                self.packet(ends, CLIENT, self.free + 3e-6, b"")
        return self.free


def play(
    script: Script,
    rounds: int = 60,
    net: Net = Net(),
    seed: int = 1,
    opening: Script | None = None,
    calls: int = 1,
    close: int = FIN | ACK,
    kind: type[Wire] = Wire,
) -> Played:
    """Rounds of a service whose answers number `calls` to each server; `opening` goes before, on each connection by itself."""
    wire = kind(net, seed)
    draw, played = wire.draw, wire.played
    heap: list[tuple[float, int, Callable[[float], None]]] = []
    count = 0

    def later(at: float, what: Callable[[float], None]) -> None:
        nonlocal count
        count += 1
        heapq.heappush(heap, (at, count, what))

    def exchange(ends: Ends, at: float, each: list[Exchange], done: Callable[[float], None]) -> None:
        if not each:
            done(at)
            return
        writes, answers = each[0]
        had = wire.ask(ends, at, writes) if writes else at

        def said(now: float, left: list[tuple[float, bytes]]) -> None:
            end = wire.answer(ends, now, left[0][1])
            if len(left) > 1:
                later(now + left[1][0], lambda t: said(t, left[1:]))
            else:
                later(end + 5e-6, lambda t: exchange(ends, t, each[1:], done))

        if answers:
            first = list(answers)
            later(had + first[0][0], lambda t: said(t, first))
        else:
            later(had, lambda t: exchange(ends, t, each[1:], done))

    ends = [wire.open(number, number * 1e-3) for number in range(net.servers)]
    start = net.servers * 1e-3 + 0.01
    if opening:
        for number in range(net.servers):
            later(
                start + number * 2e-3,
                lambda t, n=number: exchange(ends[n], t, list(opening(draw, -1, n)), lambda _: None),
            )
        start += net.servers * 2e-3 + 0.05

    def ask_all(at: float, number: int) -> None:
        if number == rounds:
            for each in ends:
                wire.packet(each, CLIENT, at, b"", close)
            return
        waiting = [net.servers]

        def done(now: float) -> None:
            waiting[0] -= 1
            if waiting[0] == 0:
                played.took.append((now - 5e-6 - at) * 1e3)
                later(now + draw.uniform(1e-3, 3e-3), lambda t: ask_all(t, number + 1))

        for place, each in enumerate(ends):
            later(
                at + place * 4e-6,
                lambda t, e=each: exchange(e, t, list(script(draw, number, e.number)), done),
            )
        played.responses += calls * net.servers

    later(start, lambda t: ask_all(t, 0))
    while heap:
        at, _, what = heapq.heappop(heap)
        what(at)
    return played


def service_time(draw: random.Random) -> float:
    """What a server takes, seconds."""
    return 200e-6 + draw.expovariate(1 / 300e-6)


def plain(asked: bytes, answered: bytes, draw: random.Random) -> Exchange:
    """One write each way."""
    return [asked], [(service_time(draw), answered)]


# --- Protocols ---


def body(draw: random.Random, low: int = 4_000, high: int = 30_000) -> bytes:
    """What no protocol explains."""
    return draw.randbytes(draw.randrange(low, high))


def bulk(data: bytes) -> bytes:
    """A string of Redis."""
    return b"$%d\r\n%s\r\n" % (len(data), data)


def command(*words: bytes) -> bytes:
    """A command of Redis."""
    return b"*%d\r\n" % len(words) + b"".join(bulk(word) for word in words)


def redis_pipeline(depth: int) -> Script:
    """So many GETs in one write, whose answers come in one."""

    def script(draw: random.Random, number: int, server: int) -> Sequence[Exchange]:
        asked = b"".join(command(b"GET", b"key:%d:%d" % (number, n)) for n in range(depth))
        return [plain(asked, b"".join(bulk(body(draw, 50, 2_000)) for _ in range(depth)), draw)]

    return script


def redis_multi(draw: random.Random, number: int, server: int) -> Sequence[Exchange]:
    """A transaction, as clients write it: at once. They wait for what EXEC gives."""
    asked = [command(b"MULTI"), command(b"GET", b"a"), command(b"LRANGE", b"b", b"0", b"-1"), command(b"EXEC")]
    many = b"*20\r\n" + b"".join(bulk(body(draw, 10, 900)) for _ in range(20))
    answered = b"+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n" + bulk(body(draw, 50, 9_000)) + many
    return [plain(b"".join(asked), answered, draw)]


def redis_multi_stepwise(draw: random.Random, number: int, server: int) -> Sequence[Exchange]:
    """A transaction whose client waits for each answer."""
    return [
        plain(command(b"MULTI"), b"+OK\r\n", draw),
        plain(command(b"GET", b"a"), b"+QUEUED\r\n", draw),
        plain(command(b"EXEC"), b"*1\r\n" + bulk(body(draw)), draw),
    ]


def get(path: str, method: str = "GET", extra: str = "") -> bytes:
    """A request of HTTP/1.1."""
    return f"{method} /{path} HTTP/1.1\r\nHost: a.example\r\nUser-Agent: t/1\r\n{extra}\r\n".encode()


def ok(data: bytes, status: str = "200 OK", extra: str = "") -> bytes:
    """A response with its length."""
    return f"HTTP/1.1 {status}\r\nServer: t\r\nContent-Length: {len(data)}\r\n{extra}\r\n".encode() + data


def http_pipelined(draw: random.Random, number: int, server: int) -> Sequence[Exchange]:
    """Three requests in one write."""
    asked = b"".join(get(f"{number}/{n}") for n in range(3))
    return [([asked], [(service_time(draw), ok(body(draw, 100, 9_000))) for _ in range(3)])]


def http_continue(draw: random.Random, number: int, server: int) -> Sequence[Exchange]:
    """POST that waits for 100 Continue."""
    data = body(draw, 500, 4_000)
    head = get("post", "POST", f"Content-Length: {len(data)}\r\nExpect: 100-continue\r\n")
    return [([head], [(50e-6, b"HTTP/1.1 100 Continue\r\n\r\n")]), plain(data, ok(body(draw)), draw)]


def http_mixed(draw: random.Random, number: int, server: int) -> Sequence[Exchange]:
    """HEAD, 204, 304, chunks with trailers, one after another by round."""
    kind = number % 5
    if kind == 0:
        head = b"HTTP/1.1 200 OK\r\nContent-Length: 123456\r\n\r\n"
        return [plain(get("h", "HEAD"), head, draw)]
    if kind == 1:
        return [plain(get("d", "DELETE"), b"HTTP/1.1 204 No Content\r\nServer: t\r\n\r\n", draw)]
    if kind == 2:
        answered = b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5000\r\nETag: x\r\n\r\n"
        return [plain(get("c", extra="If-None-Match: x\r\n"), answered, draw)]
    if kind == 3:
        head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n"
        chunks = [body(draw, 100, 6_000) for _ in range(4)]
        parts = [head, *(b"%x\r\n%s\r\n" % (len(c), c) for c in chunks), b"0\r\nX-Sum: 12345\r\n\r\n"]
        return [([get("ch")], [(service_time(draw) if n == 0 else 150e-6, part) for n, part in enumerate(parts)])]
    return [plain(get("g"), ok(body(draw)), draw)]


def frame(kind: int, flags: int, stream: int, data: bytes) -> bytes:
    """Of HTTP/2."""
    return struct.pack(">I", len(data))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + data


def h2_opening(draw: random.Random, number: int, server: int) -> Sequence[Exchange]:
    """Preface and settings."""
    client = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, bytes(12))
    return [([client], [(50e-6, frame(4, 0, 0, bytes(6)) + frame(4, 1, 0, b""))]), ([frame(4, 1, 0, b"")], [])]


def grpc_streaming(messages: int, pause: float) -> Script:
    """A call whose server sends messages one by one."""

    def script(draw: random.Random, number: int, server: int) -> Sequence[Exchange]:
        stream = 2 * number + 1
        asked = frame(1, 4, stream, draw.randbytes(60)) + frame(0, 1, stream, b"\0" + struct.pack(">I", 20) + bytes(20))
        answers = [(service_time(draw), frame(1, 4, stream, draw.randbytes(14)))]
        for _ in range(messages):
            data = body(draw, 800, 6_000)
            answers.append((pause, frame(0, 0, stream, b"\0" + struct.pack(">I", len(data)) + data)))
        answers.append((pause, frame(1, 5, stream, draw.randbytes(16))))
        return [([asked], answers)]

    return script


def pg(kind: bytes, data: bytes) -> bytes:
    """A message of PostgreSQL's protocol 3."""
    return kind + struct.pack(">I", len(data) + 4) + data


def pg_opening(draw: random.Random, number: int, server: int) -> Sequence[Exchange]:
    """Startup, password, ready."""
    startup = struct.pack(">II", 41, 196_608) + b"user\0app\0database\0app\0\0".ljust(33, b"\0")
    parameters = b"".join(pg(b"S", b"server_version\x0016.%d\0" % n) for n in range(12))
    return [
        ([startup], [(200e-6, pg(b"R", struct.pack(">I", 5) + bytes(4)))]),
        (
            [pg(b"p", b"md5" + b"a" * 32 + b"\0")],
            [(300e-6, pg(b"R", bytes(4)) + parameters + pg(b"K", bytes(8)) + pg(b"Z", b"I"))],
        ),
    ]


def rows(draw: random.Random, count: int) -> bytes:
    """Rows of a table."""
    return b"".join(pg(b"D", struct.pack(">HI", 1, 200) + draw.randbytes(200)) for _ in range(count))


def pg_simple(draw: random.Random, number: int, server: int) -> Sequence[Exchange]:
    """A simple query; the server flushes its buffer of 8 KiB as it fills."""
    data = pg(b"T", bytes(30)) + rows(draw, draw.randrange(10, 150)) + pg(b"C", b"SELECT 50\0") + pg(b"Z", b"I")
    flushed = [data[n : n + 8_192] for n in range(0, len(data), 8_192)]
    answers = [(service_time(draw) if n == 0 else 60e-6, part) for n, part in enumerate(flushed)]
    return [([pg(b"Q", b"select * from t where id = %d\0" % number)], answers)]


def pg_extended(draw: random.Random, number: int, server: int) -> Sequence[Exchange]:
    """Parse and describe, then bind and execute, as drivers do the first time; later bind alone."""
    bind = pg(b"B", bytes(20)) + pg(b"E", bytes(5)) + pg(b"S", b"")
    data = pg(b"2", b"") + rows(draw, draw.randrange(10, 100)) + pg(b"C", b"SELECT 50\0") + pg(b"Z", b"I")
    return [plain(bind, data, draw)]


def kafka(draw: random.Random, number: int, server: int) -> Sequence[Exchange]:
    """A fetch: length, API key, correlation id."""
    asked = struct.pack(">HHIH", 1, 11, number, 6) + b"reader" + bytes(60)
    data = struct.pack(">I", number) + body(draw)
    return [plain(struct.pack(">I", len(asked)) + asked, struct.pack(">I", len(data)) + data, draw)]


def kafka_long(draw: random.Random, number: int, server: int) -> Sequence[Exchange]:
    """A fetch that the broker holds until there is something: up to 100 ms here."""
    asked = struct.pack(">HHIH", 1, 11, number, 6) + b"reader" + bytes(60)
    data = struct.pack(">I", number) + body(draw, 200, 3_000)
    wait = draw.uniform(5e-3, 100e-3)
    return [([struct.pack(">I", len(asked)) + asked], [(wait, struct.pack(">I", len(data)) + data)])]


def kafka_pipelined(draw: random.Random, number: int, server: int) -> Sequence[Exchange]:
    """Three produce requests on one connection, each in a write; answered in order."""
    asks = []
    for n in range(3):
        asked = struct.pack(">HHIH", 0, 9, 3 * number + n, 6) + b"writer" + body(draw, 400, 900)
        asks.append(struct.pack(">I", len(asked)) + asked)
    answers = []
    for n in range(3):
        data = struct.pack(">I", 3 * number + n) + body(draw, 2_000, 9_000)
        answers.append((service_time(draw), struct.pack(">I", len(data)) + data))
    return [(asks, answers)]


def mysql_packet(number: int, data: bytes) -> bytes:
    """Length, sequence number."""
    return struct.pack("<I", len(data))[:3] + bytes([number & 255]) + data


def mysql_opening(draw: random.Random, number: int, server: int) -> Sequence[Exchange]:
    """The server greets first."""
    return [
        ([], [(300e-6, mysql_packet(0, b"\x0a8.0.36\0" + bytes(70)))]),
        (
            [mysql_packet(1, struct.pack("<IIB", 0x81BEA205, 1 << 24, 45) + bytes(23) + b"app\0" + bytes(40))],
            [(400e-6, mysql_packet(2, bytes(7)))],
        ),
    ]


def mysql(draw: random.Random, number: int, server: int) -> Sequence[Exchange]:
    """COM_QUERY and a result set."""
    parts = [b"\x01", bytes(40), b"\xfe\0\0\2\0", *(draw.randbytes(180) for _ in range(draw.randrange(10, 100)))]
    parts.append(b"\xfe\0\0\2\0")
    answered = b"".join(mysql_packet(n + 1, part) for n, part in enumerate(parts))
    return [plain(mysql_packet(0, b"\x03select * from t"), answered, draw)]


def thrift(draw: random.Random, number: int, server: int) -> Sequence[Exchange]:
    """A framed call."""
    asked = b"\x80\x01\0\1" + struct.pack(">I", 3) + b"get" + struct.pack(">I", number) + bytes(20)
    data = b"\x80\x01\0\2" + struct.pack(">I", 3) + b"get" + struct.pack(">I", number) + body(draw)
    return [plain(struct.pack(">I", len(asked)) + asked, struct.pack(">I", len(data)) + data, draw)]


def record(kind: int, data: bytes) -> bytes:
    """Of TLS."""
    return bytes([kind, 3, 3]) + struct.pack(">H", len(data)) + data


def sealed(draw: random.Random, length: int) -> bytes:
    """Application data in records of 16 KiB."""
    return b"".join(record(23, draw.randbytes(min(16_384, length - n) + 17)) for n in range(0, length, 16_384))


def tls_opening(draw: random.Random, number: int, server: int) -> Sequence[Exchange]:
    """TLS 1.3, with its tickets behind the client's Finished."""
    hello = record(22, b"\x01" + draw.randbytes(500))
    flight = (
        record(22, b"\x02" + draw.randbytes(120))
        + record(20, b"\1")
        + b"".join(record(23, draw.randbytes(n)) for n in (40, 2_000, 280, 69))
    )
    tickets = record(23, draw.randbytes(250)) + record(23, draw.randbytes(250))
    return [([hello], [(400e-6, flight)]), ([record(20, b"\1") + record(23, draw.randbytes(69))], [(100e-6, tickets)])]


def tls(draw: random.Random, number: int, server: int) -> Sequence[Exchange]:
    """A request and an answer in records; a KeyUpdate of the server before every tenth, and a ticket behind every fifteenth, round."""
    answered = sealed(draw, draw.randrange(4_000, 40_000))
    answers = [(service_time(draw), answered)]
    if number % 15 == 7:
        answers.append((300e-6, record(23, draw.randbytes(250))))
    exchange: Exchange = ([sealed(draw, 300)], answers)
    return [exchange]


def tls_key_update(draw: random.Random, number: int, server: int) -> Sequence[Exchange]:
    """After every tenth round the client changes its key: a record of 22 bytes by itself, which nothing answers."""
    exchange: Exchange = ([sealed(draw, 300)], [(service_time(draw), sealed(draw, draw.randrange(4_000, 40_000)))])
    update: Exchange = ([record(23, draw.randbytes(22))], [])
    return [exchange, update] if number % 10 == 9 else [exchange]


def tls_client_certificate(draw: random.Random, number: int, server: int) -> Sequence[Exchange]:
    """TLS 1.3 whose server asks for another hello and for a certificate."""
    hello = record(22, b"\x01" + draw.randbytes(500))
    retry = record(22, b"\x02" + draw.randbytes(80)) + record(20, b"\1")
    flight = record(22, b"\x02" + draw.randbytes(120)) + b"".join(
        record(23, draw.randbytes(n)) for n in (40, 60, 2_000, 280, 53)
    )
    answered = record(20, b"\1") + b"".join(record(23, draw.randbytes(n)) for n in (1_900, 281, 53))
    return [
        ([hello], [(300e-6, retry)]),
        ([hello], [(400e-6, flight)]),
        ([answered], [(100e-6, record(23, draw.randbytes(250)))]),
    ]


def pg_encrypted(draw: random.Random, number: int, server: int) -> Sequence[Exchange]:
    """The client asks whether it may encrypt, and does."""
    return [([struct.pack(">II", 8, 80_877_103)], [(200e-6, b"S")]), *tls_opening(draw, number, server)]


def pg_flushed(draw: random.Random, number: int, server: int) -> Sequence[Exchange]:
    """A statement that is described first, and then run: two questions."""
    parse = pg(b"P", b"s1\0select $1\0\0\0") + pg(b"D", b"Ss1\0") + pg(b"H", b"")
    described = pg(b"1", b"") + pg(b"t", bytes(6)) + pg(b"T", bytes(30))
    return [plain(parse, described, draw), *pg_extended(draw, number, server)]


def mongo_message(number: int, to: int, data: bytes) -> bytes:
    """OP_MSG."""
    return struct.pack("<IIIII", len(data) + 20, number, to, 2013, 0) + data


def mongo(draw: random.Random, number: int, server: int) -> Sequence[Exchange]:
    """A find and its batch."""
    asked = mongo_message(number, 0, b"\0" + draw.randbytes(120))
    return [plain(asked, mongo_message(7, number, b"\0" + body(draw)), draw)]


def websocket_opening(draw: random.Random, number: int, server: int) -> Sequence[Exchange]:
    """An upgrade."""
    asked = get("ws", extra="Connection: Upgrade\r\nUpgrade: websocket\r\n")
    return [([asked], [(100e-6, b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n")])]


def websocket(draw: random.Random, number: int, server: int) -> Sequence[Exchange]:
    """A message each way."""
    asked, answered = draw.randbytes(100), body(draw)
    return [plain(b"\x82\xfe\0\x64" + asked, b"\x82\x7e" + struct.pack(">H", len(answered)) + answered, draw)]


def h2_stream_opening(draw: random.Random, number: int, server: int) -> Sequence[Exchange]:
    """A stream that both sides keep open."""
    asked = frame(1, 4, 1, draw.randbytes(60))
    return [*h2_opening(draw, number, server), ([asked], [(100e-6, frame(1, 4, 1, draw.randbytes(14)))])]


def grpc_both_ways(draw: random.Random, number: int, server: int) -> Sequence[Exchange]:
    """One message each way on that stream."""
    asked, answered = draw.randbytes(120), body(draw, 800, 12_000)
    return [
        plain(
            frame(0, 0, 1, b"\0" + struct.pack(">I", len(asked)) + asked),
            frame(0, 0, 1, b"\0" + struct.pack(">I", len(answered)) + answered),
            draw,
        )
    ]


SCRIPTS: dict[str, dict[str, Any]] = {
    "redis-pipeline-10": {"script": redis_pipeline(10), "calls": 10},
    "redis-pipeline-100": {"script": redis_pipeline(100), "calls": 100},
    "redis-multi": {"script": redis_multi},
    "redis-multi-stepwise": {"script": redis_multi_stepwise, "calls": 3},
    "http-pipelined": {"script": http_pipelined, "calls": 3},
    "http-continue": {"script": http_continue},
    "http-mixed": {"script": http_mixed},
    "grpc-streaming": {"script": grpc_streaming(8, 100e-6), "opening": h2_opening},
    "grpc-streaming-slow": {"script": grpc_streaming(6, 4e-3), "opening": h2_opening},
    "postgres-simple": {"script": pg_simple, "opening": pg_opening},
    "postgres-extended": {"script": pg_extended, "opening": pg_opening},
    "kafka": {"script": kafka},
    "kafka-long": {"script": kafka_long},
    "kafka-pipelined": {"script": kafka_pipelined, "calls": 3},
    "mysql": {"script": mysql, "opening": mysql_opening},
    "thrift": {"script": thrift},
    "tls": {"script": tls, "opening": tls_opening},
    "postgres-encrypted": {"script": tls, "opening": pg_encrypted},
    "postgres-flushed": {"script": pg_flushed, "opening": pg_opening, "calls": 2},
    "mongo": {"script": mongo},
    "grpc-both-ways": {"script": grpc_both_ways, "opening": h2_stream_opening},
    "tls-client-certificate": {"script": tls, "opening": tls_client_certificate},
    "tls-key-update": {"script": tls_key_update, "opening": tls_opening},
}
"""By name, what `play` plays."""
