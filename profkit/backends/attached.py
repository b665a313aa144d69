"""Profiling of a running program by the tool that can attach to it: py-spy for Python, perf for any other."""

from __future__ import annotations

import contextlib
import os
import re
import signal
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from profkit.backends import PassFindings, RunContext
from profkit.backends.cpu.linux import DATA, LONGEST_SWITCHED, SWITCHED, TEXT, SampledTrace
from profkit.backends.passes import leave_stacks
from profkit.backends.source_lines import with_source
from profkit.core import process
from profkit.core.errors import Fault, MachineError, UnreadableReport
from profkit.core.formatting import plural
from profkit.core.types import Fact, PassPlan, PassResult, Step
from profkit.profilers import py_spy
from profkit.profilers.host.stacks import read_stacks
from profkit.profilers.perf.command import attach_argv, script_argv, switches_argv
from profkit.profilers.perf.probe import PerfAbility, probe_perf
from profkit.profilers.programs import ask_tool, find_tool
from profkit.runtime.passes.host.waits import waits_for

_PYTHON = re.compile(rb"/(?:lib)?python\d[^/\n]*$", re.MULTILINE)
SLEPT = 0.01  # of the time: so little is not sampled
WAITS = {
    "sleep": "a time to pass",
    "lock": "a lock",
    "input": "any of several inputs",
    "network": "the network",
    "child": "a child process",
    "file": "a file",
    "pipe": "a pipe",
    "sync": "what is written to reach the disk",
}
# perf ends the `sleep` that is its clock, and then itself by the same signal.
_TARGET_ENDED = (-signal.SIGTERM, 128 + signal.SIGTERM)
_ALL, _RUNNING, _STACKS = "all.txt", "running.txt", "stacks.jsonl"


def is_python(pid: int) -> bool:
    """Return whether a process has loaded Python (Linux). Raises OSError where that may not be known."""
    return _PYTHON.search(Path(f"/proc/{pid}/maps").read_bytes()) is not None


@dataclass
class Attached:
    """A process and the Python programs below it, by two recordings, and what their threads wait for."""

    pid: int
    seconds: float
    program: str
    version: str
    plan = PassPlan("stacks", "py-spy", parallel=True)
    kinds: dict[int, Counter[str]] = field(default_factory=dict)

    def steps(self, folder: Path) -> tuple[Step, ...]:
        """Return the steps that record into a folder."""
        return tuple(
            Step(
                name,
                py_spy.record_argv(self.pid, folder / file, self.seconds, idle=idle, program=self.program),
                (f"artifacts/{file}",),
                tool=self.plan.tool,
            )
            for name, file, idle in (("stacks", _ALL, True), ("stacks-running", _RUNNING, False))
        )

    def look(self, pids: Iterable[int]) -> None:
        """Note what the threads of these processes wait for now."""
        for pid in pids:
            with contextlib.suppress(OSError):  # it has ended
                for thread in map(int, os.listdir(f"/proc/{pid}/task")):
                    if kind := waits_for(thread, str(pid)):
                        self.kinds.setdefault(thread, Counter())[kind] += 1

    def read(self, context: RunContext, seconds: float, cpu: Mapping[int, float]) -> PassFindings:
        """Read the recordings like the stacks of a run that was started here. `cpu`: CPU seconds by process id."""
        folder = context.folder / "artifacts"
        recorded = folder / _ALL, folder / _RUNNING
        lines = py_spy.sampled_lines(*recorded, seconds, self.pid, cpu, self.kinds)
        (folder / _STACKS).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        for path in recorded:  # they hold whole command lines
            path.unlink()
        report = read_stacks(folder / _STACKS)
        return PassFindings(
            profiles=report.profiles,
            sampled=with_source(report, context.workload),
            notes=report.warnings,
            artifacts=(f"artifacts/{_STACKS}", *leave_stacks(context, report.stacks, "stacks")),
        )


class AttachedNative(Attached):
    """A process of machine code, by one recording."""

    plan = PassPlan("trace", "perf")
    perf: PerfAbility

    def steps(self, folder: Path) -> tuple[Step, ...]:
        """Return the step that records into a folder."""
        argv = attach_argv(
            self.pid,
            self.seconds,
            folder / DATA,
            clock=not self.perf.hardware_ok,
            perf=self.program,
            options=self.perf.record_options,
            switches=self._switches,
        )
        return (Step("trace", argv, (f"artifacts/{DATA}",), tool=self.plan.tool, fine=_TARGET_ENDED),)

    @property
    def _switches(self) -> bool:
        """Return whether it is noted when threads wait: of longer recordings that is too much."""
        return self.perf.switches_ok and self.seconds <= LONGEST_SWITCHED

    def look(self, pids: Iterable[int]) -> None:  # noqa: ARG002
        """Note what the process waits for: only itself is recorded, and what it starts meanwhile."""
        super().look([self.pid])

    def read(self, context: RunContext, seconds: float, cpu: Mapping[int, float]) -> PassFindings:
        """Read the trace like that of a program that was started here; for one that slept, what it waited for."""
        folder, plan = context.folder / "artifacts", self.plan
        words = script_argv(folder / DATA, folder / TEXT, perf=self.program, offsets=True)
        process.run(words, timeout=Step.after_limit)
        if self._switches:
            process.run(
                switches_argv(folder / DATA, folder / SWITCHED, perf=self.program), timeout=Step.after_limit
            )
        trace = SampledTrace(context, self.perf, None, beside=False)
        try:
            return trace.read(plan, PassResult(plan.name, plan.tool, "finished"))
        except UnreadableReport:
            if cpu.get(self.pid, 0.0) > SLEPT * seconds:
                raise
        waits = Counter(kinds.most_common(1)[0][0] for kinds in self.kinds.values())
        named = ", ".join(
            f"{plural(count, 'thread')} for {WAITS[kind]}" for kind, count in waits.most_common()
        )
        return PassFindings(notes=(Fact.of("slept-all-the-time", what=named or "what for is not known"),))


def attach(pid: int, seconds: float) -> Attached:
    """Return the recording for a process. Raises MachineError where its tool is not here."""
    if is_python(pid):
        if (program := find_tool("py-spy", "PROFKIT_PY_SPY")) is None:
            raise MachineError(
                "attaching to a running Python program needs py-spy, which is not installed", py_spy.INSTALL
            )
        return Attached(
            pid, seconds, str(program), ask_tool((str(program), "--version"), 10.0)[1].split()[-1]
        )
    perf = probe_perf()
    if not perf.record_ok:
        fault = perf.record_fault or Fault("it records nothing here")
        raise MachineError(f"perf: {fault.reason}", fault.fix)
    native = AttachedNative(pid, seconds, str(perf.path), perf.version or "")
    native.perf = perf
    return native
