"""Paired timing of kernel and reference: the speed-up, its interval, and its word.

The word is FASTER, SAME, SLOWER or AMBIGUOUS.

A batch calls a kernel once on each of several arguments, which were written into its memory right before,
while the process was stopped: each call has other values, and results of one batch are no help to the next.
The judge's clock runs from before the process is woken until it says where its outputs lie; then it is
stopped, and the outputs of a call chosen at random are read and verified. The reference runs in a process of
the same kind, under the same clock, on the same values. The time of such a batch without a kernel is
measured, too, and subtracted from both. Of two pairs each process is first in one, and its arguments are
written first in one. From round to round the arguments lie in other memory, so that no process profits from a
good place for long: a round is one observation, and the spread of rounds is the uncertainty.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from math import exp, inf, log
from time import perf_counter
from typing import NamedTuple

import torch

from profkit.analysis.evaluation.scores import doubted, speed_word
from profkit.core.inference import signed_rank_interval
from profkit.core.statistics import median
from profkit.core.types import Fact, Speedup
from profkit.execution.child import WorkerEnded
from profkit.hardware.conditions import DisturbanceWatch
from profkit.hardware.machine import usable_cores
from profkit.kernels.evaluation.candidate.arguments import KernelError, Recipe, Tensor
from profkit.kernels.evaluation.candidate.client import KernelProcess, copy_storages
from profkit.kernels.evaluation.candidate.devices import BatchLimits
from profkit.kernels.evaluation.judging.fresh_values import FreshValues
from profkit.kernels.evaluation.request import PairOptions
from profkit.kernels.operations.definitions import FactError
from profkit.runtime.passes.processor import MAX_WAITING_SHARE

EMPTY_BATCHES = 7
SHORTEST_GATED = 6e-4  # seconds of a batch: beside it what a process may pretend is within the floor
# the least that is lost to another program; waking a processor takes 0.1 ms, and is its own
SLICE_SECONDS = 1e-3


class Pair(NamedTuple):
    """Seconds per call of each process, the round, and whether a process waited for a processor meanwhile."""

    round: int
    reference: float
    candidate: float
    waited: bool


@dataclass(frozen=True)
class FreshCall:
    """The call that is timed: its arguments get new values each time, and it has that many `outputs`."""

    recipe: Recipe
    contents: Sequence[Tensor]  # of the arguments that it was checked on
    fresh: FreshValues
    outputs: int


class Unlaunched(Exception):
    """A batch could not wait at the gate: it has run, and nothing is known of its time."""


class ReferenceFailed(Exception):
    """PyTorch's own kernel failed, or its process ended: that says nothing of the candidate."""


@contextmanager
def blaming(reference: KernelProcess) -> Iterator[None]:
    """Turn failures inside the block into the reference's own. Raises ReferenceFailed."""
    try:
        yield
    except (KernelError, WorkerEnded) as error:
        reference.kill()
        raise ReferenceFailed(str(error)) from error


def calls_in_batch(estimate: float, call_bytes: int, limits: BatchLimits) -> int:
    """Return how many calls are timed together. `estimate`: seconds of a call; `call_bytes`: the bytes it needs."""
    by_time = int(limits.seconds / max(estimate, 1e-7)) + 1
    return max(1, min(limits.calls, by_time, limits.bytes // max(1, call_bytes)))


def fit_gate(candidate: KernelProcess, reference: KernelProcess, call: FreshCall, count: int) -> int:
    """Return how many calls of both can wait at the gate: at most `count`, 0 where not even a single call can.

    A device queues some 1,000 launches, and a kernel that waits for the device never returns behind the gate. A
    batch that is over at once cannot be measured: 0, too.

    Raises KernelError and WorkerEnded of the candidate, and ReferenceFailed.
    """

    def run(process: KernelProcess, calls: int) -> float | None:
        """Return the seconds of that many calls; None where they cannot wait."""
        for slot in process.place(call.recipe, calls):
            copy_storages(call.contents, slot)
        return None if process.launch_slots(calls * call.outputs) is None else process.run_launched()

    of_a_call = 0.0  # of the reference
    for process in (reference, candidate):
        with blaming(reference) if process is reference else nullcontext():
            while (seconds := run(process, count)) is None:
                if count == 1 or run(process, 1) is None:
                    return 0
                count = max(1, count // 4)
        of_a_call = of_a_call or seconds / count
    return count if of_a_call * count >= SHORTEST_GATED else 0


class PairedBatches:
    """Both processes with the arguments of `count` calls, which are laid out anew for each round of pairs.

    On a device the arguments of all calls are written at once, not call by call. `gated`: the calls are launched
    before their arguments are written, and the device's time alone is measured (see `fit_gate`).
    """

    def __init__(
        self,
        candidate: KernelProcess,
        reference: KernelProcess,
        call: FreshCall,
        count: int,
        cleanup: ExitStack,
        *,
        gated: bool,
    ) -> None:
        self._call, self._count, self._gated = call, count, gated
        self.launching: dict[KernelProcess, list[float]] = {reference: [], candidate: []}
        self._candidate, self._reference, self._both = candidate, reference, (reference, candidate)
        self._secret = random.SystemRandom()
        self._slots: dict[KernelProcess, list[list[Tensor]]] = {}
        self._empty = inf  # seconds of an empty batch
        self._chosen = 0  # the call of the last pair that may be verified
        self._kept: list[Tensor] = []  # its arguments, as they were before it
        self._addresses: Sequence[int] = ()
        self._launched: dict[KernelProcess, Sequence[int]] = {}  # addresses of what waits at the gate
        self._staged: Tensor | None = None  # the arguments of all calls, until they are due
        self._staged_slots: Sequence[Sequence[Tensor]] = ()
        self._order: Sequence[int] = ()  # of calls in memory, the same for both
        self.whole: dict[KernelProcess, list[tuple[float, float]]] = {process: [] for process in self._both}
        self._watches = {process: cleanup.enter_context(process.watch()) for process in self._both}
        self._processors = usable_cores()
        cleanup.callback(_use_processors, self._processors)

    def renew(self, *, pinned: bool) -> None:
        """Lay the arguments out in other memory.

        The place of pages decides which of them a cache holds, which changes a time by up to a tenth for as long as
        they lie there. `pinned`: both processes get the same processor, and the judge the others.
        """
        if pinned and len(self._processors) > 1:
            processor = self._secret.choice(self._processors)
            _use_processors([each for each in self._processors if each != processor])
            for process in self._both:
                process.use_processors([processor])
        self._order = self._secret.sample(range(self._count), self._count)
        with blaming(self._reference):
            self._lay_out(self._reference)
            self._stage()
            # The same is taken off both: how far two such measurements lie apart would be in the ratio.
            self._empty = min(self._empty, self._empty_batch_seconds(self._reference))
        self._lay_out(self._candidate)
        self._kept = [torch.empty_like(storage) for storage in self._slots[self._reference][0]]

    def _stage(self) -> None:
        """Make the memory where arguments wait until they are due, laid out as in both processes."""
        region, slots = self._reference.region, self._slots[self._reference]
        assert region is not None
        if not self._gated:
            return
        if self._staged is None:
            self._staged = torch.empty_like(region)
            self._call.fresh.write_rows(self._staged, self._call.recipe)
        begin = region.data_ptr()
        self._staged_slots = [
            [self._staged[at : at + part.numel()] for part in slot for at in (part.data_ptr() - begin,)]
            for slot in slots
        ]

    def _lay_out(self, process: KernelProcess) -> None:
        """Lay the arguments out anew in one process."""
        process.renew()
        self._slots[process] = process.place(self._call.recipe, self._count, self._order)
        process.prepare_timing()
        if self._staged is not None and process.region is not None:
            process.region.copy_(self._staged)  # what lies there is an argument, whatever runs too early

    def run_pairs(self, number: int) -> list[Pair]:
        """Run two pairs of round `number`: each process runs first once, and is written first once.

        Where a process waited for a processor in either, neither is a fair pair.
        """
        written, run = (self._secret.sample(self._both, 2) for _ in range(2))
        pairs = [self._run_pair(number, written, run), self._run_pair(number, written[::-1], run[::-1])]
        waited = any(pair.waited for pair in pairs)
        return [pair._replace(waited=waited) for pair in pairs]

    def _run_pair(self, number: int, written: Sequence[KernelProcess], run: Sequence[KernelProcess]) -> Pair:
        """Write new values, and time both on them; the process that is written later has warmer caches."""
        self._chosen = self._secret.randrange(self._count)
        if self._gated:
            self._launch(run)
            staged = self._staged
            assert staged is not None
            self._call.fresh.write_rows(staged, self._call.recipe)
            copy_storages(self._staged_slots[self._chosen], self._kept)
        elif self._candidate.memory.gate is not None:
            first, second = (each.region for each in written)
            assert first is not None
            assert second is not None
            self._call.fresh.write_rows(first, self._call.recipe)
            second.copy_(first)
            copy_storages(self._slots[written[0]][self._chosen], self._kept)
        else:
            self._write_one_by_one(written)
        self._reference.check_scheduling()
        times: dict[KernelProcess, float] = {}
        waited = False
        for process in run:
            self._watches[process].begin()
            busy = process.cpu_seconds()
            with self._blaming(process):
                if self._gated:
                    seconds, addresses = self._run_launched(process), self._launched[process]
                else:
                    seconds, addresses = process.run_slots(self._count * self._call.outputs)
            self.whole[process].append((seconds, process.cpu_seconds() - busy))
            waited |= self._watches[process].longest_wait(process.pid) > max(
                SLICE_SECONDS, MAX_WAITING_SHARE * seconds
            )
            times[process] = max(seconds - self._empty, seconds / 50) / self._count
            if process is self._candidate:
                self._addresses = addresses
        return Pair(number, times[self._reference], times[self._candidate], waited)

    def _launch(self, run: Sequence[KernelProcess]) -> None:
        """Let both launch their calls behind the gate. Raises Unlaunched."""
        for process in run:
            with self._blaming(process):
                launched = process.launch_slots(self._count * self._call.outputs)
            if launched is None:
                raise Unlaunched
            self.launching[process].append(launched[0] / self._count)
            self._launched[process] = launched[1]
        # Before the arguments are written it may run once more: so that its outputs can be read, new as they are.
        self._candidate.introduce(self._launched[self._candidate])

    def _run_launched(self, process: KernelProcess) -> float:
        """Return the seconds of a batch and of copying its arguments, which both and an empty batch share."""
        region, staged = process.region, self._staged
        assert region is not None
        assert staged is not None
        return process.run_launched(lambda: region.copy_(staged))

    def _blaming(self, process: KernelProcess) -> AbstractContextManager[None]:
        """Return a context that blames failures on the reference if `process` is the reference."""
        return blaming(self._reference) if process is self._reference else nullcontext()

    def _empty_batch_seconds(self, process: KernelProcess) -> float:
        """Return the seconds of a batch whose kernel returns its first argument."""
        operation = process.operation
        process.load("")
        times = []
        for _ in range(EMPTY_BATCHES):
            if not self._gated:
                times.append(process.run_slots(self._count)[0])
            elif process.launch_slots(self._count) is not None:
                times.append(self._run_launched(process))
        process.load(operation)
        if not times:
            raise Unlaunched
        return min(times)  # a disturbed one would be taken off every time

    def _write_one_by_one(self, both: Sequence[KernelProcess]) -> None:
        """Write new values call by call, to both processes in that order."""
        for place, (values, copies) in enumerate(zip(*(self._slots[each] for each in both), strict=True)):
            self._call.fresh.write(values)
            copy_storages(values, copies)
            if place == self._chosen:
                copy_storages(values, self._kept)

    def can_verify(self) -> bool:
        """Return whether the results of the last pair lie in readable memory of the candidate."""
        return not self._candidate.memory.unknown(self._own_addresses())

    def introduce(self) -> None:
        """Make the results readable from now on.

        Those of the last pair prove nothing any more, since the candidate has run meanwhile.
        """
        self._candidate.introduce(self._addresses)

    def _own_addresses(self) -> Sequence[int]:
        """Return the addresses of the outputs of the chosen call."""
        outputs = self._call.outputs
        return self._addresses[self._chosen * outputs : (self._chosen + 1) * outputs]

    def chosen_call(self) -> tuple[Sequence[Tensor], Sequence[Tensor], Sequence[int]]:
        """Return a call of the last pair, for `Verify`, which must come after both were timed: it uses their caches."""
        return self._kept, self._slots[self._candidate][self._chosen], self._own_addresses()


def _use_processors(processors: Sequence[int]) -> None:
    """Restrict this process to these processors."""
    with suppress(OSError, AttributeError):
        os.sched_setaffinity(0, processors)


def threads_busy(batches: Sequence[tuple[float, float]]) -> float:
    """Return CPU seconds over wall seconds of the median batch; the first batch also starts threads."""
    return median([busy / seconds for seconds, busy in batches])


# ---------------------------------------------------------------- rounds of pairs

MIN_ROUNDS = 6  # of fewer no interval is known
CONFIDENCE = 0.95
SURE = 0.999  # of FASTER and SLOWER: a suite has hundreds of tests, and a busy machine that is taken for a quiet one


def undisturbed(pairs: Sequence[Pair]) -> Sequence[Pair]:
    """Return the pairs in which nobody waited; all, where those are of too few rounds."""
    quiet = [pair for pair in pairs if not pair.waited]
    return quiet if len({pair.round for pair in quiet}) >= MIN_ROUNDS else pairs


def find_speedup(pairs: Sequence[Pair], options: PairOptions, confidence: float = CONFIDENCE) -> Speedup:
    """Return the median of the rounds' median ratios, with its interval by the signed-rank test.

    A round is the unit: all of its pairs share the place of their memory, so a hundred of them are one
    observation.
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
    """Return whether one side is surely faster.

    Rounds too few for an interval of that confidence must all lie beyond the floor.
    """
    interval = signed_rank_interval(ratios, SURE)
    if interval is None:
        return min(ratios) > log(1 + floor) or max(ratios) < -log(1 + floor)
    return interval[0] > 0 or interval[2] < 0


def is_decided(speedup: Speedup, options: PairOptions) -> bool:
    """Return whether more pairs would change nothing."""
    return log(speedup.high / speedup.low) / 2 <= options.precision and speedup.word != "AMBIGUOUS"


ROUNDS, MAX_ROUNDS = 20, 60  # in which the time is spent
EARLY_CONFIDENCE = 0.99  # to end before the time is over: who looks after each round sees more than there is
WARM_SECONDS = 0.02  # a round begins with a pair that is not counted, and with two where they are short
VERIFY_SHARE = 0.25  # of the time
OTHERS = 0.15  # of all processors' time: beyond it what others do moves medians, and no interval shows it
MIN_VERIFIED = 3
MAX_UNREAD = 3  # times that memory was given back meanwhile

# Verify one timed call: the bytes of its storages before, and after it, and the addresses of its outputs. False where
# the memory at these addresses was not the one that was open.
Verify = Callable[[Sequence[Tensor], Sequence[Tensor], Sequence[int]], bool]


class Unverified(FactError):
    """The outputs of the timed calls could not be checked."""


@dataclass(frozen=True)
class PairedTimes:
    """The measurement: seconds per call of each process, and how many outputs were verified."""

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
    call: FreshCall,
    options: PairOptions,
    verify: Verify,
    *,
    count: int,
    pinned: bool = False,
    gated: bool = False,
) -> PairedTimes:
    """Time the loaded kernels of both processes on fresh arguments, `count` calls at a time.

    Pairs in which a process waited for a processor are left out while enough others are there. Where half of them
    did, or others had much of the processors, the machine is busy: `disturbed` says so, and the speed-up is
    AMBIGUOUS.

    Raises what `verify` raises, KernelError and WorkerEnded of the candidate, ReferenceFailed, Unverified, and
    MachineError.
    """
    begin, spent_verifying, verified, unread = perf_counter(), 0.0, 0, 0
    others = DisturbanceWatch(pids=[os.getpid(), reference.pid, candidate.pid])
    pairs: list[Pair] = []
    with ExitStack() as cleanup:
        bench = PairedBatches(candidate, reference, call, count, cleanup, gated=gated)
        for number in range(MAX_ROUNDS):
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
                elif verified < MIN_VERIFIED or spent_verifying < VERIFY_SHARE * (before - begin):
                    if verify(*bench.chosen_call()):
                        verified += 1
                    elif (unread := unread + 1) > MAX_UNREAD:
                        raise Unverified(Fact("gives-memory-back"))
                    spent_verifying += perf_counter() - before
                if perf_counter() > round_end:
                    break
            if number + 1 < MIN_ROUNDS:
                continue
            is_over = perf_counter() - begin > options.budget
            if is_over or is_decided(find_speedup(undisturbed(pairs), options, EARLY_CONFIDENCE), options):
                break
    if verified < MIN_VERIFIED:
        raise Unverified(Fact.of("new-memory-each-time", verified=verified))
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
