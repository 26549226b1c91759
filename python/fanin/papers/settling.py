"""How many of its seeds a verdict needs: the first half of them where that settles it, otherwise all.

A claim is reproduced when every check holds over all seeds and over either half of them (:func:`fanin.papers.verdicts.judge`). Hence:

- A check that fails over the first half: the verdict is "differs", whatever the other seeds give. They are not run.
- Every check holds over the first half and over either half of that: the verdict is "reproduced". Experiments whose first half has fewer than
  :data:`LEAST` seeds are run with all of them before that.
- Otherwise all seeds are run, and the verdict is theirs.

What is decided depends on results alone: not on what was asked for besides, nor on what was kept of a run before. A mutant that fails a check
over all seeds and over either half (``make claim-mutants``) fails it over the first half, so that none that is killed passes by the shorter way.
The first half has two seeds or more, since every value has an interval.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import polars as pl

from fanin.papers.verdicts import DIFFERS, EVALUATIONS, REPRODUCED, Data, Frames, Judged, LacksError

LEAST = 4
"""Seeds of a first half that may settle that a claim is reproduced: either half of it has two or more."""


def first_part(seeds: int) -> int:
    """How many of an experiment's seeds are run first: the lower half as :meth:`fanin.papers.verdicts.Data.halves` cuts it, but two at least.

    >>> [first_part(seeds) for seeds in (1, 2, 3, 4, 7, 8, 40)]
    [1, 2, 2, 2, 3, 4, 20]
    """
    return min(seeds, max(2, seeds // 2))


def enough(seeds: int) -> bool:
    """Whether the first part of an experiment's seeds may settle that a claim is reproduced."""
    return first_part(seeds) >= LEAST


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
    return judged.verdict == REPRODUCED and all(enough(seeds[name]) for name in cut)


def _up_to(frames: Frames, last: int) -> Frames:
    """What the verdict over all seeds has for its lower half; seeds are numbered from 1."""
    return {name: rows.filter(pl.col("seed") <= last) for name, rows in frames.items()}
