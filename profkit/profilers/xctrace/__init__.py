"""xctrace, the recorder of Instruments: finds it, builds its command lines, reads its exports, explains its errors.

A recording passes through `find`, `command` and `export` on a Mac. Its XML becomes rows in `toc`, `tables`
and `cells`, on any machine. Rows become what happened in the `metal_` modules (the GPU) and `cpu`; `alignment` finds
the marked region in it. `report` puts both into one report.
"""
