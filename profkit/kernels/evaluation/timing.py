"""How a kernel is timed: batches of calls of candidate and baseline in turn, until the judge has seen enough.

`PairTimer` times one kernel, `collect_samples` alternates both workers in rounds, `start_alike` chooses processes
that launch equally fast. One pair of batches is made in `batches`, the clock runs in `Worker.time`, and what the
samples say is decided in `judging.judge`.

From round to round the arguments lie in other memory, so that no process profits from a good place for long: a round
is one observation, and the spread of rounds is the uncertainty.

Accidents of a process's start (where its code and its stack lie) change the time of a short call by up to 14
%, for as long as the process lives: no number of pairs shows it. So a small difference counts only where new
processes show it, too. On a GPU each launch of one process may take 0.2 µs longer than the same launch of
another, 8 % of the shortest kernels. A small kernel of PyTorch's own, timed in both as a candidate is timed,
shows it before anybody's kernel has run; launches that only set memory have other times. The process that is
further from most others is replaced until both are alike: nothing is subtracted from a time, and no kernel
can influence it.
"""

from __future__ import annotations

import os
from contextlib import ExitStack, suppress
from time import perf_counter

import torch

from profkit.core.statistics import median
from profkit.core.types import Fact
from profkit.execution.child import WorkerEnded
from profkit.hardware.conditions import DisturbanceWatch
from profkit.kernels.evaluation.batches import (
    FreshCall,
    PairedBatches,
    Unlaunched,
    blame_baseline,
    calls_in_batch,
    fit_latch,
)
from profkit.kernels.evaluation.devices import JudgedDevice
from profkit.kernels.evaluation.fresh_values import FreshValues
from profkit.kernels.evaluation.judging.judge import (
    MIN_ROUNDS,
    MIN_VERIFIED,
    BaselineFailed,
    Judge,
    Pair,
    PairedSamples,
    PairedTimes,
    Unverified,
)
from profkit.kernels.evaluation.request import JudgeSettings
from profkit.kernels.evaluation.trial import Trial, Verify
from profkit.kernels.evaluation.worker.arguments import Encoder, KernelError
from profkit.kernels.evaluation.worker.server import TINY_KERNEL
from profkit.kernels.evaluation.worker.worker import Worker, copy_storages

SEVERAL_CALLS = 33  # in a batch, for an estimate
MAX_ROUNDS = 60
PLANNED_ROUNDS = 20  # in which the time is spent: the interval is made of rounds
WARM_SECONDS = 0.02  # of the first pair of a round: where it was shorter, another one is not counted either
VERIFY_SHARE = 0.25  # of the time
MAX_UNREAD = 3  # times that memory was given back meanwhile


class PairTimer:
    """Times the loaded kernel of `candidate` on a trial, whose timed calls get `fresh` values."""

    def __init__(
        self,
        trial: Trial,
        fresh: FreshValues,
        candidate: Worker,
        baseline: Worker,
        device: JudgedDevice,
        settings: JudgeSettings,
        judge: Judge,
    ) -> None:
        self._trial, self._candidate, self._baseline = trial, candidate, baseline
        self._device, self._settings, self._judge = device, settings, judge
        self._call = FreshCall(trial.recipe, trial.encoder.contents, fresh, len(trial.reference.outputs))
        self._on_cuda = device.device.type == "cuda"
        self._calls = 1  # of a batch

    def measure(self) -> tuple[PairedTimes, tuple[Fact, ...]]:
        """Return the times, and a remark where new processes do not confirm them.

        Raises Incorrect where a new process computes something else, and see `collect_samples`.
        """
        with blame_baseline(self._baseline):
            seconds = self._estimate()
        self._calls = calls_in_batch(seconds, self._trial.call_bytes, self._device.batch)
        self._device.begin_timing()
        times = self._time()
        # To start new processes takes seconds: only where their accidents could explain what was found.
        if not self._judge.may_be_chance(times.speedup):
            return times, ()
        self._replace_workers()
        return self._judge.agree(times, self._time())

    def _time(self) -> PairedTimes:
        """Time the candidate paired with the baseline, on a device behind the latch where the calls can wait there."""
        candidate, baseline = self._candidate, self._baseline
        if self._on_cuda:
            # Calls that cannot wait at the latch, now or in a later round, are timed together with their launches.
            with suppress(Unlaunched):
                if calls := fit_latch(candidate, baseline, self._call, self._calls):
                    return self._judge.weigh(self._collect(calls, latched=True))
        return self._judge.weigh(self._collect(self._calls, latched=False))

    def _collect(self, calls: int, *, latched: bool) -> PairedSamples:
        """Collect samples of batches of that many calls."""
        return collect_samples(
            self._candidate,
            self._baseline,
            self._call,
            self._judge,
            self._trial.verifier(self._candidate),
            calls=calls,
            max_seconds=self._settings.timing.budget,
            pinned=self._settings.threads == 1 or self._on_cuda,
            latched=latched,
        )

    def _replace_workers(self) -> None:
        """Start both processes anew, with the kernel loaded. Raises Incorrect, and BaselineFailed."""
        for worker in (self._candidate, self._baseline):
            worker.kill()
        start_alike(self._candidate, self._baseline)
        with blame_baseline(self._baseline):
            self._warm_up(self._baseline)
        self._warm_up(self._candidate)

    def _warm_up(self, worker: Worker) -> None:
        """Load the kernel and call it once, since it cannot compile or tune behind the latch."""
        worker.load(self._trial.test.operation)
        if self._on_cuda:
            self._trial.first_call(worker)

    def _estimate(self) -> float:
        """Return the seconds of one call of the baseline, roughly."""
        self._baseline.load(self._trial.test.operation)
        single_call = self._shortest_batch(1)
        limits = self._device.batch
        if (
            not limits.with_results
            or single_call > limits.seconds
            or SEVERAL_CALLS * self._trial.call_bytes > limits.bytes
        ):
            return single_call
        # Of a short call on a device the largest part is what waking the process and waiting for the device take.
        several = self._shortest_batch(SEVERAL_CALLS)
        return max((several - single_call) / (SEVERAL_CALLS - 1), single_call / 100)

    def _shortest_batch(self, calls: int) -> float:
        """Return the seconds of a batch of the baseline, the best of three."""
        slots = self._baseline.lay_out(self._call.recipe, calls)
        seconds = []
        for _ in range(3):
            for slot in slots:
                copy_storages(self._call.contents, slot)
            seconds.append(self._baseline.time(calls * self._call.outputs).seconds)
        return min(seconds)


# ---------------------------------------------------------------- rounds of pairs


def collect_samples(
    candidate: Worker,
    baseline: Worker,
    call: FreshCall,
    judge: Judge,
    verify: Verify,
    *,
    calls: int,
    max_seconds: float,
    pinned: bool = False,
    latched: bool = False,
) -> PairedSamples:
    """Time the loaded kernels of both workers on fresh arguments, `calls` at a time, for `max_seconds` at most.

    It ends early where the judge would decide the same whatever came.

    Raises what `verify` raises, KernelError and WorkerEnded of the candidate, BaselineFailed, Unverified, and
    MachineError.
    """
    begin = perf_counter()
    others = DisturbanceWatch(pids=[os.getpid(), baseline.pid, candidate.pid])
    pairs: list[Pair] = []
    with ExitStack() as cleanup:
        batches = PairedBatches(candidate, baseline, call, calls, cleanup, latched=latched)
        checks = _Checks(batches, verify, begin)
        for number in range(MAX_ROUNDS):
            batches.renew(pinned=pinned)
            _warm_up(batches, number)
            round_end = begin + (number + 1) * max_seconds / PLANNED_ROUNDS
            while True:
                pairs += batches.run_pairs(number)
                checks.look()
                if perf_counter() > round_end:
                    break
            if number + 1 < MIN_ROUNDS:  # even where the time is over: fewer decide nothing
                continue
            if perf_counter() - begin > max_seconds or judge.is_settled(pairs):
                break
    return PairedSamples(
        pairs,
        calls,
        checks.verified,
        others.share() or 0.0,
        batches.whole[candidate],
        batches.whole[baseline],
        median(batches.launching[candidate]) if latched else 0.0,
    )


def _warm_up(batches: PairedBatches, number: int) -> None:
    """Run pairs that are not counted: the first in new memory pay for its pages, and for caches that hold others."""
    begin = perf_counter()
    batches.run_pairs(number)
    if perf_counter() - begin < WARM_SECONDS:
        batches.run_pairs(number)


class _Checks:
    """Verifies a call of the last pair as often as a share of the time allows, since `begin`."""

    def __init__(self, batches: PairedBatches, verify: Verify, begin: float) -> None:
        self._batches, self._verify, self._begin = batches, verify, begin
        self._spent = 0.0  # seconds
        self._unread = 0  # calls whose memory was given back meanwhile
        self.verified = 0

    def look(self) -> None:
        """Verify a call of the last pair, if it is time. Raises what `verify` raises, and Unverified."""
        before = perf_counter()
        if not self._batches.can_verify():  # its memory is new: it can be read from the next pair on
            self._batches.introduce()
            return
        if self.verified >= MIN_VERIFIED and self._spent >= VERIFY_SHARE * (before - self._begin):
            return
        if self._verify(*self._batches.chosen_call()):
            self.verified += 1
        else:
            self._unread += 1
            if self._unread > MAX_UNREAD:
                raise Unverified(Fact("gives-memory-back"))
        self._spent += perf_counter() - before


# ---------------------------------------------------------------- processes that are alike

MAX_DIFFERENCE = 0.03e-6  # seconds a launch: 0.5 % of a kernel of 6 µs
LAUNCHES = 400  # at a time: a device takes some 1,000 ahead
ELEMENTS = 1 << 16  # of the array, 256 kB: a kernel of 3 µs
ROUNDS, PAIRS = 6, 5  # 60 pairs in a second: their median is known to 0.02 µs
MAX_SECONDS = 60.0  # after which a machine that is not steady gets what it has


def start_alike(candidate: Worker, baseline: Worker) -> None:
    """Start both processes unless both run; where they can wait at a latch, until their launches take alike.

    A failure here is ignored: it returns where the test says whose fault it is.
    """
    if candidate.memory.latch is None or (candidate.running and baseline.running):
        return
    begin = perf_counter()
    candidate.kill()  # what ran in it may change what a launch takes
    drawn: dict[int, float] = {}  # seconds of a launch, by the number of the process
    with suppress(KernelError, WorkerEnded, BaselineFailed, Unlaunched):
        while True:
            difference, usual = _time_launches(candidate, baseline)
            if abs(difference) <= MAX_DIFFERENCE or perf_counter() - begin > MAX_SECONDS:
                return
            drawn[baseline.pid], drawn[candidate.pid] = usual, usual + difference
            middle = median(list(drawn.values()))
            (candidate if abs(usual + difference - middle) > abs(usual - middle) else baseline).kill()


def _time_launches(candidate: Worker, baseline: Worker) -> tuple[float, float]:
    """Return how many seconds longer the candidate's process takes for a launch, and the baseline's seconds.

    Raises KernelError, WorkerEnded, BaselineFailed and Unlaunched.
    """
    encoder = Encoder(torch.device("cuda"))
    recipe = encoder.encode((torch.ones(ELEMENTS),), {})
    for worker in (candidate, baseline):
        worker.load(TINY_KERNEL)
        worker.lay_out(recipe, 1)
        worker.time(1)  # what is loaded at a first call would wait behind the latch
    launches = min(LAUNCHES, candidate.memory.size // recipe.slot_bytes)  # a part of a GPU may have 1 GB
    pairs = []
    with ExitStack() as cleanup:
        call = FreshCall(recipe, encoder.contents, FreshValues(encoder, recipe), 1)
        batches = PairedBatches(candidate, baseline, call, launches, cleanup, latched=True)
        for number in range(ROUNDS):
            batches.renew(pinned=True)
            batches.run_pairs(number)
            pairs += [pair for _ in range(PAIRS) for pair in batches.run_pairs(number)]
    differences = [pair.candidate - pair.baseline for pair in pairs]
    return median(differences), median([pair.baseline for pair in pairs])
