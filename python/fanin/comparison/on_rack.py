"""One comparison on one rack: the runs, what they came to, and what is to be doubted of them."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from fanin import _native
from fanin.capture import closing, waiting
from fanin.capture.measured import (
    NOT_AS_MEASURED,
    NS_PER_MS,
    another_baseline,
    disagreement,
    measured,
    shortest_rtt,
    waited,
)
from fanin.capture.vantage import about_the_tap
from fanin.capture.vantage import pauses as _pauses
from fanin.comparison import doubts
from fanin.comparison.candidates import Choice, quickack_note, rto_floors_ms
from fanin.comparison.columns import KEPT
from fanin.comparison.narrowing import Runs
from fanin.comparison.outcomes import outcomes
from fanin.comparison.remarks import about_the_traffic, remarks
from fanin.comparison.replays import run_all
from fanin.comparison.result import Alone, CaptureSummary, CompareResult
from fanin.disk.files import output_folder
from fanin.process.progress import Progress, silent
from fanin.runs.engines import engine as find_engine
from fanin.runs.job import RunWarning, kind_of
from fanin.runs.replay import ReplayJob, Traffic, rack_of
from fanin.statistics.ranking import RankBy, RankOf, rank
from fanin.statistics.seeds import extremes

if TYPE_CHECKING:
    from fanin._native import Replay
    from fanin.capture.measured import Measured, Today
    from fanin.capture.traffic import TrainsResult
    from fanin.comparison.replays import Outcome
    from fanin.decision.judge import Goal
    from fanin.runs.store import Store
    from fanin.statistics.ranking import RankingRow

ALIKE = 0.1
"""A replay of connections alone that differs by more than this share is told of."""

ROUNDS_DRAWN = 30
"""Rounds in the report's picture; more are too thin to read."""


def compared(
    base: ReplayJob,
    found: TrainsResult,
    choice: Choice,
    *,
    store: Store | None,
    shown_today: Today | None,
    given: bool,
    calibrated: bool,
    goal: Goal | None,
    seeds: list[int],
    rank_by: RankBy,
    rank_of: RankOf,
    independent: bool,
    progress: Callable[[str, int], Progress],
    traced: int | None,
    pcap: str | Path | None = None,
    pcap_at: Sequence[str] = (),
    label: str = "replaying",
    narrow: bool = False,
    doubted: bool = True,
) -> CompareResult:
    """One comparison on one rack; what names the rack is left to the caller.

    With `narrow` candidates come and go after a few runs (:meth:`fanin.comparison.narrowing.Runs.narrowed`). Without `doubted` no other traffic that
    the capture cannot tell from this one is replayed: what is said of the traffic is said once, of the first rack.
    """
    replay = base.traffic.replay
    seen = measured(found, replay.aggregator, waited(found, replay, rank_of))
    groups = [] if independent else waiting.groups(replay)
    plain = [name for name in choice.names if name not in choice.settings]
    notes = choice.remarks + quickack_note(rack_of(base.rack, base.settings), plain)
    alone_said = ["each connection is replayed alone, as asked for"]
    notes += alone_said if independent else [*waiting.sentences(groups), *closing.sentences(replay)]
    started = time.monotonic()
    with output_folder(pcap, "--pcap") if pcap is not None else nullcontext(None) as scratch:
        captures = None if scratch is None else (scratch, pcap_at)
        runs_of = Runs(base, seeds, traced, captures, progress, label, store)
        if narrow:
            outcome, choice, told = runs_of.narrowed(choice, rank_of, goal, seen.told())
            notes += told
        else:
            outcome = runs_of.of(choice)
    elapsed = time.monotonic() - started
    frames: dict[str, Any] = {name: outcome.frame(name) for name in KEPT}
    ranking = _ranked(frames["runs"], choice, outcome, rank_by, rank_of)
    usual = next((row for row in ranking if row.cc == choice.baseline), None)
    doubted = doubted and base.engine == "sim" and not outcome.interrupted
    warnings: list[str] = []
    if usual is not None:
        guessed = not given and shown_today is None and not calibrated
        others = [row for row in ranking if row.cc not in choice.settings] if guessed else []
        asked = seeds if doubted and not independent else []
        warnings = _of_the_baseline(base, found, seen, usual, others, frames, asked, store, calibrated=calibrated)
    warnings += doubts.about_the_capture(replay, independent=independent)
    warnings += [*outcome.warnings, *about_the_traffic(replay, rank_by, rank_of)]
    notes += remarks(ranking, seeds)
    alone = None
    if replay.rounds and ranking and doubted:
        alone = _alone(base, choice.baseline or ranking[0].cc, seeds[0], frames["responses"], store)
        notes += [alone.sentence] if alone is not None else []
    ways = {name: way for name, way in choice.ways().items() if name in choice.candidates}
    ended = None if rank_of == "responses" else outcome.ended
    first = choice.baseline or choice.names[0]
    return CompareResult(
        **frames,
        **_of_the_replay(base, found, outcome, seeds, traced),
        ranking=ranking,
        rank_by=rank_by,
        rank_of=rank_of,
        independent=independent,
        groups=groups,
        alone=alone,
        elapsed_s=elapsed,
        notes=notes,
        warnings=warnings,
        baseline=usual.cc if usual is not None else None,
        goal=goal,
        ways=ways,
        outcomes=outcomes(frames["runs"], frames["responses"], ways, first, rank_of, goal, ended, rto_floors_ms(base)),
        baseline_given=given,
        baseline_seen=shown_today.why if shown_today and usual is not None and usual.cc == shown_today.cc else None,
        baseline_hint=shown_today.why if shown_today and shown_today.cc is None else None,
        measured=seen,
    )


def _of_the_replay(
    base: ReplayJob, found: TrainsResult, outcome: Outcome, seeds: list[int], traced: int | None
) -> dict[str, Any]:
    """What a result says of capture, engine and runs; what names the rack is left to the caller."""
    replay = base.traffic.replay
    return {
        "captured_rounds": found.round_times(replay.aggregator, most=ROUNDS_DRAWN) if replay.rounds else [],
        "pauses": _pauses(replay),
        "capture": _summary(found, replay, aggregator_found=True),
        "trains": _trains_to(found, replay),
        "seeds": tuple(seeds),
        "trace_seed": traced if traced is not None else seeds[0],
        "rack_path": "",
        "rack_text": "",
        "command": "",
        "version": _native.VERSION,
        "engine": base.engine,
        "engine_label": find_engine(base.engine).label,
        "failures": outcome.failures,
        "missing": outcome.missing,
        "port": outcome.port,
        "scenario_hash": _one_hash(outcome.hashes),
        "interrupted": outcome.interrupted,
        "found": outcome.found,
    }


def _ranked(runs: pl.DataFrame, choice: Choice, outcome: Outcome, rank_by: RankBy, rank_of: RankOf) -> list[RankingRow]:
    if not runs.height:
        return []
    needs_ecn = {name: _native.needs_ecn(way.cc) for name, way in choice.ways().items()}
    hashes, candidates = outcome.hashes, choice.candidates
    return rank(runs, needs_ecn, hashes, rank_by, rank_of, candidates=candidates, baseline=choice.baseline)


def _of_the_baseline(
    base: ReplayJob,
    found: TrainsResult,
    seen: Measured,
    usual: RankingRow,
    others: list[RankingRow],
    frames: Mapping[str, pl.DataFrame],
    seeds: list[int],
    store: Store | None,
    *,
    calibrated: bool,
) -> list[str]:
    """What is to be doubted of the replayed baseline, `usual`; any of `others` may be what the hosts run, and `seeds` are replayed otherwise."""
    gaps = disagreement(seen, usual, _shortest_rtt(frames["flows"], usual.cc)) + another_baseline(seen, usual, others)
    if seeds:
        gaps = _doubted(base, gaps, found, usual.cc, frames, seeds, store)
    if calibrated:
        # The calibration has held the replay against the capture.
        gaps = [gap for gap in gaps if kind_of(gap) not in (NOT_AS_MEASURED, doubts.NOT_AS_CAPTURED)]
    mine = frames["responses"].lazy().filter(pl.col("cc") == usual.cc)
    mine = mine.select("connection", "response", "completion_ms")
    return gaps + about_the_tap(found, base.traffic.replay, mine.collect())


def _shortest_rtt(flows: pl.DataFrame, cc: str) -> float | None:
    """The shortest round trip of the simulated senders, in ms."""
    found = extremes(flows.filter(pl.col("cc") == cc)["min_rtt_ms"].to_list())
    return found[0] if found else None


def _alone(base: ReplayJob, cc: str, seed: int, responses: pl.DataFrame, store: Store | None) -> Alone | None:
    """What the replay would say if every connection were replayed for itself, where that is something else."""
    # Seed 0 is never asked for, so nothing is traced.
    single_job = replace(base, traffic=Traffic(base.traffic.replay.independent()))
    alone = run_all(single_job, [cc], [seed], 0, None, silent, store=store).frame("responses")
    medians = [frame.filter(cc=cc, seed=seed)["completion_ms"].median() for frame in (responses, alone)]
    together, single = (value if isinstance(value, float) else 0.0 for value in medians)
    if not together or not single or abs(single / together - 1) <= ALIKE:
        return None
    return Alone(cc=cc, together_ms=together, alone_ms=single)


def _doubted(
    base: ReplayJob,
    gaps: list[str],
    found: TrainsResult,
    cc: str,
    frames: Mapping[str, pl.DataFrame],
    seeds: Sequence[int],
    store: Store | None,
) -> list[str]:
    """What is said of the replayed baseline, `gaps`, and where it is not the capture or other traffic that the capture shows as well gives another."""
    replay = base.traffic.replay
    towards = found.towards(replay.aggregator).select("connection", rtt=shortest_rtt())
    # Polars multiplies by the inverse of a constant, which is another number in its last digit.
    half_rtt = towards.select(
        "connection", way=pl.Series([(rtt or 0) / (2 * NS_PER_MS) for rtt in towards["rtt"]], dtype=pl.Float64)
    )
    few = list(seeds)[: doubts.SEEDS]

    def replayed(frames: Mapping[str, pl.DataFrame], seeds: Sequence[int]) -> doubts.Replayed:
        return doubts.Replayed(*(frames[name] for name in ("responses", "rounds", "runs"))).of(cc, seeds)

    def again(other: Replay | None, settings: Mapping[str, str]) -> doubts.Replayed:
        traffic = base.traffic if other is None else Traffic(other)
        job = replace(base, traffic=traffic, settings=(*base.settings, *settings.items()))
        # Seed 0 is never asked for, so nothing is traced.
        outcome = run_all(job, [cc], few, 0, None, silent, store=store)
        return replayed({name: outcome.frame(name) for name in ("responses", "rounds", "runs")}, few)

    # Nothing of these is held while others run: they are millions of rows.
    apart = doubts.against_the_capture(replay, cc, replayed(frames, seeds), half_rtt)
    if apart and any(kind_of(gap) == NOT_AS_MEASURED for gap in gaps):
        # The same, with the likeliest reason.
        gaps = [RunWarning(gap, doubts.NOT_AS_CAPTURED, cc) if kind_of(gap) == NOT_AS_MEASURED else gap for gap in gaps]
        apart = []
    return gaps + apart + doubts.against_others(replay, cc, replayed(frames, few), again)


def _summary(found: TrainsResult, replay: Replay, *, aggregator_found: bool) -> CaptureSummary:
    s = found.summary
    warnings: list[str] = [RunWarning(w["message"], w["kind"]) for w in found.warnings]
    if found.partial is not None:
        warnings.append(found.partial["message"])
    return CaptureSummary(
        file=s["file"],
        packets=s["packets"],
        tcp_packets=s["tcp_packets"],
        connections=s["connections"],
        payload_bytes=s["payload_bytes"],
        duration_s=s["duration_ns"] / 1e9,
        aggregator=replay.aggregator,
        aggregator_found=aggregator_found,
        servers=tuple(replay.servers),
        responses=replay.responses,
        warnings=tuple(warnings),
        fitness=found.fitness,
    )


def _trains_to(found: TrainsResult, replay: Replay) -> pl.DataFrame:
    """The packet trains towards the aggregator, whichever side opened the connection."""
    towards = found.towards(replay.aggregator).select("connection", "asks")
    return (
        found.trains.join(towards, on="connection", how="inner", maintain_order="left")
        .filter(pl.col("asks") == (pl.col("direction") == "to_client"))
        .select("connection", "start_ms", "end_ms", "packets", "bytes", "retransmitted_bytes", "gap_before_ms")
    )


def _one_hash(hashes: Mapping[str, str]) -> str:
    """Identifies several scenarios at once, whatever their order."""
    return hashlib.sha256("\n".join(f"{cc} {h}" for cc, h in sorted(hashes.items())).encode()).hexdigest()
