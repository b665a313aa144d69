"""Which is faster, the kernel or the reference? Paired batches of calls, by the judge's own clock.

A batch calls a kernel once on each of several arguments, which were written into its memory right before, while the
process was stopped: each call has other values, and what one batch computed is no help to the next. The clock runs
from before the process is woken until it says where its outputs lie; then it is stopped, and some outputs, chosen at
random afterwards, are read and verified. The reference runs in a process of the same kind, under the same clock, on the
same values, in random order. What such a batch takes without a kernel is measured, too, and taken off both.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from math import exp, log
from time import perf_counter
from typing import NamedTuple

import torch

from profkit.core.statistics import median, median_interval
from profkit.core.types import Speedup, SpeedWord
from profkit.execution.child import WorkerEnded
from profkit.hardware.conditions import OtherProcesses
from profkit.kernels.evaluation.candidate.arguments import Recipe, Tensor
from profkit.kernels.evaluation.candidate.client import KernelError, KernelProcess
from profkit.kernels.evaluation.fresh_values import FreshValues
from profkit.kernels.evaluation.request import PairOptions
from profkit.runtime.passes.processor_wait import MOST_WAITING

BATCH_SECONDS = 0.002  # long enough that waking a process is little of it
MOST_SLOTS = 256
SLOT_BYTES = 1 << 28  # of all arguments of a batch: the judge writes all of them anew before each
FEWEST_PAIRS = 8
MOST_PAIRS = 2000
LOOK_GROWTH = 1.25  # pairs between two looks at the interval: each look is another chance to be wrong
EMPTY_BATCHES = 7
SLICE_SECONDS = (
    1e-3  # the least that one loses to another program; waking a processor takes some 0.1 ms, and is its own
)
VERIFY_SHARE = 0.25  # of the time
OTHERS = 0.15  # of all processors' time: beyond it what others do moves medians, and no interval shows it
FEWEST_VERIFIED = 3


@dataclass(frozen=True)
class PairedTimes:
    """What was measured: seconds of one call of each, and how many outputs were verified."""

    speedup: Speedup
    seconds: float
    reference_seconds: float
    verified: int
    disturbed: bool
    whole_seconds: float  # of a call of the candidate, with its part of what waking the process takes
    threads: float  # processor time of all threads over that
    reference_threads: float


# Verify one timed call: the bytes of its storages before, and after it, and the addresses of its outputs.
Verify = Callable[[Sequence[Tensor], Sequence[Tensor], Sequence[int]], None]


def time_pairs(
    candidate: KernelProcess,
    reference: KernelProcess,
    fresh: FreshValues,
    recipe: Recipe,
    outputs: int,
    estimate: float,
    options: PairOptions,
    verify: Verify,
) -> PairedTimes:
    """Time the loaded kernels of both processes on fresh arguments. `estimate`: seconds of one call.

    `outputs`: how many tensors a call gives. Pairs in which a process waited for a processor are left out while enough
    others are there. Where half of them did, or others had much of the processors, the machine is busy: `disturbed`
    says so, and the speed-up is AMBIGUOUS.

    Raises what `verify` raises, KernelError and WorkerEnded of the candidate, ReferenceFailed, and MachineError.
    """
    secret = random.SystemRandom()
    count = _slot_count(estimate, recipe)
    both = (reference, candidate)
    with blaming(reference):
        slots = {reference: reference.place(recipe, count)}
        reference.prepare_timing()
        empty = _empty_batch_seconds(reference, count)
    slots[candidate] = candidate.place(recipe, count)
    candidate.prepare_timing()
    kept = [torch.empty_like(storage) for storage in slots[reference][0]]  # of the call that is verified
    pairs: list[_Pair] = []
    whole: dict[KernelProcess, list[tuple[float, float]]] = {process: [] for process in both}
    begin, spent_verifying, verified, next_look = perf_counter(), 0.0, 0, FEWEST_PAIRS
    others = OtherProcesses([os.getpid(), *(process.pid for process in both)])
    with ExitStack() as cleanup:
        watches = {process: cleanup.enter_context(process.watch()) for process in both}
        for number in range(-1, MOST_PAIRS):  # the first one warms up
            chosen = secret.randrange(count)
            first, second = (slots[process] for process in secret.sample(both, 2))  # the later one is warmer
            for place, (values, copies) in enumerate(zip(first, second, strict=True)):
                fresh.write(values)
                copy_storages(values, copies)
                if place == chosen:
                    copy_storages(values, kept)
            reference.check_scheduling()
            times: dict[KernelProcess, float] = {}
            addresses: dict[KernelProcess, Sequence[int]] = {}
            waited = False
            for process in secret.sample(both, 2):
                watches[process].begin()
                busy = process.cpu_seconds()
                with blaming(reference) if process is reference else nullcontext():
                    seconds, addresses[process] = process.run_slots(count * outputs)
                whole[process].append((seconds, process.cpu_seconds() - busy))
                waited |= watches[process].longest_wait() > max(SLICE_SECONDS, MOST_WAITING * seconds)
                times[process] = max(seconds - empty, seconds / 50) / count
            elapsed = perf_counter() - begin
            if verified < FEWEST_VERIFIED or spent_verifying < VERIFY_SHARE * elapsed:
                own = addresses[candidate][chosen * outputs : (chosen + 1) * outputs]
                verify(kept, slots[candidate][chosen], own)  # after both were timed: it takes their caches
                verified += 1
                spent_verifying += perf_counter() - begin - elapsed
            if number >= 0:
                pairs.append(_Pair(times[reference], times[candidate], waited))
            is_over = perf_counter() - begin > options.budget
            if len(pairs) >= next_look or (is_over and len(pairs) >= FEWEST_PAIRS):
                next_look = int(len(pairs) * LOOK_GROWTH) + 1
                if is_over or _is_decided(_speedup(_undisturbed(pairs), options), options):
                    break
    chosen_pairs = _undisturbed(pairs)
    quiet = sum(not pair.waited for pair in pairs)
    disturbed = quiet < max(FEWEST_PAIRS, len(pairs) / 2) or (others.share() or 0.0) > OTHERS
    speedup = _speedup(chosen_pairs, options)
    return PairedTimes(
        replace(speedup, word="AMBIGUOUS") if disturbed else speedup,
        median([pair.candidate for pair in chosen_pairs]),
        median([pair.reference for pair in chosen_pairs]),
        verified,
        disturbed,
        median([seconds for seconds, _ in whole[candidate]]) / count,
        _threads_busy(whole[candidate]),
        _threads_busy(whole[reference]),
    )


def _threads_busy(batches: Sequence[tuple[float, float]]) -> float:
    """Processor seconds over wall seconds, of the median batch: the first one starts threads."""
    return median([busy / seconds for seconds, busy in batches])


class ReferenceFailed(Exception):
    """PyTorch's own kernel failed, or its process ended: nothing is said of the candidate."""


@contextmanager
def blaming(reference: KernelProcess) -> Iterator[None]:
    """What goes wrong is the reference's own fault. Raises ReferenceFailed."""
    try:
        yield
    except (KernelError, WorkerEnded) as error:
        reference.kill()
        raise ReferenceFailed(str(error)) from error


def copy_storages(sources: Sequence[Tensor], targets: Sequence[Tensor]) -> None:
    """Copy the bytes of each storage."""
    for source, target in zip(sources, targets, strict=True):
        target.copy_(source)


class _Pair(NamedTuple):
    """Seconds of one call of each, and whether a process waited for a processor meanwhile."""

    reference: float
    candidate: float
    waited: bool


def _undisturbed(pairs: Sequence[_Pair]) -> Sequence[_Pair]:
    """Those in which nobody waited; all, where those are too few."""
    quiet = [pair for pair in pairs if not pair.waited]
    return quiet if len(quiet) >= FEWEST_PAIRS else pairs


def _slot_count(estimate: float, recipe: Recipe) -> int:
    by_time = int(BATCH_SECONDS / max(estimate, 1e-7)) + 1
    return max(1, min(MOST_SLOTS, by_time, SLOT_BYTES // recipe.slot_bytes))


def _empty_batch_seconds(process: KernelProcess, count: int) -> float:
    """What a batch takes whose kernel gives back its first argument."""
    operation = process.operation
    process.load("")
    times = [process.run_slots(count)[0] for _ in range(EMPTY_BATCHES)]
    process.load(operation)
    return min(times)  # a disturbed one would be taken off every time


def _speedup(pairs: Sequence[_Pair], options: PairOptions) -> Speedup:
    """The median of the pairs' ratios, with its interval by ranks."""
    ratios = [log(pair.reference / pair.candidate) for pair in pairs]
    bounds = median_interval(ratios)
    centre = median(ratios)
    low, high = (min(ratios), max(ratios)) if bounds is None else (bounds.low, bounds.high)
    value, low, high = exp(centre), exp(low), exp(high)
    return Speedup(value, low, high, speed_word(value, low, high, options.floor), len(ratios))


def speed_word(value: float, low: float, high: float, floor: float) -> SpeedWord:
    """SAME within the floor; FASTER or SLOWER where the interval leaves 1 out and the median is beyond the floor."""
    if 1 / (1 + floor) <= low and high <= 1 + floor:
        return "SAME"
    if low > 1 and value > 1 + floor:
        return "FASTER"
    if high < 1 and value < 1 / (1 + floor):
        return "SLOWER"
    return "AMBIGUOUS"


def _is_decided(speedup: Speedup, options: PairOptions) -> bool:
    return log(speedup.high / speedup.low) / 2 <= options.precision and speedup.word != "AMBIGUOUS"
