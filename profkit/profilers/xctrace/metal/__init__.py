"""The GPU's side of a recording: Metal System Trace and GPU counters.

`tables` names the columns of each table and who takes them, `part` decides what counts, `report` sums it up.
To read one more table: a class with `add(rows)` beside its like, and one line in `MetalTables.takers`, from which it
follows that the table is exported.
"""
