"""Limits of memory, files, threads: what native libraries say as they die of one is not for the user, who gets one sentence."""

from __future__ import annotations

import _thread
import errno
import io
import os
import re
import resource
import sys
from contextlib import suppress
from types import TracebackType

from fanin.errors import FaninError

_STDERR = 2

FEW_FILES = 256
"""Open files below which Polars and its like may find none left."""

THREADS = 16
"""So many are started besides one on each processor by fanin, by Polars and by what draws pictures: some of these end the process for want of one."""


class Apart:
    """Where native code writes its last words under a limit of memory, beside standard error."""

    def __init__(self) -> None:
        self.notes: int | None = None

    def begin(self) -> None:
        """Give native code a file of its own for standard error; without a limit, change nothing."""
        if not libraries_may_die() or not isinstance(sys.stderr, io.TextIOWrapper):
            return
        if memory_limited():
            _one_arena()
        # Polars' would need memory for a trace of where memory ran out, and then wait for ever for the lock that it holds.
        os.environ["RUST_BACKTRACE"] = "0"
        try:
            self.notes = os.memfd_create("fanin")
            said_on = os.dup(_STDERR)
            os.dup2(self.notes, _STDERR)
        except OSError:
            return
        # Native code that meets an exception shows it before it panics over it; the command says every one as a sentence under a limit.
        sys.excepthook = _say_nothing
        sys.stderr = open(said_on, "w", encoding=sys.stderr.encoding, errors="backslashreplace", buffering=1)  # noqa: SIM115, PTH123

    def forget(self) -> None:
        """Keep what native code said to itself: the user was told that memory ran out."""
        self.notes = None

    def end(self) -> None:
        """Pass on what native code said."""
        if self.notes is None:
            return
        at = 0
        # In pieces: under the limit there may be no memory for all of it, and what the command did is done.
        with suppress(MemoryError):
            while piece := os.pread(self.notes, 4096, at):
                at += os.write(sys.stderr.fileno(), piece)


def _one_arena() -> None:
    """Have all threads allocate in one place: by itself glibc reserves 64 MB of addresses for each, and Polars waits for ever where one finds none."""
    import ctypes

    m_arena_max = -8  # malloc.h
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(m_arena_max, 1)


def _say_nothing(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """In place of a traceback."""


def libraries_may_die() -> bool:
    """Whether a limit is so low that libraries end themselves by it: of memory, or of open files."""
    return memory_limited() or files_limited()


def files_limited() -> bool:
    """Whether this process may open so few files that libraries find none left."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0] < FEW_FILES


def threads_wanted() -> int | None:
    """How many threads a command may need where this user, or this container, may not start so many; None where it may.

    A limit of memory limits threads as well, and is told when it is met; a thread that ends may need a file.
    """
    if libraries_may_die():
        return None
    wanted, over = THREADS + 3 * (os.cpu_count() or 1), _thread.allocate_lock()

    def wait() -> None:
        with over:
            pass

    with over:
        try:
            for _ in range(wanted):
                # Of the class, whose threads wait for each other at the start, as many take ten times as long.
                _thread.start_new_thread(wait, ())
        except RuntimeError:
            return wanted
    return None


def memory_limited() -> bool:
    """Whether this process may have only so much memory."""
    return resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY


def of_memory(error: BaseException) -> bool:
    """Whether an error is due to missing memory. Under a limit each that nobody expected is: libraries name it in many ways."""
    if isinstance(error, MemoryError) or "can't start new thread" in str(error):
        return True
    return memory_limited() and not isinstance(error, KeyboardInterrupt | SystemExit | GeneratorExit)


def refused(error: BaseException) -> str | None:
    """What the system refused a library; None where it was something else. With few files, each unexpected error is of them."""
    said = str(error).lower()
    # As the C library says it, whoever tells it on. Code that is confined has a limit of its own, and is named.
    if files_limited() or not isinstance(error, FaninError):
        for number in (errno.EMFILE, errno.ENFILE):
            if os.strerror(number).lower() in said:
                return os.strerror(number).lower()
    if isinstance(error, FaninError):
        return None
    found = re.search(r'Os \{.*message: "([^"]*)"', str(error)) if type(error).__name__ == "PanicException" else None
    if found is not None:
        return found[1].lower()
    exits = isinstance(error, KeyboardInterrupt | SystemExit | GeneratorExit)
    return "too many open files" if files_limited() and not exits else None


def said_on() -> int:
    """The file descriptor of what the user reads as standard error."""
    try:
        return sys.stderr.fileno()
    except (OSError, ValueError, AttributeError):
        return _STDERR
