"""What a test of a kernel costs, with isolation and truth, against BackendBench's own run of the same database.

    python tests/performance/evaluation_cost.py                          # ours alone, against the limit
    python tests/performance/evaluation_cost.py --peer ../BackendBench   # a checkout of it, whose imports are there
    python tests/performance/evaluation_cost.py --equal --neighbours 2 --threads 1 --budget 1   # what it tells

Both evaluate PyTorch's own kernels over torch's database of operations in bfloat16 on the CPU, correctness alone. The
peer runs kernel and reference in one process on the same tensors, without a truth. Processor seconds are those of all
processes, looked at ten times a second. The limit is what the peer took on two busy cores: 82 s.

`--equal` times PyTorch against itself, 97 operations in two sizes, beside so many busy loops, and prints how the words
of tests and operations fell: at most 1 of 200 may be FASTER or SLOWER, and the geometric mean is 1.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from math import exp, log
from multiprocessing import Process
from pathlib import Path
from statistics import fmean, stdev

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


EQUAL = """
import torch
from types import SimpleNamespace

UNARY = (
    "abs acos asin atan ceil cos cosh deg2rad erf erfc exp exp2 expm1 floor frac lgamma log log10 log1p log2 neg "
    "rad2deg reciprocal relu round rsqrt sigmoid sign sin sinh sqrt square tan tanh trunc hardsigmoid silu"
).split()


class Test:
    def __init__(self, *sizes):
        self.sizes, self.kwargs = sizes, {}

    @property
    def args(self):
        return tuple(torch.rand(*size) + 0.1 for size in self.sizes)


def of(name, overload, *sizes):
    op = getattr(getattr(torch.ops.aten, name), overload)
    return SimpleNamespace(op=op, correctness_tests=[], performance_tests=[Test(*each) for each in sizes])


SMALL, LARGE = (64, 128), (512, 512)
names = [(name + end, 1, "default") for name in UNARY for end in ("", "_")]
names += [(name, 2, "Tensor") for name in "add add_ sub sub_ mul mul_ div div_ remainder fmod lt gt eq ne".split()]
names += [(name, 2, "default") for name in "maximum minimum fmax fmin atan2 hypot logaddexp mm".split()]
names += [(name, 1, "default") for name in "sum mean prod amax amin".split()]
SUITE = [
    of(name, overload, *([size] * count for size in ((256, 256) if name == "mm" else SMALL, LARGE)))
    for name, count, overload in names
]
"""


def tell_equal(neighbours: int, more: Sequence[str]) -> None:
    """Print the words of equal kernels."""
    beside = [Process(target=_spin, daemon=True) for _ in range(neighbours)]
    with tempfile.TemporaryDirectory() as folder:
        suite = Path(folder, "equal.py")
        suite.write_text(EQUAL)
        command = [
            sys.executable,
            "-m",
            "profkit",
            "evaluate",
            "--suite",
            str(suite),
            "--device",
            "cpu",
            *more,
        ]
        command += ["--format", "json", "--quiet", "--output", folder]
        for process in beside:
            process.start()
        try:
            made = subprocess.run(
                command, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE
            )
        finally:
            for process in beside:
                process.kill()
    document = json.loads(made.stdout)
    for kind in ("tests", "operations"):
        speedups = [one["speedup"] for one in document[kind] if one["speedup"]]
        logs = [log(one["median"]) for one in speedups]
        error = stdev(logs) / len(logs) ** 0.5
        words = dict(Counter(one["word"] for one in speedups))
        print(
            f"{len(logs)} {kind}: {words}; geometric mean {exp(fmean(logs)):.4f}, standard error {error:.4f}"
        )
        for one in document[kind]:
            if one["speedup"] and one["speedup"]["word"] in ("FASTER", "SLOWER"):
                print(f"  {one['operation']}: {one['speedup']} {one.get('remarks', '')}")
    print(f"the whole: {document['geomean']:.4f} {document['geomean_word']}; {document['seconds']:.0f} s")


def _spin() -> None:
    while True:
        pass


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
    parser.add_argument("--equal", action="store_true", help="other options go to profkit evaluate")
    parser.add_argument("--neighbours", type=int, default=0)
    options, more = parser.parse_known_args()
    if options.equal:
        tell_equal(options.neighbours, more)
        return
    if more:
        parser.error(f"what is {' '.join(more)}?")
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
