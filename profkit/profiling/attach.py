"""Implements `profkit profile --pid`: samples a running program for some seconds, and leaves it unharmed.

The samplers are processes of their own which never stop it, and end by themselves, whatever becomes of
profkit.
"""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

from profkit.analysis.judge.target import Target
from profkit.analysis.summaries.host import time_split
from profkit.backends import DEFAULT, PassFindings, RunContext
from profkit.backends.attached import Attached, attach, is_python
from profkit.core.errors import Interrupted, MachineError, ProfkitError, Progress, UsageError
from profkit.core.formatting import cut_right
from profkit.core.run_folder import create_run_folder, short_path, write_run
from profkit.core.signals import defer_interrupts, raise_on_signals
from profkit.core.types import (
    Fact,
    PassResult,
    RunDocument,
    RunState,
    Workload,
)
from profkit.hardware.machine import read_machine
from profkit.profilers.programs import last_line
from profkit.profiling.profile import kept_at_hand, write_reports
from profkit.profiling.run_passes import run_pass
from profkit.profiling.run_steps import RunSettings
from profkit.profiling.summarize import judge_document, targets_for
from profkit.profiling.timing_pass import usage_readings
from profkit.profiling.workload import default_name
from profkit.runtime.passes.secrets import mask_command

if TYPE_CHECKING:
    import psutil

    from profkit.core.process_tree import TreeUse


LISTS = "pgrep -af python   (lists them)"
_KERNEL_THREAD = 0x200000  # PF_KTHREAD, linux/sched.h
PATIENCE = 60.0  # seconds that a tool may take to write its file after its time limit


@dataclass(frozen=True)
class AttachOptions:
    """The process to sample, and for how many seconds; the other options are those of `profile`."""

    pid: int
    seconds: float = 20.0
    targets: Path | None = None
    output: Path = Path("reports")
    name: str | None = None
    keep_arguments: bool = False


def profile_running(options: AttachOptions, progress: Progress) -> tuple[RunDocument, Path]:
    """Profile a running process, and return the judged run and its folder.

    After a Ctrl-C, the run contains what was recorded until then. Raises UsageError if there is no such process, and
    MachineError if it must not be inspected or a tool fails.
    """
    target = _find(options)
    root = launched_python(target) or working_child(target)
    watch = _Watch(root)
    workload, hidden = _describe(root, options)
    attached = attach(root.pid, options.seconds)
    targets = targets_for(DEFAULT, options.targets, workload.name)
    name = create_run_folder(options.output.absolute(), workload.name, DEFAULT, datetime.now())
    context = RunContext(workload, read_machine(), name, "standard", None, 0.01, 0.0, hidden=hidden)
    with kept_at_hand(context, name) as context:
        if root is not target:
            progress.note(f"process {target.pid} is {target.name()}: its child {root.pid} is profiled")
            of = Fact.of("child-of-launcher", pid=target.pid, name=target.name(), child=root.pid)
        document = _look_at(attached, watch, context, targets, progress, (of,) if root is not target else ())
    return document, Path(short_path(name))


LAUNCHER = 0.1  # of its children's processor time: a program that used less is taken to wait for them only


def launched_python(process: psutil.Process) -> psutil.Process | None:
    """Return the Python program that a launcher (a shell, `uv run`, `timeout`, tini, npm) waits for; else None.

    The first process of most containers is a launcher, and the user wants to know of its program. Raises
    UsageError, with the line for each, where it has several.
    """
    import psutil

    if is_python(process.pid):
        return None
    below = _topmost_python(process)
    try:
        own_seconds, theirs = (
            sum(sum(member.cpu_times()[:2]) for member in processes) for processes in ([process], below)
        )
    except psutil.Error:
        return None
    if not below or own_seconds > LAUNCHER * theirs:
        return None
    if len(below) == 1:
        return below[0]
    listed = "\n".join(
        f"profkit profile --pid {member.pid}   ({_command_of(member)})" for member in below[:MAX_LISTED]
    )
    raise UsageError(
        f"process {process.pid} is {process.name()} and waits for {len(below)} Python programs", listed
    )


def working_child(process: psutil.Process) -> psutil.Process:
    """Return the process that does the work if its parents only wait for it, as `sh -c` and `make` do.

    Only for programs of machine code; for Python see `launched_python`. Return the process itself if it works, too, has
    several children that work, or must not be inspected.
    """
    import psutil

    with contextlib.suppress(psutil.Error, OSError):
        while not is_python(process.pid):
            used = {child: sum(child.cpu_times()[:2]) for child in process.children()}
            working = [child for child, seconds in used.items() if seconds > 0]
            own_seconds = sum(process.cpu_times()[:2])
            if len(working) != 1 or own_seconds > LAUNCHER * used[working[0]]:
                break
            process = working[0]
    return process


MAX_LISTED = 5
_COMMAND = 60  # characters of a command line


def _command_of(process: psutil.Process) -> str:
    """Return the command line of a process, without secrets, or its name."""
    import psutil

    try:
        words = mask_command(process.cmdline())[0] or [process.name()]
    except psutil.Error:
        return "it has ended"
    return cut_right(" ".join(" ".join(words).split()), _COMMAND)


def _topmost_python(process: psutil.Process) -> list[psutil.Process]:
    """Return the Python programs below a process, without those that these programs have started themselves."""
    import psutil

    programs: list[psutil.Process] = []
    with contextlib.suppress(psutil.Error, OSError):
        for child in process.children():
            with contextlib.suppress(psutil.Error, OSError):
                programs += [child] if is_python(child.pid) else _topmost_python(child)
    return programs


def _look_at(
    attached: Attached,
    watch: _Watch,
    context: RunContext,
    targets: Sequence[Target],
    progress: Progress,
    notes: tuple[Fact, ...] = (),
) -> RunDocument:
    """Record, read and judge into the folder of the run, and return the document, which is also written there.

    Raises MachineError where the tool fails.
    """
    workload, folder = context.workload, context.folder
    begun = datetime.now(timezone.utc).isoformat(timespec="seconds")
    document = RunDocument(workload.name, DEFAULT, "running", workload, begun, machine=context.machine)
    write_run(folder, document)
    plan = replace(attached.plan, steps=attached.steps(folder / "artifacts"))
    progress.begin(plan.name, f"{plan.tool}, {attached.seconds:g} s of process {attached.pid}")

    def look(gone: float) -> None:
        if gone < attached.seconds:
            attached.look(watch.look(gone))
        progress.tick(gone)

    done = PassResult(plan.name, plan.tool, "interrupted", reason=Fact("cut-off"))
    with raise_on_signals(), contextlib.suppress(KeyboardInterrupt, Interrupted):
        done = run_pass(plan, RunSettings(folder, "/", attached.seconds + PATIENCE, look)).result
    with defer_interrupts():  # everything is measured, and a Ctrl-C must not lose it
        try:
            if done.state == "failed":
                message = last_line((folder / str(done.log)).read_text(errors="replace"))
                shown = short_path(context.name or folder)
                raise MachineError(
                    f"{plan.tool} failed: {message}", f"less {shlex.quote(f'{shown}/{done.log}')}"
                )
            findings = attached.read(context, watch.seconds, watch.cpu)
        except ProfkitError as fault:
            progress.fail("failed")
            failure = context.shown(fault.message)
            write_run(folder, replace(document, state="failed", failure=failure))
            fault.run = context.name or folder
            raise
        state: RunState = "interrupted" if done.state == "interrupted" else "complete"
        progress.end("done" if state == "complete" else "interrupted; what was recorded is kept")
        document = replace(
            document, state=state, tools={str(plan.tool): attached.version}, facts=findings.facts
        )
        findings = replace(findings, notes=(*notes, *findings.notes))
        document = judge_document(_with_findings(document, watch, findings, done), targets)
        document = context.shown(document)
        if (why := write_reports(document, folder)) is not None:
            progress.note(context.shown(why))
    return document


def _with_findings(
    document: RunDocument, watch: _Watch, findings: PassFindings, done: PassResult
) -> RunDocument:
    busy = watch.usage[-1][1] / watch.seconds if watch.seconds > 0 else 0.0
    goes_on = not _has_ended(watch.root)
    values = {"pid": watch.root.pid, "seconds": watch.seconds}
    note = Fact.of("watched-and-goes-on" if goes_on else "watched-to-its-end", **values)
    return replace(
        document,
        passes=(replace(done, artifacts=findings.artifacts),),
        readings=usage_readings(watch.peak, busy, "psutil"),
        time_split=time_split(watch.usage, None, watch.use),
        profiles=findings.profiles,
        timeline=findings.timeline,
        sampled=(findings.sampled,) if findings.sampled is not None else (),
        notes=(note, *findings.notes),
    )


def _find(options: AttachOptions) -> psutil.Process:
    """Find the process, and check that it may be inspected. Raises UsageError and MachineError."""
    import psutil

    pid, scope = options.pid, Path("/proc/sys/kernel/yama/ptrace_scope")
    if not 1 <= options.seconds <= 86_400:
        raise UsageError(f"--seconds {options.seconds:g} is not between 1 s and a day", "--seconds 20")
    try:
        process = psutil.Process(pid)
        owner = None if os.geteuid() in (0, process.uids().real) else process.username()
        if pid == os.getpid():
            raise ValueError
    except (psutil.NoSuchProcess, ValueError, OverflowError):
        raise UsageError(f"there is no process {pid} here", LISTS) from None
    if _has_ended(process):
        raise UsageError(f"process {pid} has ended, but its parent has not collected its exit status", LISTS)
    if _is_of_kernel(pid):
        raise UsageError(f"process {pid} is a kernel thread, {process.name()}: it runs no program", LISTS)
    try:
        is_python(pid)
        os.close(os.open(f"/proc/{pid}/mem", os.O_RDONLY))  # asks for the right that every debugger needs
    except FileNotFoundError:
        raise MachineError("--pid reads /proc, which only Linux has") from None
    except (PermissionError, ProcessLookupError):
        limit = int(scope.read_text()) if os.geteuid() != 0 and scope.exists() else 0
        raise MachineError(*why_refused(pid, owner, limit)) from None
    return process


def _has_ended(process: psutil.Process) -> bool:
    """Return whether a process is gone, or is a zombie until its parent collects its exit status."""
    import psutil

    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def _is_of_kernel(pid: int) -> bool:
    """Return whether a process is a kernel thread, without memory of its own (its flags in proc(5))."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        _, _, row = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")
        return bool(int(row.split()[6]) & _KERNEL_THREAD)
    return False


def why_refused(pid: int, owner: str | None, scope: int) -> tuple[str, str]:
    """Return why the system does not let us inspect a process, and the command that changes that.

    `owner` is the user who owns it, if that is another user. `scope` is Yama's ptrace_scope, 0 if it does not limit us.
    """
    if owner is not None:
        retry = f'sudo env "PATH=$PATH" profkit profile --pid {pid}'
        return f"process {pid} belongs to {owner}: another user may not inspect it", retry
    if scope > 0:
        reason = f"kernel.yama.ptrace_scope is {scope}: only its parent and root may inspect a process"
        return (
            reason,
            "sudo sysctl kernel.yama.ptrace_scope=0" if scope < 3 else "reboot   (3 holds until then)",
        )
    reason = f"this container has no right to inspect process {pid} (CAP_SYS_PTRACE)"
    return reason, "docker run --cap-add SYS_PTRACE   (Kubernetes: securityContext.capabilities.add)"


def _describe(root: psutil.Process, options: AttachOptions) -> tuple[Workload, tuple[str, ...]]:
    """Return the process as a workload, and the secrets in its command line."""
    words, python = root.cmdline() or [root.name()], is_python(root.pid)
    shown, hidden = (tuple(words), ()) if options.keep_arguments else mask_command(words)
    name = options.name or default_name(words)
    program = shown[0] if python else root.exe()
    return Workload((program, *shown[1:]), name, root.cwd(), root.exe() if python else None), hidden


@dataclass
class _Watch:
    """Records what a process and those that it started use, by reading the system's counts now and then."""

    root: psutil.Process
    cpu: dict[int, float] = field(default_factory=dict)  # processor seconds of each since the first reading
    usage: list[tuple[float, float, float]] = field(default_factory=list)  # as `time_split` takes it
    peak: int = 0  # bytes of memory
    use: TreeUse | None = None
    _seen: dict[int, list[tuple[float, ...]]] = field(
        default_factory=dict
    )  # the first and the last reading of each

    def look(self, gone: float) -> list[int]:
        """Read the counts of all processes, and return their numbers; none where they have ended."""
        import psutil

        from profkit.core.process_tree import TreeUse, seconds_queued

        resident, threads, alive = 0, 0, [self.root.pid]
        with contextlib.suppress(psutil.Error):
            alive += [child.pid for child in self.root.children(recursive=True)]
        for pid in alive:
            with contextlib.suppress(psutil.Error, OSError):
                member = psutil.Process(pid)
                times, io = member.cpu_times(), member.io_counters()
                counts = (io.read_chars, io.write_chars, io.read_count + io.write_count)
                now = (times.user + times.system, seconds_queued(pid), *counts)
                self._seen.setdefault(pid, [(0.0,) * 5 if self.usage else now, now])[1] = now
                resident, threads = resident + member.memory_info().rss, threads + member.num_threads()
        if not self._seen:
            return []  # it has ended
        since = {
            pid: [last - first for first, last in zip(*looks, strict=True)]
            for pid, looks in self._seen.items()
        }
        self.cpu = {pid: used[0] for pid, used in since.items()}
        cpu, queued, read, written, calls = (sum(column) for column in zip(*since.values(), strict=True))
        self.usage.append((gone, cpu, queued))
        self.peak = max(self.peak, resident)
        self.use = TreeUse(
            int(read), int(written), int(calls), max(threads, self.use.threads if self.use else 0)
        )
        return alive

    @property
    def seconds(self) -> float:
        """Return the seconds until the last reading."""
        return self.usage[-1][0] if self.usage else 0.0
