"""How many of its seeds a verdict needs: the first half of them where that settles it, otherwise all.

A claim is reproduced when every check holds over all seeds and over either half of them (:func:`fanin.papers.verdicts.judge`). Hence:

- A check that fails over the first half: the verdict is "differs", whatever the other seeds give. They are not run.
- Every check holds over the first half and over either half of that: the verdict is "reproduced".
- Otherwise all seeds are run, and the verdict is theirs.

What is decided depends on results alone: not on what was asked for besides, nor on what was kept of a run before. A mutant that fails a check
over all seeds and over either half (``make claim-mutants``) fails it over the first half, so that none that is killed passes by the shorter way.
Experiments with fewer than :data:`LEAST` seeds are always run with all.
"""

from __future__ import annotations

from collections.abc import Collection

from fanin.papers.verdicts import DIFFERS, EVALUATIONS, REPRODUCED, Data, Judged, LacksError

LEAST = 8
"""Seeds of an experiment from which on half of them may settle a verdict: either half of the half has two or more."""


def first_part(seeds: int) -> int:
    """How many of an experiment's seeds are run first: the lower half as :meth:`fanin.papers.verdicts.Data.halves` cuts it, or all.

    >>> first_part(8), first_part(21), first_part(7)
    (4, 10, 7)
    """
    return seeds // 2 if seeds >= LEAST else seeds


def settled(judged: Judged, data: Data, cut: Collection[str]) -> bool:
    """Whether a verdict over the first part of the seeds is that over all.

    Parameters
    ----------
    judged : Judged
        The verdict over `data`, which its two halves agree with if it is "reproduced".
    data : Data
        The first part of each experiment's seeds.
    cut : collection of str
        The experiments of which there are more seeds; of the others `data` has all.
    """
    rest = Data({name: frames for name, frames in data.frames.items() if name not in cut})
    halved = {name: frames for name, frames in data.frames.items() if name in cut}
    # What the verdict over all seeds has for its lower half.
    lower = Data({**rest.halves()[0].frames, **halved}, data.quick, True)
    try:
        holds = EVALUATIONS[judged.id].judge(lower).holds
    except (LacksError, KeyError):
        return False
    return judged.verdict == (REPRODUCED if holds else DIFFERS)
