"""What a sweep measures: operations, their float64 truth, and who can compute them.

`operation` says what an operation is, `definitions` has ours, `check` holds results against float64, `registry` knows
every implementation by its name. `pytorch`, `triton` and `cuda` are our implementations.
"""
