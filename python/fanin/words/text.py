"""Numbers and lists as people write them, the same in the terminal and on the page."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fanin.statistics.seeds import Estimate, Paired


# Controls of C0 and C1 but for line ends and tabs, marks that turn the direction of text (UAX #9), and Unicode's own ends of lines.
_CONTROLS = (
    *range(9), *range(11, 32), *range(127, 160), 0x061C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A),
)  # fmt: skip
_STEERING = dict.fromkeys(_CONTROLS, "\ufffd")
_ESCAPED = {code: ascii(chr(code))[1:-1] for code in (9, 10, *_CONTROLS)}


def harmless(text: str) -> str:
    r"""Text from outside without characters that steer a terminal; the replacement character shows where one was.

    Examples
    --------
    >>> harmless("a\x1b[2Jb\n"), harmless("\u202egnp.exe")
    ('a\ufffd[2Jb\n', '\ufffdgnp.exe')
    """
    return text.translate(_STEERING)


def visible(text: str) -> str:
    r"""Text from outside as part of one line: what :func:`harmless` takes out, ends of lines and tabs are written as in Python.

    Examples
    --------
    >>> visible("a\n\x1b[2Jb"), visible("\u202egnp.exe")
    ('a\\n\\x1b[2Jb', '\\u202egnp.exe')
    """
    return text.translate(_ESCAPED)


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


def gain(paired: Paired) -> str:
    """A paired ratio as a gain, with its interval.

    Examples
    --------
    >>> from fanin.statistics.seeds import Estimate, Paired
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


def fixed(number: float, like: float) -> str:
    """A number with as many decimals as another has when written with three significant digits.

    Examples
    --------
    >>> fixed(3.7124, 4.43), fixed(128.4, 230.0), fixed(0.5, 0)
    ('3.71', '128', '0.500')
    """
    return f"{number:,.{_decimals(like, 3) if like else 3}f}"


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


def count(value: float) -> str:
    """A mean of counts: whole from 100 up, with one decimal where it has one below.

    Examples
    --------
    >>> count(0), count(2.0), count(13.333), count(1234.5)
    ('0', '2', '13.3', '1,234')
    """
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}".removesuffix(".0")


def number(value: float | None) -> str:
    """A number with three or four significant digits, integers whole.

    Examples
    --------
    >>> number(0.012345), number(12.3456), number(1234.6), number(7.0), number(None)
    ('0.0123', '12.35', '1235', '7', '-')
    """
    if value is None:
        return "-"
    if value == int(value) and abs(value) < 1e15:
        return str(int(value))
    digits = 3 if abs(value) < 10 else 4
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:.{decimals}f}"


def with_interval(estimate: Estimate) -> str:
    """A value with its confidence interval.

    Examples
    --------
    >>> from fanin.statistics.seeds import Estimate
    >>> with_interval(Estimate(2.5, 2.04, 3.0))
    '2.50 (2.04–3.00)'
    >>> with_interval(Estimate(2.5))
    '2.50'
    """
    text = number(estimate.value)
    if estimate.value is None or estimate.low is None or estimate.high is None:
        return text
    decimals = len(text.partition(".")[2])
    return f"{text} ({estimate.low:.{decimals}f}–{estimate.high:.{decimals}f})"


def toml_string(text: str) -> str:
    r"""A basic string of TOML, whose escapes are those of JSON.

    Examples
    --------
    >>> print(toml_string('C:\\x "y"'))
    "C:\\x \"y\""
    """
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
