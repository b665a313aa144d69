"""Provide the comprehensive benchmark under the name in its guide; the workloads themselves are in `benchmark/`."""
