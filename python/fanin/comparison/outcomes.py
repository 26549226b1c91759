"""The runs of a comparison as outcomes to be judged."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import TYPE_CHECKING, Any

import polars as pl

from fanin.decision import Outcome
from fanin.decision.judge import MOST_CONNECTIONS
from fanin.statistics.ranking import COUNTED, STATISTICS, column

if TYPE_CHECKING:
    from fanin.settings.candidates import Candidate
    from fanin.statistics.ranking import RankOf


def outcomes(
    runs: pl.DataFrame,
    responses: pl.DataFrame,
    ways: Mapping[str, Candidate],
    now: str,
    of: RankOf,
    goal: str | None = None,
    ended: Callable[[], pl.DataFrame] | None = None,
    timer_ms: Callable[[Candidate], float] = lambda _: 0.0,
) -> tuple[Outcome, ...]:
    """What each candidate's runs on one rack gave.

    Parameters
    ----------
    runs, responses : polars.DataFrame
        As :attr:`fanin.CompareResult.runs` and ``responses``.
    ways : mapping
        The candidates by name; what is run besides (models) is not judged.
    now : str
        The congestion control that the hosts run.
    of : str
        Whose completion times.
    goal : str, optional
        ``fairness`` or ``goodput``, where that is to gain: what costs to compute is only then.
    ended : callable, optional
        Of responses that a request waits for what the request took (:func:`waited`); of all others, and unless given, it is the response's own time.
        Asked only where connections are few enough to be guarded: of a million it is a row for each in each run.
    timer_ms : callable
        The RTO floor of a candidate's hosts.
    """
    guarded = responses["connection"].n_unique() <= MOST_CONNECTIONS
    each = connections(responses if ended is None else waited(responses, ended())) if guarded else {}
    fair = _fairness(responses) if goal == "fairness" else {}
    found = []
    for name, candidate in ways.items():
        mine = runs.filter(runs["cc"] == name)
        if mine.height:
            rows = list(mine.iter_rows(named=True))
            found.append(
                Outcome(
                    name,
                    tuple(int(part) for part in candidate.cost(now)),
                    {(0, row["seed"]): _statistics(row, of) | _more(row, goal, fair) for row in rows},
                    int(rows[0][COUNTED[of][0]]),
                    {(0, row["seed"]): each.get((name, row["seed"]), {}) for row in rows} if each else {},
                    timer_ms(candidate),
                )
            )
    return tuple(found)


def _statistics(row: Mapping[str, object], of: RankOf) -> dict[str, float | None]:
    found: dict[str, float | None] = {}
    for name in STATISTICS:
        value = row[column(name, of)]
        found[name] = float(value) if isinstance(value, int | float) else None
    # The mean is of what was complete; a run that leaves requests behind has none.
    if row[COUNTED[of][1]]:
        found["mean"] = None
    return found


def _more(
    row: Mapping[str, Any], goal: str | None, fair: Mapping[tuple[str, int], float | None]
) -> dict[str, float | None]:
    if goal == "fairness":
        return {"fairness": fair.get((str(row["cc"]), row["seed"]))}
    return {"goodput": row["goodput_bps"]} if goal == "goodput" else {}


def _fairness(responses: pl.DataFrame) -> dict[tuple[str, int], float | None]:
    """Jain's index over the connections' bytes per time spent in responses, by candidate and seed."""
    rates = (
        responses.group_by("cc", "seed", "connection", "server")
        .agg(pl.col("bytes").sum(), pl.col("completion_ms").sum().alias("spent"))
        .filter(pl.col("spent") > 0)
        .select("cc", "seed", rate=pl.col("bytes") / pl.col("spent"))
        .group_by("cc", "seed")
        .agg(index=pl.col("rate").sum() ** 2 / (pl.len() * (pl.col("rate") ** 2).sum()))
    )
    return {(str(cc), seed): index for cc, seed, index in rates.select("cc", "seed", "index").iter_rows()}


def waited(responses: pl.DataFrame, ended: pl.DataFrame) -> pl.DataFrame:
    """Responses, each with the time that its user waited: of a part of a request that is the request's time, however early the part had come.

    With CUBIC the servers that are lucky answer early and one of them times out; where all share the queue the early ones come later, the request
    earlier. No user is worse off.

    Parameters
    ----------
    responses : polars.DataFrame
        As :attr:`fanin.CompareResult.responses`.
    ended : polars.DataFrame
        ``cc``, ``seed``, ``connection``, ``response``, and ``completion_ms`` of a request that waits for it. A response may be part of several.

    Examples
    --------
    >>> each = {"cc": "bbr", "seed": 1, "connection": [0, 1, 2], "response": 0}
    >>> request = pl.DataFrame({"cc": "bbr", "seed": 1, "connection": [0, 1], "response": 0, "completion_ms": 9.0})
    >>> waited(pl.DataFrame({**each, "completion_ms": [2.0, 9.0, 4.0]}), request)["completion_ms"].to_list()
    [9.0, 9.0, 4.0]
    """
    which = ["cc", "seed", "connection", "response"]
    alone = responses.join(ended, on=which, how="anti").select(*which, "completion_ms")
    return pl.concat([ended.select(*which, "completion_ms"), alone])


def connections(responses: pl.DataFrame) -> dict[tuple[str, int], dict[Hashable, float | None]]:
    """By candidate and seed the mean time of each connection."""
    means = responses.group_by("cc", "seed", "connection").agg(
        pl.col("completion_ms").mean(), pl.col("completion_ms").null_count().alias("unfinished")
    )
    found: dict[tuple[str, int], dict[Hashable, float | None]] = {}
    for cc, seed, connection, mean, unfinished in means.sort("cc", "seed", "connection").iter_rows():
        found.setdefault((str(cc), seed), {})[connection] = None if unfinished else mean
    return found
