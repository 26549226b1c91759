"""Jobs on the workers of a Dask scheduler (the optional dependencies ``fanin[cluster]``).

Results come back to this process, which alone writes the store. So a worker that dies, a scheduler that is restarted or a network that is
cut costs time: what was not received is submitted again, and what arrives twice is the same.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from fanin.errors import EngineError, FaninError, ScenarioError
from fanin.process.progress import Interrupt, Progress
from fanin.runs.job import SHIPPED, engine_digest

if TYPE_CHECKING:
    from fanin._native import Watch

T = TypeVar("T")

NEEDS = "a cluster needs the optional dependencies: pip install 'fanin[cluster]', or uv pip install distributed"

POLL_S = 0.02
"""How often the states of the submitted jobs are looked at; they are pushed by the scheduler."""

PER_THREAD = 4
"""Jobs submitted per thread of the cluster: enough that no worker waits for this process."""

LOST_WORKERS = 5
"""A job whose workers died so often is given up: it is likely what kills them, by its memory."""


class ClusterError(FaninError, RuntimeError):
    """A cluster cannot be used."""


class Dask:
    """Runs work on the workers of a Dask scheduler.

    Parameters
    ----------
    address : str
        ``tcp://HOST:PORT``, or the name of a scheduler file.
    patience_s : float
        How long to wait for a scheduler that does not answer, and for a first worker.

    Raises
    ------
    ClusterError
        When the scheduler does not answer, or a worker runs another engine.
    """

    def __init__(self, address: str, *, patience_s: float = 60.0) -> None:
        self._address = address
        self._patience_s = patience_s
        self._client: Any = None
        self._loop: Any = None
        self._open = contextlib.ExitStack()
        self._scattered: dict[str, Any] = {}

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as until_open:
            self._loop = until_open.enter_context(_event_loop())
            self._connect()
            self._open = until_open.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        with self._open:
            self._close()

    def map(
        self,
        works: Sequence[Callable[[Watch], T]],
        bar: Progress,
        finished: Callable[[int, T | BaseException], None],
        *,
        finish_running: bool = False,
    ) -> bool:
        """See :meth:`fanin.runs.Executor.map`; each work is a method of plain data."""
        waiting = deque(range(len(works)))
        running: dict[Any, int] = {}
        lost: dict[int, int] = {}
        count = 0
        with Interrupt() as interrupt:
            try:
                while waiting or running:
                    if interrupt.asked:
                        waiting.clear()
                        if not finish_running:
                            break
                    try:
                        self._submit(works, waiting, running)
                        ended = [future for future in running if future.status != "pending"]
                        received = self._received([f for f in ended if f.status in ("finished", "error")])
                    except (OSError, TimeoutError):
                        ended, received = list(running), {}
                    for future in ended:
                        number = running.pop(future)
                        outcome = received.get(future, _NOTHING)
                        if type(outcome).__name__ == "KilledWorker" or outcome is _NOTHING:
                            lost[number] = lost.get(number, 0) + (outcome is not _NOTHING)
                            if lost[number] < LOST_WORKERS:
                                waiting.appendleft(number)
                                continue
                            outcome = EngineError(
                                f"the worker died under this run {LOST_WORKERS} times; it may need more memory than a worker has"
                            )
                        count += 1
                        if isinstance(outcome, ClusterError):
                            raise outcome
                        finished(number, outcome)
                    bar.update(count)
                    if self._client is None or self._client.status != "running":
                        waiting.extendleft(running.values())
                        running.clear()
                        self._reconnect(interrupt)
                    elif not ended:
                        time.sleep(POLL_S)
            finally:
                for future in running:
                    future.cancel()
        return count == len(works) and not interrupt.asked

    def _submit(self, works: Sequence[Callable[[Watch], T]], waiting: deque[int], running: dict[Any, int]) -> None:
        room = PER_THREAD * max(1, sum(self._client.nthreads().values())) if waiting else 0
        while waiting and len(running) < room:
            number = waiting.popleft()
            try:
                work, blobs = self._portable(works[number])
                key = f"fanin-{uuid.uuid4().hex}"
                future = self._client.submit(
                    call, work, engine_digest(), *blobs, key=key, pure=False, priority=-number, retries=0
                )
            except BaseException:
                waiting.appendleft(number)
                raise
            running[future] = number

    def _portable(self, work: Any) -> tuple[Any, list[Any]]:
        """A work with its large files taken out: each is sent to the cluster once."""
        owner = getattr(work, "__self__", None)
        if owner is None or not hasattr(owner, "shipped"):
            return work, []
        blobs: dict[str, bytes] = {}
        travelling = owner.shipped(blobs)
        for digest, content in blobs.items():
            if digest not in self._scattered:
                self._scattered[digest] = self._client.scatter((digest, content), broadcast=True, hash=False)
        return getattr(travelling, work.__name__), [self._scattered[digest] for digest in blobs]

    def _received(self, futures: list[Any]) -> dict[Any, Any]:
        """Results and errors of futures that have ended; without those that were lost on the way."""
        good = [future for future in futures if future.status == "finished"]
        received = dict(zip(good, self._client.gather(good, errors="skip"), strict=False)) if good else {}
        if len(received) < len(good) or any(future.status != "finished" for future in good):
            # `skip` leaves holes: asked one by one.
            received = {}
            for future in good:
                try:
                    received[future] = future.result(timeout=self._patience_s)
                except Exception:
                    continue
        for future in futures:
            if future.status == "error":
                error = future.exception(timeout=self._patience_s)
                if type(error).__name__ not in ("CancelledError", "FutureCancelledError"):
                    received[future] = error
        return received

    def _connect(self) -> None:
        try:
            from distributed import Client
        except ImportError:
            raise ClusterError(NEEDS) from None
        where = {"scheduler_file": self._address} if self._address.endswith(".json") else {"address": self._address}
        try:
            self._client = Client(**where, loop=self._loop, timeout=min(self._patience_s, 10.0), set_as_default=False)
            self._client.wait_for_workers(1, timeout=self._patience_s)
        except (OSError, TimeoutError, ValueError) as error:
            what = "no worker" if self._client is not None else "no scheduler"
            self._close()
            raise ClusterError(
                f"{self._address}: {what} answers; start one with `dask scheduler` and `dask worker {self._address}`, or run with --on local"
            ) from error
        mine = engine_digest()
        for worker, digest in self._client.run(engine_digest).items():
            if digest != mine:
                self._close()
                raise ClusterError(
                    f"{worker}: the worker has another engine ({digest}, here {mine}); install the same fanin there and start it again"
                )

    def _reconnect(self, interrupt: Interrupt) -> None:
        """Wait for a scheduler that went away."""
        self._close()
        until = time.monotonic() + 10 * self._patience_s
        while True:
            try:
                self._connect()
                return
            except ClusterError:
                if interrupt.asked or time.monotonic() > until:
                    raise

    def _close(self) -> None:
        self._scattered.clear()
        if self._client is not None:
            client, self._client = self._client, None
            try:
                client.close(timeout=2)
            except (OSError, TimeoutError, RuntimeError):
                return  # what has gone need not be closed


_NOTHING = object()


@contextlib.contextmanager
def _event_loop() -> Iterator[Any]:
    """A loop for clients that runs in a thread: one that a client makes itself goes on, with its sockets, when no scheduler answers."""
    try:
        from tornado.ioloop import IOLoop
    except ImportError:
        raise ClusterError(NEEDS) from None
    started: Future[tuple[Any, asyncio.Event]] = Future()

    async def until_ended() -> None:
        ended = asyncio.Event()
        started.set_result((IOLoop.current(), ended))
        await ended.wait()

    thread = threading.Thread(target=lambda: asyncio.run(until_ended()), name="fanin cluster", daemon=True)
    thread.start()
    loop, ended = started.result()
    try:
        yield loop
    finally:
        loop.add_callback(ended.set)
        thread.join(timeout=10)


def call(work: Callable[[Watch], T], engine: str, *blobs: tuple[str, bytes]) -> T:
    """Do a work on a worker."""
    from fanin._native import Watch

    if engine_digest() != engine:
        # A worker that came after the others were checked.
        raise ClusterError(
            f"a worker has another engine ({engine_digest()}, not {engine}); install the same fanin there and start it again"
        )
    SHIPPED.update(blobs)
    return work(Watch())


def address_of(on: str) -> str:
    """What ``--on`` names.

    Examples
    --------
    >>> address_of("dask://head:8786"), address_of("dask:scheduler.json")
    ('tcp://head:8786', 'scheduler.json')
    """
    if on.startswith("dask://") and len(on) > len("dask://"):
        return "tcp://" + on.removeprefix("dask://")
    if on.startswith("dask:") and on.endswith(".json"):
        return on.removeprefix("dask:")
    raise ScenarioError(
        f"command line `--on {on}`: it must be `local`, dask://HOST:PORT, or dask:FILE.json of a scheduler file"
    )
