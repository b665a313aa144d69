"""Records one report: runs a workload under one profiler, by the recipe of that profiler."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

from profkit.backends.artifacts import run_files
from profkit.core.codec import from_plain_data, to_plain_data
from profkit.core.errors import (
    Interrupted,
    MachineError,
    ProfkitError,
    Progress,
    UsageError,
    WorkloadError,
    writing,
)
from profkit.core.files.names import FileNames
from profkit.core.files.safe_folder import (
    TemporaryFolder,
    chown_to_sudo_user,
    copy_into,
    is_own,
    is_shared,
)
from profkit.core.process import read_status
from profkit.core.signals import defer_interrupts, raise_on_signals
from profkit.core.standard_input import StandardInput, given_input
from profkit.core.types import Json
from profkit.execution.places.there import Home, serve
from profkit.hardware.gpu_locks import lock_gpus
from profkit.hardware.machine import read_machine
from profkit.profilers.profiler import RecordedKind, Recorder, RecordRequest
from profkit.profilers.registry import PROFILERS, explain_fault
from profkit.profiling.doctor import diagnose
from profkit.profiling.profile import ProfileOptions, profile_workload
from profkit.profiling.run_steps import RunSettings, StepOutcome, entered_region, is_full, run_step
from profkit.profiling.workload import describe_workload, seems_marked
from profkit.reporting.facts import fact_text
from profkit.runtime.passes.command import python_version
from profkit.runtime.passes.secrets import mask_command
from profkit.runtime.passes.shown_command import shown_line


@dataclass(frozen=True)
class RecordOptions:
    """The options of `profkit record`.

    `what` is recorded, where the tool has several. `timeout` is in wall seconds. `kernel` names the only kernel
    to count (a part of its name is enough). `force`: replace a report that exists already.
    """

    tool: str
    report: Path
    command: tuple[str, ...]
    what: RecordedKind = "samples"
    kernel: str | None = None
    timeout: float | None = None
    force: bool = False


def record_report(options: RecordOptions, progress: Progress, *, take_input: bool = False) -> Path:
    """Record the report, and return its path.

    `take_input`: standard input is the user's, and the workload gets it. Raises UsageError (exists already,
    cannot be written, no such tool), MachineError (the tool is not here or was refused) and WorkloadError (the
    workload failed; what the tool wrote all the same is kept).
    """
    tool, report = options.tool, options.report
    workload = describe_workload(options.command)
    recorder = find_recorder(tool)
    if options.kernel is not None and not recorder.picks_kernel:
        able = (p.name for p in PROFILERS.values() if p.recorder is not None and p.recorder.picks_kernel)
        raise UsageError(
            f"{tool} cannot pick one kernel", f"omit --kernel, or use --tool {' or '.join(able)}"
        )
    check_target(report, options.force, recorder)
    version = python_version(workload.python) if workload.python is not None else None
    machine = read_machine()
    with (
        raise_on_signals(),
        _input_of(options, progress) if take_input else contextlib.nullcontext(StandardInput()) as given,
        lock_gpus(recorder.device_ids(), progress),
        TemporaryFolder() as folder,
    ):
        if given.note is not None:
            progress.note(fact_text(given.note))
        progress.begin(f"record with {tool}", shown_line(options.command))
        request = RecordRequest(
            options.what,
            options.command,
            _where_to_write(report, Path(folder)),
            Path(folder, "1"),
            machine,
            marked=seems_marked(workload),
            python=version[:2] if version is not None else None,
            kernel=options.kernel,
            timeout=options.timeout,
        )
        recorded = _record(request, recorder, given.file, progress)
        if recorder.follows_region and recorded.workload_ok:
            marked = entered_region([recorded.step])  # until now it was a guess
            if marked != request.marked:
                progress.note(
                    "it marks a region: recording again" if marked else "it marks no region: recording again"
                )
                request.report.unlink(missing_ok=True)  # perf would keep it as report.old
                request = replace(request, marked=marked, scratch=Path(folder, "2"))
                recorded = _record(request, recorder, given.file, progress)
        try:
            for remark in recorder.collect(request) if recorder.collect is not None else ():
                progress.note(remark)
        except MachineError:  # there may be no report because the workload failed: the error below says so
            if recorded.workload_ok:
                raise
        _bring(request.report, report)
        _raise_faults(recorded, tool, report)
    progress.end(f"{recorded.outcome.seconds:.1f} s")
    return report


def _input_of(options: RecordOptions, progress: Progress) -> contextlib.AbstractContextManager[StandardInput]:
    words = shlex.join(["profkit", "record", "--tool", options.tool, "--report", str(options.report)])
    return given_input(words, options.command, progress)


def find_recorder(tool: str) -> Recorder:
    """Return the recorder of `profkit record --tool`. Raises UsageError for a tool without one."""
    profiler = PROFILERS.get(tool)
    if profiler is None or profiler.recorder is None:
        names = ", ".join(profiler.name for profiler in PROFILERS.values() if profiler.recorder is not None)
        raise UsageError(f"profkit cannot record with {tool!r}, only with {names}", "--tool NAME")
    return profiler.recorder


def report_files(tool: str, report: str) -> FileNames:
    """Return the files that recording with the tool may write as a report of this name."""
    recorder = find_recorder(tool)
    return FileNames((report, *(recorder.report_names(report) if recorder.report_names is not None else ())))


def _where_to_write(report: Path, private: Path) -> Path:
    """Return the report's own place, or a private one.

    Private where another user may put a link there while the tool writes.
    """
    if sys.platform != "linux" or not is_shared(report.parent):  # elsewhere a recording may be a folder
        return report
    (private / "report").mkdir()
    return private / "report" / report.name


def _bring(written: Path, report: Path) -> None:
    """Give what the tool wrote to the user, and copy it to its place. Raises MachineError."""
    chown_to_sudo_user(written)
    if written == report or not written.is_file():
        return
    with writing(report, "df -h   (or choose another place)"):
        copy_into(written, report)


def _record(
    request: RecordRequest, recorder: Recorder, given: Path | None, progress: Progress
) -> StepOutcome:
    (request.scratch / "logs").mkdir(parents=True)
    step = recorder.step(request)
    settings = RunSettings(
        request.scratch,
        timeout=request.timeout,
        tick=progress.tick,
        note=progress.note,
        hidden=mask_command(request.command)[1],
        given=given,
    )
    try:
        return run_step(step, settings)
    except KeyboardInterrupt:
        progress.fail("interrupted")
        raise Interrupted("interrupted; the report may be incomplete") from None


def check_target(report: Path, force: bool, recorder: Recorder) -> None:
    """Raise UsageError where the report must not or cannot be written there."""
    if report.is_symlink() and not report.exists():
        raise UsageError(f"{report} is a broken link: its target would be created", "choose another name")
    if report.is_symlink() and os.geteuid() == 0 and not is_own(report.lstat().st_uid):
        raise UsageError(
            f"{report} is a link of another user, which root does not follow", "choose another name"
        )
    if report.exists() and not force:
        raise UsageError(f"{report} exists already", "choose another name, or add --force")
    if recorder.check_target is not None:
        recorder.check_target(report)
    elif report.is_dir():
        raise UsageError(f"{report} is a folder", "choose another name")
    if not report.parent.is_dir():
        raise UsageError(
            f"{report} cannot be written: there is no folder {report.parent}",
            f"mkdir -p {shlex.quote(str(report.parent))}",
        )


def _raise_faults(recorded: StepOutcome, tool: str, report: Path) -> None:
    outcome = recorded.outcome
    if recorded.full_disk is None and outcome.returncode not in (0, *recorded.step.fine):
        recorded = replace(recorded, full_disk=report.parent if is_full(report.parent) else None)
    fault = recorded.disk_fault() or explain_fault(tool, recorded.text(), outcome.returncode)
    has_report = report.is_dir() or (report.is_file() and report.stat().st_size > 0)
    written = f"; what {tool} had written is in {report}" if has_report else ""
    if recorded.ran_out:
        raise WorkloadError(f"the workload {recorded.ending()}{written}", "--timeout SECONDS")
    if fault is not None and fault.consequence and not recorded.workload_ok:
        fault = None
    if outcome.returncode not in (0, *recorded.step.fine) and fault is not None:
        raise MachineError(f"{tool}: {fault.reason}", fault.fix)
    if not recorded.workload_ok:
        last = "\n".join(recorded.text().strip().splitlines()[-8:])
        printed = f"; it said:\n{last}" if last else ""
        status = recorded.step.workload_status
        if recorded.tool_died or (status is not None and read_status(status) is None):
            unknown = f"{tool} {outcome.ending()}, and how the workload ended is not known{written}{printed}"
            raise MachineError(unknown, f"profkit doctor   (tries {tool})")
        raise WorkloadError(f"the workload {recorded.workload_ending()}{written}{printed}")
    if not written and fault is not None:  # ncu and nsys end with 0 where there was nothing to record
        raise MachineError(f"{tool}: {fault.reason}", fault.fix)
    if not written:
        raise MachineError(f"{tool} left no report: {recorded.text().strip()[-300:] or 'it printed nothing'}")


def profile(requests: IO[bytes], answers: IO[bytes], run: Path, data: Any) -> None:
    """Profile at this place; `data` are ProfileOptions. The run's folder is sent back, also that of a failed run."""
    options = replace(from_plain_data(ProfileOptions, data), output=run / "out")

    def work(home: Home) -> Json:
        _check_python(options.command)
        try:
            _, folder = profile_workload(options, home, page=False)
        except ProfkitError as fault:
            if fault.run is not None:
                _send(home, fault.run, run_files())
            raise
        _send(home, folder, run_files())
        return None

    serve(requests, answers, work)


def record(requests: IO[bytes], answers: IO[bytes], run: Path, data: Any) -> None:
    """Record at this place; `data` are RecordOptions. The report is sent back, also an incomplete one after a fault.

    The report may be a folder.
    """
    options = from_plain_data(RecordOptions, {**data, "report": run / "out" / data["report"]})

    def work(home: Home) -> Json:
        _check_python(options.command)
        try:
            record_report(options, home)
        finally:
            _send(home, run / "out", report_files(options.tool, data["report"]))
        return None

    serve(requests, answers, work)


def doctor(requests: IO[bytes], answers: IO[bytes], run: Path, data: Any) -> None:
    """Run the doctor at this place; `data` is the backend's name, the result are the checks."""
    del run
    serve(requests, answers, lambda home: to_plain_data(diagnose(data, home)))


def _check_python(command: Sequence[str]) -> None:
    """Raise UsageError where the workload needs a `python` that is not on this machine's PATH."""
    name = command[0] if command else ""
    if name in ("python", "python3") and shutil.which(name) is None:
        raise UsageError(
            f"there is no {name} on PATH; profkit was started by {sys.executable}",
            f"--on-python {shlex.quote(sys.executable)}, which is `python` for the workload, too",
        )


def _send(home: Home, folder: Path, names: FileNames) -> None:
    with defer_interrupts():  # a Ctrl-C must not lose what was measured
        home.begin("bring back", "what was measured")
        home.send_folder(folder, names)
        home.end("complete")
