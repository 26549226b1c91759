"""Where jobs run. An executor knows nothing of what it runs."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from fanin.errors import MemoryLimitError
from fanin.process.progress import MAY_BE_LEFT, TICK_S, WATCH, Interrupt, Progress, cores

if TYPE_CHECKING:
    from fanin._native import Watch

T = TypeVar("T")

STOP_S = 0.3
"""How long work may take to stop when it is asked to, and then when it is interrupted."""

STUCK = threading.Event()
"""Threads of this process did not stop: it must not wait for them when it ends."""


class Executor(Protocol):
    """Runs pieces of work, several at once."""

    def map(
        self,
        works: Sequence[Callable[[Watch], T]],
        bar: Progress,
        finished: Callable[[int, T | BaseException], None],
        *,
        finish_running: bool = False,
    ) -> bool:
        """Do all of them.

        Parameters
        ----------
        works : sequence of callable
            Each gets a watch of its own. They are begun in this order; results do not depend on how they overlap. An executor on other
            machines pickles them.
        bar : Progress
            Made with the number of works as its total.
        finished : callable
            Told the number of each work and what it returned or raised, on the calling thread, in order of completion.
        finish_running : bool
            On Ctrl-C, wait for what is under way instead of stopping it; a second Ctrl-C stops it.

        Returns
        -------
        bool
            False when Ctrl-C was pressed meanwhile, be it during the last of them: only those told to `finished` count.
        """
        ...


class Threads:
    """Runs work on threads of this process; the engine lets other threads go on.

    Parameters
    ----------
    workers : int, optional
        How many at once; as many as there are cores unless given.
    """

    def __init__(self, workers: int | None = None) -> None:
        self._workers = workers or cores()

    def map(
        self,
        works: Sequence[Callable[[Watch], T]],
        bar: Progress,
        finished: Callable[[int, T | BaseException], None],
        *,
        finish_running: bool = False,
    ) -> bool:
        """See :meth:`Executor.map`."""
        from fanin._native import Watch

        waiting = iter(range(len(works)))
        under_way: dict[Future[T], tuple[int, Watch]] = {}
        count = 0
        threads: dict[int, int] = {}

        def begun(number: int, watch: Watch) -> T:
            threads[number] = threading.get_ident()
            WATCH.set(watch)
            return works[number](watch)

        pool = ThreadPoolExecutor(min(self._workers, max(1, len(works))))
        with Interrupt() as interrupt:
            try:
                while True:
                    # Some wait in the pool, so that no thread is idle while `finished` runs.
                    while not interrupt.asked and len(under_way) < 2 * self._workers:
                        number = next(waiting, None)
                        if number is None:
                            break
                        watch = Watch()
                        under_way[pool.submit(begun, number, watch)] = (number, watch)
                    if interrupt.asked:
                        if not finish_running:
                            break
                        for future in [f for f in under_way if f.cancel()]:
                            del under_way[future]
                    if not under_way:
                        break
                    ended, _ = wait(under_way, TICK_S, FIRST_COMPLETED)
                    for future in sorted(ended, key=lambda f: under_way[f][0]):
                        number, _ = under_way.pop(future)
                        count += 1
                        finished(number, _outcome(future))
                    bar.update(count + sum(watch.fraction for _, watch in under_way.values()))
            finally:
                for future, (_, watch) in under_way.items():
                    future.cancel()
                    watch.stop()
                _end(pool, {future: threads.get(number) for future, (number, _) in under_way.items()})
        return count == len(works) and not interrupt.asked


def _end(pool: ThreadPoolExecutor, under_way: Mapping[Future[Any], int | None]) -> None:
    """Wait until the pool's threads have stopped. Those that may be left are interrupted where they do not look at their watch, and then left.

    A callback in Python may loop for ever, and a file may be a pipe that nobody writes to: Ctrl-C must not wait for either.
    """
    pool.shutdown(wait=False)
    left = wait(under_way, STOP_S).not_done
    for future in left:
        thread = under_way[future]
        if thread in MAY_BE_LEFT:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(KeyboardInterrupt))
    left = wait(left, STOP_S).not_done
    if any(under_way[future] in MAY_BE_LEFT for future in left):
        STUCK.set()
    wait([future for future in left if under_way[future] not in MAY_BE_LEFT])


TOGETHER = 1 << 28
"""Bytes that pieces of work take together if they can: a machine has other work, and captures of 100,000 connections are larger than their replays."""


def at_once(each: int) -> int:
    """How many pieces of work of `each` bytes go on at once: one per core, or as many as there is memory for within :data:`TOGETHER`.

    Examples
    --------
    >>> at_once(0) >= 1, at_once(1 << 60)
    (True, 1)
    """
    if each <= 0:
        return cores()
    left = memory_left()
    return max(1, min(cores(), (TOGETHER if left is None else min(left, TOGETHER)) // each))


def memory_left() -> int | None:
    """Bytes that this process may still take: what the machine has, or its limit (``ulimit -v``); None where the system does not tell."""
    try:
        with Path("/proc/meminfo").open(encoding="ascii") as file:
            left = next(int(line.split()[1]) * 1024 for line in file if line.startswith("MemAvailable:"))
        import resource

        left = min(left, _group_left(left))
        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        if limit != resource.RLIM_INFINITY:
            taken = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
            left = min(left, max(0, limit - taken))
    except (ImportError, OSError, StopIteration, ValueError):
        return None
    return left


def _group_left(most: int) -> int:
    """What a container's limit leaves (cgroups, version 2); `most` where there is none."""
    group = Path("/sys/fs/cgroup")
    try:
        limit = (group / "memory.max").read_text(encoding="ascii").strip()
        used = int((group / "memory.current").read_text(encoding="ascii"))
        # The cache of files goes when something else needs its place.
        cache = next(
            int(line.split()[1])
            for line in (group / "memory.stat").read_text(encoding="ascii").splitlines()
            if line.startswith("file ")
        )
    except (OSError, ValueError, StopIteration):
        return most
    return most if limit == "max" else max(0, int(limit) - used + cache)


def need_memory(wanted: int, what: str) -> None:
    """Refuse what this machine has no memory for, before it begins.

    Raises
    ------
    fanin.errors.MemoryLimitError
        With how much is missing.

    Examples
    --------
    >>> need_memory(1000, "a run")
    >>> need_memory(1 << 60, "a replay of 1000 connections")
    Traceback (most recent call last):
    ...
    fanin.errors.MemoryLimitError: a replay of 1000 connections needs about 1152921504.6 GB of memory, and ... GB are left; take a ...
    """
    left = memory_left()
    if left is not None and wanted > left:
        raise MemoryLimitError(
            f"{what} needs about {wanted / 1e9:.1f} GB of memory, and {left / 1e9:.1f} GB are left; take a shorter capture, or a machine with more"
        )


def _outcome(future: Future[Any]) -> Any:
    """What it returned or raised."""
    error = future.exception()
    return future.result() if error is None else error


def watched(work: Callable[[Watch], T], bar: Progress) -> T:
    """Do one piece of native work on a thread, so that Ctrl-C stops it and `bar` moves."""
    results: list[T] = []
    if not Threads().map([work], bar, lambda _, outcome: results.append(_value(outcome))):
        raise KeyboardInterrupt
    return results[0]


def _value(outcome: T | BaseException) -> T:
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome
