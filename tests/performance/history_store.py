"""A year of 400 metrics a night with 30 samples each: how long it takes to store, and to read all of it.

Run alone: python tests/performance/history_store.py [ROUNDS]
Read as points, with raw samples and without, against a bare SELECT of the table through sqlite3 in the same round (rows
of bytes, nothing decoded). Told are CPU seconds, in which others on the machine do not count, and the wall's; the
median over the rounds, and the ratio to the bare SELECT. Limit: all 146,000 points with their samples in under a second
of CPU. Exit code 1 where it is not.
"""

from __future__ import annotations

import random
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from statistics import median

from profkit.core.types import Entry, Feature, Scope, SeriesKey, Value
from profkit.regression.history import open_history

NIGHTS, WORKLOADS, METRICS, PROCESSES, SAMPLES = 365, 10, 40, 3, 10
LIMIT = 1.0  # seconds


def night(number: int, workload: int, rng: random.Random) -> Entry:
    """One run: 40 metrics, each with three processes of ten samples."""
    name = f"workload {workload}"
    values = []
    for metric in range(METRICS):
        centre = 1e-3 * (1 + metric)
        groups = tuple(tuple(centre * rng.gauss(1, 0.01) for _ in range(SAMPLES)) for _ in range(PROCESSES))
        key = SeriesKey(name, "cuda", f"metric.{metric}", Scope("region", name))
        flat = sorted(sample for group in groups for sample in group)
        values.append(Value(key, "s", "lower", median(flat), "measured", flat[9], flat[20], groups))
    started = datetime(2026, 1, 1, 2, workload, tzinfo=timezone.utc) + timedelta(days=number)
    features = (Feature("gpu.name", "NVIDIA H200", "must"), Feature("driver.major", "580", "must"))
    return Entry(
        id=f"{number:08x}{workload:08x}",
        started=started.isoformat(),
        workload=name,
        backend="cuda",
        state="complete",
        source="profkit",
        machine="abcdef012345",
        features=features,
        commit=f"{number:040x}",
        values=tuple(values),
    )


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """CPU and wall seconds."""
    cpu, wall = time.process_time(), time.perf_counter()
    kept = work()
    seconds = time.process_time() - cpu, time.perf_counter() - wall
    del kept  # to let go of it is not part of reading
    return seconds


def readers(path: Path) -> dict[str, Callable[[], object]]:
    def own(samples: bool) -> object:
        with open_history(path, read_only=True) as history:
            return history.series(samples=samples)

    def bare() -> object:
        return sqlite3.connect(path).execute("SELECT * FROM point").fetchall()

    return {
        "profkit, with samples": lambda: own(True),
        "profkit, without": lambda: own(False),
        "bare SELECT": bare,
    }


def main() -> int:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    rng = random.Random(4)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "history.sqlite")
        entries = [night(number, workload, rng) for number in range(NIGHTS) for workload in range(WORKLOADS)]
        with open_history(path) as history:
            cpu, wall = timed(lambda: [history.add(entry) for entry in entries])
            a_night = f"{cpu / NIGHTS * 1e3:.0f} ms of CPU a night of {WORKLOADS}"
            print(f"stored: {len(entries)} runs in {wall:.1f} s, {a_night}")
        print(f"size: {path.stat().st_size / 1e6:.1f} MB")
        found = readers(path)
        times: dict[str, list[tuple[float, float]]] = {name: [] for name in found}
        for _ in range(rounds):
            for name, read in found.items():
                times[name].append(timed(read))
    outside = median(cpu for cpu, _ in times["bare SELECT"])
    for name, both in times.items():
        cpu, wall = median(cpu for cpu, _ in both), median(wall for _, wall in both)
        print(f"{name:24} {cpu * 1e3:6.0f} ms of CPU, {cpu / outside:4.1f}x; wall {wall * 1e3:6.0f} ms")
    return int(min(cpu for cpu, _ in times["profkit, with samples"]) > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
