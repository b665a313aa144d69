"""xctrace, the recorder of Instruments: finds it, builds its command lines, reads its exports, explains its errors.

Where to look, in the order in which a recording passes through:

- It is made and exported: `command` has the flags, `find` and `probe` look for what is here, `recipe` and `export` run
  it, `ending`, `left_out` and `faults` say how that went.
- XML becomes rows: `kinds`, `folder`, `toc` say which files belong together, `tables` reads their tables, `cells` says
  what a cell means.
- Rows become what happened: `metal_read` names the columns of each table of the GPU and who takes them, `metal_part`
  decides what counts, `metal_report` sums it up. `cpu_report` and the other `cpu_` files do the same for the processor.
  `alignment` finds the marked region on the clock of the recording.
- `report` puts both into one report; `time_line` tells the same for viewers. What is a share of what, GPU utilization
  for one, is worked out in `profkit/analysis/summaries/metal_readings.py`.

To read one more table of the GPU: a class with `add(rows)` beside its like (`metal_work`, `metal_host`,
`metal_states`), and one line in `MetalTables.takers`, from which it follows that the table is exported.
"""
