"""What synchronised timing on MPS costs and hides, with a device that stands in for a Mac's, on a simulated clock.

    python -m tests.performance.mps_timing

For work of 10 µs to 100 ms per call, behind a wait of 150 µs: what a clock says that does not wait, one that waits for
each call, and profkit's, each against the work itself; then the share of its seconds that profkit's timing measured in,
the rest being warm-up, probes and waits. And on the real clock what an entry of a region costs under the switch for
Instruments, beyond that wait. On a Mac the wait itself differs; the shares do not, since a sample's length follows it.
"""

from __future__ import annotations

import sys
from time import perf_counter
from typing import Any

from profkit.core.statistics import median
from profkit.runtime.passes import benchmark, mps_timing, timing
from profkit.runtime.passes.benchmark import time_function
from profkit.runtime.passes.timing import TimedCalls
from profkit.runtime.region.mps import SignpostSwitch
from tests.mps_stand_in import load

MICROSECONDS = (10, 50, 200, 1_000, 10_000, 100_000)
PRECISION, BUDGET = 0.01, 10.0
ENTRIES = 20_000
HELD = 1.02  # profkit's seconds over the work's, at a wait that may be 0.5 % of a sample and a tail that overlaps


def compared(microseconds: int) -> tuple[float, float, float, float, float]:
    """Unsynchronised, waited for one by one, and profkit's seconds over the work's; share measured; seconds spent."""
    torch = on_a_simulated_clock()
    work = microseconds * 1e-6

    def fn() -> None:
        torch.work(microseconds)

    torch.use()
    begin = torch.clock()
    for _ in range(8):
        fn()
    without = (torch.clock() - begin) / 8
    torch.mps.synchronize()
    begin = torch.clock()
    fn()
    torch.mps.synchronize()
    single = torch.clock() - begin
    found = time_function(TimedCalls(fn), device="mps", cold=False, precision=PRECISION, budget=BUDGET)
    measured = sum(found.seconds) * found.loops / found.spent
    return without / work, single / work, median(found.seconds) / work, measured, found.spent


def on_a_simulated_clock() -> Any:
    """A fresh stand-in, whose clock profkit's timing has, too."""
    torch = load()
    torch.state.now = 0.0
    sys.modules["torch"] = torch
    benchmark.perf_counter = timing.perf_counter = mps_timing.perf_counter = torch.clock
    return torch


def entry() -> float:
    """Seconds that an entry and exit take under the switch, in a process that uses no device."""
    sys.modules.pop("torch", None)
    switch = SignpostSwitch()
    begin = perf_counter()
    for _ in range(ENTRIES):
        switch.enter("mlp")
        switch.exit("mlp")
    return (perf_counter() - begin) / ENTRIES


def main() -> int:
    print("seconds that a clock says, over those of the work")
    print(
        f"{'work':>10}  {'no wait':>8}  {'each waited for':>15}  {'profkit':>8}  {'measuring':>9}  {'spent':>7}"
    )
    worst = 0.0
    for microseconds in MICROSECONDS:
        without, single, ours, measured, spent = compared(microseconds)
        worst = max(worst, ours)
        print(
            f"{microseconds:>7} µs  {without:>8.4f}  {single:>15.3f}  {ours:>8.4f}  {measured:>8.0%}  {spent:>6.2f} s"
        )
    print(
        f"an entry of a region under the switch for Instruments: {entry() * 1e6:.2f} µs, and two waits on MPS"
    )
    print("held" if worst < HELD else f"MISSED: {worst:.3f} times the work")
    return 0 if worst < HELD else 1


if __name__ == "__main__":
    sys.exit(main())
