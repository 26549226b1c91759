"""What an operator can change: the algorithm, what a route, a load or an application's environment sets, and what the switch does with its memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from fanin import _native
from fanin.deployable import WIRE, Recommendation, load_parameters, recommendation
from fanin.registries import entries
from fanin.runs.job import Settings

UNSURE = 0.2
"""The rack's rate, delay and buffer are moved by so much either way: a threshold must leave room in the smaller buffer too."""

QUEUES = (5, 10, 20, 40, 80)
"""Queues that a threshold may leave, in packets: DCTCP's K (its guideline is C x RTT / 7), and, as a delay, TRIM's."""

Change = Settings
"""What one knob at one value puts on top of the rack."""


@dataclass(frozen=True, slots=True)
class Knob:
    """Something that a host or a switch has a place for.

    Attributes
    ----------
    key : str
        Of the rack file. One below ``cc.`` is tried with the algorithms whose registry entry declares it.
    name : str
        As people read it.
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


KNOBS = (
    Knob("rack.mark", "K", "switch", "ECN threshold", _marks, only_marking=True),
    Knob("rack.shared_alpha", "alpha of the shared buffer", "switch", "dynamic threshold alpha", _carving),
    # Below some milliseconds delayed ACKs outlast the floor.
    Knob("stack.min_rto", "RTO floor", "route", "rto_min", _each("stack.min_rto", "20ms", "5ms")),
    Knob("stack.initial_window", "initial window", "route", "initcwnd", _each("stack.initial_window", "4", "2")),
    Knob("cc.trim_k_fixed", "TRIM's K", "load", "k_us", _delays),
    Knob(
        "cc.rand_rmin",
        "rMin",
        "environment",
        "FANIN_TCPRAND_MIN",
        _each("cc.rand_rmin", "200B", "500B", "1000B"),
    ),
)
"""All of them."""

NAMES = {knob.key: knob.name for knob in KNOBS} | {"rack.receiver_mark": "K"}
"""How people read a key; what has none goes with another."""


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
        >>> Candidate("trim", (("cc.trim_k", "fixed"), ("cc.trim_k_fixed", "300us"))).label
        "trim with TRIM's K 300us"
        """
        said = ", ".join(f"{NAMES[key]} {value}" for key, value in self.settings if key in NAMES)
        return f"{self.cc} with {said}" if said else self.cc

    @property
    def changes(self) -> int:
        """How many things have to be set, beside the algorithm."""
        return sum(key in NAMES for key, _ in self.settings)


class Space:
    """The candidates of a rack: what each algorithm's knobs may be set to.

    Parameters
    ----------
    algorithms : sequence of str
        Names.
    rack : mapping
        The parsed rack file.
    switch : bool
        The switch's settings may change.
    """

    def __init__(self, algorithms: Sequence[str], rack: Mapping[str, Any], *, switch: bool) -> None:
        network = rack.get("rack", {})
        self._marked = bool({"mark", "receiver_mark", "queue"} & set(network))
        self.algorithms = [cc for cc in algorithms if self._marked or switch or not _native.needs_ecn(cc)]
        declared = {entry.name: {key["name"] for key in entry.details["keys"]} for entry in entries("cc")}
        self._knobs: dict[str, list[list[Change]]] = {}
        for cc in self.algorithms:
            own = set().union(*(declared.get(part, set()) for part in cc.split("+")))
            knobs = [k for k in KNOBS if k.fits(cc, own) and (switch or k.place != "switch")]
            values = [[c for c in k.changes(network) if not _already(c, rack)] for k in knobs]
            self._knobs[cc] = [changes for changes in values if changes]

    def _runs_as_it_is(self, cc: str) -> bool:
        return self._marked or not _native.needs_ecn(cc)

    def simplest(self) -> list[Candidate]:
        """Every algorithm with the rack's values, and with one knob turned.

        Where the rack marks nothing, an algorithm that needs marks has its K, and one knob besides.
        """
        found = [Candidate(cc) for cc in self.algorithms if self._runs_as_it_is(cc)]
        turned = [one for cc in self.algorithms for one in self.neighbours(Candidate(cc))]
        both = [two for one in turned if not self._runs_as_it_is(one.cc) for two in self.neighbours(one)]
        return list(dict.fromkeys([*found, *turned, *both]))

    def neighbours(self, candidate: Candidate) -> list[Candidate]:
        """One knob more turned. An algorithm that needs marks gets them first."""
        taken = {key for key, _ in candidate.settings}
        knobs = self._knobs[candidate.cc]
        if not candidate.settings and not self._runs_as_it_is(candidate.cc):
            knobs = [changes for changes in knobs if changes[0][0][0] == "rack.mark"]
        return [
            # In the order of the keys, so that one way to run has one name.
            Candidate(candidate.cc, tuple(sorted((*candidate.settings, *change), key=_order)))
            for changes in knobs
            for change in changes
            if change[0][0] not in taken
        ]

    def siblings(self, candidate: Candidate) -> list[Candidate]:
        """One of the turned knobs at another value."""
        found = []
        for changes in self._knobs[candidate.cc]:
            keys = {key for change in changes for key, _ in change}
            rest = tuple(setting for setting in candidate.settings if setting[0] not in keys)
            if len(rest) < len(candidate.settings):
                moved = [Candidate(candidate.cc, tuple(sorted((*rest, *change), key=_order))) for change in changes]
                found += [other for other in moved if other != candidate]
        return found

    def everything(self) -> list[Candidate]:
        """Each algorithm with each combination of its knobs: what an exhaustive search tries."""
        found = [c for c in self.simplest() if c.changes < 2]
        reached = dict.fromkeys(found)
        while found:
            found = [c for c in dict.fromkeys(n for f in found for n in self.neighbours(f)) if c not in reached]
            reached |= dict.fromkeys(found)
        return list(reached)


def _order(setting: tuple[str, str]) -> tuple[int, str]:
    known = [k.key for k in KNOBS]
    return (known.index(setting[0]) if setting[0] in known else len(known), setting[0])


def _already(change: Change, rack: Mapping[str, Any]) -> bool:
    """The rack file says so itself."""
    return all(_said(rack, key) == value for key, value in change)


def _said(rack: Mapping[str, Any], key: str) -> str | None:
    section, _, name = key.partition(".")
    value = rack.get(section, {}).get(name)
    return None if value is None else str(value)


def _number(kind: str, rack: Mapping[str, Any], key: str) -> float | None:
    value = rack.get(key)
    return None if value is None else _native.quantity(kind, str(value), f"rack.{key}")


def how_to(
    candidate: Candidate, *, aggregator: str, now: str, rack: Mapping[str, Any] | None = None
) -> Recommendation | None:
    """The lines that try a candidate on one host and take it back; None when no host can run it.

    Parameters
    ----------
    candidate : Candidate
        What to try.
    aggregator : str
        Address of the host that the responses go to.
    now : str
        What the hosts run today.
    rack : mapping, optional
        The ``[rack]`` table.

    Examples
    --------
    >>> told = how_to(Candidate("cubic", (("stack.min_rto", "5ms"),)), aggregator="10.0.0.1", now="cubic")
    >>> told.trial[-1].endswith("congctl cubic rto_min 5ms"), told.undo
    (True, ('ip route del 10.0.0.1/32',))
    >>> how_to(Candidate("tcprand+cubic", (("cc.rand_rmin", "200B"),)), aggregator="10.0.0.1", now="cubic").trial
    ('LD_PRELOAD=target/release/libfanin_tcprand.so FANIN_TCPRAND_MIN=200 SERVER_COMMAND',)
    """
    values, network = dict(candidate.settings), rack or {}
    at = {
        place: [k for k in KNOBS if k.place == place and k.key in values] for place in ("route", "load", "environment")
    }
    mark = values.get("rack.receiver_mark", values.get("rack.mark", network.get("receiver_mark", network.get("mark"))))
    found = recommendation(
        candidate.cc,
        aggregator=aggregator,
        now=now,
        mark=str(mark) if mark is not None else None,
        quickack=_native.needs_quickack(candidate.cc),
        route=" ".join(f"{k.option} {values[k.key]}" for k in at["route"]),
        load=[
            *load_parameters(candidate.cc, {key: str(value) for key, value in network.items()}),
            *(f"{k.option}={values[k.key].removesuffix('us')}" for k in at["load"]),
        ],
        environment=[f"{k.option}={values[k.key].removesuffix('B')}" for k in at["environment"]],
    )
    alpha = values.get("rack.shared_alpha")
    if found is None or alpha is None:
        return found
    need = f"The switch's dynamic threshold (alpha) is {alpha}: one port may take {alpha} times the free shared buffer."
    return replace(found, needs=(*found.needs, need))


def packets(limit: object) -> float | None:
    """A limit in packets; None where there is none.

    >>> packets("100p"), packets("153.8KB"), packets(None)
    (100.0, 100.0, None)
    """
    return None if limit is None else _native.limit(str(limit), WIRE, "rack.buffer")
