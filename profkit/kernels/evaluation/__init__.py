"""Is a kernel right, is it faster than PyTorch, and can both be believed?

- `suites/`: which calls of which operations are tested, and their arguments.
- `sources/`: where kernels come from: aten, a folder, a file with decorators, FlagGems.
- `candidate/`: the process that runs a kernel, its memory, and the judge's side of it.
- `judge`: a worker that owns arguments, float64 truth and clock, and decides on each test.
- `correctness`: the truth of an operation, and what rounding explains.
- `timing`: paired, interleaved times of two processes.
- `request`, `plan`, `journal`, `run`: an evaluation from its options to its document; `results/`: its files.
"""
