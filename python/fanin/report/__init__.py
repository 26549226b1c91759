"""The pages that a person reads, written by :mod:`fanin.html`: that of a comparison, on which he acts, and that of a capture's requests (`requests.py`)."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fanin import html
from fanin.disk.cache import kept

if TYPE_CHECKING:
    from fanin.comparison.result import CompareResult

__all__ = ["page", "summary", "write"]


def write(result: CompareResult, path: str | Path) -> Path:
    """Write the report of a comparison.

    Parameters
    ----------
    result : CompareResult
        With at least one ranked algorithm.
    path : str or pathlib.Path
        File to write.

    Returns
    -------
    pathlib.Path
        `path`.

    Raises
    ------
    OSError
        When the file cannot be written.
    """
    target = Path(path)
    target.write_text(page(result), encoding="utf-8")
    return target


def page(result: CompareResult) -> str:
    """The report as HTML."""
    from fanin.capture import waiting
    from fanin.rack.facts import rack_facts, rack_hz
    from fanin.report import data, rounds, words
    from fanin.statistics.ranking import PLURAL, PREFIX
    from fanin.words.verdict import STATISTIC_NAMES

    payload = data.payload(result) | {"charts": _charts(data.names(result))}
    return html.rendered(
        __name__,
        "page.html",
        html.libraries(),
        html.colours() + _asset("page.js"),
        filters=words.FILTERS,
        result=result,
        capture=result.capture,
        names=data.names(result),
        answer=result.verdict,
        rack=rack_facts(result),
        hz=rack_hz(result),
        statistics=STATISTIC_NAMES,
        assumptions=words.assumptions(result.engine),
        method=words.method(),
        fan=data.fan(result),
        waits=waiting.sentences(result.groups),
        rounds=rounds.picture(result),
        kinds=data.kinds(result),
        prefix=PREFIX[result.rank_of],
        called=PLURAL,
        varied_values=lambda key: list(dict.fromkeys(v.settings[key] for v in result.variations)),
        varied_at=lambda settings: next((v for v in result.variations if v.settings == settings), None),
        style=html.style(),
        payload=html.script_json(payload),
    )


def summary(result: CompareResult) -> str:
    """The answer and the ranking as HTML without style or script, for a notebook's cell."""
    from markupsafe import Markup, escape

    from fanin.words.text import significant

    if not result.ranking:
        return "<p>nothing could be ranked</p>"
    by = result.rank_by
    cells = Markup("").join(
        Markup("<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>").format(
            row.rank,
            row.cc,
            *(
                "–" if row.completion_ms[name].value is None else significant(row.completion_ms[name].value or 0.0)
                for name in ("p50", by)
            ),
            "–" if row.timeouts.value is None else significant(row.timeouts.value, 2),
        )
        for row in result.ranking
    )
    head = Markup("<tr><th>#</th><th>algorithm</th><th>p50 ms</th><th>{} ms</th><th>timeouts</th></tr>").format(
        by.replace("_", ".")
    )
    told = Markup("").join(Markup("<p>{}</p>").format(sentence) for sentence in result.verdict.support)
    return str(
        Markup("<p><b>{}</b></p>").format(escape(result.verdict.headline))
        + told
        + Markup("<table>{}{}</table>").format(head, cells)
    )


def _asset(name: str) -> str:
    return html.asset(__name__, name)


def _charts(names: list[str]) -> Any:
    """The figures of these algorithms; importing what describes them takes longer than the rest of a report."""

    def described() -> str:
        from fanin.report import charts

        return json.dumps(charts.specs(names))

    source = _asset("charts.py") + importlib.metadata.version("altair") + json.dumps(names)
    return json.loads(kept(f"charts-{hashlib.sha256(source.encode()).hexdigest()[:16]}.json", described))
