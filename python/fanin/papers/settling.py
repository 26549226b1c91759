"""How many of its seeds a verdict needs: the first half of them where that settles it, otherwise all.

A claim is reproduced when every check holds over all seeds and over either half of them (:func:`fanin.papers.verdicts.judge`). Hence:

- A check that fails over the first half: the verdict is "differs", whatever the other seeds give. They are not run.
- Every check holds over the first half, over either half of that, and over :data:`AGAIN` samples of its seeds, drawn with replacement: the verdict
  is "reproduced". What holds narrowly fails over one of the samples. Experiments whose first half has fewer than :data:`LEAST` seeds are run with
  all of them before that.
- Otherwise all seeds are run, and the verdict is theirs.

A reading is left for the next one as ``fanin reproduce --search`` leaves it: when one check fails over the first quarter of the seeds and over
either half of that. Where none of the others holds, the verdict is that of the first reading, by the rules above.

What is decided depends on results alone: not on what was asked for besides, nor on what was kept of a run before. A mutant that fails a check
over all seeds and over either half (``make claim-mutants``) fails it over the first half, so that none that is killed passes by the shorter way.
The first half has two seeds or more, since every value has an interval.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import islice, pairwise

import polars as pl

from fanin.papers.intervals import is_long, resamples
from fanin.papers.verdicts import DIFFERS, EVALUATIONS, REPRODUCED, Data, Frames, Judged, LacksError

LEAST = 4
"""Seeds of a first half that may settle that a claim is reproduced: either half of it has two or more."""

AGAIN = 20
"""Samples of the seeds over which a claim has to hold. One that fails over one sample in ten passes all of them once in eight times."""


def first_part(seeds: int) -> int:
    """How many of an experiment's seeds are run first: the lower half as :meth:`fanin.papers.verdicts.Data.halves` cuts it, but two at least.

    >>> [first_part(seeds) for seeds in (1, 2, 3, 4, 7, 8, 40)]
    [1, 2, 2, 2, 3, 4, 20]
    """
    return min(seeds, max(2, seeds // 2))


def glance(seeds: int) -> int:
    """How many seeds may show that another reading is to be tried.

    >>> [glance(seeds) for seeds in (1, 4, 7, 8, 16, 40)]
    [1, 2, 3, 2, 4, 10]
    """
    return max(2, seeds // 4) if enough(seeds) else first_part(seeds)


def parts(seeds: int) -> list[range]:
    """An experiment's seeds in pieces, so that what was kept of fewer is found when more are asked for.

    >>> parts(40)
    [range(1, 11), range(11, 21), range(21, 41)]
    """
    ends = sorted({0, glance(seeds), first_part(seeds), seeds})
    return [range(before + 1, end + 1) for before, end in pairwise(ends)]


def enough(seeds: int) -> bool:
    """Whether the first part of an experiment's seeds may settle that a claim is reproduced."""
    return first_part(seeds) >= LEAST


def left(claim: str, data: Data) -> bool:
    """Whether a check of a claim fails over these seeds and over either half of them; intervals that need all seeds are not asked for."""
    judge = EVALUATIONS[claim].judge
    try:
        failed = [in_words(judge(some).failed) for some in (Data(data.frames, data.quick, True), *data.halves())]
    except (LacksError, KeyError):
        return False
    return bool(set.intersection(*failed))


def in_words(checks: Iterable[str]) -> set[str]:
    """Checks without what was measured, which stands in brackets behind them."""
    return {check.partition(" (")[0] for check in checks}


def settled(judged: Judged, data: Data, seeds: Mapping[str, int], cut: Collection[str]) -> bool:
    """Whether a verdict over some of the seeds is that over all.

    Parameters
    ----------
    judged : Judged
        The verdict over `data`, which its two halves agree with if it is "reproduced".
    data : Data
        The first part of each experiment's seeds, or all.
    seeds : mapping
        How many seeds each experiment has in all.
    cut : collection of str
        Experiments of which `data` has the first part.
    """
    lower = Data(
        {name: _up_to(frames, max(1, seeds[name] // 2)) for name, frames in data.frames.items()}, data.quick, True
    )
    try:
        holds = EVALUATIONS[judged.id].judge(lower).holds
    except (LacksError, KeyError):
        return False
    if not holds:
        return judged.verdict == DIFFERS
    return judged.verdict == REPRODUCED and all(enough(seeds[name]) for name in cut) and _stable(judged.id, data)


def _stable(claim: str, data: Data) -> bool:
    """Whether a claim holds over each of some samples of its seeds; the same ones for the same claim."""
    # Traces are long where runs are short: to run the other seeds takes less than to draw them.
    if is_long(data):
        return False
    try:
        return all(EVALUATIONS[claim].judge(sample).holds for sample in islice(resamples(data, claim), AGAIN))
    except (LacksError, KeyError):
        return False


def _up_to(frames: Frames, last: int) -> Frames:
    """What the verdict over all seeds has for its lower half; seeds are numbered from 1."""
    return {name: rows.filter(pl.col("seed") <= last) for name, rows in frames.items()}
