"""xctrace, the recorder of Instruments: finds it, runs it, reads its exports, explains its errors.

A recording passes through `command` and `export` on a Mac. Its XML becomes rows in `toc` and `tables`, on any
machine. Rows become what happened in the `metal_` modules (the GPU) and `cpu`; `alignment` finds the marked
region in it. `report` puts both into one report.
"""
