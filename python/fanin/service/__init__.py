"""What a service's users wait for under each TCP: as real Linux does it, and as fanin predicts it from a capture of one of them.

========== ==============================================================
module     what is in it
========== ==============================================================
rounds     from a run's messages to rounds and responses
prediction :func:`fanin.truth`: the kernel's own run beside the prediction
========== ==============================================================
"""

from __future__ import annotations

from fanin.service.prediction import TruthResult, truth

__all__ = ["TruthResult", "truth"]
