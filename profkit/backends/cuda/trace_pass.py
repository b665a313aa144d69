"""The pass that traces a device: by nsys or torch's own profiler, or by jax.profiler for a JAX program.

Expected costs, in wall seconds, are those of one H200 with nsys 2025.3 (docs/cuda.md, what it costs): a torch program
that starts in 3 s took 5.0 s under nsys with its export.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, TypeAlias

from profkit.analysis.timeline.xla_order import with_schedules
from profkit.backends import PassFindings, PlanState, RunContext
from profkit.backends.cuda.process_rows import (
    lines_of,
    said_by_processes,
    said_reason,
    schedules_of,
    seconds_after,
)
from profkit.backends.cuda.program_source import with_definitions
from profkit.backends.passes import Pass, plain_runs, read_region_work, start_seconds
from profkit.core.errors import UnreadableReport
from profkit.core.process import status_wrapper
from profkit.core.types import (
    Fact,
    GpuLine,
    PassPlan,
    PassResult,
    Report,
    Step,
    Switch,
    message_of,
    together,
)
from profkit.profilers.nsys.command import NOT_IMPORTED, export_argv, nsys_argv
from profkit.profilers.programs import ToolAbility
from profkit.profilers.registry import recognise_format
from profkit.runtime.passes.command import host_command

NSYS_SECONDS = 1.3  # start, stop and writing the report, for a trace of few seconds
EXPORT_SECONDS = 0.4
TORCH_SECONDS = 2.5
JAX_SECONDS = 1.0


def region_seconds(state: PlanState, iterations: int | None) -> float:
    """Return the seconds of the iterations that an instrument wants of a benchmark; 0 where unknown."""
    if not state.benchmark or iterations is None or state.iteration_seconds is None:
        return 0.0
    return iterations * state.iteration_seconds


SECONDS = 0.2  # of a benchmark's region: tens to hundreds of iterations, a report of some 100 kB
MIN_ITERATIONS, MAX_ITERATIONS = 5, 500  # of a benchmark
LONGEST = 60.0  # seconds that even the least number of iterations may take
WARMUP = 3  # calls before the region: compiling, tuning, the first growth of the memory pool
TORCH, JAX = "torch_profiler", "jax_profiler"
# Of a window of jax.profiler: a tenth of the program, so that a long one waits for no large file, and some steps fit.
MIN_WINDOW, WINDOW_SHARE, MAX_WINDOW = 2.0, 0.1, 6.0
SAID_BY_JAX = "trace.jax.operations"
_Why: TypeAlias = "tuple[Fact, str | None] | None"  # why the instrument before has made no trace, and its fix
_Attempt: TypeAlias = "Callable[[PlanState, _Why], list[PassPlan]]"


def traced_iterations(state: PlanState) -> int:
    """Return how often a benchmark runs in the trace."""
    seconds = state.iteration_seconds
    if seconds is None or seconds <= 0:
        return MIN_ITERATIONS
    return max(1, min(MAX_ITERATIONS, max(MIN_ITERATIONS, int(SECONDS / seconds)), int(LONGEST / seconds)))


class DeviceTracePass(Pass):
    """The trace of kernels, copies and launches, by the first instrument that succeeds.

    A JAX program is traced by jax.profiler, then by nsys without NVTX ranges, since it does not find the names of
    those that XLA writes; any other by nsys, once more without ranges where it could not import them, then by
    torch's own profiler.

    `ranges`: the workload can write NVTX ranges. Then the whole process is traced, and they mark the region in
    it: that also shows what was compiled before, and every entry of a region that is entered many times. Without
    them only what nsys captures is known to be the region, and of several entries that is the first.
    """

    name, tool = "trace", "nsys"
    step_names = ("trace", "trace-jax", "trace-plain", "trace-torch")
    leaves = (
        "trace.nsys-rep", "trace.sqlite", "trace-plain.nsys-rep", "trace-plain.sqlite",
        "trace.torch.#.json", "trace.jax.#-#.json.gz", "trace.jax.operations",
    )  # fmt: skip

    def __init__(self, context: RunContext, nsys: ToolAbility, *, ranges: bool, jax: bool = False) -> None:
        super().__init__(context)
        self._nsys, self._ranges, self._jax = nsys, ranges, jax

    def plan(self, state: PlanState) -> list[PassPlan]:
        """Plan one run, and another after each that failed: without a trace there is nothing to count."""
        done = [result for result in state.passes if result.name == "trace"]
        plans: list[PassPlan] = []
        why: _Why = None
        for make in self._attempts(done):
            plans += make(state, why)
            result = done[len(plans) - 1] if len(plans) <= len(done) else None
            if result is None or result.state != "failed":
                break
            if len(plans) == len(done) and state.trace is not None:
                break  # what it had written until it failed is a trace all the same
            code = "nsys-failed" if result.tool == "nsys" else "jax-failed"
            why = Fact.of(code, *filter(None, (result.reason,))), result.fix
        return plans

    def _attempts(self, done: Sequence[PassResult]) -> Iterator[_Attempt]:
        """Yield what makes the plan of each instrument, in the order in which they are tried."""
        hosted, _ = self._hosted("jax")
        if self._jax and hosted is not None:
            yield self._by_jax
        if self._nsys.works and not self._jax:
            yield self._by_nsys
        if self._nsys.works and (self._jax or any(_lost_ranges(result) for result in done)):
            yield self._by_nsys_without_ranges
        if not self._jax or (hosted is None and not self._nsys.works):
            yield self._by_torch

    def _hosted(self, kind: Literal["jax", "torch"]) -> tuple[list[str] | None, str | None]:
        """Return the command under this instrument, or the code of why its Python cannot be looked into."""
        return host_command(self.context.workload.command, kind, self.folder / f"trace.{kind}")

    def _by_jax(self, state: PlanState, why: _Why) -> list[PassPlan]:
        """Plan the trace by jax.profiler inside the workload, the first of all instruments."""
        assert why is None
        argv, _ = self._hosted("jax")
        seconds = min(MAX_WINDOW, max(MIN_WINDOW, WINDOW_SHARE * (state.plain_seconds or 0.0)))
        directive = self.directive(
            "trace-jax", iterations=traced_iterations(state), seconds=round(seconds, 1), warmup=WARMUP
        )
        return [
            self._traced(JAX, Step("trace-jax", tuple(argv or ()), directive=directive), state, JAX_SECONDS)
        ]

    def _by_nsys(self, state: PlanState, why: _Why) -> list[PassPlan]:
        """Plan the trace by nsys."""
        return self._recorded(state, why, "trace", ranges=self._ranges)

    def _by_nsys_without_ranges(self, state: PlanState, why: _Why) -> list[PassPlan]:
        """Plan the trace by nsys without NVTX ranges."""
        return self._recorded(state, why, "trace-plain", ranges=False, nvtx=False)

    def _recorded(
        self, state: PlanState, why: _Why, name: str, *, ranges: bool, nvtx: bool = True
    ) -> list[PassPlan]:
        """Plan the trace by nsys in the step `name`; `why` says why the instrument before failed."""
        report, sqlite, status = (self.folder / f"{name}.{end}" for end in ("nsys-rep", "sqlite", "status"))
        command = status_wrapper(self.context.workload.command, status)
        nsys = str(self._nsys.path)
        step = Step(
            name,
            nsys_argv(command, report, marked=state.marked and not ranges, nsys=nsys, ranges=nvtx),
            (f"artifacts/{name}.nsys-rep", f"artifacts/{name}.sqlite"),
            directive=self.directive(
                name,
                Switch("cuda") if state.marked else None,
                iterations=traced_iterations(state),
                warmup=WARMUP,
            ),
            tool="nsys",
            workload_status=str(status),
            after=(export_argv(report, sqlite, nsys=nsys),),
        )
        planned = self._traced("nsys", step, state, NSYS_SECONDS + EXPORT_SECONDS)
        notes = () if why is None else (Fact.of("without-ranges", why[0]),)
        return [replace(planned, notes=(*notes, *planned.notes))]

    def _by_torch(self, state: PlanState, why: _Why) -> list[PassPlan]:
        """Plan the trace by torch.profiler inside the workload; `why` says why nsys does not make it."""
        name = "trace-torch" if why is not None else "trace"
        if why is None:
            why = Fact.of("of", Fact.message(str(self._nsys.reason)), what="nsys"), self._nsys.fix
        argv, reason = self._hosted("torch")
        if argv is None:
            return self.skip(together(why[0], self.no_python(reason)), why[1])
        directive = self.directive(name, iterations=traced_iterations(state), warmup=WARMUP)
        planned = self._traced(TORCH, Step(name, tuple(argv), directive=directive), state, TORCH_SECONDS)
        return [replace(planned, fix=why[1], notes=(Fact.of("by-torch", why[0]), *planned.notes))]

    def _traced(self, tool: str, step: Step, state: PlanState, more: float) -> PassPlan:
        """Return a plan of one step with its cost; `more` are the tool's own seconds."""
        seconds = start_seconds(state) + region_seconds(state, traced_iterations(state)) + more
        return PassPlan(
            self.name, tool, (step,), cost=plain_runs(seconds, state), notes=(Fact("kernels-chosen"),)
        )

    def read(self, plan: PassPlan, result: PassResult) -> PassFindings:  # noqa: ARG002 - the files say it all
        """Read kernels, copies and gaps. Raises UnreadableReport where there is no trace."""
        artifacts: tuple[str, ...] = ()
        lines: tuple[tuple[str, str, GpuLine], ...] = ()
        if plan.tool == TORCH:
            path = next(self.folder.glob("trace.torch.*.json"), None)
            if path is None:
                # else nsys' own pass says it
                why = f" ({message_of(plan.notes[0])})" if plan.steps[0].name == "trace" else ""
                raise UnreadableReport(
                    f"torch's profiler left no trace: the workload did not end by itself, or uses no torch{why}",
                    plan.fix,
                )
            report, artifacts = recognise_format(path).read(path), (f"artifacts/{path.name}",)
        elif plan.tool == JAX:
            report, path = _best_window(self.folder)
            artifacts = (f"artifacts/{path.name}",)
            said = said_by_processes(self.folder / SAID_BY_JAX)
            lines = lines_of(said)
            trace = with_schedules(report.trace, schedules_of(said), report.launches)
            if trace is not None:
                trace = replace(trace, untraced=seconds_after(said, path))
            report = replace(report, trace=trace)
        else:
            report = _read_export(self.folder, Path(plan.steps[0].artifacts[0]).stem)
        if report.fault is not None:
            raise UnreadableReport(report.fault.reason, report.fault.fix, report.fault.code)
        trace = with_definitions(report.trace, self.context.workload)
        notes = [*report.warnings, *read_region_work(self.context.folder, plan.steps[0].name).notes]
        if trace is not None and any(kernel.graph for kernel in trace.kernels):
            notes.append(Fact("kernels-of-graphs"))
        return PassFindings(
            trace=trace,
            gpus=report.gpus,
            facts=report.facts,
            profiles=report.profiles,
            notes=tuple(dict.fromkeys(notes)),
            artifacts=artifacts,
            kernel_lines=lines,
        )


def _lost_ranges(result: PassResult) -> bool:
    """Return whether nsys recorded, and could not import it because it did not find the names of ranges."""
    reason = result.reason
    return result.tool == "nsys" and reason is not None and reason.root.names.get("fault") == NOT_IMPORTED


def _best_window(folder: Path) -> tuple[Report, Path]:
    """Return the window of jax.profiler with repeated steps, then with most work, and its file.

    Raises UnreadableReport where none has a kernel.
    """
    paths = sorted(folder.glob("trace.jax.*.json.gz"))
    reports = [(recognise_format(path).read(path), path) for path in paths]
    with_kernels = [(report, path) for report, path in reports if report.trace and report.trace.kernels]
    if not with_kernels:
        said = said_reason(folder / SAID_BY_JAX)
        raise UnreadableReport(
            said or "jax.profiler saw no kernel: the program computed nothing on a GPU with JAX"
            if reports or said
            else "jax.profiler left no trace: the workload did not end by itself"
        )

    def worth(window: tuple[Report, Path]) -> tuple[bool, float]:
        trace = window[0].trace
        assert trace is not None
        return trace.repeats is not None or trace.marked, sum(kernel.total for kernel in trace.kernels)

    return max(with_kernels, key=worth)


def _read_export(folder: Path, name: str) -> Report:
    """Read the SQLite export of what nsys recorded. Raises UnreadableReport if there is none."""
    sqlite = folder / f"{name}.sqlite"
    if sqlite.is_file():
        return recognise_format(sqlite).read(sqlite)
    if not (folder / f"{name}.nsys-rep").is_file():
        raise UnreadableReport("nsys left no report")
    raise UnreadableReport(
        f"nsys recorded {name}.nsys-rep, but could not export it to SQLite",
        f"see {shlex.quote(name)}.after0.log; where nsys works: nsys export --type=sqlite {shlex.quote(name)}.nsys-rep",
    )
