"""How honest a run was: what the switch did late or missed, and when that makes it no result."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

import polars as pl

from fanin.errors import EngineError

Made = TypeVar("Made")

ATTEMPTS = 4
"""How often a run is tried that this machine may be too busy for."""

LATE_SHARE = 0.05
"""More packets than this released over 50 us late: the hosts saw another network."""

STALLED_SHARE = 0.01
"""More of the run than this without the switch's CPU."""

LONGEST_STALL_MS = 50.0
"""A single stall of this length: a quarter of the least retransmission timeout of Linux."""

MISORDERED_SHARE = 0.01
"""More packets than this seen after later ones had been decided: the order at the ports was not that of the arrivals."""

SCHEMA: dict[str, type[pl.DataType]] = {
    "released": pl.UInt64,
    "achieved_mbps": pl.Float64,
    "late": pl.UInt64,
    "late_mean_us": pl.Float64,
    "late_max_us": pl.Float64,
    "stalls": pl.UInt64,
    "stalled_ms": pl.Float64,
    "longest_stall_ms": pl.Float64,
    "misordered": pl.UInt64,
    "misordered_max_us": pl.Float64,
    "ring_drops": pl.UInt64,
    "strays": pl.UInt64,
    "refused": pl.UInt64,
    "skipped_callbacks": pl.UInt64,
    "switch_cpu": pl.Float64,
}
"""Columns of :attr:`fanin.RunResult.testbed`, without ``cc`` and ``seed``."""


def row(figures: dict[str, Any], skipped: int) -> dict[str, float]:
    """The figures that the switch wrote, in the columns of :data:`SCHEMA`."""
    released = max(1, figures["released"])
    seconds = max(1, figures["last_ns"] - figures["first_ns"]) / 1e9
    return {
        "released": figures["released"],
        "achieved_mbps": figures["released_bytes"] * 8 / seconds / 1e6,
        "late": figures["late"],
        "late_mean_us": figures["lateness_sum_ns"] / released / 1e3,
        "late_max_us": figures["lateness_max_ns"] / 1e3,
        "stalls": figures["stalls"],
        "stalled_ms": figures["stall_sum_ns"] / 1e6,
        "longest_stall_ms": figures["stall_max_ns"] / 1e6,
        "misordered": figures["misordered"],
        "misordered_max_us": figures["misordered_max_ns"] / 1e3,
        "ring_drops": figures["ring_drops"],
        "strays": figures["strays"],
        "refused": figures["refused"],
        "skipped_callbacks": skipped,
        "switch_cpu": figures["cpu_ns"] / 1e9 / seconds,
    }


class DisturbedError(EngineError):
    """The machine disturbed a run, by figures that say nothing of its results: the same run may be valid the next time."""


class HeldError(EngineError):
    """Another run has the testbed."""


def valid(attempt: Callable[[], Made], wait_s: float | None = None) -> Made:
    """The first attempt at a run that this machine did not disturb.

    Parameters
    ----------
    attempt : callable
        Makes the run.
    wait_s : float, optional
        How long to wait when another run has the testbed, which counts as an attempt; without it that is an error at once.

    Raises
    ------
    DisturbedError, HeldError
        When none of :data:`ATTEMPTS` succeeded.

    Examples
    --------
    >>> disturbed = [DisturbedError("late"), DisturbedError("late")]
    >>> def attempt():
    ...     if disturbed:
    ...         raise disturbed.pop()
    ...     return "a run"
    >>> valid(attempt)
    'a run'
    """
    for _ in range(ATTEMPTS - 1):
        try:
            return attempt()
        except DisturbedError:
            pass
        except HeldError:
            if wait_s is None:
                raise
            time.sleep(wait_s)
    return attempt()


def check(figures: dict[str, float], duration_ms: float, *, clock_steps: int = 0) -> None:
    """Raise when a run is no result.

    Parameters
    ----------
    figures : dict
        From :func:`row`.
    duration_ms : float
        Of the run.
    clock_steps : int
        Times that the wall clock was set.

    Raises
    ------
    DisturbedError
        With the figure that is too large.
    """
    late = figures["late"] / max(1.0, figures["released"])
    misordered = figures["misordered"] / max(1.0, figures["released"])
    stalled = figures["stalled_ms"] / max(1.0, duration_ms)
    faults = [
        (figures["skipped_callbacks"], f"{figures['skipped_callbacks']:.0f} callbacks of the twin were skipped"),
        (figures["ring_drops"], f"{figures['ring_drops']:.0f} packets found no room in the switch's ring"),
        (figures["refused"], f"{figures['refused']:.0f} packets were refused by their host's device"),
        (clock_steps, "the wall clock was set during the run"),
        (
            misordered > MISORDERED_SHARE,
            f"{misordered:.1%} of the packets were seen after later ones had been decided (limit {MISORDERED_SHARE:.0%}; longer links to the "
            "hosts give the switch more time to see them)",
        ),
        (late > LATE_SHARE, f"{late:.1%} of the packets were released more than 50 us late (limit {LATE_SHARE:.0%})"),
        (
            stalled > STALLED_SHARE,
            f"the switch was without its CPU for {stalled:.1%} of the run (limit {STALLED_SHARE:.0%})",
        ),
        (
            figures["longest_stall_ms"] > LONGEST_STALL_MS,
            f"the switch was without its CPU for {figures['longest_stall_ms']:.0f} ms at once (limit {LONGEST_STALL_MS:.0f} ms)",
        ),
    ]
    found = [sentence for fault, sentence in faults if fault]
    if found:
        raise DisturbedError(
            f"the run on the testbed is not valid: {'; '.join(found)}. Leave the machine to it and run it again, or use --engine kernel"
        )


def frame(figures: dict[str, float], cc: str, seed: int) -> pl.DataFrame:
    """One row with whose run it was."""
    whose = {"cc": pl.String, "seed": pl.UInt64}
    return pl.DataFrame([{"cc": cc, "seed": seed, **figures}], schema={**whose, **SCHEMA})
