"""Implements `profkit profile`: plans, runs and judges one workload.

Every step is written to run.json before the next begins, so that a run which dies at any moment can still be
read.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import cast, get_args

from profkit.analysis.judge.target import Target
from profkit.backends import Backend, PlanState, RunContext, choose_backend
from profkit.core.errors import (
    Interrupted,
    ProfkitError,
    Progress,
    UsageError,
    WorkloadError,
    writing,
)
from profkit.core.files.safe_folder import chown_to_sudo_user, held, opened, write_whole
from profkit.core.run_folder import create_run_folder, elsewhere, short_path, write_run
from profkit.core.signals import defer_interrupts, raise_on_signals
from profkit.core.standard_input import StandardInput, given_input
from profkit.core.types import Depth, PassName, Plan, RunDocument, RunState, Workload
from profkit.hardware.gpu_locks import lock_gpus
from profkit.hardware.machine import read_machine
from profkit.profiling.collect import RunCollector
from profkit.profiling.summarize import judge_document, targets_for
from profkit.profiling.trials.stage import TRYING, Trying, runs_for_trials, try_changes, wanted
from profkit.profiling.workload import describe_workload, seems_marked
from profkit.reporting import markdown
from profkit.reporting.facts import fact_text
from profkit.reporting.report_files import write_page
from profkit.reporting.views import run as run_view
from profkit.runtime.passes.secrets import mask_command

PASSES = get_args(PassName)


@dataclass(frozen=True)
class ProfileOptions:
    """The user's options. `precision` is a share (0.01 is ±1 %), the limits are wall seconds."""

    command: tuple[str, ...]
    backend: str = "auto"
    passes: tuple[str, ...] | None = None
    depth: str = "standard"
    targets: Path | None = None
    output: Path = Path("reports")
    name: str | None = None
    timeout: float | None = None
    precision: float = 0.01
    sampling: float | None = None  # of timing in one process
    budget: float | None = None  # of the whole run
    trying: str = "auto"  # which changes are tried: none, auto, all
    keep_arguments: bool = False  # write also those of the workload's arguments that look like secrets


def make_plan(options: ProfileOptions) -> Plan:
    """Return what a run would do, as far as can be known without running the workload."""
    check_options(options)
    workload = describe_workload(options.command, options.name)
    choice = choose_backend(options.backend, workload)
    context = _run_context(options, options.output / "RUN", workload, choice.backend)
    plan = choice.backend.start(context, choice.gpus).plan(PlanState(marked=seems_marked(workload)))
    return context.shown(plan)


def profile_workload(
    options: ProfileOptions,
    progress: Progress,
    *,
    page: bool = True,
    take_input: bool = False,
    began: float | None = None,
) -> tuple[RunDocument, Path]:
    """Run the workload through every pass, and return the judged run and its folder.

    Without `page` it has no report.html. `take_input`: standard input is the user's, and each run of the workload
    gets it. `began`: the moment of `time.monotonic` from which its time counts; None: now.

    Raises UsageError and MachineError before anything ran, and WorkloadError when the workload fails by itself.
    An error that is raised later leaves a run in the state `failed`, and names it (`run`). An interrupted run is
    returned in the state `interrupted`.
    """
    began = began if began is not None else time.monotonic()
    check_options(options)
    workload = describe_workload(options.command, options.name)
    choice = choose_backend(options.backend, workload)
    backend = choice.backend
    context = _run_context(options, options.output, workload, backend)
    targets = targets_for(backend.name, options.targets, workload.name)  # before an hour is spent
    state: RunState = "complete"
    with raise_on_signals(), contextlib.ExitStack() as last:
        given = StandardInput()
        if take_input:
            given = last.enter_context(given_input("profkit profile", options.command, progress))
            context = replace(context, given=given.file)
        facts = tuple(filter(None, (choice.reason, given.note)))
        for fact in facts:
            progress.note(fact_text(fact))
        last.enter_context(lock_gpus(backend.device_ids() if choice.gpus else (), progress))
        with defer_interrupts() as hurry:  # there is no folder without a run.json
            name = create_run_folder(options.output, workload.name, backend.name, datetime.now()).absolute()
            context = last.enter_context(kept_at_hand(context, name))
            folder = context.folder
            run = backend.start(context, choice.gpus)
            trying = cast(Trying, options.trying)
            collector = RunCollector(
                context,
                backend,
                run,
                progress,
                lambda d: judge_document(d, targets),
                began,
                lambda d: runs_for_trials(context, d, trying),
            )
            collector.update(notes=(*collector.document.notes, *facts))
        try:
            if hurry.is_set():
                raise KeyboardInterrupt
            collector.collect()
            _try_changes(collector, context, options, targets, progress)
        except (KeyboardInterrupt, Interrupted):
            state = "interrupted"
        except ProfkitError as fault:
            progress.fail("failed")
            if isinstance(fault, WorkloadError):
                with contextlib.suppress(
                    ProfkitError, KeyboardInterrupt
                ):  # the failure itself is reported anyhow
                    why = collector.explain_failure(fault.message)
                    fault.message += f"\n{why}" if why is not None else ""
            fault.message = context.shown(fault.message)
            _write_failure(collector, folder, targets, fault.message, page=page)
            fault.run = name
            raise
        except Exception as error:  # a folder must not stay in the state "running" when nothing runs any more
            progress.fail("failed")
            failure = context.shown(f"{type(error).__name__}: {error}")
            _write_failure(collector, folder, targets, failure, page=page)
            raise
        with defer_interrupts() as hurry:  # everything is measured: a Ctrl-C must not prevent the verdicts
            if state == "interrupted":
                progress.fail("interrupted; what was finished is kept")
            document = replace(judge_document(collector.document, targets), state=state)
            if (changed := collector.change_of(next(iter(document.insights), None))) is not None:
                document = replace(document, notes=(*document.notes, changed))
            if (why := write_reports(document, folder, page=page)) is not None:
                progress.note(context.shown(why))
    if hurry.is_set() and state == "complete":
        late = Interrupted("interrupted after everything was measured")
        late.run = name
        raise late
    return document, Path(short_path(name))


def _try_changes(
    collector: RunCollector,
    context: RunContext,
    options: ProfileOptions,
    targets: Sequence[Target],
    progress: Progress,
) -> None:
    """Try the changes that the run makes likely, and add their results to the run."""
    trying = cast(Trying, options.trying)
    if not wanted(context, trying):
        return
    passes = collector.document.passes
    try_changes(
        context,
        judge_document(collector.document, targets),
        trying,
        collector.left_for_trials(),
        progress,
        lambda trials, result: collector.update(trials=trials, passes=(*passes, result)),
    )


@contextlib.contextmanager
def kept_at_hand(context: RunContext, name: Path) -> Iterator[RunContext]:
    """Yield the context of a run in its folder, which is handed over to the caller of sudo at the end.

    No other user can replace the folder during the block, and errors show its usual name. Raises MachineError if
    another folder is in its place, at the beginning or at the end.
    """
    with contextlib.ExitStack() as last:
        with writing(name, elsewhere(name.parent)):
            folder = last.enter_context(held(name))
        last.callback(chown_to_sudo_user, folder)
        context = replace(context, folder=folder, name=name if folder != name else None)
        try:
            yield context
        except ProfkitError as fault:
            fault.message, fault.fix = context.shown((fault.message, fault.fix))
            raise
        fix = "--output FOLDER   (one that no other user can write to)"
        with writing(name, fix, "; the run lies where somebody moved it"), opened(name):
            pass


def write_reports(document: RunDocument, folder: Path, *, page: bool = True) -> str | None:
    """Write run.json and the reports next to it; return why there is no report.html, or None.

    Raises MachineError.
    """
    write_run(folder, document)
    with writing(folder / "report.md", "--output FOLDER"):
        write_whole(folder / "report.md", (markdown.render(run_view.view(document)),))
    return write_page(folder, document) if page else None


def _write_failure(
    collector: RunCollector, folder: Path, targets: Sequence[Target], failure: str, *, page: bool
) -> None:
    """Write that the run failed, and reports of what was finished before. Raises nothing.

    Writing may fail for the same reason as the run, and a Ctrl-C must not hide that reason: the original error is
    shown.
    """
    with defer_interrupts():
        with contextlib.suppress(Exception, KeyboardInterrupt):  # first the document, which needs no verdicts
            collector.update(state="failed", failure=failure)
        document = replace(collector.document, state="failed", failure=failure)
        with contextlib.suppress(Exception):  # a report without verdicts is worth more than none
            document = judge_document(document, targets)
        with contextlib.suppress(Exception):
            write_reports(document, folder, page=page)


def check_options(options: ProfileOptions) -> None:
    """Raise UsageError for options that make no sense, before anything else is done."""
    unknown = [name for name in options.passes or () if name not in PASSES]
    if unknown:
        raise UsageError(f"there is no pass called {unknown[0]!r}", f"--passes {','.join(PASSES)}")
    if options.passes is not None and not options.passes:
        raise UsageError("--passes names no pass", f"--passes {','.join(PASSES)}")
    if not 0.0001 <= options.precision <= 0.5:
        raise UsageError(
            f"a precision of {options.precision} is not between 0.0001 and 0.5", "--precision 0.01"
        )
    if options.trying not in TRYING:
        raise UsageError(f"--try {options.trying} is not one of {', '.join(TRYING)}", "--try auto")
    limits = (("--timeout", options.timeout), ("--sampling", options.sampling), ("--budget", options.budget))
    for option, value in limits:
        if value is not None and not value > 0:
            raise UsageError(f"{option} {value} is not a time in seconds")


def _run_context(options: ProfileOptions, folder: Path, workload: Workload, backend: Backend) -> RunContext:
    depth = cast(Depth, options.depth)
    return RunContext(
        workload=workload,
        machine=read_machine(),
        folder=folder.absolute(),
        depth=depth,
        wanted=options.passes,
        precision=options.precision,
        sampling=_sampling_seconds(options, backend, depth),
        timeout=options.timeout,
        budget=options.budget,
        hidden=() if options.keep_arguments else mask_command(options.command)[1],
    )


SAMPLING_SHARE = 0.1  # of a budget for the whole run: samples of one process, of which there are up to three


def _sampling_seconds(options: ProfileOptions, backend: Backend, depth: Depth) -> float:
    """Return the wall seconds for warm-up and samples in one process."""
    if options.sampling is not None:
        return options.sampling
    usual = backend.sampling[depth]
    return usual if options.budget is None else min(usual, max(0.5, SAMPLING_SHARE * options.budget))
