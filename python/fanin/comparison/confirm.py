"""The best of a comparison and the current setting, once more on another engine."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, cycle, islice
from typing import TYPE_CHECKING, Any

from fanin.comparison.candidates import has
from fanin.decision.judge import MORE_IS_BETTER
from fanin.errors import FaninError
from fanin.kernel import pace
from fanin.runs.engines import engine
from fanin.statistics.ranking import SIGNIFICANT, STATISTICS, column, rank
from fanin.statistics.seeds import paired_ratios
from fanin.words.text import enumeration
from fanin.words.verdict import STATISTIC_NAMES, Confirmation, Verdict, verdict_of

if TYPE_CHECKING:
    from fanin.comparison.result import CompareResult
    from fanin.runs.replay import ReplayJob
    from fanin.statistics.ranking import RankingRow


@dataclass(frozen=True, slots=True)
class Confirmed:
    """What another engine said of a comparison, or why it said nothing; as :class:`fanin.comparison.CompareResult`."""

    confirmation: Confirmation | None = None
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    interrupted: bool = False


@dataclass(frozen=True, slots=True)
class Chosen:
    """What is run again, and what stood before it in the ranking but is not there."""

    names: list[str]
    without: list[str]


def chosen_again(result: CompareResult, count: int, base: ReplayJob) -> Chosen:
    """What is advised, the best besides until there are `count` that the other engine has, and the baseline."""
    names: list[str] = []
    without: list[str] = []
    usual, advised = result.baseline, verdict_of(result).best
    ranked = [*([advised] if advised is not None else []), *(row.cc for row in result.ranking if row.candidate)]
    # The baseline comes besides: where it is what is advised, or the best, it takes no other's place.
    for cc in (cc for cc in dict.fromkeys(ranked) if cc != usual):
        if len(names) == count:
            break
        (names if has(base, cc) else without).append(cc)
    if usual is not None and usual not in names and usual not in without:
        (names if has(base, usual) else without).append(usual)
    return Chosen(names, without)


def confirm(
    result: CompareResult,
    count: int,
    base: ReplayJob,
    again: Callable[[list[str], list[int], str], CompareResult],
    tell: Callable[[str], None],
) -> Confirmed:
    """Run the best again.

    Parameters
    ----------
    result : CompareResult
        Of the simulation.
    count : int
        How many of the best.
    base : ReplayJob
        Rack, traffic and the other engine.
    again : callable
        Compares algorithms under seeds on that engine, with a title for its progress.
    tell : callable
        Told what is about to happen, and how long it takes.

    Returns
    -------
    Confirmed
    """
    picked = chosen_again(result, count, base)
    label = engine(base.engine).label
    if len(picked.names) < 2:
        only = f"{picked.names[0]} alone" if picked.names else "none of them"
        every = enumeration([*picked.names, *picked.without])
        return Confirmed(warnings=(f"not confirmed: of {every}, {label} has {only}, which leaves nothing to compare",))
    # As many as were simulated: with fewer, a difference that is there would not show.
    seeds = list(result.seeds)
    hops = [count for name in picked.names for count in _hops(result, name, len(seeds))]
    tell(f"confirming {enumeration(picked.names)} on {label}: {len(hops)} runs, {pace.estimate(hops)} on this machine")
    began = time.monotonic()
    try:
        there = again(picked.names, seeds, f"confirming ({pace.estimate(hops)})")
    except KeyboardInterrupt:
        return Confirmed(notes=("interrupted: the order is not confirmed",), interrupted=True)
    except FaninError as error:
        return Confirmed(warnings=(f"not confirmed, since no run on {label} succeeded: {error}",))
    there = replace(
        there,
        rank_of_given=result.rank_of_given,
        baseline_given=result.baseline_given,
        baseline_seen=result.baseline_seen,
        baseline_hint=result.baseline_hint,
    )
    if not there.found:
        pace.remember(hops, time.monotonic() - began)
    if there.interrupted or len(there.ranking) < 2:
        note = "the order is not confirmed: the runs on the other engine were not all made"
        return Confirmed(notes=(note,), interrupted=there.interrupted)
    return Confirmed(
        confirmation(result, there, picked.without),
        warnings=tuple(f"{failure.cc} could not be confirmed: {failure.message}" for failure in there.failures),
    )


def _hops(result: CompareResult, cc: str, runs: int) -> list[float]:
    """Packets and ports of so many runs of an algorithm, as simulated; where fewer were, these again."""
    known = result.runs.filter(result.runs["cc"] == cc)["packet_hops"].to_list()
    return [float(count) for count in islice(cycle(known), runs)]


def _among(result: CompareResult, names: Sequence[str]) -> CompareResult:
    """The same comparison of these algorithms alone: what one of them has to beat depends on how many there are."""
    rows = [row for row in result.ranking if row.cc in names]
    ranking = rank(
        result.runs.filter(result.runs["cc"].is_in([row.cc for row in rows])),
        {row.cc: row.needs_ecn for row in rows},
        {row.cc: row.scenario_hash for row in rows},
        result.rank_by,
        result.rank_of,
        candidates=[row.cc for row in rows if row.candidate],
        baseline=result.baseline,
    )
    return replace(result, ranking=ranking)


def confirmation(here: CompareResult, there: CompareResult, without: Sequence[str] = ()) -> Confirmation:
    """Judge one comparison by another of some of its algorithms.

    Parameters
    ----------
    here, there : CompareResult
        The simulation's, and the other engine's.
    without : sequence of str
        Algorithms that the other engine does not have, and that would have been run there.
    """
    mine = verdict_of(here)
    theirs = verdict_of(_as_stated(mine, here, there) or there)
    # Where neither has advice, for a doubt of the capture, the other engine cannot lift that.
    cannot_tell = theirs.kind == "undecided" or mine.kind == theirs.kind == "none"
    names = [row.cc for row in there.ranking]
    holds = (
        cannot_tell
        or theirs.best == mine.best
        or (mine.best in names and theirs.best == verdict_of(_among(here, names)).best)
    )
    simulated = [row.cc for row in here.ranking if row.cc in names]
    turned = inversions(here, there, simulated)
    order = not turned
    seeds = "1 seed" if len(there.seeds) == 1 else f"{len(there.seeds)} seeds"
    said = f"{there.engine_label} over {seeds}"
    if not holds:
        sentence = f"The simulation had said: {mine.headline} What {said} shows is believed instead."
    elif cannot_tell:
        sentence = f"Neither confirmed nor refuted ({said}): {theirs.headline}"
    else:
        sentence = f"Confirmed ({said}): {theirs.headline}"
    if turned:
        pairs = enumeration([f"{a} before {b}" for a, b in turned])
        sentence += f" The orders differ by more than chance: there {pairs}."
    elif names == simulated:
        by = STATISTIC_NAMES[here.rank_by]
        sentence += f" The order by {by} is the same on both: {', '.join(names)}."
    else:
        sentence += f" The orders do not differ by more than chance: {', '.join(names)} there, {', '.join(simulated)} simulated."
    if without:
        verb = "has" if len(without) == 1 else "have"
        sentence += f" {enumeration(list(without))} {verb} no form there and could not be asked."
    by_name = {row.cc: row for row in here.ranking}
    rows = tuple(
        {
            "cc": row.cc,
            "simulated": _numbers(by_name[row.cc], here.rank_by) if row.cc in by_name else None,
            "there": _numbers(row, here.rank_by),
        }
        for row in there.ranking
    )
    return Confirmation(
        engine=there.engine,
        label=there.engine_label,
        holds=holds,
        order=order,
        sentence=sentence,
        rows=rows,
        result=there,
    )


def _as_stated(mine: Verdict, here: CompareResult, there: CompareResult) -> CompareResult | None:
    """Of the other engine what is advised and the current setting alone, where that change gains there too, and ends no later than stated.

    Whether the printed lines do what is said of them is what is asked; that another change would do a little more there is no reason to turn round.
    """
    usual, told = here.baseline, here.decision
    if mine.kind != "change" or mine.best is None or usual is None or told is None:
        return None
    pair = replace(
        _among(there, [usual, mine.best]), outcomes=tuple(o for o in there.outcomes if o.name in (usual, mine.best))
    )
    found, advised = pair.decision, told.of(mine.best)
    if found is None or advised is None or found.best != mine.best:
        return None
    for name in advised.gains:
        stated, got = here.expected(mine.best, name), pair.expected(mine.best, name)
        if name not in MORE_IS_BETTER and (stated is None or got is None or got[0] * got[1] > stated[1] ** 2):
            return None
    return pair


def inversions(here: CompareResult, there: CompareResult, names: Sequence[str]) -> list[tuple[str, str]]:
    """Pairs (first there, second there) that are the other way round here, each by more than chance."""
    statistic = column(here.rank_by, here.rank_of)

    def ratio(of: CompareResult, a: str, b: str) -> tuple[float, float] | None:
        mine, theirs = (of.runs.filter(of.runs["cc"] == cc) for cc in (a, b))
        both = mine.join(theirs, on="seed", suffix="_of_b")
        found = paired_ratios(both[statistic].to_list(), both[f"{statistic}_of_b"].to_list())
        return None if found.change.value is None or found.p is None else (found.change.value, found.p)

    turned = []
    for a, b in combinations(names, 2):
        one, other = ratio(here, a, b), ratio(there, a, b)
        if one is None or other is None or max(one[1], other[1]) >= SIGNIFICANT:
            continue
        if (one[0] < 1) != (other[0] < 1):
            turned.append((a, b) if other[0] < 1 else (b, a))
    return turned


def _numbers(row: RankingRow, by: str) -> dict[str, Any]:
    """What is shown of an algorithm on an engine."""
    against = row.against_baseline.get(by)
    return {
        **{name: row.completion_ms[name].to_dict() for name in STATISTICS},
        "times_baseline": None if against is None else against.change.to_dict(),
        "p": None if against is None else against.p,
        "timeouts": row.timeouts.value,
        "retransmissions": row.retransmissions.value,
        "queue_mean_packets": row.queue_mean_packets.value,
        "rank": row.rank,
        "seeds": len(row.seeds),
    }
