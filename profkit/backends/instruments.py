"""Passes under Instruments, of the CPU and of the GPU; and the run of a Mac's CPU."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from profkit.backends import PassFindings, PlanState, RunContext
from profkit.backends.passes import AbsentPass, BackendRun, Pass, leave_stacks, plain_runs
from profkit.core.errors import UnreadableReport
from profkit.core.files.regular import read_bounded_text
from profkit.core.types import Directive, Fact, PassName, PassPlan, PassResult, Report, Step, Switch
from profkit.profilers.programs import ToolAbility
from profkit.profilers.xctrace.command import (
    CUT,
    FINISH,
    TELL,
    TIME_PROFILER,
    absolute_command,
    explain_fault,
    record_argv,
)
from profkit.profilers.xctrace.export import TOC, export_argv, probe_xctrace
from profkit.profilers.xctrace.report import REGION_TABLES, read_exports
from profkit.runtime.passes.read import read_records

EXPORT_SECONDS = 1800.0  # of one recording: a dozen tables, of which a large one takes minutes


class InstrumentsPass(Pass):
    """One execution of the workload under a template of Instruments, recorded by xctrace, exported, and read back."""

    tool = "xctrace"

    def __init__(self, context: RunContext, xctrace: ToolAbility) -> None:
        super().__init__(context)
        self._xctrace = xctrace

    def recorded(
        self,
        name: str,
        directive: Directive,
        schemas: Sequence[str],
        *,
        template: str | None = None,
        instruments: Sequence[str] = (),
        limit: float | None = None,
        finish: float = FINISH,
    ) -> Step:
        """The step `name`: the workload launched by xctrace, nothing in between; those of `schemas` that come, as XML.

        The recording is whole; a region is found in it afterwards, by the clock. `limit`: seconds after which this plan
        itself ends the workload, so that the document stays in bounds; the user's own limit (`context.timeout`), where
        it comes first, is a failure as in any other step.
        """
        document, exports, status = (
            self.folder / f"{name}{end}" for end in (".trace", ".xctrace", ".status")
        )
        asked, program = self.context.timeout, str(self._xctrace.path)
        planned = limit is not None and (asked is None or limit < asked)
        workload = self.context.workload
        return Step(
            name,
            record_argv(
                absolute_command(workload.command, workload.folder),
                document,
                template=template,
                instruments=instruments,
                limit=limit if planned else asked,
                xctrace=program,
            ),
            (f"artifacts/{name}.trace", f"artifacts/{name}.xctrace"),
            directive=directive,
            tool="xctrace",
            workload_status=str(status),
            after=(
                export_argv(document, exports, schemas, status=status, may_be_cut=planned, xctrace=program),
            ),
            after_limit=EXPORT_SECONDS,
            finish=finish,
            own_limit=True,
            fine=(CUT,),
            tells=TELL,
        )

    def read_step(self, step: Step) -> Report:
        """The exports of a step, restricted to what the workload marked.

        Raises UnreadableReport, with xctrace's own reason where it could not open or export what it had recorded.
        """
        exports = self.context.folder / step.artifacts[1]
        if not (exports / TOC).is_file():
            raise _explain_no_export(self.context.folder, step)
        records = read_records(sorted(self.folder.glob(f"{step.name}.region.*.json")))
        return read_exports(exports, [record for record in records if record.regions or record.benchmarks])


def _explain_no_export(folder: Path, step: Step) -> UnreadableReport:
    """By what the export said in our own words, else by what xctrace said while it recorded."""
    lines = map(str.strip, log_of(folder, f"{step.name}.after0.log").splitlines())
    said = dict(line.split(": ", 1) for line in lines if line.startswith(("error: ", "fix: ")))
    if "error" in said:
        return UnreadableReport(said["error"], said.get("fix"))
    fault = explain_fault(log_of(folder, f"{step.name}.log"), 0)
    if fault is not None:
        return UnreadableReport(f"xctrace left nothing that can be read: {fault.reason}", fault.fix)
    return UnreadableReport("xctrace left nothing that can be read", f"see {step.name}.log")


def log_of(folder: Path, log: str) -> str:
    """What a step printed, as far as its log has it; "" where there is none."""
    try:
        return read_bounded_text(folder / "logs" / log, errors="replace")
    except OSError:
        return ""


# ------------------------------------------------------------ the CPU of a Mac

START_SECONDS = 10.0  # until xctrace records, has ended, and has exported: 2 to 3 s each on an M5, by others
SAMPLED_SECONDS = (
    2.0  # of region: about 2,000 samples a core, a function of 1 % is known to a fifth of itself
)
_CONDITIONS = ("Instruments", "device model", "system")  # facts that decide whether two runs may be compared
_NO_PYTHON = (
    "Instruments sees the interpreter, and not the Python functions that it runs: the cprofile pass does"
)


class TimeProfiler(InstrumentsPass):
    """One recording of the whole process; what lies in a marked region is picked out of it afterwards."""

    name = "trace"

    def plan(self, state: PlanState) -> list[PassPlan]:
        """One recording."""
        if not self._xctrace.works:
            return self.skip(self._xctrace.reason, self._xctrace.fix)
        switch = Switch("signpost") if state.marked else None
        directive = self.directive(self.name, switch, seconds=SAMPLED_SECONDS)
        step = self.recorded(self.name, directive, ("time-profile", *REGION_TABLES), template=TIME_PROFILER)
        seconds = 1.1 * (state.plain_seconds or 0.0) + START_SECONDS
        notes = (_NO_PYTHON,) if self.context.workload.python is not None else ()
        return self.planned((step,), cost=plain_runs(seconds, state), notes=notes)

    def read(self, plan: PassPlan, result: PassResult) -> PassFindings:  # noqa: ARG002 - the files say it all
        """Functions, libraries and stacks; leaves a speedscope file beside the exports."""
        report = self.read_step(plan.steps[0])
        return PassFindings(
            profiles=report.profiles,
            stacks=report.stacks,
            facts={name: report.facts[name] for name in _CONDITIONS if name in report.facts},
            notes=report.warnings,
            artifacts=leave_stacks(self.context, report.stacks, "trace"),
        )


class MacRun(BackendRun):
    """The passes for one workload on a Mac's CPU. There is no simulation: valgrind does not run on macOS."""

    name = "cpu"

    def tool_versions(self) -> dict[str, str | None]:
        """Instruments' version, where it is used."""
        return {"xctrace": self._xctrace.version} if "trace" in self.wanted else {}

    def make_pass(self, name: PassName) -> Pass | None:
        """Time Profiler."""
        if name == "trace":
            return TimeProfiler(self.context, self._xctrace)
        if name == "counters":
            return AbsentPass(self.context, name, Fact("no-counts-on-a-mac"))
        return super().make_pass(name)

    @cached_property
    def _xctrace(self) -> ToolAbility:
        return probe_xctrace()
