"""What the rack of a comparison says, as the engine read it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fanin import _native

if TYPE_CHECKING:
    from fanin._native import Rack
    from fanin.comparison.result import CompareResult


def rack_facts(result: CompareResult) -> dict[str, str]:
    """The ``[rack]`` that was run, as the engine's reader has it: the file's with the changes on top. Empty for one of several racks."""
    rack = _rack_of(result)
    return dict(rack.facts()) if rack is not None else {}


def rack_hz(result: CompareResult) -> int | None:
    """Jiffies per second of the hosts that were simulated (``stack.hz``): drops can differ fourfold between 250 and 1000. None for one of several racks."""
    rack = _rack_of(result)
    return rack.hz() if rack is not None else None


def _rack_of(result: CompareResult) -> Rack | None:
    if not result.rack_text:
        return None
    return _native.Rack.from_text(result.rack_text, "rack.toml", settings=list(result.settings.items()))
