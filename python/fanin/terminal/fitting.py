"""Tables on narrow terminals: no number and no address is ever cut."""

from __future__ import annotations

from collections.abc import Iterator

from rich.cells import cell_len
from rich.table import Column, Table

_FRAME = 3
"""Columns of the terminal that a column's padding and border take."""


def fitted(table: Table, width: int, keys: int = 1) -> Iterator[Table]:
    """A table as it is where it fits, else as several, each with the first `keys` columns and as many others as fit beside them.

    Examples
    --------
    >>> table = Table("host", "sent", "lost")
    >>> table.add_row("10.0.0.1:40000", "1234567", "89")
    >>> [[column.header for column in part.columns] for part in fitted(table, 28)]
    [['host', 'sent'], ['host', 'lost']]
    """
    first, others = table.columns[:keys], table.columns[keys:]
    taken = 1 + sum(map(_width, first))
    groups: list[list[Column]] = [[]]
    used = taken
    for column in others:
        if groups[-1] and used + _width(column) > width:
            groups.append([])
            used = taken
        groups[-1].append(column)
        used += _width(column)
    for number, group in enumerate(groups):
        part = Table(title=table.title if number == 0 else None, title_justify="left")
        for column in (*first, *group):
            part.add_column(column.header, justify=column.justify, overflow="fold", min_width=_width(column) - _FRAME)
        for row, cells in zip(
            table.rows, zip(*(column.cells for column in (*first, *group)), strict=True), strict=True
        ):
            part.add_row(*cells, style=row.style)
        yield part


def _width(column: Column) -> int:
    """Of its longest cell."""
    return max(cell_len(str(text)) for text in (column.header, *column.cells)) + _FRAME
