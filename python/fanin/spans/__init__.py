"""An application's own traces beside a capture: ``fanin compare CAPTURE --spans FILE``."""

from fanin.spans.fitting import Fitted, Times, fit
from fanin.spans.reading import Span, read

__all__ = ["Fitted", "Span", "Times", "fit", "read"]
