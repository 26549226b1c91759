"""Claims about real kernels, on Linux's own TCP: on the virtual kernel, also at rates that the authors' machine could not carry, or on the testbed.

The experiments and the judgements are the simulator's; only the engine differs, and what a faster link changes with it.
"""

from __future__ import annotations

import csv
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from fanin.errors import FaninError
from fanin.papers.catalogue import Answer, Claim, Paper, Reading
from fanin.papers.verdicts import DIFFERS, NOT_RUN, ON_HOST, REPRODUCED, UNDER, Data, Judged, judge

if TYPE_CHECKING:
    from fanin.papers.reproduce import Results

WHERE = {"kernel": "on the virtual kernel", "testbed": "on the testbed"}
"""Engines that run Linux's own TCP, and how one says so."""

PUBLISHED = "as published"

SPEEDS = {PUBLISHED: 1, "1Gbps": 10, "10Gbps": 100}
"""Rates of the bottleneck, and how many times the published 100 Mbps: runs are shorter by as much, so that they carry as many packets."""

ABOUT_KERNELS: dict[str, tuple[str, ...]] = {
    "dctcp": (
        "dctcp.fig1.queue-n2",
        "dctcp.fig2.queue-n20",
        "dctcp.throughput",
        "dctcp.fig3.k-sweep",
        "dctcp.fig4-5.convergence",
    ),
    "trim": ("trim.fig13.testbed", "trim.fig14a.arct", "trim.fig14b.web-service"),
    "tcprand": ("tcprand.fig12.testbed", "tcprand.fig13-14.microscope", "tcprand.fig16-17.convergence"),
}
"""Claims whose published numbers come from a real kernel, by paper."""


def _sender_cpu(quick: bool, mbps: int) -> pl.DataFrame:
    from fanin.testbed.sender_cpu import sender_cpu

    return sender_cpu(seconds=2.0 if quick else 5.0, mbps=mbps)


MEASURED: dict[str, Callable[[bool, int], pl.DataFrame]] = {"sender_cpu": _sender_cpu}
"""What the testbed measures of a host itself, given whether to be quick and the rate of its link in Mbps."""

HOST_RATES = {"200Mbps": 200, "1Gbps": 1000}
"""Links that a host is measured on, Mbps: one that it can fill on a core, and that of the paper, which decides."""

Times = dict[str, tuple[float, str]]

SCALED: dict[str, dict[str, Times]] = {
    "dctcp": {
        "queue": {
            "run.duration": (60.0, "s"),
            "measure.queue_interval": (100.0, "ms"),
            "workload[0].jitter": (100.0, "ms"),
        },
        "convergence": {
            "run.duration": (600.0, "s"),
            "workload[0].step": (60.0, "s"),
        },
    },
    "tcprand": {
        "testbed": {"run.duration": (10.0, "s")},
        "microscope": {"run.duration": (20.0, "s")},
        "convergence": {
            "run.duration": (270.0, "s"),
            "workload[0].step": (30.0, "s"),
            "measure.throughput": (1000.0, "ms"),
        },
        "windows": {"run.duration": (20.0, "s")},
    },
}
"""Times of experiments at the published rate that are shorter with ``--quick``, by paper."""

FASTER: dict[str, tuple[str, ...]] = {"dctcp": ("queue",)}
"""Experiments that are run at every rate of :data:`SPEEDS`, by paper."""

QUICK = 6
"""With ``--quick`` runs of these experiments are shorter by as much: a kernel takes 15 us and more for each packet."""

WITHOUT: dict[str, tuple[str | int, ...]] = {
    # No kernel acknowledges every eighth packet: it does every one or every second.
    "dctcp": ("an ACK for 8 segments",),
    # No check of Fig. 12 to 14 bears on these, and a kernel takes half a minute for a run.
    "tcprand": ("(1, 1, 1)",),
}
"""Labels of points that are not run on a kernel, by paper."""


@dataclass(frozen=True, slots=True)
class OnLinux:
    """A claim on Linux's own TCP.

    Attributes
    ----------
    engine : str
        Of :data:`WHERE`.
    rate : str
        Of the bottleneck.
    judged : Judged
        By the same checks as the simulated one; at other rates than the published its verdict says whether the same bounds hold there.
    """

    engine: str
    rate: str
    judged: Judged

    def to_dict(self) -> dict[str, Any]:
        """As it stands in claims.json."""
        one = self.judged
        return {
            "id": one.id,
            "engine": self.engine,
            "rate": self.rate,
            "ours": one.ours,
            "verdict": one.verdict,
            "reading": one.reading,
            "reason": one.reason,
            "seeds": one.seeds,
        }


def measured(folder: Path) -> list[dict[str, str]]:
    """What was run before on Linux's own TCP, as ``on_linux.csv`` beside the papers has it: verdicts by claim, engine and rate, with day and commit."""
    file = folder / "on_linux.csv"
    if not file.is_file():
        return []
    with file.open(encoding="utf-8", newline="") as rows:
        return list(csv.DictReader(rows))


def reading(paper: str, rate: str, engine: str, quick: bool = False) -> Reading:
    """How an experiment is run on Linux at a rate."""
    answers = [Answer("engine", engine, "", {}, {})]
    factor = SPEEDS[rate]
    network: dict[str, object] = {}
    if factor > 1:
        network = {"topology.receiver_rate": rate, "topology.rate": "10Gbps" if factor == 10 else "40Gbps"}
        # DCTCP's K at 10 Gbps (SIGCOMM 2010, section 3.4).
        network |= {"topology.mark": "65p"} if factor == 100 else {}
    shorter_by = factor * (QUICK if quick else 1)
    for experiment, times in SCALED.get(paper, {}).items() if shorter_by > 1 else ():
        shorter = {key: f"{value / shorter_by:g}{unit}" for key, (value, unit) in times.items()}
        answers.append(Answer("rate", rate, "", network | shorter, {}, (experiment,)))
    return Reading(tuple(answers), engine=engine, without=WITHOUT.get(paper, ()))


def judged_there(
    wanted: Sequence[tuple[Paper, Claim]], found: Results, quick: bool, engine: str
) -> tuple[list[OnLinux], list[str]]:
    """Judge what was asked for and is about real kernels on an engine of :data:`WHERE`.

    Returns
    -------
    list of OnLinux
        By claim and rate.
    list of str
        What was skipped, and why.
    """
    from fanin.papers.reproduce import Request, judge_under, needed
    from fanin.runs.engines import TESTBED
    from fanin.runs.engines import engine as find_engine

    about = [(paper, claim) for paper, claim in wanted if claim.id in ABOUT_KERNELS.get(paper.name, ())]
    hosts = [claim for _, claim in wanted if claim.id in ON_HOST and engine == TESTBED]
    where = WHERE[engine]
    if not about and not hosts:
        return [], [f"{where}: none of these claims is about a real kernel"]
    try:
        find_engine(engine)
    except FaninError as why:
        return [], [f"{where}: not run there ({len(about) + len(hosts)} of the claims): {why}"]
    # A machine that simulates a switch in real time carries what the authors' did.
    rates = [PUBLISHED] if engine == TESTBED else list(SPEEDS)
    work = []
    for paper, claim in about:
        for rate in rates:
            faster = FASTER.get(paper.name, ())
            if rate == PUBLISHED or (needed(claim) and all(name in faster for name in needed(claim))):
                work.append((paper, claim, rate, reading(paper.name, rate, engine, quick)))
    found.run([Request(paper, name, how, quick) for paper, claim, _, how in work for name in needed(claim)])
    first = [judge_under(paper, claim, found, how, quick) for paper, claim, _, how in work]
    # What differs there, too, under the readings that its text permits.
    again = [
        (n, Reading((*permitted.answers, *how.answers), engine, how.without, permitted.times), permitted)
        for n, (_, claim, _, how) in enumerate(work)
        if first[n].verdict == DIFFERS
        for permitted in claim.readings
    ]
    requests = [Request(work[n][0], name, how, quick) for n, how, _ in again for name in needed(work[n][1])]
    found.run(requests)
    for n, how, permitted in again:
        under = judge_under(*work[n][:2], found, how, quick)
        if first[n].verdict == DIFFERS and under.verdict == REPRODUCED:
            first[n] = replace(under, verdict=UNDER, reading=permitted.name, says=permitted.says)
    made, skipped = _on_hosts(hosts, where, quick)
    for (_, claim, rate, _), judged in zip(work, first, strict=True):
        if judged.verdict == NOT_RUN:
            skipped.append(f"{where}: {claim.id} at {rate} is skipped: {judged.reason}")
        else:
            made.append(OnLinux(engine, rate, judged))
    return made, skipped


def _on_hosts(claims: Sequence[Claim], where: str, quick: bool) -> tuple[list[OnLinux], list[str]]:
    """Measure what is about a host itself."""
    from fanin.runs.engines import TESTBED

    made, skipped = [], []
    for claim, (rate, mbps) in itertools.product(claims, HOST_RATES.items()):
        [name] = ON_HOST[claim.id].needs
        try:
            rows = MEASURED[name](quick, mbps).with_columns(seed=pl.lit(1))
        except FaninError as why:
            skipped.append(f"{where}: {claim.id} at {rate} is skipped: {why}")
            continue
        judged = judge(claim.id, claim.published, Data({name: {"runs": rows}}, quick), claim.cause)
        made.append(OnLinux(TESTBED, rate, judged))
    return made, skipped
