"""What the page says: the answer in sentences, numbers as people write them, and what the numbers rest on."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from fanin.ranking import METHOD, overlap
from fanin.stats import Estimate

if TYPE_CHECKING:
    from fanin.comparison import CompareResult
    from fanin.ranking import RankingRow

STATISTIC_NAMES = {"mean": "mean", "p50": "median", "p95": "p95", "p99": "p99", "p99_9": "p99.9"}
"""Statistics as the page names them."""

PRESUMED = (
    ("cubic", "what Linux runs unless told otherwise"),
    ("newreno", "standard TCP"),
    ("reno", "standard TCP"),
    ("sack", "standard TCP with SACK"),
)
"""What hosts are presumed to run today, likeliest first; the comparison is against the first that was ranked."""

ASSUMPTIONS = (
    "Applications behave as in the capture: what a server sends, and how long it and the client think in between, is taken from it. A response "
    "that arrives later delays what followed it on its connection; a faster one brings it forward.",
    "The rack is as the file above says and carries this traffic alone. Cables lose nothing; packets are lost only where a queue is full.",
    "Hosts cost no time beyond the jitter that the rack file states: no interrupts, no scheduling, no segmentation offload. On real hosts "
    "these add to every response, whichever TCP runs, and matter most where responses take well under a millisecond.",
    "Algorithms are run as their papers and RFCs describe them, all on the same endpoint. Kernels differ in details, so try the winner on two hosts "
    "before all of them.",
    "Confidence intervals cover chance between seeds. They say nothing about traffic that the capture does not hold: "
    "another hour, another service.",
)
"""What the simulation takes for granted, for the end of the page."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer in sentences.

    Attributes
    ----------
    headline : str
        One sentence.
    support : tuple of str
        What else one needs before acting on it.
    cautions : tuple of str
        Why to trust it less: few seeds, an interrupted run, failed algorithms, a damaged capture.
    """

    headline: str
    support: tuple[str, ...]
    cautions: tuple[str, ...]


def answer(result: CompareResult) -> Answer:
    """What the comparison found, for somebody who reads nothing else."""
    best = result.ranking[0]
    usual = _row(result, baseline(result))
    return Answer(_headline(result, best, usual), tuple(_support(result, best, usual)), tuple(_cautions(result)))


def baseline(result: CompareResult) -> str | None:
    """The algorithm that the hosts are presumed to run today; None when none of the presumed was ranked."""
    ranked = {row.cc for row in result.ranking}
    return next((cc for cc, _ in PRESUMED if cc in ranked), None)


def leaders(result: CompareResult) -> list[str]:
    """Algorithms that the figures show at first: the best, also without and with the switch and further out, and the presumed one."""
    rows, further = result.ranking, _best_further_out(result)
    wanted = [
        further.cc if further else None,
        rows[0].cc,
        next((row.cc for row in rows if not row.needs_switch), None),
        next((row.cc for row in rows if row.needs_switch), None),
        baseline(result),
    ]
    chosen = {cc for cc in wanted if cc is not None}
    for row in rows:
        if len(chosen) >= min(3, len(rows)):
            break
        chosen.add(row.cc)
    return [row.cc for row in rows if row.cc in chosen]


def _headline(result: CompareResult, best: RankingRow, usual: RankingRow | None) -> str:
    name, value = STATISTIC_NAMES[result.rank_by], best.completion_ms[result.rank_by].value
    tail = _tail_of_the_best(result, best)
    if value is None:
        return f"No algorithm completes enough responses on this rack for a {name} completion time."
    if len(result.ranking) == 1:
        return f"With {best.cc}, the {name} response takes {duration(value)} on this rack."
    if usual is None:
        return f"{best.cc} serves this traffic best on this rack: {name} {duration(value)}{tail}."
    now = usual.completion_ms[result.rank_by].value
    if usual.tier == best.tier:
        return f"At {name}, no TCP measurably beats {usual.cc} for this traffic on this rack."
    if now is None:
        return f"{best.cc} brings the {name} response to {duration(value)}; {usual.cc} leaves too many responses unfinished to have one."
    gain = shortening(now, value)
    return (
        f"{best.cc} brings the {name} response from {duration(now)} with {usual.cc} to {duration(value)}: {gain}{tail}."
    )


def _tail_of_the_best(result: CompareResult, best: RankingRow) -> str:
    """A winner whose rare responses wait for timeouts is not to be advised without that in the same sentence."""
    other, tail, value = (
        _best_further_out(result),
        best.completion_ms["p99_9"].value,
        best.completion_ms[result.rank_by].value,
    )
    if other is None or other.cc == best.cc or tail is None or value is None or tail < 10 * value:
        return ""
    rare = other.completion_ms["p99_9"].value
    return "" if rare is None or tail < 2 * rare else f", but one in a thousand takes {duration(tail)}"


def _support(result: CompareResult, best: RankingRow, usual: RankingRow | None) -> list[str]:
    by, name = result.rank_by, STATISTIC_NAMES[result.rank_by]
    sentences = []
    if usual is not None and len(result.ranking) > 1:
        why = dict(PRESUMED)[usual.cc]
        verb = "leads on" if usual.rank == best.rank else "is at" if usual.tier == best.tier else ""
        now = usual.completion_ms[by].value
        at = f", which {verb} {name} {duration(now)}" if verb and now is not None else ""
        sentences.append(f"Your hosts are presumed to run {usual.cc}, {why}{at}.")
    sentences += _without_a_queue(result)
    sentences += _beyond(result, best, usual)
    # Where nothing beats what the hosts run, that is the one to speak of, not whichever of its equals came first.
    kept = usual is not None and usual.tier == best.tier
    named = usual if usual is not None and kept else best
    peers = [row.cc for row in result.ranking if row.tier == best.tier and row.cc != named.cc]
    if peers:
        be = "is" if len(peers) == 1 else "are"
        sentences.append(f"{enumeration(peers)} {be} not measurably different from {named.cc} over {_seeds(best)}.")
    if kept and len(result.ranking) > 1:
        sentences += _beside_the_usual(result)
    elif best.completion_ms[by].value is not None:
        sentences += _about_the_switch(result, best, usual)
    return sentences


def _beside_the_usual(result: CompareResult) -> list[str]:
    """Nothing beats what the hosts run: that what needs the switch does not either is worth saying, if the switch marked."""
    marks = {"mark", "receiver_mark", "queue"} & set(rack_facts(result))
    return (
        ["Switches that mark packets (ECN) would not change that."]
        if marks and any(row.needs_switch for row in result.ranking)
        else []
    )


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
    return [
        f"No packet was lost with any of them, and the port to {result.capture.aggregator} never held more than {fullest:,.0f}{of} packets: this rack "
        "does not slow this traffic down. Look for its tail in the hosts, in the application, or in traffic that the capture does not hold."
    ]


def _beyond(result: CompareResult, best: RankingRow, usual: RankingRow | None) -> list[str]:
    """A warning when the slowest of a thousand responses would ask for another algorithm: a rare timeout hides behind a good p99."""
    other = _best_further_out(result)
    if other is None:
        return []
    advised = usual if usual is not None and usual.tier == best.tier else best
    theirs, ours = other.completion_ms["p99_9"], advised.completion_ms["p99_9"]
    if theirs.value is None or (ours.value is not None and ours.value < 2 * theirs.value):
        return []
    now = "is never complete" if ours.value is None else f"takes {duration(ours.value)}"
    doubt = ", though over so few seeds that may be chance" if overlap(theirs, ours) else ""
    beside = (
        usual.completion_ms["p99_9"].value if usual is not None and usual.cc not in {advised.cc, other.cc} else None
    )
    aside = "" if usual is None or beside is None else f" ({usual.cc}: {duration(beside)})"
    return [
        f"Further out it is another story: the p99.9 response {now} with {advised.cc} and {duration(theirs.value)} with {other.cc}"
        f"{aside}{doubt}."
    ]


def _best_further_out(result: CompareResult) -> RankingRow | None:
    """The algorithm with the least p99.9, when that is not what the ranking is by."""
    if result.rank_by == "p99_9":
        return None
    rows = [row for row in result.ranking if row.completion_ms["p99_9"].value is not None]
    return min(rows, key=lambda row: row.completion_ms["p99_9"].value or 0.0, default=None)


def _about_the_switch(result: CompareResult, best: RankingRow, usual: RankingRow | None) -> list[str]:
    by, name = result.rank_by, STATISTIC_NAMES[result.rank_by]

    def at(row: RankingRow) -> str:
        value = row.completion_ms[by].value
        text = f"no {name}" if value is None else f"{name} {duration(value)}"
        if value is None or usual is None or usual.tier == row.tier:
            return text
        now = usual.completion_ms[by].value
        return text if now is None else f"{text}, {shortening(now, value)} than {usual.cc}"

    plain = next((row for row in result.ranking if not row.needs_switch), None)
    marking = next((row for row in result.ranking if row.needs_switch), None)
    if best.needs_switch:
        if plain is None:
            return [f"{best.cc} needs switches that mark packets (ECN), and so does everything compared."]
        return [
            f"{best.cc} needs switches that mark packets (ECN). If yours cannot be touched, {plain.cc} is the best that needs nothing "
            f"from them: {at(plain)}."
        ]
    if marking is None:
        return [f"{best.cc} needs nothing from the switch."]
    return [
        f"{best.cc} needs nothing from the switch; {marking.cc}, the best that needs marking (ECN), is at {at(marking)}."
    ]


def _cautions(result: CompareResult) -> list[str]:
    cautions = []
    if result.interrupted:
        left = len(result.missing)
        cautions.append(
            f"The comparison was stopped early: {left} {'run is' if left == 1 else 'runs are'} missing, and what is here rests on what was done."
        )
    counts = {len(row.seeds) for row in result.ranking}
    if counts == {1}:
        cautions.append(
            "One seed only: there is no confidence interval, and a difference may be chance. Run again with --seeds 5."
        )
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


def _row(result: CompareResult, cc: str | None) -> RankingRow | None:
    return next((row for row in result.ranking if row.cc == cc), None)


def _seeds(row: RankingRow) -> str:
    return "1 seed" if len(row.seeds) == 1 else f"{len(row.seeds)} seeds"


def shortening(before: float, after: float) -> str:
    """How much shorter.

    Examples
    --------
    >>> shortening(200.0, 8.0), shortening(10.0, 8.0), shortening(8.0, 10.0), shortening(8.0, 8.01)
    ('25 times shorter', '20% shorter', '25% longer', 'as long')
    """
    if after <= 0 or before <= 0:
        return "shorter" if after < before else "as long"
    if before / after >= 2:
        return f"{significant(before / after, 2)} times shorter"
    if after / before >= 2:
        return f"{significant(after / before, 2)} times longer"
    percent = round(100 * abs(before - after) / before)
    if percent == 0:
        return "as long"
    return f"{percent}% {'shorter' if after < before else 'longer'}"


def enumeration(items: list[str]) -> str:
    """A list in a sentence.

    Examples
    --------
    >>> enumeration(["a"]), enumeration(["a", "b"]), enumeration(["a", "b", "c"])
    ('a', 'a and b', 'a, b and c')
    """
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"


def significant(value: float, digits: int = 3) -> str:
    """A number with so many significant digits, never in powers of ten.

    Examples
    --------
    >>> significant(0.012345), significant(0.25), significant(12.345), significant(123456.0), significant(0)
    ('0.0123', '0.250', '12.3', '123,456', '0')
    """
    return "0" if value == 0 else f"{value:,.{_decimals(value, digits)}f}"


def spread(half: float, value: float) -> str:
    """Half of an interval, to the last digit that its value is written with.

    Examples
    --------
    >>> spread(0.0312, 1.5), spread(0.0004, 1.5), spread(0, 1.5), spread(28.4, 230.0)
    ('0.03', '<0.01', '0', '28')
    """
    decimals = _decimals(value, 3) if value else 3
    if half == 0:
        return "0"
    text = f"{half:,.{decimals}f}"
    return text if float(text.replace(",", "")) else f"<{10**-decimals:.{decimals}f}"


def _decimals(value: float, digits: int) -> int:
    """Decimals that give `digits` significant digits after rounding."""
    magnitude = math.floor(math.log10(float(f"{abs(value):.{digits - 1}e}")))
    return max(0, digits - 1 - magnitude)


def duration(ms: float) -> str:
    """A time in the unit that reads best.

    Examples
    --------
    >>> duration(0.0125), duration(3.14159), duration(2345.0)
    ('12.5 µs', '3.14 ms', '2.35 s')
    """
    if ms < 1:
        return f"{significant(ms * 1000)} µs"
    return f"{significant(ms)} ms" if ms < 1000 else f"{significant(ms / 1000)} s"


def rate(bps: float) -> str:
    """A rate in decimal units.

    Examples
    --------
    >>> rate(9.41e8), rate(1.0e10)
    ('941 Mbps', '10.0 Gbps')
    """
    for scale, unit in ((1e9, "Gbps"), (1e6, "Mbps"), (1e3, "kbps")):
        if bps >= scale:
            return f"{significant(bps / scale)} {unit}"
    return f"{significant(bps)} bps"


def size(count: float) -> str:
    """A number of bytes in decimal units.

    Examples
    --------
    >>> size(1500), size(2.5e6), size(12)
    ('1.50 kB', '2.50 MB', '12 B')
    """
    for scale, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= scale:
            return f"{significant(count / scale)} {unit}"
    return f"{count:.0f} B"


def half_width(estimate: Estimate) -> float | None:
    """Half of a confidence interval; None without one."""
    return None if estimate.low is None or estimate.high is None else (estimate.high - estimate.low) / 2


def rack_facts(result: CompareResult) -> dict[str, Any]:
    """The [rack] that was run: the file's with the changes on top; empty when it cannot be read here (the engine's reader is the judge of it)."""
    try:
        rack = tomllib.loads(result.rack_text).get("rack", {})
    except tomllib.TOMLDecodeError:
        return {}
    changed = {k.removeprefix("rack."): v for k, v in result.settings.items() if k.startswith("rack.")}
    return rack | changed if isinstance(rack, dict) else {}


def packets(limit: object) -> int | None:
    """A queue limit that is written in packets.

    Examples
    --------
    >>> packets("250p"), packets("64KB"), packets(None)
    (250, None, None)
    """
    found = re.fullmatch(r"\s*(\d+)\s*(?:p|pkts?|packets?)\s*", limit) if isinstance(limit, str) else None
    return int(found[1]) if found else None


def method() -> str:
    """How the statistics came about."""
    return METHOD


def count(value: float) -> str:
    """A mean of counts: whole from 100 up, with one decimal where it has one below.

    Examples
    --------
    >>> count(0), count(2.0), count(13.333), count(1234.5)
    ('0', '2', '13.3', '1,234')
    """
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}".removesuffix(".0")


def named(text: str, names: Sequence[str]) -> Markup:
    """Escaped text with the algorithms' names set apart.

    Examples
    --------
    >>> str(named("newreno <b> reno", ["reno", "newreno"]))
    '<span class="cc">newreno</span> &lt;b&gt; <span class="cc">reno</span>'
    """
    longest_first = sorted(names, key=len, reverse=True)
    pattern = rf"(?<![\w+-])({'|'.join(map(re.escape, longest_first))})(?![\w+-])"
    pieces = re.split(pattern, text) if names else [text]
    return Markup("").join(
        Markup('<span class="cc">{}</span>').format(piece) if i % 2 else escape(piece) for i, piece in enumerate(pieces)
    )


def coded(text: str) -> Markup:
    """Escaped text with what stands in backticks as code.

    Examples
    --------
    >>> str(coded("set `a < b`, then go"))
    'set <code>a &lt; b</code>, then go'
    """
    return Markup("").join(
        Markup("<code>{}</code>").format(piece) if i % 2 else escape(piece) for i, piece in enumerate(text.split("`"))
    )


FILTERS = {
    "coded": coded,
    "count": count,
    "named": named,
    "significant": significant,
    "spread": spread,
    "duration": duration,
    "rate": rate,
    "size": size,
    "half_width": half_width,
    "enumeration": lambda items: enumeration(list(items)),
}
"""For the page's template."""
