"""Which of several ways to run a service is advised: one pure function of outcomes, used by every command.

Commands differ in which candidates they look at, never in how they judge: :func:`decide` knows neither captures nor racks nor sentences.
"""

from fanin.decision.judge import (
    CLAIM,
    FEWEST_EVENTS,
    TOLERATED,
    WORTHWHILE,
    Decision,
    Goal,
    Judged,
    decide,
)
from fanin.decision.outcome import Outcome, tail_of
from fanin.decision.running import CHECKS, running

__all__ = [
    "CHECKS",
    "CLAIM",
    "FEWEST_EVENTS",
    "TOLERATED",
    "WORTHWHILE",
    "Decision",
    "Goal",
    "Judged",
    "Outcome",
    "decide",
    "running",
    "tail_of",
]
