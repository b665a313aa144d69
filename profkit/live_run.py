"""The run as it grows: each pass is carried out, read, added to the document and written before the next begins."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone

from profkit.backends import BackendRoom, Findings, Known, Site
from profkit.errors import Interrupted, UnreadableReport
from profkit.model import PassPlan, PassResult, Plan, RunDocument, Summary
from profkit.progress import Progress
from profkit.recording.marks import entered_region, forget
from profkit.recording.passes import Setting, record_pass, skipped
from profkit.recording.peaks import record_peaks
from profkit.recording.timing import record_timing
from profkit.recording.usage import usage_readings
from profkit.run import write_run
from profkit.signals import hurried
from profkit.summaries.memory import summarize_allocations
from profkit.words import plural
from profkit.workload import seems_marked


class LiveRun:
    """One run under way. Everything that is known so far stands in `document` and on disk."""

    def __init__(self, site: Site, backend: BackendRoom, timeout: float | None, progress: Progress) -> None:
        self._site, self._backend, self._progress = site, backend, progress
        self._setting = Setting(site.folder, site.workload.folder, timeout, progress.tick)
        self.document = RunDocument(
            name=site.workload.name,
            backend=backend.name,
            state="running",
            workload=site.workload,
            started=datetime.now(timezone.utc).isoformat(timespec="seconds"),
            machine=site.machine,
        )

    def grow(self, **changes: object) -> None:
        """Add to the document and write it."""
        with hurried() as hurry:
            self.document = replace(self.document, **changes)  # type: ignore[arg-type]
            write_run(self._site.folder, self.document)
        if hurry.is_set():
            raise KeyboardInterrupt

    def carry_out(self) -> None:
        """Every pass of the plan in turn; planned once more as soon as the first answer is there.

        Raises WorkloadError when the workload fails by itself, and passes KeyboardInterrupt on once what was
        finished is written.
        """
        self.grow(tools=self._backend.tools)
        known = Known(marked=seems_marked(self._site.workload))
        plan = self._backend.plan(known)
        self.grow(plan=plan)
        plain: float | None = None
        first = plan.passes[0]
        guess = first.name != "timing"
        if not guess:
            known, plain = self._time(first)
            plan = self._backend.plan(known)
            self.grow(plan=plan)
        for number in range(
            len(plan.passes)
        ):  # the passes of a new plan are the same, their steps may differ
            planned = plan.passes[number]
            if planned.skipped is not None:
                self._skip(planned)
            elif planned.name != "timing":
                result = self._run(planned, plain)
                if guess and result.state == "finished":
                    guess = False
                    plan, result = self._guessed(plan, number, known, result)
                self._add(plan.passes[number], result, plain)
        if any(planned.name == "counters" for planned in plan.passes):
            self._measure_peaks()

    def _time(self, plan: PassPlan) -> tuple[Known, float]:
        """The timing pass; what the next plan may build on, and the wall seconds of one plain run."""
        self._progress.begin("timing", f"{plural(len(plan.steps), 'process', 'processes')}, alone")
        budget = self._site.budget * len(plan.steps)
        try:
            record = record_timing(
                plan, self._setting, self._site.precision, budget, lambda timings: self.grow(timings=timings)
            )
        except (KeyboardInterrupt, Interrupted):
            self._cut(plan)
            raise
        main = record.timings[0]
        seconds = [sample for process in main.processes for sample in process.seconds]
        result = replace(record.result, cost=record.result.seconds / record.plain_seconds)
        usage = usage_readings(record.outcomes, whole=main.kind == "process")
        self.grow(
            passes=(*self.document.passes, result),
            readings=(*self.document.readings, *usage),
            notes=(*self.document.notes, *record.notes),
        )
        self._progress.end(f"{len(seconds)} samples in {result.seconds:.0f} s")
        # The mean: it decides how long passes repeat the work, and a few slow iterations take their time too.
        mean = sum(seconds) / len(seconds)
        return Known(marked=main.kind != "process", iteration_seconds=mean), record.plain_seconds

    def _guessed(self, plan: Plan, number: int, known: Known, result: PassResult) -> tuple[Plan, PassResult]:
        """What the first pass showed of the workload's marks; where the guess was wrong, it runs once more."""
        planned = plan.passes[number]
        marked = entered_region(planned.steps)
        if marked == known.marked:
            return plan, result
        plan = self._backend.plan(replace(known, marked=marked))
        self.grow(plan=plan)
        if plan.passes[number].steps == planned.steps:
            return plan, result
        word = "it marks a region" if marked else "no region was entered, so the whole process counts"
        self._progress.end(f"{word}: once more")
        forget(planned.steps, self._site.folder)
        return plan, self._run(plan.passes[number], None)

    def _run(self, plan: PassPlan, plain: float | None) -> PassResult:
        """One pass under an instrument."""
        expected = f"about {plan.cost * plain:.0f} s" if plan.cost is not None and plain is not None else ""
        self._progress.begin(plan.name, ", ".join(part for part in (plan.tool, expected) if part))
        try:
            return record_pass(plan, self._setting)
        except (KeyboardInterrupt, Interrupted):
            self._cut(plan)
            raise

    def _add(self, plan: PassPlan, result: PassResult, plain: float | None) -> None:
        """What the pass found, read and added to the document."""
        findings, result = self._read(plan, result)
        if plain is not None:
            result = replace(result, cost=result.seconds / plain)
        known = self.document
        self.grow(
            passes=(*known.passes, replace(result, artifacts=(*result.artifacts, *findings.artifacts))),
            counters=(*known.counters, *findings.counters),
            readings=(*known.readings, *findings.readings),
            profiles=(*known.profiles, *findings.profiles),
            summaries=(*known.summaries, *_summaries(findings)),
            notes=(*known.notes, *findings.notes),
        )
        self._progress.end(_ending(result))

    def _read(self, plan: PassPlan, result: PassResult) -> tuple[Findings, PassResult]:
        """What the pass left. A failed pass may have left half a file: what cannot be read is not added."""
        try:
            return self._backend.findings(plan, result), result
        except UnreadableReport as error:
            reason, fix = error.message, error.fix
            if plan.tool is None and not result.artifacts:
                reason = "the program left Python without its exit (os._exit, exec): nothing could be written"
        except OSError as error:
            reason, fix = f"what it found could not be written: {error.strerror or error}", "--output FOLDER"
        if result.state == "finished":
            result = replace(result, state="failed", reason=reason, fix=fix)
        return Findings(), result

    def _skip(self, plan: PassPlan) -> None:
        self._progress.note(f"{plan.name}: skipped, {plan.skipped}")
        self.grow(passes=(*self.document.passes, skipped(plan)))

    def _cut(self, plan: PassPlan) -> None:
        cut = PassResult(plan.name, plan.tool, "interrupted", reason="ended before it was finished")
        self.grow(passes=(*self.document.passes, cut))

    def _measure_peaks(self) -> None:
        """What this machine can do at best: what bandwidth and arithmetic are held against."""
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
