"""How the claims of the TCPRand paper follow from the results, and its figures, redrawn: one module per part of the paper."""

from __future__ import annotations

from . import host, outcast, testbed, workloads
from .kept import (
    by_sender,
    by_size,
    drop_runs,
    every_millisecond,
    goodput_of_blocks,
    near_and_far,
    per_class,
)
from .outcast import fig5_of_full_packets

__all__ = [
    "by_sender",
    "by_size",
    "drop_runs",
    "every_millisecond",
    "fig5_of_full_packets",
    "goodput_of_blocks",
    "host",
    "near_and_far",
    "outcast",
    "per_class",
    "testbed",
    "workloads",
]
