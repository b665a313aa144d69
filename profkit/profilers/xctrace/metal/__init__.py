"""The GPU's side of a recording: Metal System Trace and GPU counters.

`tables` and `counters` make columns of rows, `part` decides what counts, `sums` and `report` sum it up.
To read one more table: its layout in `tables.LAYOUTS`, from which it follows that the table is exported.
"""
