"""Charts as files: the ending says which kind."""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fanin import html
from fanin.disk.files import output_file
from fanin.errors import ScenarioError
from fanin.words.text import harmless

NO_XML = re.compile(r"[\ud800-\udfff\ufffe\uffff]")
"""Beside controls, what is no character in XML."""

LONGEST = 300
"""Characters of a text that is drawn. The renderer takes some 700 bytes for each: a title of 15 million would need 10 GB."""

FORMATS = ("svg", "png", "pdf", "html")
"""What a picture may be."""


def can_render() -> bool:
    """The renderer, which makes SVG, PNG and PDF, is installed (the extra ``docs``)."""
    return importlib.util.find_spec("vl_convert") is not None


def save(chart: Any, file: Path, *, of: Sequence[str | os.PathLike[str] | None] = ()) -> None:
    """Write an Altair chart whole or not at all; HTML needs no network.

    Parameters
    ----------
    of : sequence of path or None
        Files that it was made of, which it does not replace.

    Raises
    ------
    fanin.ScenarioError
        When the name ends in none of :data:`FORMATS`.
    fanin.OutputError
        When the file cannot be written.

    Examples
    --------
    >>> save(None, Path("picture.bmp"))
    Traceback (most recent call last):
    ...
    fanin.errors.ScenarioError: command line `--out picture.bmp`: the name must end in .svg, .png, .pdf, .html
    """
    kind = file.suffix.removeprefix(".").lower()
    if kind not in FORMATS:
        raise ScenarioError(f"command line `--out {file}`: the name must end in {', '.join('.' + f for f in FORMATS)}")
    with output_file(file, of=of) as scratch:
        write(chart, scratch)


def write(chart: Any, file: Path) -> None:
    """Write an Altair chart, as its name ends."""
    if file.suffix.lower() == ".html":
        page = html.chart_page(chart, _title(chart))
        file.write_text(page, encoding="utf-8")
    else:
        # Where it is missing, the command names the extra; Altair has words of its own.
        import vl_convert  # noqa: F401

        _drawable(chart).save(file, **({"scale_factor": 2} if file.suffix.lower() == ".png" else {}))


def _drawable(chart: Any) -> Any:
    """The chart as a renderer can draw it.

    That is without what XML 1.0 (section 2.2) has no character for: the renderer goes by way of SVG, and ends the process over one. Texts that are
    longer than :data:`LONGEST` end with an ellipsis; the chart's own expressions are shorter.
    """
    spec = chart.to_dict()
    drawable = _replaced(spec)
    return chart if drawable == spec else type(chart).from_dict(drawable)


def _replaced(part: Any) -> Any:
    if isinstance(part, dict):
        return {_replaced(key): _replaced(value) for key, value in part.items()}
    if isinstance(part, list):
        return [_replaced(value) for value in part]
    if not isinstance(part, str):
        return part
    short = part if len(part) <= LONGEST else part[: LONGEST - 1] + "…"
    return NO_XML.sub("\ufffd", harmless(short))


def _title(chart: Any) -> str:
    """What stands above a chart; nothing without."""
    title = chart.to_dict().get("title", "")
    text = title.get("text", "") if isinstance(title, dict) else title
    return " ".join(text) if isinstance(text, list) else str(text)
