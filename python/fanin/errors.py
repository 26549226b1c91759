"""What can go wrong, as exceptions. Each message is one sentence: what, where, and what to do next."""

from __future__ import annotations


class FaninError(Exception):
    """Base of everything that fanin raises on purpose."""


class ScenarioError(FaninError, ValueError):
    """A scenario or rack file is wrong, or a setting that was asked for."""


class AlgorithmError(FaninError, ValueError):
    """There is no such algorithm, or it cannot be run so."""


class CaptureError(FaninError, ValueError):
    """A capture cannot be used."""


class OutputError(FaninError, OSError):
    """Results cannot be written where they were asked for."""


class EngineError(FaninError, RuntimeError):
    """The engine failed: a fault of fanin itself, please report it."""


class Interrupted(FaninError):  # noqa: N818 - it is not an error, somebody asked
    """A run was stopped because somebody asked."""
