"""How a trial is timed: how many calls at a time, behind a gate or not, and once more where processes may mislead.

What a process has drawn when it started (where its code and its stack lie) changes the time of a short call by up to
14 %, for as long as the process lives: no number of pairs shows it. So a small difference counts only where new
processes show it, too. On a GPU each launch of one process may take 0.2 µs longer than the same launch of another, 8 %
of the shortest kernels. A small kernel of PyTorch's own, timed in both as a candidate is timed, shows it before
anybody's kernel has run; launches that only set memory draw a time of their own. The process that is further from what
most have drawn is replaced until both are alike: nothing is taken off a time, and no kernel can have a part in it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import replace
from time import perf_counter

import torch

from profkit.analysis.evaluation.speedups import doubted
from profkit.core.statistics import median
from profkit.core.types import Speedup
from profkit.execution.child import WorkerEnded
from profkit.kernels.evaluation.candidate.arguments import Encoder, KernelError
from profkit.kernels.evaluation.candidate.client import KernelProcess
from profkit.kernels.evaluation.candidate.devices import JudgedDevice
from profkit.kernels.evaluation.candidate.process import LEAST
from profkit.kernels.evaluation.judging.batches import (
    PairedBatches,
    ReferenceFailed,
    Unlaunched,
    blaming,
    calls_in_batch,
    fit_gate,
)
from profkit.kernels.evaluation.judging.correctness import Incorrect
from profkit.kernels.evaluation.judging.fresh_values import FreshValues
from profkit.kernels.evaluation.judging.pairs import PairedTimes, time_pairs
from profkit.kernels.evaluation.judging.trial import Trial
from profkit.kernels.evaluation.request import JudgeSettings
from profkit.kernels.evaluation.sources.source import SourceRequest

ALIKE = 0.03e-6  # seconds a launch: 0.5 % of a kernel of 6 µs
LAUNCHES = 400  # at a time: a device takes some 1,000 ahead
ELEMENTS = 1 << 16  # of the array, 256 kB: a kernel of 3 µs
ROUNDS, PAIRS = 6, 5  # 60 pairs in a second: their median is known to 0.02 µs
MOST_SECONDS = 60.0  # after which a machine that is not steady gets what it has


def start_alike(candidate: KernelProcess, reference: KernelProcess) -> None:
    """Start both where either does not run; where they can wait at a gate, until they are alike.

    Who fails here fails again where somebody is asked to say whose fault it is.
    """
    if candidate.memory.gate is None or (candidate.running and reference.running):
        return
    begin = perf_counter()
    candidate.kill()  # what ran in it may change what a launch takes
    drawn: dict[int, float] = {}  # seconds of a launch, by the number of the process
    with suppress(KernelError, WorkerEnded, ReferenceFailed, Unlaunched):
        while True:
            difference, usual = _time_launches(candidate, reference)
            if abs(difference) <= ALIKE or perf_counter() - begin > MOST_SECONDS:
                return
            drawn[reference.pid], drawn[candidate.pid] = usual, usual + difference
            most = median(list(drawn.values()))
            (candidate if abs(usual + difference - most) > abs(usual - most) else reference).kill()


def _time_launches(candidate: KernelProcess, reference: KernelProcess) -> tuple[float, float]:
    """Seconds that a launch of the candidate's process takes longer, and those of the reference's.

    Raises KernelError, WorkerEnded, ReferenceFailed and Unlaunched.
    """
    encoder = Encoder(torch.device("cuda"))
    recipe = encoder.encode((torch.ones(ELEMENTS),), {})
    for process in (candidate, reference):
        process.load(LEAST)
        process.place(recipe, 1)
        process.run_slots(1)  # what is loaded at a first call would wait behind the gate
    launches = min(LAUNCHES, candidate.memory.size // recipe.slot_bytes)  # a part of a GPU may have 1 GB
    pairs = []
    with ExitStack() as cleanup:
        fresh = FreshValues(encoder, recipe)
        batches = PairedBatches(
            candidate, reference, fresh, recipe, 1, launches, cleanup, together=True, gated=True
        )
        for number in range(ROUNDS):
            batches.renew(pinned=True)
            batches.run_pairs(number)
            pairs += [pair for _ in range(PAIRS) for pair in batches.run_pairs(number)]
    return median([pair.candidate - pair.reference for pair in pairs]), median(
        [pair.reference for pair in pairs]
    )


# That a process may gain or lose by what it has drawn, and more than was seen.
MOST_BY_LUCK = 0.25
MOST_BY_LUCK_ON_CUDA = 0.15
LUCK = "new processes of the same kernels did not show that difference: it may be one of processes, not of kernels"


class TrialTimer:
    """Times the loaded kernel of `candidate` on a trial, whose timed calls get `fresh` values."""

    def __init__(
        self,
        trial: Trial,
        fresh: FreshValues,
        candidate: KernelProcess,
        device: JudgedDevice,
        settings: JudgeSettings,
    ) -> None:
        self._trial, self._fresh, self._candidate = trial, fresh, candidate
        self._device, self._settings = device, settings
        self._on_cuda = device.device.type == "cuda"
        self._estimate = 0.0

    def begin(self, reference: KernelProcess) -> None:
        """Find out how long a call takes, roughly. Raises ReferenceFailed."""
        with blaming(reference):
            self._estimate = self._trial.estimate(reference)
        self._device.begin_timing()

    def time(self, against: KernelProcess) -> PairedTimes:
        """The candidate paired with another process; see `time_pairs` for what is raised."""
        trial = self._trial
        count = calls_in_batch(self._estimate, trial.call_bytes, self._device.batch)
        if self._on_cuda:
            outputs = len(trial.reference.outputs)
            with suppress(Unlaunched):
                if gated := fit_gate(
                    self._candidate, against, trial.recipe, trial.encoder.contents, outputs, count
                ):
                    return self._time_pairs(against, gated, gated=True)
        return self._time_pairs(against, count, gated=False)

    def confirm(self, times: PairedTimes, reference: KernelProcess) -> tuple[PairedTimes, tuple[str, ...]]:
        """The times with the word that new processes agree to, and a remark where they do not.

        What lies nearer to 1 is kept. Raises Incorrect where a new process computes something else.
        """
        if not may_be_luck(times.speedup, MOST_BY_LUCK_ON_CUDA if self._on_cuda else MOST_BY_LUCK):
            return times, ()
        for process in (self._candidate, reference):
            process.kill()
        start_alike(self._candidate, reference)
        with blaming(reference):
            self._warm_up(reference)
        self._warm_up(self._candidate)
        again = self.time(reference)
        nearer = min(times, again, key=lambda each: abs(each.speedup.median - 1))
        nearer = replace(nearer, verified=times.verified + again.verified)
        if again.speedup.word == times.speedup.word:
            return nearer, ()
        nearer = replace(nearer, speedup=doubted(nearer.speedup))
        return nearer, () if again.disturbed else (LUCK,)

    def _warm_up(self, process: KernelProcess) -> None:
        """Load the kernel; what it compiles or tries out at its first call it cannot do behind the gate."""
        process.load(self._trial.test.operation)
        if self._on_cuda:
            self._trial.first_call(process)

    def _time_pairs(self, against: KernelProcess, count: int, *, gated: bool) -> PairedTimes:
        trial = self._trial
        return time_pairs(
            self._candidate,
            against,
            self._fresh,
            trial.recipe,
            len(trial.reference.outputs),
            self._settings.timing,
            trial.verifier(self._candidate),
            count=count,
            gated=gated,
            together=self._on_cuda,
            pinned=self._settings.threads == 1 or self._on_cuda,
        )


def may_be_luck(speedup: Speedup, most: float = MOST_BY_LUCK) -> bool:
    """Whether the processes alone, by which a time changes by so much of itself, may explain a difference."""
    near = 1 / (1 + most) < speedup.median < 1 + most
    return near and speedup.word in ("FASTER", "SLOWER")


SOURCE = SourceRequest("compiled")
NOTABLE_SECONDS = 0.1  # below that the same shapes had been compiled before
COMPILE_SECONDS = 300.0  # that a first call may take at least: the first one of all also compiles headers
NO_COMPILER = ("InvalidCxxCompiler", "No working C++ compiler")
FIX = "apt-get install g++"


class CompiledRival:
    """The process that has torch.compile's kernels. Nothing that goes wrong in it costs more than its column."""

    def __init__(self, process: KernelProcess) -> None:
        self._process = process
        self._absent = ""  # why there is nothing to be had from it, once that is known

    def compare(
        self, trial: Trial, time: Callable[[KernelProcess], PairedTimes]
    ) -> tuple[Speedup | None, str]:
        """The kernel's speed-up over it, and what is to be said of that. `time`: time the kernel against a process.

        Raises what `time` raises of the candidate.
        """
        if self._absent:
            return None, self._absent
        try:
            self._process.load(trial.test.operation)
            first = trial.first_call(self._process)
        except Incorrect as wrong:
            return None, f"not timed against torch.compile, whose own result is wrong: {wrong}"
        except (KernelError, WorkerEnded) as error:
            self._process.kill()
            return None, self._explain(error)
        try:
            times = time(self._process)
        except ReferenceFailed as failed:
            return None, f"not timed against torch.compile: {failed}"
        compiling = f"torch.compile took {first:.1f} s for its first call" if first >= NOTABLE_SECONDS else ""
        return times.speedup, compiling

    def close(self) -> None:
        """End its process."""
        self._process.close()

    def _explain(self, error: KernelError | WorkerEnded) -> str:
        text = f"{error} {getattr(error, 'traceback', '')}"
        if any(word in text for word in NO_COMPILER):
            self._absent = f"not timed against torch.compile: it finds no C++ compiler; {FIX}"
            return self._absent
        return f"not timed against torch.compile: {error}"
