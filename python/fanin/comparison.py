"""Replay a capture's traffic under several TCPs on a rack, and rank them.

`compare` is the main job: :func:`compare` runs it and returns a :class:`CompareResult`, which prints, serialises to the JSON of
``fanin compare --json`` and is all that the report is written from.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from fanin import _native
from fanin.errors import AlgorithmError, CaptureError, EngineError, FaninError, ScenarioError
from fanin.files import made_folder, output_folder, shown, write_parquet
from fanin.frames import frame
from fanin.progress import Progress, on_every_core, silent
from fanin.ranking import METHOD, QUANTILES, STATISTICS, RankBy, RankingRow, completion_statistics, rank
from fanin.registries import stand_alone_algorithms
from fanin.simulation import Failure, all_failed, chosen_algorithms, chosen_seeds, file_name, sentence, tables, toml
from fanin.stats import extremes
from fanin.traffic import trains as read_trains

if TYPE_CHECKING:
    from fanin._native import Rack, Replay, Watch
    from fanin.traffic import TrainsResult


@dataclass(frozen=True, slots=True)
class CaptureSummary:
    """What was in the capture.

    Attributes
    ----------
    file : str
        As given.
    packets, tcp_packets, connections, payload_bytes : int
        Over the whole file.
    duration_s : float
        From the first to the last packet.
    aggregator : str
        Address of the host that the responses go to.
    aggregator_found : bool
        It was found (True) or given by the user (False).
    servers : tuple of str
        Addresses of the hosts that send.
    responses : int
        Responses that are replayed.
    warnings : tuple of str
        What a reader of the numbers should know.
    """

    file: str
    packets: int
    tcp_packets: int
    connections: int
    payload_bytes: int
    duration_s: float
    aggregator: str
    aggregator_found: bool
    servers: tuple[str, ...]
    responses: int
    warnings: tuple[str, ...] = ()


@dataclass(slots=True)
class CompareResult:
    """Everything a comparison found; the report and the JSON are written from this alone.

    Attributes
    ----------
    ranking : list of RankingRow
        Best first.
    rank_by : str
        The statistic it is ranked by.
    failures : list of Failure
        Algorithms that could not be run.
    missing : list of (str, int)
        (algorithm, seed) that were not run because the comparison was interrupted; empty otherwise.
    capture : CaptureSummary
        What was in the capture.
    responses : polars.DataFrame
        One row per algorithm, seed and response. Columns: ``cc`` (String), ``seed`` (UInt64), ``connection`` (UInt32, number in the
        capture), ``server`` (String, address), ``response`` (UInt32, number within the connection), ``bytes`` (UInt64), ``release_ms`` (Float64,
        when the server's application wrote it, from the start of the run), ``done_ms`` (Float64, last byte delivered; null: unfinished),
        ``completion_ms`` (Float64, ``done_ms - release_ms``; null: unfinished), ``timeouts`` (UInt32).
    flows : polars.DataFrame
        One row per algorithm, seed and response flow. Columns: ``cc``, ``seed``, ``flow`` (UInt32), ``connection`` (UInt32), ``src``,
        ``dst`` (String), ``segments``, ``bytes_sent``, ``bytes_delivered``, ``retransmissions``, ``timeouts``, ``drops``, ``marks`` (UInt64),
        ``max_cwnd`` (Float64, packets), ``min_rtt_ms`` (Float64).
    runs : polars.DataFrame
        One row per algorithm and seed: ``cc``, ``seed``, ``mean``, ``p50``, ``p95``, ``p99``, ``p99_9`` (Float64, ms), ``timeouts``,
        ``retransmissions``, ``drops``, ``marks`` (UInt64), ``goodput_bps``, ``queue_mean_packets``, ``queue_p99_packets``, ``queue_max_packets`` (Float64),
        ``responses``, ``unfinished`` (UInt64), ``end_ms`` (Float64), ``packet_hops`` (UInt64).
    queue : polars.DataFrame
        Queue of the port to the aggregator in the run of `trace_seed`, one row per change (:func:`fanin.frames.thin` makes it fit a
        picture): ``cc``, ``time_ms`` (Float64), ``packets`` (UInt32), ``bytes`` (UInt64).
    window : polars.DataFrame
        Senders in the run of `trace_seed`: ``cc``, ``connection`` (UInt32), ``time_ms`` (Float64), ``cwnd``, ``ssthresh`` (Float64,
        packets; ssthresh is null while infinite), ``in_flight`` (Float64, packets), ``srtt_ms`` (Float64), ``state`` (String: open, disorder, cwr,
        recovery, loss).
    trains : polars.DataFrame
        The capture's packet trains towards the aggregator: ``connection`` (UInt32), ``start_ms``, ``end_ms`` (Float64), ``packets``,
        ``bytes``, ``retransmitted_bytes`` (UInt64), ``gap_before_ms`` (Float64, null for the first of a connection).
    seeds : tuple of int
        Seeds asked for.
    trace_seed : int
        Seed of `queue` and `window`.
    port : str
        Name of the port to the aggregator.
    rack_path, rack_text : str
        The rack file, as given and as read.
    settings : dict of str to str
        Values that were changed on top of the file, by key.
    scenario_hash : str
        Identifies capture, rack and settings; equal hashes and seeds give equal numbers.
    command : str
        The command that makes it again.
    version : str
        Version of fanin.
    elapsed_s : float
        Wall-clock time of the runs.
    interrupted : bool
        It was stopped before the end.
    notes : list of str
        Remarks on how the numbers came about, for print.
    warnings : list of str
        Why the numbers may be worth little: what the rack allows and probably does not mean, and a capture that meets in no queue.
    """

    ranking: list[RankingRow]
    rank_by: RankBy
    failures: list[Failure]
    missing: list[tuple[str, int]]
    capture: CaptureSummary
    responses: pl.DataFrame
    flows: pl.DataFrame
    runs: pl.DataFrame
    queue: pl.DataFrame
    window: pl.DataFrame
    trains: pl.DataFrame
    seeds: tuple[int, ...]
    trace_seed: int
    port: str
    rack_path: str
    rack_text: str
    scenario_hash: str
    command: str
    version: str
    elapsed_s: float
    interrupted: bool = False
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    settings: dict[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The object that ``fanin compare --json`` prints (schema: docs/json/compare.schema.json)."""
        capture = self.capture
        return {
            "version": self.version,
            "command": self.command,
            "capture": {
                "file": capture.file,
                "packets": capture.packets,
                "tcp_packets": capture.tcp_packets,
                "connections": capture.connections,
                "payload_bytes": capture.payload_bytes,
                "duration_s": capture.duration_s,
                "aggregator": capture.aggregator,
                "aggregator_found": capture.aggregator_found,
                "servers": list(capture.servers),
                "responses": capture.responses,
                "warnings": list(capture.warnings),
            },
            "rack": {"file": self.rack_path, "text": self.rack_text, "settings": self.settings},
            "port": self.port,
            "scenario_hash": self.scenario_hash,
            "seeds": list(self.seeds),
            "trace_seed": self.trace_seed,
            "rank_by": self.rank_by,
            "method": METHOD,
            "ranking": [row.to_dict() for row in self.ranking],
            "failures": [{"cc": f.cc, "message": f.message} for f in self.failures],
            "missing": [{"cc": cc, "seed": seed} for cc, seed in self.missing],
            "interrupted": self.interrupted,
            "warnings": list(self.warnings),
            "notes": list(self.notes),
        }

    def write_files(self, folder: str | Path) -> None:
        """Write ``report.html``, ``compare.json``, ``responses.parquet`` and ``runs.parquet`` to a folder, which is made if it is missing."""
        from fanin import report

        folder = made_folder(folder)

        folder.joinpath("compare.json").write_text(json.dumps(self.to_dict(), allow_nan=False) + "\n")
        write_parquet(self.responses, folder / "responses.parquet")
        write_parquet(self.runs, folder / "runs.parquet")
        report.write(self, folder / "report.html")


def compare(
    capture: str | Path,
    rack: str | Path,
    *,
    cc: str | Sequence[str] | None = None,
    seeds: int | Sequence[int] = 5,
    rank_by: RankBy = "p99",
    trace_seed: int | None = None,
    aggregator: str | None = None,
    gap: str | None = None,
    settings: Mapping[str, object] | None = None,
    pcap: str | Path | None = None,
    pcap_at: Sequence[str] = (),
    command: str | None = None,
    progress: Callable[[str, int], Progress] = silent,
) -> CompareResult:
    """Replay the traffic of a capture under several TCPs on a rack, and rank them.

    Each response is sent as its application sent it: think times, service times and pauses are kept, and what waited for a delivery in the
    capture waits for it in the replay.

    Parameters
    ----------
    capture : path
        pcap or pcapng, plain or gzip.
    rack : path
        The rack (TOML): link rate, delay, buffer, K.
    cc : str or sequence of str, optional
        Algorithms; all that stand alone unless given, without those that need a marking switch when the rack has none.
    seeds : int or sequence of int
        How many seeds, counted from 1, or which.
    rank_by : {"mean", "p50", "p95", "p99", "p99_9"}
        Completion-time statistic to rank by.
    trace_seed : int, optional
        The seed whose queue and windows are kept; the first unless given.
    aggregator : str, optional
        Address of the host that the responses go to; the likeliest unless given.
    gap : str, optional
        Time without data that ends a packet train, such as ``"1ms"``; see :func:`fanin.trains`.
    settings : mapping, optional
        Values by key, such as ``{"rack.buffer": "250p"}``, on top of the rack file.
    pcap : path, optional
        A folder for pcap files of what hosts and ports saw in the run of `trace_seed`, in a folder of each algorithm's name.
    pcap_at : sequence of str, optional
        Hosts (``client`` is the aggregator, servers have their addresses), ports (``switch->client``) and switches to write files of, with
        ``*`` for anything; everything unless given.
    command : str, optional
        What to state as the command that does the same.
    progress : callable, optional
        Makes the progress display; see :mod:`fanin.progress`.

    Returns
    -------
    CompareResult
        After Ctrl-C, of what was done until then; `CompareResult.missing` says what was not.

    Raises
    ------
    fanin.CaptureError
        When the capture cannot be used.
    fanin.ScenarioError
        When the rack or an option is wrong.
    fanin.AlgorithmError
        When there is no such algorithm, or none that was asked for could be run; otherwise `CompareResult.failures` says which could not.

    Examples
    --------
    >>> import fanin
    >>> result = fanin.compare(
    ...     "data/captures/http_onoff_8to1.pcap.gz", "examples/rack.toml", cc=["newreno", "dctcp"], seeds=1
    ... )
    >>> sorted(row.cc for row in result.ranking)
    ['dctcp', 'newreno']
    >>> result.responses.filter(cc="dctcp").height
    2000
    """
    if rank_by not in STATISTICS:
        raise ScenarioError(f"rank_by is `{rank_by}`; it must be one of {', '.join(STATISTICS)}")
    numbers = chosen_seeds(seeds)
    traced = numbers[0] if trace_seed is None else trace_seed
    if traced not in numbers:
        raise ScenarioError(
            f"command line `--trace-seed {traced}`: only seeds that are run can be traced: {_listed(numbers)}"
        )
    if pcap_at and pcap is None:
        raise ScenarioError("command line `--pcap-at`: it says where, and `--pcap DIR` into which folder; give both")
    changes = [(key, toml(value)) for key, value in (settings or {}).items()]
    the_rack = _native.Rack.from_file(rack, changes)
    algorithms, notes = _algorithms(cc, the_rack)
    notes += _prompt_ack_note(algorithms)
    needs_switch = {name: _native.needs_switch(name) for name in algorithms}

    found = read_trains(capture, gap=gap, progress=progress)
    replay = found.workload(aggregator)
    if replay.responses == 0:
        raise CaptureError(
            f"{capture}: no response with payload goes to {replay.aggregator}, so there is nothing to replay; name another host with --aggregator"
        )

    started = time.monotonic()
    with output_folder(pcap, "--pcap") if pcap is not None else nullcontext(None) as scratch:
        captures = None if scratch is None else (scratch, pcap_at)
        outcome = _run_all(the_rack, replay, algorithms, numbers, traced, captures, progress)
    elapsed = time.monotonic() - started
    runs = outcome.frame("runs", RUNS)
    ranking = rank(runs, needs_switch, outcome.hashes, rank_by) if runs.height else []
    notes += _remarks(ranking, numbers)
    return CompareResult(
        ranking=ranking,
        rank_by=rank_by,
        failures=outcome.failures,
        missing=outcome.missing,
        capture=_summary(found, replay, aggregator_found=aggregator is None),
        responses=outcome.frame("responses", RESPONSES),
        flows=outcome.frame("flows", FLOWS),
        runs=runs,
        queue=outcome.frame("queue", QUEUE),
        window=outcome.frame("window", WINDOW),
        trains=_trains_to(found, replay),
        seeds=tuple(numbers),
        trace_seed=traced,
        port=outcome.port,
        rack_path=shown(str(rack)),
        rack_text=Path(rack).read_text(encoding="utf-8"),
        scenario_hash=_one_hash(outcome.hashes),
        command=shown(command or f"fanin compare {capture} --rack {rack} --seeds {len(numbers)}"),
        version=_native.VERSION,
        elapsed_s=elapsed,
        interrupted=outcome.interrupted,
        notes=notes,
        warnings=outcome.warnings + _about_the_traffic(replay, rank_by),
        settings=dict(changes),
    )


RUNS: dict[str, pl.DataType | type[pl.DataType]] = {
    "cc": pl.String,
    "seed": pl.UInt64,
    **dict.fromkeys(STATISTICS, pl.Float64),
    **dict.fromkeys(("timeouts", "retransmissions", "drops", "marks"), pl.UInt64),
    **dict.fromkeys(("goodput_bps", "queue_mean_packets", "queue_p99_packets", "queue_max_packets"), pl.Float64),
    **dict.fromkeys(("responses", "unfinished"), pl.UInt64),
    "end_ms": pl.Float64,
    "packet_hops": pl.UInt64,
}
"""Columns of :attr:`CompareResult.runs`."""

RESPONSES: dict[str, pl.DataType | type[pl.DataType]] = {
    "cc": pl.String,
    "seed": pl.UInt64,
    "connection": pl.UInt32,
    "server": pl.String,
    "response": pl.UInt32,
    "bytes": pl.UInt64,
    "release_ms": pl.Float64,
    "done_ms": pl.Float64,
    "completion_ms": pl.Float64,
    "timeouts": pl.UInt32,
}
"""Columns of :attr:`CompareResult.responses`."""

FLOWS: dict[str, pl.DataType | type[pl.DataType]] = {
    "cc": pl.String,
    "seed": pl.UInt64,
    "flow": pl.UInt32,
    "connection": pl.UInt32,
    "src": pl.String,
    "dst": pl.String,
    **dict.fromkeys(
        ("segments", "bytes_sent", "bytes_delivered", "retransmissions", "timeouts", "drops", "marks"), pl.UInt64
    ),
    "max_cwnd": pl.Float64,
    "min_rtt_ms": pl.Float64,
}
"""Columns of :attr:`CompareResult.flows`."""

QUEUE: dict[str, pl.DataType | type[pl.DataType]] = {
    "cc": pl.String,
    "time_ms": pl.Float64,
    "packets": pl.UInt32,
    "bytes": pl.UInt64,
}
"""Columns of :attr:`CompareResult.queue`."""

WINDOW: dict[str, pl.DataType | type[pl.DataType]] = {
    "cc": pl.String,
    "connection": pl.UInt32,
    "time_ms": pl.Float64,
    **dict.fromkeys(("cwnd", "ssthresh", "in_flight", "srtt_ms"), pl.Float64),
    "state": pl.String,
}
"""Columns of :attr:`CompareResult.window`."""


@dataclass(slots=True)
class _Outcome:
    """What the runs of a comparison left."""

    frames: list[dict[str, pl.DataFrame]]
    failures: list[Failure]
    missing: list[tuple[str, int]]
    interrupted: bool
    port: str
    hashes: dict[str, str]
    warnings: list[str]

    def frame(self, name: str, schema: Mapping[str, Any]) -> pl.DataFrame:
        """One frame over all runs, its columns in the documented order."""
        parts = [frames[name].select(*schema) for frames in self.frames if name in frames]
        return pl.concat(parts) if parts else pl.DataFrame(schema=dict(schema))


def _algorithms(asked: str | Sequence[str] | None, rack: Rack) -> tuple[list[str], list[str]]:
    """The algorithms to compare, and remarks on the choice."""
    marks = rack.marks()
    if asked is not None:
        names = chosen_algorithms(asked)
        blind = [name for name in names if _native.needs_switch(name) and not marks]
        if blind:
            return names, [
                f"{rack.file} has no `rack.mark`, so the switch marks nothing and {_listed(blind)} cannot act on marks"
            ]
        return names, []
    names = stand_alone_algorithms()
    if marks:
        return names, []
    left_out = [name for name in names if _native.needs_switch(name)]
    note = f"left out, since {rack.file} has no `rack.mark` and they need a switch that marks: {_listed(left_out)}"
    return [name for name in names if name not in left_out], [note] if left_out else []


def _prompt_ack_note(names: Sequence[str]) -> list[str]:
    """Which of the algorithms were simulated with a receiver that acknowledges every packet."""
    prompt = [name for name in names if _native.needs_prompt_acks(name)]
    if not prompt:
        return []
    verbs = "lives on round-trip times and was" if len(prompt) == 1 else "live on round-trip times and were"
    them = "it" if len(prompt) == 1 else "them"
    return [
        f"{_listed(prompt)} {verbs} simulated with receivers that acknowledge every packet, as Linux does "
        f"after `ip route change ... quickack 1`; `stack.prompt_acks = false` in the rack shows {them} behind delayed ACKs"
    ]


def _run_all(
    rack: Rack,
    replay: Replay,
    algorithms: list[str],
    seeds: list[int],
    traced: int,
    captures: tuple[Path, Sequence[str]] | None,
    progress: Callable[[str, int], Progress],
) -> _Outcome:
    """Run every algorithm under every seed, on every core. `captures` is the folder for pcap files, and of what."""
    # What is wrong with one algorithm on this rack is known before the others have run.
    failed: dict[str, BaseException] = {}
    hashes: dict[str, str] = {}
    warnings: list[str] = []
    for name in algorithms:
        try:
            hashes[name], told = rack.check(replay, name)
            warnings += told
        except FaninError as error:
            failed[name] = error
    if not hashes:
        raise all_failed(failed)
    # Seed by seed, so that after an interruption every algorithm has run as often as the others.
    work = [(name, seed) for seed in seeds for name in hashes]
    done: dict[tuple[str, int], dict[str, pl.DataFrame]] = {}

    def finished(number: int, result: dict[str, pl.DataFrame] | BaseException) -> None:
        name, seed = work[number]
        if isinstance(result, AlgorithmError | EngineError):
            failed.setdefault(name, result)
            if len(failed) == len(algorithms):
                raise all_failed(failed)
        elif isinstance(result, BaseException):
            raise result
        else:
            done[name, seed] = result

    with progress("replaying", len(work)) as bar:
        jobs = [_job(rack, replay, name, seed, seed == traced, captures) for name, seed in work]
        whole = on_every_core(jobs, bar, finished)
    if not whole and not done:
        raise KeyboardInterrupt
    kept = [key for name in hashes if name not in failed for key in ((name, s) for s in seeds) if key in done]
    plan = rack.plan(replay, next(iter(hashes)), seeds[0])
    if captures is not None:
        # Of a run that failed or was stopped there is a part of a capture.
        for name in hashes:
            if (name, traced) not in kept:
                shutil.rmtree(captures[0] / file_name(name), ignore_errors=True)
    return _Outcome(
        frames=[done[key] for key in kept],
        failures=[Failure(name, sentence(name, failed[name])) for name in algorithms if name in failed],
        missing=[key for key in work if key not in done and key[0] not in failed],
        interrupted=not whole,
        port=plan.plan.ports[plan.port],
        hashes=hashes,
        warnings=list(dict.fromkeys(warnings)),
    )


def _job(
    rack: Rack, replay: Replay, cc: str, seed: int, trace: bool, captures: tuple[Path, Sequence[str]] | None
) -> Callable[[Watch], dict[str, pl.DataFrame]]:
    def work(watch: Watch) -> dict[str, pl.DataFrame]:
        made = rack.plan(replay, cc, seed, trace)
        if trace and captures is not None:
            folder = captures[0] / file_name(cc)
            folder.mkdir()
            run, _ = _native.run_with_pcap(made.plan, folder, list(captures[1]), watch)
        else:
            run = made.plan.run(watch)
        results = tables(run, made.plan, cc, seed)
        servers = dict(enumerate(replay.servers))
        where = frame(made.responses()).with_columns(pl.col("server").replace_strict(servers, return_dtype=pl.String))
        return _measured(results, where, made.plan.ports[made.port], trace)

    return work


def _measured(results: dict[str, pl.DataFrame], where: pl.DataFrame, port: str, trace: bool) -> dict[str, pl.DataFrame]:
    """What the comparison keeps of one run. `where` says which messages and which flow each response of the capture became."""
    messages = results["messages"]
    # A response may be written in several pieces, which are consecutive messages.
    until = messages["timeouts"].cast(pl.UInt32).cum_sum()
    first, last = messages[where["first"]], messages[where["last"]]
    responses = where.with_columns(
        first["cc"],
        first["seed"],
        first["release_ms"],
        last["done_ms"],
        timeouts=until[where["last"]] - until[where["first"]] + messages["timeouts"][where["first"]],
    ).with_columns(completion_ms=pl.col("done_ms") - pl.col("release_ms"))

    connection = where.select("flow", "connection").unique("flow", maintain_order=True)
    flows = results["flows"].join(connection, on="flow", maintain_order="left")
    ports = results["ports"]
    aggregator = ports.row(by_predicate=pl.col("port") == port, named=True)
    run = results["runs"].row(0, named=True)
    released, done = extremes(responses["release_ms"]), extremes(responses["done_ms"])
    busy_ms = done[1] - released[0] if released and done else 0.0
    finished = responses.filter(pl.col("done_ms").is_not_null())
    row = {
        "cc": run["cc"],
        "seed": run["seed"],
        **completion_statistics(responses["completion_ms"].to_list()),
        "timeouts": int(flows["timeouts"].sum()),
        "retransmissions": int(flows["retransmissions"].sum()),
        "drops": int(ports["drops"].sum()),
        "marks": int(ports["marks"].sum()),
        "goodput_bps": int(finished["bytes"].sum()) * 8e3 / busy_ms if busy_ms > 0 else None,
        "queue_mean_packets": aggregator["mean_queue_packets"],
        "queue_p99_packets": float(aggregator["p99_queue_packets"]),
        "queue_max_packets": float(aggregator["max_queue_packets"]),
        "responses": responses.height,
        "unfinished": responses.height - finished.height,
        "end_ms": run["end_ms"],
        "packet_hops": run["packet_hops"],
    }
    kept = {"responses": responses, "flows": flows, "runs": pl.DataFrame([row], schema=RUNS)}
    if trace:
        kept["queue"] = results["queue"]
        kept["window"] = results["window"].join(connection, on="flow", maintain_order="left")
    return kept


def _summary(found: TrainsResult, replay: Replay, *, aggregator_found: bool) -> CaptureSummary:
    s = found.summary
    warnings = [w["message"] for w in found.warnings]
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
    )


def _trains_to(found: TrainsResult, replay: Replay) -> pl.DataFrame:
    """The packet trains towards the aggregator, whichever side opened the connection."""
    clients = [c["connection"] for c in found.connections if c["client_ip"] == replay.aggregator]
    servers = [c["connection"] for c in found.connections if c["server_ip"] == replay.aggregator]
    return found.trains.filter(
        ((pl.col("direction") == "to_client") & pl.col("connection").is_in(clients))
        | ((pl.col("direction") == "to_server") & pl.col("connection").is_in(servers))
    ).select("connection", "start_ms", "end_ms", "packets", "bytes", "retransmitted_bytes", "gap_before_ms")


def _about_the_traffic(replay: Replay, rank_by: RankBy) -> list[str]:
    """A capture that cannot show what the comparison is for."""
    told = []
    needed = round(1 / (1 - QUANTILES[rank_by])) if rank_by in QUANTILES else 1
    if replay.responses < needed:
        name = rank_by.replace("_", ".")
        told.append(
            f"{replay.responses} {'response is' if replay.responses == 1 else 'responses are'} few for {name}, which is then the slowest of "
            f"them: it takes {needed} at least; capture for longer, or rank by a lower percentile (--rank-by)"
        )
    if len(replay.servers) > 1:
        return told
    return [
        *told,
        f"one server alone ({replay.servers[0]}) answers {replay.aggregator}: its own link is as slow as the aggregator's, so nothing meets at "
        "the switch, and incast cannot show; capture where the responses of several servers arrive, or name another host with --aggregator",
    ]


def _remarks(ranking: list[RankingRow], seeds: list[int]) -> list[str]:
    """What a reader of the ranking should know."""
    remarks = []
    if len(seeds) == 1:
        remarks.append("one seed gives no confidence interval; add seeds to see which differences are real")
    if ranking:
        remarks += _tail_remark(ranking[0], ranking)
    unfinished = [row.cc for row in ranking if row.unfinished]
    if unfinished:
        remarks.append(
            f"not every response was complete when the run ended under {_listed(unfinished)}: "
            "means are over completed ones, and a percentile that falls on an unfinished one has no value"
        )
    return remarks


def _tail_remark(first: RankingRow, ranking: list[RankingRow]) -> list[str]:
    """Points out a tail that the ranking's statistic does not see: one response in a thousand that waits for a timeout."""
    known = [(row.completion_ms["p99_9"].value, row) for row in ranking]
    mine = first.completion_ms["p99_9"].value
    shortest, best = min(
        ((v, row) for v, row in known if v is not None), key=lambda pair: pair[0], default=(None, first)
    )
    if shortest is None or mine is None or mine < 2 * shortest or not first.timeouts.value:
        return []
    return [
        f"{first.cc} comes first, but its slowest responses wait for timeouts ({first.timeouts.value:g} per run): "
        f"its p99.9 is {mine:.1f} ms, that of {best.cc} {shortest:.1f} ms; --rank-by p99_9 ranks by it"
    ]


def _one_hash(hashes: Mapping[str, str]) -> str:
    """Identifies several scenarios at once, whatever their order."""
    return hashlib.sha256("\n".join(f"{cc} {h}" for cc, h in sorted(hashes.items())).encode()).hexdigest()


def _listed(things: Sequence[object]) -> str:
    return ", ".join(map(str, things))
