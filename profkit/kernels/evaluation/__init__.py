"""Evaluation of kernels: are they correct, are they faster than PyTorch, and can both be believed?

- `suites/`: which calls of which operations are tested, and their arguments.
- `sources/`: where kernels come from: aten, a folder, a file with decorators, a text, FlagGems.
- `worker/`: the process that runs kernels. `worker` calls and times them, `connection` carries requests, and
  `isolation` is all that keeps a kernel from what is not its own.
- `judging/`: what is right (`reference`, `correctness`), and the `judge`: observations in, verdict out.
- `trial`, `timing`, `batches`, `fresh_values`, `devices`: how a test is checked and timed.
- `evaluator`: one test after the other, from its arguments to its verdict.
- `request`, `run`, `document`, `outputs`: an evaluation from its options to its document, and its files.
"""
