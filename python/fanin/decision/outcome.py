"""What the runs of one candidate came to."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace

FEWEST_EVENTS = 30
"""A quantile is claimed, or guarded, only where so many requests of all runs together lie beyond it."""

BEYOND = {"p95": 0.05, "p99": 0.01, "p99_9": 0.001}
"""The share of requests beyond a quantile."""

TAILS = ("p99", "p95")
"""What stands for the tail, the further out first."""

Run = tuple[Hashable, Hashable]
"""A rack and a seed. Runs of two candidates with the same name are a pair."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a candidate's runs gave.

    Attributes
    ----------
    name : str
        The candidate.
    cost : tuple of int
        What it takes to make the change; the lesser is simpler (:meth:`fanin.settings.Candidate.cost`).
    runs : mapping
        By run the statistics of its requests: ``mean``, ``p50``, ``p95``, ``p99``, ``p99_9`` in ms, or another goal's value. None where requests
        were unfinished, which counts as longer than any.
    requests : int
        Requests of one run.
    connections : mapping
        By run and connection the mean time of its responses, ms; a connection with an unfinished response has None.
    """

    name: str
    cost: tuple[int, ...]
    runs: Mapping[Run, Mapping[str, float | None]]
    requests: int
    connections: Mapping[Run, Mapping[Hashable, float | None]] = field(default_factory=dict)

    def beyond(self, statistic: str) -> float:
        """How many requests of all runs lie beyond a quantile; infinite for what is no quantile of the tail.

        Examples
        --------
        >>> Outcome("cubic", (0,), {(0, 1): {}, (0, 2): {}}, requests=2000).beyond("p99")
        40.0
        """
        share = BEYOND.get(statistic)
        return float("inf") if share is None else round(share * self.requests * len(self.runs), 9)

    def tells(self, statistic: str) -> bool:
        """Whether enough requests lie beyond a quantile to claim something of it."""
        return self.beyond(statistic) >= FEWEST_EVENTS


def tail_of(outcome: Outcome) -> str | None:
    """The quantile that stands for the tail: the furthest out that enough requests lie beyond; None where no quantile does.

    Examples
    --------
    >>> runs = {(0, seed): {} for seed in range(10)}
    >>> [tail_of(Outcome("cubic", (0,), runs, n)) for n in (400, 60, 10)]
    ['p99', 'p95', None]
    """
    return next((name for name in TAILS if outcome.tells(name)), None)


def together(on_racks: Sequence[Sequence[Outcome]]) -> tuple[Outcome, ...]:
    """Outcomes of the same candidates on several racks as one of each: what was run on all of them.

    Examples
    --------
    >>> one, other = (Outcome("cubic", (0,), {(0, 1): {"mean": ms}}, 10) for ms in (1.0, 2.0))
    >>> together([[one], [other]])[0].runs
    {(0, 1): {'mean': 1.0}, (1, 1): {'mean': 2.0}}
    """
    by_rack = [{outcome.name: outcome for outcome in rack} for rack in on_racks]
    names = [name for name in by_rack[0] if all(name in rack for rack in by_rack)] if by_rack else []
    found = []
    for name in names:
        runs: dict[Run, Mapping[str, float | None]] = {}
        connections: dict[Run, Mapping[Hashable, float | None]] = {}
        for place, rack in enumerate(by_rack):
            runs |= {(place, seed): values for (_, seed), values in rack[name].runs.items()}
            connections |= {(place, seed): values for (_, seed), values in rack[name].connections.items()}
        found.append(replace(by_rack[0][name], runs=runs, connections=connections))
    return tuple(found)
