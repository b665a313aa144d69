"""Times a function that leaves its work to torch's MPS device: by the wall clock, the device waited for at both ends.

torch hands work to Metal late and in bulk, so the wall clock alone sees the host's part of it only. To wait costs by
itself: `synchronize` commits a command buffer and hears of its end, 100 µs and more on an idle GPU (220 µs of 245 in
pytorch's own first measurement of a small linear layer with it, github.com/pytorch/pytorch/pull/152199). So

- `seconds` are calls back to back with one wait for all of them, and a sample is long enough that the wait is a small
  share of it: how long is found by timing waits for the idle device;
- with a `setup`, calls are timed singly, since it runs between them; the wait is in them;
- the first call, which compiles Metal pipelines and MPSGraph's graphs for these shapes, is apart (`warmup[0]`), and
  warm-up goes on until a sample is no faster than those before it: the GPU raises its clock under load.

torch's MPS events are not asked. In torch up to 2.13 they are the host's clock in a callback, which may come late or in
the wrong order (github.com/pytorch/pytorch/pull/196395); and where the device decides, calls back to back say the same.

Not yet run on a Mac: what is known of the device is from pytorch's sources and threads.
"""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter
from typing import Any

from profkit.core.formatting import format_quantity
from profkit.core.statistics import median
from profkit.core.types import SampleSet
from profkit.runtime.passes.timing import TimedCalls, time_calls

WAITS = 9  # of an idle device, for their median
SAMPLE_SECONDS = 4e-3  # the least; as on CUDA
WAIT_SHARE = 0.5  # of the precision asked: what the one wait may add to a sample
MOST_OF_BUDGET = 60  # a sample takes at most this part of the budget, so that there are enough of them
# Warm-up: so long at least, since an idle GPU has a low clock and takes a while under load to raise it (how long is not
# known); until so many samples are no faster than as many before them; and for so much of the budget at most.
WARM_SECONDS, WARM_BLOCK, FASTER, WARM_SHARE = 0.3, 4, 0.98, 0.2
LEAST_SHARE = 0.1  # of the budget, for samples

SINGLE_CALLS = "single calls to an idle GPU, each waited for: some {wait} of each are the wait"


def time_on_mps(
    calls: TimedCalls,
    mps: Any,
    *,
    precision: float,
    budget: float,
    first: float | None = None,
    warmup: int = 1,
) -> SampleSet:
    """Samples of `calls` until the median's 95 % interval is ±`precision` (relative) or `budget` seconds are gone.

    `mps` is the module torch.mps; `first` are the seconds of a first call that was made already, waited for.
    Raises what the function raises, and what torch does where the device has failed.
    """
    begin = perf_counter()
    calls.wait_for(mps.synchronize)
    spent = 0.0 if first is None else first
    warm = [calls.sample() if first is None else first]
    if warm[0] >= budget:
        return _set_clock(SampleSet(tuple(warm), precise=False, warm=False), begin, spent)
    wait = _idle_wait(calls)
    least = min(max(SAMPLE_SECONDS, wait / (WAIT_SHARE * precision)), budget / MOST_OF_BUDGET)
    warm += _warm_up(calls, least, budget)
    left = max(budget * LEAST_SHARE, budget - spent - (perf_counter() - begin))
    samples = time_calls(calls, precision=precision, budget=left, warmup=warmup, before=warm, least=least)
    if calls.setup is not None:
        remark = SINGLE_CALLS.format(wait=format_quantity(wait, "s"))
        return _set_clock(replace(samples, remarks=(remark,)), begin, spent)
    batching = f"{calls.loops} calls back to back, then one wait of {format_quantity(wait, 's')}"
    return _set_clock(replace(samples, batching=batching), begin, spent)


def _set_clock(samples: SampleSet, begin: float, spent: float) -> SampleSet:
    spent += perf_counter() - begin
    return replace(samples, clock="mps-synchronized", cache="warm", spent=spent)


def _idle_wait(calls: TimedCalls) -> float:
    """Seconds that it takes to wait for a device that has nothing to do."""
    calls.wait()
    taken = []
    for _ in range(WAITS):
        begin = perf_counter()
        calls.wait()
        taken.append(perf_counter() - begin)
    return median(taken)


def _warm_up(calls: TimedCalls, least: float, budget: float) -> list[float]:
    """Samples until they get no faster; at the end as long as those that will count."""
    begin = perf_counter()
    taken: list[float] = []
    while perf_counter() - begin < WARM_SHARE * budget:
        taken.append(calls.sample())
        if calls.setup is None and taken[-1] * calls.loops < least:
            calls.loops *= 2
            continue
        late = taken[-2 * WARM_BLOCK :]
        if perf_counter() - begin < WARM_SECONDS:
            continue
        if len(late) == 2 * WARM_BLOCK and median(late[WARM_BLOCK:]) >= FASTER * median(late[:WARM_BLOCK]):
            break
    return taken
