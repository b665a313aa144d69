"""Records series of real timings on this machine, since real noise is never as in a textbook.

    python -m tests.performance.detectors_record FOLDER [--nights 400] [--pause 1.5]

One "night" is the median of a few short samples of each kind of work, taken in turn. One CSV file per kind is left in
FOLDER: a header, then index and seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

SAMPLES = 15


def kinds() -> dict[str, Callable[[], object]]:
    """Work of a few milliseconds each: arithmetic, memory, caches, the interpreter, the kernel's process start."""
    random = np.random.default_rng(1)
    a, b = random.random((256, 256)), random.random((256, 256))
    source, target = np.zeros(4 << 20), np.zeros(4 << 20)
    places = random.integers(0, source.size, 200_000)
    unsorted = random.random(60_000)
    document = json.dumps([{"name": f"kernel {i}", "seconds": i / 7} for i in range(1500)])
    child = [sys.executable, "-S", "-c", "pass"]
    return {
        "matmul": lambda: a @ b,
        "copy": lambda: np.copyto(target, source),
        "gather": lambda: source[places].sum(),
        "sort": lambda: np.sort(unsorted),
        "interpreter": lambda: sum(i * i for i in range(20_000)),
        "json": lambda: json.loads(document),
        "process_start": lambda: subprocess.run(["/bin/true"], check=True),
        "python_start": lambda: subprocess.run(child, check=True),
    }


def night(work: Callable[[], object]) -> float:
    """Seconds of one call: the median of some."""
    times = []
    for _ in range(SAMPLES):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return median(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--nights", type=int, default=400)
    parser.add_argument("--pause", type=float, default=1.5, help="seconds from one night to the next")
    asked = parser.parse_args()
    works = kinds()
    series: dict[str, list[float]] = {name: [] for name in works}
    for work in works.values():
        night(work)  # the first touch of everything is no night
    for number in range(asked.nights):
        began = time.perf_counter()
        for name, work in works.items():
            series[name].append(night(work))
        if number % 40 == 0:
            print(f"night {number} of {asked.nights}", file=sys.stderr, flush=True)
        time.sleep(max(0.0, asked.pause - (time.perf_counter() - began)))
    asked.folder.mkdir(parents=True, exist_ok=True)
    for name, values in series.items():
        rows = "".join(f"{index},{value:.5g}\n" for index, value in enumerate(values))
        (asked.folder / f"{name}.csv").write_text("index,seconds\n" + rows)


if __name__ == "__main__":
    main()
