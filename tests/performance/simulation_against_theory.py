"""Simulated misses, memory traffic and operations against what theory says, and what simulating costs.

Run alone: python tests/performance/simulation_against_theory.py [numpy|torch|all]
Limit: within 2 % for every kernel whose counts are known by theory. Exit code 1 where one is missed. The
simulated machine has 32 KiB, 1 MiB and 8 MiB; vectors are 16 MiB each, so that they overflow every level.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import perf_counter

from profkit.core.types import Cache
from profkit.profilers.valgrind.command import (
    callgrind_argv,
    callgrind_outputs,
    combine_levels,
    single_thread_env,
)
from profkit.profilers.valgrind.instructions import instruction_mix
from profkit.profilers.valgrind.read import read_callgrind

ROOT = Path(__file__).resolve().parents[2]
TOLERANCE = 0.02
COUNT = 1 << 21  # doubles in a vector of 16 MiB
LINES = COUNT * 8 // 64
SIDE = 256
ROWS, WIDTH = 64, 256  # torch.nn.functional.linear: 64 x 256 times 256 x 256
FLOATS = 1 << 22  # torch: float32 in a vector of 16 MiB

RUN = """
import sys, time
from profkit.runtime.region.valgrind import ValgrindSwitch
switch = ValgrindSwitch()
def measure(name, kernel):
    switch.prepare()
    kernel()
    begin = time.perf_counter()
    switch.enter(name)
    kernel()
    switch.exit(name)
    print(name, time.perf_counter() - begin, flush=True)
"""
NUMPY = (
    RUN
    + f"""
import numpy as np
a, b, c = (np.ones({COUNT}) for _ in range(3))
x, y, z = (np.ones(({SIDE}, {SIDE}), np.float32) for _ in range(3))
measure(sys.argv[1], {{
    "copy": lambda: np.copyto(c, a),
    "add": lambda: np.add(a, b, out=c),
    "triad": lambda: (np.multiply(b, 3.0, out=c), np.add(c, a, out=c)),
    "product": lambda: np.matmul(x, y, out=z),
}}[sys.argv[1]])
"""
)
TORCH = (
    RUN
    + f"""
import torch
torch.set_num_threads(1)
a, b, c = (torch.ones({FLOATS}) for _ in range(3))
x, w = torch.ones({ROWS}, {WIDTH}), torch.ones({WIDTH}, {WIDTH})
measure(sys.argv[1], {{
    "torch-add": lambda: torch.add(a, b, out=c),
    "torch-linear": lambda: torch.nn.functional.linear(x, w),
}}[sys.argv[1]])
"""
)
# What theory knows of a kernel: data lines read and written from and to memory, operations.
# torch.add computes a + alpha * b.
THEORY: dict[str, dict[str, float]] = {
    "copy": {"D3mr": LINES, "D3mw": LINES, "D3wb": LINES, "bytes": 3 * 64 * LINES},
    "add": {"D3mr": 2 * LINES, "D3mw": LINES, "D3wb": LINES, "bytes": 4 * 64 * LINES, "FLOP": COUNT},
    "triad": {"D3mr": 3 * LINES, "D3wb": 2 * LINES, "bytes": 6 * 64 * LINES, "FLOP": 2 * COUNT},
    "product": {"FLOP": 2 * SIDE**3},
    "torch-add": {"D3mr": 2 * LINES, "D3mw": LINES, "bytes": 4 * 64 * LINES, "FLOP": 2 * FLOATS},
    "torch-linear": {"FLOP": 2 * ROWS * WIDTH * WIDTH},
}


def simulate(kernel: str, folder: Path) -> tuple[dict[str, float], float]:
    """Counts of one kernel, and the wall seconds of both simulations side by side."""
    script = TORCH if kernel.startswith("torch") else NUMPY

    def record(name: str, last: Cache, instructions: bool) -> Path:
        argv = callgrind_argv(
            [sys.executable, "-c", script, kernel],
            folder / f"{kernel}.{name}",
            i1=Cache(1, 32 << 10, 8),
            d1=Cache(1, 32 << 10, 8),
            last=last,
            region=True,
            instructions=instructions,
        )
        env = {**os.environ, **single_thread_env(), "PYTHONPATH": str(ROOT)}
        done = subprocess.run(argv, capture_output=True, text=True, env=env)
        if done.returncode != 0:
            sys.exit(f"{kernel} ended with {done.returncode}: {done.stderr[-1000:]}")
        return callgrind_outputs(folder / f"{kernel}.{name}")[0]

    begin = perf_counter()
    with ThreadPoolExecutor() as both:
        l2 = both.submit(record, "l2", Cache(2, 1 << 20, 16), True)
        l3 = both.submit(record, "l3", Cache(3, 8 << 20, 16), False)
        files = l2.result(), l3.result()
    spent = perf_counter() - begin
    levels = combine_levels(*(read_callgrind(file) for file in files))
    mix = instruction_mix(files[0])
    counters = [*levels.counters, *(mix.whole.counters() if mix else ())]
    counts = {c.name: c.value for c in counters if c.scope.kind == "run" and c.value is not None}
    lines = sum(counts[name] for name in ("I3mr", "D3mr", "D3mw", "D3wb"))
    return {**counts, "bytes": counts["line_bytes"] * lines}, spent


def main(which: str) -> int:
    good = True
    kernels = [k for k in THEORY if which == "all" or k.startswith("torch") is (which == "torch")]
    print(f"{'kernel':14}{'count':8}{'theory':>16}{'simulated':>16}{'off by':>9}")
    with tempfile.TemporaryDirectory(prefix="profkit-") as folder:
        for kernel in kernels:
            counts, spent = simulate(kernel, Path(folder))
            for name, theory in THEORY[kernel].items():
                off = counts[name] / theory - 1
                held = abs(off) <= TOLERANCE
                good &= held
                mark = "" if held else "   MISSED"
                print(f"{kernel:14}{name:8}{theory:16,.0f}{counts[name]:16,.0f}{off:9.2%}{mark}")
            print(f"{kernel:14}both simulations took {spent:.1f} s")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "numpy"))
