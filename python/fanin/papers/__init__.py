"""The papers' claims, run again: what was published, what we get, and a verdict for each.

A paper is a folder under ``papers/``: ``paper.toml`` has its claims word for word and the experiments that answer them, beside it
stand the scenario files, and ``judgement`` says how each claim follows from the results; nothing in it is tuned.
"""

from __future__ import annotations

from fanin.papers.catalogue import Axis, CatalogueError, Claim, Experiment, Paper, Point, load, papers_folder
from fanin.papers.reproduce import ReproduceResult, reproduce
from fanin.papers.verdicts import Checks, Data, Judged, Outcome, claim, figure

__all__ = [
    "Axis",
    "CatalogueError",
    "Checks",
    "Claim",
    "Data",
    "Experiment",
    "Judged",
    "Outcome",
    "Paper",
    "Point",
    "ReproduceResult",
    "claim",
    "figure",
    "load",
    "papers_folder",
    "reproduce",
]
