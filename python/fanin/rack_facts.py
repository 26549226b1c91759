"""What the rack of a comparison says, as the engine read it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from fanin import _native

if TYPE_CHECKING:
    from fanin._native import Rack
    from fanin.comparison import CompareResult


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


def stated_packets(limit: object) -> int | None:
    """A queue limit that is written in packets; None for one in bytes, which :func:`fanin.settings.declared.packets` converts.

    Examples
    --------
    >>> stated_packets("250p"), stated_packets("64KB"), stated_packets(None)
    (250, None, None)
    """
    found = re.fullmatch(r"\s*(\d+)\s*(?:p|pkts?|packets?)\s*", limit) if isinstance(limit, str) else None
    return int(found[1]) if found else None
