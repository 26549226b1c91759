"""The runs of a comparison, on every core, and what is kept of each."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from fanin import _native
from fanin.comparison import columns
from fanin.comparison.columns import FLOWS, PACKETS, QUEUE, RUNS, WINDOW
from fanin.confined import apart
from fanin.disk.files import file_name
from fanin.errors import AlgorithmError, EngineError, FaninError
from fanin.process.progress import Progress
from fanin.runs.engines import Captures, engine
from fanin.runs.job import RunWarning
from fanin.runs.kept import run_kept
from fanin.runs.replay import ReplayJob, beside_each_other, rack_of
from fanin.runs.tables import Frames
from fanin.settings.candidates import Candidate
from fanin.simulation import Failure, all_failed, sentence
from fanin.statistics.frames import PS_PER_MS, fitted, frame
from fanin.statistics.ranking import completion_statistics
from fanin.statistics.seeds import extremes

if TYPE_CHECKING:
    from fanin._native import Replayed, Run, Watch
    from fanin.runs.store import Store


@dataclass(slots=True)
class Outcome:
    """What the runs of a comparison left."""

    frames: dict[tuple[str, int], dict[str, pl.DataFrame]]
    """By name and seed."""
    failures: list[Failure]
    missing: list[tuple[str, int]]
    interrupted: bool
    port: str
    hashes: dict[str, str]
    warnings: list[str]
    found: int = 0
    """Runs that were in the store."""
    parts: pl.DataFrame = field(default_factory=pl.DataFrame)
    """Which ``round`` waits for a ``response`` of a ``connection``."""

    def ended(self) -> pl.DataFrame:
        """Of every run's responses that a request waits for, what the request took."""
        rounds = self.frame("rounds").select("cc", "seed", "round", "completion_ms")
        return rounds.join(self.parts, on="round", how="inner").drop("round")

    def frame(self, name: str) -> pl.DataFrame:
        """One of :data:`columns.KEPT` over all runs, its columns in the documented order."""
        parts = [frames[name] for frames in self.frames.values() if name in frames]
        return pl.concat(parts) if parts else pl.DataFrame(schema=columns.KEPT[name])

    def plus(self, more: Outcome) -> Outcome:
        """These runs and others, each name's together."""
        names = list(dict.fromkeys(name for one in (self, more) for name, _ in one.frames))
        keys = [key for name in names for one in (self, more) for key in one.frames if key[0] == name]
        failed = {failure.cc: failure for failure in (*self.failures, *more.failures)}
        return replace(
            self,
            frames={key: self.frames.get(key) or more.frames[key] for key in keys},
            failures=list(failed.values()),
            missing=self.missing + more.missing,
            interrupted=self.interrupted or more.interrupted,
            hashes=self.hashes | more.hashes,
            warnings=list(dict.fromkeys([*self.warnings, *more.warnings])),
            found=self.found + more.found,
        )


@dataclass(frozen=True, slots=True)
class MeasuredReplay:
    """A replay of which is kept what a comparison, and advice, need."""

    job: ReplayJob

    def key(self) -> str:
        """Names what is kept."""
        return self.job.key(["measured", measure_digest()])

    @apart
    def run(self, watch: Watch | None = None, captures: Captures | None = None) -> Frames:
        """Run and measure."""
        made, run = self.job.simulated(watch, captures)
        frames, long = measured(self.job, made, run), run.packet_hops >= LONG
        if long:
            del made, run
            _native.give_back()
        return frames


@dataclass(frozen=True, slots=True)
class _Captured:
    """A replay that is recorded to pcap files as it runs, so it is run whatever the store has."""

    name: str
    replay: MeasuredReplay
    folder: Path
    places: tuple[str, ...]

    def key(self) -> str:
        return ""

    def run(self, watch: Watch | None = None) -> Frames:
        folder = self.folder / file_name(self.name)
        folder.mkdir()
        return self.replay.run(watch, Captures(folder, self.places))


LONG = 300_000
"""Packet-hops from which a run's memory is given back to the system when it is over; shorter runs go on with it."""


@cache
def measure_digest() -> str:
    """Names how a run is measured: a change of it may change any number."""
    from fanin.statistics import frames, ranking
    from fanin.statistics import seeds as stats

    files = [__file__, frames.__file__, ranking.__file__, stats.__file__, columns.__file__]
    return hashlib.sha256(b"".join(Path(str(file)).read_bytes() for file in files)).hexdigest()[:16]


def run_all(
    base: ReplayJob,
    algorithms: list[str],
    seeds: list[int],
    traced: int | None,
    captures: tuple[Path, Sequence[str]] | None,
    progress: Callable[[str, int], Progress],
    label: str = "replaying",
    store: Store | None = None,
    ways: Mapping[str, Candidate] | None = None,
) -> Outcome:
    """Run every algorithm under every seed, on every core, except what the store has.

    `base` says rack, traffic and engine; `captures` is the folder for pcap files, and of what; `ways` what a name stands for that is no algorithm
    as it is.
    """
    way = {name: (ways or {}).get(name) or Candidate(name) for name in algorithms}
    checked = _checked(base, way, seeds[0])
    failed, hashes = checked.failed, checked.hashes
    # What reading the traffic took is of no use to the runs, nor what these took to the report.
    _native.give_back()
    # Seed by seed, so that after an interruption every algorithm has run as often as the others.
    work = [(name, seed) for seed in seeds for name in hashes]
    done: dict[tuple[str, int], Frames] = {}
    typed = columns.Typed()

    def finished(number: int, result: Frames | BaseException) -> None:
        name, seed = work[number]
        if isinstance(result, AlgorithmError | EngineError):
            failed.setdefault(name, result)
            if len(failed) == len(algorithms):
                raise all_failed(failed)
        elif isinstance(result, BaseException):
            raise result
        else:
            done[name, seed] = typed.of(_named(result, name) if way[name].settings else result)

    jobs = [_replay(base, way[name], seed, traced=seed == traced) for name, seed in work]

    kept = partial(run_kept, progress=progress, executor=beside_each_other(base), durable=base.engine != "sim")
    whole, found = True, 0
    if captures is not None:
        recorded = [number for number, (_, seed) in enumerate(work) if seed == traced]
        places = tuple(captures[1])
        asked = [_Captured(work[number][0], jobs[number], captures[0], places) for number in recorded]
        _, whole = kept(
            asked, lambda at, result: finished(recorded[at], result), store=None, title=f"{label} and recording"
        )
    if whole:
        left = [number for number, which in enumerate(work) if which not in done and which[0] not in failed]
        found, whole = kept(
            [jobs[number] for number in left], lambda at, result: finished(left[at], result), store=store, title=label
        )
    _native.give_back()
    if not whole and not done:
        raise KeyboardInterrupt
    ended = [key for name in hashes if name not in failed for key in ((name, s) for s in seeds) if key in done]
    if captures is not None:
        # Of a run that failed or was stopped there is a part of a capture.
        for name in hashes:
            if (name, traced) not in ended:
                shutil.rmtree(captures[0] / file_name(name), ignore_errors=True)
    return Outcome(
        frames={key: done[key] for key in ended},
        failures=[Failure(name, sentence(name, failed[name])) for name in algorithms if name in failed],
        missing=[key for key in work if key not in done and key[0] not in failed],
        interrupted=not whole,
        port=checked.port,
        hashes=hashes,
        warnings=list(dict.fromkeys(checked.warnings)),
        found=found,
        parts=checked.parts,
    )


@dataclass(frozen=True, slots=True)
class _Checked:
    """What is known of the candidates on a rack before any has run."""

    hashes: dict[str, str]
    failed: dict[str, BaseException]
    warnings: list[str]
    port: str
    parts: pl.DataFrame


def _checked(base: ReplayJob, way: Mapping[str, Candidate], seed: int) -> _Checked:
    """What is wrong with one candidate on this rack is known before the others have run."""
    failed: dict[str, BaseException] = {}
    hashes: dict[str, str] = {}
    warnings: list[str] = []
    replay, on = base.traffic.replay, engine(base.engine)
    for name, how in way.items():
        try:
            rack = rack_of(base.rack, (*base.settings, *how.settings))
            hashes[name], told = rack.check(replay, how.cc)
            plan = rack.plan(replay, how.cc, seed)
            on.check(plan.plan)
            made = plan.replayed
            del plan
            warnings += [RunWarning(message, kind, cc) for kind, cc, message in told]
        except FaninError as error:
            failed[name] = error
            hashes.pop(name, None)
    if not hashes:
        raise all_failed(failed)
    return _Checked(hashes, failed, warnings, made.ports[made.port], _parts(made))


def _replay(base: ReplayJob, how: Candidate, seed: int, *, traced: bool) -> MeasuredReplay:
    return MeasuredReplay(replace(base, cc=how.cc, settings=(*base.settings, *how.settings), seed=seed, trace=traced))


def _parts(made: Replayed) -> pl.DataFrame:
    """Which request waits for which response: an answer is there with the last of its messages."""
    answers = frame(made.rounds()).filter(pl.col("answer") == 1).select("round", last="message")
    return frame(made.responses()).join(answers, on="last", how="inner").select("connection", "response", "round")


def _named(frames: Frames, name: str) -> Frames:
    """Frames under the candidate's name, which holds its settings; a store has the algorithm's."""
    return {
        kind: table.with_columns(cc=pl.lit(name)) if "cc" in table.columns else table for kind, table in frames.items()
    }


def measured(job: ReplayJob, made: Replayed, run: Run) -> Frames:
    """What is kept of one run: by responses, requests, their stages, request trees, flows and as one row, and its traces if the job asks for them."""
    responses = frame(made.response_times(run, job.cc, job.traffic.replay.servers))
    # First, while there is little else: a trace takes most before it is cut to what is kept.
    traces = _traces(job, made, run, responses) if job.trace else {}
    rounds, stages = frame(made.round_times(run, job.cc)), frame(made.stage_times(run, job.cc))
    trees = frame(made.tree_times(run, job.cc))
    # Of the flows that carry responses: what the servers did.
    found = job.frames(made, run, {"flows": FLOWS, "ports": PORTS}, carrying=True)
    flows, ports = found["flows"][list(FLOWS)], found["ports"]
    aggregator = ports.row(made.port, named=True)
    released, done = extremes(responses["release_ms"]), extremes(responses["done_ms"])
    busy_ms = done[1] - released[0] if released and done else 0.0
    finished = responses["done_ms"].is_not_null()
    delivered = int(responses["bytes"].filter(finished).sum())
    row = {
        "cc": job.cc,
        "seed": job.seed,
        **completion_statistics(responses["completion_ms"]),
        "timeouts": int(flows["timeouts"].sum()),
        "retransmissions": int(flows["retransmissions"].sum()),
        "drops": int(ports["drops"].sum()),
        "marks": int(ports["marks"].sum()),
        "goodput_bps": delivered * 8e3 / busy_ms if busy_ms > 0 else None,
        "queue_mean_packets": aggregator["mean_queue_packets"],
        "queue_p99_packets": float(aggregator["p99_queue_packets"]),
        "queue_max_packets": float(aggregator["max_queue_packets"]),
        "responses": responses.height,
        "unfinished": responses.height - int(finished.sum()),
        **{f"request_{name}": value for name, value in completion_statistics(rounds["completion_ms"]).items()},
        "requests": rounds.height,
        "unfinished_requests": rounds["completion_ms"].null_count(),
        **{f"stage_{name}": value for name, value in completion_statistics(stages["completion_ms"]).items()},
        "stages": stages.height,
        "unfinished_stages": stages["completion_ms"].null_count(),
        **{f"tree_{name}": value for name, value in completion_statistics(trees["completion_ms"]).items()},
        "trees": trees.height,
        "unfinished_trees": trees["completion_ms"].null_count(),
        "end_ms": run.end_ps / PS_PER_MS,
        "packet_hops": run.packet_hops,
    }
    return {
        "responses": responses,
        "rounds": rounds,
        "stages": stages,
        "trees": trees,
        "flows": flows,
        "runs": pl.DataFrame([row], schema=columns.written(RUNS)),
        **traces,
    }


def _traces(job: ReplayJob, made: Replayed, run: Run, responses: pl.DataFrame) -> Frames:
    """What is kept of the packets of the slowest responses, of the queue and of the windows."""
    connection = frame(made.connections())["connection"]
    slowest = _slowest(responses)
    packets = _packets_of_the_slowest(run, slowest, connection)
    most = _native.TRACED_ROWS
    queue = job.frames(made, run, {"queue": QUEUE}, most)["queue"].select(*QUEUE)
    queue = _in_short(queue, "packets", [], slowest)
    return {"packets": packets, "queue": queue, "window": _window(job, made, run, connection, slowest)}


def _window(job: ReplayJob, made: Replayed, run: Run, connection: pl.Series, slowest: pl.DataFrame) -> pl.DataFrame:
    """What is kept of the windows. Which rows is known by three columns: all of a million rows take 0.3 GB."""
    told = job.frames(made, run, {"window": ("flow", "time_ms", "cwnd")}, _native.TRACED_ROWS)["window"]
    told = told.with_columns(connection.gather(told["flow"])).with_row_index("place").drop_nulls("connection")
    told = _in_short(told.select("cc", "place", "connection", "time_ms", "cwnd"), "cwnd", ["connection"], slowest)
    for name in ("ssthresh", "in_flight", "srtt_ms", "state"):
        column = job.frames(made, run, {"window": (name,)}, _native.TRACED_ROWS)["window"].get_column(name)
        told = told.with_columns(column.gather(told["place"]))
    return told.select(*WINDOW)


SHOWN_ROWS = 50_000
"""Rows of a trace beyond which its envelope is kept: pictures show some thousand, and a comparison holds a trace of every candidate."""


def _in_short(trace: pl.DataFrame, value: str, by: list[str], slowest: pl.DataFrame) -> pl.DataFrame:
    """Every row while the slowest responses waited, which are shown step by step, and the envelope of the rest."""
    if trace.height <= SHOWN_ROWS:
        return trace
    numbered = trace.with_row_index("row")
    waited = [pl.col("time_ms").is_between(begin, end) for begin, end in slowest.select("release_ms", "done_ms").rows()]
    near = numbered.filter(pl.any_horizontal(waited))["row"] if waited else numbered["row"].clear()
    shown = fitted(numbered, "time_ms", value, by=by, rows=SHOWN_ROWS)["row"]
    return trace[pl.concat([near, shown]).unique().sort()]


def _slowest(responses: pl.DataFrame) -> pl.DataFrame:
    return (
        responses.drop_nulls("completion_ms")
        .sort("completion_ms", descending=True, maintain_order=True)
        .head(_native.SLOWEST)
    )


PORTS = ("drops", "marks", "mean_queue_packets", "p99_queue_packets", "max_queue_packets")
"""Columns of ports that a row is made from."""


def _packets_of_the_slowest(run: Run, slowest: pl.DataFrame, connection: pl.Series) -> pl.DataFrame:
    """The packet events of the slowest responses: what explains them, and little beside all that passed the port."""
    parts = [
        frame(run.packets_of(flow, row["release_ms"], row["done_ms"])).with_columns(
            cc=pl.lit(row["cc"]), connection=row["connection"]
        )
        for row in slowest.iter_rows(named=True)
        for flow in (connection == row["connection"]).arg_true()
    ]
    if not parts:
        return pl.DataFrame(schema=columns.written(PACKETS))
    return (
        pl.concat(parts)
        .unique(maintain_order=True)
        .select(*(pl.col(name).cast(kind) for name, kind in columns.written(PACKETS).items()))
    )
