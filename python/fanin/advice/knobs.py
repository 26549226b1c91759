"""What an operator can change: the algorithm, a route's options, the switch's marking threshold."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fanin import _native
from fanin.deployable import Recommendation, recommendation
from fanin.runs.job import Settings

MIN_RTO = ("20ms", "5ms")
"""RTO floors to try beside the rack's; ``ip route ... rto_min`` takes them. Below some milliseconds delayed ACKs outlast the floor."""

INITIAL_WINDOWS = (4, 2)
"""Initial windows to try beside the rack's; ``ip route ... initcwnd`` takes them."""

MARKS = (5, 10, 20, 40, 80)
"""Marking thresholds K to try, in packets, for algorithms that act on marks (DCTCP's guideline is C x RTT / 7)."""

UNSURE = 0.2
"""The rack's rate, delay and buffer are moved by so much either way: a threshold must leave room in the smaller buffer too."""

ROUTE_OPTIONS = {"stack.min_rto": "rto_min", "stack.initial_window": "initcwnd"}
"""Scenario keys that an option of ``ip route`` sets."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way to run the hosts and the switch.

    Attributes
    ----------
    cc : str
        Algorithm.
    settings : tuple of (str, str)
        Values by key on top of the rack.
    """

    cc: str
    settings: Settings = ()

    @property
    def label(self) -> str:
        """As people read it.

        Examples
        --------
        >>> Candidate("dctcp", (("stack.min_rto", "5ms"), ("rack.mark", "20p"))).label
        'dctcp with RTO floor 5ms, K 20p'
        """
        names = {"stack.min_rto": "RTO floor", "stack.initial_window": "initial window", "rack.mark": "K"}
        said = ", ".join(f"{names.get(key, key)} {value}" for key, value in self.settings)
        return f"{self.cc} with {said}" if said else self.cc

    @property
    def changes(self) -> int:
        """How many things have to be set, beside the algorithm."""
        return len(self.settings)


def space(algorithms: Sequence[str], rack: Mapping[str, Any], *, switch: bool) -> list[Candidate]:
    """Every candidate: each algorithm with each combination of its knobs, what the rack says first.

    Parameters
    ----------
    algorithms : sequence of str
        Names.
    rack : mapping
        The parsed rack file.
    switch : bool
        The switch's settings may change.
    """
    stack, network = rack.get("stack", {}), rack.get("rack", {})
    floors = [None, *(value for value in MIN_RTO if value != stack.get("min_rto"))]
    windows = [None, *(value for value in INITIAL_WINDOWS if value != stack.get("initial_window"))]
    found = []
    for cc in algorithms:
        needs = _native.needs_switch(cc)
        marked = "mark" in network
        if needs and not switch and not marked:
            continue
        marks: list[str | None] = [None] if marked or not needs else []
        if needs and switch:
            room = packets(network.get("buffer"))
            fitting = [k for k in MARKS if room is None or k < room * (1 - UNSURE)]
            marks += [f"{k}p" for k in fitting if f"{k}p" != network.get("mark")]
        for mark, floor, window in itertools.product(marks, floors, windows):
            settings = (("rack.mark", mark), ("stack.min_rto", floor), ("stack.initial_window", window))
            found.append(Candidate(cc, tuple((key, str(value)) for key, value in settings if value is not None)))
    return found


def how_to(candidate: Candidate, *, aggregator: str, now: str, mark: str | None) -> Recommendation | None:
    """The lines that try a candidate on one host and take it back; None when no host can run it.

    Examples
    --------
    >>> told = how_to(Candidate("cubic", (("stack.min_rto", "5ms"),)), aggregator="10.0.0.1", now="cubic", mark=None)
    >>> told.trial[-1].endswith("congctl cubic rto_min 5ms"), told.undo
    (True, ('ip route del 10.0.0.1/32',))
    """
    values = dict(candidate.settings)
    found = recommendation(
        candidate.cc,
        aggregator=aggregator,
        now=now,
        mark=values.get("rack.mark", mark),
        prompt_acks=_native.needs_prompt_acks(candidate.cc),
    )
    options = " ".join(f"{option} {values[key]}" for key, option in ROUTE_OPTIONS.items() if key in values)
    if found is None or not options:
        return found
    return replace(
        found,
        trial=(*found.trial[:-1], f"{found.trial[-1]} {options}"),
        needs=(
            *found.needs,
            f"`{options}` is an option of routes: for all connections, put it on the route that they use.",
        ),
    )


def packets(limit: object) -> int | None:
    """A limit in packets, such as ``"100p"``; None for one in other units.

    >>> packets("100p"), packets("150KB")
    (100, None)
    """
    text = str(limit)
    return int(text[:-1]) if text.endswith("p") and text[:-1].isdigit() else None
