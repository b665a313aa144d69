"""Evaluation of kernels: are they correct, are they faster than PyTorch, and can both be believed?

- `suites/`: which calls of which operations are tested, and their arguments.
- `sources/`: where kernels come from: aten, a folder, a file with decorators, a text, FlagGems.
- `candidate/`: the process that runs a kernel, its memory, and the judge's side of it.
- `judging/`: the judge, which owns arguments, float64 truth and clock, and decides on each test.
- `request`, `run`, `document`, `outputs`: an evaluation from its options to its document, and its files.
"""
