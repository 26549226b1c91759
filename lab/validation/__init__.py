"""`python -m lab validate`: the model beside the kernel, scenario by scenario, and the page that says how far they agree."""

from lab.validation.cases import TCP, Case, cases
from lab.validation.drawn import drawn
from lab.validation.judge import IDEAL, MEANS, OFFLOADED, judged, kendall_tau, measured, orders
from lab.validation.page import page, summary, table
from lab.validation.runs import Done, Kept, Work, measure
from lab.validation.trial import TRIAL_SEEDS, trial_page, tried

__all__ = [
    "IDEAL",
    "MEANS",
    "OFFLOADED",
    "TCP",
    "TRIAL_SEEDS",
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
