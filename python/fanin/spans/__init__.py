"""Requests as traces: an application's own beside a capture (``--spans``), and a capture's for tracing tools (``--spans-out``)."""

from fanin.spans.fitting import Fitted, Times, fit
from fanin.spans.reading import Span, read
from fanin.spans.writing import Written, write

__all__ = ["Fitted", "Span", "Times", "Written", "fit", "read", "write"]
