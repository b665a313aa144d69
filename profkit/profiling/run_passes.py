"""Runs the passes of a plan: timing alone and until the median is known, all others step by step."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from profkit.core.errors import (
    Fault,
    MachineError,
    UnreadableReport,
    UsageError,
    WorkloadError,
)
from profkit.core.inference import combine_processes
from profkit.core.process import ProcessOutcome, read_status
from profkit.core.types import (
    RUN,
    Disturbance,
    Fact,
    PassPlan,
    PassResult,
    Reading,
    RunDocument,
    SampleSet,
    Source,
    Step,
    Timing,
)
from profkit.hardware.conditions import DisturbanceWatch
from profkit.profilers.registry import explain_fault
from profkit.profiling.run_steps import RunSettings, StepOutcome, at_once, run_step
from profkit.profiling.time_limits import plain_time_limit
from profkit.runtime.passes.processor import ReferenceLoop
from profkit.runtime.passes.read import read_record
from profkit.runtime.passes.read import region_timings as timings_of
from profkit.runtime.passes.timing import is_enough
from profkit.runtime.region.record import RegionRecord


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


@dataclass(frozen=True)
class PassRecord:
    """The result of a pass. `workload_failure`: how the workload failed in all steps, and what it printed."""

    result: PassResult
    workload_failure: str | None = None
    limit: float | None = None  # seconds after which a step was ended; None: each ended by itself
    runs_well: int = 0  # how often the workload ended well


def run_pass(plan: PassPlan, settings: RunSettings) -> PassRecord:
    """Run the steps of `plan`. The files of one step stay, whatever becomes of the next.

    Never raises for a tool or a workload that failed: that is a result. KeyboardInterrupt passes through.
    """
    if plan.skipped is not None:
        return PassRecord(plan.skipped_result())
    begin = time.monotonic()
    run = _run_side_by_side if plan.parallel and len(plan.steps) > 1 else _run_in_order
    recorded, problem = run(plan.steps, settings)
    artifacts = tuple(a for s in plan.steps for a in s.artifacts if (settings.folder / a).exists())
    faults = {
        outcome.step.name: fault
        for outcome in recorded
        if (fault := _find_fault(outcome, settings)) is not None
    }
    fault = problem or next(iter(faults.values()), None)
    reason = Fact.message(fault.reason, fault.code) if fault else None
    if reason is not None and not plan.parallel and 0 < len(faults) < len(recorded):
        usable = len(recorded) - len(faults)
        reason = Fact.of("some-runs", reason, names=", ".join(faults), usable=usable, runs=len(plan.steps))
    result = PassResult(
        plan.name,
        plan.tool,
        "finished" if fault is None else "failed",
        reason=reason,
        fix=fault.fix if fault else None,
        seconds=time.monotonic() - begin,
        artifacts=artifacts,
        log=f"logs/{plan.steps[-1].name}.log" if plan.steps else None,
    )
    failures = [_workload_failure(step_outcome) for step_outcome in recorded]
    failed = failures[0] if failures and None not in failures else None
    ended = any(outcome.ran_out for outcome in recorded)
    well = sum(outcome.workload_ok for outcome in recorded)
    return PassRecord(result, failed, settings.timeout if ended else None, well)


def _run_in_order(steps: tuple[Step, ...], settings: RunSettings) -> tuple[list[StepOutcome], Fault | None]:
    outcomes: list[StepOutcome] = []
    for step in steps:
        try:
            outcome = run_step(step, settings)
        except (UsageError, MachineError) as error:
            return outcomes, Fault(error.message, error.fix)
        outcomes.append(outcome)
        if _find_fault(outcome, settings) is not None and not _only_tool_ended(outcome):
            break  # the next step would meet the same fault
    return outcomes, None


def _only_tool_ended(recorded: StepOutcome) -> bool:
    """Return whether the tool ended and not the workload: another step may still succeed.

    A tool that was itself killed takes the workload with it, whose status then says nothing about it.
    """
    file, outcome = recorded.step.workload_status, recorded.outcome
    if file is None or outcome.timed_out:
        return False
    return outcome.returncode < 0 or read_status(file) in (None, 0)


def _run_side_by_side(
    steps: tuple[Step, ...], settings: RunSettings
) -> tuple[list[StepOutcome], Fault | None]:
    quiet = replace(settings, tick=None, note=None)
    tasks = [partial(run_step, step, quiet) for step in steps]
    try:
        return at_once(tasks, len(steps), settings.tick or (lambda _: None)), None
    except (UsageError, MachineError) as error:
        return [], Fault(error.message, error.fix)


def _find_fault(recorded: StepOutcome, settings: RunSettings) -> Fault | None:
    """Return why this step cannot be used; None when it can."""
    outcome, step, folder = recorded.outcome, recorded.step, settings.folder
    if recorded.ran_out and step.cut:
        return None
    if recorded.ran_out:
        ending = f"{step.name} took more than {recorded.limit:.3g} s and was ended"
        has_artifact = any((folder / path).exists() for path in step.artifacts)
        return Fault(f"{ending}; what it had written is kept" if has_artifact else ending, settings.more)
    status = read_status(step.workload_status) if step.workload_status is not None else None
    tool_fault = _tool_fault(recorded)
    if not recorded.workload_ok:
        if tool_fault is not None and not tool_fault.consequence:
            return tool_fault
        if recorded.tool_died or (step.workload_status is not None and status is None):
            ended = f"{step.tool or step.name} {outcome.ending()}, and how the workload ended is not known"
            return Fault(ended, f"see {recorded.log.name}")
        if _OWN_PROFILER.search(recorded.text()):
            return Fault(
                "the program profiles itself, and Python 3.12 and later run one profiler at a time",
                "run it without its own profiler",
            )
        return Fault(f"the workload {recorded.workload_ending()} in {step.name}", f"see {recorded.log.name}")
    if not _ended_as_workload(recorded) and outcome.returncode not in (0, *step.fine):
        return tool_fault or Fault(f"{step.tool or step.name} {outcome.ending()}", f"see {recorded.log.name}")
    if (
        tool_fault is not None
        and step.artifacts
        and not any((folder / path).exists() for path in step.artifacts)
    ):
        return tool_fault  # nsys and ncu end with 0 where they left nothing
    return None


def _tool_fault(recorded: StepOutcome) -> Fault | None:
    """Return the tool's own error, where its text is known."""
    tool = recorded.step.tool
    if tool is None:
        return None
    if (full := recorded.disk_fault()) is not None:
        return full
    code = 0 if _ended_as_workload(recorded) else recorded.outcome.returncode
    return explain_fault(tool, recorded.text(), code)


def _ended_as_workload(recorded: StepOutcome) -> bool:
    """Return whether the tool's exit code only repeats the workload's, as that of ncu and nsys does.

    They repeat a signal to the workload too.
    """
    file, code = recorded.step.workload_status, recorded.outcome.returncode
    status = read_status(file) if file is not None else None
    return status not in (None, 0) and _signal_of(code) == _signal_of(status)


def _workload_failure(recorded: StepOutcome) -> str | None:
    """Return how the workload failed, and what it printed; None if it did not, or the tool may be the cause."""
    file = recorded.step.workload_status
    if recorded.workload_ok or recorded.ran_out or recorded.tool_died:
        return None
    if file is not None and read_status(file) is None:
        return None
    fault = _tool_fault(recorded)
    if fault is not None and not fault.consequence:
        return None
    return _failure_text(recorded)


def _failure_text(recorded: StepOutcome) -> str:
    printed_lines = [line for line in recorded.text().strip().splitlines() if not _VALGRIND.match(line)]
    last = "\n".join(printed_lines[-12:])
    printed = f"; it said:\n{last}" if last else "; it printed nothing"
    return f"the workload {recorded.workload_ending()}{printed}"


def _signal_of(status: int) -> int:
    """Return the signal of a status written as -9, 128 + 9, or 9 as by ncu; else the status itself."""
    return -status if status < 0 else status - 128 if status > 128 else status


# Of cProfile and of sys.monitoring, as CPython 3.12 to 3.14 have it.
_OWN_PROFILER = re.compile(r"Another profiling tool is already active|tool \d+ is already in use")
_END_OF_INPUT = re.compile(r"EOFError|EOF when reading|unexpected end of (?:input|file)", re.IGNORECASE)
_ALREADY_THERE = re.compile(r"(?:FileExistsError|File exists|already exists)[^'\n]*'([^'\n]+)'")
_VALGRIND = re.compile(r"==\d+==")  # begins the lines that valgrind itself prints
MAX_PROCESSES = 200  # a 20 ms program reaches ±1 % long before
REFERENCE_TURNS = 3  # of the reference loop, before and after each process
# Of a program that marks nothing, after which no process is started for the sake of the precision alone.
MORE_SECONDS = 1.5
REGION_SECONDS = 4.0  # the same for one with a region, unless the user wants more


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
        budget: float,
        report: Callable[[tuple[Timing, ...]], None],
        *,
        thorough: bool = False,
        patient: bool = False,
    ) -> None:
        """Set up the runs.

        `budget` is the wall seconds for processes beyond the planned ones; `thorough` starts all of those, however
        long they take; `patient` goes on until the time is known, or the budget is spent. `report` gets what is known
        after each process, so that a run which dies here keeps it.
        """
        self._plan, self._budget = plan, budget
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
            if done and runs.kind == "process" and (enough or runs.is_known(self._budget)):
                return None
            return steps[done]
        alone = len(steps) == 1 and runs.kind == "benchmark"  # it samples until it knows, by itself
        usual = MORE_SECONDS if runs.kind == "process" else REGION_SECONDS
        all_of_it = self._patient or (self._thorough and runs.kind != "process")
        more = self._budget if all_of_it else min(self._budget, usual)
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
    gone: float = 0.0  # wall seconds of them together, with what profkit does between them
    elsewhere: int = 0  # runs of the workload in other passes that ended well
    _since: float = 0.0  # when that was last counted
    reference: ReferenceLoop = field(default_factory=ReferenceLoop)
    outcomes: list[ProcessOutcome] = field(default_factory=list)
    disturbances: list[Disturbance] = field(default_factory=list)
    timings: tuple[Timing, ...] = ()
    endless: tuple[Fact, ...] = ()

    def begin(self, most: float | None) -> None:
        """Begin, or go on after other passes; all further processes may take `most` seconds."""
        self._since = time.monotonic()
        self.most = self.gone + most if most is not None else None

    @property
    def kind(self) -> str:
        """Return what the times are of: whole processes, or what they mark."""
        return self.timings[0].kind

    def is_known(self, budget: float) -> bool:
        """Return whether the time is known, so that no more processes are needed."""
        return _is_known(self.timings[0], self.gone, self.precision, budget)

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
    text = _failure_text(recorded)
    raise WorkloadError(text, _fix_of(text, step, settings))


def _fix_of(text: str, step: Step, settings: RunSettings) -> str | None:
    """Return what helps a workload that failed with this text under nothing but our environment."""
    # Triton keeps what it tuned as JSON, and raises where that is impossible. profkit had switched this on.
    if "TRITON_CACHE_AUTOTUNING" in step.env and "is not JSON serializable" in text:
        return "export TRITON_CACHE_AUTOTUNING=0"
    if settings.given is None and _END_OF_INPUT.search(text) is not None:
        read = shlex.quote(f"{shlex.join(step.argv)} < FILE")
        return f"its standard input is empty here: profkit profile -- sh -c {read}"
    return None


def _failed_again(fault: WorkloadError, step: Step, times: int) -> WorkloadError:
    """Return the failure of a workload that ran well before: its own leftovers may be in the way."""
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
    """Return what is known so far: by the workload's own marks, else by whole processes."""
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


def _is_known(timing: Timing, gone: float, precision: float, budget: float) -> bool:
    if timing.kind == "process":
        return is_enough(timing.processes[0].seconds, precision, gone, budget)
    centre = combine_processes(tuple(process.seconds for process in timing.processes))
    if centre is None or centre.low is None or centre.high is None:
        return gone >= budget
    return gone >= budget or (centre.high - centre.low) / 2 <= precision * centre.median


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


def needs_peaks(document: RunDocument) -> bool:
    """Return whether any result can be compared with the machine's peaks: counted, or declared by the workload."""
    counted = any(
        reading.metric in ("flops", "dram.bytes", "dram.read") and reading.value is not None
        for reading in document.readings
    )
    return counted or any(timing.flops or timing.bytes for timing in document.timings)
