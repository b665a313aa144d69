"""Seconds of reading an .ncu-rep of a thousand kernels, against NVIDIA's ncu_report in the same run, and memory.

Run alone: python tests/performance/reading_ncu_rep.py [--kernels N] [--peer PYTHON] [--like REPORT]
`--peer` is a Python that has ncu_report (default: this one, where it has it). Both give the same metrics of all
kernels: those that profkit asks for. The kernels of a recorded `--set full` are repeated (`--like`, by default the one
of the recorded reports beside the project).
Limits: ten times as fast as ncu_report, start-up included on both sides; no more memory for a
file four times as large. Exit code 1 where one is missed.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import struct
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from profkit.profilers.ncu.blocks import read_blocks, read_records  # noqa: E402
from profkit.profilers.ncu.launches import wanted_names  # noqa: E402
from tests.profilers.ncu import writer as w  # noqa: E402

AIM = 10.0  # times as fast as ncu_report
GROWTH = 16.0  # MiB that a four times larger file may take on top

OURS = """
import resource, sys
from pathlib import Path
from profkit.profilers.ncu.rep import read_ncu_rep
report = read_ncu_rep(Path(sys.argv[1]))
print(len(report.counters), sum(time.launches for time in report.trace.kernels))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""
# Nothing that the package does twice, and no name looked up that a kernel does not have.
THEIRS = """
import json, resource, sys
import ncu_report
names = json.load(open(sys.argv[2]))
context = ncu_report.load_report(sys.argv[1])
launches = values = 0
for number in range(context.num_ranges()):
    for action in context.range_by_idx(number):
        launches += 1
        action.name(action.NameBase_DEMANGLED)
        for name in names:
            metric = action.metric_by_name(name)
            if metric is not None:
                metric.value()
                values += 1
print(values, launches)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def write_like(path: Path, recorded: Path, kernels: int) -> None:
    """The recorded report, with its kernels again and again until there are `kernels`."""
    data = recorded.read_bytes()
    repeated = []
    for block in read_blocks(data):
        for part in read_records(data, block):
            if part.kind == "kernel":
                payload = data[part.offset - 4 : part.offset + part.size]
                header = w.number(1, 0) + w.number(2, 1) + w.lump(4, b"") + w.number(5, len(payload))
                repeated.append(struct.pack("<I", len(header)) + header + payload)
    with path.open("wb") as file:
        file.write(data)
        for number in range(kernels - len(repeated)):
            file.write(repeated[number % len(repeated)])


def seconds(argv: list[str]) -> tuple[float, list[str]]:
    begin = perf_counter()
    done = subprocess.run(argv, capture_output=True, text=True, cwd=ROOT)
    spent = perf_counter() - begin
    if done.returncode != 0:
        sys.exit(f"{argv[0]} ended with {done.returncode}: {done.stderr[-500:]}")
    return spent, done.stdout.split()


def read_back(file: Path) -> float:
    """Seconds for the bytes alone: what no reader can be faster than, the page cache being warm."""
    begin = perf_counter()
    with file.open("rb") as stream:
        while stream.read(1 << 20):
            pass
    return perf_counter() - begin


def main(options: argparse.Namespace) -> int:
    good = True
    with tempfile.TemporaryDirectory(prefix="profkit-") as folder:
        asked = Path(folder) / "names.json"
        asked.write_text(json.dumps(sorted(wanted_names())))
        file = Path(folder, "large.ncu-rep")
        write_like(file, options.like, options.kernels)
        print(f"{file.stat().st_size / 1e6:.0f} MB; its bytes alone take {read_back(file):.2f} s")
        ours: list[float] = []
        theirs: list[float] = []
        peer = options.peer or (sys.executable if importlib.util.find_spec("ncu_report") else None)
        for _ in range(options.rounds):
            spent, own = seconds([sys.executable, "-c", OURS, str(file)])
            ours.append(spent)
            if peer is not None:
                spent, other = seconds([peer, "-c", THEIRS, str(file), str(asked)])
                theirs.append(spent)
        peak = int(own[2]) / 1024
        print(f"profkit     {median(ours):7.2f} s, {peak:5.0f} MiB, {own[1]} launches, start-up included")
        if theirs:
            ratio = median(theirs) / median(ours)
            print(
                f"ncu_report  {median(theirs):7.2f} s, {int(other[2]) / 1024:5.0f} MiB, {other[1]} launches, "
                f"{other[0]} values"
            )
            good &= own[1] == other[1]
            good &= ratio >= AIM
            print(f"{ratio:.1f} times as fast{'' if ratio >= AIM else f': MISSED, aim {AIM:.0f}'}")
        else:
            print("ncu_report is not installed (--peer PYTHON): nothing to compare with")
        quarter = Path(folder, "small.ncu-rep")
        write_like(quarter, options.like, options.kernels // 4)
        small = int(seconds([sys.executable, "-c", OURS, str(quarter)])[1][2]) / 1024
        flat = peak - small < GROWTH
        good &= flat
        print(f"memory: {small:.0f} MiB for a quarter of it: {'flat' if flat else 'MISSED: grows'}")
    return 0 if good else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kernels", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peer", help="a Python that has ncu_report")
    recorded = Path(os.environ.get("PROFKIT_FIXTURES", ROOT.parent / "shared" / "fixtures"))
    recorded = recorded / "cuda" / "h200.gated_mlp.full.ncu-rep"
    parser.add_argument("--like", default=str(recorded), help="a recorded report whose kernels are repeated")
    arguments = parser.parse_args()
    arguments.like = Path(arguments.like)
    sys.exit(main(arguments))
