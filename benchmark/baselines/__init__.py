"""Provide the same workloads as other people would write them, for comparison."""
