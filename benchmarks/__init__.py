"""The comprehensive benchmark under the name that its guide gives it; the workloads themselves are in `benchmark/`."""
