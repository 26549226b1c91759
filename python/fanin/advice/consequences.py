"""Where what is advised would hurt, what becomes of those that are not moved, and whether it holds on a rack that is not quite as said."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from fanin.advice.judge import paired, spoken, worse
from fanin.advice.search import GOALS, Evaluator, Score
from fanin.ranking import SIGNIFICANT, RankOf
from fanin.runs.job import Settings
from fanin.runs.replay import Unmoved
from fanin.settings import Candidate
from fanin.settings.declared import UNSURE, packets
from fanin.text import enumeration, shortening

BOOTSTRAPS = 2000


def hurts(theirs: Sequence[Score], mine: Sequence[Score], goal: str, of: RankOf) -> list[str]:
    """The other goals that get worse, and the connection that loses most."""
    told = []
    for other in GOALS:
        if other == goal:
            continue
        found = paired(theirs, mine, other)
        value = found.change.value
        if value is None or found.p is None or found.p >= SIGNIFICANT:
            continue
        if worse(found, other) and abs(value - 1) > 0.005:
            told.append(f"{spoken(other, of)} gets worse: its ratio to today's is {value:.3g}.")
    worst, ratio = None, 1.0
    for key in mine[0].connections:
        pairs = [(a.connections.get(key), b.connections.get(key)) for a, b in zip(theirs, mine, strict=True)]
        known = [(a, b) for a, b in pairs if a is not None and b is not None and b > 0]
        if len(known) == len(pairs):
            longer = math.fsum(a for a, _ in known) / math.fsum(b for _, b in known)
            if longer > ratio:
                worst, ratio = key, longer
    if worst is None:
        told.append("No connection has a longer mean response time than today.")
    else:
        told.append(
            f"Worst connection: {worst[0]} (server {worst[1]}), whose mean response time is {beside_today(ratio)}."
        )
    return told


def beside_today(ratio: float) -> str:
    """How a time compares with today's.

    Examples
    --------
    >>> beside_today(1.001), beside_today(1.02), beside_today(0.4)
    ("today's", "2% longer than today's", "2.5 times shorter than today's")
    """
    change = shortening(1.0, ratio)
    return "today's" if change == "as long" else f"{change} than today's"


def stability(
    evaluator: Evaluator, everyone: Sequence[Candidate], best: Candidate, goal: str, seeds: Sequence[int], near: float
) -> tuple[float, float]:
    """How often, over resampled seeds, the best beats today's (the first), and is as good as the best of all, within a share of `near`."""
    costs = {c: [score.cost(goal) for score in evaluator.of(c, seeds)] for c in everyone}
    source = random.Random(1)
    beats = leads = 0
    for _ in range(BOOTSTRAPS):
        drawn = [source.randrange(len(seeds)) for _ in seeds]
        sums = {c: sum(values[i] for i in drawn) for c, values in costs.items()}
        beats += sums[best] < sums[everyone[0]]
        least = min(sums.values())
        leads += sums[best] <= least + near * abs(least)
    return beats / BOOTSTRAPS, leads / BOOTSTRAPS


def coexistence(evaluator: Evaluator, today: Candidate, best: Candidate, seeds: Sequence[int]) -> list[str]:
    """Half of the servers stay: what becomes of them, and of those that move."""
    servers = list(evaluator.base.traffic.replay.servers)
    if len(servers) < 2:
        return ["One server alone: there is no mix of moved and unmoved servers to look at."]
    staying = tuple(servers[::2])
    still = Unmoved(today.cc, (*evaluator.base.settings, *today.settings), staying)
    jobs = [replace(evaluator.job(best, seed), beside=still) for seed in seeds]
    found = evaluator.scores_of(jobs, "with half of the servers unmoved")
    told = []
    before = evaluator.of(today, seeds)
    for name, group in (("that stay", set(staying)), ("that move", set(servers) - set(staying))):
        pairs = []
        for number, was in enumerate(before):
            keys = [key for key in was.connections if key[1] in group]
            now = [found[number].connections.get(key) for key in keys]
            then = [was.connections[key] for key in keys]
            if keys and None not in now and None not in then:
                pairs.append((math.fsum(v for v in now if v), math.fsum(v for v in then if v)))
        if len(pairs) == len(before) and all(b > 0 for _, b in pairs):
            ratio = math.fsum(a for a, _ in pairs) / math.fsum(b for _, b in pairs)
            told.append(
                f"With half of the servers on {today.cc} as before, mean response times of those {name} are {beside_today(ratio)}."
            )
        else:
            told.append(
                f"With half of the servers on {today.cc} as before, not every response of those {name} is delivered."
            )
    return told


def other_racks(
    evaluator: Evaluator, today: Candidate, best: Candidate, goal: str, table: Mapping[str, Any], seeds: Sequence[int]
) -> list[str]:
    """Whether the best still beats today's when the rack is not quite as said."""
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
