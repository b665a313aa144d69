"""The story of one report: a workload under one tool, with the recipe that stands in that tool's folder."""

from __future__ import annotations

import shlex
import tempfile
from importlib import import_module
from importlib.util import find_spec
from inspect import signature
from pathlib import Path
from types import ModuleType

from profkit.core.errors import Interrupted, MachineError, UsageError, WorkloadError
from profkit.core.process import describe_status
from profkit.core.progress import Progress
from profkit.core.run_folder import hand_over
from profkit.core.signals import hurried, interruptible
from profkit.core.status import read_status
from profkit.hardware.machine import read_machine
from profkit.profilers.faults import explain
from profkit.profiling.recording.marks import entered_region
from profkit.profiling.recording.step import Recorded, record_step
from profkit.profiling.workload import describe, seems_marked
from profkit.runtime.passes.interpreter import python_version


def record_report(
    tool: str,
    what: str,
    report: Path,
    command: tuple[str, ...],
    timeout: float | None,
    force: bool,
    progress: Progress,
    kernel: str | None = None,
) -> Path:
    """Leave `report`, and return its path.

    `what` is recorded: samples or counters, where the tool has both. `timeout` is in wall seconds. `kernel` names the
    only kernel to count (ncu; a part of its name is enough). A report that is there already is replaced only with
    `force`. Raises UsageError (exists already, cannot be written), MachineError (the tool is not here or was refused)
    and WorkloadError (the workload failed; what the tool wrote all the same is kept).
    """
    workload = describe(command)
    if (
        find_spec(f"profkit.profilers.{tool}") is None
        or find_spec(f"profkit.profilers.{tool}.recipe") is None
    ):
        raise MachineError(f"profkit does not record with {tool} yet", "--tool perf")
    recipe = import_module(f"profkit.profilers.{tool}.recipe")
    if kernel is not None and "kernel" not in signature(recipe.recipe).parameters:
        raise UsageError(f"{tool} cannot pick one kernel", "leave --kernel out, or --tool ncu")
    if kernel is not None and not kernel.strip():
        raise UsageError("--kernel is empty: a kernel has a name", "leave --kernel out")
    _may_write(report, force, recipe)
    version = python_version(workload.python) if workload.python is not None else None
    machine = read_machine()
    progress.begin(f"record with {tool}", " ".join(command))
    with tempfile.TemporaryDirectory(prefix="profkit-") as folder, interruptible():
        marked = seems_marked(workload)
        for number in ("1", "2"):  # whether it marks a region is a guess, and known after the first time
            scratch = Path(folder, number)
            (scratch / "logs").mkdir(parents=True)
            step = recipe.recipe(
                what,
                command,
                report.absolute(),
                scratch,
                marked=marked,
                python=version[:2] if version is not None else None,
                machine=machine,
                **({"kernel": kernel} if kernel is not None else {}),
                **({"timeout": timeout} if "timeout" in signature(recipe.recipe).parameters else {}),
            )
            try:
                recorded = record_step(step, scratch, timeout=timeout, tick=progress.tick, note=progress.note)
            except KeyboardInterrupt:
                progress.end("interrupted")
                raise Interrupted(_left_behind(recipe, scratch, report)) from None
            if (
                number == "2"
                or getattr(recipe, "WHOLE", False)
                or not recorded.workload_ok
                or entered_region([step]) == marked
            ):
                break
            progress.note("it marks a region: once more" if not marked else "it marks no region: once more")
            marked = not marked
            report.unlink(missing_ok=True)  # perf would keep it beside its own, as report.old
        if hasattr(recipe, "collect"):
            _collect(recipe, scratch, report, recorded, progress)
        hand_over(report)
        _complain(recorded, tool, report)
    progress.end(f"{recorded.outcome.seconds:.1f} s")
    return report


def _collect(recipe: ModuleType, scratch: Path, report: Path, recorded: Recorded, progress: Progress) -> None:
    """Bring the report to where it was asked for; why there is none may be the workload's own failure."""
    try:
        for remark in recipe.collect(scratch, report):
            progress.note(remark)
    except MachineError:
        if recorded.workload_ok:
            raise


def _left_behind(recipe: ModuleType, scratch: Path, report: Path) -> str:
    """What a Ctrl-C left, in words; what the tool had finished by then is brought to where it was asked for."""
    if not hasattr(recipe, "keep"):
        return "interrupted; the report may be incomplete"
    with hurried():
        kept: Path | None = recipe.keep(scratch, report)
        if kept is None:
            return "interrupted; there is no report"
        hand_over(kept)
    return f"interrupted; what was recorded until then is in {kept}"


def _may_write(report: Path, force: bool, recipe: ModuleType) -> None:
    if report.exists() and not force:
        raise UsageError(f"{report} is there already", "choose another name, or add --force")
    if hasattr(recipe, "may_replace"):
        recipe.may_replace(report)
    elif report.is_dir():
        raise UsageError(f"{report} is a folder", "choose another name")
    if not report.parent.is_dir():
        raise UsageError(
            f"{report} cannot be written: there is no folder {report.parent}",
            f"mkdir -p {shlex.quote(str(report.parent))}",
        )


def _complain(recorded: Recorded, tool: str, report: Path) -> None:
    outcome = recorded.outcome
    fault = explain(tool, recorded.text(), outcome.returncode)
    there = report.is_dir() or (report.is_file() and report.stat().st_size > 0)
    left = f"; what {tool} had written is in {report}" if there else ""
    if recorded.ran_out:
        raise WorkloadError(f"the workload {recorded.ending()}{left}", "--timeout SECONDS")
    if fault is not None and fault.consequence and not recorded.workload_ok:
        fault = None
    if outcome.returncode not in (0, *recorded.step.fine) and fault is not None:
        raise MachineError(f"{tool}: {fault.reason}", fault.fix)
    if not recorded.workload_ok:
        last = "\n".join(recorded.text().strip().splitlines()[-8:])
        said = f"; it said:\n{last}" if last else ""
        keeper = recorded.step.workload_status
        if keeper is not None and read_status(keeper) is None:
            untold = f"{tool} {outcome.ending()}, and how the workload ended is not known{left}{said}"
            raise MachineError(untold, f"profkit doctor   (tries {tool})")
        raise WorkloadError(f"the workload {describe_status(recorded.status)}{left}{said}")
    if not left and fault is not None:  # ncu and nsys end with 0 where there was nothing to record
        raise MachineError(f"{tool}: {fault.reason}", fault.fix)
    if not left:
        raise MachineError(f"{tool} left no report: {recorded.text().strip()[-300:] or 'it said nothing'}")
