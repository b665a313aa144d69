"""Where a series becomes another one: three detectors, their vote, and an audit of what they say.

Pure functions on values in order, one per night or build. numpy is imported where it is used, never on import.
"""

from profkit.regression.change_points.find import Findings, examine, find_changes
from profkit.regression.change_points.noise import autocorrelation, noise, smallest_detectable

__all__ = ["Findings", "autocorrelation", "examine", "find_changes", "noise", "smallest_detectable"]
