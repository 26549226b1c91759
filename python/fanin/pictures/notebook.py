"""Results as a notebook shows them: a sentence and a table, without style or script."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def card(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A title and a table as HTML; text from outside is escaped, None is a dash.

    Examples
    --------
    >>> card("a < b", ["cc", "p99 ms"], [["cubic", 3.14159], ["<dctcp>", None]])
    '<p><b>a &lt; b</b></p><table><tr><th>cc</th><th>p99 ms</th></tr><tr><td>cubic</td><td>3.14</td></tr><tr><td>&lt;dctcp&gt;</td><td>–</td></tr></table>'
    """
    from html import escape

    from fanin.words.text import significant

    def cell(value: object) -> str:
        if value is None:
            return "–"
        return escape(significant(value) if isinstance(value, float) else str(value))

    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join("<tr>" + "".join(f"<td>{cell(v)}</td>" for v in row) + "</tr>" for row in rows)
    return f"<p><b>{escape(title)}</b></p><table><tr>{head}</tr>{body}</table>"
