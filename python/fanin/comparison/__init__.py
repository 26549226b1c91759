"""Replay a capture's traffic under several TCPs on a rack, and rank them.

`compare` is the main job: :func:`compare` runs it and returns a :class:`CompareResult`, which prints, serialises to the JSON of
``fanin compare --json`` and is all that the report is written from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fanin.comparison.columns import FLOWS, PACKETS, QUEUE, RESPONSES, RUNS, WINDOW
from fanin.comparison.course import Course, Further, Teller, read
from fanin.comparison.question import Question
from fanin.comparison.result import CaptureSummary, CompareResult
from fanin.errors import keywords
from fanin.process.progress import Progress, silent
from fanin.runs.kept import usual_store
from fanin.simulation import Failure
from fanin.statistics.ranking import RankBy, RankOf

if TYPE_CHECKING:
    from fanin.decision.judge import Goal

SEEDS = 10
"""Runs per algorithm: enough for a paired difference to show behind a correction for half a dozen comparisons."""

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
        How many seeds, counted from 1, or which. Unless algorithms are named, what can no longer be advised is run less often, and where ten seeds or
        more decide nothing, up to three times as many are run of what may still gain.
    rank_by : {"mean", "p50", "p95", "p99", "p99_9"}, optional
        Completion-time statistic that is to gain, and that the table is ordered by. Unless given, the mean or the tail is to gain
        (:func:`fanin.decision.decide`), and the table is ordered by p99.
    goal : {"mean", "p50", "p95", "p99", "p99_9", "fairness", "goodput"}, optional
        What is to gain, where that is not `rank_by`: besides completion times Jain's index over connections, and payload per second.
    baseline : str, optional
        The congestion control that the hosts run; unless given, what the capture shows (:func:`fanin.capture.measured.seen_baseline`), else
        what is presumed (cubic, if it is among the algorithms).
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
        (:attr:`CompareResult.variations`), and the answer says where it holds.
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
        Makes the progress display; see :mod:`fanin.process.progress`.
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
    question = Question(
        capture,
        rack,
        cc=cc,
        seeds=seeds,
        rank_by=rank_by or "p99",
        goal=goal or rank_by,
        baseline=baseline,
        rank_of=rank_of,
        independent=independent,
        trace_seed=trace_seed,
        aggregator=aggregator,
        gap=gap,
        settings=settings,
        vary=vary or {},
        pcap=pcap,
        pcap_at=pcap_at,
        engine=engine,
        confirm=confirm,
        spans=spans,
    )
    teller = Teller(tell, progress)
    reading = read(question, teller, to_advise=further is not None)
    course = Course.of(question, reading, usual_store() if keep else None, teller).calibrated()
    if further is not None:
        course = course.searched(further)
    result = course.elsewhere(course.compared(command))
    # Last: what is confirmed is what all racks together advise.
    if confirm and result.ranking and not result.interrupted:
        result = course.confirmed(result)
    return course.told(result)
