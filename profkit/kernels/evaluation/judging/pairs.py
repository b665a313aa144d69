"""What pairs of times say: the speed-up with its interval, and FASTER, SAME, SLOWER or AMBIGUOUS.

Which is faster, the kernel or the reference? Paired batches of calls, by the judge's own clock.

A batch calls a kernel once on each of several arguments, which were written into its memory right before, while the
process was stopped: each call has other values, and what one batch computed is no help to the next. The clock runs
from before the process is woken until it says where its outputs lie; then it is stopped, and the outputs of a call
chosen at random are read and verified. The reference runs in a process of the same kind, under the same clock, on the
same values. What such a batch takes without a kernel is measured, too, and taken off both. Of two pairs each process is
first in one, and its arguments are written first in one. From round to round the arguments lie in other memory, so that
no process has the luck of a good place for long: a round is one answer, and how far rounds lie apart is how far they
may be off.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from math import exp, log
from time import perf_counter

from profkit.analysis.evaluation.speedups import doubted, speed_word
from profkit.core.inference import signed_rank_interval
from profkit.core.statistics import median
from profkit.core.types import Speedup
from profkit.hardware.conditions import OtherProcesses
from profkit.kernels.evaluation.candidate.arguments import Recipe, Tensor
from profkit.kernels.evaluation.candidate.client import KernelProcess
from profkit.kernels.evaluation.judging.batches import Pair, PairedBatches, threads_busy
from profkit.kernels.evaluation.judging.fresh_values import FreshValues
from profkit.kernels.evaluation.request import PairOptions

FEWEST_ROUNDS = 6  # of fewer no interval is known
CONFIDENCE = 0.95
SURE = 0.999  # of FASTER and SLOWER: a suite has hundreds of tests, and a busy machine that is taken for a quiet one


def undisturbed(pairs: Sequence[Pair]) -> Sequence[Pair]:
    """Those in which nobody waited; all, where those are of too few rounds."""
    quiet = [pair for pair in pairs if not pair.waited]
    return quiet if len({pair.round for pair in quiet}) >= FEWEST_ROUNDS else pairs


def find_speedup(pairs: Sequence[Pair], options: PairOptions, confidence: float = CONFIDENCE) -> Speedup:
    """The middle of the rounds' median ratios, with its interval by the signed-rank test.

    A round is the unit: all of its pairs share where their memory lies, so a hundred of them are one answer.
    """
    rounds: dict[int, list[float]] = {}
    for pair in pairs:
        rounds.setdefault(pair.round, []).append(log(pair.reference / pair.candidate))
    ratios = [median(each) for each in rounds.values()]
    interval = signed_rank_interval(ratios, confidence)
    low, middle, high = (min(ratios), median(ratios), max(ratios)) if interval is None else interval
    value, low, high = exp(middle), exp(low), exp(high)
    speedup = Speedup(value, low, high, speed_word(value, low, high, options.floor), len(pairs))
    is_sure = speedup.word in ("SAME", "AMBIGUOUS") or _is_sure(ratios, options.floor)
    return speedup if interval is not None and is_sure else doubted(speedup)


def _is_sure(ratios: Sequence[float], floor: float) -> bool:
    """Whether one side is faster; so few rounds that no interval is so sure must all lie beyond the floor."""
    interval = signed_rank_interval(ratios, SURE)
    if interval is None:
        return min(ratios) > log(1 + floor) or max(ratios) < -log(1 + floor)
    return interval[0] > 0 or interval[2] < 0


def is_decided(speedup: Speedup, options: PairOptions) -> bool:
    """Whether more pairs would change nothing."""
    return log(speedup.high / speedup.low) / 2 <= options.precision and speedup.word != "AMBIGUOUS"


ROUNDS, MOST_ROUNDS = 20, 60  # in which the time is spent
EARLY_CONFIDENCE = 0.99  # to end before the time is over: who looks after each round sees more than there is
WARM_SECONDS = 0.02  # a round begins with a pair that is not counted, and with two where they are short
VERIFY_SHARE = 0.25  # of the time
OTHERS = 0.15  # of all processors' time: beyond it what others do moves medians, and no interval shows it
FEWEST_VERIFIED = 3
MOST_UNREAD = 3  # times that memory was given back meanwhile

# Verify one timed call: the bytes of its storages before, and after it, and the addresses of its outputs. False where
# the memory at these addresses was not the one that was open.
Verify = Callable[[Sequence[Tensor], Sequence[Tensor], Sequence[int]], bool]


class Unverified(Exception):
    """Nothing is known of what the timed calls gave."""


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
    launch_seconds: float = 0.0  # that the host needs to launch a call, where that is not in `seconds`


def time_pairs(
    candidate: KernelProcess,
    reference: KernelProcess,
    fresh: FreshValues,
    recipe: Recipe,
    outputs: int,
    options: PairOptions,
    verify: Verify,
    *,
    count: int,
    pinned: bool = False,
    together: bool = False,
    gated: bool = False,
) -> PairedTimes:
    """Time the loaded kernels of both processes on fresh arguments, `count` calls at a time.

    `together`: the arguments of all of them are written at once, not one call's after the other. `gated`: they are
    launched before these are written, and the device's time alone is measured (see `fit_gate`).

    `outputs`: how many tensors a call gives. Pairs in which a process waited for a processor are left out while enough
    others are there. Where half of them did, or others had much of the processors, the machine is busy: `disturbed`
    says so, and the speed-up is AMBIGUOUS.

    Raises what `verify` raises, KernelError and WorkerEnded of the candidate, ReferenceFailed, Unverified, and
    MachineError.
    """
    begin, spent_verifying, verified, unread = perf_counter(), 0.0, 0, 0
    others = OtherProcesses([os.getpid(), reference.pid, candidate.pid])
    pairs: list[Pair] = []
    with ExitStack() as cleanup:
        bench = PairedBatches(
            candidate, reference, fresh, recipe, outputs, count, cleanup, together=together, gated=gated
        )
        for number in range(MOST_ROUNDS):
            bench.renew(pinned=pinned)
            warm = perf_counter()
            bench.run_pairs(number)
            if perf_counter() - warm < WARM_SECONDS:
                bench.run_pairs(number)
            round_end = begin + (number + 1) * options.budget / ROUNDS
            while True:
                pairs += bench.run_pairs(number)
                before = perf_counter()
                if not bench.can_verify():  # its memory is new: it can be read from the next pair on
                    bench.introduce()
                elif verified < FEWEST_VERIFIED or spent_verifying < VERIFY_SHARE * (before - begin):
                    if verify(*bench.chosen_call()):
                        verified += 1
                    elif (unread := unread + 1) > MOST_UNREAD:
                        raise Unverified("its results lie in memory that it gives back again and again")
                    spent_verifying += perf_counter() - before
                if perf_counter() > round_end:
                    break
            if number + 1 < FEWEST_ROUNDS:
                continue
            is_over = perf_counter() - begin > options.budget
            if is_over or is_decided(find_speedup(undisturbed(pairs), options, EARLY_CONFIDENCE), options):
                break
    if verified < FEWEST_VERIFIED:
        raise Unverified(
            f"{verified} of its calls could be verified: its results lie in new memory each time"
        )
    chosen_pairs = undisturbed(pairs)
    quiet = sum(not pair.waited for pair in pairs)
    disturbed = quiet < len(pairs) / 2 or (others.share() or 0.0) > OTHERS
    speedup = find_speedup(chosen_pairs, options)
    return PairedTimes(
        doubted(speedup) if disturbed else speedup,
        median([pair.candidate for pair in chosen_pairs]),
        median([pair.reference for pair in chosen_pairs]),
        verified,
        disturbed,
        median([seconds for seconds, _ in bench.whole[candidate]]) / count,
        threads_busy(bench.whole[candidate]),
        threads_busy(bench.whole[reference]),
        median(bench.launching[candidate]) if gated else 0.0,
    )
