"""What if the rack is another than the file says: the same comparison over values that are not known."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from fanin.errors import ScenarioError
from fanin.statistics.ranking import STATISTICS
from fanin.statistics.seeds import estimate_positive, paired_ratios

if TYPE_CHECKING:
    from fanin.comparison.result import CompareResult
    from fanin.decision import Outcome
    from fanin.words.verdict import Verdict

MOST = 64
"""More racks than this are a mistake, or a sweep."""


@dataclass(frozen=True, slots=True)
class Variation:
    """The answer on one other rack.

    Attributes
    ----------
    settings : dict of str to str
        What differs, by key, as in ``{"rack.buffer": "50p"}``.
    kind : str
        As :attr:`fanin.words.verdict.Verdict.kind`: of that rack alone where it was asked for, else of the answer, which is taken over all racks that
        reproduce the capture.
    best : str or None
        What is advised: there, or by the answer.
    baseline_ms, best_ms : float or None
        The ranking's statistic with the baseline and with `best`, in ms.
    ratio : float or None
        How many times as long it takes with `best` as with the baseline, paired by seed; 1 where the baseline is to be kept.
    outcomes : tuple of Outcome
        What the runs there gave.
    """

    settings: dict[str, str]
    kind: str
    best: str | None
    baseline_ms: float | None
    best_ms: float | None
    ratio: float | None
    outcomes: tuple[Outcome, ...] = field(default=(), repr=False, compare=False)

    def keeps(self, baseline: str | None) -> bool:
        """Nothing better is advised there than the baseline."""
        return self.kind == "keep" or self.best == baseline

    def to_dict(self) -> dict[str, Any]:
        """As it stands in JSON."""
        return {
            "settings": dict(self.settings),
            "kind": self.kind,
            "best": self.best,
            "baseline_ms": self.baseline_ms,
            "best_ms": self.best_ms,
            "ratio": self.ratio,
        }


def racks(vary: Mapping[str, Sequence[str]]) -> list[dict[str, str]]:
    """Every combination of the values, the last key changing fastest.

    Examples
    --------
    >>> racks({"rack.buffer": ["50p", "100p"], "rack.rate": ["1Gbps"]})
    [{'rack.buffer': '50p', 'rack.rate': '1Gbps'}, {'rack.buffer': '100p', 'rack.rate': '1Gbps'}]
    """
    for key, values in vary.items():
        twice = next((value for value in values if list(values).count(value) > 1), None)
        if twice is not None:
            raise ScenarioError(f"command line `--vary {key.removeprefix('rack.')}`: it has {twice} twice")
    made = [dict(zip(vary, values, strict=True)) for values in itertools.product(*vary.values())]
    if len(made) > MOST:
        raise ScenarioError(f"command line `--vary`: {len(made)} racks are more than {MOST}; give fewer values")
    return made


def variation(settings: dict[str, str], result: CompareResult) -> Variation:
    """What one comparison says, in short."""
    told = result.verdict
    statistic = told.by if told.by in STATISTICS else result.rank_by
    rows = {row.cc: row for row in result.ranking}
    best, usual = rows.get(told.best or ""), rows.get(told.baseline or "")
    paired = best.against_baseline.get(statistic) if best is not None else None
    return Variation(
        settings=settings,
        kind=told.kind,
        best=told.best,
        baseline_ms=usual.completion_ms[statistic].value if usual else None,
        best_ms=best.completion_ms[statistic].value if best else None,
        ratio=paired.change.value if paired is not None else 1.0 if best is usual else None,
        outcomes=result.outcomes,
    )


def under(answer: Verdict, other: Variation, rank_by: str) -> Variation:
    """What an answer that is taken over several racks gives on one of them."""
    statistic = answer.by if answer.by in STATISTICS else rank_by
    runs = {outcome.name: outcome.runs for outcome in other.outcomes}
    now, then = (runs.get(name or "", {}) for name in (answer.baseline, answer.best))
    shared = [run for run in now if run in then]
    mine, theirs = ([side[run].get(statistic) for run in shared] for side in (then, now))
    ratio = paired_ratios(mine, theirs).change.value if shared else None
    return replace(
        other,
        kind=answer.kind,
        best=answer.best,
        baseline_ms=estimate_positive([values.get(statistic) for values in now.values()]).value,
        best_ms=estimate_positive([values.get(statistic) for values in then.values()]).value,
        ratio=1.0 if answer.best == answer.baseline else ratio,
    )


def holds(best: str | None, variations: Sequence[Variation]) -> str:
    """Whether the answer holds on the other racks, in a sentence.

    Examples
    --------
    >>> other = [Variation({"rack.buffer": b}, "change", cc, 4.0, 3.0, 0.75) for b, cc in (("50p", "bbr"), ("400p", "dctcp"))]
    >>> holds("bbr", other)
    'The answer holds unless buffer = 400p (dctcp).'
    >>> holds("bbr", other[:1]), holds("bbr", other[1:])
    ('The answer holds on the other rack tried.', 'The answer does not hold on the other rack tried: buffer = 400p (dctcp).')
    """
    differs = [v for v in variations if v.best != best]
    if not differs:
        count = len(variations)
        return f"The answer holds on {'the other rack' if count == 1 else f'all {count} racks'} tried."
    told = [
        ", ".join(f"{key.removeprefix('rack.')} = {value}" for key, value in v.settings.items()) + f" ({v.best})"
        for v in differs
    ]
    if len(differs) == len(variations):
        count = len(variations)
        which = "does not hold on the other rack" if count == 1 else f"holds on none of the other {count} racks"
        return f"The answer {which} tried: {'; '.join(told)}."
    shown = "; ".join(told[:4]) + (f"; and {len(told) - 4} more" if len(told) > 4 else "")
    return f"The answer holds unless {shown}."
