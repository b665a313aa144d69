"""How fast an nsys export is read, and in how much memory: against SQLite's own sum of the same kernels.

    python tests/performance/reading_nsys_sqlite.py [--kernels 5000000] [--unmarked] [--folder DIR] [--keep FILE]

1. Writes an export of so many kernels and their calls, by the schema of nsys 2025: fifty configurations in turn,
   inside a region of profkit (or with --unmarked in none, so that what repeats has to be found).
2. Reads it, and a tenth of it, each in a process of its own, and lets SQLite do in such a process what an export's
   reader would do at least: count, sum and name the kernels by configuration (GROUP BY). Processor seconds are
   compared, since both are single processes that wait for nothing but the disk.

Aims: at most 5 times SQLite's own time, for the joined, restricted trace with medians, gaps and latencies; and no more
memory for ten times the kernels than 64 MB more. Exit code 1 where one is missed.
"""

from __future__ import annotations

import argparse
import json
import random
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
MOST_TIMES = 5.0
MOST_MORE = 64  # MB
CONFIGURATIONS = 50
PID = 281483700862976
TID = PID + 600
SCHEMA = """
PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;
CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
  contextId INTEGER NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER,
  globalPid INTEGER, demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, mangledName INTEGER,
  launchType INTEGER, cacheConfig INTEGER, registersPerThread INTEGER NOT NULL, gridX INTEGER NOT NULL,
  gridY INTEGER NOT NULL, gridZ INTEGER NOT NULL, blockX INTEGER NOT NULL, blockY INTEGER NOT NULL,
  blockZ INTEGER NOT NULL, staticSharedMemory INTEGER NOT NULL, dynamicSharedMemory INTEGER NOT NULL,
  localMemoryPerThread INTEGER NOT NULL, localMemoryTotal INTEGER NOT NULL, gridId INTEGER NOT NULL,
  sharedMemoryExecuted INTEGER, graphNodeId INTEGER, sharedMemoryLimitConfig INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL,
  globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL,
  callchainId INTEGER);
CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, rangeId INTEGER,
  text TEXT, globalTid INTEGER, textId INTEGER, domainId INTEGER);
"""
READER = """
import json, resource, sys, time
sys.path.insert(0, sys.argv[2])
from pathlib import Path
from profkit.profilers.nsys.sqlite import read_sqlite
wall, start = time.perf_counter(), time.process_time()
report = read_sqlite(Path(sys.argv[1]))
spent, wall = time.process_time() - start, time.perf_counter() - wall
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
trace = report.trace
print(json.dumps([spent, wall, peak, trace.launches, len(trace.kernels), trace.repeats, trace.busy / trace.span]))
"""
SQL = """
import resource, sqlite3, sys, time
database = sqlite3.connect(f"file:{sys.argv[1]}?mode=ro&immutable=1", uri=True)
start = time.process_time()
rows = database.execute(
    "SELECT s.value, gridX, gridY, gridZ, blockX, blockY, blockZ, count(*), sum(end - start) "
    "FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds s ON s.id = k.demangledName GROUP BY 1, 2, 3, 4, 5, 6, 7"
).fetchall()
print(time.process_time() - start)
"""


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kernels", type=int, default=5_000_000)
    parser.add_argument("--unmarked", action="store_true", help="nothing marks what counts")
    parser.add_argument("--folder", type=Path, help="where to put the files (default: a temporary one)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        small, large = (Path(name, f"{title}.sqlite") for title in ("tenth", "whole"))
        write(small, options.kernels // 10, marked=not options.unmarked)
        begin = time.perf_counter()
        write(large, options.kernels, marked=not options.unmarked)
        size, took = large.stat().st_size / 1e6, time.perf_counter() - begin
        print(f"wrote {options.kernels:,} kernels with their calls, {size:.0f} MB, in {took:.0f} s")
        return judged(small, large)


def judged(small: Path, large: Path) -> int:
    _, _, least, *_ = run(READER, small)
    spent, wall, peak, launches, kernels, repeats, busy = run(READER, large)
    alone = float(
        subprocess.run([sys.executable, "-c", SQL, str(large)], check=True, capture_output=True).stdout
    )
    times = spent / alone
    found = f", {repeats} repeats" if repeats is not None else ""
    shown = f"{launches:,} launches of {kernels} configurations{found}, busy {busy:.0%}"
    print(f"profkit   {spent:6.1f} s of processor, {wall:.1f} s; {shown}")
    print(
        f"GROUP BY  {alone:6.1f} s of processor: profkit takes {times:.1f} times as long (aim: {MOST_TIMES:.0f})"
    )
    print(
        f"memory    {peak:6.0f} MB, and {least:.0f} MB for a tenth of it (aim: at most {MOST_MORE} MB more)"
    )
    return 0 if times <= MOST_TIMES and peak - least <= MOST_MORE else 1


def run(program: str, file: Path) -> list[float]:
    done = subprocess.run(
        [sys.executable, "-c", program, str(file), str(ROOT)], check=True, capture_output=True
    )
    found: list[float] = json.loads(done.stdout)
    return found


def write(path: Path, kernels: int, *, marked: bool) -> None:
    chance = random.Random(1)
    ends = [0, 0]

    def activities() -> Iterator[tuple[int | None, ...]]:
        at = 1_000_000
        ends[0] = at - 1000
        for n in range(kernels):
            kind = n % CONFIGURATIONS
            length = 3000 + kind * 100 + chance.randrange(32) * 32
            row = (at, at + length, 0, 1, None, 7, n + 1, PID, kind + 1, kind + 1, kind + 1, 1, 0, 32 + kind)
            yield (*row, 1000 + kind, 1, 1, 256, 1, 1, 1024, 0, 0, 0, n, 1024, None, None)
            at += length + (500 if n % 7 else 3000)
        ends[1] = at + 1000

    def calls() -> Iterator[tuple[int | None, ...]]:
        at = 999_000
        for n in range(kernels):
            yield (at, at + 3000, 0, TID, n + 1, 200, 0, None)
            at += 6000

    database = sqlite3.connect(path)
    database.executescript(SCHEMA)
    names = [(n, f"void kernel_{n}<float, {n}>(float*)") for n in range(1, CONFIGURATIONS + 1)]
    database.executemany("INSERT INTO StringIds VALUES (?, ?)", [*names, (200, "cudaLaunchKernel_v7000")])
    marks = ",".join("?" * 28)
    database.executemany(f"INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ({marks})", activities())
    database.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?,?,?,?,?,?,?,?)", calls())
    if marked:
        region = (ends[0] - 1_000_000, ends[1], 60, 1, "profkit:region", TID, None, 0)
        database.execute("INSERT INTO NVTX_EVENTS VALUES (?,?,?,?,?,?,?,?)", region)
    database.commit()
    database.close()


if __name__ == "__main__":
    raise SystemExit(main())
