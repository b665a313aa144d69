"""What a sweep costs against a plain loop over the same cases, at equal precision of the median.

    python tests/performance/sweep_cost.py                # on a GPU, the default grid; --every 2 takes an eighth
    python tests/performance/sweep_cost.py --device cpu   # ten cases, one thread

The loop is what somebody writes by hand: inputs, a call, then triton.testing.do_bench (its defaults) on a GPU, or
torch.utils.benchmark's blocked_autorange on the CPU, in one process. It checks nothing, keeps nothing, and one crash
ends it. The sweep is `profkit sweep` as a process, from its start to its reports.

Equal precision: a median of n samples is known to about 1 / sqrt(n). Where the loop knows the median of a case to h and
the sweep's to s, the loop would have needed (h / s)^2 as many samples: its timing, and that alone, is scaled by that,
each taken for no better known than was asked. A loop that was disturbed in one case makes much of this.
The ratio of whole costs is printed plain, too. Aims: at most 1.0, and less than 10 % outside of checking, compiling
and timing.
"""

# ruff: noqa: E402 (the project's own packages are found first, wherever this is run)

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import torch

from profkit import statistics
from profkit.model import SweepDocument
from profkit.operations.registry import Unavailable, build
from profkit.sweep.bench import make_problem
from profkit.sweep.grid import Grid
from profkit.sweep.story import read_sweep


@dataclass
class Loop:
    """Whole seconds, those of timing, and of each case its median in seconds and how well it is known."""

    total: float
    timing: float
    medians: dict[str, float]
    widths: dict[str, float | None]
    taken: dict[str, float]


def plain_loop(grid: Grid, device: str) -> Loop:
    """The cases of the grid in a loop; what cannot be had is left out."""
    begin, found = time.perf_counter(), Loop(0.0, 0.0, {}, {}, {})
    place = torch.device("cuda:0" if device == "cuda" else "cpu")
    for point in grid.points():
        for name in grid.implementations:
            try:
                call = build(name, make_problem(point, place))
                call()
            except Unavailable:
                continue
            start = time.perf_counter()
            seconds = _timed(call, device)
            key = f"{name}: {point.name}"
            found.taken[key] = time.perf_counter() - start
            found.medians[key] = statistics.median(seconds)
            found.widths[key] = statistics.relative_half_width(seconds)
    found.timing = sum(found.taken.values())
    found.total = time.perf_counter() - begin
    return found


def _timed(call: Callable[[], object], device: str) -> Sequence[float]:
    if device == "cuda":
        from triton.testing import do_bench

        return [milliseconds / 1e3 for milliseconds in do_bench(call, return_mode="all")]
    from torch.utils.benchmark import Timer

    taken = Timer("call()", globals={"call": call}, num_threads=1).blocked_autorange(min_run_time=0.2)
    return list(taken.times)


def main() -> None:
    """Run both, print the ratios."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--device", choices=("cuda", "cpu"), default="cuda" if torch.cuda.is_available() else "cpu"
    )
    parser.add_argument(
        "--every", type=int, default=1, help="of the default grid's sizes only each n-th of an axis"
    )
    parser.add_argument("--precision", type=float, default=0.01)
    parser.add_argument("--implementations", default="")
    parser.add_argument("--first", choices=("loop", "sweep"), default="sweep", help="who finds empty caches")
    asked = parser.parse_args()
    names = tuple(filter(None, asked.implementations.split(","))) or (
        ("PyTorch", "torch.compile", "Triton", "CUDA") if asked.device == "cuda" else ("PyTorch",)
    )
    whole = Grid(implementations=names)
    step = max(1, asked.every)
    small = asked.device == "cpu" and step == 1
    grid = Grid(
        implementations=names,
        batches=(16,) if small else whole.batches[::step],
        sequences=(256,) if small else whole.sequences[::step],
        dimensions=(8, 64) if small else whole.dimensions[::step],
    )
    if asked.first == "loop":
        loop = plain_loop(grid, asked.device)
    seconds, sweep = _sweep(grid, asked.device, asked.precision)
    if asked.first == "sweep":
        loop = plain_loop(grid, asked.device)
    timed = {f"{r.implementation}: {r.point.name}": r for r in sweep.results if r.median}
    scaled = 0.0
    for key, taken in loop.taken.items():
        own = timed[key].half_width if key in timed else None
        theirs = loop.widths[key]
        if own is None or theirs is None:
            scaled += taken
            continue
        # Better than was asked is no merit: times in ticks of the clock have intervals of no width at all.
        scaled += taken * (max(theirs, asked.precision) / max(own, asked.precision)) ** 2
    equal = loop.total - loop.timing + scaled
    shifts = sorted(
        timed[key].median / median for key, median in loop.medians.items() if key in timed and median > 0
    )
    widths = sorted(width for width in loop.widths.values() if width)
    owns = sorted(result.half_width for result in timed.values() if result.half_width)
    cases = len(loop.medians)
    print(f"{cases} cases on {sweep.device}")
    print(
        f"  sweep        {seconds:8.1f} s, {seconds / cases:.3f} s a case, median known to {_middle(owns):.2%}"
    )
    print(
        f"  plain loop   {loop.total:8.1f} s, {loop.total / cases:.3f} s a case, median known to {_middle(widths):.2%}"
    )
    print(f"  sweep / loop                             {seconds / loop.total:.2f}")
    print(f"  sweep / loop at the sweep's precision    {seconds / equal:.2f}   (aim: at most 1.0)")
    print(f"  outside of checking, compiling, timing   {sweep.overhead or 0:.1%}   (aim: below 10 %)")
    print(
        f"  sweep's median over the loop's           {_middle(shifts):.3f}, {shifts[0]:.3f} to {shifts[-1]:.3f}"
    )


def _sweep(grid: Grid, device: str, precision: float) -> tuple[float, SweepDocument]:
    with tempfile.TemporaryDirectory() as folder:
        argv = [sys.executable, "-m", "profkit", "sweep", *grid.words(), "--device", device]
        argv += ["--threads", "1"] if device == "cpu" else []
        argv += ["--precision", str(precision), "--output", folder, "--format", "json"]
        begin = time.perf_counter()
        done = subprocess.run(argv, cwd=ROOT, stdout=subprocess.PIPE, check=False)
        seconds = time.perf_counter() - begin
        print(f"profkit sweep ended with {done.returncode}", file=sys.stderr)
        return seconds, read_sweep(Path(json.loads(done.stdout)["folder"]))


def _middle(values: Sequence[float]) -> float:
    return values[len(values) // 2] if values else float("nan")


if __name__ == "__main__":
    main()
