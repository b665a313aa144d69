"""What a test of a kernel costs, with isolation and truth, against BackendBench's own run of the same database.

    python tests/performance/evaluation_cost.py                          # ours alone, against the limit
    python tests/performance/evaluation_cost.py --peer ../BackendBench   # a checkout of it, whose imports are there

Both evaluate PyTorch's own kernels over torch's database of operations in bfloat16 on the CPU, correctness alone. The
peer runs kernel and reference in one process on the same tensors, without a truth. Processor seconds are those of all
processes, looked at ten times a second. The limit is what the peer took on two busy cores: 82 s.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parents[2]
LIMIT_SECONDS = 82.0
PEER = """
import torch
from BackendBench.backends import AtenBackend
from BackendBench.eval import eval_one_op
from BackendBench.suite import OpInfoTestSuite

backend = AtenBackend()
operations = tests = correct = 0
for test in OpInfoTestSuite("opinfo_cpu_bfloat16", "cpu", torch.bfloat16, filter=None):
    rows = eval_one_op(test.op, backend[test.op], test.correctness_tests, test.performance_tests)[2]
    operations, tests, correct = operations + 1, tests + len(rows), correct + sum(row.is_correct for row in rows)
print(f"{operations} operations, {tests} tests, {correct} correct")
"""


def run_counted(command: Sequence[str], env: Mapping[str, str]) -> tuple[float, float, str]:
    """Processor and wall seconds of a command with all that it starts, and what it prints."""
    begin, seconds = time.perf_counter(), {}
    with tempfile.TemporaryFile("w+") as output:
        child = subprocess.Popen(command, env={**os.environ, **env}, stdout=output, stderr=subprocess.DEVNULL)
        root = psutil.Process(child.pid)
        while child.poll() is None:
            try:
                for process in (root, *root.children(recursive=True)):
                    times = process.cpu_times()
                    seconds[process.pid, process.create_time()] = times.user + times.system
            except psutil.Error:
                pass
            time.sleep(0.1)
        output.seek(0)
        return sum(seconds.values()), time.perf_counter() - begin, output.read()


def main() -> None:
    """Print both costs and their ratio."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--peer", type=Path, help="a checkout of BackendBench")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "profkit", "evaluate", "--suite", "opinfo", "--dtype", "bfloat16"]
        command += ["--correctness-only", "--format", "json", "--quiet", "--output", folder]
        ours, wall, printed = run_counted(command, {"PYTHONPATH": str(ROOT)})
    document = json.loads(printed)
    tests, operations = document["tests"], document["operations"]
    passed = sum(test["status"] == "passed" for test in tests)
    found = f"{len(operations)} operations, {len(tests)} tests, {passed} passed"
    print(f"profkit: {found}: {ours:.1f} s of processor time, {wall:.1f} s of wall time")
    rate = 60 / wall
    print(f"{rate * len(operations):.0f} operations and {rate * len(tests):.0f} tests a minute")
    peer = LIMIT_SECONDS
    if options.peer:
        paths = os.pathsep.join((str(options.peer), os.environ.get("PYTHONPATH", "")))
        peer, wall, printed = run_counted([sys.executable, "-c", PEER], {"PYTHONPATH": paths})
        print(f"BackendBench: {printed.strip()}: {peer:.1f} s of processor time, {wall:.1f} s of wall time")
    print(f"ratio of processor time: {ours / peer:.2f} (aim: at most 1)")


if __name__ == "__main__":
    main()
