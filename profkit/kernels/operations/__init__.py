"""What a sweep measures: operations, their float64 truth, and who can compute them.

One file per kind of operation, one module per implementation; `registry.py` knows them all by name.
"""
