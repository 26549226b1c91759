"""Ctrl-C and other requests to end are kept while a module loads: there an exception comes out as another one, or is shown and lost."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Mapping
from types import FrameType

LOADER = "<frozen importlib"
"""How the names of the files begin whose functions load modules."""

AGAIN_S = 0.01
PATIENCE = 100
"""So many times requests are kept: a module may never be loaded, such as an algorithm of the user's that does not end."""


def listen(handlers: Mapping[int, Callable[[int, FrameType | None], object]]) -> None:
    """Answer signals by handlers that raise, but not while a module loads; takes the timer of real time and SIGALRM for that.

    Parameters
    ----------
    handlers : mapping
        What answers each signal, by its number; of a KeyboardInterrupt that Python loses, SIGINT comes again.

    Examples
    --------
    >>> import signal, sys
    >>> hook = sys.unraisablehook
    >>> def terminated(number, where):
    ...     raise SystemExit(128 + number)
    >>> listen({signal.SIGTERM: terminated})
    >>> try:
    ...     signal.raise_signal(signal.SIGTERM)
    ... except SystemExit as ended:
    ...     print(ended.code)
    143
    >>> for number in (signal.SIGTERM, signal.SIGALRM):
    ...     _ = signal.signal(number, signal.SIG_DFL)
    >>> sys.unraisablehook = hook
    """
    kept: list[int] = []
    left = PATIENCE

    def keep(number: int) -> None:
        nonlocal left
        left -= 1
        kept[:] = [number]
        signal.setitimer(signal.ITIMER_REAL, AGAIN_S)

    def asked(number: int, where: FrameType | None) -> None:
        if left and _loads(where):
            keep(number)
        else:
            handlers[number](number, where)

    def lost(what: sys.UnraisableHookArgs) -> None:
        # Raised by a handler where Python takes an object away: no caller hears of it.
        if left and isinstance(what.exc_value, KeyboardInterrupt):
            keep(signal.SIGINT)
        else:
            sys.__unraisablehook__(what)

    for number in handlers:
        signal.signal(number, asked)
    # To the handler of that time: work on threads has one of its own.
    signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(kept[0]))
    sys.unraisablehook = lost


def _loads(where: FrameType | None) -> bool:
    """A module is loaded at this place, or by one of its callers."""
    while where is not None:
        if where.f_code.co_filename.startswith(LOADER):
            return True
        where = where.f_back
    return False
