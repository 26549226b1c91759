"""Progress of native work, on every core, and how it is stopped.

A display is made by a callable ``(title, total) -> Progress``; :func:`silent` makes the one that shows nothing. The command's is in
:mod:`fanin.terminal.display`.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self

if TYPE_CHECKING:
    from fanin._native import Watch

TICK_S = 0.1
"""How often the display is told how far the work is."""


WATCH: ContextVar[Watch | None] = ContextVar("watch", default=None)
"""Of the work that this thread does, for what waits deep inside it."""


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


class Interrupt:
    """Ctrl-C as a flag instead of an exception, so that it cannot strike between two steps that belong together.

    A second Ctrl-C is an exception again. On other threads than the main one, where Python delivers no signals, it never comes.
    """

    def __init__(self) -> None:
        self.asked = False
        self._before: Any = None

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _handle(self, number: int, where: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True


MAY_BE_LEFT: set[int] = set()
"""Threads whose work touches nothing outside this process: an interruption need not wait until they stop."""


@contextmanager
def may_be_left() -> Iterator[None]:
    """Let an interruption leave what this thread does where it does not stop: it reads, or computes."""
    thread = threading.get_ident()
    MAY_BE_LEFT.add(thread)
    try:
        yield
    finally:
        MAY_BE_LEFT.discard(thread)


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
