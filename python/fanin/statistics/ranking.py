"""From runs to a ranking: statistics over seeds, order, and which differences are real."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

from fanin.errors import ScenarioError, suggest
from fanin.statistics.seeds import (
    Estimate,
    Paired,
    estimate,
    estimate_positive,
    holm,
    nearest_rank,
    paired_differences,
    paired_ratios,
)

if TYPE_CHECKING:
    import polars as pl

    from fanin._native import Replay

RankBy = Literal["mean", "p50", "p95", "p99", "p99_9"]
"""What a ranking may be by."""

RankOf = Literal["trees", "requests", "stages", "responses"]
"""Whose completion time a ranking may be by: request trees, requests of the application's user, their stages, or responses."""

PREFIX: dict[RankOf, str] = {"trees": "tree_", "requests": "request_", "stages": "stage_", "responses": ""}
"""Of the columns of a run that hold their statistics."""

COUNTED: dict[RankOf, tuple[str, str]] = {
    "trees": ("trees", "unfinished_trees"),
    "requests": ("requests", "unfinished_requests"),
    "stages": ("stages", "unfinished_stages"),
    "responses": ("responses", "unfinished"),
}
"""Columns of a run: how many there were, and how many of them were not complete when it ended."""

ONE: dict[RankOf, str] = {
    "trees": "request tree",
    "requests": "request",
    "stages": "stage of a request",
    "responses": "response",
}
"""What one of them is called."""

PLURAL: dict[RankOf, str] = {
    "trees": "request trees",
    "requests": "requests",
    "stages": "stages of requests",
    "responses": "responses",
}
"""And several."""

STATISTICS: tuple[RankBy, ...] = get_args(RankBy)
"""The statistics of a completion time that every row has."""

QUANTILES: dict[RankBy, float] = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "p99_9": 0.999}
"""Shares of responses that the percentiles stand for."""

SIGNIFICANT = 0.05
"""A difference is claimed when chance makes one as large less often than this."""

METHOD = (
    "Percentiles are nearest-rank over the request trees, requests, stages or responses of one run, an unfinished one counting as longer than any other. "
    "Times are geometric means over seeds, counts arithmetic means, with 95% confidence intervals (Student's t over the per-seed values; "
    "of times, over their logarithms). Two algorithms are compared pair by pair, seed by seed (Student's t over the logarithms of the "
    "ratios), and p values are corrected for the number of comparisons (Holm). A tier holds what cannot so be told from its first row."
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


def known(asked: RankOf | None) -> None:
    """Raise where nothing of that name can be ranked: before a capture is read."""
    if asked is not None and asked not in PREFIX:
        raise ScenarioError(f"`{asked}` cannot be ranked; {suggest(asked, list(PREFIX))}")


def waited_for(replay: Replay, asked: RankOf | None = None, *, alone: bool = False) -> RankOf:
    """Whose completion time counts: what is asked for, else what a user of the service waits for, as far as the capture shows it.

    That is what most responses belong to, the outermost first. Every command that judges a capture's traffic asks here.

    Parameters
    ----------
    replay : Replay
        The traffic of a capture.
    asked : str, optional
        ``trees``, ``requests``, ``stages`` or ``responses``.
    alone : bool
        Each connection is replayed alone, so there is neither.

    Raises
    ------
    fanin.ScenarioError
        When there is nothing of what is asked for.
    """
    if asked is None:
        if 2 * replay.in_trees > replay.responses:
            return "trees"
        return "requests" if 2 * replay.in_rounds > replay.responses else "responses"
    why = "each connection is replayed alone"
    if asked in ("requests", "stages") and (alone or replay.rounds == 0):
        why = why if alone else "no requests of several messages were seen"
        raise ScenarioError(f"command line `--rank-of {asked}`: there are no {asked}: {why}; rank by responses")
    if asked == "trees" and (alone or len(replay.trees()) == 0):
        why = why if alone else "no client's request was seen to wait for other servers' answers"
        raise ScenarioError(
            f"command line `--rank-of trees`: there are no request trees: {why}; rank by requests or responses"
        )
    return asked


@dataclass(frozen=True, slots=True, repr=False)
class RankingRow:
    """One algorithm's place and its numbers, means over seeds.

    Attributes
    ----------
    rank : int
        From 1, by the statistic the comparison was ranked by; candidates and models are counted apart.
    tier : int
        From 1. Rows of one tier cannot be told from its first row by their paired differences.
    cc : str
        Algorithm as given, such as ``dctcp`` or ``gss+newreno``.
    needs_ecn : bool
        It needs the switch to mark (ECN).
    completion_ms : dict of str to Estimate
        Completion time of responses in milliseconds, keys as in :data:`STATISTICS`. The mean is over completed responses.
    timeouts, retransmissions, drops, marks : Estimate
        Per run: retransmission timeouts and retransmitted segments of the servers, packets dropped and packets marked at any port.
    goodput_bps : Estimate
        Response payload delivered per second, from the first release to the last delivery.
    queue_mean_packets, queue_p99_packets, queue_max_packets : Estimate
        Queue of the port to the aggregator, over time, the packet in transmission included.
    response_ms : dict of str to Estimate
        Completion time of responses.
    request_ms : dict of str to Estimate
        Completion time of requests, from the first message to the slowest answer; no values where there are none.
    stage_ms : dict of str to Estimate
        Completion time of their stages: of what left together inside a request, from the first message to the slowest answer.
    tree_ms : dict of str to Estimate
        Completion time of request trees, from a client's request to the aggregator's answer, which waited for others; no values where there are none.
    trees, unfinished_trees : int
        Request trees per run, and those that were not complete when a run ended, all seeds together.
    requests, unfinished_requests : int
        Requests per run, and those that were not complete when a run ended, all seeds together.
    stages, unfinished_stages : int
        The same of their stages.
    responses : int
        Responses per run.
    unfinished : int
        Responses that were not complete when a run ended, all seeds together.
    seeds : tuple of int
        Seeds that this row rests on.
    scenario_hash : str
        Identifies capture, rack, settings and algorithm; equal hashes and seeds give equal numbers.
    candidate : bool
        It can be the answer: hosts can run it, or it was asked for by name. What is not is a model, shown for comparison.
    alike : tuple of str
        Algorithms whose every number is the same to three digits; they have no row of their own.
    against_baseline : dict of str to Paired
        Paired differences from the baseline, by statistic (times as ratios) and ``timeouts`` (a difference); empty for the baseline itself.
    p : float or None
        Of the difference from the baseline in the ranking's statistic, corrected for the number of candidates (Holm).
    """

    rank: int
    tier: int
    cc: str
    needs_ecn: bool
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
    candidate: bool = True
    alike: tuple[str, ...] = ()
    against_baseline: dict[str, Paired] = field(default_factory=dict)
    p: float | None = None
    response_ms: dict[str, Estimate] = field(default_factory=dict)
    request_ms: dict[str, Estimate] = field(default_factory=dict)
    requests: int = 0
    unfinished_requests: int = 0
    tree_ms: dict[str, Estimate] = field(default_factory=dict)
    trees: int = 0
    unfinished_trees: int = 0
    stage_ms: dict[str, Estimate] = field(default_factory=dict)
    stages: int = 0
    unfinished_stages: int = 0

    def count(self, of: RankOf) -> int:
        """Request trees, requests, stages or responses per run."""
        return int(getattr(self, COUNTED[of][0]))

    def __repr__(self) -> str:
        from fanin.words.text import with_interval

        return f"<RankingRow {self.rank}: {self.cc}, p99 {with_interval(self.completion_ms['p99'])} ms, {len(self.seeds)} seeds>"

    def times(self, of: RankOf) -> dict[str, Estimate]:
        """Completion times of request trees, requests, stages or responses, by statistic."""
        found = {
            "trees": self.tree_ms,
            "requests": self.request_ms,
            "stages": self.stage_ms,
            "responses": self.response_ms,
        }[of]
        return {name: found.get(name, Estimate(None)) for name in STATISTICS}

    def to_dict(self) -> dict[str, Any]:
        """As it stands in JSON."""
        return {
            "rank": self.rank,
            "tier": self.tier,
            "cc": self.cc,
            "needs_ecn": self.needs_ecn,
            "completion_ms": {name: self.completion_ms[name].to_dict() for name in STATISTICS},
            "response_ms": {name: estimate.to_dict() for name, estimate in self.times("responses").items()},
            "request_ms": {name: estimate.to_dict() for name, estimate in self.times("requests").items()},
            "stage_ms": {name: estimate.to_dict() for name, estimate in self.times("stages").items()},
            "tree_ms": {name: estimate.to_dict() for name, estimate in self.times("trees").items()},
            **{name: getattr(self, name).to_dict() for name in COUNTS},
            "requests": self.requests,
            "unfinished_requests": self.unfinished_requests,
            "stages": self.stages,
            "unfinished_stages": self.unfinished_stages,
            "trees": self.trees,
            "unfinished_trees": self.unfinished_trees,
            "responses": self.responses,
            "unfinished": self.unfinished,
            "seeds": list(self.seeds),
            "scenario_hash": self.scenario_hash,
            "candidate": self.candidate,
            "alike": list(self.alike),
            "against_baseline": {name: paired.to_dict() for name, paired in self.against_baseline.items()},
            "p": self.p,
        }


def completion_statistics(completion_ms: Sequence[float | None] | pl.Series) -> dict[str, float | None]:
    """The statistics of one run.

    Parameters
    ----------
    completion_ms : sequence of float or None, or polars.Series
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
    values = completion_ms if isinstance(completion_ms, Sequence) else completion_ms.to_list()
    done = sorted(v for v in values if v is not None)
    total = len(completion_ms)
    statistics: dict[str, float | None] = {"mean": sum(done) / len(done) if done else None}
    for name, q in QUANTILES.items():
        statistics[name] = nearest_rank(done, total, q)
    return statistics


def _row(
    mine: pl.DataFrame,
    of: RankOf,
    cc: str,
    *,
    needs_ecn: bool,
    scenario: str,
    candidate: bool,
    against: dict[str, Paired],
) -> RankingRow:
    """The row of one algorithm, from its runs; its place comes later."""
    times = {what: _times(mine, what) for what in PREFIX}
    counts = {name: _count(mine[name].to_list()) for name in COUNTS}
    return RankingRow(
        rank=0,
        tier=0,
        cc=cc,
        needs_ecn=needs_ecn,
        completion_ms=times[of],
        timeouts=counts["timeouts"],
        retransmissions=counts["retransmissions"],
        drops=counts["drops"],
        marks=counts["marks"],
        goodput_bps=counts["goodput_bps"],
        queue_mean_packets=counts["queue_mean_packets"],
        queue_p99_packets=counts["queue_p99_packets"],
        queue_max_packets=counts["queue_max_packets"],
        responses=int(mine["responses"][0]),
        unfinished=int(mine["unfinished"].sum()),
        seeds=tuple(mine["seed"].to_list()),
        scenario_hash=scenario,
        candidate=candidate,
        against_baseline=against,
        response_ms=times["responses"],
        request_ms=times["requests"],
        stage_ms=times["stages"],
        stages=int(mine["stages"][0]),
        unfinished_stages=int(mine["unfinished_stages"].sum()),
        requests=int(mine["requests"][0]),
        unfinished_requests=int(mine["unfinished_requests"].sum()),
        tree_ms=times["trees"],
        trees=int(mine["trees"][0]),
        unfinished_trees=int(mine["unfinished_trees"].sum()),
    )


def rank(
    runs: pl.DataFrame,
    needs_ecn: Mapping[str, bool],
    hashes: Mapping[str, str],
    by: RankBy,
    of: RankOf = "responses",
    *,
    candidates: Collection[str] | None = None,
    baseline: str | None = None,
) -> list[RankingRow]:
    """Rank algorithms by their runs, candidates first.

    Parameters
    ----------
    runs : polars.DataFrame
        As :attr:`fanin.CompareResult.runs`.
    needs_ecn : mapping
        Per algorithm, whether the switch must mark.
    hashes : mapping
        Per algorithm, the scenario's hash.
    by : str
        One of :data:`STATISTICS`.
    of : str
        Whose completion time: ``trees``, ``requests``, ``stages`` or ``responses``. Equal values are ordered by the mean, then as in the registry (D2TCP
        without deadlines is DCTCP, and DCTCP is what to name), then by name; what has no value comes last.
    candidates : collection of str, optional
        What can be the answer; everything unless given.
    baseline : str, optional
        What every other is compared with.
    """
    from fanin.registries import entries

    places = {entry.name: number for number, entry in enumerate(entries("cc"))}
    samples = {cc: runs.filter(runs["cc"] == cc).sort("seed") for cc in runs["cc"].unique(maintain_order=True)}
    rows = []
    for cc, mine in samples.items():
        against = {} if baseline in {None, cc} or baseline not in samples else _against(mine, samples[baseline], of)
        candidate = candidates is None or cc in candidates
        rows.append(
            _row(mine, of, cc, needs_ecn=needs_ecn[cc], scenario=hashes[cc], candidate=candidate, against=against)
        )
    rows.sort(
        key=lambda row: (
            not row.candidate,
            _or_last(row.completion_ms[by].value),
            _or_last(row.completion_ms["mean"].value),
            places.get(row.cc, len(places)),
            row.cc,
        )
    )
    rows = list(_merged(rows, baseline))
    ranked: list[RankingRow] = []
    for part in (True, False):
        mine_only = [row for row in rows if row.candidate is part]
        corrected = holm([row.against_baseline[by].p if row.against_baseline else None for row in mine_only])
        tiers = _tiers([samples[row.cc] for row in mine_only], column(by, of))
        ranked += [
            replace(row, rank=place, tier=tier, p=p)
            for place, (row, tier, p) in enumerate(zip(mine_only, tiers, corrected, strict=True), start=1)
        ]
    return ranked


def _count(values: Sequence[float | None]) -> Estimate:
    """A mean of counts; there is no count below zero, whatever a symmetric interval says."""
    found = estimate(values)
    return found if found.low is None else replace(found, low=max(0.0, found.low))


def _or_last(value: float | None) -> tuple[bool, float]:
    return (value is None, value or 0.0)


def _paired_by_seed(mine: pl.DataFrame, theirs: pl.DataFrame, statistic: str) -> tuple[list[Any], list[Any]]:
    """The values of two algorithms under the seeds that both ran."""
    both = mine.join(theirs, on="seed", how="inner", maintain_order="left", suffix="_theirs")
    return both[statistic].to_list(), both[f"{statistic}_theirs"].to_list()


def _times(mine: pl.DataFrame, of: RankOf) -> dict[str, Estimate]:
    return {name: estimate_positive(mine[column(name, of)].to_list()) for name in STATISTICS}


def column(name: RankBy, of: RankOf) -> str:
    """The column of a run with a statistic of the completion time of request trees, rounds or responses."""
    return f"{PREFIX[of]}{name}"


def _against(mine: pl.DataFrame, baseline: pl.DataFrame, of: RankOf) -> dict[str, Paired]:
    times: dict[str, Paired] = {
        name: paired_ratios(*_paired_by_seed(mine, baseline, column(name, of))) for name in STATISTICS
    }
    return {**times, "timeouts": paired_differences(*_paired_by_seed(mine, baseline, "timeouts"))}


def _tiers(rows: Sequence[pl.DataFrame], statistic: str) -> Iterator[int]:
    """The tier of each row: a new one begins at the first that differs from the first row of the tier before."""
    tier, first = 0, 0
    corrected: list[float | None] = []
    for place, row in enumerate(rows):
        p = corrected[place - first - 1] if place else 0.0
        if p is not None and p < SIGNIFICANT:
            tier, first = tier + 1, place
            corrected = holm([paired_ratios(*_paired_by_seed(row, r, statistic)).p for r in rows[place + 1 :]])
        yield tier


def _merged(rows: Sequence[RankingRow], baseline: str | None) -> Iterator[RankingRow]:
    """Rows whose every number is the same to three digits are one, named by the baseline or by the first of them."""
    groups: dict[tuple[Any, ...], list[RankingRow]] = {}
    for row in rows:
        groups.setdefault((row.candidate, *_three_digits(row)), []).append(row)
    for group in groups.values():
        kept = next((row for row in group if row.cc == baseline), group[0])
        yield replace(kept, alike=tuple(row.cc for row in group if row is not kept))


def _three_digits(row: RankingRow) -> tuple[str, ...]:
    estimates = [
        *(row.completion_ms[name] for name in STATISTICS),
        row.timeouts,
        row.retransmissions,
        row.drops,
        row.marks,
    ]
    return tuple("-" if e.value is None else f"{e.value:.3g}" for e in estimates)
