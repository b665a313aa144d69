"""A trace of half a million kernels on a time line for Perfetto: processor time and memory, against a tenth of it.

The peer is Python's own `json.dumps` of as many events of that size, which is the least that writing them can take.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.performance.reading_nsys_sqlite import write  # noqa: E402

MOST_TIMES = 3.0  # of the peer: every event is read, joined and placed, too
MOST_MORE = 40.0  # MB more than for a tenth, from some 100,000 kernels on

EXPORT = """
import json, resource, sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from profkit.profiling.export import ExportOptions as Wish, export
size = sum(len(piece) for piece in export(Wish((Path(sys.argv[1]),), "perfetto")).pieces)
usage = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps([usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, size / 1e6]))
"""
PEER = """
import json, sys, time
event = {"ph": "X", "name": "kernel_1<float, 1>", "cat": "gpu", "ts": 1.5, "dur": 2.5, "pid": 1, "tid": 2,
         "args": {"grid": "1001x1x1", "block": "256x1x1"}}
begin = time.process_time()
for _ in range(int(sys.argv[1]) * 4):  # kernel, call, and the arrow between them
    json.dumps(event)
print(time.process_time() - begin)
"""


def main() -> int:
    """Print the ratios; 0 where they are within the aims."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kernels", type=int, default=500_000)
    kernels = parser.parse_args().kernels
    with tempfile.TemporaryDirectory() as folder:
        small, large = Path(folder, "small.sqlite"), Path(folder, "large.sqlite")
        write(small, kernels // 10, marked=True)
        write(large, kernels, marked=True)
        _, least, _ = run(EXPORT, str(small), str(ROOT))
        spent, peak, size = run(EXPORT, str(large), str(ROOT))
    alone = run(PEER, str(kernels))
    times = spent / alone
    print(f"profkit     {spent:6.1f} s of processor for {kernels:,} kernels: {size:.0f} MB of JSON")
    print(f"json.dumps  {alone:6.1f} s: profkit takes {times:.1f} times as long (aim: {MOST_TIMES:.0f})")
    print(
        f"memory      {peak:6.0f} MB, and {least:.0f} MB for a tenth of it (aim: at most {MOST_MORE:.0f} MB more)"
    )
    return 0 if times <= MOST_TIMES and peak - least <= MOST_MORE else 1


def run(program: str, *arguments: str) -> list[float] | float:
    """What the program prints, in a process of its own."""
    done = subprocess.run([sys.executable, "-c", program, *arguments], check=True, capture_output=True)
    return json.loads(done.stdout)


if __name__ == "__main__":
    raise SystemExit(main())
