"""Replay a capture's traffic under several TCPs on a rack, and rank them.

`compare` is the main job: :func:`compare` runs it and returns a :class:`CompareResult`, which prints, serialises to the JSON of
``fanin compare --json`` and is all that the report is written from.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fanin import _native
from fanin.calibration import as_calibrated, judge_racks
from fanin.comparison.candidates import Choice, chosen, listed, with_candidates, with_host_settings
from fanin.comparison.columns import FLOWS, PACKETS, QUEUE, RESPONSES, RUNS, WINDOW
from fanin.comparison.confirm import confirm as confirm_best
from fanin.comparison.on_rack import compared
from fanin.comparison.replays import MeasuredReplay
from fanin.comparison.result import CaptureSummary, CompareResult
from fanin.comparison.variations import racks, variation
from fanin.decision.running import running
from fanin.errors import AlgorithmError, CaptureError, ScenarioError, keywords, suggest
from fanin.files import shown
from fanin.kernel import pace
from fanin.measured import seen_baseline
from fanin.progress import Progress, silent
from fanin.rack import in_short, proposed
from fanin.ranking import STATISTICS, RankBy, RankOf, known, waited_for
from fanin.runs.engines import engine as find_engine
from fanin.runs.job import Document
from fanin.runs.kept import usual_store
from fanin.runs.replay import ReplayJob, Traffic, rack_of
from fanin.settings.candidates import Candidate
from fanin.simulation import Failure, changed, chosen_seeds, in_force, owned, toml
from fanin.spans import fit
from fanin.traffic import trains as read_trains

if TYPE_CHECKING:
    from fanin.calibration import Calibrated
    from fanin.decision.judge import Goal
    from fanin.traffic import TrainsResult

SEEDS = 10
"""Runs per algorithm: enough for a paired difference to show behind a correction for half a dozen comparisons."""

SEEDS_ELSEWHERE = 5
"""Runs per algorithm on a rack that was not asked for: whether the answer depends on what the capture does not show."""

__all__ = [
    "FLOWS",
    "PACKETS",
    "QUEUE",
    "RESPONSES",
    "RUNS",
    "WINDOW",
    "CaptureSummary",
    "CompareResult",
    "Failure",
    "compare",
]

Further = Callable[[ReplayJob, Choice, RankOf], Sequence[Candidate]]
"""More candidates for a comparison, given the replay on the likeliest rack, what would be compared, and what is timed."""


def _nothing(text: str) -> None:
    """Tell nothing."""


@keywords
def compare(
    capture: str | Path,
    rack: str | Path | None = None,
    *,
    cc: str | Sequence[str] | None = None,
    seeds: int | Sequence[int] = SEEDS,
    rank_by: RankBy | None = None,
    goal: Goal | None = None,
    baseline: str | None = None,
    rank_of: RankOf | None = None,
    independent: bool = False,
    trace_seed: int | None = None,
    aggregator: str | None = None,
    gap: str | None = None,
    settings: Mapping[str, object] | None = None,
    vary: Mapping[str, Sequence[str]] | None = None,
    pcap: str | Path | None = None,
    pcap_at: Sequence[str] = (),
    engine: str = "sim",
    confirm: int = 0,
    spans: str | Path | None = None,
    keep: bool = True,
    tell: Callable[[str], None] = _nothing,
    command: str | None = None,
    progress: Callable[[str, int], Progress] = silent,
    further: Further | None = None,
) -> CompareResult:
    """Replay the traffic of a capture under several TCPs on a rack, and rank them.

    Each request is sent after what it waited for in the capture, as far as the capture shows it: the answers of a round, the response before on
    its connection, other connections, or a timer. Think times, service times and pauses are kept.

    Parameters
    ----------
    capture : path
        pcap or pcapng, plain or gzip.
    rack : path, optional
        The rack (TOML): link rate, delay, buffer, K; proposed from the capture unless given (:func:`fanin.propose_rack`).
    cc : str or sequence of str, optional
        Algorithms; what hosts can run unless given, ``"all"`` for models too, without those that need a marking switch when the rack has none.
    seeds : int or sequence of int
        How many seeds, counted from 1, or which.
    rank_by : {"mean", "p50", "p95", "p99", "p99_9"}, optional
        Completion-time statistic that is to gain, and that the table is ordered by. Unless given, the mean or the tail is to gain
        (:func:`fanin.decision.decide`), and the table is ordered by p99.
    goal : {"mean", "p50", "p95", "p99", "p99_9", "fairness", "goodput"}, optional
        What is to gain, where that is not `rank_by`: besides completion times Jain's index over connections, and payload per second.
    baseline : str, optional
        The congestion control that the hosts run; unless given, what the capture shows (:func:`fanin.measured.seen_baseline`), else what is presumed
        (cubic, if it is among the algorithms).
    rank_of : {"trees", "requests", "stages", "responses"}, optional
        Whose completion time to rank by. A request tree is complete when the aggregator has answered its own client, after its servers
        answered it; a request with its slowest answer, stages and all; a stage with its own. Unless given, what a user of the service waits
        for, as far as the capture shows it: trees where most responses belong to some, else requests where most belong to some, else responses.
    independent : bool
        Replay every connection for itself, as if no request waited for another connection: for comparison.
    trace_seed : int, optional
        The seed whose queue and windows are kept; the first unless given.
    aggregator : str, optional
        Address of the host that the responses go to; the likeliest unless given.
    gap : str, optional
        Time without data that ends a packet train, such as ``"1ms"``; see :func:`fanin.trains`.
    settings : mapping, optional
        Values by key, such as ``{"rack.buffer": "250p"}``, on top of the rack file.
    vary : mapping, optional
        Values by key that are not known, such as ``{"rack.buffer": ["50p", "400p"]}``: the comparison is made again on every combination
        (:attr:`CompareResult.variations`), and the answer says where it holds. Unless given, and without a `rack`, what the capture does not
        show of rate and buffer is (:func:`fanin.rack.unknowns`), with five seeds.
    pcap : path, optional
        A folder for pcap files of what hosts and ports saw in the run of `trace_seed`, in a folder of each algorithm's name.
    pcap_at : sequence of str, optional
        Hosts (``client`` is the aggregator, servers have their addresses), ports (``switch->client``) and switches to write files of, with
        ``*`` for anything; everything unless given.
    engine : str
        Whose TCP runs: ``sim``, or real Linux TCP in virtual time, ``kernel`` or ``kernel-hz1000``; see docs/kernel.md.
    confirm : int
        So many of the best, and the baseline, are run again on the engine ``kernel``; :attr:`CompareResult.confirmation` says what it
        found, and where it says otherwise, the verdict is its.
    spans : path, optional
        Traces of the aggregator's application (OTLP JSON, Jaeger JSON, or CSV with peer, begin, end and request): its requests and who waits for
        whom are theirs, bytes and network are the capture's. :attr:`CompareResult.spans` says what the capture alone would have said.
    keep : bool
        Results are kept in the store, and found there the next time.
    tell : callable, optional
        Told what is about to begin and takes long, with an estimate.
    command : str, optional
        What to state as the command that does the same.
    progress : callable, optional
        Makes the progress display; see :mod:`fanin.progress`.
    further : callable, optional
        Given the replay on the likeliest rack, what would be compared, and what is timed, it returns more candidates (:func:`fanin.advise`);
        a capture that is not fit to judge is then an error.

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
    goal, rank_by = goal or rank_by, rank_by or "p99"
    if rank_by not in STATISTICS:
        raise ScenarioError(f"there is no statistic `{rank_by}` to rank by; {suggest(rank_by, STATISTICS)}")
    known(rank_of)
    numbers = chosen_seeds(seeds)
    traced = numbers[0] if trace_seed is None else trace_seed
    if traced not in numbers:
        raise ScenarioError(
            f"command line `--trace-seed {traced}`: only seeds that are run can be traced: {listed(numbers)}"
        )
    if pcap_at and pcap is None:
        raise ScenarioError("command line `--pcap-at`: it says where, and `--pcap DIR` into which folder; give both")
    changes, taken_on = changed(settings), None
    others = racks({_rack_key(key): values for key, values in vary.items()}) if vary else []
    if rack is not None:
        text, rack_path, folder = _read_rack(rack), shown(str(rack)), Path(rack).parent
        # What is wrong with the rack is said before the capture is read.
        _native.Rack.from_text(text, rack_path, folder, changes).marks()
        # The file as it is: a change may say what is to become of the rack.
        taken_on = _native.Rack.from_text(text, rack_path, folder)
        for other in others:
            more = [(k, toml(v)) for k, v in other.items()]
            try:
                _native.Rack.from_text(text, rack_path, folder, [*changes, *more]).marks()
            except ScenarioError as error:
                if changes:
                    raise
                raise ScenarioError(_as_varied(str(error), vary or ())) from None

    if confirm < 0:
        raise ScenarioError(f"command line `--confirm {confirm}`: give how many of the best to confirm, or 0 for none")
    if confirm and engine != "sim":
        raise ScenarioError(
            f"command line `--confirm {confirm}`: it confirms what the simulation found; with --engine {engine} leave it out"
        )
    for needed in {engine, CONFIRMING if confirm else "sim"}:
        find_engine(needed)  # raises when it is not built, before anything takes long
    found = read_trains(capture, gap=gap, rack=taken_on, progress=progress)
    if further is not None and not found.fitness.fit:
        raise CaptureError(f"{capture}: no advice yet: the capture is {found.fitness.sentence}")
    replay = found.workload(aggregator)
    traced_calls = None
    if spans is not None:
        if independent:
            raise ScenarioError(
                "command line `--spans`: it says who waits for whom, and `--independent` that nobody does; give one"
            )
        replay, traced_calls = fit(found, replay, spans)
    if independent:
        replay = replay.independent()
    of = waited_for(replay, rank_of, alone=independent)
    if replay.responses == 0:
        raise CaptureError(
            f"{capture}: no response with payload goes to {replay.aggregator}, so there is nothing to replay; name another host with --aggregator"
        )
    proposal, kept, traffic = None, usual_store() if keep else None, Traffic(replay)
    if rack is None:
        proposal = proposed(found, replay.aggregator, f"fanin rack {shown(str(capture))}")
        text, rack_path, folder = proposal.text, PROPOSED, Path()
    document = Document(text, rack_path, str(folder))
    in_effect: tuple[tuple[str, str], ...] = ()

    def job(more: Mapping[str, str], on_engine: str = engine) -> ReplayJob:
        on_top = (*changes, *in_effect, *((k, toml(v)) for k, v in more.items()))
        return ReplayJob(document, traffic, "", 0, on_top, engine=on_engine)

    def on(base: ReplayJob, seeds: list[int], choice: Choice, **how: Any) -> CompareResult:
        return compared(
            base,
            found,
            choice,
            store=kept,
            shown_today=shown_today,
            given=baseline is not None,
            calibrated=calibration is not None and calibration.reproduced,
            goal=goal,
            seeds=seeds,
            rank_by=rank_by,
            rank_of=of,
            independent=independent,
            progress=progress,
            **how,
        )

    shown_today = seen_baseline(found, replay.aggregator) if baseline is None else None
    choice = chosen(cc, baseline, job({}), shown_today.cc if shown_today else None)
    if any(key.startswith("cc.") for key, _ in changes):
        owned(changes, choice.names)
    if (cc is None or cc == "all") and not independent:
        choice = with_host_settings(choice, job({}))
    calibration: Calibrated | None = None
    if choice.baseline is not None and not independent and engine == "sim":
        fixed = [key for key, _ in changes] + [_rack_key(key) for key in vary or ()]
        with suppress(ScenarioError, AlgorithmError):
            # What is wrong is said of the runs that follow.
            calibration = judge_racks(
                job({}),
                found,
                choice.baseline,
                of,
                proposal,
                measure=MeasuredReplay,
                fixed=fixed,
                store=kept,
                progress=progress,
            )
        if calibration is not None and calibration.reproduced:
            likeliest, *less_likely = calibration.racks()
            if proposal is not None:
                proposal = as_calibrated(proposal, calibration)
                document = replace(document, text=proposal.text)
                text = proposal.text
            else:
                in_effect = tuple((key, toml(value)) for key, value in likeliest)
            others = others or [dict(other) for other in less_likely]
    if further is not None and choice.baseline is not None and (calibration is None or calibration.reproduced):
        choice = with_candidates(choice, further(job({}), choice, of))
    if engine != "sim":
        _tell_how_long(job({}), found, len(choice.names) * len(numbers), tell)
    began = time.monotonic()
    narrow = cc is None and engine == "sim" and not independent
    result = on(job({}), numbers, choice, traced=traced, pcap=pcap, pcap_at=pcap_at, narrow=narrow)
    if engine != "sim" and not result.found and not result.interrupted:
        pace.remember(result.runs["packet_hops"].to_list(), time.monotonic() - began)
    result.capture = replace(result.capture, aggregator_found=aggregator is None)
    result.rack_path, result.rack_text, result.settings = rack_path, text, {**dict(changes), **dict(in_effect)}
    result.calibration = calibration
    result.spans = traced_calls
    result.rack_proposed = proposal is not None
    names = result.runs["cc"].unique(maintain_order=True).to_list()
    if changes:
        result.warnings += in_force(
            changes, lambda kept: [rack_of(document, kept).check(replay, choice.way(name).cc)[0] for name in names]
        )
    if traced_calls is not None:
        result.notes[:0] = traced_calls.sentences()
    result.command = shown(
        command or f"fanin compare {capture}{'' if rack is None else f' --rack {rack}'} --seeds {len(numbers)}"
    )
    if proposal is not None:
        assumed = [f.key.removeprefix("rack.") for f in proposal.findings if f.certainty == "assumed"]
        told = f"; assumed, since the capture does not show it: {listed(assumed)}" if assumed else ""
        result.warnings.insert(
            0,
            f"the rack was proposed from the capture ({in_short(proposal)}{told}): correct it and compare again with --rack",
        )
        result.warnings += proposal.warnings
    if confirm and result.ranking and not result.interrupted:

        def again(names: list[str], seeds: list[int], label: str) -> CompareResult:
            usual = result.baseline if result.baseline in names else names[0]
            asked = replace(choice, names=names, candidates=names, baseline=usual, notes=[])
            return on(job({}, CONFIRMING), seeds, asked, traced=None, label=label)

        confirm_best(result, confirm, job({}, CONFIRMING), again, tell)
    if narrow and not vary and result.baseline is not None:
        # Elsewhere only what may be advised is looked at: whether the answer depends on what the capture leaves open.
        left = {result.baseline, *running(result.outcomes, result.baseline, goal, result.told())}
        choice = choice.only(left)
        others = others if len(left) > 1 else []
    for number, other in enumerate(others, start=1):
        if result.interrupted:
            result.notes.append(f"interrupted: {len(others) - number + 1} of {len(others)} other racks were not tried")
            break
        try:
            another = on(
                job(other),
                numbers if vary else numbers[:SEEDS_ELSEWHERE],
                choice,
                traced=None,
                label=f"rack {number} of {len(others)}",
            )
        except KeyboardInterrupt:
            result.interrupted = True
            continue
        result.interrupted |= another.interrupted
        if another.ranking and not another.interrupted:
            # Racks that were asked for may be none that gives the capture: they are shown, and decide nothing.
            made = variation(other, another)
            result.variations.append(replace(made, outcomes=()) if vary else made)
    return result


CONFIRMING = "kernel"
"""The engine that confirms."""


def _tell_how_long(base: ReplayJob, found: TrainsResult, runs: int, tell: Callable[[str], None]) -> None:
    """Say how long a comparison on another engine takes, by the packets of the capture: each passes two ports."""
    hops = [2.0 * found.summary["tcp_packets"]] * runs
    tell(f"comparing on {find_engine(base.engine).label}: {runs} runs, {pace.estimate(hops)} on this machine")


PROPOSED = "rack.toml"
"""Name of a rack that was proposed from the capture."""


def _read_rack(rack: str | Path) -> str:
    """The rack file's text; what is wrong with the file is said as of any scenario."""
    try:
        return Path(rack).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        _native.Rack.from_file(rack)  # raises, with what to do next
        raise


def _rack_key(key: str) -> str:
    """``buffer`` is short for ``rack.buffer``."""
    return key if "." in key else f"rack.{key}"


def _as_varied(message: str, vary: Iterable[str]) -> str:
    """What is said of a changed value, with the option and the key as they were typed."""
    message = message.replace("command line `--set ", "command line `--vary ")
    for key in vary:
        message = message.replace(f"`--vary {_rack_key(key)}=", f"`--vary {key}=")
    return message
