"""Names that all parts of the paper share."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
from fanin.papers.drawing import CUBIC, DCTCP, L2DCT, OWN, RENO, Key

BASELINES = ("reno", "dctcp", "l2dct")
ALL = (*BASELINES, "trim")
BOTTLENECK = "switch->client"
KIB = 1024

KEYS: dict[str, Key] = {
    "reno": replace(RENO, name="TCP"),
    "cubic": CUBIC,
    "dctcp": DCTCP,
    "l2dct": L2DCT,
    "trim": replace(OWN, name="TCP-TRIM"),
}
"""The algorithms by the paper's names."""


def keys(*algorithms: str) -> dict[str, Key]:
    """How some of the algorithms are drawn."""
    return {cc: KEYS[cc] for cc in algorithms}


def kib(size: str) -> int:
    """The number in a size such as ``128KiB`` or ``1MiB``, in KiB."""
    return int(size.removesuffix("MiB")) * 1024 if size.endswith("MiB") else int(size.removesuffix("KiB"))


def in_words(column: str) -> pl.Expr:
    """Sizes such as ``128KiB`` as the paper writes them, ``128 KB``."""
    return pl.col(column).str.replace("MiB", " MB").str.replace("KiB", " KB")


def sizes(rows: pl.DataFrame, column: str) -> list[str]:
    """The sizes that occur, from small to large, as the paper writes them."""
    order = sorted(rows[column].unique(), key=kib)
    return [size.replace("MiB", " MB").replace("KiB", " KB") for size in order]
