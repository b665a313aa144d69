"""Runs a pass of a plan, step by step, and decides whether it failed, and by whose fault."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, replace
from functools import partial

from profkit.core.errors import (
    Fault,
    MachineError,
    UsageError,
)
from profkit.core.process import read_status
from profkit.core.types import (
    Fact,
    PassPlan,
    PassResult,
    Step,
    message_of,
)
from profkit.profilers.registry import explain_fault
from profkit.profiling.run_steps import RunSettings, StepOutcome, at_once, run_step

# The errors of cProfile and of sys.monitoring in CPython 3.12 to 3.14.
_OWN_PROFILER = re.compile(r"Another profiling tool is already active|tool \d+ is already in use")
_VALGRIND = re.compile(r"==\d+==")  # begins the lines that valgrind itself prints
_CRASHED = re.compile(r"\bSIG(?:SEGV|ABRT|BUS|ILL)\b")


@dataclass(frozen=True)
class PassRecord:
    """The result of a pass. `workload_failure`: how the workload failed in all steps, and what it printed."""

    result: PassResult
    workload_failure: str | None = None
    limit: float | None = None  # seconds after which a step was ended; None: each ended by itself
    runs_well: int = 0  # how often the workload ended well


def run_pass(plan: PassPlan, settings: RunSettings) -> PassRecord:
    """Run the steps of `plan`. The files of a step stay, even if the next one fails.

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

    A tool that was killed takes the workload with it; the status of the workload then says nothing about the workload.
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
    return failure_text(recorded)


def failure_text(recorded: StepOutcome) -> str:
    """Return how the workload ended, and the last lines that it printed."""
    printed_lines = [line for line in recorded.text().strip().splitlines() if not _VALGRIND.match(line)]
    last = "\n".join(printed_lines[-12:])
    printed = f"; it said:\n{last}" if last else "; it printed nothing"
    return f"the workload {recorded.workload_ending()}{printed}"


def _signal_of(status: int) -> int:
    """Return the signal of a status written as -9, 128 + 9, or 9 as by ncu; else the status itself."""
    return -status if status < 0 else status - 128 if status > 128 else status


def ended_by_tool(record: PassRecord) -> PassResult:
    """Return the result of a pass; where its program crashed, but ended well elsewhere, the tool is the cause."""
    result = record.result
    crashed = record.workload_failure is not None and _CRASHED.search(message_of(result.reason)) is not None
    if not crashed or result.tool is None or result.reason is None:
        return result
    return replace(result, reason=Fact.of("ended-by-tool", result.reason, name=result.tool))
