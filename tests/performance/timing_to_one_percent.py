"""Samples and seconds to a ±1 % interval: profkit.benchmark against pyperf and torch.utils.benchmark.

Run alone: python tests/performance/timing_to_one_percent.py
The kernel is a product of two 256 x 256 float32 matrices in numpy, on one thread. Each tool decides itself
when to stop; the interval of the median over what it sampled is then computed in the same way for all.
Repeated rounds show how much each tool's answer moves from process to process: a tool that stops early must
not move more.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

from profkit.core.statistics import median, relative_half_width

SETUP = "import numpy as np; r = np.random.default_rng(0); a, b = r.random((2, 256, 256), dtype=np.float32)"
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
ROUNDS = 3

PROFKIT = f"""
{SETUP}
import json, profkit
found = profkit.benchmark(lambda: a @ b, name="matmul", budget=30)
taken = found.samples
print(json.dumps([list(taken.seconds), len(taken.seconds) + len(taken.warmup), taken.precise]))
"""
TORCH = f"""
{SETUP}
import json
from torch.utils.benchmark import Timer
found = Timer("a @ b", globals=dict(a=a, b=b), num_threads=1).%s
print(json.dumps([list(found.times), len(found.times), None]))
"""
TORCH_WAYS = {
    "torch blocked_autorange()": "blocked_autorange()",
    "torch adaptive_autorange(1 %)": "adaptive_autorange(threshold=0.01, max_run_time=30)",
}


def child(code: str) -> tuple[list[float], int]:
    done = subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, **ONE_THREAD},
    )
    seconds, count, _ = json.loads(done.stdout.splitlines()[-1])
    return seconds, count


def pyperf_way() -> tuple[list[float], int]:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "pyperf.json"
        subprocess.run(
            [
                sys.executable,
                "-m",
                "pyperf",
                "timeit",
                "-q",
                "-o",
                str(out),
                "--copy-env",
                "-s",
                SETUP,
                "a @ b",
            ],
            check=True,
            capture_output=True,
            env={**os.environ, **ONE_THREAD},
        )
        runs = json.loads(out.read_text())["benchmarks"][0]["runs"]
    values = [value for run in runs for value in run.get("values", [])]
    warm = sum(len(run.get("warmups", [])) for run in runs)
    return values, len(values) + warm


def tools() -> dict[str, object]:
    found: dict[str, object] = {"profkit.benchmark": lambda: child(PROFKIT)}
    try:
        import pyperf  # noqa: F401

        found["pyperf timeit"] = pyperf_way
    except ImportError:
        print("pyperf is not installed")
    try:
        import torch  # noqa: F401

        for name, way in TORCH_WAYS.items():
            found[name] = lambda way=way: child(TORCH % way)
    except ImportError:
        print("torch is not installed")
    return found


def main() -> None:
    print(
        f"{'tool':30} {'samples':>8} {'wall s':>7} {'interval':>9}"
        f" {'medians of the rounds, µs':>30} {'moved':>7}"
    )
    rows: dict[str, list[tuple[float, list[float], int]]] = {}
    for _ in range(ROUNDS):
        for name, way in tools().items():
            begin = perf_counter()
            seconds, count = way()  # type: ignore[operator]
            rows.setdefault(name, []).append((perf_counter() - begin, seconds, count))
    for name, rounds in rows.items():
        medians = [median(seconds) for _, seconds, _ in rounds]
        halves = [relative_half_width(seconds) for _, seconds, _ in rounds]
        known = [half for half in halves if half is not None]
        print(
            f"{name:30} {median([float(count) for _, _, count in rounds]):8.0f}"
            f" {median([wall for wall, _, _ in rounds]):7.2f}"
            f" {'±%.2f %%' % (100 * median(known)) if known else 'none':>9}"
            f" {'  '.join(f'{m * 1e6:.1f}' for m in medians):>30}"
            f" {100 * (max(medians) - min(medians)) / min(medians):6.1f} %"
        )
    print("wall seconds include starting the tool and importing numpy")


if __name__ == "__main__":
    main()
