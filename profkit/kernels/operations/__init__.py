"""The operations that a sweep measures, their float64 truth, and their implementations.

`definitions` says what an operation is and has ours, `check` holds results against float64, `registry` knows
every implementation by its name. `pytorch`, `triton` and `cuda` are our implementations.
"""
