"""What changed between two captures or two comparisons: the last step after a change was tried."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from fanin.disk.files import read_parquet, shown
from fanin.errors import ScenarioError, keywords
from fanin.statistics.ranking import (
    COUNTED,
    ONE,
    PLURAL,
    PREFIX,
    SIGNIFICANT,
    STATISTICS,
    RankBy,
    RankOf,
    column,
    completion_statistics,
    known,
    waited_for,
)
from fanin.statistics.seeds import Estimate, holm, paired_ratios
from fanin.words.text import duration, gain
from fanin.words.verdict import STATISTIC_NAMES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fanin.statistics.seeds import Paired

BLOCKS = 40
"""Responses of a capture are drawn again in so many blocks of consecutive ones, since neighbours share a queue."""

DRAWS = 1000
"""How often."""

RENAMED: dict[str, RankOf] = {"rounds": "requests"}
"""What a comparison of fanin 0.2 called otherwise."""

LIKE_COMPARE: tuple[RankBy, ...] = ("p50", "p99", "p99_9")
"""Statistics shown for each algorithm of a comparison."""


@dataclass(frozen=True, slots=True)
class Change:
    """One statistic before and after.

    Attributes
    ----------
    what : str
        An algorithm, or ``measured`` for captures.
    statistic : str
        One of :data:`fanin.statistics.ranking.STATISTICS`.
    before_ms, after_ms : float or None
        Its value, in ms.
    ratio : Estimate
        How many times as long after as before, with a 95% interval.
    real : bool
        More than chance.
    """

    what: str
    statistic: str
    before_ms: float | None
    after_ms: float | None
    ratio: Estimate
    real: bool

    def to_dict(self) -> dict[str, Any]:
        """As it stands in JSON."""
        return {
            "what": self.what,
            "statistic": self.statistic,
            "before_ms": self.before_ms,
            "after_ms": self.after_ms,
            "ratio": self.ratio.to_dict(),
            "real": self.real,
        }


@dataclass(frozen=True, slots=True)
class Difference:
    """Two captures or two comparisons, side by side.

    Attributes
    ----------
    kind : {"captures", "comparisons"}
        What they are.
    before, after : str
        Their names.
    rank_of : {"trees", "requests", "stages", "responses"}
        Whose completion times.
    headline : str
        The answer in one sentence.
    changes : tuple of Change
        One per algorithm and statistic.
    warnings : tuple of str
        What else differs between the two, so that the changes may have another cause.
    notes : tuple of str
        What a reader should know besides.
    """

    kind: Literal["captures", "comparisons"]
    before: str
    after: str
    rank_of: RankOf
    headline: str
    changes: tuple[Change, ...]
    warnings: tuple[str, ...]
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        return f"<Difference of {self.before} and {self.after}: {self.headline}>"

    def _repr_html_(self) -> str:
        """For notebooks: the answer and what changed."""
        from fanin.pictures.notebook import card

        rows = [(c.what, c.statistic, c.before_ms, c.after_ms, c.ratio.value) for c in self.changes]
        return card(self.headline, ["what", "statistic", "before ms", "after ms", "times as long"], rows)

    def to_dict(self) -> dict[str, Any]:
        """The object that ``fanin diff --json`` prints (schema: docs/json/diff.schema.json)."""
        from fanin import __version__

        return {
            "version": __version__,
            "command": f"fanin diff {self.before} {self.after}",
            "kind": self.kind,
            "before": self.before,
            "after": self.after,
            "rank_of": self.rank_of,
            "headline": self.headline,
            "changes": [change.to_dict() for change in self.changes],
            "warnings": list(self.warnings),
            "notes": list(self.notes),
        }


@keywords
def diff(
    before: str | Path, after: str | Path, *, aggregator: str | None = None, rank_of: RankOf | None = None
) -> Difference:
    """Compare two captures, or the folders of two comparisons.

    Parameters
    ----------
    before, after : path
        Both captures, or both folders that ``fanin compare --out`` wrote.
    aggregator : str, optional
        Of captures: address of the host that the responses go to; the likeliest unless given.
    rank_of : {"trees", "requests", "stages", "responses"}, optional
        Whose completion times, as :func:`fanin.compare`'s. Unless given, what both sides were, or would be, ranked by; responses where they differ.

    Returns
    -------
    Difference

    Raises
    ------
    fanin.ScenarioError
        When one is a folder and the other is not, or a folder holds no comparison.
    fanin.CaptureError
        When a capture cannot be used.

    Examples
    --------
    >>> import fanin
    >>> same = "data/captures/http_onoff_8to1.pcap.gz"
    >>> fanin.diff(same, same).headline
    'The p99 response takes 7.66 ms in both: no measurable change.'
    """
    known(rank_of)
    folders = [Path(place).is_dir() for place in (before, after)]
    if folders[0] != folders[1]:
        raise ScenarioError(
            f"{shown(str(before))} and {shown(str(after))}: one is a folder, the other is not; give two captures or two folders of `fanin compare`"
        )
    if folders[0]:
        return _comparisons(Path(before), Path(after), rank_of)
    return _captures(before, after, aggregator, rank_of)


def _common(before: RankOf, after: RankOf) -> tuple[RankOf, list[str]]:
    """What both sides can be judged by, and what to say of it."""
    if before == after:
        return before, []
    return "responses", [
        f"{before} count before and {after} after: judged by responses, which both have; choose with --rank-of"
    ]


def _captures(before: str | Path, after: str | Path, aggregator: str | None, asked: RankOf | None) -> Difference:
    from fanin.capture.measured import durations, measured, waited
    from fanin.capture.traffic import trains

    read = [(found, found.workload(aggregator)) for found in (trains(before), trains(after))]
    warnings: list[str] = []
    of, notes = _common(*(waited_for(replay, asked) for _, replay in read))
    sides = []
    for found, replay in read:
        host, took = replay.aggregator, waited(found, replay, of)
        values = durations(found, host) if took is None else [ms for ms in took if ms is not None]
        sides.append((values, measured(found, host, took), host))
    (old, seen_before, host_before), (new, seen_after, host_after) = sides
    drawn = [_drawn(values, seed) for seed, values in enumerate((old, new), start=1)]
    changes = []
    for name in STATISTICS:
        a, b = seen_before.completion_ms[name], seen_after.completion_ms[name]
        ratios = sorted(y / x for x, y in zip(drawn[0][name], drawn[1][name], strict=True) if x and y)
        ratio = Estimate(
            b / a if a and b else None,
            ratios[round(0.025 * (len(ratios) - 1))] if ratios else None,
            ratios[round(0.975 * (len(ratios) - 1))] if ratios else None,
        )
        real = ratio.low is not None and ratio.high is not None and not ratio.low <= 1 <= ratio.high
        changes.append(Change("measured", name, a, b, ratio, real))
    if host_before != host_after:
        warnings.append(
            f"the responses go to {host_before} before and to {host_after} after: name one with --aggregator"
        )
    counts = seen_before.retransmissions, seen_after.retransmissions
    notes.append(
        f"segments sent again: {counts[0]:,} in {len(old):,} {PLURAL[of]} before, {counts[1]:,} in {len(new):,} after"
    )
    if not 0.5 < (len(old) or 1) / (len(new) or 1) < 2:
        warnings.append("the captures differ in size by more than a factor of two: was the traffic the same?")
    return Difference(
        "captures",
        shown(str(before)),
        shown(str(after)),
        of,
        _headline(changes, of),
        tuple(changes),
        tuple(warnings),
        tuple(notes),
    )


def _drawn(values: Sequence[float], seed: int) -> dict[str, list[float | None]]:
    """Statistics of as many responses, drawn again in blocks of consecutive ones."""
    chance = random.Random(seed)
    length = max(1, len(values) // BLOCKS)
    blocks = [list(values[i : i + length]) for i in range(0, len(values), length)]
    found: dict[str, list[float | None]] = {name: [] for name in STATISTICS}
    for _ in range(DRAWS if len(values) <= 20_000 else DRAWS // 5):
        told = completion_statistics([v for _ in blocks for v in chance.choice(blocks)])
        for name, value in told.items():
            found[name].append(value)
    return found


def _headline(changes: Sequence[Change], of: RankOf) -> str:
    p99 = next(c for c in changes if c.statistic == "p99")
    if p99.before_ms is None or p99.after_ms is None or p99.ratio.value is None:
        return "There is no p99 on both sides to compare."
    if p99.before_ms == p99.after_ms:
        return f"The p99 {ONE[of]} takes {duration(p99.before_ms)} in both: no measurable change."
    took = f"The p99 {ONE[of]} takes {duration(p99.after_ms)}, before {duration(p99.before_ms)}"
    if not p99.real:
        return f"{took}: no measurable change."
    return f"{took}: {gain(_as_paired(p99.ratio))}."


def _as_paired(ratio: Estimate) -> Paired:
    from fanin.statistics.seeds import Paired

    return Paired(ratio, None)


def _comparisons(before: Path, after: Path, asked: RankOf | None) -> Difference:
    (old, runs_before), (new, runs_after) = _side(before), _side(after)
    warnings: list[str] = []
    of, notes = (asked, []) if asked is not None else _common(*(told["rank_of"] for told in (old, new)))
    for folder, runs in ((before, runs_before), (after, runs_after)):
        for needed in (*(column(name, of) for name in LIKE_COMPARE), COUNTED[of][0]):
            if needed not in runs.columns or not runs.schema[needed].is_numeric():
                raise ScenarioError(f"{shown(str(folder))}: its runs have no numbers `{needed}`")
    if old["file"] != new["file"]:
        warnings.append(f"the capture differs: {old['file']} before, {new['file']} after")
    if old["rack"] != new["rack"]:
        warnings.append("the rack differs")
    if old["version"] != new["version"]:
        warnings.append(f"fanin differs: {old['version']} before, {new['version']} after")
    if of != "responses" and not all(runs[COUNTED[of][0]].sum() for runs in (runs_before, runs_after)):
        raise ScenarioError(f"command line `--rank-of {of}`: not both comparisons have {PLURAL[of]}; take responses")
    changes = []
    pairs = []
    names = [cc for cc in runs_before["cc"].unique(maintain_order=True) if cc in runs_after["cc"]]
    for cc in names:
        both = runs_before.filter(pl.col("cc") == cc).join(
            runs_after.filter(pl.col("cc") == cc), on="seed", how="inner", suffix="_after"
        )
        if both.height == 0:
            continue
        for name in LIKE_COMPARE:
            a, b = both[column(name, of)].to_list(), both[f"{column(name, of)}_after"].to_list()
            pairs.append((cc, name, _mean(a), _mean(b), paired_ratios(b, a)))
    corrected = holm([paired.p for *_, paired in pairs])
    for (cc, name, then, now, paired), p in zip(pairs, corrected, strict=True):
        changes.append(Change(cc, name, then, now, paired.change, p is not None and p < SIGNIFICANT))
    if not changes:
        raise ScenarioError(
            f"{shown(str(before))} and {shown(str(after))}: no algorithm ran in both under the same seed"
        )
    real = [c for c in changes if c.real and c.statistic == "p99"]
    best = [side["best"] for side in (old, new)]
    answer = f"both advise {best[0]}" if best[0] == best[1] else f"{best[0]} was advised, now {best[1]}"
    moved = ", ".join(f"{c.what} {gain(_as_paired(c.ratio))}" for c in real) or f"no p99 {ONE[of]} changed measurably"
    return Difference(
        "comparisons",
        shown(str(before)),
        shown(str(after)),
        of,
        f"{answer[0].upper()}{answer[1:]}; {moved}.",
        tuple(changes),
        tuple(warnings),
        tuple(notes),
    )


def _side(folder: Path) -> tuple[dict[str, Any], pl.DataFrame]:
    """What a comparison says of itself, and its runs; anybody may have made both.

    fanin 0.2 called a request a round in the names of columns.
    """
    try:
        told = json.loads((folder / "compare.json").read_text(encoding="utf-8"))
        of = told.get("rank_of", "responses")
        of = RENAMED.get(of, of)
        if of not in PREFIX:
            raise ValueError(of)
        said = {
            "file": str(told["capture"]["file"]),
            "rack": told["rack"],
            "version": str(told["version"]),
            "rank_of": of,
            "best": told["answer"]["best"] if told["answer"] else None,
        }
        (runs,) = read_parquet(folder / "runs.parquet")
        runs = runs.rename(lambda name: name.replace("round", "request"))
        return said, runs.with_columns(pl.col("cc").cast(pl.String), pl.col("seed").cast(pl.Int64))
    except (
        OSError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        RecursionError,
        pl.exceptions.PolarsError,
    ) as error:
        raise ScenarioError(
            f"{shown(str(folder))}: holds no comparison that can be read ({type(error).__name__}); give a folder that `fanin compare --out` wrote"
        ) from error


def _mean(values: Sequence[float | None]) -> float | None:
    from fanin.statistics.seeds import estimate_positive

    return estimate_positive(values).value


def print_difference(found: Difference) -> None:
    """Print it for people."""
    from rich.table import Table

    from fanin.terminal.display import note, output, print_table
    from fanin.terminal.markup import escape
    from fanin.words.text import number

    out = output()
    out.print(f"[bold]{escape(found.headline)}[/bold]")
    table = Table(title=f"{escape(found.before)} -> {escape(found.after)}", title_justify="left")
    table.add_column("", no_wrap=True)
    for title in ("statistic", "before ms", "after ms", "ratio", "95% interval"):
        table.add_column(title, justify="left" if title == "statistic" else "right", no_wrap=True)
    for c in found.changes:
        interval = "" if c.ratio.low is None or c.ratio.high is None else f"{c.ratio.low:.2f}–{c.ratio.high:.2f}"
        star = "*" if c.real else " "
        ratio = "-" if c.ratio.value is None else f"{c.ratio.value:.2f}"
        table.add_row(
            escape(c.what),
            STATISTIC_NAMES[c.statistic],
            number(c.before_ms),
            number(c.after_ms),
            ratio + star,
            interval,
        )
    print_table(table)
    out.print("* more than chance", style="dim")
    for warning in found.warnings:
        note(f"warning: {warning}")
    for each in found.notes:
        note(f"note: {each}")
