"""Where a series becomes another one: one detector, and a test of what it finds against the noise.

Pure functions on values in order, one per night or build. numpy is imported where it is used, never on import.
"""

from profkit.regression.change_points.find import SeriesFindings as SeriesFindings
from profkit.regression.change_points.find import examine_series as examine_series
from profkit.regression.change_points.find import find_changes as find_changes
