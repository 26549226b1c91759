"""Where what is advised would hurt, what becomes of those that are not moved, and whether it holds on a rack that is not quite as said."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from fanin.advice.search import Evaluator
from fanin.decision import Outcome
from fanin.decision.judge import Judged
from fanin.runs.job import Settings
from fanin.runs.replay import Unmoved
from fanin.settings import Candidate
from fanin.settings.declared import UNSURE, packets
from fanin.statistics.ranking import SIGNIFICANT
from fanin.words.text import enumeration, shortening
from fanin.words.verdict import GOAL_NAMES

LONGER = 1.02
"""A connection whose users wait longer by less than this is not named."""


def hurts(theirs: Outcome, mine: Outcome, judged: Judged) -> list[str]:
    """The statistics that get longer, by less than what speaks against a change, and the connection that loses most."""
    told = []
    for name, found in judged.change.items():
        value = found.change.value
        if value is None or found.p is None or found.p >= SIGNIFICANT or value <= 1.005:
            continue
        told.append(f"The {GOAL_NAMES[name]} gets {value - 1:.1%} worse.")
    runs = [run for run in mine.connections if run in theirs.connections]
    names = {name for run in runs for name in mine.connections[run]}
    worst: Hashable = None
    ratio = LONGER
    for connection in sorted(names, key=str):
        pairs = [(theirs.connections[run].get(connection), mine.connections[run].get(connection)) for run in runs]
        known = [(a, b) for a, b in pairs if a is not None and b is not None and b > 0]
        if len(known) == len(pairs):
            longer = math.fsum(a for a, _ in known) / math.fsum(b for _, b in known)
            if longer > ratio:
                worst, ratio = connection, longer
    if worst is not None:
        told.append(f"Worst connection: {worst}; who needs it waits {beside_now(ratio)}.")
    elif names:
        told.append("Whichever connection a user needs, the mean wait gets no longer than now by more than 2%.")
    return told


def beside_now(ratio: float) -> str:
    """How a time compares with the current setting's.

    Examples
    --------
    >>> beside_now(1.001), beside_now(1.02), beside_now(0.4)
    ('as now', '2% longer than now', '2.5 times shorter than now')
    """
    change = shortening(1.0, ratio)
    return "as now" if change == "as long" else f"{change} than now"


def coexistence(evaluator: Evaluator, today: Candidate, best: Candidate, seeds: Sequence[int]) -> list[str]:
    """Half of the servers stay: what becomes of them, and of those that move."""
    servers = list(evaluator.base.traffic.replay.servers)
    if len(servers) < 2:
        return ["One server alone: there is no mix of changed and unchanged servers to simulate."]
    staying = tuple(servers[::2])
    still = Unmoved(today.cc, (*evaluator.base.settings, *today.settings), staying)
    jobs = [replace(evaluator.job(best, seed), beside=still) for seed in seeds]
    found = evaluator.scores_of(jobs, "with half of the servers unchanged")
    told = []
    before = evaluator.of(today, seeds)
    for name, group in (("that stay", set(staying)), ("that move", set(servers) - set(staying))):
        pairs = []
        for number, was in enumerate(before):
            answered = [server for server in was.servers if server in group]
            now = [found[number].servers.get(server) for server in answered]
            then = [was.servers[server] for server in answered]
            if answered and None not in now and None not in then:
                pairs.append((math.fsum(v for v in now if v), math.fsum(v for v in then if v)))
        if len(pairs) == len(before) and all(b > 0 for _, b in pairs):
            ratio = math.fsum(a for a, _ in pairs) / math.fsum(b for _, b in pairs)
            told.append(
                f"With half of the servers on {today.cc} as before, mean response times of those {name} are {beside_now(ratio)}."
            )
        else:
            told.append(
                f"With half of the servers on {today.cc} as before, not every response of those {name} is delivered."
            )
    return told


def other_racks(
    evaluator: Evaluator, today: Candidate, best: Candidate, goal: str, table: Mapping[str, Any], seeds: Sequence[int]
) -> list[str]:
    """Whether the best still beats the current setting when the rack is not quite as said."""
    variants = racks_a_fifth_off(table.get("rack", {}))
    jobs = [
        replace(job, settings=(*job.settings, *variant))
        for variant in variants
        for c in (best, today)
        for job in (evaluator.job(c, seed) for seed in seeds)
    ]
    scores = evaluator.scores_of(jobs, "on racks a fifth off")
    lost = []
    for number, variant in enumerate(variants):
        first = number * 2 * len(seeds)
        theirs = math.fsum(scores[first + i].cost(goal) for i in range(len(seeds)))
        mine = math.fsum(scores[first + len(seeds) + i].cost(goal) for i in range(len(seeds)))
        if not theirs < mine:
            lost.append(" and ".join(f"{key} = {value}" for key, value in variant))
    if not lost:
        return [f"It still beats {today.label} on all {len(variants)} racks with rate, delay or buffer 20% off."]
    return [f"It no longer beats {today.label} with {enumeration(lost)}: make sure of the rack first."]


def racks_a_fifth_off(rack: Mapping[str, Any]) -> list[Settings]:
    """The rack with its rate, delay or buffer 20% less or more; `rack` is the ``[rack]`` table."""
    variants: list[Settings] = []
    # What the rack says of the link to the aggregator alone is a fifth off with the others.
    for keys in (
        ("rate", "receiver_rate"),
        ("delay", "receiver_delay"),
        ("buffer", "receiver_buffer", "shared_buffer"),
    ):
        for factor in (1 - UNSURE, 1 + UNSURE):
            values = {key: value for key in keys if (value := _scaled(rack.get(key), factor)) is not None}
            # A buffer that the rack's own threshold fills is no rack.
            limits = [
                packets(value) or math.inf for key, value in values.items() if key in ("buffer", "receiver_buffer")
            ]
            marks = [packets(rack[key]) or 0 for key in ("mark", "receiver_mark") if key in rack]
            if values and min(limits, default=math.inf) > max(marks, default=0):
                variants.append(tuple((f"rack.{key}", value) for key, value in values.items()))
    return variants


def _scaled(written: object, factor: float) -> str | None:
    """A quantity times a factor, in its unit."""
    try:
        text = str(written)
        unit = text.lstrip("0123456789.eE+- ")
        number = float(text[: len(text) - len(unit)])
    except ValueError:
        return None
    scaled = number * factor
    return f"{round(scaled)}{unit}" if unit in ("p", "B", "") else f"{scaled:.6g}{unit}"
