"""Python's own profilers: the file that `cProfile` and `pstats` write."""
