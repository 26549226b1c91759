"""Runs what a store does not have yet, and keeps what it ran."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from fanin import _native
from fanin.errors import OutputError
from fanin.process.progress import Progress
from fanin.runs.executor import Executor, Threads
from fanin.runs.store import Store, default_folder
from fanin.runs.tables import Frames

if TYPE_CHECKING:
    from fanin._native import Watch


class Keyed(Protocol):
    """A job with a name for what it gives."""

    def key(self) -> str:
        """Equal keys, equal results."""
        ...

    def run(self, watch: Watch | None = None) -> Frames:
        """Run on this thread."""
        ...


def usual_store(engine: str | None = None) -> Store | None:
    """The store that every command shares, for an engine (the loaded one unless named).

    None where it cannot be written: then everything works, only not faster the second time.
    """
    try:
        store = Store(default_folder(), engine=engine)
        store.make()
    except OutputError:
        return None
    return store


def run_kept(
    jobs: Sequence[Keyed],
    finished: Callable[[int, Frames | BaseException], None],
    *,
    store: Store | None,
    progress: Callable[[str, int], Progress],
    title: str,
    executor: Executor | None = None,
    durable: bool = True,
) -> tuple[int, bool]:
    """Do jobs, or find their results in a store.

    Parameters
    ----------
    jobs : sequence of Keyed
        What to do.
    finished : callable
        Told the number of each job and its frames or its error, on the calling thread.
    store : Store or None
        Where results are looked up and kept. One that is full costs the next time, not this one.
    progress, title : callable and str
        Of what is run; a display is made only when something is.
    executor : Executor, optional
        Where; on every core of this machine unless given.
    durable : bool
        Wait until the disk has each result; not worth it where a run takes less time than that (:meth:`Store.put`).

    Returns
    -------
    int
        How many were in the store.
    bool
        False when Ctrl-C ended it early: only those told to `finished` count.
    """
    if not jobs:
        return 0, True
    if store is None:
        with progress(title, len(jobs)) as bar:
            return 0, (executor or Threads()).map([job.run for job in jobs], bar, finished)
    works = [_Looked(job, store) for job in jobs]
    found = 0
    left: list[int] = []
    # A key takes as long as its job is large. Where threads run, each finds its own; what is found before the first that is missing shows no display.
    lazily = executor is None or isinstance(executor, Threads)
    for number, work in enumerate(works):
        if lazily and left:
            left.append(number)
            continue
        kept = work.look()
        if kept is None:
            left.append(number)
        else:
            found += 1
            finished(number, kept)
    if not left:
        return found, True
    # A key takes a plan; what that took is of no use to the threads that run.
    _native.give_back()

    def done(position: int, outcome: Frames | BaseException) -> None:
        nonlocal found
        number = left[position]
        work = works[number]
        if work.kept:
            found += 1
        elif isinstance(outcome, dict):
            with contextlib.suppress(OutputError):
                store.put(work.key, outcome, durable=durable)
        finished(number, outcome)

    with progress(title, len(left)) as bar:
        todo = [works[number].run if lazily else jobs[number].run for number in left]
        whole = (executor or Threads()).map(todo, bar, done)
    return found, whole


class _Looked:
    """A job that is looked up before it is run."""

    def __init__(self, job: Keyed, store: Store) -> None:
        self.job, self.store, self.kept = job, store, False

    @cached_property
    def key(self) -> str:
        """The name of what it gives."""
        return self.job.key()

    def look(self) -> Frames | None:
        """What the store has of it."""
        return self.store.get(self.key)

    def run(self, watch: Watch | None = None) -> Frames:
        """Find it, or run it on this thread."""
        kept = self.look() if "key" not in self.__dict__ else None
        self.kept = kept is not None
        return self.job.run(watch) if kept is None else kept
