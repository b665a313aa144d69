"""How much one process differs from the next on the clock of a device, where only one was run on each side."""

from __future__ import annotations

from profkit.core.inference.ratio import BETWEEN
from profkit.core.statistics import mad_sigma, median
from profkit.core.types import Timing

# Standard deviations, relative, of the medians of single processes of one program, one after the other, timed by CUDA
# events on H200s whose clocks were left alone.
# At the power limit: a product of matrices in 8 processes on one machine (0.46 %) and in 8 on another (0.80 %), a
# larger one in 6 (0.68 %). Together 0.66 % with 19 degrees of freedom, of which the upper 95 % bound is 0.91 %.
ON_DEVICE = 0.01
# At one clock from beginning to end: a norm, bound by memory, in 8 processes on each of the same two machines (0.14 %
# and 0.10 %). Together 0.12 % with 14 degrees of freedom, upper bound 0.17 %. Twice that and more, since it is one
# program: two of these machines, alike in all that profkit compares, differed by 1.2 % from each other.
STEADY = 0.003
# A series is steady where its samples lie closer together than this (MAD as a standard deviation) and no throttling was
# seen. Those at one clock came to 0.06 to 0.13 %, nearly all at the power limit to 0.4 to 2.5 %. It also keeps out what
# waits for its host and so is the host's time, not the device's: that was not measured.
QUIET = 0.002


def between_processes(first: Timing, second: Timing) -> float:
    """The standard deviation, relative, that two timings are taken to differ by from process to process.

    `inference.ratio.BETWEEN` for what a host's clock timed; of what CUDA events timed less, and least where all samples
    of both lie close together and the device was not throttled.
    """
    processes = [p for p in (*first.processes, *second.processes) if p.seconds]
    if not processes or any(p.clock != "cuda-events" for p in processes):
        return BETWEEN
    steady = all(
        not p.throttle_reasons and mad_sigma(p.seconds) <= QUIET * median(p.seconds) for p in processes
    )
    return STEADY if steady else ON_DEVICE
