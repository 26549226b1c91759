"""What the runs of one candidate came to."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace

FEWEST_EVENTS = 30
"""A quantile is claimed only where so many requests of the runs on the likeliest rack lie beyond it. Runs on other racks do not count: how many
racks fit differs between captures of one service, and what stands for the tail must not."""

FEWEST_IN_A_RUN = 3
"""And so many of each run: a quantile beyond which fewer lie is nearly the run's slowest request, however many runs there are."""

FEWEST_GUARDED = 10
"""A quantile is guarded where so many lie beyond it: harm must be measurable besides, so that fewer are enough to speak against a change."""

UNSEEN = 3.0
"""What none of n independent requests shows happens to at most 3 of n, at 95 % confidence (the rule of three: Hanley and Lippman-Hand, JAMA 249, 1983)."""

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
    timer_ms : float
        How long a host waits at least for its retransmission timer (the RTO floor); 0 where that is not known.
    connections : mapping
        By run and connection the mean time, ms, that users wait who need it: that of the requests that wait for its responses, else of the responses.
        None where one was unfinished.
    """

    name: str
    cost: tuple[int, ...]
    runs: Mapping[Run, Mapping[str, float | None]]
    requests: int
    connections: Mapping[Run, Mapping[Hashable, float | None]] = field(default_factory=dict)
    timer_ms: float = 0.0

    @property
    def likeliest(self) -> int:
        """How many runs there are on the first rack."""
        racks = [rack for rack, _ in self.runs]
        return racks.count(racks[0]) if racks else 0

    def beyond(self, statistic: str, runs: int | None = None) -> float:
        """How many requests of the runs on the first rack lie beyond a quantile; infinite for what is no quantile of the tail.

        Parameters
        ----------
        statistic : str
            Such as ``p99``.
        runs : int, optional
            How many runs there are to be, where these are not all.

        Examples
        --------
        >>> found = Outcome("cubic", (0,), {(0, 1): {}, (0, 2): {}, (1, 1): {}}, requests=2000)
        >>> found.beyond("p99"), found.beyond("p99", runs=10)
        (40.0, 200.0)
        """
        share = BEYOND.get(statistic)
        count = self.likeliest if runs is None else runs
        return float("inf") if share is None else round(share * self.requests * count, 9)

    def unseen(self, runs: int | None = None) -> float:
        """What timeouts that no request of the runs shows may add to the mean, ms: up to :data:`UNSEEN` of all these requests may wait.

        Parameters
        ----------
        runs : int, optional
            How many runs there are to be, where these are not all.

        Examples
        --------
        >>> found = Outcome("vegas", (2, 1), {(0, seed): {"mean": 4.0} for seed in range(10)}, requests=60, timer_ms=200.0)
        >>> found.unseen(), found.unseen(runs=3)
        (1.0, 3.33...)
        """
        count = self.requests * (len(self.runs) if runs is None else runs)
        return UNSEEN * self.timer_ms / count if count else 0.0

    def tells(self, statistic: str, runs: int | None = None) -> bool:
        """Whether enough requests lie beyond a quantile to claim something of it."""
        return self.beyond(statistic, runs) >= FEWEST_EVENTS and self.beyond(statistic, 1) >= FEWEST_IN_A_RUN

    def guards(self, statistic: str, runs: int | None = None) -> bool:
        """Whether enough requests lie beyond a quantile for it to speak against a change."""
        return self.beyond(statistic, runs) >= FEWEST_GUARDED


def tail_of(outcome: Outcome, runs: int | None = None) -> str | None:
    """The quantile that stands for the tail: the furthest out that enough requests lie beyond; None where no quantile does.

    Examples
    --------
    >>> runs = {(0, seed): {} for seed in range(10)}
    >>> [tail_of(Outcome("cubic", (0,), runs, n)) for n in (400, 60, 10)]
    ['p99', 'p95', None]
    """
    return next((name for name in TAILS if outcome.tells(name, runs)), None)


def together(on_racks: Sequence[Sequence[Outcome]]) -> tuple[Outcome, ...]:
    """Outcomes of the same candidates on several racks as one of each candidate of the first; it has the runs of the racks on which it was run.

    Examples
    --------
    >>> one, other = (Outcome("cubic", (0,), {(0, 1): {"mean": ms}}, 10) for ms in (1.0, 2.0))
    >>> together([[one], [other]])[0].runs
    {(0, 1): {'mean': 1.0}, (1, 1): {'mean': 2.0}}
    """
    by_rack = [{outcome.name: outcome for outcome in rack} for rack in on_racks]
    found = []
    for first in on_racks[0] if on_racks else ():
        runs: dict[Run, Mapping[str, float | None]] = {}
        connections: dict[Run, Mapping[Hashable, float | None]] = {}
        for place, rack in enumerate(by_rack):
            if first.name in rack:
                runs |= {(place, seed): values for (_, seed), values in rack[first.name].runs.items()}
                connections |= {(place, seed): values for (_, seed), values in rack[first.name].connections.items()}
        found.append(replace(first, runs=runs, connections=connections))
    return tuple(found)
