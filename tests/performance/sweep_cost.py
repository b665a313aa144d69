"""What a sweep costs against a plain loop over the same cases, at equal precision of the median.

    python tests/performance/sweep_cost.py                # on a GPU, the default grid; --every 2 takes an eighth
    python tests/performance/sweep_cost.py --device cpu   # ten cases, one thread

The loop is what somebody writes by hand: inputs, a call, then triton.testing.do_bench (its defaults) on a GPU, or
torch.utils.benchmark's blocked_autorange on the CPU. It checks nothing, keeps nothing, and one crash ends it. The sweep
is `profkit sweep`. Both are processes timed from start to end, each with folders of its own for what Triton, Inductor
and profkit compile: empty in the first round, and as the first round left them in every further one.

Equal precision: a median of n samples is known to about 1 / sqrt(n). Where the loop knows the median of a case to h and
the sweep's to s, the loop would have needed (h / s)^2 as many samples: its timing, and that alone, is scaled by that,
each taken for no better known than was asked, and no case for more than LARGEST_SCALE times.
The ratio of whole costs is printed plain, too. Aims: at most 1.0, and less than 10 % outside of checking, compiling
and timing.
"""

# ruff: noqa: E402 (the project's own packages are found first, wherever this is run)

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from profkit.core import codec, statistics
from profkit.core.types import SweepDocument
from profkit.kernels.sweep.request import SweepGrid, read_sweep

LARGEST_SCALE = 10.0
# Where compiled things are kept. XDG_CACHE_HOME is profkit's.
CACHES = ("TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "XDG_CACHE_HOME", "CUDA_CACHE_PATH")


@dataclass
class Loop:
    """Seconds by case: its median, how well that is known (a share), and what its timing took."""

    medians: dict[str, float] = field(default_factory=dict)
    widths: dict[str, float | None] = field(default_factory=dict)
    taken: dict[str, float] = field(default_factory=dict)


def plain_loop(grid: SweepGrid, device: str) -> Loop:
    """The cases of the grid in a loop; what cannot be had is left out."""
    import torch

    from profkit.kernels.operations.registry import Unavailable, build_call
    from profkit.kernels.sweep.bench import make_problem

    found = Loop()
    place = torch.device("cuda:0" if device == "cuda" else "cpu")
    for point in grid.points():
        for name in grid.implementations:
            try:
                call = build_call(name, make_problem(point, place))
                call()
            except Unavailable:
                continue
            start = time.perf_counter()
            seconds = _timed(call, device)
            key = f"{name}: {point.name}"
            found.taken[key] = time.perf_counter() - start
            found.medians[key] = statistics.median(seconds)
            found.widths[key] = statistics.relative_half_width(seconds)
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
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda" if _has_gpu() else "cpu")
    parser.add_argument(
        "--every", type=int, default=1, help="of the default grid's sizes only each n-th of an axis"
    )
    parser.add_argument("--precision", type=float, default=0.01)
    parser.add_argument("--implementations", default="")
    parser.add_argument("--rounds", type=int, default=2, help="the first one begins with empty caches")
    parser.add_argument("--as-loop", metavar="GRID", help="be the loop: a grid as JSON; the result as JSON")
    asked = parser.parse_args()
    if asked.as_loop:
        grid = codec.from_plain_data(SweepGrid, json.loads(asked.as_loop))
        print(json.dumps(asdict(plain_loop(grid, asked.device))))
        return
    grid = _grid(asked)
    with tempfile.TemporaryDirectory() as folder:
        homes = {who: {name: f"{folder}/{who}/{name}" for name in CACHES} for who in ("sweep", "loop")}
        for number in range(asked.rounds):
            print("as the round before left the caches" if number else "with empty caches")
            seconds, sweep = _sweep(grid, asked.device, asked.precision, homes["sweep"])
            whole, loop = _loop(grid, asked.device, homes["loop"])
            _tell(seconds, sweep, whole, loop, asked.precision)


def _has_gpu() -> bool:
    return any(Path(device).exists() for device in ("/dev/nvidiactl", "/dev/dxg"))


def _grid(asked: argparse.Namespace) -> SweepGrid:
    names = tuple(filter(None, asked.implementations.split(","))) or (
        ("PyTorch", "torch.compile", "Triton", "CUDA") if asked.device == "cuda" else ("PyTorch",)
    )
    whole = SweepGrid(implementations=names)
    step = max(1, asked.every)
    small = asked.device == "cpu" and step == 1
    return SweepGrid(
        implementations=names,
        batches=(16,) if small else whole.batches[::step],
        sequences=(256,) if small else whole.sequences[::step],
        dimensions=(8, 64) if small else whole.dimensions[::step],
    )


def _sweep(
    grid: SweepGrid, device: str, precision: float, home: Mapping[str, str]
) -> tuple[float, SweepDocument]:
    with tempfile.TemporaryDirectory() as folder:
        argv = [sys.executable, "-m", "profkit", "sweep", *grid.words(), "--device", device]
        argv += ["--threads", "1"] if device == "cpu" else []
        argv += ["--precision", str(precision), "--output", folder, "--format", "json", "--quiet"]
        begin = time.perf_counter()
        done = subprocess.run(argv, cwd=ROOT, stdout=subprocess.PIPE, env={**os.environ, **home}, check=False)
        seconds = time.perf_counter() - begin
        if done.returncode:
            print(f"profkit sweep ended with {done.returncode}", file=sys.stderr)
        return seconds, read_sweep(Path(json.loads(done.stdout)["folder"]))


def _loop(grid: SweepGrid, device: str, home: Mapping[str, str]) -> tuple[float, Loop]:
    argv = [sys.executable, __file__, "--device", device, "--as-loop", json.dumps(codec.to_plain_data(grid))]
    begin = time.perf_counter()
    done = subprocess.run(argv, cwd=ROOT, stdout=subprocess.PIPE, env={**os.environ, **home}, check=True)
    seconds = time.perf_counter() - begin
    return seconds, Loop(**json.loads(done.stdout.splitlines()[-1]))


def _tell(seconds: float, sweep: SweepDocument, whole: float, loop: Loop, precision: float) -> None:
    timed = {f"{r.implementation}: {r.point.name}": r for r in sweep.results if r.median}
    scaled = 0.0
    for key, taken in loop.taken.items():
        own = timed[key].half_width if key in timed else None
        theirs = loop.widths[key]
        if own is None or theirs is None:
            scaled += taken
            continue
        # Better than was asked is no merit: times in ticks of the clock have intervals of no width at all.
        needed = (max(theirs, precision) / max(own, precision)) ** 2
        scaled += taken * min(LARGEST_SCALE, max(1 / LARGEST_SCALE, needed))
    equal = whole - sum(loop.taken.values()) + scaled
    shifts = sorted(
        timed[key].median / median  # type: ignore[operator]
        for key, median in loop.medians.items()
        if key in timed and median > 0
    )
    widths = sorted(width for width in loop.widths.values() if width)
    owns = sorted(result.half_width for result in timed.values() if result.half_width)
    late = [sum(width > precision for width in some) / max(1, len(some)) for some in (owns, widths)]
    cases = len(loop.medians)
    print(f"{cases} cases on {sweep.device}")
    for title, took, known, share in (
        ("sweep", seconds, owns, late[0]),
        ("plain loop", whole, widths, late[1]),
    ):
        print(
            f"  {title:11} {took:8.1f} s, {took / cases:.3f} s a case; medians known to {_middle(known):.2%}, "
            f"{share:.0%} of them worse than asked"
        )
    print(f"  sweep / loop                             {seconds / whole:.2f}")
    print(f"  sweep / loop at the sweep's precision    {seconds / equal:.2f}   (aim: at most 1.0)")
    print(
        f"  sweep's median over the loop's           {_middle(shifts):.3f}, {shifts[0]:.3f} to {shifts[-1]:.3f}",
        flush=True,
    )


def _middle(values: Sequence[float]) -> float:
    return values[len(values) // 2] if values else float("nan")


if __name__ == "__main__":
    main()
