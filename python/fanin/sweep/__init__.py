"""Many runs: axes over scenario keys, algorithms and seeds, kept in a store so that none is done twice.

``plan`` reads ``sweep.toml``, ``values`` makes the values of an axis, ``perform`` runs what the store does not have, ``results`` is what a
query or a plot reads.
"""

from __future__ import annotations

from fanin.sweep.perform import SweepResult, Until, sweep
from fanin.sweep.plan import Sweep, read

__all__ = ["Sweep", "SweepResult", "Until", "read", "sweep"]
