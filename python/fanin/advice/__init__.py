"""Advice: which transport, with which settings, for a capture's traffic on a rack.

``fanin.settings`` says what can be changed and how, ``search`` finds the best by successive halving, ``advise`` judges it on fresh seeds and
says where it hurts and how sure that is.
"""

from __future__ import annotations

from fanin.advice.advise import Advice, advise

__all__ = ["Advice", "advise"]
