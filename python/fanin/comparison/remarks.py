"""What a reader of a comparison's numbers should know."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fanin.comparison.candidates import listed
from fanin.statistics.ranking import ONE, PLURAL, QUANTILES, RankBy, RankingRow, RankOf

if TYPE_CHECKING:
    from fanin._native import Replay


def about_the_traffic(replay: Replay, rank_by: RankBy, of: RankOf) -> list[str]:
    """A capture that cannot show what the comparison is for."""
    told = []
    count = _count(replay, of)
    needed = round(1 / (1 - QUANTILES[rank_by])) if rank_by in QUANTILES else 1
    if count < needed:
        name = rank_by.replace("_", ".")
        told.append(
            f"{count} {ONE[of] if count == 1 else PLURAL[of]} {'is' if count == 1 else 'are'} few for {name}, which is then the slowest of "
            f"them: it takes {needed} at least; capture for longer, or rank by a lower percentile (--rank-by)"
        )
    if len(replay.servers) > 1:
        return told
    return [
        *told,
        f"one server alone ({replay.servers[0]}) answers {replay.aggregator}: its own link is as slow as the aggregator's, so nothing meets at "
        "the switch, and incast cannot show; capture where the responses of several servers arrive, or name another host with --aggregator",
    ]


def _count(replay: Replay, of: RankOf) -> int:
    counts = {"requests": replay.rounds, "stages": replay.stages, "responses": replay.responses}
    return len(replay.trees()) if of == "trees" else counts[of]


def remarks(ranking: list[RankingRow], seeds: list[int]) -> list[str]:
    """What a reader of the ranking should know."""
    told = []
    if len(seeds) == 1:
        told.append("one seed gives no confidence interval; add seeds (--seeds 10) to see which differences are real")
    unfinished = [row.cc for row in ranking if row.unfinished]
    if unfinished:
        told.append(
            f"not every response was complete when the run ended under {listed(unfinished)}: "
            "means are over completed ones, and a percentile that falls on an unfinished one has no value"
        )
    return told
