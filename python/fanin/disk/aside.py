"""Numbers of large captures that lie in files without a name: what is held of hundreds of replays would fill the memory.

The system keeps pages of such a file in memory while there is room, and takes them back when something else needs it. No folder names the file, so
that nothing is left however the process ends.
"""

from __future__ import annotations

import mmap
import tempfile
from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from fanin.disk.cache import cache_folder

if TYPE_CHECKING:
    import polars as pl

LONG = 100_000
"""Numbers from which on they lie aside: fewer are no matter."""

KINDS = {"Float64": "d", "UInt64": "Q", "UInt32": "I"}
"""Types of columns that lie aside, as :mod:`array` names them."""


def folder() -> Path:
    """Where these files are: temporary files may lie in memory."""
    place = cache_folder()
    place.mkdir(parents=True, exist_ok=True)
    return place


@contextmanager
def _written(numbers: array[float]) -> Iterator[int]:
    """A file without a name that has these numbers."""
    with tempfile.TemporaryFile(dir=folder()) as file:
        file.write(numbers)
        file.flush()
        yield file.fileno()


def held(values: Iterable[float]) -> Sequence[float]:
    """Numbers in eight bytes each; many of them aside, where the disk has room.

    Examples
    --------
    >>> few, many = held([2.0, 1.0]), held(map(float, range(LONG)))
    >>> list(few), len(many), many[-1]
    ([2.0, 1.0], 100000, 99999.0)
    """
    numbers = array("d", values)
    if len(numbers) >= LONG:
        with suppress(OSError), _written(numbers) as file:
            return memoryview(mmap.mmap(file, 0, access=mmap.ACCESS_READ)).cast("d")
    return numbers


def column(values: pl.Series) -> pl.Series:
    """A column of numbers, aside where it is long and the disk has room; else as it is.

    Examples
    --------
    >>> import polars as pl
    >>> there = column(pl.Series("a", [None, *range(1, LONG)], dtype=pl.UInt32))
    >>> there.name, there.dtype, there[:3].to_list(), there[-1]
    ('a', UInt32, [None, 1, 2], 99999)
    """
    from fanin import _native
    from fanin.statistics.frames import frame

    kind = KINDS.get(str(values.dtype))
    if len(values) >= LONG and kind is not None:
        with suppress(OSError), _written(array(kind, values.fill_null(0))) as file:
            nulls = values.is_null().arg_true().to_list()
            return frame(_native.mapped(file, kind, len(values), nulls)).to_series().rename(values.name)
    return values
