"""The ways to run a rack's hosts and switch: an algorithm, and settings on top of what the rack says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fanin import _native
from fanin.registries import entries
from fanin.runs.job import Settings
from fanin.settings.declared import BY_KEY, KNOBS, NAMES, Change, Cost, Knob, cost_of_algorithm, goes_with_floor


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
        said = ", ".join(self.said(" "))
        return f"{self.cc} with {said}" if said else self.cc

    def said(self, between: str) -> list[str]:
        """Each setting's name and value, with something between them.

        Examples
        --------
        >>> Candidate("cubic", (("stack.min_rto", "5ms"),)).said(" at ")
        ['RTO floor at 5ms']
        """
        return [f"{NAMES[key]}{between}{value}" for key, value in self.settings if key in NAMES]

    @property
    def changes(self) -> int:
        """How many things have to be set, beside the algorithm."""
        return sum(key in NAMES for key, _ in self.settings)

    @property
    def turned(self) -> int:
        """How many knobs are turned: the initial window that goes with a floor of the timer is none of its own.

        Examples
        --------
        >>> [Candidate("cubic", (("stack.min_rto", "5ms"), ("stack.initial_window", n))).turned for n in ("23", "2")]
        [1, 2]
        """
        values = dict(self.settings)
        together = "stack.min_rto" in values and goes_with_floor(values.get("stack.initial_window"))
        return self.changes - together

    @property
    def knobs(self) -> list[Knob]:
        """What is set, beside the algorithm."""
        return [BY_KEY[key] for key, _ in self.settings if key in BY_KEY]

    def cost(self, now: str) -> tuple[Cost, int]:
        """What it takes on hosts that run `now`: the dearest of its changes, and how many there are. The lesser is simpler.

        Examples
        --------
        >>> Candidate("cubic").cost("cubic"), Candidate("cubic", (("stack.min_rto", "5ms"),)).cost("cubic")
        ((<Cost.NONE: 0>, 0), (<Cost.HOST_SETTING: 1>, 1))
        >>> Candidate("dctcp", (("rack.mark", "20p"),)).cost("cubic") < Candidate("trim").cost("cubic")
        True
        """
        algorithm = cost_of_algorithm(self.cc, now)
        return max([algorithm, *(knob.cost for knob in self.knobs)]), self.changes + (algorithm is not Cost.NONE)


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
    windows : mapping, optional
        The initial window that goes with a floor of the retransmission timer, by the floor, where one has to.
    """

    def __init__(
        self,
        algorithms: Sequence[str],
        rack: Mapping[str, Any],
        *,
        switch: bool,
        windows: Mapping[str, str] | None = None,
    ) -> None:
        network = rack.get("rack", {})
        self._marked = bool({"mark", "receiver_mark", "queue"} & set(network))
        self.algorithms = [cc for cc in algorithms if self._marked or switch or not _native.needs_ecn(cc)]
        declared = {entry.name: {key["name"] for key in entry.details["keys"]} for entry in entries("cc")}
        self._knobs: dict[str, list[list[Change]]] = {}
        for cc in self.algorithms:
            own = set().union(*(declared.get(part, set()) for part in cc.split("+")))
            knobs = [k for k in KNOBS if k.fits(cc, own) and (switch or k.place != "switch")]
            values = [[c for c in k.changes(network) if not _already(c, rack)] for k in knobs]
            values = [[_with_window(c, cc, windows or {}) for c in changes] for changes in values]
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
            if taken.isdisjoint(key for key, _ in change)
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


def fitting(settings: Settings, cc: str) -> Settings:
    """Those of a host's settings that do something under this algorithm.

    Examples
    --------
    >>> fitting((("stack.min_rto", "5ms"), ("stack.initial_window", "23")), "gss+cubic")
    (('stack.min_rto', '5ms'),)
    """
    return tuple(one for one in settings if one[0] != "stack.initial_window" or BY_KEY[one[0]].fits(cc, ()))


def _with_window(change: Change, cc: str, windows: Mapping[str, str]) -> Change:
    """A floor with the initial window that goes with it, if the algorithm begins with that; anything else as it is.

    Examples
    --------
    >>> floor = (("stack.min_rto", "5ms"),)
    >>> _with_window(floor, "cubic", {"5ms": "23"}), _with_window(floor, "gss+cubic", {"5ms": "23"}) == floor
    ((('stack.min_rto', '5ms'), ('stack.initial_window', '23')), True)
    """
    window = windows.get(dict(change).get("stack.min_rto", ""))
    return change if window is None else fitting((*change, ("stack.initial_window", window)), cc)


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
