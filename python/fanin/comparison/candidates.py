"""Which algorithms a comparison runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fanin import _native
from fanin.registries import stand_alone_algorithms
from fanin.simulation import chosen_algorithms

if TYPE_CHECKING:
    from fanin._native import Rack


def candidates(asked: str | Sequence[str] | None, rack: Rack) -> tuple[list[str], list[str]]:
    """The algorithms to compare, and remarks on the choice."""
    marks = rack.marks()
    if asked is not None:
        names = chosen_algorithms(asked)
        blind = [name for name in names if _native.needs_switch(name) and not marks]
        if blind:
            return names, [
                f"{rack.file} has no `rack.mark`, so the switch marks nothing and {listed(blind)} cannot act on marks"
            ]
        return names, []
    names = stand_alone_algorithms()
    if marks:
        return names, []
    left_out = [name for name in names if _native.needs_switch(name)]
    note = f"left out, since {rack.file} has no `rack.mark` and they need a switch that marks: {listed(left_out)}"
    return [name for name in names if name not in left_out], [note] if left_out else []


def prompt_ack_note(names: Sequence[str]) -> list[str]:
    """Which of the algorithms were simulated with a receiver that acknowledges every packet."""
    prompt = [name for name in names if _native.needs_prompt_acks(name)]
    if not prompt:
        return []
    verbs = "lives on round-trip times and was" if len(prompt) == 1 else "live on round-trip times and were"
    them = "it" if len(prompt) == 1 else "them"
    return [
        f"{listed(prompt)} {verbs} simulated with receivers that acknowledge every packet, as Linux does "
        f"after `ip route change ... quickack 1`; `stack.prompt_acks = false` in the rack shows {them} behind delayed ACKs"
    ]


def listed(things: Sequence[object]) -> str:
    """Things in a sentence."""
    return ", ".join(map(str, things))
