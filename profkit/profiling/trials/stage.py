"""Makes the trials of one run, after its passes, within the time for them, and adds them to the document."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, get_args

from profkit.backends import RunContext
from profkit.core.errors import Interrupted, Progress
from profkit.core.files.safe_folder import TemporaryFolder
from profkit.core.formatting import format_quantity, plural
from profkit.core.types import RUN, Fact, PassResult, RunDocument, Scope, Timing, TriedChange
from profkit.profiling.plain_run import RunOptions, value_of
from profkit.profiling.trials.experiment import TrialRun, TrialSetting
from profkit.profiling.trials.hypotheses import Experiment, experiments
from profkit.reporting.facts import fact_text
from profkit.reporting.views.run_trials import CHANGES
from profkit.runtime.passes.command import start_up_environment
from profkit.runtime.passes.secrets import MIN_CHARACTERS_ANYWHERE

Trying = Literal["none", "auto", "all"]
TRYING = get_args(Trying)
MAX_TRIALS = 3
# Normal runs, or seconds if these are more, that all trials may take together if they were requested by a pass or a
# budget: enough for the four pairs of a program of 3 s.
REQUESTED, ALL = (3.0, 30.0), (60.0, 600.0)
DECIDING = 60.0  # further seconds for a change that was faster once, if four pairs fit into them
# Without a request they get what the passes left of the time of the run, and a change that was faster in its one run
# all of it. One run is worth its time where four pairs do not fit, too: it refutes most changes.
UNREQUESTED = (3.0, 5.0)
# Normal runs that a change gets before passes that say less than it, if it may save half of the time or more: one run
# with it, and the pair that decides then.
SAVING, RUNS_OF_SAVING = 0.5, 2.0
MORE = "--try all"
DEPTHS = ("standard", "full")  # at which trials are made without a request


@dataclass(frozen=True)
class TrialTime:
    """Wall seconds for all trials of a run, and further ones for four pairs of a change that was faster once."""

    together: float
    deciding: float = 0.0
    requested: bool = True


def time_for(context: RunContext, trying: Trying, longest: float, left: float | None) -> TrialTime:
    """Return the time for trials of a program whose slowest normal run took `longest` seconds.

    `left`: seconds of the user's budget; else what the passes left of the time that a run takes by itself; None: no
    limit.
    """
    requested = trying == "all" or context.wanted is not None or context.budget is not None
    runs, seconds = ALL if trying == "all" else REQUESTED if requested or left is None else UNREQUESTED
    together = max(runs * longest, seconds)
    if left is None or (requested and context.budget is None):
        return TrialTime(together, DECIDING, requested)
    left = max(0.0, left)
    together = min(together, left)
    return TrialTime(together, min(DECIDING, left - together), requested)


def runs_for_trials(context: RunContext, document: RunDocument, trying: Trying) -> float:
    """Return how many normal runs the trials of a `document` with its hot spots shall have before lesser passes."""
    if not wanted(context, trying):
        return 0.0
    saves = any(experiment.share >= SAVING for experiment in _possible(context, document))
    return RUNS_OF_SAVING if saves else 0.0


def _possible(context: RunContext, document: RunDocument) -> list[Experiment]:
    """Return the experiments that a document makes likely and that can reach its program, the largest gain first."""
    # A change inside a Python process cannot reach another program.
    in_python = start_up_environment(context.workload.command, "interventions", context.folder)[0] is not None
    return [experiment for experiment in experiments(document) if in_python or not experiment.intervention]


def try_changes(
    context: RunContext,
    document: RunDocument,
    trying: Trying,
    left: float | None,
    progress: Progress,
    update: Callable[[tuple[TriedChange, ...], PassResult], None],
) -> None:
    """Make the trials that the judged `document` makes likely; each goes to `update` when it ends.

    `left`: see `time_for`. A Ctrl-C ends only the trials.
    """
    likely = _possible(context, document) if wanted(context, trying) and _is_whole(document) else []
    with TemporaryFolder() as folder:
        setting = _setting(context, document, progress, Path(folder)) if likely else None
        if setting is not None:
            _make_trials(context, setting, likely, trying, left, progress, update)


def _make_trials(
    context: RunContext,
    setting: TrialSetting,
    candidates: Sequence[Experiment],
    trying: Trying,
    left: float | None,
    progress: Progress,
    update: Callable[[tuple[TriedChange, ...], PassResult], None],
) -> None:
    """Make one trial after the other while the next one's first run fits into the time; record the rest as left out."""
    allowed = time_for(context, trying, setting.longest, left)
    begin = time.monotonic()
    deadline = begin + allowed.together
    done: tuple[TriedChange, ...] = ()
    waiting = list(candidates if trying == "all" else candidates[:MAX_TRIALS])
    while waiting and time.monotonic() + setting.longest <= deadline:
        experiment = waiting.pop(0)
        longer = ", longer if it helps" if allowed.deciding else ""
        progress.begin("try", f"{CHANGES[experiment.name]}, about {setting.longest:.0f} s{longer}")
        latest = deadline + allowed.deciding
        try:
            trial = TrialRun(
                setting, experiment, deadline, latest, context.timeout, patient=allowed.requested
            ).run()
        except (KeyboardInterrupt, Interrupted):
            trial = TriedChange(experiment.name, "interrupted", experiment.because, experiment.settings)
        done = (*done, trial)
        gone = time.monotonic() - begin
        cut = trial.state == "interrupted"
        progress.end(_outcome(trial))
        result = PassResult(
            "try",
            None,
            "interrupted" if cut else "finished",
            reason=Fact("cut-off") if cut else None,
            seconds=gone,
            cost=gone / setting.longest,
            log=f"logs/try-{experiment.name}.log",
        )
        update(done, result)
        if cut:
            return
    if waiting:
        seconds_left = max(0.0, deadline - time.monotonic())
        reason = Fact.of("trial-left-out", seconds=setting.longest, left=seconds_left)
        left_out = tuple(_left_out(experiment, reason) for experiment in waiting)
        if not done:  # the budget is spent
            progress.note(f"try: skipped, {fact_text(reason)}: {MORE}")
            result = PassResult("try", None, "skipped", reason=reason, fix=MORE)
        update((*done, *left_out), result)


def _left_out(experiment: Experiment, reason: Fact) -> TriedChange:
    because, settings = experiment.because, experiment.settings
    return TriedChange(experiment.name, "left-out", because, settings, experiment.where, reason=reason)


def wanted(context: RunContext, trying: Trying) -> bool:
    """Return whether trials are made: not where passes were named without them, or at a small depth."""
    if trying == "none":
        return False
    if context.wanted is not None:
        return trying == "all" or "try" in context.wanted
    return trying == "all" or context.depth in DEPTHS


def _is_whole(document: RunDocument) -> bool:
    """Return whether the document has times with which a trial can be compared."""
    return bool(document.timings) and document.timings[0].group is None


def _setting(
    context: RunContext, document: RunDocument, progress: Progress, folder: Path
) -> TrialSetting | None:
    timing = document.timings[0]
    timed = [
        value_of(replace(timing, processes=(samples,))) for samples in timing.processes if samples.seconds
    ]
    wall = document.time_split.wall if document.time_split is not None else None
    if not timed or wall is None:
        return None
    seconds = (
        tuple(s for samples in timing.processes for s in samples.seconds)
        if timing.kind == "process"
        else tuple(timed)
    )
    options = RunOptions(sampling=min(1.0, context.sampling), precision=context.precision)
    return TrialSetting(
        command=context.workload.command,
        cwd=Path(context.workload.folder),
        folder=folder / "trial",
        logs=context.folder / "logs",
        scope=_scope(timing),
        plain=seconds,
        longest=_wall_of_trial(timing, wall, options.sampling),
        options=options,
        tick=progress.tick,
        hidden=[secret for secret in context.hidden if len(secret) >= MIN_CHARACTERS_ANYWHERE],
        given=context.given,
    )


def _scope(timing: Timing) -> Scope:
    return RUN if timing.kind == "process" else Scope("region", timing.name)


def _wall_of_trial(timing: Timing, wall: float, sampling: float) -> float:
    """Return the wall seconds of a process in a trial, in which a benchmark samples for a shorter time."""
    if timing.kind != "benchmark":
        return wall
    spent = max((samples.spent for samples in timing.processes), default=0.0)
    return max(0.1, wall - max(0.0, spent - sampling))


def _outcome(trial: TriedChange) -> str:
    """Return the result in words: `2.31 to 1.87 s (-19 %) in 5 pairs`."""
    if trial.state in ("faster", "slower", "other-output") and trial.ratio is not None:
        before, after = (format_quantity(seconds or 0.0, "s") for seconds in (trial.before, trial.after))
        note = ", but it printed something else" if trial.state == "other-output" else ""
        return (
            f"{before} to {after} ({100 * (trial.ratio - 1):+.0f} %) in {plural(trial.pairs, 'pair')}{note}"
        )
    return {
        "same": "not faster",
        "slower": "slower in one run",
        "undecided": "not decided",
        "failed": "the program failed with it",
        "without-hold": "the change did not reach the program",
        "interrupted": "interrupted",
    }.get(trial.state, trial.state)
