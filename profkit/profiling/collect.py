"""Collects a run pass by pass: each pass is run, read, added to the document and written before the next begins."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

from profkit.analysis.hot_spots import hot_spots
from profkit.analysis.judge.findings import find_insights
from profkit.analysis.plausible import check_possible
from profkit.analysis.stacks.line_counts import lines_to_count
from profkit.analysis.summaries.host import INTERPRETER, LINEAR_ALGEBRA, share_of_libraries, time_split
from profkit.backends import Backend, PassFindings, PlanState, RunContext
from profkit.backends.passes import BackendRun, head_of
from profkit.core.errors import Interrupted, Progress, UnreadableReport, UsageError, WorkloadError
from profkit.core.formatting import plural
from profkit.core.run_folder import RunWriter
from profkit.core.signals import defer_interrupts
from profkit.core.types import (
    Fact,
    Insight,
    PassName,
    PassPlan,
    PassResult,
    Reading,
    RunDocument,
)
from profkit.hardware.peaks import kept_peaks, measure_peaks
from profkit.profiling.merge_findings import merge_findings
from profkit.profiling.program_warnings import read_warnings
from profkit.profiling.run_passes import PassRecord, ended_by_tool, run_pass
from profkit.profiling.run_steps import RunSettings, entered_region, remove_outputs
from profkit.profiling.schedule import Schedule
from profkit.profiling.time_limits import keep_to_budget, time_limit
from profkit.profiling.timing_pass import (
    TimingRecord,
    TimingRun,
    outside_seconds,
    resident_memory,
    start_seconds,
    typical_process,
    usage_readings,
    with_times,
)
from profkit.profiling.workload import read_revision, seems_marked, seems_server
from profkit.reporting.facts import fact_text
from profkit.reporting.views.run_insights import answer_text
from profkit.runtime.passes.host.shared_file import LOST
from profkit.runtime.passes.read import read_packages

PEAK_SECONDS = 3.0  # that the measurement of the machine's peaks takes, after the last pass
PLANNED_SHARE = 0.95  # of the time that a run may take without --budget: passes take longer than planned
TIMING_SHARE = 0.25  # of a budget, for the normal runs
# Without --budget these passes run even when the default time limit is nearly used up: the seconds by which they may
# exceed it. Counts of calls prove most causes, so these come before a simulation. By the estimates, short
# programs and those whose sampled run was slow by chance exceed the limit by up to 4 s; one that imports scikit-learn,
# which takes 14 s under valgrind, by 11. A region is marked for the sake of its numbers.
EXEMPT_FROM_DEFAULT_LIMIT: Mapping[PassName, float] = {
    "trace": math.inf,
    "stacks": math.inf,
    "counters": math.inf,
    "cprofile": math.inf,
}
SIMULATION_BEYOND = 4.0
FIRST_ANSWER = (2.5, 8.0)  # normal runs, and seconds, after which a first answer is given
SAMPLING_PASS_COST = 1.6  # estimated cost, in normal runs, of a pass that samples and traces
WAITING_LIMIT_FACTOR = 2.0  # times its limit: a step may take this long if it waited for a processor
SHORT_FIX = 30  # characters of a fix that is an option of this command, as --budget 46
EXPLAINING_LIMIT = (
    3.0,
    30.0,
)  # a failure is explained in at most so many times the time until it, plus seconds
# That profkit takes to judge and to write its reports; the same with what it takes to read what the last passes left.
REPORT_SECONDS, AFTER_SECONDS = 0.6, 1.0

_LOST = re.compile(re.escape(LOST).replace(r"\{\}", "(.+)"))

# Takes a document with all that is known so far, and returns it with verdicts.
Judge = Callable[[RunDocument], RunDocument]


class RunCollector:
    """A run that is being collected. Everything that is known so far is in `document` and on disk."""

    def __init__(
        self,
        context: RunContext,
        backend: Backend,
        run: BackendRun,
        progress: Progress,
        judge: Judge,
        began: float | None = None,
        trials: Callable[[RunDocument], float] = lambda _: 0.0,
    ) -> None:
        """Create the collector of a run that `began` at this moment of `time.monotonic`; None: now.

        `trials` returns how many normal runs the trials of what a document with its hot spots makes likely may take.
        """
        self._context, self._backend, self._run = context, backend, run
        self._progress, self._judge, self._trials = progress, judge, trials
        self._runs_for_trials = 0.0
        self._begin = began if began is not None else time.monotonic()
        self.first_answer: Insight | None = None  # of the first pass that sampled where the time goes
        self._answer: Insight | None = None  # the best answer so far
        self._changed_by = ""  # the pass that last changed it
        self._plain_seconds: float | None = None  # of a normal run, where one was timed
        # The timing pass and its plan, while more processes are to be timed once the first answer is given
        self._timing: tuple[TimingRun, PassPlan] | None = None
        self._runs_well = 0  # how often the workload ended well under instruments
        self._usage: tuple[Reading, ...] = ()  # what the operating system counted of the normal runs so far
        self._settings = RunSettings(
            context.folder,
            context.workload.folder,
            context.timeout,
            progress.tick,
            progress.note,
            context.hidden,
            given=context.given,
        )
        self._writer = RunWriter(context.folder)
        self._schedule = Schedule(run, context.depth, self._fit_to_time)
        document = RunDocument(
            name=context.workload.name,
            backend=backend.name,
            state="running",
            workload=context.workload,
            started=datetime.now(timezone.utc).isoformat(timespec="seconds"),
            machine=context.machine,
            notes=(Fact("hidden-arguments"),) if context.hidden else (),
        )
        self.document = context.shown(document)

    def update(self, **changes: object) -> None:
        """Add to the document and write it."""
        with defer_interrupts() as hurry:
            shown = {name: self._context.shown(value) for name, value in changes.items()}
            self.document = replace(self.document, **shown)  # type: ignore[arg-type]
            self._writer.write(self.document)
        if hurry.is_set():
            raise KeyboardInterrupt

    def collect(self) -> None:
        """Carry out every pass in turn; each is planned by what the passes before it found.

        Raises WorkloadError when the workload fails by itself, and passes KeyboardInterrupt on once what was finished
        is written.
        """
        revision = read_revision(self._context.workload)
        tools = {name: version for name, version in self._run.tool_versions().items() if version is not None}
        self.update(tools=tools, gpus=self._run.gpus, revision=revision)
        known = PlanState(marked=seems_marked(self._context.workload))
        plan: PassPlan | None = self._next_pass(known)
        if plan is None:
            raise UsageError("this backend has none of the passes named by --passes", "omit --passes")
        if seems_server(self._context.workload) and self._collect_server():
            return
        while plan is not None or self._timing is not None:
            if self._timing is not None and not self._answers_first(plan):
                known = self._finish_timing(*self._timing, known)
                plan = self._next_pass(known)
                continue
            assert plan is not None
            if plan.name == "explain" and known.verdicts is None:
                # This pass explains the verdicts on the passes before it.
                known = replace(known, verdicts=self._judge(self.document).verdicts)
                plan = self._next_pass(known) or plan
            known = self._carry_out(plan, known)
            plan = self._next_pass(known)
        counted = any(run.plan.name == "counters" for run in self._schedule.runs)
        if self._backend.host_peaks and counted:
            self._add_peaks()

    def _carry_out(self, plan: PassPlan, known: PlanState) -> PlanState:
        """Run, or skip, the pass whose turn it is; return what is known after it.

        Raises WorkloadError when the workload failed by itself.
        """
        if plan.name == "timing":
            known = self._begin_timing(plan, known)
        elif plan.skipped is not None or not plan.steps:
            self._skip_pass(plan)
        else:
            known = self._run_instrument(plan, known)
        # Of several profiles of imports, take that of the profiler that disturbed the program least.
        totals = {profile.kind: profile.total for profile in self.document.profiles if profile.unit == "s"}
        return replace(
            known,
            passes=self.document.passes,
            trace=self.document.trace,
            import_seconds=totals.get("sampled-imports", totals.get("imports")),
            hottest=next((sampled.hottest for sampled in self.document.sampled if sampled.native), None),
            product_share=share_of_libraries(self.document, LINEAR_ALGEBRA),
            python_share=share_of_libraries(self.document, INTERPRETER) or None,
            lines=lines_to_count(self.document),
        )

    def _run_instrument(self, plan: PassPlan, known: PlanState) -> PlanState:
        """Run a pass under its instrument and add what it found; return what it showed of the workload's marks."""
        record = self._collect_pass(plan, known)
        self._runs_well += record.runs_well
        # Where the workload ended well in another pass, the fault may be this one's instrument.
        well = any(result.state == "finished" for result in self.document.passes)
        # Until a pass has finished, whether a region is marked is a guess from the program's text.
        if not well and record.result.state == "finished":
            plan, known, record = self._repeat_if_misguessed(plan, known, record)
        # If a time limit ended the pass (the plan's or the budget's), its artifacts cover only a part of the program.
        ran = replace(plan, limit=record.limit)
        self._add_findings(ran, ended_by_tool(record) if well else record.result, known.plain_seconds)
        if record.workload_failure is not None and not well:
            raise WorkloadError(record.workload_failure)
        return known

    def _collect_server(self) -> bool:
        """Sample a server from its start until Ctrl-C; False where it ends by itself, or nothing can sample it."""
        stacks = next((plan for plan in self._schedule.waiting if plan.name == "stacks" and plan.steps), None)
        if stacks is None:
            return False
        self._progress.note(fact_text(Fact("server-until-interrupt")))
        self._progress.begin(stacks.name, "until Ctrl-C")
        begin = time.monotonic()
        try:
            record = run_pass(stacks, replace(self._settings, timeout=self._context.timeout))
        except (KeyboardInterrupt, Interrupted):
            artifacts = tuple(
                file
                for step in stacks.steps
                for file in step.artifacts
                if (self._context.folder / file).exists()
            )
            result = PassResult(
                stacks.name, stacks.tool, "finished", seconds=time.monotonic() - begin, artifacts=artifacts
            )
            self._schedule.stop()
            self._add_findings(stacks, result, None)
            self.update(notes=(*self.document.notes, Fact("server-was-ended")))
            return True
        if record.workload_failure is not None:
            raise WorkloadError(record.workload_failure)
        remove_outputs(stacks.steps, self._context.folder)
        self._progress.end("it ended by itself, so it is measured like any other program")
        return False

    def explain_failure(self, message: str) -> str | None:
        """Return what the backend finds out about a failed workload, as a first answer says it; None if nothing."""
        plan = self._run.after_failure(message)
        if plan is None:
            return None
        # The instrument may slow the workload down, but a program that then hangs must not block the run.
        limit = EXPLAINING_LIMIT[0] * (time.monotonic() - self._begin) + EXPLAINING_LIMIT[1]
        record = self._collect_pass(replace(plan, limit=limit), PlanState(marked=False))
        self._add_findings(plan, replace(record.result, state="finished", reason=None), None)
        answer = next(iter(find_insights(self._placed())), None)
        return f"{answer.title}: {answer.evidence}" if answer is not None else None

    def _next_pass(self, known: PlanState) -> PassPlan | None:
        """Return the pass whose turn it is; the plan is written where it differs from what was written."""
        plan = self._schedule.next_pass(known)
        if self._schedule.plan != self.document.plan:
            self.update(plan=self._schedule.plan)
        return plan

    def _fit_to_time(self, waiting: Sequence[PassPlan], known: PlanState) -> tuple[PassPlan, ...]:
        """Return the waiting passes, each shortened or skipped so that all fit into the time that is left."""
        budget = self._budget(known)
        if budget is None or known.plain_seconds is None:
            return tuple(waiting)
        # A budget of the user limits every pass.
        kept = dict(EXEMPT_FROM_DEFAULT_LIMIT) if self._context.budget is None else {}
        if kept and not known.marked and any(plan.simulated for plan in waiting):
            kept["counters"] = SIMULATION_BEYOND
        own = self._backend.allowances.get(self._context.depth) if self._context.budget is None else None
        left = self.left_of(budget)
        if self._timing is not None:  # the other normal runs get their time before the later passes
            left -= self._timing[0].owed(known.plain_seconds)
        trials = self._runs_for_trials * known.plain_seconds
        return keep_to_budget(waiting, left, known.plain_seconds, budget, kept, own, trials)

    def left_of(self, budget: float, after: float = AFTER_SECONDS) -> float:
        """Return the seconds of a budget that are left for passes; those `after` them are set aside."""
        return budget - (time.monotonic() - self._begin) - after

    def left_for_trials(self) -> float | None:
        """Return the seconds of the user's budget, or of what a run takes by itself, that are left; None: no limit."""
        if self._context.budget is not None:
            return self.left_of(self._context.budget, REPORT_SECONDS)
        allowance = self._backend.allowances.get(self._context.depth)
        if allowance is None or self._plain_seconds is None:
            return None
        runs, seconds = allowance
        return self.left_of(runs * self._plain_seconds + seconds, REPORT_SECONDS)

    def _budget(self, known: PlanState) -> float | None:
        """Return the wall seconds that the whole run may take; None: no limit, or not known yet."""
        if self._context.budget is not None:
            return self._context.budget
        allowance = self._backend.allowances.get(self._context.depth)
        # For a region on a device, each pass decides by itself how long it measures.
        no_allowance = self._context.wanted is not None or (known.marked and self._backend.has_device)
        if allowance is None or known.plain_seconds is None or no_allowance:
            return None
        runs, seconds = allowance
        return PLANNED_SHARE * (runs * known.plain_seconds + seconds)

    def _bounded(self, plan: PassPlan, plain: float | None) -> RunSettings:
        """Return the settings with the time that a process of the pass may take.

        The user's budget may end it before; `more` is the option that gives it more time.
        """
        context = self._context
        limit = time_limit(plan, context.depth, plain, context.timeout)
        more = f"--timeout {2 * limit:.0f}"
        longest = min(WAITING_LIMIT_FACTOR * limit, context.timeout or math.inf)
        if context.budget is not None:
            left_seconds = max(1.0, self.left_of(context.budget))
            if left_seconds < limit:
                limit, more = left_seconds, self._more_budget()
            longest = min(longest, left_seconds)
        return replace(self._settings, timeout=limit, longest=longest, more=more)

    def _more_budget(self) -> str:
        return f"--budget {2 * (self._context.budget or 0.0):.0f}"

    def _begin_timing(self, plan: PassPlan, known: PlanState) -> PlanState:
        """Run the timing pass, and return what the next plan may build on.

        Where a pass behind it gives the first answer, that waits for one process only; `_finish_timing` times the rest.
        """
        extra_seconds, settings = self._context.sampling * len(plan.steps), self._settings
        if self._context.budget is not None:
            extra_seconds = min(extra_seconds, TIMING_SHARE * self._context.budget)
            settings = replace(settings, more=self._more_budget())
        usual = self._backend.sampling[self._context.depth]
        timing = TimingRun(
            plan,
            settings,
            self._context.precision,
            extra_seconds,
            lambda timings: self.update(timings=timings),
            thorough=self._context.depth == "full",
            patient=self._context.budget is None and self._context.sampling != usual,
        )
        behind = next((waiting for waiting in self._schedule.waiting[1:] if waiting.skipped is None), None)
        first = self._answers_first(behind)
        processes = "a first process" if first else plural(len(plan.steps), "process", "processes")
        self._progress.begin("timing", f"{processes}, no profiler")
        try:
            record = (timing.first if first else timing.rest)(self._left_for_timing())
        except (KeyboardInterrupt, Interrupted):
            self._note_interruption(plan)
            raise
        result, changes = self._timed(plan, record)
        self._timing = (timing, plan) if not timing.is_complete else None
        self._end_pass(plan, result, warnings=read_warnings(self._context.folder / _log_of(plan)), **changes)
        self._progress.end(self._samples_taken(result))
        return with_times(known, record)

    def _finish_timing(self, timing: TimingRun, plan: PassPlan, known: PlanState) -> PlanState:
        """Time the other processes, after the first answer; return what is known with them."""
        self._timing = None
        self._progress.begin("timing", "further processes, no profiler")
        try:
            record = timing.rest(self._left_for_timing(), self._runs_well)
        except (KeyboardInterrupt, Interrupted):
            cut = next(result for result in self._schedule.results if result.name == plan.name)
            self._schedule.amend(replace(cut, state="interrupted", reason=Fact("cut-off")))
            self.update(passes=self._schedule.results)
            raise
        result, changes = self._timed(plan, record)
        self._schedule.amend(result)
        self.update(plan=self._schedule.plan, passes=self._schedule.results, **changes)
        self._progress.end(self._samples_taken(result))
        return with_times(known, record)

    def _left_for_timing(self) -> float | None:
        """Return the wall seconds that processes without a profiler may take; None: as long as they need."""
        budget = self._context.budget
        return max(1.0, self.left_of(budget)) if budget is not None else None

    def _samples_taken(self, result: PassResult) -> str:
        processes = self.document.timings[0].processes
        return f"{plural(sum(len(process.seconds) for process in processes), 'sample')} in {result.seconds:.0f} s"

    def _timed(self, plan: PassPlan, record: TimingRecord) -> tuple[PassResult, dict[str, object]]:
        """Return the result of the timing pass so far, and what of the document it changes."""
        main, outcomes, document = record.timings[0], record.outcomes, self.document
        wall = sum(outcome.seconds for outcome in outcomes)
        cpu = sum(outcome.cpu_seconds for outcome in outcomes)
        busy = cpu / wall if main.kind == "process" and wall > 0 else None
        before = self._usage
        self._usage = usage_readings(
            max((outcome.peak_rss for outcome in outcomes), default=0), busy, "getrusage"
        )
        typical = typical_process(record)
        resident = resident_memory(typical, record.begun)
        self._plain_seconds = record.plain_seconds
        return replace(record.result, cost=record.result.seconds / record.plain_seconds), {
            "readings": (*(reading for reading in document.readings if reading not in before), *self._usage),
            "time_split": time_split(
                typical.usage, outside_seconds(main, start_seconds(record)), typical.use
            ),
            "memory": (
                *filter(None, (resident,)),
                *(series for series in document.memory if series.kind != "resident"),
            ),
            "packages": read_packages(plan),
            "notes": tuple(dict.fromkeys((*document.notes, *record.notes))),
            "disturbances": record.disturbances,
        }

    def _repeat_if_misguessed(
        self, plan: PassPlan, known: PlanState, record: PassRecord
    ) -> tuple[PassPlan, PlanState, PassRecord]:
        """Return what the first pass showed of the workload's marks; where the guess was wrong, run it once more."""
        marked = entered_region(plan.steps)
        if marked == known.marked:
            return plan, known, record
        known = replace(known, marked=marked)
        again = self._next_pass(known) or plan
        if again.steps == plan.steps:
            return again, known, record
        word = "it marks a region" if marked else "no region was entered, so the whole process counts"
        self._progress.end(f"{word}: the pass runs again")
        remove_outputs(plan.steps, self._context.folder)
        return again, known, self._collect_pass(again, known)

    def _collect_pass(self, plan: PassPlan, known: PlanState) -> PassRecord:
        """Run one pass under an instrument."""
        plain, expected = known.plain_seconds, ""
        if plan.cost is not None and plain is not None:
            expected = f"about {plan.cost * plain:.0f} s"
        self._progress.begin(plan.name, ", ".join(part for part in (plan.tool, expected) if part))
        try:
            return run_pass(plan, self._bounded(plan, plain))
        except (KeyboardInterrupt, Interrupted):
            self._note_interruption(plan)
            raise

    def _add_findings(self, plan: PassPlan, result: PassResult, plain: float | None) -> None:
        """Read what the pass found and add it to the document."""
        findings, result = self._read_findings(plan, result)
        if plain is not None:
            result = replace(result, cost=result.seconds / plain)
        self._end_pass(
            plan,
            replace(result, artifacts=(*result.artifacts, *findings.artifacts)),
            **merge_findings(self.document, findings, plan.tool),
        )
        cost = f", {result.cost:.1f} times as long as one normal run" if result.cost is not None else ""
        took = f"in {result.seconds:.0f} s{cost}"
        if result.state in ("failed", "interrupted"):
            self._progress.fail(f"{result.state}: {fact_text(result.reason)} {took}")
        else:
            word = "done" if result.state == "finished" else f"{result.state}: {fact_text(result.reason)}"
            self._progress.end(f"{word} {took}")
        if (
            self.first_answer is None
            and findings.sampled is None
            and not self._trace_must_answer(findings, plain)
        ):
            return
        placed = self._placed()
        before, self._answer = self._answer, next(iter(find_insights(placed)), None)
        self._runs_for_trials = self._trials(placed)
        if self.first_answer is None and self._answer is not None:
            self.first_answer = self._answer
            self._progress.note(f"first answer: {answer_text(self._answer, self._context.workload.folder)}")
        elif is_another(before, self._answer):
            self._changed_by = plan.name
            if (
                self._answer is not None and findings.sampled is not None
            ):  # the first one came from a trace alone
                text = answer_text(self._answer, self._context.workload.folder)
                self._progress.note(f"{plan.name} says: {text}")

    def _placed(self) -> RunDocument:
        """Return what was measured so far, with the hot spots that follow from it."""
        return replace(self.document, hot_spots=hot_spots(self.document))

    def change_of(self, last: Insight | None) -> Fact | None:
        """Return how the first answer that was shown has changed; None where it is the same."""
        if self.first_answer is None or last is None or not is_another(self.first_answer, last):
            return None
        if last.rule == self.first_answer.rule and self.first_answer.where.file is None:
            return None  # a later pass only added the place
        shown = (replace(insight, gain=None) for insight in (last, self.first_answer))
        now, then = (answer_text(insight, self._context.workload.folder) for insight in shown)
        by = {"name": self._changed_by} if self._changed_by else {}
        return Fact.of("answer-changed-by" if by else "answer-changed", said=now, message=then, **by)

    def _answers_first(self, plan: PassPlan | None) -> bool:
        """Return whether the first answer is still to be given, and a pass may give it."""
        telling = plan is not None and plan.name in ("stacks", "trace") and bool(plan.steps)
        return telling and self.first_answer is None

    def _trace_must_answer(self, findings: PassFindings, plain: float | None) -> bool:
        """Return whether a trace has to give the first answer, because no later pass samples, or would end too late."""
        if findings.trace is None or plain is None:
            return False
        later = self._schedule.waiting
        runs, seconds = FIRST_ANSWER
        late = time.monotonic() - self._begin + SAMPLING_PASS_COST * plain > runs * plain + seconds
        return late or all(planned.name != "stacks" or planned.skipped is not None for planned in later)

    def _read_findings(self, plan: PassPlan, result: PassResult) -> tuple[PassFindings, PassResult]:
        """Read what the pass left; where that cannot be read, the pass has failed and adds nothing."""
        try:
            findings = self._run.findings(plan, result)
            check_possible(findings.profiles, findings.trace)
            if findings.absent is not None and result.state == "finished":
                result = replace(result, state="skipped", reason=findings.absent)
            return findings, result
        except UnreadableReport as error:
            reason = Fact.message(error.message, error.code)
            fix = error.fix or (f"see {Path(result.log).name}" if result.log is not None else None)
            if plan.tool is None and not result.artifacts:
                reason, fix = self._why_unwritten(result, fix)
        except OSError as error:
            reason, fix = Fact.of("not-written", said=error.strerror or str(error)), "--output FOLDER"
        if result.state == "finished":
            result = replace(result, state="failed", reason=reason, fix=fix)
        return PassFindings(), result

    def _why_unwritten(self, result: PassResult, fix: str | None) -> tuple[Fact, str | None]:
        """Return why a process of the workload wrote no result, according to its log, and what helps."""
        log = self._context.folder / result.log if result.log is not None else None
        lost = _LOST.search(head_of(log).decode("utf-8", "replace")) if log is not None else None
        if lost is None:
            return Fact("left-without-exit"), fix
        if "Permission denied" in lost[1]:
            return Fact(
                "output-refused"
            ), "sudo -E -u USER profkit profile -- COMMAND   (as that user from the start)"
        return Fact.of("result-lost", said=lost[1]), fix

    def _skip_pass(self, plan: PassPlan) -> None:
        plan = plan if plan.skipped is not None else plan.skip(Fact("nothing-to-look-at"))
        skipped = plan.skipped_result()
        if skipped.has_object:
            fix = f": {plan.fix}" if plan.fix and len(plan.fix) <= SHORT_FIX else ""
            self._progress.note(f"{plan.name}: skipped, {fact_text(plan.skipped)}{fix}")
        self._end_pass(plan, skipped)

    def _note_interruption(self, plan: PassPlan) -> None:
        self._end_pass(plan, PassResult(plan.name, plan.tool, "interrupted", reason=Fact("cut-off")))

    def _end_pass(self, plan: PassPlan, result: PassResult, **findings: object) -> None:
        """Note how a pass ended, and write it with what it found."""
        self._schedule.end(plan, result)
        self.update(plan=self._schedule.plan, passes=self._schedule.results, **findings)

    def _add_peaks(self) -> None:
        """Add this machine's peak bandwidth and arithmetic, where results can be compared with them."""
        budget = self._context.budget
        late = budget is not None and self.left_of(budget) < PEAK_SECONDS
        if late or not needs_peaks(self.document):
            self.update(peaks=kept_peaks(self._context.machine))
            return
        is_known = kept_peaks(self._context.machine) is not None
        seconds = "from an earlier run" if is_known else f"about {PEAK_SECONDS:.0f} s"
        self._progress.begin("peaks", f"this machine's highest bandwidth and arithmetic, {seconds}")
        begin = time.monotonic()
        log = self._context.folder / "logs" / "peaks.log"
        peaks, reason = measure_peaks(self._context.machine, log, self._progress.tick)
        notes = (*self.document.notes, reason) if reason is not None else self.document.notes
        self.update(peaks=peaks, notes=notes)
        if reason is None:
            self._progress.end("known" if is_known else f"measured in {time.monotonic() - begin:.0f} s")
        else:
            self._progress.fail(fact_text(reason))


def is_another(first: Insight | None, second: Insight | None) -> bool:
    """Return whether two answers name another pattern or another place."""
    if first is None or second is None:
        return first is not second
    return (first.rule, first.where.file, first.where.line) != (
        second.rule,
        second.where.file,
        second.where.line,
    )


def _log_of(plan: PassPlan) -> str:
    return f"logs/{plan.steps[0].name}.log"


def needs_peaks(document: RunDocument) -> bool:
    """Return whether any result can be compared with the machine's peaks: counted, or declared by the workload."""
    counted = any(
        reading.metric in ("flops", "dram.bytes", "dram.read") and reading.value is not None
        for reading in document.readings
    )
    return counted or any(timing.flops or timing.bytes for timing in document.timings)
