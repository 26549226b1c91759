"""From runs to a ranking: statistics over seeds, order, ties."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

from fanin.stats import Estimate, estimate, nearest_rank

if TYPE_CHECKING:
    import polars as pl

RankBy = Literal["mean", "p50", "p95", "p99", "p99_9"]
"""What a ranking may be by."""

STATISTICS: tuple[RankBy, ...] = get_args(RankBy)
"""The statistics of a completion time that every row has."""

QUANTILES: dict[RankBy, float] = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "p99_9": 0.999}
"""Shares of responses that the percentiles stand for."""

METHOD = (
    "Percentiles are nearest-rank over the responses of one run, an unfinished response counting as longer than any finished one; "
    "values are means over seeds with a 95% confidence interval (Student's t over the per-seed values); "
    "algorithms whose interval overlaps that of the best of a tier share the tier."
)
"""How the numbers came about, for people."""

COUNTS = (
    "timeouts",
    "retransmissions",
    "drops",
    "marks",
    "goodput_bps",
    "queue_mean_packets",
    "queue_p99_packets",
    "queue_max_packets",
)
"""The other columns of a run that the ranking averages."""


@dataclass(frozen=True, slots=True)
class RankingRow:
    """One algorithm's place and its numbers, means over seeds.

    Attributes
    ----------
    rank : int
        From 1, by the statistic the comparison was ranked by.
    tier : int
        From 1. Rows of one tier cannot be told apart: their confidence interval overlaps that of the tier's best row.
    cc : str
        Algorithm as given, such as ``dctcp`` or ``gss+newreno``.
    needs_switch : bool
        It needs the switch to mark (ECN).
    completion_ms : dict of str to Estimate
        Completion time of responses in milliseconds, keys as in :data:`STATISTICS`. The mean is over completed responses.
    timeouts, retransmissions, drops, marks : Estimate
        Per run: retransmission timeouts and retransmitted segments of the servers, packets dropped and packets marked at any port.
    goodput_bps : Estimate
        Response payload delivered per second, from the first release to the last delivery.
    queue_mean_packets, queue_p99_packets, queue_max_packets : Estimate
        Queue of the port to the aggregator, over time, the packet in transmission included.
    responses : int
        Responses per run.
    unfinished : int
        Responses that were not complete when a run ended, all seeds together.
    seeds : tuple of int
        Seeds that this row rests on.
    scenario_hash : str
        Identifies capture, rack, settings and algorithm; equal hashes and seeds give equal numbers.
    """

    rank: int
    tier: int
    cc: str
    needs_switch: bool
    completion_ms: dict[str, Estimate]
    timeouts: Estimate
    retransmissions: Estimate
    drops: Estimate
    marks: Estimate
    goodput_bps: Estimate
    queue_mean_packets: Estimate
    queue_p99_packets: Estimate
    responses: int
    unfinished: int
    seeds: tuple[int, ...]
    queue_max_packets: Estimate = field(default=Estimate(None))
    scenario_hash: str = ""

    def to_dict(self) -> dict[str, Any]:
        """As it stands in JSON."""
        return {
            "rank": self.rank,
            "tier": self.tier,
            "cc": self.cc,
            "needs_switch": self.needs_switch,
            "completion_ms": {name: self.completion_ms[name].to_dict() for name in STATISTICS},
            **{name: getattr(self, name).to_dict() for name in COUNTS},
            "responses": self.responses,
            "unfinished": self.unfinished,
            "seeds": list(self.seeds),
            "scenario_hash": self.scenario_hash,
        }


def completion_statistics(completion_ms: Sequence[float | None]) -> dict[str, float | None]:
    """The statistics of one run.

    Parameters
    ----------
    completion_ms : sequence of float or None
        Completion time of each response, None where it was not completed.

    Returns
    -------
    dict
        Keys as in :data:`STATISTICS`.

    Examples
    --------
    >>> completion_statistics([1.0, 2.0, 3.0, None])
    {'mean': 2.0, 'p50': 2.0, 'p95': None, 'p99': None, 'p99_9': None}
    """
    done = sorted(v for v in completion_ms if v is not None)
    total = len(completion_ms)
    statistics: dict[str, float | None] = {"mean": sum(done) / len(done) if done else None}
    for name, q in QUANTILES.items():
        statistics[name] = nearest_rank(done, total, q)
    return statistics


def rank(
    runs: pl.DataFrame, needs_switch: Mapping[str, bool], hashes: Mapping[str, str], by: RankBy
) -> list[RankingRow]:
    """Rank algorithms by their runs.

    Parameters
    ----------
    runs : polars.DataFrame
        As :attr:`fanin.CompareResult.runs`.
    needs_switch : mapping
        Per algorithm, whether the switch must mark.
    hashes : mapping
        Per algorithm, the scenario's hash.
    by : str
        One of :data:`STATISTICS`. Equal values are ordered by the mean, then as in the registry (D2TCP without deadlines is DCTCP, and
        DCTCP is what to name), then by name; what has no value comes last.
    """
    from fanin.registries import entries

    places = {entry.name: number for number, entry in enumerate(entries("cc"))}
    rows = []
    for cc in runs["cc"].unique(maintain_order=True):
        mine = runs.filter(runs["cc"] == cc).sort("seed")
        rows.append(
            RankingRow(
                rank=0,
                tier=0,
                cc=cc,
                needs_switch=needs_switch[cc],
                completion_ms={name: estimate(mine[name].to_list()) for name in STATISTICS},
                **{name: estimate(mine[name].to_list()) for name in COUNTS},
                responses=int(mine["responses"][0]),
                unfinished=int(mine["unfinished"].sum()),
                seeds=tuple(mine["seed"].to_list()),
                scenario_hash=hashes[cc],
            )
        )
    rows.sort(
        key=lambda row: (
            _or_last(row.completion_ms[by].value),
            _or_last(row.completion_ms["mean"].value),
            places.get(row.cc, len(places)),
            row.cc,
        )
    )
    return list(_with_tiers(rows, by))


def _or_last(value: float | None) -> tuple[bool, float]:
    return (value is None, value or 0.0)


def _with_tiers(rows: Iterable[RankingRow], by: RankBy) -> Iterable[RankingRow]:
    tier, best = 0, None
    for place, row in enumerate(rows, start=1):
        mine = row.completion_ms[by]
        if best is None or not overlap(best, mine):
            tier, best = tier + 1, mine
        yield replace(row, rank=place, tier=tier)


def overlap(a: Estimate, b: Estimate) -> bool:
    """Whether two estimates cannot be told apart.

    Examples
    --------
    >>> overlap(Estimate(2.0, 1.0, 3.0), Estimate(4.0, 2.5, 5.5))
    True
    >>> overlap(Estimate(2.0), Estimate(4.0))
    False
    """
    if a.value is None or b.value is None:
        return a.value is None and b.value is None
    a_low, a_high = (a.value, a.value) if a.low is None or a.high is None else (a.low, a.high)
    b_low, b_high = (b.value, b.value) if b.low is None or b.high is None else (b.low, b.high)
    return a_low <= b_high and b_low <= a_high
