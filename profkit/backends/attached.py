"""A program that runs already, under the tool that can look at it: py-spy at Python, perf at any other."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from profkit.backends import PassFindings, RunContext
from profkit.backends.cpu.linux import DATA, TEXT, SampledTrace
from profkit.backends.passes import leave_stacks
from profkit.backends.source_lines import with_source
from profkit.core.errors import Fault, MachineError
from profkit.core.types import PassName, PassPlan, PassResult, Step
from profkit.profilers import py_spy
from profkit.profilers.perf.command import attach_argv, script_argv
from profkit.profilers.perf.command import explain as explain_perf
from profkit.profilers.perf.probe import probe_perf
from profkit.profilers.programs import ask_tool, find_tool
from profkit.profilers.stacks import read_stacks
from profkit.runtime.passes.host.waits import waits_for

LOOK_SECONDS = 2.0  # that one look at a process may take
_PYTHON = re.compile(rb"/(?:lib)?python\d[^/\n]*$", re.MULTILINE)
_EVERYTHING, _RUNNING, _STACKS = "all.py-spy.txt", "running.py-spy.txt", "stacks.jsonl"


def is_python(pid: int) -> bool:
    """Whether a process has a Python loaded (Linux). Raises OSError where that may not be known."""
    return _PYTHON.search(Path(f"/proc/{pid}/maps").read_bytes()) is not None


def _waits(pid: int) -> dict[int, str]:
    """What each thread of a process waits for; empty where it has ended."""
    try:
        return {int(thread): waits_for(int(thread), str(pid)) for thread in os.listdir(f"/proc/{pid}/task")}
    except OSError:
        return {}


@dataclass
class AttachedPython:
    """py-spy's two recordings of a process and its children, with looks at what their threads wait for."""

    pid: int
    seconds: float
    name: PassName = "stacks"
    tool: str = "py-spy"
    kinds: dict[py_spy.Place, Counter[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raises MachineError where there is no py-spy."""
        found = find_tool("py-spy", "PROFKIT_PY_SPY")
        if found is None:
            raise MachineError(
                "a running Python program is looked at by py-spy, which is not here", py_spy.INSTALL
            )
        self._program = str(found)
        self.version = ask_tool((self._program, "--version"), 10.0)[1].split()[-1]

    def steps(self, context: RunContext) -> tuple[Step, ...]:
        """Both at the same time: neither stops the program."""
        folder = context.folder / "artifacts"
        return tuple(
            Step(
                name,
                py_spy.record_argv(self.pid, folder / file, self.seconds, idle=idle, program=self._program),
                (f"artifacts/{file}",),
                tool=self.tool,
            )
            for name, file, idle in (("stacks", _EVERYTHING, True), ("stacks-running", _RUNNING, False))
        )

    def look(self, pid: int) -> None:
        """See what the threads of one process wait for now, and where."""
        before = _waits(pid)
        argv = py_spy.dump_argv(pid, self._program)
        with contextlib.suppress(subprocess.TimeoutExpired):
            dump = subprocess.run(argv, capture_output=True, timeout=LOOK_SECONDS, check=False)
            after = _waits(pid)
            for thread, leaf in py_spy.waiting_threads(dump.stdout):
                kind = after.get(thread, "")
                if kind and kind == before.get(thread):  # else it may have gone on meanwhile
                    self.kinds.setdefault(leaf, Counter())[kind] += 1

    def explain(self, text: str, returncode: int) -> Fault | None:
        """What py-spy's error means."""
        return py_spy.explain(text, returncode)

    def read(self, context: RunContext, seconds: float, cpu: Mapping[int, float]) -> PassFindings:
        """As the stacks of a run that was started here. `cpu`: seconds by process, as the system counted them."""
        folder = context.folder / "artifacts"
        lines = py_spy.sampled_lines(
            folder / _EVERYTHING, folder / _RUNNING, seconds, self.pid, cpu, self.kinds
        )
        (folder / _STACKS).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        report = read_stacks(folder / _STACKS)
        return PassFindings(
            profiles=report.profiles,
            stacks=report.stacks,
            sampled=with_source(report, context.workload),
            notes=report.warnings,
            artifacts=(f"artifacts/{_STACKS}", *leave_stacks(context, report.stacks, "stacks")),
        )


@dataclass
class AttachedNative:
    """perf's samples of a process."""

    pid: int
    seconds: float
    name: PassName = "trace"
    tool: str = "perf"

    def __post_init__(self) -> None:
        """Raises MachineError where perf does not work here."""
        self._perf = probe_perf()
        if not self._perf.record_ok:
            fault = self._perf.record_fault
            reason = fault.reason if fault is not None else "it records nothing"
            raise MachineError(f"perf: {reason}", fault.fix if fault is not None else None)
        self.version = self._perf.version or ""

    def steps(self, context: RunContext) -> tuple[Step, ...]:
        """One recording, then its text."""
        folder, perf = context.folder / "artifacts", str(self._perf.path)
        event = "cycles" if self._perf.hardware_ok else "cpu-clock"
        argv = attach_argv(self.pid, self.seconds, folder / DATA, event=event, perf=perf)
        after = (script_argv(folder / DATA, folder / TEXT, perf=perf, offsets=True),)
        return (Step("trace", argv, (f"artifacts/{TEXT}",), tool=self.tool, after=after),)

    def look(self, pid: int) -> None:
        """Nothing beside the recording."""

    def explain(self, text: str, returncode: int) -> Fault | None:
        """What perf's error means."""
        return explain_perf(text, returncode)

    def read(self, context: RunContext, seconds: float, cpu: Mapping[int, float]) -> PassFindings:  # noqa: ARG002
        """As the trace of a program that was started here."""
        trace = SampledTrace(context, self._perf, None, beside=False)
        return trace.read(PassPlan(self.name, self.tool), PassResult(self.name, self.tool, "finished"))


def attach(pid: int, seconds: float) -> AttachedPython | AttachedNative:
    """What looks at the process. Raises MachineError where its tool is not here."""
    return (AttachedPython if is_python(pid) else AttachedNative)(pid, seconds)
