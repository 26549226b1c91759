"""Names that all parts of the paper share."""

from __future__ import annotations

from dataclasses import replace

from fanin.papers.drawing import CUBIC, DCTCP, OWN, Key

ADAPTIVE = "cubic, adaptive"
"""TCPRand as the paper means it: over CUBIC, with rMin from the adaptive rule."""

KEYS: dict[str, Key] = {"cubic": CUBIC, ADAPTIVE: replace(OWN, name="TCPRand"), "dctcp": replace(DCTCP, width=2.2)}
"""The algorithms by the paper's names."""

BARS: dict[str, Key] = {cc: replace(key, kind="bar") for cc, key in KEYS.items()}
