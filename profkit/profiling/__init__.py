"""Profiles one workload: plans, collects, reads, judges and writes."""
