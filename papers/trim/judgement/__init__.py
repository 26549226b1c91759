"""How the claims of the TCP-TRIM paper follow from the results, and its figures, redrawn: one module per part of the paper.

Where a claim speaks of one run, ours is the median over seeds; "no drop" and "no timeout" must be true of every run.
"""

from __future__ import annotations

from . import on_off, scale, steady, testbed
from .kept import bottleneck_and_goodput, completion_of_servers, completions, count_timeouts
from .steady import buffer_for_round_trip

__all__ = [
    "bottleneck_and_goodput",
    "buffer_for_round_trip",
    "completion_of_servers",
    "completions",
    "count_timeouts",
    "on_off",
    "scale",
    "steady",
    "testbed",
]
