"""profkit/kernels/evaluation/suites/data/torchbench.txt.gz: the calls of tritonbench's traces.

    git clone https://github.com/meta-pytorch/tritonbench
    python -m tests.torchbench_table tritonbench COMMIT

writes it, out of the text files below tritonbench/data/input_configs of that clone.
"""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

from profkit.kernels.evaluation.suites.notation import read_traces, write_trace
from profkit.kernels.evaluation.suites.written import TABLE

FOLDERS = "tritonbench/data/input_configs"
LICENCE = "LICENSE.tritonbench"
HEAD = """Operators of training steps of models of Hugging Face, TIMM and TorchBench, recorded by tritonbench.
Source: https://github.com/meta-pytorch/tritonbench at commit {commit}, {folders}
Licence: BSD 3-Clause, see {licence} beside this file.
Made by `python -m tests.torchbench_table`."""


def main(clone: Path, commit: str) -> None:
    """Write the table and its licence."""
    calls = read_traces(clone / FOLDERS)
    head = HEAD.format(commit=commit, folders=FOLDERS, licence=LICENCE)
    TABLE.parent.mkdir(exist_ok=True)
    text = "".join(f"# {line}\n" for line in head.splitlines()) + write_trace(calls)
    TABLE.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    (TABLE.parent / LICENCE).write_text((clone / "LICENSE").read_text())
    operations = {call.operation for call in calls}
    print(f"{len(calls)} calls of {len(operations)} operations: {TABLE.stat().st_size} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
