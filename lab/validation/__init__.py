"""`python -m lab validate`: the model beside the kernel, scenario by scenario, and the page that says how far they agree."""

from lab.validation.cases import TCP, Case, cases
from lab.validation.drawn import drawn
from lab.validation.judge import CHANCE, IDEAL, MEANS, OFFLOADED, judged, kendall_tau, measured, orders
from lab.validation.page import page, summary, table
from lab.validation.runs import MOST_SEEDS, SEEDS, Done, Kept, Work, measure
from lab.validation.trial import trial_page, tried

__all__ = [
    "CHANCE",
    "IDEAL",
    "MEANS",
    "MOST_SEEDS",
    "OFFLOADED",
    "SEEDS",
    "TCP",
    "Case",
    "Done",
    "Kept",
    "Work",
    "cases",
    "drawn",
    "judged",
    "kendall_tau",
    "measure",
    "measured",
    "orders",
    "page",
    "summary",
    "table",
    "trial_page",
    "tried",
]
