"""How long a nightly looks for changes, in seconds of CPU: 400 series of 365 nights, and one of 100,000.

python -m tests.performance.detectors_speed
"""

from __future__ import annotations

import time
import tracemalloc

from profkit.regression.change_points import examine_series
from tests.regression.change_points.series import noise, with_steps


def seconds(work: list[list[float]]) -> float:
    began = time.process_time()
    for values in work:
        examine_series(values)
    return time.process_time() - began


def main() -> None:
    examine_series([1.0, 2.0] * 50)  # numpy is loaded
    quiet = [(100 + noise("gauss", 365, seed)).tolist() for seed in range(400)]
    changed = [
        (100 + with_steps(noise("ar.3", 365, seed), (90, 4), (200, -3), (300, 2))).tolist()
        for seed in range(400)
    ]
    print("| what | seconds | limit |\n| --- | --- | --- |")
    for label, work in (
        ("400 series of 365 nights, no change", quiet),
        ("the same with three steps each", changed),
    ):
        print(f"| {label} | {min(seconds(work) for _ in range(3)):.2f} | 1.5 |", flush=True)
    for kind in ("gauss", "ar.8"):
        long = (
            100 + with_steps(noise(kind, 100_000, 1), *((k, 2.0) for k in range(5_000, 100_000, 5_000)))
        ).tolist()
        took = seconds([long])
        tracemalloc.start()
        examine_series(long)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        print(f"| one series of 100,000, {kind}, 19 steps | {took:.1f} ({peak / 1e6:.0f} MB) | |", flush=True)


if __name__ == "__main__":
    main()
