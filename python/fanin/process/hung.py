"""Ctrl-C where a library never comes back: under a limit of memory Polars may wait for ever for a thread that found none."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress

PATIENCE_S = 2.0
"""So long after Ctrl-C a thread may still stand at one place in Polars."""

LIBRARY = f"{os.sep}polars{os.sep}"
"""In the names of its files."""


def watch(end: Callable[[], None]) -> None:
    """Have `end` called, on a thread of its own, where Ctrl-C does not get through Polars."""
    # Where threads or handles are missing, Ctrl-C is what it is without this.
    with suppress(OSError, RuntimeError, ValueError):
        told, tell = os.pipe()
        os.set_blocking(tell, False)
        threading.Thread(target=_wait, args=(told, end), name="hung", daemon=True).start()
        signal.set_wakeup_fd(tell, warn_on_full_buffer=False)


def _wait(told: int, end: Callable[[], None]) -> None:
    while numbers := os.read(told, 64):
        if signal.SIGINT in numbers:
            before = _places()
            time.sleep(PATIENCE_S)
            if before & _places():
                end()


def _places() -> set[tuple[int, int, int]]:
    """Where threads stand that are in Polars: the thread, the call, and the place in it."""
    frames = sys._current_frames().items()
    return {(thread, id(at), at.f_lasti) for thread, at in frames if LIBRARY in at.f_code.co_filename}
