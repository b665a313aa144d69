"""Times the normal runs of a workload until the median is known, and derives what later passes plan with."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from profkit.analysis.summaries.memory import memory_series
from profkit.backends import PlanState
from profkit.core.errors import UnreadableReport, WorkloadError
from profkit.core.inference import combine_processes
from profkit.core.process import ProcessOutcome
from profkit.core.types import (
    RUN,
    Disturbance,
    Fact,
    MemorySeries,
    PassPlan,
    PassResult,
    Reading,
    SampleSet,
    Source,
    Step,
    Timing,
)
from profkit.hardware.conditions import DisturbanceWatch
from profkit.profiling.run_passes import failure_text
from profkit.profiling.run_steps import RunSettings, StepOutcome, run_step
from profkit.profiling.time_limits import plain_time_limit
from profkit.runtime.passes.processor import ReferenceLoop
from profkit.runtime.passes.read import read_record
from profkit.runtime.passes.read import region_timings as timings_of
from profkit.runtime.passes.timing import is_enough
from profkit.runtime.region.record import RegionRecord

MAX_PROCESSES = 200  # a 20 ms program reaches ±1 % long before
REFERENCE_TURNS = 3  # of the reference loop, before and after each process
# After this time, no process of a program without a region is started only to improve the precision.
MORE_SECONDS = 1.5
REGION_SECONDS = 4.0  # the same for a program with a region, unless the user wants more
_END_OF_INPUT = re.compile(r"EOFError|EOF when reading|unexpected end of (?:input|file)", re.IGNORECASE)
_ALREADY_THERE = re.compile(r"(?:FileExistsError|File exists|already exists)[^'\n]*'([^'\n]+)'")


@dataclass(frozen=True)
class TimingRecord:
    """The result of the timing pass.

    `plain_seconds` is the wall time of one process, with which the other passes are compared. `outcomes` have
    what the operating system counted (CPU seconds, largest resident set).
    """

    result: PassResult
    timings: tuple[Timing, ...]
    plain_seconds: float
    outcomes: tuple[ProcessOutcome, ...]
    notes: tuple[Fact, ...] = ()
    disturbances: tuple[Disturbance, ...] = ()
    begun: tuple[float, ...] = ()  # when regions were entered in any process, in s of time.monotonic


class TimingRun:
    """The normal runs of a workload: the first one, and later those that the precision needs beyond it."""

    def __init__(
        self,
        plan: PassPlan,
        settings: RunSettings,
        precision: float,
        extra_seconds: float,
        report: Callable[[tuple[Timing, ...]], None],
        *,
        thorough: bool = False,
        patient: bool = False,
    ) -> None:
        """Set up the runs.

        `extra_seconds` is the wall time for processes beyond the planned ones; `thorough` starts all of those, however
        long they take; `patient` goes on until the time is known, or that time is over. `report` gets what is known
        after each process, so that a run which dies here keeps it.
        """
        self._plan, self._extra_seconds = plan, extra_seconds
        self._thorough, self._patient = thorough, patient
        self._runs = _PlainRuns(settings, precision, report)

    def first(self, most: float | None = None) -> TimingRecord:
        """Time one process, which may take `most` wall seconds.

        Raises WorkloadError when the workload itself fails: there is nothing to profile then.
        """
        self._runs.begin(most)
        self._runs.add(self._plan.steps[0])
        return self._record()

    def rest(self, most: float | None = None, elsewhere: int = 0) -> TimingRecord:
        """Time further processes, which may take `most` wall seconds together, until the time is known.

        `elsewhere`: how often the workload ran well in other passes meanwhile. Raises WorkloadError when it fails now.
        """
        self._runs.begin(most)
        self._runs.elsewhere = elsewhere
        while (step := self._next_step()) is not None:
            self._runs.add(step)
        return self._record()

    @property
    def is_complete(self) -> bool:
        """Return whether the time is known, so that no further process is needed."""
        return self._next_step() is None

    def owed(self, plain: float) -> float:
        """Return about how many wall seconds the rest takes, for a program that runs for `plain` seconds."""
        if self.is_complete:
            return 0.0
        planned = plain * max(0, len(self._plan.steps) - len(self._runs.outcomes))
        return max(0.0, MORE_SECONDS - self._runs.gone) if self._runs.kind == "process" else planned

    def _next_step(self) -> Step | None:
        """Return the step of the next process; None where none is needed."""
        runs, steps = self._runs, self._plan.steps
        done = len(runs.outcomes)
        if runs.endless:
            return None
        if done < len(steps):
            # The first answer matters more than what one more run of a long program can say.
            enough = not self._thorough and not self._patient and runs.gone >= MORE_SECONDS
            if done and runs.kind == "process" and (enough or runs.is_known(self._extra_seconds)):
                return None
            return steps[done]
        alone = len(steps) == 1 and runs.kind == "benchmark"  # a benchmark samples by itself until it knows
        usual = MORE_SECONDS if runs.kind == "process" else REGION_SECONDS
        all_of_it = self._patient or (self._thorough and runs.kind != "process")
        more = self._extra_seconds if all_of_it else min(self._extra_seconds, usual)
        if alone or runs.is_known(more) or done >= MAX_PROCESSES:
            return None
        return _repeated_step(steps[0], done + 1)

    def _record(self) -> TimingRecord:
        """Return what is known so far."""
        runs, plan, folder = self._runs, self._plan, self._runs.settings.folder
        result = PassResult(
            plan.name,
            None,
            "finished",
            seconds=runs.gone,
            artifacts=tuple(sorted(str(path.relative_to(folder)) for path in _record_files(folder))),
            log=f"logs/{plan.steps[0].name}.log",
        )
        records, remarks = _readable_records(folder)
        of_processes = (note for record in records for note in record.notes)
        return TimingRecord(
            result,
            runs.timings,
            sorted(o.seconds for o in runs.outcomes)[len(runs.outcomes) // 2],
            tuple(runs.outcomes),
            tuple(dict.fromkeys((*remarks, *of_processes, *runs.endless))),
            tuple(runs.disturbances),
            tuple(moment for record in records for moment in record.begun),
        )


@dataclass
class _PlainRuns:
    """The processes that were timed, and the times so far."""

    settings: RunSettings
    precision: float
    report: Callable[[tuple[Timing, ...]], None]
    most: float | None = None  # wall seconds for all of them together
    gone: float = 0.0  # wall seconds of all so far, with the time that profkit takes between them
    elsewhere: int = 0  # runs of the workload in other passes that ended well
    _since: float = 0.0  # when `gone` was last updated
    reference: ReferenceLoop = field(default_factory=ReferenceLoop)
    outcomes: list[ProcessOutcome] = field(default_factory=list)
    disturbances: list[Disturbance] = field(default_factory=list)
    timings: tuple[Timing, ...] = ()
    endless: tuple[Fact, ...] = ()

    def begin(self, most: float | None) -> None:
        """Begin, or continue after other passes; all further processes together may take `most` seconds."""
        self._since = time.monotonic()
        self.most = self.gone + most if most is not None else None

    @property
    def kind(self) -> str:
        """Return what was timed: whole processes (`process`), or what they mark."""
        return self.timings[0].kind

    def is_known(self, max_seconds: float) -> bool:
        """Return whether the time is known, so that no more processes are needed."""
        return _is_known(self.timings[0], self.gone, self.precision, max_seconds)

    def add(self, step: Step) -> None:
        """Time one more process. One that does not end, unlike those before it, is the last."""
        try:
            self._time(step)
        finally:
            now = time.monotonic()
            self.gone, self._since = self.gone + now - self._since, now

    def _time(self, step: Step) -> None:
        left_seconds = self.most - self.gone if self.most is not None else None
        longest = max((earlier.seconds for earlier in self.outcomes), default=None)
        limit = plain_time_limit(longest, self.settings.timeout, left_seconds)
        settings = replace(self.settings, timeout=limit)
        try:
            outcome = _time_process(step, settings, self.reference, self.disturbances).outcome
        except WorkloadError as fault:
            if self.outcomes:
                raise _failed_again(fault, step, len(self.outcomes) + self.elsewhere) from fault
            raise
        if outcome.timed_out:
            if not self.outcomes:
                raise WorkloadError(f"the workload {outcome.ending()}", self.settings.more)
            self.endless = (Fact.of("run-without-end", name=step.name, seconds=limit or 0.0),)
            return
        self.outcomes.append(outcome)
        self.timings = _read_timings(self.settings.folder, self.outcomes, self.precision, self.reference)
        self.report(self.timings)


def _time_process(
    step: Step, settings: RunSettings, reference: ReferenceLoop, disturbances: list[Disturbance]
) -> StepOutcome:
    for _ in range(REFERENCE_TURNS):
        reference.run()
    watch = DisturbanceWatch()
    recorded = run_step(step, settings)
    outcome = recorded.outcome
    waited = outcome.usage[-1][2] if outcome.usage else None
    disturbances.append(watch.ended(outcome.seconds, outcome.cpu_seconds, waited))
    for _ in range(REFERENCE_TURNS):
        reference.run()
    if recorded.workload_ok or recorded.outcome.timed_out:
        return recorded
    text = failure_text(recorded)
    raise WorkloadError(text, _fix_of(text, step, settings))


def _fix_of(text: str, step: Step, settings: RunSettings) -> str | None:
    """Return the fix for a workload that printed this text and failed without any instrument."""
    # profkit switches on that Triton keeps its tuning as JSON; Triton raises where that is impossible.
    if "TRITON_CACHE_AUTOTUNING" in step.env and "is not JSON serializable" in text:
        return "export TRITON_CACHE_AUTOTUNING=0"
    if settings.given is None and _END_OF_INPUT.search(text) is not None:
        read = shlex.quote(f"{shlex.join(step.argv)} < FILE")
        return f"its standard input is empty here: profkit profile -- sh -c {read}"
    return None


def _failed_again(fault: WorkloadError, step: Step, times: int) -> WorkloadError:
    """Return the error for a workload that ran well before: files that it left may be in its way."""
    leftover = _ALREADY_THERE.search(fault.message)
    ran = "once" if times == 1 else f"{times} times"
    message = f"the workload ran {ran} and then failed; profkit runs it several times. {fault.message}"
    fix = fault.fix
    if fix is None:
        before = f"rm -rf {shlex.quote(leftover[1])}" if leftover is not None else "PREPARE"
        retry = shlex.quote(f"{before}; {shlex.join(step.argv)}")
        hint = "" if leftover is not None else "   (PREPARE: a command that lets it run again)"
        fix = f"profkit profile -- sh -c {retry}{hint}"
    return WorkloadError(message, fix)


def _read_timings(
    folder: Path, outcomes: list[ProcessOutcome], precision: float, reference: ReferenceLoop
) -> tuple[Timing, ...]:
    """Return the times so far: those of the workload's own marks, else those of whole processes."""
    marked = timings_of(_readable_records(folder)[0])
    if marked:
        return marked
    whole = SampleSet(
        tuple(o.seconds for o in outcomes),
        spent=sum(o.seconds for o in outcomes),
        warm=len(outcomes) > 1,
        reference_loop=tuple(reference.seconds),
    )
    return (Timing("process", "process", (whole,), precision),)


def _is_known(timing: Timing, gone: float, precision: float, max_seconds: float) -> bool:
    if timing.kind == "process":
        return is_enough(timing.processes[0].seconds, precision, gone, max_seconds)
    centre = combine_processes(tuple(process.seconds for process in timing.processes))
    if centre is None or centre.low is None or centre.high is None:
        return gone >= max_seconds
    return gone >= max_seconds or (centre.high - centre.low) / 2 <= precision * centre.median


def _readable_records(folder: Path) -> tuple[list[RegionRecord], tuple[Fact, ...]]:
    """Return the records of the workload's processes, and a remark on each unreadable one.

    A workload may write into that folder, too.
    """
    records, remarks = [], []
    for path in _record_files(folder):
        try:
            records.append(read_record(path))
        except UnreadableReport as error:
            remarks.append(Fact.of("record-passed-over", said=error.message))
    return records, tuple(remarks)


def _record_files(folder: Path) -> tuple[Path, ...]:
    return tuple(sorted((folder / "artifacts").glob("timing*.json")))


def _repeated_step(step: Step, number: int) -> Step:
    """Return the same step for another process, with a name of its own."""
    name = f"timing-{number}"
    directive = step.directive
    if directive is not None:
        directive = replace(directive, record=str(Path(directive.record).with_name(name)))
    return replace(step, name=name, directive=directive)


def usage_readings(peak: int, busy: float | None, tool: str) -> tuple[Reading, ...]:
    """Return the peak resident set (bytes) and the busy cores (CPU / wall seconds) of all processes.

    `peak`: 0 for a program of a few milliseconds, which ends before it is sampled. `busy`: None where a region
    counts, since the use of cores is known of the whole process only. `tool` measured it.
    """
    readings = []
    if peak > 0:
        readings.append(
            Reading("memory.rss_peak", float(peak), "B", "measured", RUN, Source("psutil", "rss"))
        )
    if busy is not None:
        source = Source(tool, formula="100 * (user + system CPU seconds) / wall seconds, start-up included")
        readings.append(Reading("cpu.utilization", 100 * busy, "%", "measured", RUN, source))
    return tuple(readings)


def with_times(known: PlanState, record: TimingRecord) -> PlanState:
    """Return what is known with the times of the normal runs so far."""
    main, typical = record.timings[0], typical_process(record)
    seconds = [sample for process in main.processes for sample in process.seconds]
    return replace(
        known,
        marked=main.kind != "process",
        # The mean: it decides how long passes repeat the work, and a few slow iterations take their time too.
        iteration_seconds=sum(seconds) / len(seconds),
        entries=_entries(record.timings),
        benchmark=main.kind == "benchmark",
        plain_seconds=record.plain_seconds,
        own_seconds=typical.seconds - typical.usage[-1][2] if typical.usage else None,
        main_seconds=typical.seconds - typical.main_thread[1],
        main_share=min(1.0, sum(typical.main_thread) / typical.seconds) if any(typical.main_thread) else 1.0,
        start_seconds=start_seconds(record),
    )


def typical_process(record: TimingRecord) -> ProcessOutcome:
    """Return the process whose time is the median."""
    return sorted(record.outcomes, key=lambda outcome: outcome.seconds)[len(record.outcomes) // 2]


def resident_memory(outcome: ProcessOutcome, begun: Sequence[float]) -> MemorySeries | None:
    """Return the memory of a normal run over time; the peak is the kernel's count if there is one.

    `begun`: when regions were entered in any of the processes, on the clock of `outcome.begun`.
    """
    peak = float(outcome.peak_rss) if outcome.rss_counted else None
    series = memory_series("resident", outcome.memory, peak)
    inside = (moment - outcome.begun for moment in begun)
    steps = tuple(sorted(round(moment, 4) for moment in inside if 0 <= moment <= outcome.seconds))
    return replace(series, steps=steps) if series is not None else None


def _entries(timings: Sequence[Timing]) -> int | None:
    """Return how often a process entered the region; 1 for a benchmark, None for a whole process or several regions."""
    if len(timings) != 1 or timings[0].kind == "process":
        return None
    if timings[0].kind == "benchmark":
        return 1
    return min((len(process.seconds) for process in timings[0].processes), default=None)


def outside_seconds(timing: Timing, start: float) -> float | None:
    """Return the wall seconds of a process outside of the timed part; None if the whole process is timed.

    For a benchmark these are `start`, since its samples are timed; else `start` without the time in the region.
    """
    if timing.kind == "process":
        return None
    spent = sorted(process.spent for process in timing.processes)
    return start if timing.kind == "benchmark" else max(0.0, start - spent[len(spent) // 2])


def start_seconds(record: TimingRecord) -> float:
    """Return the wall seconds of a normal run without those of its samples."""
    return max(0.0, record.plain_seconds - _sampling_seconds(record.timings[0]))


def _sampling_seconds(timing: Timing) -> float:
    """Return the wall seconds that a benchmark's process spent on samples; 0 for other workloads."""
    if timing.kind != "benchmark":
        return 0.0
    spent = sorted(process.spent for process in timing.processes)
    return spent[len(spent) // 2]
