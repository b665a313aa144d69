"""What runs inside the workload's own process: timing, cProfile, tracemalloc; and readers of its files."""
