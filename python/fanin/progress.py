"""Progress of native work, on every core, and how it is stopped.

A display is made by a callable ``(title, total) -> Progress``; :func:`silent` makes the one that shows nothing. The command's is in
:mod:`fanin.display`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self, TypeVar

if TYPE_CHECKING:
    from fanin._native import Watch

T = TypeVar("T")

TICK_S = 0.1
"""How often the display is told how far the work is."""


class Progress(Protocol):
    """Shows how far work is; `done` counts in units of the total it was made with."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...

    def update(self, done: float) -> None:
        """Show that so much is done."""


class Silent:
    """Shows nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        return None

    def update(self, done: float) -> None:
        """Show nothing."""


def silent(title: str, total: int) -> Progress:
    """Make a display that shows nothing."""
    return Silent()


def watched(work: Callable[[Watch], T], bar: Progress) -> T:
    """Do one piece of native work on a thread, so that Ctrl-C stops it and `bar` moves."""
    from fanin._native import Watch

    watch = Watch()
    with ThreadPoolExecutor(max_workers=1) as pool:
        future = pool.submit(work, watch)
        try:
            while not wait([future], timeout=TICK_S).done:
                bar.update(watch.fraction)
        except BaseException:
            watch.stop()
            raise
        return future.result()


def on_every_core(
    jobs: Sequence[Callable[[Watch], T]], bar: Progress, finished: Callable[[int, T | Exception], None]
) -> bool:
    """Do pieces of native work, as many at once as there are cores.

    Parameters
    ----------
    jobs : sequence of callable
        Each gets its own watch. They are begun in this order; results do not depend on how they overlap.
    bar : Progress
        Made with the number of jobs as its total.
    finished : callable
        Told the number of each job and what it returned or raised, on the calling thread, in order of completion.

    Returns
    -------
    bool
        False when Ctrl-C ended it early: jobs that were under way are stopped, and only those told to `finished` count.
    """
    from fanin._native import Watch

    watches = [Watch() for _ in jobs]
    count = 0
    with ThreadPoolExecutor(max_workers=cores()) as pool:
        pending: dict[Future[T], int] = {
            pool.submit(job, w): i for i, (job, w) in enumerate(zip(jobs, watches, strict=True))
        }
        try:
            while pending:
                done, _ = wait(pending, timeout=TICK_S, return_when=FIRST_COMPLETED)
                for future in done:
                    number = pending.pop(future)
                    error = future.exception()
                    if error is not None and not isinstance(error, Exception):
                        raise error
                    count += 1
                    finished(number, future.result() if error is None else error)
                bar.update(count + sum(watches[number].fraction for number in pending.values()))
        except KeyboardInterrupt:
            return False
        finally:
            for future, number in pending.items():
                future.cancel()
                watches[number].stop()
    return True


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
