"""Carries out one pass: its steps in order (or side by side where they cannot disturb each other)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

from profkit.core.errors import Fault, MachineError, UsageError
from profkit.core.process import describe_status
from profkit.core.signals import defer_interrupts
from profkit.core.status import read_status
from profkit.core.types import PassPlan, PassResult, Step
from profkit.profilers.registry import explain
from profkit.profiling.recording.step import Recorded, record_step


@dataclass(frozen=True)
class Setting:
    """What holds for every step of a run."""

    folder: Path
    cwd: str
    timeout: float | None = None
    tick: Callable[[float], None] | None = None
    note: Callable[[str], None] | None = None


def skipped(plan: PassPlan) -> PassResult:
    """The result of a pass that the plan leaves out."""
    return PassResult(plan.name, plan.tool, "skipped", reason=plan.skipped, fix=plan.fix)


def record_pass(plan: PassPlan, setting: Setting) -> PassResult:
    """Run the steps of `plan`. What one step left stays, whatever becomes of the next.

    Never raises for a tool or a workload that failed: that is a result. KeyboardInterrupt passes through.
    """
    if plan.skipped is not None:
        return skipped(plan)
    begin = time.monotonic()
    limit = _shorter(setting.timeout, plan.limit)
    if plan.parallel and len(plan.steps) > 1:
        recorded, problem = _side_by_side(plan.steps, setting, limit)
    else:
        recorded, problem = _in_order(plan.steps, setting, limit)
    artifacts = tuple(a for s in plan.steps for a in s.artifacts if (setting.folder / a).exists())
    faults = {one.step.name: fault for one in recorded if (fault := _fault(one, setting.folder)) is not None}
    fault = problem or next(iter(faults.values()), None)
    reason = fault.reason if fault else None
    if reason is not None and not plan.parallel and 0 < len(faults) < len(recorded):
        kept = len(recorded) - len(faults)
        reason = f"{reason} (in {', '.join(faults)}; what {kept} of {len(plan.steps)} runs counted is kept)"
    return PassResult(
        plan.name,
        plan.tool,
        "finished" if fault is None else "failed",
        reason=reason,
        fix=fault.fix if fault else None,
        seconds=time.monotonic() - begin,
        artifacts=artifacts,
        log=f"logs/{plan.steps[-1].name}.log" if plan.steps else None,
    )


def _in_order(
    steps: tuple[Step, ...], setting: Setting, limit: float | None
) -> tuple[list[Recorded], Fault | None]:
    done: list[Recorded] = []
    for step in steps:
        try:
            one = record_step(
                step,
                setting.folder,
                cwd=setting.cwd,
                timeout=limit,
                tick=setting.tick,
                note=setting.note,
            )
        except (UsageError, MachineError) as error:
            return done, Fault(error.message, error.fix)
        done.append(one)
        if _fault(one, setting.folder) is not None and not _only_the_tool(one):
            break  # the next step would meet the same fault
    return done, None


def _only_the_tool(recorded: Recorded) -> bool:
    """Whether the tool ended and not the workload: another step's events, or its luck, may differ.

    A tool that was itself killed takes the workload with it, whose status then says nothing about it.
    """
    file, outcome = recorded.step.workload_status, recorded.outcome
    if file is None or outcome.timed_out:
        return False
    return outcome.returncode < 0 or read_status(file) in (None, 0)


def _side_by_side(
    steps: tuple[Step, ...], setting: Setting, limit: float | None
) -> tuple[list[Recorded], Fault | None]:
    cancel = threading.Event()  # a Ctrl-C reaches only the main thread
    with ThreadPoolExecutor(max_workers=len(steps)) as pool:
        futures = [
            pool.submit(
                record_step,
                step,
                setting.folder,
                cwd=setting.cwd,
                timeout=limit,
                tick=setting.tick if number == 0 else None,
                cancel=cancel,
            )
            for number, step in enumerate(steps)
        ]
        try:
            return [future.result() for future in futures], None
        except (UsageError, MachineError) as error:
            return [], Fault(error.message, error.fix)
        except BaseException:
            cancel.set()
            with defer_interrupts():  # another Ctrl-C must not leave the threads with their processes behind
                wait(futures)
            raise


def _fault(recorded: Recorded, folder: Path) -> Fault | None:
    """Why this step cannot be used; None when it can."""
    outcome, step = recorded.outcome, recorded.step
    if recorded.ran_out:
        return Fault(
            f"{step.name} {recorded.ending()}; what it had written is kept",
            "give it more time (--timeout SECONDS) or a smaller input",
        )
    told = read_status(step.workload_status) if step.workload_status is not None else None
    # ncu and nsys end as the workload did: a signal that it sent to itself did not kill the tool
    code = 0 if told and _signal(outcome.returncode) == _signal(told) else outcome.returncode
    known = explain(step.tool, recorded.text(), code) if step.tool is not None else None
    if not recorded.workload_ok:
        if known is not None:
            return known
        if step.workload_status is not None and told is None:
            ended = f"{step.tool or step.name} {outcome.ending()}, and how the workload ended is not known"
            return Fault(ended, f"see {recorded.log.name}")
        return Fault(
            f"the workload {describe_status(recorded.status)} in {step.name}", f"see {recorded.log.name}"
        )
    if outcome.returncode != 0 and outcome.returncode not in step.fine:
        return known or Fault(f"{step.tool or step.name} {outcome.ending()}", f"see {recorded.log.name}")
    if known is not None and step.artifacts and not any((folder / path).exists() for path in step.artifacts):
        return known  # nsys and ncu end with 0 where they left nothing
    return None


def _signal(status: int) -> int:
    """The signal behind a status, however it is written: -9, 128 + 9, or 9 as ncu has it; else the status itself."""
    return -status if status < 0 else status - 128 if status > 128 else status


def _shorter(one: float | None, other: float | None) -> float | None:
    limits = [limit for limit in (one, other) if limit is not None]
    return min(limits) if limits else None
