"""The aggregator: asks the servers as its service says, and writes down what it did and when."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import gzip
import itertools
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Coroutine, Iterable
from pathlib import Path
from typing import Any

from . import patterns, rack
from .clients import PROTOCOLS, Http

KIB = 1024


class Aggregator:
    """One run of a service."""

    def __init__(self, service: patterns.Service, seed: int) -> None:
        self.service = service
        self.draw = random.Random(seed)
        self.kind = PROTOCOLS[service.protocol]
        self.free: dict[tuple[int, int], list[Any]] = {}
        self.rounds: list[tuple[float, float]] = []
        self.responses: list[tuple[int, int, float, float]] = []
        self.under_way: set[asyncio.Task[Any]] = set()
        self.going: dict[int, asyncio.Task[Any]] = {}
        self.started = 0

    async def run(self) -> None:
        """All users until so many requests were answered, and what goes on beside them."""
        service = self.service
        if service.pool != "new":
            for user in range(service.users if service.pool == "own" else 1):
                for server in range(service.servers):
                    self.give(user, server, await self.opened(server))
        # Logged is what is asked after this.
        await asyncio.sleep(0.3)
        beside = [asyncio.create_task(each) for each in self.beside()]
        await asyncio.gather(*(self.user(user) for user in range(service.users)))
        for task in beside:
            task.cancel()
        await asyncio.gather(*beside, *self.under_way, return_exceptions=True)

    async def user(self, user: int) -> None:
        """Asks, waits, pauses, again and again."""
        least, more = self.service.pause_ms
        shape = getattr(self, self.service.shape)
        await asyncio.sleep(self.draw.uniform(0, least + more) / 1e3)
        while self.started < self.service.requests:
            self.started += 1
            begin = time.time()
            await shape(user, self.service.k)
            self.rounds.append((begin, time.time()))
            await asyncio.sleep((least + self.draw.expovariate(1 / more)) / 1e3)

    # ---- connections

    async def opened(self, server: int) -> Any:
        """A new connection."""
        connection = self.kind()
        await connection.open(rack.address(server))
        return connection

    def place(self, user: int, server: int) -> tuple[int, int]:
        """Whose connections these are."""
        return (0 if self.service.pool == "shared" else user, server)

    def give(self, user: int, server: int, connection: Any) -> None:
        """It is free again."""
        self.free.setdefault(self.place(user, server), []).append(connection)

    @contextlib.asynccontextmanager
    async def taken(self, user: int, server: int) -> AsyncIterator[Any]:
        """A free connection, or a new one; closed where its call was given up."""
        free = self.free.setdefault(self.place(user, server), [])
        if getattr(self.kind, "shared", False):
            yield free[0]
            return
        connection = free.pop() if free and self.service.pool != "new" else await self.opened(server)
        try:
            yield connection
        except BaseException:
            connection.close()
            raise
        if self.service.pool == "new":
            connection.close()
        else:
            self.give(user, server, connection)

    def size(self) -> int:
        """Of an answer, in bytes."""
        return KIB * self.draw.randint(*self.service.sizes_kib)

    def delay(self) -> int:
        """For how long the server holds an answer back, in ms."""
        return self.draw.randint(60, 90) if self.draw.random() < self.service.slow else 0

    async def ask(self, user: int, server: int) -> None:
        """One call of a request."""
        await self.call(user, server, self.size(), self.delay())

    async def call(self, user: int, server: int, size: int, delay: int) -> None:
        """One call, for so many bytes."""
        begin = time.time()
        async with self.taken(user, server) as connection:
            count = await connection.ask(size, delay)
        self.responses.append((server, count, begin, time.time()))

    async def all(self, calls: Iterable[Coroutine[Any, Any, None]]) -> None:
        """Wait for all calls."""
        await asyncio.gather(*calls)

    # ---- shapes of requests

    async def fan(self, user: int, k: int) -> None:
        """All servers at once."""
        await self.all(self.ask(user, server) for server in range(self.service.servers))

    async def some(self, user: int, k: int) -> None:
        """Some of the servers."""
        await self.all(self.ask(user, server) for server in self.draw.sample(range(self.service.servers), k))

    async def token(self, user: int, k: int) -> None:
        """The first server in k of a hundred requests, then all others at once."""
        if self.draw.random() < k / 100:
            await self.ask(user, 0)
        await self.all(self.ask(user, server) for server in range(1, self.service.servers))

    async def stages(self, user: int, k: int) -> None:
        """So many servers at a time, each stage when the one before has answered."""
        for first in range(0, self.service.servers, k):
            await self.all(self.ask(user, s) for s in range(first, min(first + k, self.service.servers)))

    async def again(self, user: int, k: int) -> None:
        """All servers, then some of them again."""
        await self.fan(user, k)
        await self.all(self.ask(user, server) for server in self.draw.sample(range(self.service.servers), k))

    async def semaphore(self, user: int, k: int) -> None:
        """All servers, so many at a time."""
        width = asyncio.Semaphore(k)

        async def one(server: int) -> None:
            async with width:
                await self.ask(user, server)

        await self.all(one(server) for server in range(self.service.servers))

    async def retried(self, user: int, k: int) -> None:
        """A call that takes longer than k ms is given up with its connection and tried anew."""

        async def one(server: int) -> None:
            while True:
                try:
                    return await asyncio.wait_for(self.ask(user, server), k / 1e3)
                except TimeoutError:
                    continue

        await self.all(one(server) for server in range(self.service.servers))

    async def hedged(self, user: int, k: int) -> None:
        """Where an answer takes longer than k ms, the next server is asked too."""

        async def one(server: int) -> None:
            calls = {self.task(self.ask(user, server))}
            done, _ = await asyncio.wait(calls, timeout=k / 1e3)
            if not done:
                calls.add(self.task(self.ask(user, (server + 1) % self.service.servers)))
                await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)

        await self.all(one(server) for server in range(self.service.servers))

    async def quorum(self, user: int, k: int) -> None:
        """All servers at once; k answers will do."""
        calls = [self.task(self.ask(user, server)) for server in range(self.service.servers)]
        enough = asyncio.Event()
        left = [k]

        def came(_: object) -> None:
            left[0] -= 1
            if left[0] == 0:
                enough.set()

        for call in calls:
            call.add_done_callback(came)
        await enough.wait()

    async def pipelined(self, user: int, k: int) -> None:
        """Several requests written at once to each server."""

        async def one(server: int) -> None:
            async with self.taken(user, server) as connection:
                begin = time.time()
                for count in await connection.pipeline([self.size() for _ in range(k)]):
                    self.responses.append((server, count, begin, time.time()))

        await self.all(one(server) for server in range(self.service.servers))

    async def calls(self, user: int, k: int) -> None:
        """Several calls at once to each server."""
        await self.all(self.ask(user, server) for server in range(self.service.servers) for _ in range(k))

    async def row(self, user: int, k: int) -> None:
        """All servers at once, each k times, one call after another."""

        async def one(server: int) -> None:
            for _ in range(k):
                await self.ask(user, server)

        await self.all(one(server) for server in range(self.service.servers))

    async def joined(self, user: int, k: int) -> None:
        """All servers at once; a call that is under way for another user already is waited for instead."""

        async def one(server: int) -> None:
            call = self.going.get(server)
            if call is None or call.done():
                call = self.going[server] = self.task(self.ask(user, server))
            await asyncio.wait({call})

        await self.all(one(server) for server in range(self.service.servers))

    def task(self, call: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """A call that goes on when its request does not wait for it any more."""
        task = asyncio.create_task(call)
        self.under_way.add(task)
        task.add_done_callback(self.under_way.discard)
        return task

    # ---- what goes on beside

    def beside(self) -> list[Coroutine[Any, Any, None]]:
        """Of this service."""
        servers = range(self.service.servers)
        match self.service.beside:
            case "long poll":
                return [self.apart(server, 1, (0, 0), (300, 900)) for server in servers[:2]]
            case "polls":
                return [self.apart(server, 1, (0, 0), (0, 0)) for server in servers[:2]]
            case "health checks":
                return [self.apart(server, 1, (200, 200), (0, 0)) for server in servers]
            case "new health checks":
                return [self.apart(server, 1, (200, 200), (0, 0), new=True) for server in servers]
            case "pooled health checks":
                return [self.checked(0.2)]
            case "transfer":
                return [self.apart(servers[-1], 64, (0, 2), (0, 0))]
        return []

    async def apart(
        self, server: int, kib: int, every_ms: tuple[int, int], held_ms: tuple[int, int], *, new: bool = False
    ) -> None:
        """Ask one server again and again, with a pause between, on a connection of its own or on new ones."""
        connection = None
        await asyncio.sleep(self.draw.uniform(0, 0.2))
        while True:
            if connection is None:
                connection = Http()
                await connection.open(rack.address(server))
            begin = time.time()
            count = await connection.ask(kib * KIB, self.draw.randint(*held_ms))
            self.responses.append((server, count, begin, time.time()))
            if new:
                connection.close()
                connection = None
            await asyncio.sleep(self.draw.uniform(*every_ms) / 1e3)

    async def checked(self, every_s: float) -> None:
        """Ask all servers, one after another, each `every_s`, on connections that requests take too."""
        start = time.time()
        for n in itertools.count(1):
            await asyncio.sleep(max(0.0, start + n * every_s - time.time()))
            for server in range(self.service.servers):
                await self.call(0, server, KIB, 0)


def main(name: str, seed: str, requests: str, log: str) -> None:
    """Run a service and write its log: `rounds` are [begin, end], `responses` [server, bytes, begin, end], in Unix seconds."""
    from dataclasses import replace

    with contextlib.suppress(OSError):
        # What the process waits for a processor is in its log and not on the wire.
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    gc.disable()
    aggregator = Aggregator(replace(patterns.named(name), requests=int(requests)), int(seed))
    asyncio.run(aggregator.run())
    told = {"rounds": sorted(aggregator.rounds), "responses": sorted(aggregator.responses, key=lambda each: each[2])}
    Path(log).write_bytes(gzip.compress(json.dumps(told).encode(), mtime=0))


def ask(service: patterns.Service, seed: int, requests: int, log: Path) -> None:
    """Run this module at the aggregator of a rack that stands; what it did is in the log."""
    line = [sys.executable, "-m", "tests.services.aggregator", service.name, str(seed), str(requests), str(log)]
    inside = ["ip", "netns", "exec", rack.CLIENT]
    done = subprocess.run([*inside, *line], capture_output=True, text=True, timeout=240, check=False)
    if done.returncode:
        raise RuntimeError(f"{service.name}: {done.stderr.strip()}")


if __name__ == "__main__":
    main(*sys.argv[1:])
