"""Judge the last night of a series: pure functions, no processes and no clock."""
