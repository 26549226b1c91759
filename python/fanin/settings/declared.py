"""What an operator can set: each setting once, with the end it belongs to, where it is set there, and what trying it costs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import Any, Literal

from fanin import _native
from fanin.runs.job import Settings
from fanin.settings.deployable import WIRE, deployment

UNSURE = 0.2
"""The rack's rate, delay and buffer are moved by so much either way: a threshold must leave room in the smaller buffer too."""

QUEUES = (5, 10, 20, 40, 80)
"""Queues that a threshold may leave, in packets: DCTCP's K (its guideline is C x RTT / 7), and, as a delay, TRIM's."""

SMALLER_WINDOWS = ("4", "2")
"""Initial windows that are tried for themselves, in segments. A larger one goes with a floor of the retransmission timer (:func:`goes_with_floor`)."""

Change = Settings
"""What one knob at one value puts on top of the rack."""


class End(StrEnum):
    """Whose setting it is."""

    SERVERS = "servers"
    AGGREGATOR = "aggregator"
    BOTH = "both"
    SWITCH = "switch"


class Cost(IntEnum):
    """What trying a change takes, least first: of two that gain alike the lesser is advised.

    Examples
    --------
    >>> Cost.HOST_SETTING < Cost.KERNEL_TCP < Cost.SWITCH_SETTING < Cost.TWIN < Cost.LIBRARY
    True
    """

    NONE = 0
    HOST_SETTING = 1
    KERNEL_TCP = 2
    SWITCH_SETTING = 3
    TWIN = 4
    LIBRARY = 5
    NOT_DEPLOYABLE = 6


def cost_of_algorithm(cc: str, now: str) -> Cost:
    """What it takes that hosts which run `now` run `cc`.

    Examples
    --------
    >>> [cost_of_algorithm(cc, "cubic").name for cc in ("cubic", "bbr", "dctcp", "trim", "tcprand+cubic", "newreno")]
    ['NONE', 'KERNEL_TCP', 'KERNEL_TCP', 'TWIN', 'LIBRARY', 'NOT_DEPLOYABLE']
    """
    if cc == now:
        return Cost.NONE
    how = deployment(cc)
    if how is None:
        return Cost.NOT_DEPLOYABLE
    return Cost.LIBRARY if how.shim else Cost.TWIN if how.twin else Cost.KERNEL_TCP


@dataclass(frozen=True, slots=True)
class Knob:
    """Something that a host or a switch has a place for.

    Attributes
    ----------
    key : str
        Of the rack file. One below ``cc.`` is tried with the algorithms whose registry entry declares it.
    name : str
        As people read it.
    end : End
        Whose setting it is.
    cost : Cost
        What setting it takes.
    place : {"route", "load", "environment", "switch"}
        Where it is set: an option of ``ip route``, a parameter of ``fanin linux load``, a variable of the application, the switch.
    option : str
        What it is called there.
    changes : callable
        From the ``[rack]`` table to the values to try, each as what it puts on top of the rack.
    only_marking : bool
        Only for algorithms that act on marks.
    """

    key: str
    name: str
    end: End
    cost: Cost
    place: Literal["route", "load", "environment", "switch"]
    option: str
    changes: Callable[[Mapping[str, Any]], list[Change]]
    only_marking: bool = False

    def fits(self, cc: str, declared: Iterable[str]) -> bool:
        """It does something under this algorithm."""
        if self.key.startswith("cc."):
            return self.key.removeprefix("cc.") in declared
        # GSS begins with two packets, whatever the route says (`gss_initial_window`).
        if self.key == "stack.initial_window" and cc.startswith("gss+"):
            return False
        return not self.only_marking or _native.needs_ecn(cc)


def goes_with_floor(window: str | None) -> bool:
    """Whether an initial window keeps ordinary requests as they are with a lower floor (:func:`fanin.capture.restarts.windows_to_keep`).

    Examples
    --------
    >>> goes_with_floor("23"), goes_with_floor("4"), goes_with_floor(None)
    (True, False, False)
    """
    return window is not None and window not in SMALLER_WINDOWS


def _each(key: str, *values: str) -> Callable[[Mapping[str, Any]], list[Change]]:
    return lambda _: [((key, value),) for value in values]


def _marks(rack: Mapping[str, Any]) -> list[Change]:
    """Thresholds that leave room in a buffer that is a fifth smaller than said."""
    if "queue" in rack:
        return []
    room = packets(rack.get("receiver_buffer", rack.get("buffer")))
    key = "rack.receiver_mark" if "receiver_mark" in rack else "rack.mark"
    return [((key, f"{k}p"),) for k in QUEUES if room is None or k < room * (1 - UNSURE)]


def _delays(rack: Mapping[str, Any]) -> list[Change]:
    """TRIM's K as the round trip with so many packets in the queue."""
    rates = [_number("rate", rack, key) for key in ("rate", "receiver_rate")]
    delays = [_number("time", rack, key) for key in ("delay", "receiver_delay")]
    if rates[0] is None or delays[0] is None:
        return []
    near, far = rates[1] or rates[0], rates[0]
    empty = 2 * (delays[0] + (delays[1] if delays[1] is not None else delays[0])) + 8 * WIRE * (1 / near + 1 / far)
    room = packets(rack.get("receiver_buffer", rack.get("buffer")))
    return [
        (("cc.trim_k", "fixed"), ("cc.trim_k_fixed", f"{1e6 * (empty + q * 8 * WIRE / near):.0f}us"))
        for q in QUEUES
        if room is None or q < room * (1 - UNSURE)
    ]


def _carving(rack: Mapping[str, Any]) -> list[Change]:
    return [(("rack.shared_alpha", alpha),) for alpha in ("0.25", "0.5", "2", "8")] if "shared_buffer" in rack else []


def _number(kind: str, rack: Mapping[str, Any], key: str) -> float | None:
    value = rack.get(key)
    return None if value is None else _native.quantity(kind, str(value), f"rack.{key}")


def packets(limit: object) -> float | None:
    """A limit in full packets, also of one in bytes; None where there is none.

    >>> packets("100p"), packets("153.8KB"), packets(None)
    (100.0, 100.0, None)
    """
    return None if limit is None else _native.limit(str(limit), WIRE, "rack.buffer")


def stated_packets(limit: object) -> int | None:
    """A queue limit that is written in packets; None for one in bytes, of which the packets that fit depend on their size.

    Examples
    --------
    >>> stated_packets("250p"), stated_packets("64KB"), stated_packets(None)
    (250, None, None)
    """
    found = re.fullmatch(r"\s*(\d+)\s*(?:p|pkts?|packets?)\s*", limit) if isinstance(limit, str) else None
    return int(found[1]) if found else None


KNOBS = (
    Knob("rack.mark", "K", End.SWITCH, Cost.SWITCH_SETTING, "switch", "ECN threshold", _marks, only_marking=True),
    Knob(
        "rack.shared_alpha",
        "alpha of the shared buffer",
        End.SWITCH,
        Cost.SWITCH_SETTING,
        "switch",
        "dynamic threshold alpha",
        _carving,
    ),
    # At both ends: an aggregator delays its ACKs by less than its own floor, and by 40 ms where it has none (`tcp_delack_max`).
    Knob(
        "stack.min_rto",
        "RTO floor",
        End.BOTH,
        Cost.HOST_SETTING,
        "route",
        "rto_min",
        _each("stack.min_rto", "20ms", "5ms"),
    ),
    Knob(
        "stack.initial_window",
        "initial window",
        End.SERVERS,
        Cost.HOST_SETTING,
        "route",
        "initcwnd",
        _each("stack.initial_window", *SMALLER_WINDOWS),
    ),
    Knob("cc.trim_k_fixed", "TRIM's K", End.SERVERS, Cost.TWIN, "load", "k_us", _delays),
    Knob(
        "cc.rand_rmin",
        "rMin",
        End.SERVERS,
        Cost.LIBRARY,
        "environment",
        "FANIN_TCPRAND_MIN",
        _each("cc.rand_rmin", "200B", "500B", "1000B"),
    ),
)
"""All of them."""

BY_KEY = {knob.key: knob for knob in KNOBS}
"""Each by its key. Where ports have thresholds of their own, the receiver's is the one that is moved."""
BY_KEY["rack.receiver_mark"] = BY_KEY["rack.mark"]

NAMES = {key: knob.name for key, knob in BY_KEY.items()}
"""How people read a key; what has none goes with another."""
