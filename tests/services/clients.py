"""Connections of an aggregator, one class per protocol: `ask` sends a request and returns how many bytes of answer came."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable
from typing import Any, Protocol


class Connection(Protocol):
    """One connection to a server."""

    async def open(self, address: str) -> None:
        """Connect."""

    async def ask(self, size: int, delay_ms: int = 0) -> int:
        """Ask for so many bytes, which the server holds back for a while, and wait for them."""

    def close(self) -> None:
        """Disconnect."""


class Stream:
    """A connection of bytes."""

    port = 80
    tls: ssl.SSLContext | None = None

    async def open(self, address: str) -> None:
        """Connect."""
        self.reader, self.writer = await asyncio.open_connection(address, self.port, ssl=self.tls, limit=1 << 22)
        self.writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def close(self) -> None:
        """Disconnect."""
        self.writer.close()


class Http(Stream):
    """HTTP/1.1 with keep-alive."""

    path = "/{size}?ms={delay_ms}"

    async def ask(self, size: int, delay_ms: int = 0) -> int:
        """One GET."""
        return (await self.pipeline([size], delay_ms))[0]

    async def pipeline(self, sizes: list[int], delay_ms: int = 0) -> list[int]:
        """Several at once, whose answers come in order."""
        lines = [f"GET {self.path.format(size=size, delay_ms=delay_ms)} HTTP/1.1\r\nHost: a\r\n\r\n" for size in sizes]
        self.writer.write("".join(lines).encode())
        return [await self._answer() for _ in sizes]

    async def _answer(self) -> int:
        head = (await self.reader.readuntil(b"\r\n\r\n")).lower()
        if b"content-length:" in head:
            length = int(head.split(b"content-length:")[1].split(b"\r\n")[0])
            await self.reader.readexactly(length)
            return length
        total = 0
        while chunk := int(await self.reader.readline(), 16):
            await self.reader.readexactly(chunk + 2)
            total += chunk
        await self.reader.readexactly(2)
        return total


class Chunked(Http):
    """HTTP/1.1 whose answers come in chunks."""

    path = "/chunked/{size}?ms={delay_ms}"


class Https(Http):
    """HTTP/1.1 in TLS, with a certificate of its own making."""

    port = 443
    tls = ssl.create_default_context()
    tls.check_hostname = False
    tls.verify_mode = ssl.CERT_NONE


class Memcached(Stream):
    """The text protocol: a get of several keys, of 1 KiB each."""

    port = 11211

    async def ask(self, size: int, delay_ms: int = 0) -> int:
        """One multi-get."""
        keys = range(max(1, size // 1024))
        self.writer.write(("get " + " ".join(f"k{key}" for key in keys) + "\r\n").encode())
        total = 0
        while (line := await self.reader.readline()) != b"END\r\n":
            length = int(line.split()[3])
            await self.reader.readexactly(length + 2)
            total += length
        return total


class Redis(Stream):
    """RESP: a GET of one value. Of `k0`, `k1`, ... each has 1 KiB, of `v0`, `v1`, ... each one more."""

    port = 6379

    def send(self, *words: str | bytes) -> None:
        """A command."""
        parts = [word.encode() if isinstance(word, str) else word for word in words]
        self.writer.write(b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(p), p) for p in parts))

    async def value(self) -> int:
        """One bulk string; a key that is not there has none."""
        length = int((await self.reader.readline())[1:])
        if length < 0:
            return 0
        await self.reader.readexactly(length + 2)
        return length

    async def ask(self, size: int, delay_ms: int = 0) -> int:
        """One GET."""
        self.send("GET", f"v{max(0, size // 1024 - 1)}")
        return await self.value()


class RedisMget(Redis):
    """RESP: a MGET of several values."""

    async def ask(self, size: int, delay_ms: int = 0) -> int:
        """One MGET."""
        self.send("MGET", *(f"k{key}" for key in range(max(1, size // 1024))))
        count = int((await self.reader.readline())[1:])
        return sum([await self.value() for _ in range(count)])


class RedisPipeline(Redis):
    """RESP: several GETs written at once; their answers are one to the application."""

    async def pipeline(self, sizes: list[int], delay_ms: int = 0) -> list[int]:
        """Several at once, whose answers come in order."""
        for size in sizes:
            self.send("GET", f"v{max(0, size // 1024 - 1)}")
        return [await self.value() for _ in sizes]


class Binary(Stream):
    """A protocol of this laboratory that nothing knows: eight bytes say size and delay, the answer is its length and that many bytes."""

    port = 9000

    async def ask(self, size: int, delay_ms: int = 0) -> int:
        """One message."""
        self.writer.write(size.to_bytes(4, "big") + delay_ms.to_bytes(4, "big"))
        length = int.from_bytes(await self.reader.readexactly(4), "big")
        await self.reader.readexactly(length)
        return length


class Grpc:
    """gRPC, one channel; several calls may be under way on it."""

    port = 50051
    shared = True

    async def open(self, address: str) -> None:
        """Connect."""
        import grpc.aio

        # Each its own connection, though the address is the same.
        self.channel = grpc.aio.insecure_channel(
            f"{address}:{self.port}", options=[("grpc.use_local_subchannel_pool", 1), ("grpc.enable_http_proxy", 0)]
        )
        self.call: Any = self.channel.unary_unary("/lab.Lab/Get")
        await asyncio.wait_for(self.channel.channel_ready(), 20)

    async def ask(self, size: int, delay_ms: int = 0) -> int:
        """One call."""
        waiting: Awaitable[bytes] = self.call(size.to_bytes(4, "big") + delay_ms.to_bytes(4, "big"))
        return len(await waiting)

    def close(self) -> None:
        """Left to the end of the process."""


PROTOCOLS: dict[str, type[Any]] = {
    "http": Http,
    "chunked": Chunked,
    "https": Https,
    "memcached": Memcached,
    "redis": Redis,
    "mget": RedisMget,
    "redis pipeline": RedisPipeline,
    "binary": Binary,
    "grpc": Grpc,
}
