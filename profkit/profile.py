"""The story of one run: a workload is carried through the house, and leaves it judged.

Every step is written to run.json before the next begins, so that a run which dies at any moment can still be read.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Literal, cast

from profkit.backends import BackendRoom, Findings, Known, Site
from profkit.errors import (
    Interrupted,
    MachineError,
    ProfkitError,
    UnreadableReport,
    UsageError,
    WorkloadError,
)
from profkit.hardware.machine import read_machine
from profkit.judgement import judge_document
from profkit.model import Depth, PassPlan, PassResult, Plan, RunDocument, RunState, Summary
from profkit.progress import Progress
from profkit.recording.passes import Setting, record_pass, skipped
from profkit.recording.peaks import record_peaks
from profkit.recording.step import require_space
from profkit.recording.timing import record_timing
from profkit.recording.usage import usage_readings
from profkit.reports.markdown import render as render_markdown
from profkit.run import create_run_folder, write_run
from profkit.signals import interruptible
from profkit.summaries.memory import summarize_allocations
from profkit.targets import load_targets
from profkit.workload import describe, seems_marked

PASSES = ("timing", "cprofile", "tracemalloc", "trace", "counters")
# Wall seconds for warm-up and samples in one process, where the user names none.
BUDGETS: dict[Depth, float] = {"gate": 5.0, "standard": 8.0, "full": 30.0}


@dataclass(frozen=True)
class Request:
    """What the user asked for. `precision` is a share (0.01 is ±1 %), `timeout` and `budget` wall seconds."""

    command: tuple[str, ...]
    backend: str = "auto"
    passes: tuple[str, ...] | None = None
    depth: str = "standard"
    targets: Path | None = None
    output: Path = Path("reports")
    name: str | None = None
    timeout: float | None = None
    precision: float = 0.01
    budget: float | None = None


def make_plan(request: Request) -> Plan:
    """What a run would do, as far as can be known before anything ran. Runs nothing of the workload."""
    site = _site(request, request.output / "RUN")
    return _backend(request, site).plan(Known(marked=seems_marked(site.workload)))


def profile_workload(request: Request, progress: Progress) -> tuple[RunDocument, Path]:
    """Carry the workload through every pass; the judged run and its folder.

    Raises UsageError and MachineError before anything ran, and WorkloadError when the workload fails by itself (its
    run is written as failed). An interrupted run is returned with that state.
    """
    site = _site(request, request.output)
    targets = load_targets(
        _backend_name(request), request.targets, site.workload.name
    )  # before an hour is spent
    folder = create_run_folder(
        request.output, site.workload.name, _backend_name(request), datetime.now()
    ).resolve()
    require_space(folder)
    site = replace(site, folder=folder)
    story = _Story(site, request, progress)
    with interruptible():
        try:
            story.carry()
            state: RunState = "complete"
        except (KeyboardInterrupt, Interrupted):
            progress.end("interrupted; what was finished is kept")
            state = "interrupted"
        except WorkloadError as error:
            progress.end("failed")
            story.grow(state="failed", failure=error.message)
            raise WorkloadError(f"{error.message}\n(run: {_short(folder)})", error.fix) from None
        document = replace(judge_document(story.document, targets), state=state)
    write_run(folder, document)
    _write_text(folder / "report.md", render_markdown(document))
    return document, folder


class _Story:
    """The run as it grows: everything that is known so far stands in `document` and on disk."""

    def __init__(self, site: Site, request: Request, progress: Progress) -> None:
        self._site, self._request, self._progress = site, request, progress
        self._backend = _backend(request, site)
        self._setting = Setting(site.folder, site.workload.folder, request.timeout, progress.tick)
        self.document = RunDocument(
            name=site.workload.name,
            backend=self._backend.name,
            state="running",
            workload=site.workload,
            started=datetime.now(timezone.utc).isoformat(timespec="seconds"),
            machine=site.machine,
            tools=self._backend.tools,
        )

    def grow(self, **changes: object) -> None:
        """Add to the document and write it."""
        self.document = replace(self.document, **changes)  # type: ignore[arg-type]
        write_run(self._site.folder, self.document)

    def carry(self) -> None:
        """Every pass of the plan in turn; planned once more as soon as the first answer is there."""
        known = Known(marked=seems_marked(self._site.workload))
        plan = self._backend.plan(known)
        self.grow(plan=plan)
        plain: float | None = None
        if plan.passes and plan.passes[0].name == "timing" and plan.passes[0].skipped is None:
            known, plain = self._time(plan.passes[0])
            plan = self._backend.plan(known)
            self.grow(plan=plan)
        for pass_plan in plan.passes:
            if pass_plan.name != "timing" or pass_plan.skipped is not None:
                self._record(pass_plan, plain)
        if any(p.name == "counters" for p in self.document.passes):
            self._measure_peaks()

    def _time(self, plan: PassPlan) -> tuple[Known, float]:
        self._progress.begin("timing", f"up to {len(plan.steps)} processes, alone")
        record = record_timing(plan, self._setting, self._site.precision, self._site.budget * len(plan.steps))
        main = record.timings[0]
        seconds = [s for process in main.processes for s in process.seconds]
        result = replace(record.result, cost=record.result.seconds / record.plain_seconds)
        self.grow(
            timings=record.timings,
            passes=(*self.document.passes, result),
            readings=(
                *self.document.readings,
                *usage_readings(record.outcomes, whole=main.kind == "process"),
            ),
        )
        self._progress.end(f"{len(seconds)} samples in {result.seconds:.0f} s")
        # The mean: it decides how long passes repeat the work, and a few slow iterations take their time too.
        mean = sum(seconds) / len(seconds)
        return Known(marked=main.kind != "process", iteration_seconds=mean), record.plain_seconds

    def _record(self, plan: PassPlan, plain: float | None) -> None:
        if plan.skipped is not None:
            self._progress.note(f"{plan.name}: skipped, {plan.skipped}")
            self.grow(passes=(*self.document.passes, skipped(plan)))
            return
        expected = f"about {plan.cost * plain:.0f} s" if plan.cost is not None and plain is not None else ""
        self._progress.begin(plan.name, ", ".join(filter(None, (plan.tool or "", expected))))
        try:
            result = record_pass(plan, self._setting)
        except (KeyboardInterrupt, Interrupted):
            cut = PassResult(
                plan.name, plan.tool, "interrupted", reason="ended by the user before it was finished"
            )
            self.grow(passes=(*self.document.passes, cut))
            raise
        findings = Findings()
        try:
            findings = self._backend.findings(plan, result)
        except (
            UnreadableReport
        ) as error:  # half a file, when the pass failed; else the tool's fault: said either way
            if result.state == "finished":
                result = replace(result, state="failed", reason=error.message, fix=error.fix)
        if plain is not None:
            result = replace(result, cost=result.seconds / plain)
        self.grow(
            passes=(
                *self.document.passes,
                replace(result, artifacts=(*result.artifacts, *findings.artifacts)),
            ),
            counters=(*self.document.counters, *findings.counters),
            readings=(*self.document.readings, *findings.readings),
            profiles=(*self.document.profiles, *findings.profiles),
            summaries=(*self.document.summaries, *_summaries(findings)),
            notes=(*self.document.notes, *findings.notes),
        )
        self._progress.end(_ending(result))

    def _measure_peaks(self) -> None:
        self._progress.begin("peaks", "what this machine can do at best")
        log = self._site.folder / "logs" / "peaks.log"
        peaks, reason = record_peaks(self._site.machine, log, self._progress.tick)
        notes = (*self.document.notes, reason) if reason is not None else self.document.notes
        self.grow(peaks=peaks, notes=notes)
        self._progress.end("measured" if peaks is not None else str(reason))


def _summaries(findings: Findings) -> tuple[Summary, ...]:
    """What only its own pass can say; every other summary is made of readings when all are there."""
    return (summarize_allocations(findings.allocations),) if findings.allocations is not None else ()


def _ending(result: PassResult) -> str:
    cost = f", {result.cost:.1f} plain runs" if result.cost is not None else ""
    word = "done" if result.state == "finished" else f"{result.state}: {result.reason}"
    return f"{word} in {result.seconds:.0f} s{cost}"


def _site(request: Request, folder: Path) -> Site:
    wanted = request.passes
    unknown = [name for name in wanted or () if name not in PASSES]
    if unknown:
        raise UsageError(f"there is no pass called {unknown[0]!r}", f"--passes {','.join(PASSES)}")
    if request.passes is not None and not request.passes:
        raise UsageError("--passes names no pass", f"--passes {','.join(PASSES)}")
    if not 0.0001 <= request.precision <= 0.5:
        raise UsageError(
            f"a precision of {request.precision} is not between 0.0001 and 0.5", "--precision 0.01"
        )
    for option, value in (("--timeout", request.timeout), ("--budget", request.budget)):
        if value is not None and not value > 0:
            raise UsageError(f"{option} {value} is not a time in seconds")
    depth = cast(Depth, request.depth)
    return Site(
        workload=describe(request.command, request.name),
        machine=read_machine(),
        folder=folder.absolute(),
        depth=depth,
        wanted=wanted,
        precision=request.precision,
        budget=request.budget if request.budget is not None else BUDGETS[depth],
    )


def _backend_name(request: Request) -> Literal["cpu"]:
    if request.backend in ("auto", "cpu"):
        return "cpu"
    raise MachineError(f"profkit does not profile the {request.backend} backend yet", "--backend cpu")


def _backend(request: Request, site: Site) -> BackendRoom:
    _backend_name(request)
    from profkit.backends.cpu import Cpu

    return Cpu(site)


def _write_text(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8", errors="replace")
    except OSError as error:
        raise ProfkitError(f"cannot write {path}: {error.strerror}") from error


def _short(path: Path) -> str:
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
