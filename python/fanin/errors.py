"""What can go wrong, as exceptions. Each message is one sentence: what, where, and what to do next."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def nearest(name: str, known: Iterable[str]) -> str | None:
    """What was probably meant; None when nothing is near.

    Examples
    --------
    >>> nearest("p9_99", ["p99", "p99_9"]), nearest("zebra", ["p99"])
    ('p99_9', None)
    """
    import difflib

    return next(iter(difflib.get_close_matches(name, list(known), 1)), None)


def suggest(name: str, known: Iterable[str]) -> str:
    """The end of a sentence about a wrong name: the nearest, or all there are."""
    known = list(known)
    near = nearest(name, known)
    return f"did you mean `{near}`?" if near is not None else f"it must be one of {', '.join(known)}"


def keywords(function: Callable[P, R]) -> Callable[P, R]:
    """Make a function name the nearest keyword when it is called with one that it does not have.

    Examples
    --------
    >>> @keywords
    ... def run(file, *, seeds=1): ...
    >>> run("incast.toml", seed=3)
    Traceback (most recent call last):
    TypeError: run() has no keyword `seed`; did you mean `seeds`?
    """
    known = [name for name, p in inspect.signature(function).parameters.items() if p.kind is not p.VAR_KEYWORD]

    @functools.wraps(function)
    def called(*args: P.args, **named: P.kwargs) -> R:
        for name in named:
            if name not in known:
                raise TypeError(f"{function.__name__}() has no keyword `{name}`; {suggest(name, known)}")
        return function(*args, **named)

    return called


class FaninError(Exception):
    """Base of everything that fanin raises on purpose.

    Attributes
    ----------
    with_source : str or None
        The same with the line of the file that it is about, for a terminal; None where it is about no line.
    """

    with_source: str | None = None


class ScenarioError(FaninError, ValueError):
    """A scenario or rack file is wrong, or a setting that was asked for."""


class MissingAlgorithmError(ScenarioError):
    """The engine that was asked for has no form of an algorithm."""


class AlgorithmError(FaninError, ValueError):
    """There is no such algorithm, or it cannot be run so."""


class CaptureError(FaninError, ValueError):
    """A capture cannot be used."""


class OutputError(FaninError, OSError):
    """Results cannot be written where they were asked for."""


class MemoryLimitError(FaninError, MemoryError):
    """There is not enough memory for what was asked."""


class EngineError(FaninError, RuntimeError):
    """The engine failed: a fault of fanin itself, please report it."""


class Interrupted(FaninError):  # noqa: N818 - it is not an error: the user asked for it
    """A run was stopped on request."""
