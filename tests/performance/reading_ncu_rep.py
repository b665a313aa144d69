"""Seconds of reading an .ncu-rep of a thousand kernels, against NVIDIA's ncu_report in the same run, and memory.

Run alone: python tests/performance/reading_ncu_rep.py [--kernels N] [--megabytes N] [--peer PYTHON] [--like REPORT]
`--peer` is a Python that has ncu_report (default: this one, where it has it). Both give the same metrics of all
kernels: those that profkit asks for. The kernels of a recorded `--set full` are repeated (`--like`, by default the one
of the recorded reports beside the project); without one, or with `--like none`, all is written by the format's grammar.
Limits: with recorded kernels ten times as fast as ncu_report, start-up included on both sides; no more memory for a
file four times as large. Exit code 1 where one is missed.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import random
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
METRICS = 2243  # of one kernel in a `--set full` of 2025.3 on an H200
METRIC = "l1tex__lsu_writeback_active_mem_lg.sum.peak_sustained"
CHIPS = w.lump(6, w.number(1, 75) + w.number(2, 89))
SHAPES = 24  # launch configurations in the file

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


def metric_names() -> list[str]:
    """Names of one kernel's metrics: what profkit asks for, and the same quantities rolled up otherwise.

    They are names of metrics that there are: what the peer knows of a metric by its name, it looks up.
    """
    named = sorted(wanted_names())
    bases = list(dict.fromkeys(name.partition(".")[0] for name in named if "." in name))
    others = (
        f"{base}.{rollup}{sub}"
        for sub in (
            "",
            ".per_second",
            ".pct_of_peak_sustained_elapsed",
            ".peak_sustained",
            ".per_cycle_elapsed",
        )
        for rollup in ("avg", "max", "min", "sum")
        for base in bases
    )
    return list(dict.fromkeys((*named, *others)))[:METRICS]


def section(name: str, size: int) -> bytes:
    """A ProfilerSection of about `size` bytes: metrics with label and the name they have on other chips."""
    row = w.lump(
        1, w.lump(1, METRIC) + w.lump(2, "A metric of this section") + CHIPS + w.lump(7, w.lump(1, METRIC))
    )
    return w.lump(
        17, w.lump(1, name) + w.lump(2, name) + w.number(3, 0) + w.lump(6, row * (size // len(row)))
    )


def write(path: Path, kernels: int, megabytes: float, seed: int = 1) -> None:
    """A report of `kernels` kernels in all `megabytes` large."""
    rng = random.Random(seed)
    names, strings = metric_names(), w.Names()
    each = int(megabytes * 1e6 / kernels)
    instances = w.Instances(tuple(rng.random() for _ in range(each // 2 // 25 // 20)), 1.0)
    lists: dict[str, w.Value] = {f"source__counter_{n}": instances for n in range(20)}
    end = b"".join(section(f"Section{n}", each // 2 // 10) for n in range(10))
    with path.open("wb") as file:
        file.write(w.report(w.block(details=w.session()), w.block(sources=[w.number(1, 1)])))
        for number in range(kernels):
            values: dict[str, w.Value] = {
                name: rng.randrange(10**6) if rng.random() < 0.3 else rng.random() * 1e9 for name in names
            }
            values["gpu__time_duration.sum"] = float(rng.randrange(2_000, 9_000_000))
            shape = number % SHAPES
            kernel = w.KernelResult(
                f"void kernel_{shape}<float>(float*)", values | lists, grid=(132 + shape, 1, 1), more=end
            )
            file.write(w.block([kernel], strings))


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


def make(path: Path, options: argparse.Namespace, share: int) -> Path:
    """The file to read, or one with a `share` of its kernels."""
    if options.like is None:
        write(path, options.kernels // share, options.megabytes / share)
    else:
        write_like(path, options.like, options.kernels // share)
    return path


def main(options: argparse.Namespace) -> int:
    good = True
    with tempfile.TemporaryDirectory(prefix="profkit-") as folder:
        asked = Path(folder) / "names.json"
        asked.write_text(json.dumps(sorted(wanted_names())))
        file = make(Path(folder) / "large.ncu-rep", options, 1)
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
            if options.like is None:
                print(
                    f"{ratio:.1f} times as fast; no limit: sections as simple as these cost ncu_report little"
                )
            else:
                good &= ratio >= AIM
                print(f"{ratio:.1f} times as fast{'' if ratio >= AIM else f': MISSED, aim {AIM:.0f}'}")
        else:
            print("ncu_report is not installed (--peer PYTHON): nothing to compare with")
        quarter = make(Path(folder) / "small.ncu-rep", options, 4)
        small = int(seconds([sys.executable, "-c", OURS, str(quarter)])[1][2]) / 1024
        flat = peak - small < GROWTH
        good &= flat
        print(f"memory: {small:.0f} MiB for a quarter of it: {'flat' if flat else 'MISSED: grows'}")
    return 0 if good else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kernels", type=int, default=1000)
    parser.add_argument("--megabytes", type=float, default=500.0, help="of a file that is written whole")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peer", help="a Python that has ncu_report")
    recorded = Path(os.environ.get("PROFKIT_FIXTURES", ROOT.parent / "shared" / "fixtures"))
    recorded = recorded / "cuda" / "h200.gated_mlp.full.ncu-rep"
    parser.add_argument("--like", default=str(recorded), help="a recorded report whose kernels are repeated")
    arguments = parser.parse_args()
    arguments.like = Path(arguments.like) if Path(arguments.like).is_file() else None
    sys.exit(main(arguments))
