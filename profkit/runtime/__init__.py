"""Loaded inside the process of the workload: the region, the benchmark loop, the passes."""
