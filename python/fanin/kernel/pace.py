"""How long runs on the virtual kernel take: said before they begin."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Sequence

from fanin.kernel.cache import folder
from fanin.process.progress import cores

USUAL_HOP_S = 15e-6
"""Wall time per packet and port on one core of a machine with nothing else to do, until this one's is known."""

START_S = 1.0
"""To start a kernel, make its hosts and read what it left."""

PACE = "pace"
"""Where the cache of kernels keeps the seconds per packet and port of the last runs on this machine."""


def hop_seconds() -> float:
    """Wall time per packet and port, as last measured here."""
    try:
        measured = float((folder() / PACE).read_text())
    except (OSError, ValueError):
        return USUAL_HOP_S
    return measured if math.isfinite(measured) and measured > 0 else USUAL_HOP_S


def remember(hops: Sequence[float], elapsed_s: float) -> None:
    """Note how long runs of so many packets and ports took together, for the next estimate."""
    busy = elapsed_s * min(cores(), len(hops)) - START_S * len(hops)
    if busy <= 0 or sum(hops) < 10_000:
        return
    place = folder() / PACE
    # A cache that cannot be written costs a worse estimate.
    with contextlib.suppress(OSError):
        beside = place.with_name(f"{PACE}.{os.getpid()}")
        beside.write_text(f"{busy / sum(hops):.3g}\n")
        beside.replace(place)


def estimate(hops: Sequence[float]) -> str:
    """How long runs of so many packets and ports take, in words.

    Examples
    --------
    >>> in_words(41), in_words(190), in_words(7300)
    ('about 40 s', 'about 3 min', 'about 2 h')
    """
    work = [START_S + count * hop_seconds() for count in hops]
    return in_words(max(math.fsum(work) / max(1, min(cores(), len(work))), max(work, default=0.0)))


def in_words(seconds: float) -> str:
    """A time that need not be exact."""
    if seconds < 90:
        return f"about {max(5, round(seconds / 5) * 5)} s"
    return f"about {round(seconds / 60)} min" if seconds < 5400 else f"about {round(seconds / 3600)} h"
