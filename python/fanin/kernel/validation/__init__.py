"""`fanin validate`: the model beside the kernel, scenario by scenario, and the page that says how far they agree."""

from fanin.kernel.validation.cases import TCP, Case, cases
from fanin.kernel.validation.drawn import drawn
from fanin.kernel.validation.judge import judged, kendall_tau, orders
from fanin.kernel.validation.page import MARKS, page, placed, summary
from fanin.kernel.validation.runs import Done, Kept, Work, measure
from fanin.kernel.validation.trial import TRIAL_MARKS, TRIAL_SEEDS, trial_page, tried

__all__ = [
    "MARKS",
    "TCP",
    "TRIAL_MARKS",
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
    "orders",
    "page",
    "placed",
    "summary",
    "trial_page",
    "tried",
]
