"""Time one workload with profkit: until its time is precise enough, or for a fixed number of calls."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Literal

from benchmark.refusal import MACHINE, Refusal, install
from benchmark.workload import Step

EACH_WAITED_FOR = (
    "each call is waited for, and the wait is in these times; without --iters they are known better"
)


def profiled() -> bool:
    """Return whether profkit runs this process in one of its passes, which then decides how often to call."""
    return "PROFKIT_DIRECTIVE" in os.environ or "profkit_pass_host" in sys.modules


def keep(remark: str) -> None:
    """Add a remark to the notes of the profkit run of this process; do nothing if there is none."""
    if "PROFKIT_DIRECTIVE" in os.environ:
        from profkit.core.types import Fact
        from profkit.runtime.region.active import session

        session.remark(Fact.message(remark))


def need_profkit() -> None:
    """Raise Refusal, with the command that installs it, if profkit cannot be imported."""
    try:
        from profkit import benchmark  # noqa: F401
    except ImportError as error:
        root = Path(__file__).resolve().parents[1]
        raise Refusal(MACHINE, f"this Python cannot import profkit ({error}): {install(str(root))}") from None


def measure(
    step: Step,
    wait: Callable[[], object] | None,
    *,
    device: Literal["cuda", "mps", "cpu"],
    name: str,
    flops: int,
    bytes: int,
    warmup: int | None,
    iters: int | None,
) -> None:
    """Measure `step` and print its time, FLOP/s and bytes/s; `wait` waits for the device's pending work.

    `warmup` calls (None: profkit's choice) come before `iters` timed ones (None: until the time is known).
    """
    from profkit import benchmark

    # Not a function: a report would show it as a place in the program.
    timed = partial(benchmark, step, name=name, flops=flops, bytes=bytes)
    if profiled() or (warmup is None and iters is None):
        timed()
        return

    from profkit.core.types import Fact, SampleSet
    from profkit.runtime.passes.benchmark import DEFAULT_PRECISION, BenchmarkResult
    from profkit.runtime.passes.timing import TimedCalls

    calls = TimedCalls(step)
    if wait is not None:
        calls.wait = wait
    warm = tuple(calls.sample() for _ in range(1 if warmup is None else warmup))
    if iters is None:
        timed()
        return
    samples = SampleSet(tuple(calls.sample() for _ in range(iters)), warmup=warm, pid=os.getpid())
    if device == "mps":
        samples = replace(samples, clock="mps-synchronized", remarks=(Fact.message(EACH_WAITED_FOR),))
    print(BenchmarkResult(name, samples, DEFAULT_PRECISION, flops, bytes))
