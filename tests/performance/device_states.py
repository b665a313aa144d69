"""How much the same kernel's cold time depends on the number of kernels that ran before it, modulo four. On a GPU.

    python tests/performance/device_states.py

Between two cold calls of one kernel there are a flush of the L2 (a kernel of the driver) and 0 to 3 kernels that do
next to nothing. Where every fourth launch finds the device in the same state, a call sees two of four states with 0
of them, all four with 1 and with 3, and one with 2; which ones is chance. The last row of each is samples as a sweep
takes them, the mean of eight calls behind a flush in pieces: what they say should be the same at each try.
"""

# ruff: noqa: E402 (the project's own packages are found first, wherever this is run)

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import torch

from profkit.core.statistics import median
from profkit.core.types import GridPoint
from profkit.kernels.operations.registry import build_call
from profkit.kernels.sweep.bench import make_problem
from profkit.kernels.sweep.device_loop import group_means
from profkit.runtime.passes.device_samples import (
    FLUSH_PIECES,
    DeviceCalls,
    DeviceClock,
    PipelinedBlocks,
    open_clock,
)
from profkit.runtime.region.cuda import driver_in_use

POINTS = (GridPoint("GELU", 64, 256, 16), GridPoint("GELU", 16, 256, 512), GridPoint("MSE", 64, 256, 128))
CALLS = 960
STATES = 4
TRIES = 3


class Padded(DeviceCalls):
    """Each call behind one flush in one piece, and behind kernels that do next to nothing."""

    def __init__(self, fn: Callable[[], object], clock: DeviceClock, kernels: int) -> None:
        tiny = torch.empty(1, device="cuda")

        def setup() -> None:
            clock.flush()
            for _ in range(kernels):
                tiny.fill_(1.0)

        super().__init__(fn, clock, setup)


def seconds(timed: DeviceCalls, count: int) -> list[float]:
    """So many single calls, one block after the other."""
    probes = [timed.back_to_back(1) for _ in range(3)]
    timed.fit_blocks(min(probes, key=lambda sample: sample.wall))
    blocks, found = PipelinedBlocks(timed), list[float]()
    while len(found) < count:
        found += timed.time_singly() if timed.setup is not None else blocks.next_block(count - len(found))
    return found + blocks.last_block()


def main() -> None:
    """Print the table, in microseconds."""
    torch.zeros(1, device="cuda")
    driver = driver_in_use()
    if driver is None:
        sys.exit("no CUDA driver is in use: this needs a GPU")
    clock = open_clock(driver)
    print(torch.cuda.get_device_name())
    for point in POINTS:
        call = build_call("CUDA", make_problem(point, torch.device("cuda:0")))
        call()
        print(point.name)
        for kernels in range(4):
            taken = seconds(Padded(call, clock, kernels), CALLS)
            states = sorted(median(taken[first::STATES]) * 1e6 for first in range(STATES))
            told = " ".join(f"{state:6.2f}" for state in states)
            print(f"  {kernels} kernels more: median {median(taken) * 1e6:6.2f}, at every fourth call {told}")
        means = [
            median(group_means(seconds(DeviceCalls(call, clock, cold=True), CALLS), len(FLUSH_PIECES)))
            for _ in range(TRIES)
        ]
        print("  as a sweep does:  " + ", ".join(f"{mean * 1e6:.2f}" for mean in means), flush=True)


if __name__ == "__main__":
    main()
