"""The verdict of a comparison: one object, whose sentences the terminal, the JSON, Python and the report all show.

A win is claimed only where the paired differences from the baseline say so, and only for what can be the answer
(:attr:`fanin.ranking.RankingRow.candidate`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from fanin import _native
from fanin.deployable import Recommendation, deployment, load_parameters, recommendation
from fanin.measured import FEWEST_RETRANSMISSIONS, slower_than_measured
from fanin.rack_facts import packets, rack_facts
from fanin.ranking import ONE, PREFIX, SIGNIFICANT, STATISTICS
from fanin.stats import holm
from fanin.text import duration, enumeration, shortening, significant

if TYPE_CHECKING:
    from fanin.comparison import CompareResult
    from fanin.ranking import RankBy, RankingRow
    from fanin.stats import Paired

STATISTIC_NAMES = {"mean": "mean", "p50": "median", "p95": "p95", "p99": "p99", "p99_9": "p99.9"}
"""Statistics as people read them."""

PRESUMED = (
    ("cubic", "what Linux runs unless told otherwise"),
    ("reno", "standard TCP"),
    ("sack", "standard TCP with SACK"),
    ("newreno", "standard TCP"),
)
"""What hosts are presumed to run today, likeliest first; the comparison is against the first that was ranked."""

WORTHWHILE = 0.97
"""A completion time that is shorter by less than this ratio is no reason to change a TCP, however certain; as in :mod:`fanin.advice`."""

LOOK_UP = (
    "Look up the rate and the buffer of the switch port to the aggregator and give them with --rack, and capture again before the queue, at the switch or "
    "at the servers, where losses and servers' own times are seen."
)
"""What to do where nothing can be advised."""

Kind = Literal["change", "tail", "keep", "undecided", "none"]


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why an algorithm that leads by the ranking's statistic is not advised.

    Attributes
    ----------
    cc : str
        The algorithm.
    why : str
        One clause, without a full stop.
    """

    cc: str
    why: str

    def to_dict(self) -> dict[str, str]:
        """As it stands in JSON."""
        return {"cc": self.cc, "why": self.why}


@dataclass(frozen=True, slots=True)
class Confirmation:
    """What another engine said of the best of a comparison (``fanin compare --confirm``).

    Attributes
    ----------
    engine, label : str
        Such as ``kernel``, and what that is.
    holds : bool
        It advises the same, or cannot tell.
    order : bool
        No two of the algorithms are the other way round there, as far as the runs can tell.
    sentence : str
        What it found, for the terminal and the report.
    rows : tuple of dict
        Per algorithm, best there first: ``cc``, and ``simulated`` and ``there`` with ``mean``, ``p50``, ``p95``, ``p99``, ``p99_9`` (ms, with
        ``low`` and ``high``), ``times_baseline``, ``p``, ``timeouts``, ``retransmissions``, ``queue_mean_packets``, ``rank`` and ``seeds``.
    result : CompareResult or None
        The comparison on that engine, of a comparison.
    """

    engine: str
    label: str
    holds: bool
    order: bool
    sentence: str
    rows: tuple[dict[str, Any], ...]
    result: CompareResult | None = None

    def to_dict(self) -> dict[str, Any]:
        """As it stands in JSON."""
        return {
            "engine": self.engine,
            "label": self.label,
            "holds": self.holds,
            "order": self.order,
            "sentence": self.sentence,
            "rows": list(self.rows),
        }


@dataclass(frozen=True, slots=True, repr=False)
class Verdict:
    """The answer.

    Attributes
    ----------
    kind : {"change", "tail", "keep", "undecided", "none"}
        ``change``: `best` beats the baseline by the ranking's statistic. ``tail``: nothing does, but `best` beats it at p99.9 and is not
        measurably worse otherwise. ``keep``: nothing measurably beats the baseline. ``undecided``: the runs cannot tell. ``none``: on no rack
        that the capture allows does the replay of the baseline give what was measured, so that nothing can be advised.
    headline : str
        One sentence.
    support : tuple of str
        What else one needs before acting on it.
    cautions : tuple of str
        Why to trust it less: a simulation that does not agree with the capture, few seeds, failed algorithms, a damaged capture.
    best : str or None
        The algorithm that is advised; the baseline when it is to be kept.
    baseline, baseline_why : str or None
        What hosts are taken to run today, and how that is known.
    refused : tuple of Refusal
        Algorithms that lead by the ranking's statistic and pay for it in the tail.
    recommendation : Recommendation or None
        The lines that try `best` and take it back; None when nothing is to be changed or no host can run it.
    """

    kind: Kind
    headline: str
    support: tuple[str, ...]
    cautions: tuple[str, ...]
    best: str | None
    baseline: str | None
    baseline_why: str | None
    refused: tuple[Refusal, ...]
    recommendation: Recommendation | None

    def __repr__(self) -> str:
        return f"<Verdict {self.kind}: {self.headline}>"

    def to_dict(self) -> dict[str, Any]:
        """As ``answer`` stands in JSON."""
        return {
            "kind": self.kind,
            "headline": self.headline,
            "support": list(self.support),
            "cautions": list(self.cautions),
            "best": self.best,
            "refused": [refusal.to_dict() for refusal in self.refused],
        }


def presumed(names: Sequence[str]) -> str | None:
    """The algorithm that hosts are presumed to run today, of these; None when none of the presumed is among them.

    Examples
    --------
    >>> presumed(["dctcp", "reno", "cubic"]), presumed(["dctcp"])
    ('cubic', None)
    """
    return next((cc for cc, _ in PRESUMED if cc in names), None)


def verdict(result: CompareResult) -> Verdict:
    """Judge a comparison with at least one ranked algorithm; where another engine was asked and says otherwise, that one is believed."""
    mine, found = verdict_of(result), result.confirmation
    if found is None or found.result is None:
        return mine
    if found.holds:
        return replace(mine, support=(found.sentence, *mine.support))
    theirs = verdict_of(found.result)
    return replace(
        theirs,
        headline=f"Real Linux TCP says otherwise than the simulation: {theirs.headline}",
        support=(found.sentence, *theirs.support),
        cautions=mine.cautions,
    )


def verdict_of(result: CompareResult) -> Verdict:
    """Judge a comparison by its own runs alone."""
    rows = [row for row in result.ranking if row.candidate]
    usual = next((row for row in result.ranking if row.cc == result.baseline), None)
    refused = tuple(_refused(row) for row in rows if _worse_further_out(row))
    # Those which the ranking puts behind what is advised need no reason.
    open_to = [row for row in rows if not _worse_further_out(row)] or rows
    best = open_to[0]
    kind, best = _judged(result, open_to, best, usual)
    leading = tuple(r for r in refused if _place(rows, r.cc) < _place(rows, best.cc))
    why = None
    if usual is not None:
        why = "as given" if result.baseline_given else result.baseline_seen or dict(PRESUMED).get(usual.cc, "as given")
    return Verdict(
        kind=kind,
        headline=_headline(result, kind, best, usual),
        support=tuple(_support(result, kind, best, usual, leading, why)),
        cautions=tuple(_cautions(result)),
        best=best.cc,
        baseline=usual.cc if usual else None,
        baseline_why=why,
        refused=leading,
        recommendation=_recommended(result, kind, best, usual),
    )


def _judged(
    result: CompareResult, rows: list[RankingRow], best: RankingRow, usual: RankingRow | None
) -> tuple[Kind, RankingRow]:
    by = result.rank_by
    if result.calibration is not None and not result.calibration.reproduced:
        return "none", usual or best
    if best.completion_ms[by].value is None:
        return "undecided", best
    if usual is None or len(result.ranking) == 1:
        return ("change" if len(best.seeds) > 1 or len(rows) == 1 else "undecided"), best
    if len(best.seeds) < 2 or len(usual.seeds) < 2:
        return "undecided", best
    winner = next((row for row in rows if _wins(row, by, row.p) and _worthwhile(row, by)), None)
    if winner is not None:
        return "change", winner
    tails = holm([_p(row, "p99_9") for row in rows])
    shorter = [
        row for row, p in zip(rows, tails, strict=True) if _wins_the_tail(row, by, p) and _worthwhile(row, "p99_9")
    ]
    if shorter:
        return "tail", min(shorter, key=lambda row: row.completion_ms["p99_9"].value or 0.0)
    return ("keep" if usual.completion_ms[by].value is not None else "undecided"), usual if usual in rows else best


def _wins(row: RankingRow, statistic: str, p: float | None) -> bool:
    paired = row.against_baseline.get(statistic)
    return paired is not None and p is not None and p < SIGNIFICANT and _less(row, statistic)


def _p(row: RankingRow, statistic: str) -> float | None:
    paired = row.against_baseline.get(statistic)
    return None if paired is None else paired.p


def _worthwhile(row: RankingRow, statistic: str) -> bool:
    """Shorter by so much that a change of TCP pays, at the statistic or, by more than chance, at another."""
    change = row.against_baseline[statistic].change.value
    return change is None or change <= WORTHWHILE or _elsewhere(row) is not None


def _elsewhere(row: RankingRow) -> RankBy | None:
    """The statistic at which a row gains most, where that is worthwhile and more than chance."""
    ratios = {
        name: paired.change.value
        for name in STATISTICS
        if (paired := row.against_baseline.get(name)) is not None and _wins(row, name, paired.p)
    }
    most = min(ratios, key=lambda name: ratios[name] or 0.0, default=None)
    return most if most is not None and (ratios[most] or 0.0) <= WORTHWHILE else None


def _less(row: RankingRow, statistic: str) -> bool:
    """It is the shorter of the two; where the baseline left responses unfinished, having a value at all is."""
    change = row.against_baseline[statistic].change.value
    return change < 1 if change is not None else row.completion_ms[statistic].value is not None


def _wins_the_tail(row: RankingRow, by: str, p: float | None) -> bool:
    """Shorter at p99.9 than the baseline by more than chance, and at the ranking's statistic not measurably longer. `p` is corrected for all rows."""
    body = row.against_baseline.get(by)
    if by == "p99_9" or body is None:
        return False
    longer = body.p is not None and body.p < SIGNIFICANT and not _less(row, by)
    return not longer and _wins(row, "p99_9", p)


def _worse_further_out(row: RankingRow) -> str | None:
    """The statistic of the tail by which it is measurably worse than the baseline."""
    for name in ("p99_9", "timeouts"):
        paired = row.against_baseline.get(name)
        if paired is None or paired.p is None or paired.p >= SIGNIFICANT:
            continue
        if (paired.change.value or 0.0) > (1.0 if name == "p99_9" else 0.0) or (
            name == "p99_9" and row.completion_ms[name].value is None
        ):
            return name
    return None


def _refused(row: RankingRow) -> Refusal:
    if _worse_further_out(row) == "timeouts":
        more = row.against_baseline["timeouts"].change.value or 0.0
        return Refusal(row.cc, f"has {significant(more, 2)} more timeouts per run than the baseline")
    value, ratio = row.completion_ms["p99_9"].value, row.against_baseline["p99_9"].change.value
    if value is None or ratio is None:
        return Refusal(row.cc, "leaves so many responses unfinished that it has no p99.9")
    return Refusal(
        row.cc, f"is worse than the baseline at p99.9 ({duration(value)}, {significant(ratio, 2)} times as long)"
    )


def _place(rows: list[RankingRow], cc: str) -> int:
    return next((i for i, row in enumerate(rows) if row.cc == cc), len(rows))


def _headline(result: CompareResult, kind: Kind, best: RankingRow, usual: RankingRow | None) -> str:
    if kind == "none" and result.calibration is not None:
        return f"No advice yet: {result.calibration.sentence()}."
    by, what = result.rank_by, ONE[result.rank_of]
    name, value = STATISTIC_NAMES[by], best.completion_ms[by].value
    if value is None:
        return f"No algorithm completes enough {what}s on this rack for a {name} completion time."
    if len(result.ranking) == 1:
        return f"With {best.cc}, the {name} {what} takes {duration(value)} on this rack."
    if usual is None:
        if kind == "undecided":
            return f"One seed cannot tell these TCPs apart; {best.cc} has the shortest {name}, {duration(value)}."
        return f"{best.cc} has the shortest {name} {what} on this rack: {duration(value)}."
    now = usual.completion_ms[by].value
    if kind == "undecided" and now is None and len(best.seeds) > 1:
        return f"{usual.cc} leaves too many {what}s unfinished to have a {name}, and over {_seeds(usual)} nothing can be told from it."
    if kind == "undecided":
        first = "" if best.cc == usual.cc or now is None else f", {duration(now)} with {usual.cc}"
        return (
            f"One seed cannot tell these TCPs apart: the {name} {what} takes {duration(value)} with {best.cc}{first}."
        )
    if kind == "tail":
        return (
            f"Nothing measurably beats {usual.cc} at {name}, but {best.cc} brings the p99.9 {what} "
            f"{_from_to(best, usual, 'p99_9')}."
        )
    if kind == "keep":
        which = "no TCP that hosts can run" if _only_deployable(result) else "no other TCP compared"
        at = f" ({duration(now)})" if now is not None else ""
        much = f" by {1 - WORTHWHILE:.0%} or more" if _too_little(result, usual) else ""
        return f"Keep {usual.cc}: {which} measurably shortens the {name} {what}{at} of this traffic on this rack{much}."
    if now is None:
        return f"{best.cc} brings the {name} {what} to {duration(value)}; {usual.cc} leaves too many {what}s unfinished to have one."
    return f"{best.cc} brings the {name} {what} {_from_to(best, usual, by)}."


def _from_to(best: RankingRow, usual: RankingRow, statistic: str) -> str:
    """From the baseline's value to the best one's, and the paired gain with its interval."""
    now, then = usual.completion_ms[statistic].value, best.completion_ms[statistic].value
    paired = best.against_baseline[statistic]
    if now is None or then is None:
        return f"to {duration(then)}" if then is not None else "to an end"
    return f"from {duration(now)} with {usual.cc} to {duration(then)}: {gain(paired)}"


def gain(paired: Paired) -> str:
    """A paired ratio as a gain, with its interval.

    Examples
    --------
    >>> from fanin.stats import Estimate, Paired
    >>> gain(Paired(Estimate(0.7, 0.6, 0.8), 0.01)), gain(Paired(Estimate(0.05, 0.01, 0.2), 0.01))
    ('30% shorter (20% to 40%)', '20 times shorter (5.0 to 100)')
    >>> gain(Paired(Estimate(1.3, 0.9, 2.2), 0.4))
    '30% longer (10% shorter to 2.2 times longer)'
    >>> gain(Paired(Estimate(0.501, 0.4985, 0.5037), 0.01))
    '50% shorter (50% to 50%)'
    """
    change = paired.change
    if change.value is None:
        return "not to be compared"
    text = shortening(1.0, change.value)
    if change.low is None or change.high is None:
        return text
    # In the words of the value: "50% shorter (50% to 51%)", not "(50% shorter to 2.0 times shorter)".
    percent = "%" in text and change.high < 1
    ends = [f"{1 - end:.0%} shorter" if percent else shortening(1.0, end) for end in (change.high, change.low)]
    if text.endswith("longer"):
        ends.reverse()
    ending = text.split(" ", 1)[1] if "%" in text else text.split(" ", 1)[-1]
    same = [end for end in ends if end.endswith(ending) and ("%" in end) == ("%" in text)]
    if len(same) == 2 and text != "as long":
        return f"{text} ({ends[0].removesuffix(' ' + ending)} to {ends[1].removesuffix(' ' + ending)})"
    return f"{text} ({ends[0]} to {ends[1]})"


def _support(
    result: CompareResult,
    kind: Kind,
    best: RankingRow,
    usual: RankingRow | None,
    refused: tuple[Refusal, ...],
    why: str | None,
) -> list[str]:
    from fanin.comparison.variations import holds

    by, name = result.rank_by, STATISTIC_NAMES[result.rank_by]
    sentences = []
    if usual is not None and result.measured is not None and kind in {"change", "tail"}:
        statistic = by if kind == "change" else "p99_9"
        runs = result.runs.filter(cc=usual.cc)[PREFIX[result.rank_of] + statistic].to_list()
        sentences += slower_than_measured(result.measured, statistic, STATISTIC_NAMES[statistic], runs)
    if usual is not None and len(result.ranking) > 1:
        if result.baseline_given:
            sentences.append(f"Your hosts were said to run {usual.cc}.")
        elif result.baseline_seen:
            sentences.append(f"Your hosts run {usual.cc}: {why} (another: --baseline).")
        else:
            shows = f"shows only that {result.baseline_hint}" if result.baseline_hint else "does not show it"
            sentences.append(
                f"Your hosts are presumed to run {usual.cc}, {why}; the capture {shows} (another: --baseline)."
            )
    if kind == "none":
        return [*sentences, LOOK_UP]
    if result.calibration is not None:
        said = result.calibration.sentence()
        sentences.append(f"{said[0].upper()}{said[1:]}.")
    sentences += _without_a_queue(result)
    for refusal in refused:
        row = next(row for row in result.ranking if row.cc == refusal.cc)
        value = row.completion_ms[by].value
        at = f" has a {name} of {duration(value)}, but" if value is not None else ""
        sentences.append(f"{refusal.cc}{at} {refusal.why}, so it is not advised.")
    if kind == "tail" and usual is not None:
        sentences.append(f"At {name}, {_beside(best, usual, by, by)}.")
    elif kind == "change" and usual is not None and by != "p99_9" and "p99_9" in best.against_baseline:
        sentences += _gain_elsewhere(best, by)
        sentences.append(f"At p99.9: {_beside(best, usual, 'p99_9', by)}.")
    elif kind == "keep":
        sentences += _too_little(result, usual)
        sentences += _longer_tail(result, usual)
    peers = [row.cc for row in result.ranking if row.candidate and row.tier == best.tier and row.cc != best.cc]
    peers = [cc for cc in peers if cc not in {r.cc for r in refused}]
    if peers and kind != "undecided":
        be = "is" if len(peers) == 1 else "are"
        sentences.append(
            f"{enumeration(peers)} {be} not measurably different from {best.cc} at {name} over {_seeds(best)}."
        )
    if best.alike:
        verb = "gives" if len(best.alike) == 1 else "give"
        sentences.append(f"{enumeration(list(best.alike))} {verb} the same numbers.")
    sentences += _about_the_switch(result, kind, best, usual)
    sentences += _about_models(result, best)
    if result.variations:
        doubt = "The capture does not show all of the rack. " if result.rack_proposed else ""
        sentences.append(doubt + holds(best.cc, result.variations))
    return sentences


def _beside(row: RankingRow, usual: RankingRow, statistic: str, by: str) -> str:
    mine, theirs = row.completion_ms[statistic].value, usual.completion_ms[statistic].value
    text = [
        f"{duration(v)} with {r.cc}" if v is not None else f"none with {r.cc}"
        for v, r in ((mine, row), (theirs, usual))
    ]
    # What the table stars is corrected for the number of algorithms; the other statistics are looked at for one alone.
    p = row.p if statistic == by else _p(row, statistic)
    doubt = "" if p is not None and p < SIGNIFICANT else ", which may be chance"
    return f"{text[0]}, {text[1]}{doubt}"


def _gain_elsewhere(best: RankingRow, by: str) -> list[str]:
    """Where the ranked statistic alone would be no reason to change, what is one."""
    change, most = best.against_baseline[by].change.value, _elsewhere(best)
    if change is None or change <= WORTHWHILE or most is None:
        return []
    return [f"The gain is elsewhere: its {STATISTIC_NAMES[most]} is {gain(best.against_baseline[most])}."]


def _too_little(result: CompareResult, usual: RankingRow | None) -> list[str]:
    """What is shorter by more than chance, and yet by too little to change anything for it."""
    by = result.rank_by
    rows = [row for row in result.ranking if row.candidate and row is not usual and _wins(row, by, row.p)]
    rows = [row for row in rows if not _worthwhile(row, by) and not _worse_further_out(row)]
    if not rows:
        return []
    return [f"{rows[0].cc} is {gain(rows[0].against_baseline[by])}: too little to change a TCP for."]


def _longer_tail(result: CompareResult, usual: RankingRow | None) -> list[str]:
    """Where the baseline is kept and another has a far shorter p99.9, the reader should know of it and of what it costs."""
    if usual is None or result.rank_by == "p99_9":
        return []
    now = usual.completion_ms["p99_9"].value
    known = [row for row in result.ranking if row.candidate and row.completion_ms["p99_9"].value is not None]
    other = min(known, key=lambda row: row.completion_ms["p99_9"].value or 0.0, default=None)
    if other is None or other.cc == usual.cc or "p99_9" not in other.against_baseline:
        return []
    theirs = other.completion_ms["p99_9"].value or 0.0
    if now is not None and now < 2 * theirs:
        return []
    name, body = STATISTIC_NAMES[result.rank_by], other.against_baseline[result.rank_by]
    costs = body.p is not None and body.p < SIGNIFICANT and not _less(other, result.rank_by)
    price = f"; but at {name} it is {gain(body)}" if costs else ""
    return [f"At p99.9: {_beside(other, usual, 'p99_9', result.rank_by)}{price}. To rank by it: --rank-by p99_9."]


def _without_a_queue(result: CompareResult) -> list[str]:
    """When the rack never loses a packet, its TCP is not what makes anybody wait: say where to look instead."""
    rows = result.ranking
    counts = [estimate.value for row in rows for estimate in (row.drops, row.timeouts)]
    fullest = max((row.queue_max_packets.value or 0.0 for row in rows), default=0.0)
    if not all(count == 0 for count in counts) or any(row.unfinished for row in rows):
        return []
    rack = rack_facts(result)
    limit = packets(rack.get("receiver_buffer", rack.get("buffer")))
    of = f" of {limit:,}" if limit is not None else ""
    told = f"No packet was lost with any of them, and the port to {result.capture.aggregator} never held more than {fullest:,.0f}{of} packets"
    lost = result.measured.retransmissions if result.measured is not None else 0
    if lost >= FEWEST_RETRANSMISSIONS:
        return [
            f"{told}, while {lost:,} packets were sent again in the capture: the rack that was captured is slower, or its buffers are smaller. "
            "Correct the rack before you act on this."
        ]
    return [
        f"{told}: this rack does not slow this traffic down. Look for its tail in the hosts, in the application, or in traffic that the capture does "
        "not hold."
    ]


def _about_the_switch(result: CompareResult, kind: Kind, best: RankingRow, usual: RankingRow | None) -> list[str]:
    rows = [row for row in result.ranking if row.candidate]
    if kind == "undecided" or len(rows) == 1 or not {"mark", "receiver_mark", "queue"} & set(rack_facts(result)):
        return []
    marking = next((row for row in rows if row.needs_ecn and row.cc != best.cc), None)
    if best.needs_ecn:
        plain = next((row for row in rows if not row.needs_ecn and not _worse_further_out(row)), None)
        least = f" Without marks, {plain.cc} is the best: {_at(result, plain)}." if plain is not None else ""
        return [f"{best.cc} needs switches that mark packets (ECN).{least}"]
    if marking is None:
        return []
    if usual is not None and kind == "keep":
        return ["Switches that mark packets (ECN) would not change that."]
    return [
        f"{best.cc} needs nothing from the switch; {marking.cc}, the best that needs marks (ECN): {_at(result, marking)}."
    ]


def _at(result: CompareResult, row: RankingRow) -> str:
    value, name = row.completion_ms[result.rank_by].value, STATISTIC_NAMES[result.rank_by]
    return f"no {name}" if value is None else f"{name} {duration(value)}"


def _about_models(result: CompareResult, best: RankingRow) -> list[str]:
    if best.candidate and deployment(best.cc) is None and len(result.ranking) > 1:
        return [
            f"{best.cc} is a model: no kernel module of it is known to fanin, so it cannot be tried on a host as it is."
        ]
    model = next((row for row in result.ranking if not row.candidate), None)
    mine = best.completion_ms[result.rank_by].value
    theirs = model.completion_ms[result.rank_by].value if model else None
    if model is None or mine is None or theirs is None or theirs >= mine:
        return []
    return [f"Of the models that no host can run yet, {model.cc} has the shortest: {_at(result, model)}."]


def _only_deployable(result: CompareResult) -> bool:
    return all(deployment(row.cc) is not None for row in result.ranking if row.candidate)


def _recommended(
    result: CompareResult, kind: Kind, best: RankingRow, usual: RankingRow | None
) -> Recommendation | None:
    if kind not in {"change", "tail"} or (usual is not None and best.cc == usual.cc):
        return None
    if usual is None and result.interrupted:
        # The first of several that was run, and nothing to hold it against.
        return None
    rack = rack_facts(result)
    mark = rack.get("receiver_mark", rack.get("mark"))
    return recommendation(
        best.cc,
        aggregator=result.capture.aggregator,
        now=usual.cc if usual else None,
        mark=str(mark) if mark is not None else None,
        quickack=_native.needs_quickack(best.cc),
        load=load_parameters(best.cc, rack),
    )


def _cautions(result: CompareResult) -> list[str]:
    cautions = []
    if result.interrupted:
        left = len(result.missing)
        cautions.append(
            f"The comparison was stopped early: {left} {'run is' if left == 1 else 'runs are'} missing, and what is here rests on what was done."
        )
    counts = {len(row.seeds) for row in result.ranking}
    if counts == {1} and len(result.ranking) > 1:
        cautions.append("One seed only: a difference may be chance. Run again with --seeds 10.")
    elif len(counts) > 1:
        cautions.append("Not every algorithm ran with the same seeds; the table says how many each row rests on.")
    unfinished = [row.cc for row in result.ranking if row.unfinished]
    if unfinished:
        cautions.append(
            f"Some responses were not complete when the run ended, with {enumeration(unfinished)}. They count as slower than any that were."
        )
    cautions += [f"{failure.cc} could not be run: {failure.message}" for failure in result.failures]
    cautions += result.warnings
    cautions += result.capture.warnings
    return cautions


def _seeds(row: RankingRow) -> str:
    return "1 seed" if len(row.seeds) == 1 else f"{len(row.seeds)} seeds"
