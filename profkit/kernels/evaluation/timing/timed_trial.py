"""How a trial is timed: how many calls at a time, behind a gate or not, and once more where processes may mislead.

What a process has drawn when it started (where its code and its stack lie) changes the time of a short call by up to
14 %, for as long as the process lives: no number of pairs shows it. On a GPU each launch of one process may take 0.2 µs
longer than the same launch of another, 8 % of the shortest kernels. So a small difference counts only where new
processes show it, too.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from profkit.analysis.evaluation import doubted
from profkit.core.types import Speedup
from profkit.kernels.evaluation.candidate.client import KernelProcess
from profkit.kernels.evaluation.candidate.devices import JudgedDevice
from profkit.kernels.evaluation.judging.fresh_values import FreshValues
from profkit.kernels.evaluation.judging.trial import Trial
from profkit.kernels.evaluation.request import JudgeSettings
from profkit.kernels.evaluation.timing.alike import start_alike
from profkit.kernels.evaluation.timing.batches import Unlaunched, blaming, calls_in_batch, fit_gate
from profkit.kernels.evaluation.timing.pairs import PairedTimes, time_pairs

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
