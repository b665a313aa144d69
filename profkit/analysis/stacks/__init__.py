"""Sampled stacks as plain data: merging them, tables of them, and the files that flame graph viewers open."""
