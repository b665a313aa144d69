"""Where a series becomes another one: three detectors, and their vote. Pure functions on values in order."""
