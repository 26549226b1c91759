"""Intervals on the values that a claim's verdict states: the seeds are drawn again with replacement, and the claim is judged anew."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping

import polars as pl

from fanin.papers.verdicts import Data, Evaluate, Frames

NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(?:\.\d+)?")
"""A number in a sentence; the digits of a name, as in ``p99`` or ``gss.fig4``, are none."""

RESAMPLES = 200
FEWER = 40
"""Where there are more than :data:`MANY_ROWS` rows, each of which every resample copies."""
MANY_ROWS = 500_000


def with_intervals(judge: Evaluate, data: Data, name: str) -> str:
    """What the claim states as ours, each number that the seeds decide with the interval of 95 % behind it.

    Parameters
    ----------
    judge : callable
        The claim's evaluation.
    data : Data
        What it was judged on.
    name : str
        The claim: it decides which seeds are drawn, so that the same results have the same intervals.

    Returns
    -------
    str
        As ``19.26 [18.90, 19.61]``; without intervals where there is one seed.
    """
    stated = judge(data).ours
    values = NUMBER.findall(stated)
    if len(data.seeds()) < 2 or not values:
        return stated
    samples = resamples(data, name)
    found: list[list[float]] = [[] for _ in values]
    for _ in range(FEWER if is_long(data) else RESAMPLES):
        again = judge(next(samples)).ours
        numbers = NUMBER.findall(again)
        # A sentence of another form, as where something never happened in these seeds, has no numbers to compare.
        if len(numbers) == len(values) and NUMBER.sub("#", again) == NUMBER.sub("#", stated):
            for cell, number in zip(found, numbers, strict=True):
                cell.append(float(number))
    spans = iter(found)

    def told(match: re.Match[str]) -> str:
        span = pl.Series(next(spans), dtype=pl.Float64)
        if len(span) < FEWER // 2 or span.min() == span.max():
            return match[0]
        digits = len(match[0].partition(".")[2])
        low, high = span.quantile(0.025, "linear"), span.quantile(0.975, "linear")
        return f"{match[0]} [{low:.{digits}f}, {high:.{digits}f}]"

    return NUMBER.sub(told, stated)


def is_long(data: Data) -> bool:
    """Whether it has so many rows that a sample takes long to draw."""
    return sum(frame.height for frames in data.frames.values() for frame in frames.values()) > MANY_ROWS


def resamples(data: Data, name: str) -> Iterator[Data]:
    """Samples of the seeds, drawn with replacement, without end; the same ones for the same name."""
    drawn, by_seed = random.Random(name), _by_seed(data)
    while True:
        yield _resampled(data, by_seed, drawn)


def _by_seed(data: Data) -> dict[str, dict[int, Frames]]:
    """By experiment and seed: the rows of its frames."""
    made: dict[str, dict[int, Frames]] = {}
    for name, frames in data.frames.items():
        parts = {
            frame: rows.with_columns(pl.col("seed").cast(pl.Int64)).partition_by("seed", as_dict=True)
            for frame, rows in frames.items()
        }
        seeds = sorted({seed for rows in frames.values() for seed in rows["seed"].cast(pl.Int64).unique().to_list()})
        made[name] = {
            seed: {frame: parts[frame].get((seed,), rows.clear()) for frame, rows in frames.items()} for seed in seeds
        }
    return made


def _resampled(data: Data, by_seed: Mapping[str, Mapping[int, Frames]], drawn: random.Random) -> Data:
    """As many seeds as there are, drawn with replacement; each draw is a seed of its own."""
    made: dict[str, Frames] = {}
    for name, frames in data.frames.items():
        of = by_seed[name]
        seeds = list(of)
        chosen = [of[drawn.choice(seeds)] for _ in seeds]
        made[name] = {
            frame: pl.concat(
                [rows[frame].with_columns(pl.lit(n, pl.Int64).alias("seed")) for n, rows in enumerate(chosen, 1)]
            )
            for frame in frames
        }
    # Half of the seeds, as far as a check is concerned that needs all of them.
    return Data(made, data.quick, True)
