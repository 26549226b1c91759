"""Settings of hosts and switches, right as deployed.

``declared`` says once what can be a candidate, at which end and at what cost; ``candidates`` makes of it the ways to run a rack; ``lines`` says
what to type for one of them, and what takes it back, in the words of ``shell``; ``hosts`` lists what else Linux lets a host set, with its lines.
"""

from fanin.settings.candidates import Candidate, Space
from fanin.settings.declared import Cost, End, Knob
from fanin.settings.lines import how_to

__all__ = ["Candidate", "Cost", "End", "Knob", "Space", "how_to"]
