"""How fast perf script text is read: against the time perf takes to write it, and in how much memory.

    python tests/performance/reading_perf_script.py [--seconds 3] [--size-mb 200] [--folder DIR]

1. Records this interpreter by the project's own recipe (frame pointers, then copies of the stack), lets perf
   script write the text and reads that text, in turns, best of three each. Both are single processes that
   wait for nothing, so processor seconds are compared: a busy machine does not decide. Aim: reading is
   faster.
2. Generates a text of the given size in which every stack is a new one, harder than any program, and reads it
   in a process of its own. Aim: under 256 MB of memory whatever the size (--size-mb 1000 for the full claim).

Exit code 1 where an aim is missed.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from profkit.profilers.perf.command import CallGraph, record_argv, script_argv
from profkit.profilers.perf.script import read_script

MOST_MEMORY = 256  # MB

WORKLOAD = """
import json, sys, time
data = {str(i): [i, {"a": [1.5] * 5}] for i in range(500)}
end = time.time() + float(sys.argv[1])
while time.time() < end:
    json.loads(json.dumps(data, indent=1))
"""

READER = """
import json, resource, sys, time
sys.path.insert(0, sys.argv[2])
from pathlib import Path
from profkit.profilers.perf.script import read_script
start = time.process_time()
report = read_script(Path(sys.argv[1]))
seconds = time.process_time() - start
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps([seconds, peak, report.facts["samples"], len(report.stacks[0].weights), report.warnings]))
"""


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=3.0, help="how long to record")
    parser.add_argument("--size-mb", type=int, default=200, help="size of the generated text")
    parser.add_argument("--folder", type=Path, help="where to put the files (default: a temporary one)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        fine = True
        if shutil.which("perf"):
            fine &= against_perf(folder, "fp", options.seconds)
            fine &= against_perf(folder, "dwarf", options.seconds)
        else:
            print("perf is not installed: reading is not compared with its writing")
        fine &= generated(folder, options.size_mb)
    return 0 if fine else 1


def against_perf(folder: Path, call_graph: CallGraph, seconds: float) -> bool:
    data, text = folder / "perf.data", folder / "script.txt"
    workload = [sys.executable, "-c", WORKLOAD, str(seconds)]
    argv = record_argv(workload, data, event="cpu-clock", call_graph=call_graph, frequency=4999)
    subprocess.run(argv, check=True, capture_output=True)
    writing, reading = [], []
    for _ in range(3):
        start = children_seconds()
        subprocess.run(script_argv(data, text), check=True, capture_output=True)
        writing.append(children_seconds() - start)
        start = time.process_time()
        report = read_script(text)
        reading.append(time.process_time() - start)
    size = text.stat().st_size / 1e6
    ratio = min(writing) / min(reading)
    print(
        f"{call_graph:5}  {size:7.1f} MB, {report.facts['samples']} samples: perf writes "
        f"{size / min(writing):.0f} MB/s, read at {size / min(reading):.0f} MB/s: {ratio:.1f} times as fast"
    )
    return ratio > 1


def children_seconds() -> float:
    """Processor seconds of all children so far."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def generated(folder: Path, size_mb: int) -> bool:
    text = folder / "generated.txt"
    generate(text, size_mb * 1_000_000)
    root = Path(__file__).resolve().parent.parent.parent
    done = subprocess.run(
        [sys.executable, "-c", READER, str(text), str(root)], check=True, capture_output=True, text=True
    )
    seconds, peak, samples, stacks, warnings = json.loads(done.stdout)
    size = text.stat().st_size / 1e6
    print(
        f"made   {size:7.1f} MB, {samples} samples, {stacks} distinct stacks: "
        f"read at {size / seconds:.0f} MB/s in {peak:.0f} MB of memory (aim: under {MOST_MEMORY})"
    )
    for warning in warnings:
        print(f"       {warning}")
    return bool(peak < MOST_MEMORY)


def generate(path: Path, size: int) -> None:
    """A text that is harder than real ones: callers branch at random, so that new stacks come for ever."""
    random.seed(7)
    functions = [
        (f"namespace_{n % 97}::function_{n}<int, char>(void*)", f"/usr/lib/libexample{n % 40}.so")
        for n in range(20_000)
    ]
    written = 0
    clock = 0
    with path.open("w", encoding="ascii") as file:
        while written < size:
            pieces = []
            for _ in range(500):
                clock += 1
                depth = random.randint(5, 60)
                # The outermost frames are few, the innermost many: as in a program.
                stack = [
                    min(int(random.expovariate(1) * 4 ** min(level, 7)), 19_999) for level in range(depth)
                ]
                lines = []
                for index in reversed(stack):
                    symbol, library = functions[index]
                    lines.append(f"\t{index * 4096 + random.randint(0, 40) * 8:16x} {symbol} ({library})\n")
                head = (
                    f"worker-{clock % 8} 4000/{4000 + clock % 8} {clock / 997:.6f}:    1003009 cpu-clock: \n"
                )
                pieces.append(head + "".join(lines) + "\n")
            block = "".join(pieces)
            file.write(block)
            written += len(block)


if __name__ == "__main__":
    raise SystemExit(main())
