"""The judge: what was observed of a kernel goes in, a verdict comes out.

Here alone it is decided which status a test gets, how much faster a kernel is, whether that is certain, and whether a
time can be believed. Nothing here starts a process, touches a device or reads a clock: the same observations give
the same verdict, today and in a test. Whether the result of a call is right is decided beside it, in `correctness`.
"""

from __future__ import annotations

import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import exp, isfinite, log
from typing import NamedTuple

from profkit.analysis.evaluation.scores import doubted, speed_word
from profkit.analysis.evaluation.witnesses import (
    assess_own_kernels,
    describe_host_time,
    describe_witnesses,
    impossible_rate,
    kept_bound,
)
from profkit.core.errors import MachineError
from profkit.core.inference import signed_rank_interval
from profkit.core.statistics import median
from profkit.core.types import Fact, MeasuredCeilings, Speedup, TestResult, TestStatus
from profkit.execution.child import JobStatus, WorkerEnded
from profkit.kernels.evaluation.request import PairOptions
from profkit.kernels.evaluation.worker.arguments import KernelError
from profkit.kernels.operations.definitions import FactError
from profkit.kernels.operations.float64_check import Errors, Incorrect

# ---------------------------------------------------------------- what was observed


class Pair(NamedTuple):
    """Seconds per call of each process, the round, and whether a process waited for a processor meanwhile."""

    round: int
    baseline: float
    candidate: float
    waited: bool


class WholeBatch(NamedTuple):
    """A batch as it was timed: wall seconds with all that waking its process takes, and CPU seconds of its threads."""

    seconds: float
    cpu_seconds: float


@dataclass(frozen=True)
class PairedSamples:
    """All that was observed while a kernel was timed beside the baseline."""

    pairs: Sequence[Pair]
    calls: int  # of a batch
    verified: int  # timed calls of which the result was found right
    busy_share: float  # of all processors' time that other programs took meanwhile
    candidate: Sequence[WholeBatch]
    baseline: Sequence[WholeBatch]
    launch_seconds: float = 0.0  # that the host needs to launch a call, where that is not in `pairs`


@dataclass(frozen=True)
class PairedTimes:
    """What samples say: the speed-up, and seconds per call of each process."""

    speedup: Speedup
    seconds: float
    baseline_seconds: float
    verified: int
    disturbed: bool
    whole_seconds: float  # of a call of the candidate, with its part of what waking the process takes
    threads: float  # processor time of all threads over that
    baseline_threads: float
    launch_seconds: float = 0.0  # that the host needs to launch a call, where that is not in `seconds`


@dataclass(frozen=True)
class CallWork:
    """What one call does: the bytes that it must move at least, those that it must write, and its operations."""

    bytes: int
    bytes_written: int
    flops: float | None
    dtype: str


@dataclass(frozen=True)
class DeviceReport:
    """What was observed of the device while a kernel was timed: `early` is why kernels ran before their call."""

    remarks: tuple[Fact, ...] = ()
    early: Fact | None = None


@dataclass(frozen=True)
class TracedLaunches:
    """What a kernel launches on a device: names with their seconds there; or why that is `unknown`."""

    kernels: tuple[tuple[str, float], ...] = ()
    unknown: str = ""


@dataclass(frozen=True)
class MachineLimits:
    """What the machine can do, as far as a verdict depends on it.

    `units` are the processors that may store results: cores, or multiprocessors of a GPU. `ceilings` are measured,
    by dtype; those under "" are for all others.
    """

    on_gpu: bool = False
    units: int = 1
    cached_bytes: int = 0  # that may lie in a cache
    has_gpu: bool = False  # for kernels that need one
    ceilings: Mapping[str, MeasuredCeilings] = field(default_factory=dict)


class Cheat(FactError):
    """The kernel was right where it could know that it was checked, and wrong in a timed call."""


class Unverified(FactError):
    """The outputs of the timed calls could not be checked."""


class BaselineFailed(Exception):
    """PyTorch's own kernel failed, or its process ended: that says nothing of the candidate."""


# ---------------------------------------------------------------- how sure

MIN_ROUNDS = 6  # of fewer no interval is known
CONFIDENCE = 0.95
# Of FASTER and SLOWER: a suite has hundreds of tests, of which 5 % would be wrong; and a busy machine is sometimes
# taken for a quiet one.
SURE = 0.999
EARLY_CONFIDENCE = 0.99  # to end before the time is over: who looks after each round sees more than there is
MIN_VERIFIED = 3
# Of all processors' time, taken by other programs: beyond it they move medians, and no interval shows it.
MAX_BUSY_SHARE = 0.15
# What a process may gain or lose by where its code and its stack lie, and more than was seen (14 %; 8 % on a GPU).
MAX_BY_CHANCE = 0.25
MAX_BY_CHANCE_ON_GPU = 0.15
TRACEBACK = 4000  # characters

STATUSES: dict[JobStatus, TestStatus] = {
    JobStatus.crash: "crashed",
    JobStatus.timeout: "timeout",
    JobStatus.out_of_memory: "out-of-memory",
}


class Judge:
    """Reaches the verdicts of an evaluation, by its options and by what the machine can do.

    `threads` are those that a kernel may use; 0: as many as it likes.
    """

    def __init__(self, options: PairOptions, machine: MachineLimits, *, threads: int = 0) -> None:
        self._options, self._machine, self._threads = options, machine, threads

    # ------------------------------------------------------------ speed

    def is_settled(self, pairs: Sequence[Pair]) -> bool:
        """Return whether more pairs would change nothing."""
        speedup = find_speedup(undisturbed(pairs), self._options, EARLY_CONFIDENCE)
        is_narrow = log(speedup.high / speedup.low) / 2 <= self._options.precision
        return is_narrow and speedup.word != "AMBIGUOUS"

    def weigh(self, samples: PairedSamples) -> PairedTimes:
        """Return what the samples say.

        Pairs in which a process waited for a processor are left out while enough others are there. Where half of them
        did, or others had much of the processors, the machine is busy: `disturbed` says so, and the speed-up is
        AMBIGUOUS. Raises Unverified where too few timed calls were verified.
        """
        if samples.verified < MIN_VERIFIED:
            raise Unverified(Fact.of("new-memory-each-time", verified=samples.verified))
        pairs = undisturbed(samples.pairs)
        quiet = sum(not pair.waited for pair in samples.pairs)
        disturbed = quiet < len(samples.pairs) / 2 or samples.busy_share > MAX_BUSY_SHARE
        speedup = find_speedup(pairs, self._options)
        return PairedTimes(
            doubted(speedup) if disturbed else speedup,
            median([pair.candidate for pair in pairs]),
            median([pair.baseline for pair in pairs]),
            samples.verified,
            disturbed,
            median([batch.seconds for batch in samples.candidate]) / samples.calls,
            busy_threads(samples.candidate),
            busy_threads(samples.baseline),
            samples.launch_seconds,
        )

    def may_be_chance(self, speedup: Speedup) -> bool:
        """Return whether what two processes drew at their start may explain the difference: new ones must show it.

        It changes the time of a short call for as long as the process lives, so no number of pairs shows it.
        """
        largest = MAX_BY_CHANCE_ON_GPU if self._machine.on_gpu else MAX_BY_CHANCE
        is_small = 1 / (1 + largest) < speedup.median < 1 + largest
        return is_small and speedup.word in ("FASTER", "SLOWER")

    def agree(self, first: PairedTimes, again: PairedTimes) -> tuple[PairedTimes, tuple[Fact, ...]]:
        """Return the times on which two pairs of processes agree, and a remark where they do not.

        The speed-up nearer to 1 is kept, so that nobody gains by a second draw; without agreement it is AMBIGUOUS.
        """
        nearer = min(first, again, key=lambda each: abs(each.speedup.median - 1))
        nearer = replace(nearer, verified=first.verified + again.verified)
        if again.speedup.word == first.speedup.word:
            return nearer, ()
        nearer = replace(nearer, speedup=doubted(nearer.speedup))
        return nearer, () if again.disturbed else (Fact("difference-of-processes"),)

    # ------------------------------------------------------------ the result of a test

    def passed(self, result: TestResult, errors: Errors) -> TestResult:
        """Return the result of a kernel whose outputs were right."""
        return _with_errors(replace(result, status="passed"), errors)

    def timed(
        self,
        result: TestResult,
        times: PairedTimes,
        work: CallWork,
        device: DeviceReport,
        launches: TracedLaunches | None = None,
    ) -> TestResult:
        """Return the result with speed-up, bound and remarks. Raises Cheat for a time that cannot be true."""
        # First: of times that a kernel could falsify nothing else is worth knowing.
        if device.early is not None:
            raise Cheat(device.early)
        machine = self._machine
        seconds = times.whole_seconds
        if rate := impossible_rate(work.bytes_written, seconds, machine.units, on_gpu=machine.on_gpu):
            raise Cheat(rate)
        bound = self._least_seconds(work)
        # Threads of a process that waits for a GPU say nothing of its kernel.
        threads = (0.0, 0.0) if machine.on_gpu else (times.threads, times.baseline_threads)
        own_share, own = _assess_launches(launches)
        host = describe_host_time(times.seconds, times.launch_seconds)
        remarks = (
            *result.remarks,
            *((Fact("busy-machine"),) if times.disturbed else ()),
            *describe_witnesses(times.seconds, bound, *threads, self._threads),
            *device.remarks,
            *filter(None, (own, host)),
        )
        return replace(
            result,
            own_share=own_share,
            speedup=times.speedup,
            seconds=times.seconds,
            reference_seconds=times.baseline_seconds,
            verified=times.verified,
            remarks=remarks,
            bytes=float(work.bytes),
            flops=work.flops,
            bound_seconds=kept_bound(bound, times.seconds, times.baseline_seconds),
        )

    def untimed(self, result: TestResult, why: BaselineFailed | Unverified) -> TestResult:
        """Return the result of a right kernel of which no time is known, with a remark that says why."""
        if isinstance(why, Unverified):
            reason = why.reason
        else:
            reason = Fact.of("fails-itself", Fact.message(str(why)), name="PyTorch")
        return replace(result, remarks=(*result.remarks, Fact.of("not-timed", reason)))

    def undecidable(self, result: TestResult, error: Exception, whose: str = "PyTorch") -> TestResult:
        """Return the result of a test whose arguments or expected results cannot be made: nobody's kernel ran."""
        if isinstance(error, FactError):
            reason = error.reason
        elif isinstance(error, LookupError):
            reason = Fact.message(str(error))
        else:
            reason = Fact.of("fails-itself", _first_line(error), name=whose)
        return replace(result, status="skipped", reason=reason)

    def failed(self, result: TestResult, error: Exception, *, loading: bool = False) -> TestResult:
        """Return the result of a test that ended with this error; `loading`: before its kernel was loaded.

        What is no fault of the kernel or of its process is profkit's own: it costs one test, and does not count against
        the kernel.
        """
        result = replace(result, speedup=None, seconds=None, reference_seconds=None)
        if isinstance(error, Incorrect):
            result = replace(result, status="incorrect", fault=error.fault, reason=error.reason)
            return _with_errors(result, error.errors)
        if isinstance(error, Cheat):
            return replace(result, status="cheat", reason=error.reason)
        if isinstance(error, WorkerEnded):
            status = STATUSES.get(error.status, "lost")
            return replace(
                result, status=status, reason=Fact.message(error.reason), last_line=error.last_line
            )
        if isinstance(error, KernelError):
            return self._raised(result, error, loading=loading)
        # What the kernel did until then is not kept: a test that is lost is run again.
        result = replace(result, status="lost", max_abs_error=None, max_rel_error=None, allowed_share=None)
        if isinstance(error, MachineError):
            return replace(result, reason=Fact.message(f"{error.message}; {error.fix or ''}".rstrip("; ")))
        text = "".join(traceback.format_exception(error))[-TRACEBACK:]
        return replace(result, reason=Fact.of("not-judged", _first_line(error)), traceback=text)

    def _raised(self, result: TestResult, error: KernelError, *, loading: bool) -> TestResult:
        """Return the result of a kernel, or a file, that raised an exception.

        It is not run for lack of a GPU only if there is none.
        """
        if error.needs_gpu and not self._machine.has_gpu:
            return replace(result, status="not-run", reason=Fact("needs-gpu"))
        status: TestStatus = "out-of-memory" if error.memory else "incorrect"
        if loading:
            status = "load-error"
        return replace(
            result,
            status=status,
            fault="raised" if status == "incorrect" else None,
            reason=Fact.message(str(error)),
            error_type=error.kind,
            traceback=error.traceback,
        )

    def _least_seconds(self, work: CallWork) -> float | None:
        """Return the seconds that the hardware needs at least, by arithmetic and by memory; None if unknown.

        Memory counts only where no cache holds that many bytes.
        """
        ceilings = self._machine.ceilings
        own = ceilings.get(work.dtype, ceilings.get("", MeasuredCeilings()))
        by_flops = work.flops / own.flops if work.flops and own.flops else 0.0
        is_cached = work.bytes <= self._machine.cached_bytes
        by_bytes = work.bytes / own.bandwidth if own.bandwidth and not is_cached else 0.0
        return max(by_flops, by_bytes) or None


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
        rounds.setdefault(pair.round, []).append(log(pair.baseline / pair.candidate))
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


def busy_threads(batches: Sequence[WholeBatch]) -> float:
    """Return CPU seconds over wall seconds of the median batch; the first batch also starts threads."""
    return median([batch.cpu_seconds / batch.seconds for batch in batches])


def _assess_launches(launches: TracedLaunches | None) -> tuple[float | None, Fact | None]:
    """Return the share of the device's time in kernels of the candidate's own, and a remark about it.

    Names can be forged: this decides nothing.
    """
    if launches is None:
        return None, None
    if launches.unknown:
        return None, Fact.of("unknown-launches", Fact.message(launches.unknown))
    own = assess_own_kernels(launches.kernels)
    return (own.share, own.remark) if own is not None else (None, Fact("nothing-ran"))


def _with_errors(result: TestResult, errors: Errors | None) -> TestResult:
    """Return the result with the size of its errors; no share where no error at all is allowed."""
    if errors is None:
        return result
    return replace(
        result,
        max_abs_error=errors.absolute,
        max_rel_error=errors.relative,
        allowed_share=errors.share if isfinite(errors.share) else None,
    )


def _first_line(error: BaseException) -> Fact:
    """Return the exception's type and the first line of its message."""
    line = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    return Fact.message(f"{type(error).__name__}: {line[:200]}")
