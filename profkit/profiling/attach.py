"""`profkit profile --pid`: a program that runs already is looked at for some seconds, and goes on unharmed.

What looks at it are processes of their own which never stop it, and end by themselves: whatever becomes of us.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from profkit.analysis.summaries.host import time_split
from profkit.backends import RunContext
from profkit.backends.attached import AttachedNative, AttachedPython, attach, is_python
from profkit.core import process
from profkit.core.errors import MachineError, ProfkitError, Progress, UsageError
from profkit.core.formatting import format_quantity
from profkit.core.run_folder import create_run_folder, short_path, write_run
from profkit.core.signals import defer_interrupts
from profkit.core.types import RUN, PassResult, Reading, RunDocument, Source, Step, Workload
from profkit.hardware.machine import read_machine
from profkit.hardware.nvml import NvmlError, nvml_session
from profkit.profiling.profile import write_reports
from profkit.profiling.summarize import judge_document, targets_for
from profkit.profiling.workload import default_name
from profkit.runtime.passes.secrets import mask_command

if TYPE_CHECKING:
    import psutil

LOOK_PAUSE = 0.25  # seconds between two looks at the processes
PATIENCE = 30.0  # seconds for a tool to write its file when its time is over


@dataclass(frozen=True)
class AttachOptions:
    """Which process is looked at, for how many seconds; the others as of a run that is started here."""

    pid: int
    seconds: float = 20.0
    targets: Path | None = None
    output: Path = Path("reports")
    name: str | None = None
    keep_arguments: bool = False


def profile_running(options: AttachOptions, progress: Progress) -> tuple[RunDocument, Path]:
    """The judged run and its folder; interrupted, it has what was seen until then.

    Raises UsageError where there is no such process, MachineError where it may not be looked at or a tool fails.
    """
    watch = _Watch(_find(options))
    workload, hidden = _describe(watch.root, options)
    attached = attach(options.pid, options.seconds)
    targets = targets_for("cpu", options.targets, workload.name)
    folder = create_run_folder(options.output.absolute(), workload.name, "cpu", datetime.now())
    context = RunContext(workload, read_machine(), folder, "standard", None, 0.01, 0.0, hidden=hidden)
    begun = datetime.now(timezone.utc).isoformat(timespec="seconds")
    document = RunDocument(workload.name, "cpu", "running", workload, begun, machine=context.machine)
    write_run(folder, document)
    progress.begin(attached.name, f"{attached.tool}, {options.seconds:g} s of process {options.pid}")
    try:
        seconds, interrupted = _record(attached, context, options.seconds, watch, progress)
        findings = attached.read(context, seconds, watch.cpu)
    except ProfkitError as fault:
        progress.end("failed")
        write_run(folder, replace(document, state="failed", failure=fault.message))
        fault.run = folder
        raise
    progress.end("interrupted; what was seen is kept" if interrupted else f"done in {seconds:.0f} s")
    end = "goes on" if watch.root.is_running() else "has ended"
    seen = f"Process {options.pid} was looked at for {seconds:.1f} s, with its children, and {end}."
    result = PassResult(
        attached.name, attached.tool, "finished", seconds=seconds, artifacts=findings.artifacts
    )
    document = replace(
        document,
        state="interrupted" if interrupted else "complete",
        tools={attached.tool: attached.version},
        passes=(replace(result, log=f"logs/{attached.name}.log"),),
        readings=watch.readings(),
        time_split=time_split(watch.usage, None, watch.use),
        profiles=findings.profiles,
        sampled=(findings.sampled,) if findings.sampled is not None else (),
        facts=findings.facts,
        notes=(seen, *findings.notes, *watch.device_notes()),
    )
    with defer_interrupts():  # all is measured: a Ctrl-C now must not cost it
        document = judge_document(document, targets)
        if (why := write_reports(document, folder)) is not None:
            progress.note(why)
    return document, Path(short_path(folder))


# ------------------------------------------------------------ the process


def _find(options: AttachOptions) -> psutil.Process:
    """The process, which may be looked into. Raises UsageError and MachineError."""
    import psutil

    pid = options.pid
    if not 1 <= options.seconds <= 86_400:
        raise UsageError(f"--seconds {options.seconds:g} is not between 1 s and a day", "--seconds 20")
    if pid == os.getpid():
        raise UsageError("--pid is profkit itself")
    try:
        found = psutil.Process(pid)
        if found.status() == psutil.STATUS_ZOMBIE:
            raise UsageError(f"process {pid} has ended; its parent has not asked how")
        owner = found.username()
    except (psutil.NoSuchProcess, ValueError, OverflowError):
        raise UsageError(f"there is no process {pid}", "pgrep -af python   (lists them)") from None
    try:
        is_python(pid)
        os.close(os.open(f"/proc/{pid}/mem", os.O_RDONLY))  # asks for the right that every debugger needs
    except FileNotFoundError:
        raise MachineError("--pid reads /proc, which only Linux has") from None
    except (PermissionError, ProcessLookupError):
        ours = os.geteuid() in (0, found.uids().real)
        raise MachineError(*why_refused(pid, owner, ours=ours, scope=_ptrace_scope())) from None
    return found


def why_refused(pid: int, owner: str, *, ours: bool, scope: int) -> tuple[str, str]:
    """Why the system lets nobody look into a process, and the line that changes it. `scope`: Yama's ptrace_scope."""
    if not ours:
        again = f'sudo env "PATH=$PATH" profkit profile --pid {pid}'
        return f"process {pid} is {owner}'s: only {owner} and root may look into it", again
    if scope >= 3:
        return "kernel.yama.ptrace_scope is 3: nobody may look into a process until the next boot", "reboot"
    if scope > 0 and os.geteuid() != 0:
        reason = (
            f"kernel.yama.ptrace_scope is {scope}: a process may be looked into by its parent and root alone"
        )
        return reason, "sudo sysctl kernel.yama.ptrace_scope=0"
    reason = (
        f"the system does not let us look into process {pid}: a container has no right to (CAP_SYS_PTRACE)"
    )
    return reason, "docker run --cap-add SYS_PTRACE   (Kubernetes: securityContext.capabilities.add)"


def _ptrace_scope() -> int:
    try:
        return int(Path("/proc/sys/kernel/yama/ptrace_scope").read_text())
    except (OSError, ValueError):
        return 0


def _describe(root: psutil.Process, options: AttachOptions) -> tuple[Workload, tuple[str, ...]]:
    """The process as a workload, and the secrets of its command line."""
    words, python = root.cmdline() or [root.name()], is_python(root.pid)
    shown, hidden = (tuple(words), ()) if options.keep_arguments else mask_command(words)
    script = [word for word in words[1:2] if python and not word.startswith("-")]  # gunicorn, which ends in no .py
    name = options.name or (Path(script[0]).stem if script else default_name(words))
    program = shown[0] if python else root.exe()
    workload = Workload((program, *shown[1:]), name, root.cwd(), root.exe() if python else None)
    return workload, hidden


# ------------------------------------------------------------ the recording


def _record(
    attached: AttachedPython | AttachedNative,
    context: RunContext,
    seconds: float,
    watch: _Watch,
    progress: Progress,
) -> tuple[float, bool]:
    """Run the tools to their end; the seconds that they looked, and whether Ctrl-C ended them. Raises MachineError."""
    steps = attached.steps(context)
    with defer_interrupts() as stop, contextlib.ExitStack() as files:
        children = [_start(step, context.folder, files) for step in steps]
        begin = time.monotonic()
        told = None
        while any(child.poll() is None for child in children):
            stop.wait(LOOK_PAUSE) if told is None else time.sleep(LOOK_PAUSE)
            now = time.monotonic()
            if told is None and stop.is_set():
                told = now
                for child in children:  # each writes what it has
                    child.send_signal(signal.SIGINT)
            if now > (begin + seconds if told is None else told) + PATIENCE:
                for child in children:
                    child.kill()
            if told is None and now < begin + seconds:
                attached.look(watch.look(now - begin))
            progress.tick(now - begin)
        looked = min((told or time.monotonic()) - begin, seconds)
        for step in steps:
            for argv in step.after:
                process.run(
                    argv, log=context.folder / "logs" / f"{step.name}.after.log", timeout=step.after_limit
                )
    for step, child in zip(steps, children, strict=True):
        text = (context.folder / "logs" / f"{step.name}.log").read_text(errors="replace")
        if child.returncode != 0 and not (context.folder / step.artifacts[0]).exists():
            fault = attached.explain(text, child.returncode)
            last = text.strip().splitlines()[-1:] or ["it printed nothing"]
            reason = (
                fault.reason
                if fault is not None
                else process.describe_status(child.returncode) + f": {last[0]}"
            )
            raise MachineError(f"{attached.tool}: {reason}", fault.fix if fault is not None else None)
    return looked, stop.is_set()


def _start(step: Step, folder: Path, files: contextlib.ExitStack) -> subprocess.Popen[bytes]:
    log = files.enter_context((folder / "logs" / f"{step.name}.log").open("wb"))
    # a session of its own: a Ctrl-C on the terminal is ours alone
    return subprocess.Popen(
        step.argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, cwd="/"
    )


@dataclass
class _Watch:
    """What the process and those that it started use, by looks at them."""

    root: psutil.Process
    cpu: dict[int, float] = field(default_factory=dict)  # processor seconds of each since the first look
    usage: list[tuple[float, float, float]] = field(default_factory=list)  # as `time_split` takes it
    peak: int = 0  # bytes of memory
    use: Any = None
    _first: dict[int, tuple[float, ...]] = field(default_factory=dict)
    _last: dict[int, tuple[float, ...]] = field(default_factory=dict)
    _gpu: dict[int, list[tuple[int, int]]] = field(default_factory=dict)

    def look(self, gone: float) -> int:
        """Look at all; the process whose turn it is to be looked at closely."""
        import psutil

        from profkit.core.process_tree import TreeUse, queued_of

        resident = threads = 0
        alive = [self.root.pid]
        with contextlib.suppress(psutil.Error):
            alive += [child.pid for child in self.root.children(recursive=True)]
        for pid in alive:
            with contextlib.suppress(psutil.Error, OSError):
                one = psutil.Process(pid)
                times, io = one.cpu_times(), one.io_counters()
                counts = (io.read_chars, io.write_chars, io.read_count + io.write_count)
                self._last[pid] = (times.user + times.system, queued_of(pid), *counts)
                self._first.setdefault(pid, (0.0,) * 5 if self.usage else self._last[pid])
                resident, threads = resident + one.memory_info().rss, threads + one.num_threads()
        since = {
            p: [a - b for a, b in zip(now, self._first[p], strict=True)] for p, now in self._last.items()
        }
        self.cpu = {pid: used[0] for pid, used in since.items()}
        cpu, queued, read, written, calls = (sum(column) for column in zip(*since.values(), strict=True))
        self.usage.append((gone, cpu, queued))
        self.peak = max(self.peak, resident)
        most = max(threads, self.use.threads if self.use is not None else 0)
        self.use = TreeUse(int(read), int(written), int(calls), most)
        self._look_at_devices(set(alive))
        return alive[len(self.usage) % len(alive)]

    def _look_at_devices(self, alive: set[int]) -> None:
        with contextlib.suppress(OSError, NvmlError), nvml_session() as nvml:
            for number, device in enumerate(nvml.handles()):
                found = [use for pid, use in nvml.processes(device).items() if pid in alive]
                if found:
                    size, busy = (sum(column) for column in zip(*found, strict=True))
                    self._gpu.setdefault(number, []).append((size, min(100, busy)))

    def device_notes(self) -> list[str]:
        """What they used of each GPU, in words."""
        notes = []
        for number, looks in sorted(self._gpu.items()):
            busy = sum(busy for _, busy in looks) / len(looks)
            held = format_quantity(max(size for size, _ in looks), "B")
            notes.append(
                f"GPU {number}: {busy:.0f} % busy with this program, which holds {held} of its memory."
            )
        return notes

    def readings(self) -> tuple[Reading, ...]:
        """The largest resident set (B) and the cores kept busy (%) of all processes together."""
        seconds, cpu, _ = self.usage[-1]
        source = Source(
            "psutil", formula="100 * (user + system CPU seconds) / wall seconds, of all processes"
        )
        busy = 100 * cpu / seconds if seconds > 0 else 0.0
        return (
            Reading("memory.rss_peak", float(self.peak), "B", "measured", RUN, Source("psutil", "rss")),
            Reading("cpu.utilization", busy, "%", "measured", RUN, source),
        )
