"""fanin: which TCP your data centre's many-to-one traffic needs.

>>> import fanin
>>> [entry.name for entry in fanin.entries("cc") if entry.name == "dctcp"]
['dctcp']

The command of the same name does the same: ``fanin --help``.
"""

import os
import sys

# What `signal` is made of, and loaded by every Python: `signal` itself, and `__future__`, take milliseconds in which Ctrl-C would be a traceback.
if (_name := (sys.argv or [""])[0].rpartition("/")[2]) in ("fanin", "fanin-python"):
    _signal = __import__("_signal")
    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        # The command, of which only this much is loaded: Ctrl-C is said in its own words until `fanin.__main__.main` takes over.
        def _interrupted(number: int, where: object) -> None:
            os.write(2, b"fanin: interrupted, nothing was written\n")
            os._exit(130)

        _signal.signal(_signal.SIGINT, _interrupted)
    if _name == "fanin-python":
        # The launcher (crates/launcher) blocked it before Python began, and the command is named as it was typed.
        _signal.pthread_sigmask(_signal.SIG_UNBLOCK, {_signal.SIGINT})
        sys.argv[0] = sys.argv[0].removesuffix("-python")

import importlib
from typing import TYPE_CHECKING, Any

from fanin.errors import (
    AlgorithmError,
    CaptureError,
    EngineError,
    FaninError,
    Interrupted,
    OutputError,
    ScenarioError,
    nearest,
)

if TYPE_CHECKING:
    from fanin import measures, models
    from fanin.algorithms import CongestionControl, register
    from fanin.capture.traffic import TrainsResult, trains
    from fanin.comparison import CompareResult, compare
    from fanin.comparison.difference import Difference, diff
    from fanin.papers.reproduce import ReproduceResult, reproduce
    from fanin.pictures.drawing import draw
    from fanin.rack.proposal import RackProposal, propose_rack
    from fanin.registries import Entry, entries
    from fanin.service import TruthResult, truth
    from fanin.simulation import RunResult, run

__all__ = [
    "AlgorithmError",
    "CaptureError",
    "CompareResult",
    "CongestionControl",
    "Difference",
    "EngineError",
    "Entry",
    "FaninError",
    "Interrupted",
    "OutputError",
    "RackProposal",
    "ReproduceResult",
    "RunResult",
    "ScenarioError",
    "TrainsResult",
    "TruthResult",
    "__version__",
    "compare",
    "diff",
    "draw",
    "entries",
    "measures",
    "models",
    "propose_rack",
    "register",
    "reproduce",
    "run",
    "trains",
    "truth",
]

# Polars and the engine are loaded when something needs them: `fanin --help` must not wait for them.
_HOME = {
    "CongestionControl": "fanin.algorithms",
    "register": "fanin.algorithms",
    "draw": "fanin.pictures.drawing",
    "Difference": "fanin.comparison.difference",
    "diff": "fanin.comparison.difference",
    "RackProposal": "fanin.rack.proposal",
    "propose_rack": "fanin.rack.proposal",
    "CompareResult": "fanin.comparison",
    "compare": "fanin.comparison",
    "ReproduceResult": "fanin.papers",
    "reproduce": "fanin.papers",
    "Entry": "fanin.registries",
    "entries": "fanin.registries",
    "RunResult": "fanin.simulation",
    "run": "fanin.simulation",
    "TruthResult": "fanin.service",
    "truth": "fanin.service",
    "TrainsResult": "fanin.capture.traffic",
    "trains": "fanin.capture.traffic",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return importlib.import_module("fanin._native").VERSION
    if name in {"measures", "models"}:
        return importlib.import_module(f"fanin.{name}")
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    near = nearest(name, __all__)
    hint = f"; did you mean `fanin.{near}`?" if near is not None else ""
    raise AttributeError(f"module 'fanin' has no attribute {name!r}{hint}")


def __dir__() -> list[str]:
    return sorted(__all__)
