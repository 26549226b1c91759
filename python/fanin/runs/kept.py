"""Runs what a store does not have yet, and keeps what it ran."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from fanin.errors import OutputError
from fanin.progress import Progress
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
    keys = [job.key() if store is not None else "" for job in jobs]
    left = []
    for number, key in enumerate(keys):
        kept = store.get(key) if store is not None else None
        if kept is None:
            left.append(number)
        else:
            finished(number, kept)
    found = len(jobs) - len(left)
    if not left:
        return found, True

    def done(position: int, outcome: Frames | BaseException) -> None:
        number = left[position]
        if store is not None and isinstance(outcome, dict):
            with contextlib.suppress(OutputError):
                store.put(keys[number], outcome, durable=durable)
        finished(number, outcome)

    with progress(title, len(left)) as bar:
        return found, (executor or Threads()).map([jobs[number].run for number in left], bar, done)
