"""The trace pass: every kernel, copy and launch of one run, by nsys; where nsys is not, by torch's own profiler."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from profkit.backends import Findings, Known, Site
from profkit.backends.cuda import cost
from profkit.backends.per_iteration import done_in_region
from profkit.core.errors import UnreadableReport
from profkit.core.status import status_wrapper
from profkit.core.types import Directive, PassPlan, Report, Step, Switch
from profkit.profilers.nsys.command import export_argv, nsys_argv
from profkit.profilers.nsys.probe import NsysAbility
from profkit.profilers.registry import recognise_format
from profkit.runtime.passes.command import host_command

SECONDS = 0.2  # of a benchmark's region: tens to hundreds of iterations, a report of some 100 kB
LEAST, MOST = 5, 500  # iterations
LONGEST = 60.0  # seconds, for the sake of the least
WARMUP = 3  # calls before the region: compiling, tuning, the first growth of the memory pool
TORCH = "torch_profiler"
_CHOICE = "its kernels decide what the counters pass counts"


def iterations(known: Known) -> int:
    """How often a benchmark runs in the trace."""
    seconds = known.iteration_seconds
    if seconds is None or seconds <= 0:
        return LEAST
    return max(1, min(MOST, max(LEAST, int(SECONDS / seconds)), int(LONGEST / seconds)))


def plan_trace(site: Site, nsys: NsysAbility, known: Known, *, ranges: bool) -> PassPlan:
    """One traced run by nsys, or by torch's profiler where nsys does not work; or why neither can.

    `ranges`: the workload can write NVTX ranges. Then the whole process is traced, and they tell the region in it: that
    also shows what was compiled before, and every entry of a region that is entered many times. Without them only what
    nsys captures is known to be the region, and of several entries that is the first.
    """
    if not nsys.works:
        return plan_torch(site, known, f"nsys: {nsys.reason}", nsys.fix)
    folder = site.folder / "artifacts"
    report, sqlite, status = folder / "trace.nsys-rep", folder / "trace.sqlite", folder / "trace.status"
    step = Step(
        "trace",
        nsys_argv(
            status_wrapper(site.workload.command, status),
            report,
            marked=known.marked and not ranges,
            nsys=str(nsys.path),
        ),
        ("artifacts/trace.nsys-rep", "artifacts/trace.sqlite"),
        directive=_directive(site, known, Switch("cuda") if known.marked else None),
        tool="nsys",
        workload_status=str(status),
        after=(export_argv(report, sqlite, nsys=str(nsys.path)),),
    )
    return _plan("nsys", step, known, cost.NSYS_SECONDS + cost.EXPORT_SECONDS, (_CHOICE,))


def plan_torch(site: Site, known: Known, why: str, fix: str | None, name: str = "trace") -> PassPlan:
    """The trace by torch.profiler inside the workload, its step called `name`; `why` nsys does not do it."""
    prefix = str(site.folder / "artifacts" / "trace.torch")
    argv: Sequence[str] | None = site.workload.command
    reason: str | None = None
    if not known.marked:
        argv, reason = host_command(site.workload.command, "torch", Path(prefix))
    if argv is None:
        return PassPlan("trace", "nsys", skipped=f"{why}; and torch's profiler: {reason}", fix=fix)
    switch = Switch("torch-profiler", output=prefix) if known.marked else None
    step = Step(name, tuple(argv), directive=_directive(site, known, switch, name))
    planned = _plan(
        TORCH, step, known, cost.TORCH_SECONDS, (f"by torch's own profiler, since {why}", _CHOICE)
    )
    return replace(planned, fix=fix)


def _directive(site: Site, known: Known, switch: Switch | None, name: str = "trace") -> Directive:
    record = str(site.folder / "artifacts" / f"{name}.region")
    return Directive("trace", record, switch=switch, iterations=iterations(known), warmup=WARMUP)


def _plan(tool: str, step: Step, known: Known, more: float, notes: tuple[str, ...]) -> PassPlan:
    seconds = cost.start_seconds(known) + cost.region_seconds(known, iterations(known)) + more
    return PassPlan(
        "trace",
        tool,
        (step,),
        cost=cost.in_plain_runs(seconds, known),
        seconds=seconds if known.plain_seconds is not None else None,
        cost_note=f"start and report add {more:.1f} s to a run, {cost.SOURCE}",
        notes=notes,
    )


def find_trace(site: Site, plan: PassPlan) -> Findings:
    """Kernels, copies and gaps. Raises UnreadableReport where the run left no trace."""
    folder = site.folder / "artifacts"
    artifacts: tuple[str, ...] = ()
    if plan.tool == TORCH:
        paths = sorted(folder.glob("trace.torch.*.json"))
        if not paths:
            asked = (
                f" ({plan.notes[0]})" if plan.steps[0].name == "trace" else ""
            )  # else nsys' own pass says it
            raise UnreadableReport(
                f"torch's profiler left no trace: the workload did not end by itself, or uses no torch{asked}",
                plan.fix,
            )
        report, others = _busiest(paths)
        artifacts = tuple(f"artifacts/{path.name}" for path in paths)
    else:
        report, others = _exported(folder), 0
    trace = report.trace
    notes = [*report.warnings, *done_in_region(site.folder, plan.steps[0].name).notes]
    if others:
        notes.append(f"{others + 1} processes left a trace; the one with most GPU time counts")
    if trace is not None and any(kernel.graph for kernel in trace.kernels):
        notes.append("CUDA graphs: each of their kernels is traced and counted by itself")
    return Findings(
        trace=trace,
        gpus=report.gpus,
        facts=report.facts,
        profiles=report.profiles,
        notes=tuple(dict.fromkeys(notes)),
        artifacts=artifacts,
    )


def _exported(folder: Path) -> Report:
    """What nsys recorded, as it exported it."""
    sqlite = folder / "trace.sqlite"
    if sqlite.is_file():
        return _read(sqlite)
    if not (folder / "trace.nsys-rep").is_file():
        raise UnreadableReport("nsys left no report")
    raise UnreadableReport(
        "nsys recorded trace.nsys-rep, but could not export it to SQLite",
        "see trace.after0.log; where nsys works: nsys export --type=sqlite trace.nsys-rep",
    )


def _read(path: Path) -> Report:
    return recognise_format(path).read(path)


def _busiest(paths: Sequence[Path]) -> tuple[Report, int]:
    """Of several processes the one whose kernels took longest, and how many others there are."""
    reports: list[Report] = []
    fault: UnreadableReport | None = None
    for path in paths:
        try:
            reports.append(_read(path))
        except UnreadableReport as error:
            fault = error
    if not reports:
        raise fault or UnreadableReport("torch's profiler left nothing")
    busy = [sum(k.total for k in r.trace.kernels) if r.trace is not None else 0.0 for r in reports]
    best = reports[busy.index(max(busy))]
    return best, sum(1 for seconds in busy if seconds > 0) - (1 if max(busy) > 0 else 0)
