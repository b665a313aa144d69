"""A comparison of two runs, or of several workloads, as blocks."""
