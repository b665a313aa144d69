"""The trace pass: every kernel, copy and launch of one run, by nsys; where nsys is not, by torch's own profiler.

Also what the passes on a GPU are expected to cost, in wall seconds. The figures are of one H200 with ncu 2025.3 and
nsys 2025.3 (docs/cuda.md, what it costs): a torch program that starts in 3 s took 5.0 s under nsys with its export,
5.6 s under ncu with two kernels of 5 passes, 22 s with 8 of 38 passes.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from profkit.backends import PassFindings, PlanState, RunContext
from profkit.backends.cuda.kernels import MATCHED_SECONDS, CountedLaunches
from profkit.backends.passes import Pass, plain_runs, read_region_work, start_seconds
from profkit.core.errors import UnreadableReport
from profkit.core.process import status_wrapper
from profkit.core.types import (
    Fact,
    PassPlan,
    PassResult,
    Report,
    Step,
    Switch,
    message_of,
    together,
)
from profkit.profilers.nsys.command import export_argv, nsys_argv
from profkit.profilers.programs import ToolAbility
from profkit.profilers.registry import recognise_format
from profkit.runtime.passes.command import host_command

NSYS_SECONDS = 1.3  # start, stop and writing the report, for a trace of few seconds
EXPORT_SECONDS = 0.4
TORCH_SECONDS = 2.5
NCU_SECONDS = 2.0  # start, first launch, end
REPLAY_SECONDS = 0.05  # one replay pass of a kernel, beside the kernel itself: 26 to 54 ms


def region_seconds(state: PlanState, iterations: int | None) -> float:
    """What the iterations take that an instrument asks of a benchmark."""
    if not state.benchmark or iterations is None or state.iteration_seconds is None:
        return 0.0
    return iterations * state.iteration_seconds


def group_seconds(group: CountedLaunches, replays: int | None) -> float:
    """The launches of one run that are counted, and those that ncu passes over."""
    counted = len(group.kernels) if group.window is None else group.window[1]
    own = sum(kernel.total / max(1, kernel.launches) for kernel in group.kernels)
    return (replays or 1) * (counted * REPLAY_SECONDS + own) + group.passed * MATCHED_SECONDS


SECONDS = 0.2  # of a benchmark's region: tens to hundreds of iterations, a report of some 100 kB
LEAST, MOST = 5, 500  # iterations
LONGEST = 60.0  # seconds, for the sake of the least
WARMUP = 3  # calls before the region: compiling, tuning, the first growth of the memory pool
TORCH = "torch_profiler"
_CHOICE = "its kernels decide what the counters pass counts"


def traced_iterations(state: PlanState) -> int:
    """How often a benchmark runs in the trace."""
    seconds = state.iteration_seconds
    if seconds is None or seconds <= 0:
        return LEAST
    return max(1, min(MOST, max(LEAST, int(SECONDS / seconds)), int(LONGEST / seconds)))


class DeviceTracePass(Pass):
    """Kernels, copies and launches by nsys; by torch's own profiler where nsys does not work or has failed.

    `ranges`: the workload can write NVTX ranges. Then the whole process is traced, and they tell the region in it: that
    also shows what was compiled before, and every entry of a region that is entered many times. Without them only what
    nsys captures is known to be the region, and of several entries that is the first.
    """

    name, tool = "trace", "nsys"

    def __init__(self, context: RunContext, nsys: ToolAbility, *, ranges: bool) -> None:
        super().__init__(context)
        self._nsys, self._ranges = nsys, ranges

    def plan(self, state: PlanState) -> list[PassPlan]:
        """One run; where nsys failed, one more by torch's profiler: without a trace there is nothing to count."""
        if not self._nsys.works:
            return self._by_torch(state, f"nsys: {self._nsys.reason}", self._nsys.fix)
        plans = self._by_nsys(state)
        traces = [result for result in state.passes if result.name == "trace"]
        failed = next((done for done in traces if done.tool == "nsys" and done.state == "failed"), None)
        if failed is not None and (state.trace is None or any(result.tool == TORCH for result in traces)):
            plans += self._by_torch(
                state, f"nsys failed: {message_of(failed.reason)}", failed.fix, "trace-torch"
            )
        return plans

    def _by_nsys(self, state: PlanState) -> list[PassPlan]:
        report, sqlite, status = (self.folder / f"trace.{end}" for end in ("nsys-rep", "sqlite", "status"))
        command = status_wrapper(self.context.workload.command, status)
        nsys = str(self._nsys.path)
        step = Step(
            "trace",
            nsys_argv(command, report, marked=state.marked and not self._ranges, nsys=nsys),
            ("artifacts/trace.nsys-rep", "artifacts/trace.sqlite"),
            directive=self.directive(
                "trace",
                Switch("cuda") if state.marked else None,
                iterations=traced_iterations(state),
                warmup=WARMUP,
            ),
            tool="nsys",
            workload_status=str(status),
            after=(export_argv(report, sqlite, nsys=nsys),),
        )
        return [self._traced("nsys", step, state, NSYS_SECONDS + EXPORT_SECONDS)]

    def _by_torch(self, state: PlanState, why: str, fix: str | None, name: str = "trace") -> list[PassPlan]:
        """The trace by torch.profiler inside the workload, its step called `name`; `why` nsys does not do it."""
        argv, reason = host_command(self.context.workload.command, "torch", self.folder / "trace.torch")
        if argv is None:
            return self.skip(together(Fact.message(why), self.no_python(reason)), fix)
        told = self.directive(name, iterations=traced_iterations(state), warmup=WARMUP)
        planned = self._traced(TORCH, Step(name, tuple(argv), directive=told), state, TORCH_SECONDS)
        return [replace(planned, fix=fix, notes=(f"by torch's own profiler, since {why}", *planned.notes))]

    def _traced(self, tool: str, step: Step, state: PlanState, more: float) -> PassPlan:
        seconds = start_seconds(state) + region_seconds(state, traced_iterations(state)) + more
        return PassPlan(self.name, tool, (step,), cost=plain_runs(seconds, state), notes=(_CHOICE,))

    def read(self, plan: PassPlan, result: PassResult) -> PassFindings:  # noqa: ARG002 - the files say it all
        """Kernels, copies and gaps."""
        artifacts: tuple[str, ...] = ()
        if plan.tool == TORCH:
            path = next(self.folder.glob("trace.torch.*.json"), None)
            if path is None:
                # else nsys' own pass says it
                asked = f" ({plan.notes[0]})" if plan.steps[0].name == "trace" else ""
                raise UnreadableReport(
                    f"torch's profiler left no trace: the workload did not end by itself, or uses no torch{asked}",
                    plan.fix,
                )
            report, artifacts = _read_report(path), (f"artifacts/{path.name}",)
        else:
            report = _read_export(self.folder)
        if report.fault is not None:
            raise UnreadableReport(report.fault.reason, report.fault.fix, report.fault.code)
        trace = report.trace
        notes = [*report.warnings, *read_region_work(self.context.folder, plan.steps[0].name).notes]
        if trace is not None and any(kernel.graph for kernel in trace.kernels):
            notes.append("CUDA graphs: each of their kernels is traced and counted by itself")
        return PassFindings(
            trace=trace,
            gpus=report.gpus,
            facts=report.facts,
            profiles=report.profiles,
            notes=tuple(dict.fromkeys(notes)),
            artifacts=artifacts,
        )


def _read_export(folder: Path) -> Report:
    """What nsys recorded, as it exported it."""
    sqlite = folder / "trace.sqlite"
    if sqlite.is_file():
        return _read_report(sqlite)
    if not (folder / "trace.nsys-rep").is_file():
        raise UnreadableReport("nsys left no report")
    raise UnreadableReport(
        "nsys recorded trace.nsys-rep, but could not export it to SQLite",
        "see trace.after0.log; where nsys works: nsys export --type=sqlite trace.nsys-rep",
    )


def _read_report(path: Path) -> Report:
    return recognise_format(path).read(path)
