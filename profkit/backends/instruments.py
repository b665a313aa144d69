"""Passes under Instruments: a Mac's GPU by Metal System Trace, and a recording for counters.

Their cost was not measured on a Mac by this project. By notes of others: starting takes 1 to 3 s, saving a
Metal System Trace of seconds 5 to 70 s on an M1, and saving 4 s of GPU counters 115 s; each export opens the
document anew, in about a second for one of 50 MB.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from profkit.backends import PassFindings, PlanState, RunContext
from profkit.backends.passes import (
    ALL_PASSES,
    DEVICE_PASSES,
    AbsentPass,
    BackendRun,
    Pass,
    PassTable,
    leave_stacks,
    plain_runs,
    start_seconds,
)
from profkit.core.errors import UnreadableReport
from profkit.core.files.regular import read_bounded
from profkit.core.tables import judge_rows
from profkit.core.types import (
    Check,
    Directive,
    Fact,
    Gpu,
    MetalAbsent,
    MetalTrace,
    PassName,
    PassPlan,
    PassResult,
    Report,
    Step,
    Switch,
)
from profkit.hardware.macos import find_chip, read_apple_gpus
from profkit.profilers.programs import ToolAbility
from profkit.profilers.xctrace.command import (
    COUNTERS_FIX,
    CUT,
    FINISH,
    FINISH_COUNTERS,
    GPU_COUNTERS,
    METAL,
    POINTS,
    TELL,
    absolute_command,
    explain_fault,
    record_argv,
)
from profkit.profilers.xctrace.export import TOC, export_argv, export_names, probe_xctrace
from profkit.profilers.xctrace.metal_tables import COUNTERS
from profkit.profilers.xctrace.report import read_exports, wanted_schemas
from profkit.profilers.xctrace.toc import TIME_LIMIT
from profkit.runtime.passes.read import read_record

EXPORT_SECONDS = 1800.0  # of one recording: a dozen tables, of which a large one takes minutes


class MetalPass(Pass):
    """A run of the workload under a template of Instruments, recorded by xctrace, exported, and read back.

    A benchmark's region takes `seconds` in it, and saving it takes `saving` seconds.
    """

    tool = "xctrace"
    seconds: float
    saving: float

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
        limit: float,
        finish: float = FINISH,
    ) -> Step:
        """Return the step `name`: xctrace launches the workload, and exports those of `schemas` that exist as XML.

        The recording is whole; a region is found in it afterwards, by the clock. `limit`: seconds after which this
        plan itself ends the workload, so that the document stays in bounds; the user's own limit (`context.timeout`),
        where it comes first, is a failure as in any other step.
        """
        document, exports, status = (
            self.folder / f"{name}{end}" for end in (".trace", ".xctrace", ".status")
        )
        users_limit, program = self.context.timeout, str(self._xctrace.path)
        planned = users_limit is None or limit < users_limit
        workload = self.context.workload
        return Step(
            name,
            record_argv(
                absolute_command(workload.command, workload.folder),
                document,
                template=template,
                instruments=instruments,
                limit=limit if planned else users_limit,
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
        """Read the exports of a step, restricted to what the workload marked.

        Raises UnreadableReport, with xctrace's own reason where it could not open or export what it had recorded.
        """
        exports = self.context.folder / step.artifacts[1]
        if not (exports / TOC).is_file():
            raise _explain_no_export(self.context.folder, step)
        records = [read_record(path) for path in sorted(self.folder.glob(f"{step.name}.region.*.json"))]
        return read_exports(exports, [record for record in records if record.regions or record.benchmarks])

    def recording(
        self, state: PlanState, schemas: Sequence[str], limit: float, **more: Any
    ) -> list[PassPlan]:
        """Return the plan of one recording; `more` goes to `recorded`."""
        once, iterations, took = state.iteration_seconds, MIN_ITERATIONS, start_seconds(state)
        if once is not None and once > 0:
            wanted = max(MIN_ITERATIONS, int(self.seconds / once))
            iterations = max(1, min(MAX_ITERATIONS, wanted, int(LONGEST_RECORDING / once)))
        if state.benchmark and once is not None:
            took += iterations * once
        switch = Switch("signpost") if state.marked else None
        directive = self.directive(self.name, switch, iterations=iterations, warmup=WARMUP)
        notes = more.pop("notes", ())
        step = self.recorded(self.name, directive, schemas, limit=limit, **more)
        seconds = min(took, recording_limit(state)) + self.saving
        return self.planned((step,), cost=plain_runs(seconds, state), limit=limit, notes=notes)

    def cut_notes(self, report: Report) -> tuple[Fact, ...]:
        """Return a note where the time limit ended the recording before the workload had ended."""
        if report.facts.get("ended", "").lower() != TIME_LIMIT:
            return ()
        return (Fact.of("recording-ended", name=self.name),)


def _explain_no_export(folder: Path, step: Step) -> UnreadableReport:
    """Return the error by profkit's own message in the export's log, else by xctrace's while it recorded."""
    lines = map(str.strip, log_of(folder, f"{step.name}.after0.log").splitlines())
    said = dict(line.split(": ", 1) for line in lines if line.startswith(("error: ", "fix: ")))
    if "error" in said:
        return UnreadableReport(said["error"], said.get("fix"))
    fault = explain_fault(log_of(folder, f"{step.name}.log"), 0)
    if fault is not None:
        return UnreadableReport(f"xctrace left nothing that can be read: {fault.reason}", fault.fix)
    return UnreadableReport("xctrace left nothing that can be read", f"see {step.name}.log")


def log_of(folder: Path, log: str) -> str:
    """Read what a step printed from its log; empty if there is none."""
    try:
        return read_bounded(folder / "logs" / log).decode(errors="replace")
    except OSError:
        return ""


# ------------------------------------------------------------ the CPU of a Mac

RECORD = "profkit record --tool xctrace --what cpu --report out.trace -- COMMAND"


class MacRun(BackendRun):
    """The passes for one workload on a Mac's CPU. There is no simulation: valgrind does not run on macOS."""

    name = "cpu"

    def make_pass(self, name: PassName) -> Pass | None:
        """Make the passes that need neither perf nor valgrind."""
        if name == "trace":
            return AbsentPass(self.context, name, Fact("no-samples-on-a-mac"), RECORD)
        if name == "counters":
            return AbsentPass(self.context, name, Fact("no-counts-on-a-mac"))
        return super().make_pass(name)


_NO_EXPLAIN = Fact("no-counters-of-launches")
_EXPLAIN_FIX = "capture it in Xcode: MTL_CAPTURE_ENABLED=1, then torch.mps.profiler.metal_capture"
SAVE_SECONDS = 25.0  # start, saving, and a dozen exports
COUNTERS_SECONDS = 120.0
LONGEST_RECORDING = 60.0  # seconds that are recorded at most, beside the start of the program: 50 MB take 8 s
MIN_ITERATIONS, MAX_ITERATIONS = 5, 500  # of a benchmark


def recording_limit(state: PlanState) -> float:
    """Return the seconds after which a recording ends: documents over 2 GB can often not be opened."""
    return float(round(LONGEST_RECORDING + (state.start_seconds or 0.0)))


TRACED_SECONDS = 0.5  # of a benchmark's region: a document of some 10 MB
WARMUP = 3  # calls before the region: compiling, the first growth of the heap
# A recording without a set of counters has none, or one that is always 0 in hundreds of thousands of rows.
COUNTED = "counter"
COUNTED_SECONDS = 1.0  # of a benchmark's region: 30 counters in 3,000 samples each
# seconds that are recorded at most, beside the start: 15 s are 3 to 6 GB of XML on an M3
LONGEST_COUNTED = 20.0
_FACT = "counter set"


def _recorded_names(step: str) -> tuple[str, ...]:
    """Return the names of Instruments' document, and of its exports."""
    return (f"{step}.trace/", *(f"{step}.xctrace/{name}" for name in export_names()))


class MetalTracePass(MetalPass):
    """A recording of the whole process, and of whatever else of the machine the template shows."""

    name, seconds, saving = "trace", TRACED_SECONDS, SAVE_SECONDS
    step_names, leaves = (name,), (*_recorded_names(name), "trace.speedscope.json")

    def plan(self, state: PlanState) -> list[PassPlan]:
        """Plan a recording by Metal System Trace."""
        if not self._xctrace.works:
            return self.skip(self._xctrace.reason, self._xctrace.fix)
        schemas = [schema for schema in wanted_schemas() if COUNTED not in schema]
        return self.recording(state, schemas, recording_limit(state), template=METAL)

    def read(self, plan: PassPlan, result: PassResult) -> PassFindings:  # noqa: ARG002 - the files say it all
        """Read work on the GPU, states and hot spots of the host."""
        report = self.read_step(plan.steps[0])
        return PassFindings(
            gpus=report.gpus,
            trace=report.trace,
            metal=report.metal,
            # Of the counters their own pass tells, or nobody; this one is made without.
            facts={name: value for name, value in report.facts.items() if name != _FACT},
            profiles=report.profiles,
            stacks=report.stacks,
            notes=(*report.warnings, *self.cut_notes(report)),
            artifacts=leave_stacks(self.context, report.stacks, "trace"),
        )


class MetalCountersPass(MetalPass):
    """A recording of its own for the counters, which often have no rows beside the trace's instruments."""

    name, seconds, saving = "counters", COUNTED_SECONDS, COUNTERS_SECONDS
    step_names, leaves = (name,), _recorded_names(name)

    def plan(self, state: PlanState) -> list[PassPlan]:
        """Plan a recording with the instrument of the counters alone."""
        if not self._xctrace.works:
            return self.skip(self._xctrace.reason, self._xctrace.fix)
        # By the signposts of its regions, since this instrument alone leaves no table of the clock.
        points = [POINTS] if state.marked else []
        limit = float(round(min(recording_limit(state), LONGEST_COUNTED + (state.start_seconds or 0.0))))
        return self.recording(
            state,
            wanted_schemas(),
            limit,
            instruments=[GPU_COUNTERS, *points],
            finish=FINISH_COUNTERS,
            notes=(Fact("counters-of-the-chip"),),
        )

    def read(self, plan: PassPlan, result: PassResult) -> PassFindings:  # noqa: ARG002
        """Read the counters, or why there are none."""
        report = self.read_step(plan.steps[0])
        metal = report.metal if report.metal is not None else MetalTrace()
        if not metal.counters:
            metal = replace(metal, absent=tuple(self._explain_absence(metal)))
        return PassFindings(
            gpus=report.gpus,
            metal=metal,
            facts={_FACT: report.facts[_FACT]} if _FACT in report.facts and metal.counters else {},
            notes=(
                *(Fact.of("of", note, what="counters") for note in report.warnings),
                *self.cut_notes(report),
            ),
        )

    def _explain_absence(self, metal: MetalTrace) -> list[MetalAbsent]:
        """Return what is absent, the counters with xctrace's own reason where it gave one."""
        fault = explain_fault(log_of(self.context.folder, "counters.log"), 0)
        others = [absent for absent in metal.absent if COUNTED not in absent.what]
        if fault is not None and fault.code == "unsupported-counters":
            return [*others, MetalAbsent(COUNTERS, Fact.message(fault.reason), fault.fix)]
        return [*others, MetalAbsent(COUNTERS, Fact("no-gpu-counters"), COUNTERS_FIX)]


METAL_PASSES: tuple[type[Pass], ...] = (MetalTracePass, MetalCountersPass)


class MpsRun(BackendRun):
    """The passes for one workload. xctrace is probed once, when the first plan is made.

    Timing takes several processes: MPSGraph chooses a kernel anew in each, and in two of five it chose one that
    was two to three times as slow for the same product of matrices (M5,
    github.com/pytorch/pytorch/issues/182815).
    """

    name = "mps"
    passes: ClassVar[PassTable] = {"gate": ("timing", "trace"), "standard": DEVICE_PASSES, "full": ALL_PASSES}
    switch = Switch("signpost")
    on_device = True

    def tool_versions(self) -> dict[str, str | None]:
        """Return the version of xctrace, where a wanted pass uses it."""
        return {"xctrace": self._xctrace.version} if {"trace", "counters"} & set(self.wanted) else {}

    def make_pass(self, name: PassName) -> Pass | None:
        """Make the recordings of Instruments."""
        if name == "trace":
            return MetalTracePass(self.context, self._xctrace)
        if name == "counters":
            return MetalCountersPass(self.context, self._xctrace)
        if name == "explain":
            return AbsentPass(self.context, name, _NO_EXPLAIN, _EXPLAIN_FIX)
        return super().make_pass(name)

    @cached_property
    def _xctrace(self) -> ToolAbility:
        """Return what xctrace can do, probed once."""
        return probe_xctrace()


# ------------------------------------------------------------ the doctor's checks

_CHECKS = Path(__file__).with_name("mps") / "checks.yaml"


def mps_checks() -> Iterator[Check]:
    """Check the GPU first; off a Mac there is a single check that says so, and nothing is started."""
    if platform.system() != "Darwin":
        yield from judge_rows(_CHECKS, "elsewhere")
        return
    yield from judge_mps(read_apple_gpus(), probe_xctrace())


def judge_mps(gpus: Sequence[Gpu], xctrace: ToolAbility) -> Iterator[Check]:
    """Yield what devices and the probe mean for a run."""
    yield from judge_rows(_CHECKS, "backend", xctrace, {"gpus": gpus})
    for gpu in gpus:
        reason = find_chip(gpu.name, gpu.cores).reason if gpu.virtual is None else None
        yield from judge_rows(_CHECKS, "device", gpu, {"reason": reason})
    if gpus and xctrace.works:
        yield from judge_rows(_CHECKS, "counters", gpus[0], {"counters_fix": COUNTERS_FIX})
