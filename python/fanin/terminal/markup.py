"""Text from outside in what rich prints."""

from __future__ import annotations

from rich.markup import escape as without_markup

from fanin.words.text import visible


def escape(text: str) -> str:
    r"""Text as it is, on one line: no markup of rich's, and nothing that steers a terminal.

    Examples
    --------
    >>> escape("[bold]a\nb")
    '\\[bold]a\\nb'
    """
    return without_markup(visible(text))
