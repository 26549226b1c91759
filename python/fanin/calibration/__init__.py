"""Which racks reproduce a capture: what the capture leaves open is tried, and what gives the capture again under the current TCP is kept.

A replay that does not reproduce what the capture measured under the current setting says nothing about other settings. So before a change is
advised, the unknown values (link rate, buffer, host traits) are drawn from the ranges that the capture allows, the current TCP is replayed on
each, and the values whose replay is what the capture shows are kept with a weight: approximate Bayesian computation by a grid (Beaumont,
"Approximate Bayesian Computation in Evolution and Ecology", Annual Review of Ecology, Evolution, and Systematics 41, 2010). An empty set
means that no advice can be given.
"""

from fanin.calibration.case import Calibrated, as_calibrated, judge_racks
from fanin.calibration.observed import Shown, apart
from fanin.calibration.search import MOST_APART, Calibration, Fit, calibrate
from fanin.calibration.space import open_values, wider_values

__all__ = [
    "MOST_APART",
    "Calibrated",
    "Calibration",
    "Fit",
    "Shown",
    "apart",
    "as_calibrated",
    "calibrate",
    "judge_racks",
    "open_values",
    "wider_values",
]
