"""What a CUDA profile costs, against the plain run and against what one does by hand. Needs a GPU, ncu and nsys.

    python tests/performance/cuda_profile_cost.py [--full-iterations 8] [--rounds 3] [--keep FOLDER]

In one go on one machine, for `benchmark/gated_mlp.py --backend cuda`:

- the plain run (median of the rounds): what everything else is a multiple of;
- `profkit profile --depth gate` (aim: under 4 plain runs) and at the default depth (under 8);
- the counters pass alone: how much longer than the plain run (aim: under 3 s);
- `ncu --set full` on every launch of a few iterations: what is done where nobody plans.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WORKLOAD = (sys.executable, str(ROOT / "benchmark" / "gated_mlp.py"), "--backend", "cuda")


def seconds(argv: tuple[str, ...], **options: object) -> tuple[float, subprocess.CompletedProcess[str]]:
    """Wall seconds of a command that must end well, and what it printed."""
    begin = time.perf_counter()
    done = subprocess.run(argv, capture_output=True, text=True, cwd=ROOT, **options)  # type: ignore[call-overload]
    return time.perf_counter() - begin, done


def profile(depth: str, folder: Path) -> tuple[float, dict[str, float]]:
    """Wall seconds of a profile at this depth, and of each of its passes."""
    argv = (sys.executable, "-m", "profkit", "profile", "--backend", "cuda", "--depth", depth, "--quiet")
    spent, done = seconds((*argv, "--format", "json", "--output", str(folder / depth), "--", *WORKLOAD))
    if done.returncode != 0:
        raise SystemExit(f"profile --depth {depth} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    run = json.loads(done.stdout)
    return spent, {one["name"]: one["seconds"] for one in run["passes"] if one["state"] == "finished"}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--full-iterations", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--keep", type=Path, help="leave the runs here")
    asked = parser.parse_args()
    seconds(WORKLOAD)  # fills the caches of files and compiled kernels, for everybody
    plain = statistics.median(seconds(WORKLOAD)[0] for _ in range(asked.rounds))
    print(f"plain run: {plain:.1f} s (median of {asked.rounds})")
    with tempfile.TemporaryDirectory() as name:
        folder = asked.keep or Path(name)
        for depth, aim in (("gate", 4), ("standard", 8)):
            spent, passes = profile(depth, folder)
            parts = ", ".join(f"{pass_} {took:.1f} s" for pass_, took in passes.items())
            print(
                f"profkit --depth {depth}: {spent:.1f} s, {spent / plain:.1f} plain runs (aim {aim}): {parts}"
            )
            if "counters" in passes:
                print(
                    f"  the counters pass is {passes['counters'] - plain:+.1f} s beside a plain run (aim +3 s)"
                )
        few = (*WORKLOAD, "--warmup", "3", "--iters", str(asked.full_iterations))
        short, _ = seconds(few)
        ncu = ("ncu", "--config-file", "off", "--clock-control", "none", "--target-processes", "all")
        spent, done = seconds((*ncu, "--set", "full", "-f", "-o", str(folder / "full"), *few))
        print(
            f"ncu --set full on every launch of {asked.full_iterations} iterations: {spent:.1f} s, "
            f"{spent / short:.1f} of its plain runs ({short:.1f} s), rc {done.returncode}"
        )


if __name__ == "__main__":
    main()
