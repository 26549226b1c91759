"""Congestion control from a user's own C or Python file: looked at and run in worker processes without rights.

A scenario may name code (``cc.name = "./mine.c"`` or ``"py:module.Class"``), so whoever runs a scenario runs what its author wrote. This process
never loads it. A worker compiles it, gives its rights away (:func:`fanin._native.confine`), and only then loads it; the simulation runs there,
and its frames come back as Arrow. A run's worker is forked from one that is started once, so each begins with fresh code and its end is its own.

Classes that a program registers (:func:`fanin.register`) are that program's own code and run in it.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from fanin.errors import AlgorithmError

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl

    from fanin._native import Plan, Watch

NO_CODE = "FANIN_NO_CODE"
"""Name of the environment variable that refuses code where it is set to anything but nothing."""

_unread: ContextVar[bool] = ContextVar("unread", default=False)

_UNKNOWN: dict[str, Any] = {
    "title": "code that was not looked at",
    "source": "",
    "version": "",
    "linux_name": None,
    "needs_ecn": False,
    "needs": [],
    "recovery": None,
    "params": [],
    "known": False,
}


def refuse() -> None:
    """From now on, a scenario that names code is an error, in this process and those that it starts."""
    os.environ[NO_CODE] = "1"


@contextmanager
def unread() -> Iterator[None]:
    """Within it, code is neither compiled nor loaded: plans can be made and looked at, and nothing of them runs.

    Examples
    --------
    >>> with unread():
    ...     describe("./no-such-file.c")["known"]
    False
    """
    token = _unread.set(True)
    try:
        yield
    finally:
        _unread.reset(token)


def describe(name: str) -> dict[str, Any]:
    """What code says of itself; the engine asks when a plan names it.

    Parameters
    ----------
    name : str
        A path that ends in ``.c``, the name of a file that a kernel was built with, or ``py:module.Class``.

    Returns
    -------
    dict
        ``title``, ``source``, ``version``, ``linux_name``, ``needs_ecn``, ``needs``, ``recovery``, ``params``, and ``known``: it was looked at.

    Raises
    ------
    fanin.AlgorithmError
        When it is no algorithm, or code is refused (``--no-code``, ``FANIN_NO_CODE``).
    """
    from fanin.confined import inside

    if _unread.get():
        return _UNKNOWN
    if (told := inside.told(name)) is not None:
        return told
    if os.environ.get(NO_CODE):
        raise AlgorithmError("it is code, and --no-code (or FANIN_NO_CODE) refuses scenarios that name code")
    from fanin.confined.client import describe as ask

    return ask(name)


class Apart(Exception):  # noqa: N818 - no error: the way from the engine to whoever has the job
    """A plan uses code, so its job is to be done by a worker.

    Attributes
    ----------
    names : list of str
        The code.
    """

    def __init__(self, names: list[str]) -> None:
        super().__init__(", ".join(names))
        self.names = names


def admitted(plan: Plan, writable: Path | None = None) -> Plan:
    """The plan with its code loaded, in a process that has given its rights away; the same plan where it uses none.

    Parameters
    ----------
    plan : Plan
        What is about to run.
    writable : Path, optional
        Folder that the run writes captures to.

    Raises
    ------
    Apart
        In a process that is no worker.
    """
    from fanin.confined import inside

    names = plan.code()
    if not names:
        return plan
    if not inside.is_worker():
        raise Apart(names)
    inside.confine([writable] if writable is not None else [])
    return plan.with_code()


S = TypeVar("S")
P = ParamSpec("P")
Run = Callable[Concatenate[S, "Watch | None", P], "dict[str, pl.DataFrame]"]


def apart(run: Run[S, P]) -> Callable[..., dict[str, pl.DataFrame]]:
    """Make a job's ``run(watch, ...)`` go to a worker when its plan uses code. The job is plain data, and what it gives are frames."""

    @functools.wraps(run)
    def called(self: S, watch: Watch | None = None, *args: P.args, **named: P.kwargs) -> dict[str, pl.DataFrame]:
        try:
            return run(self, watch, *args, **named)
        except Apart as told:
            from fanin.confined.client import call

            return call((self, run.__name__, args, named), told.names, watch)

    return called
