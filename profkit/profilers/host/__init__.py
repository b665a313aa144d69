"""Reads what the passes in the workload's own process recorded (`runtime/passes/host/`), and makes reports of it."""
