"""`fanin validate`: the model beside the kernel, scenario by scenario, and the page that says how far they agree."""

from fanin.kernel.validation.cases import TCP, Case, cases
from fanin.kernel.validation.judge import judged, kendall_tau, orders
from fanin.kernel.validation.page import page, placed, summary
from fanin.kernel.validation.runs import Done, Kept, Work, measure

__all__ = [
    "TCP",
    "Case",
    "Done",
    "Kept",
    "Work",
    "cases",
    "judged",
    "kendall_tau",
    "measure",
    "orders",
    "page",
    "placed",
    "summary",
]
