"""What the page says beside the verdict, and how it sets names, code and intervals."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from fanin.statistics.ranking import METHOD
from fanin.statistics.seeds import Estimate
from fanin.words.text import count, duration, enumeration, fixed, rate, shortening, significant, size

if TYPE_CHECKING:
    from fanin.comparison.result import CompareResult
    from fanin.comparison.variations import Variation

MODELLED = "Algorithms are run"

ASSUMPTIONS = (
    "Applications behave as in the capture: what a server sends, and how long it and the client think in between, is taken from it. A response "
    "that arrives later delays what followed it on its connection; a faster one brings it forward.",
    "The rack is as the file above says and carries this traffic alone. Cables lose nothing; packets are lost only where a queue is full.",
    "Hosts cost no time and send packet by packet unless the rack file says otherwise (`hosts`): no interrupts, no scheduling. On real hosts "
    "these add to every response, whichever TCP runs, and matter most where responses take well under a millisecond.",
    f"{MODELLED} as their papers and RFCs describe them, all on the same endpoint. Kernels differ in details, so try the winner on two hosts "
    "before all of them.",
    "Confidence intervals cover chance between seeds. They say nothing about traffic that the capture does not hold: "
    "another hour, another service.",
)
"""What the simulation takes for granted, for the end of the page."""


ON_A_KERNEL = (
    "TCP is that of the Linux named above, with its own timers, in virtual time: the kernel's code is the real one, and computing costs no time. "
    "Algorithms that Linux does not have are fanin's C files for it."
)
"""What takes the place of the sentence on algorithms where a kernel ran."""


def assumptions(engine: str) -> tuple[str, ...]:
    """What the runs of an engine take for granted."""
    return ASSUMPTIONS if engine == "sim" else tuple(ON_A_KERNEL if s.startswith(MODELLED) else s for s in ASSUMPTIONS)


def leaders(result: CompareResult) -> list[str]:
    """Algorithms that the figures show at first: the advised one and the baseline, the best without and with the switch."""
    verdict, rows = result.verdict, result.ranking
    wanted = [
        verdict.best,
        verdict.baseline,
        rows[0].cc,
        next((row.cc for row in rows if row.needs_ecn), None),
    ]
    chosen = {cc for cc in wanted if cc is not None}
    for row in rows:
        if len(chosen) >= min(3, len(rows)):
            break
        chosen.add(row.cc)
    return [row.cc for row in rows if row.cc in chosen]


def interval(estimate: Estimate) -> str:
    """A confidence interval with the digits of its value; empty without one.

    Examples
    --------
    >>> interval(Estimate(4.43, 3.712, 5.29)), interval(Estimate(1.0))
    ('3.71–5.29', '')
    """
    if estimate.value is None or estimate.low is None or estimate.high is None:
        return ""
    low, high = (fixed(end, estimate.value) for end in (estimate.low, estimate.high))
    return f"{low}–{high}"


def method() -> str:
    """How the statistics came about."""
    return METHOD


def named(text: str, names: Sequence[str]) -> Markup:
    """Escaped text with the algorithms' names set apart, and options of the command line unbroken.

    Examples
    --------
    >>> str(named("newreno <b> reno", ["reno", "newreno"]))
    '<span class="cc">newreno</span> &lt;b&gt; <span class="cc">reno</span>'
    >>> str(named("(another: --baseline)", []))
    '(another: <span class="one">--baseline</span>)'
    """
    longest_first = sorted(names, key=len, reverse=True)
    pattern = rf"(?<![\w+-])({'|'.join(map(re.escape, longest_first))})(?![\w+-])"
    pieces = re.split(pattern, text) if names else [text]
    return Markup("").join(
        Markup('<span class="cc">{}</span>').format(piece) if i % 2 else _unbroken(piece)
        for i, piece in enumerate(pieces)
    )


def _unbroken(text: str) -> Markup:
    pieces = re.split(r"(?<!\S)(--[a-z][a-z-]*)", text)
    return Markup("").join(
        Markup('<span class="one">{}</span>').format(piece) if i % 2 else escape(piece)
        for i, piece in enumerate(pieces)
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


def heat(variation: Variation) -> int:
    """How strongly a cell is coloured: 0 without a gain, 60 where it is ten times or more, in percent."""
    if variation.ratio is None or variation.ratio >= 1:
        return 0
    return round(min(60.0, 60.0 * -math.log10(variation.ratio)))


def gained(variation: Variation) -> str:
    """The gain on another rack."""
    return shortening(1.0, variation.ratio or 1.0)


FILTERS = {
    "heat": heat,
    "gained": gained,
    "coded": coded,
    "count": count,
    "named": named,
    "significant": significant,
    "duration": duration,
    "rate": rate,
    "size": size,
    "interval": interval,
    "enumeration": lambda items: enumeration(list(items)),
}
"""For the page's template."""
