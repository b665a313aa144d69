"""xctrace, the recorder of Instruments: finds it, builds its command lines, reads its exports, explains its errors.

A recording passes through `find`, `command`, `recipe` and `export` on a Mac. Its XML becomes rows in `toc`, `folder`,
`tables` and `cells`, on any machine. Rows become what happened in `metal` (the GPU) and the `cpu_` modules; `alignment`
finds the marked region in it. `report` puts both into one report.
"""
