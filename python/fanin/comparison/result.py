"""What a comparison found."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from fanin.capture.fitness import Fitness
from fanin.capture.measured import Measured
from fanin.comparison.columns import PACKETS, PAUSES, ROUNDS, STAGES, TREES
from fanin.comparison.promise import expected
from fanin.comparison.variations import Variation
from fanin.decision import Decision, Goal, Outcome, decide
from fanin.decision.outcome import together
from fanin.disk.files import made_folder, write_parquet
from fanin.rack.facts import rack_hz
from fanin.settings.candidates import Candidate
from fanin.statistics.ranking import METHOD, RankBy, RankingRow, RankOf
from fanin.words.explain import explanations
from fanin.words.text import duration
from fanin.words.verdict import Confirmation, Verdict, verdict

if TYPE_CHECKING:
    from collections.abc import Hashable

    from fanin.calibration import Calibrated
    from fanin.simulation import Failure
    from fanin.spans import Fitted


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
    fitness : Fitness or None
        Whether the capture is fit to judge by; None where it was not measured.
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
    fitness: Fitness | None = None


@dataclass(frozen=True, slots=True)
class Alone:
    """The median response when every connection is replayed for itself, where it is another by more than a tenth.

    Attributes
    ----------
    cc : str
        The algorithm of both replays.
    together_ms, alone_ms : float
        The median with what the capture shows of who waits for whom, and without it.
    """

    cc: str
    together_ms: float
    alone_ms: float

    @property
    def sentence(self) -> str:
        """Both figures in words."""
        return (
            f"replayed alone, each connection for itself (--independent), the median response with {self.cc} would take {duration(self.alone_ms)} "
            f"instead of {duration(self.together_ms)}: servers that no longer answer together do not meet in the queue"
        )


# Without slots: what is concluded is kept in the instance, once it was asked for.
@dataclass(frozen=True, repr=False)
class CompareResult:
    """Everything a comparison found; the report and the JSON are written from this alone.

    Attributes
    ----------
    ranking : list of RankingRow
        Best first.
    rank_by : str
        The statistic it is ranked by.
    goal : str or None
        The statistic that is to gain; None: the mean or the tail.
    ways : dict of str to Candidate
        What can be the answer, by the name in `ranking`: an algorithm, or the baseline with a host's setting.
    outcomes : tuple of Outcome
        What the runs of each of these gave, as the decision is made from it.
    rank_of : str
        Whose completion time it is ranked by: ``trees``, ``requests``, ``stages`` or ``responses``.
    rank_of_given : bool
        That was asked for; otherwise it is what the capture shows.
    independent : bool
        Every connection was replayed for itself, whatever the capture shows.
    groups : list of dict
        Who is asked together in the capture and what its requests wait for; as in the workload file.
    captured_rounds : list of list of (float, float)
        The capture's first rounds: per answer when it was asked for and when it had arrived, in ms since the round's first request.
    alone : Alone or None
        The median response without who waits for whom, where it is another.
    failures : list of Failure
        Algorithms that could not be run.
    missing : list of (str, int)
        (algorithm, seed) that were not run because the comparison was interrupted; empty otherwise.
    capture : CaptureSummary
        What was in the capture.
    responses : polars.DataFrame
        One row per algorithm, seed and response. Columns: ``cc`` (Categorical), ``seed`` (UInt64), ``connection`` (UInt32, number in the
        capture), ``server`` (Categorical, address), ``response`` (UInt32, number within the connection), ``bytes`` (UInt64), ``release_ms`` (Float64,
        when the server's application wrote it, from the start of the run), ``done_ms`` (Float64, last byte delivered; null: unfinished),
        ``completion_ms`` (Float64, ``done_ms - release_ms``; null: unfinished), ``timeouts`` (UInt32).
    rounds : polars.DataFrame
        One row per algorithm, seed and request of the application's user: all messages that it caused. Columns: ``cc``, ``seed``, ``round``, ``group``
        (UInt32, position in `groups`), ``requests`` (UInt32), ``release_ms`` (Float64, the first request), ``done_ms`` (Float64, the
        slowest answer was complete; null: unfinished), ``completion_ms`` (Float64).
    stages : polars.DataFrame
        The same of stages (``stage`` instead of ``round``): messages that left together inside a request, after the same answers of it.
    trees : polars.DataFrame
        One row per algorithm, seed and request tree: a client's request that the aggregator answered after others had answered it. Columns: ``cc``,
        ``seed``, ``connection`` (UInt32, the client's in the capture), ``turn`` (UInt32, number of the answer within it), ``release_ms`` (Float64,
        the client wrote its request), ``done_ms`` (Float64, it had the answer; null: unfinished), ``completion_ms`` (Float64).
    pauses : polars.DataFrame
        One row per response of the capture: ``connection``, ``response`` (UInt32), ``pause_ms`` (Float64: pauses between its pieces that are replayed
        as the application's, whichever TCP runs).
    flows : polars.DataFrame
        One row per algorithm, seed and response flow. Columns: ``cc``, ``seed``, ``flow`` (UInt32), ``connection`` (UInt32), ``src``,
        ``dst`` (Categorical), ``segments``, ``bytes_sent``, ``bytes_delivered``, ``retransmissions``, ``timeouts``, ``drops``, ``marks`` (UInt64),
        ``max_cwnd`` (Float64, packets), ``min_rtt_ms`` (Float64).
    runs : polars.DataFrame
        One row per algorithm and seed: ``cc``, ``seed``, ``mean``, ``p50``, ``p95``, ``p99``, ``p99_9`` (Float64, ms), ``timeouts``,
        ``retransmissions``, ``drops``, ``marks`` (UInt64), ``goodput_bps``, ``queue_mean_packets``, ``queue_p99_packets``, ``queue_max_packets`` (Float64),
        ``responses``, ``unfinished`` (UInt64), ``end_ms`` (Float64), ``packet_hops`` (UInt64).
    queue : polars.DataFrame
        Queue of the port to the aggregator in the run of `trace_seed`: one row per change, or, where there were more than 50,000, an envelope of as
        many with each change while one of the three slowest responses waited (:func:`fanin.statistics.frames.thin` makes it fit a picture):
        ``cc``, ``time_ms`` (Float64), ``packets`` (UInt32), ``bytes`` (UInt64).
    window : polars.DataFrame
        Senders in the run of `trace_seed`, thinned as `queue`: ``cc``, ``connection`` (UInt32), ``time_ms`` (Float64), ``cwnd``, ``ssthresh`` (Float64,
        packets; ssthresh is null while infinite), ``in_flight`` (Float64, packets), ``srtt_ms`` (Float64), ``state`` (Enum: open, disorder, cwr,
        recovery, loss).
    packets : polars.DataFrame
        Packets of the slowest responses of the run of `trace_seed` at the port to the aggregator: ``cc`` (Categorical), ``connection`` (UInt32),
        ``time_ms`` (Float64), ``event`` (String: accepted, dropped, marked, delivered), ``seq`` (UInt64), ``payload`` (UInt32, bytes).
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
    baseline : str or None
        What every other algorithm is compared with: the congestion control that the hosts run.
    baseline_given : bool
        The user said so; else the capture shows it, or it is presumed.
    baseline_hint : str or None
        What the capture shows of the congestion control that the hosts run, where it does not show which.
    baseline_seen : str or None
        How the capture shows it.
    measured : Measured or None
        What the capture itself measured.
    spans : Fitted or None
        What the application's traces said beside what the capture alone would have said, where they were given (:func:`fanin.spans.fit`).
    calibration : Calibrated or None
        Which racks reproduce the capture under the current setting; None where that was not looked at.
    variations : list of Variation
        The answer on other racks: those that reproduce the capture too, or those that were asked for (``vary``).
    rack_proposed : bool
        The rack was proposed from the capture.
    engine, engine_label : str
        Whose TCP ran: ``sim``, ``kernel`` or ``kernel-hz1000``, and in words.
    found : int
        Runs that the store had, so that they were not made again.
    confirmation : Confirmation or None
        What another engine said, where it was asked.
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
    packets: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=PACKETS))
    baseline: str | None = None
    baseline_given: bool = False
    baseline_seen: str | None = None
    baseline_hint: str | None = None
    measured: Measured | None = None
    calibration: Calibrated | None = None
    spans: Fitted | None = None
    variations: list[Variation] = field(default_factory=list)
    rack_proposed: bool = False
    engine: str = "sim"
    engine_label: str = "the simulator"
    found: int = 0
    confirmation: Confirmation | None = None
    interrupted: bool = False
    rank_of: RankOf = "responses"
    rank_of_given: bool = False
    independent: bool = False
    groups: list[dict[str, Any]] = field(default_factory=list)
    captured_rounds: list[list[tuple[float, float]]] = field(default_factory=list)
    alone: Alone | None = None
    rounds: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=ROUNDS))
    stages: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=STAGES))
    trees: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=TREES))
    pauses: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=PAUSES))
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    settings: dict[str, str] = field(default_factory=dict)
    goal: Goal | None = None
    ways: dict[str, Candidate] = field(default_factory=dict)
    outcomes: tuple[Outcome, ...] = ()

    def way(self, name: str) -> Candidate:
        """How a row of the ranking is run."""
        return self.ways.get(name) or Candidate(name)

    def told(self) -> dict[str, float]:
        """What the capture measured of the current setting, by statistic in ms, as far as it has requests enough."""
        return self.measured.told() if self.measured is not None else {}

    def judged_racks(self) -> list[tuple[Outcome, ...]]:
        """What the candidates' runs gave on each rack that the decision is made over, the likeliest first."""
        racks = [self.outcomes]
        if self.calibration is not None and self.calibration.reproduced:
            racks += [other.outcomes for other in self.variations if other.outcomes]
        return racks

    def every(self) -> tuple[Outcome, ...]:
        """What each candidate's runs gave on all of these racks."""
        return together(self.judged_racks())

    def rack_weights(self) -> dict[Hashable, float]:
        """How likely each of these racks is, by its place; empty where nothing is known of it."""
        if self.calibration is None or not self.calibration.reproduced:
            return {}
        shares = self.calibration.shares()
        likeliest = next(iter(shares))
        others = [tuple(other.settings.items()) for other in self.variations if other.outcomes]
        return {place: shares.get(rack, 0.0) for place, rack in enumerate([likeliest, *others])}

    def expected(self, name: str, statistic: str) -> tuple[float, float] | None:
        """Between what a candidate's statistic is expected on real hosts, ms (:func:`fanin.comparison.promise.expected`)."""
        outcome = next((outcome for outcome in self.every() if outcome.name == name), None)
        return None if outcome is None else expected(outcome, statistic, self.rack_weights())

    @cached_property
    def decision(self) -> Decision | None:
        """The decision over every rack that reproduces the capture; None without a baseline that was run."""
        every = self.every()
        if self.baseline is None or not any(outcome.name == self.baseline for outcome in every):
            return None
        return decide(every, self.baseline, self.goal, self.told(), self.rack_weights())

    @cached_property
    def verdict(self) -> Verdict:
        """The answer: what the terminal, the JSON and the report say."""
        return verdict(self)

    def to_dict(self) -> dict[str, Any]:
        """The object that ``fanin compare --json`` prints (schema: docs/json/compare.schema.json)."""
        capture = self.capture
        answer = self.verdict if self.ranking else None
        return {
            "version": self.version,
            "command": self.command,
            "answer": answer.to_dict() if answer else None,
            "baseline": {"cc": answer.baseline, "why": answer.baseline_why} if answer and answer.baseline else None,
            "recommendation": answer.recommendation.to_dict() if answer and answer.recommendation else None,
            "confirmation": self.confirmation.to_dict() if self.confirmation else None,
            "measured": self.measured.to_dict() if self.measured else None,
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
                "fitness": capture.fitness.to_dict() if capture.fitness else None,
            },
            "rack": {
                "file": self.rack_path,
                "text": self.rack_text,
                "settings": self.settings,
                "proposed": self.rack_proposed,
                "hz": rack_hz(self),
            },
            "calibration": self.calibration.to_dict() if self.calibration else None,
            "spans": self.spans.to_dict() if self.spans else None,
            "variations": [v.to_dict() for v in self.variations],
            "port": self.port,
            "scenario_hash": self.scenario_hash,
            "engine": {"name": self.engine, "label": self.engine_label},
            "seeds": list(self.seeds),
            "trace_seed": self.trace_seed,
            "rank_by": self.rank_by,
            "rank_of": self.rank_of,
            "independent": self.independent,
            "groups": self.groups,
            "method": METHOD,
            "ranking": [{**row.to_dict(), "settings": dict(self.way(row.cc).settings)} for row in self.ranking],
            "slowest": [explanation.to_dict() for explanation in explanations(self)],
            "failures": [{"cc": f.cc, "message": f.message} for f in self.failures],
            "missing": [{"cc": cc, "seed": seed} for cc, seed in self.missing],
            "interrupted": self.interrupted,
            "warnings": list(self.warnings),
            "notes": list(self.notes),
        }

    def __repr__(self) -> str:
        if not self.ranking:
            return f"<CompareResult of {self.capture.file}: nothing could be ranked>"
        return f"<CompareResult of {self.capture.file}: {self.verdict.headline}>"

    def _repr_html_(self) -> str:
        """For notebooks: the answer and the ranking."""
        from fanin.report import summary

        return summary(self)

    def write_files(self, folder: str | Path) -> None:
        """Write ``compare.json``, and ``responses``, ``rounds``, ``stages``, ``trees`` and ``runs`` as Parquet, to a folder, made if it is missing.

        The report is not among them: :func:`fanin.report.write` makes it.
        """
        folder = made_folder(folder)
        if self.rack_proposed:
            folder.joinpath("rack.toml").write_text(self.rack_text, encoding="utf-8")

        folder.joinpath("compare.json").write_text(json.dumps(self.to_dict(), allow_nan=False) + "\n")
        write_parquet(self.responses, folder / "responses.parquet")
        write_parquet(self.rounds, folder / "rounds.parquet")
        write_parquet(self.stages, folder / "stages.parquet")
        write_parquet(self.trees, folder / "trees.parquet")
        write_parquet(self.runs, folder / "runs.parquet")
