"""Run a night: measure and decide each workload, run doubtful ones again, and write one report.

Whatever happens to one workload, the others have their turn; whatever ends the night, what was finished is
reported.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

from profkit.core.errors import (
    Interrupted,
    MachineError,
    ProfkitError,
    Progress,
    UsageError,
    WorkloadError,
    writing,
)
from profkit.core.files.safe_folder import chown_to_sudo_user, make_parents, remember
from profkit.core.run_folder import clean_name
from profkit.core.signals import defer_interrupts, raise_on_signals
from profkit.core.types import (
    Fact,
    MetricOutcome,
    Night,
    NightPairs,
    PairsCommand,
    WorkloadOutcome,
)
from profkit.core.types.history import GOOD, MISSED_TARGET, NOT_COMPARED, OUTCOME_ORDER
from profkit.regression.detection.nights import judge_last_night
from profkit.regression.history import History, open_history
from profkit.regression.nightly.config import NightConfig, WorkloadSpec
from profkit.regression.nightly.judge import judge_workload, past_of, vanished, with_steps
from profkit.regression.nightly.pairs import pair_workload, what_would_decide, with_pairs
from profkit.regression.nightly.session import (
    NightSession,
    NightState,
    WorkloadState,
    measure_workloads,
    nightly_lock,
    read_state,
    write_state,
    write_text,
)
from profkit.regression.paired.checkout import commit_of
from profkit.reporting import json, junit, markdown
from profkit.reporting.facts import fact_text
from profkit.reporting.forges import append_summary, summary_file
from profkit.reporting.views.night import view
from profkit.runtime.passes.secrets import mask_command

NIGHTS = "nights"


def run_night(
    config: NightConfig, progress: Progress, id: str | None = None, *, strict: bool = False
) -> tuple[Night, Path]:
    """Run the night, or continue the one with this id; return the night and its folder.

    Raises UsageError and MachineError before anything ran; later faults belong to the workload that met them. An
    interrupted night is returned as such.
    """
    with raise_on_signals(), nightly_lock(config.output), open_night_history(config) as history:
        folder, state = begin_night(config, id)
        session = NightSession(config, folder, state, history, progress, time.monotonic(), [])
        interrupted = False
        try:
            measure_workloads(session)
            run_pairs(session)
        except KeyboardInterrupt:
            interrupted = True
            progress.fail("interrupted")
        with defer_interrupts():  # all is measured: a Ctrl-C now must not cost the report
            night = decide_night(session, interrupted=interrupted, strict=strict)
            night = finish_night(session, night, strict=strict)
            chown_to_sudo_user(folder)
    return night, folder


def open_night_history(config: NightConfig) -> History:
    """Open the nightly's history. The fix of a fault names the key of the nightly's file."""
    try:
        return open_history(config.history)
    except ProfkitError as fault:
        if fault.fix is not None:
            fault.fix = fault.fix.replace("--history FILE", "history: FILE")
        raise


def begin_night(config: NightConfig, id: str | None) -> tuple[Path, NightState]:
    """Make the night's folder and return it with its state. Raises MachineError if it cannot be made.

    Raises UsageError for an id that is no name of a folder.
    """
    id = id if id is not None else f"{datetime.now():%Y%m%d-%H%M%S}"
    if not id.strip() or clean_name(id) != id:
        raise UsageError(f"{id!r} is not a name of a night", f"--night {clean_name(id)}")
    folder = (config.output / NIGHTS / id).absolute()
    with writing(folder, "output: FOLDER"):
        make_parents(folder)
        remember(folder)  # from here on nothing is written into what takes its place
    state = read_state(folder)
    if state is None:
        state = NightState(
            id, datetime.now(timezone.utc).isoformat(timespec="seconds"), commit_of(config.workloads[0].cwd)
        )
        write_state(folder, state)
    return folder, state


# ---------------------------------------------------------------- beside the last good commit


def run_pairs(session: NightSession) -> None:
    """Run every workload that was measured alternately with the last good commit.

    When a night is continued, also those whose pairs failed: what prevented them may be mended.
    """
    for spec in session.config.workloads if session.config.paired == "always" else ():
        done = session.state.done.get(spec.name)
        # Also of a run that was throttled: what slows the machine slows both.
        past = past_of(session.history, spec, done.entry) if done and done.ending == "done" else None
        before = session.state.paired.get(spec.name)
        if past is None or (before is not None and not before.failed):
            continue
        session.progress.begin(f"{spec.name} in pairs", "beside the last good commit")
        paired = pair_workload(session, spec, past.entry)
        count = paired.pairing.pairs if paired.pairing is not None else 0
        session.progress.end(fact_text(paired.why) or f"{count} pairs")
        session.save(replace(session.state, paired={**session.state.paired, spec.name: paired}))


# ---------------------------------------------------------------- the report


def decide_night(session: NightSession, *, interrupted: bool, strict: bool) -> Night:
    """Decide every workload, with tonight's pairs."""
    specs = session.config.workloads
    return build_night(
        session.state.id,
        session.config.name,
        session.state.started,
        [*(_decide_workload(session, spec, interrupted=interrupted) for spec in specs), *vanished(session)],
        strict=strict,
        commit=session.state.commit,
        seconds=session.seconds,
        notes=tuple(session.notes),
        interrupted=interrupted,
    )


def _decide_workload(session: NightSession, spec: WorkloadSpec, *, interrupted: bool) -> WorkloadOutcome:
    done = session.state.done.get(spec.name, WorkloadState("absent"))
    past = past_of(session.history, spec, done.entry)
    if past is None:
        return judge_workload(spec, done, None, [], session.folder)
    pairs = session.state.paired.get(spec.name)
    if pairs is None and interrupted and session.config.paired == "always":
        pairs = NightPairs(why=Fact("pairs interrupted"), failed=True)
    by_past = [
        judge_last_night(series, spec.rule(series.key.metric), past.accepted) for series in past.series
    ]
    outcomes = with_pairs(by_past, pairs, past)
    whole = judge_workload(spec, done, past.entry, outcomes, session.folder)
    if pairs is not None:
        kept = replace(pairs, changes=(), exact=())
        whole = replace(whole, fix=whole.fix or what_would_decide(whole.metrics, pairs), pairs=kept)
        if pairs.pairing is not None:
            env = [f"{name}={value}" for name, value in spec.env.items()]
            words = spec.command, session.config.pairs.setup, env
            whole = replace(whole, in_pairs=PairsCommand(*(mask_command(part)[0] for part in words)))
    return with_steps(session, whole)


def finish_night(session: NightSession, night: Night, *, strict: bool) -> Night:
    """Store the outcomes in the history and write the reports; what fails becomes notes of the night."""
    troubles = []
    for workload in night.workloads:
        done = session.state.done.get(workload.name)
        if done is not None and done.entry is not None:
            try:
                # What was not compared is no base of later nights, though its past lets it pass.
                failed = workload.pairs is not None and workload.pairs.failed and workload.outcome in GOOD
                session.history.decide(done.entry, NOT_COMPARED if failed else workload.outcome)
            except ProfkitError as fault:
                troubles.append(fault.message)
    troubles += write_reports(session.folder, night, strict=strict)
    return replace(night, notes=(*night.notes, *map(Fact.message, dict.fromkeys(troubles))))


# ---------------------------------------------------------------- the night as a whole


KNOWN_CODES = (MISSED_TARGET, "standing")  # nothing new tonight: behind what is
REGRESSION, UNDECIDED = 1, 5


def build_night(
    id: str,
    name: str,
    started: str,
    workloads: Sequence[WorkloadOutcome],
    *,
    strict: bool = False,
    **more: object,
) -> Night:
    """Build the night from its workloads; `more` are further fields of it."""
    ordered = sorted(workloads, key=lambda w: (OUTCOME_ORDER.index(w.outcome), w.code in KNOWN_CODES))
    night = Night(
        id=id,
        name=name,
        started=started,
        outcome=ordered[0].outcome if ordered else "missing",
        workloads=tuple(ordered),
    )
    night = replace(night, **more)  # type: ignore[arg-type]
    return replace(night, exit_code=exit_code(night, strict=strict))


def exit_code(night: Night, *, strict: bool = False) -> int:
    """Return the exit code that the contracts ask for, the gravest first.

    130 interrupted; 1 something regressed, or a requested target failed; 4 a workload failed, died or ran out of
    time; 3 this machine could not run one; 5 a workload or a metric was not measured for another reason, or what
    was measured is not valid, and with `strict` also where it could not be decided. 0 only where every workload
    ran.
    """
    if night.interrupted:
        return Interrupted.exit_code
    outcomes, endings = {w.outcome for w in night.workloads}, {w.ending for w in night.workloads}
    if "regressed" in outcomes:
        return REGRESSION
    if endings & {"workload-failed", "died", "out-of-time", "budget-spent"}:
        return WorkloadError.exit_code
    if endings & {"machine", "not-stored", "refused", "profkit-failed"}:
        return MachineError.exit_code
    if not outcomes or outcomes & {"missing", "invalid"} or (strict and "ambiguous" in outcomes):
        return UNDECIDED
    return 0


# ---------------------------------------------------------------- its files


def night_to_text(night: Night) -> str:
    """Encode the night as JSON, without the points behind its plots: the history has them, thousands of them."""
    workloads = tuple(replace(w, metrics=tuple(map(_without_points, w.metrics))) for w in night.workloads)
    return json.document(replace(night, workloads=workloads))


def _without_points(metric: MetricOutcome) -> MetricOutcome:
    if metric.trend is None:
        return metric
    return replace(metric, trend=replace(metric.trend, series=replace(metric.trend.series, points=())))


def write_reports(folder: Path, night: Night, *, strict: bool = False) -> list[str]:
    """Write the night's four files into `folder`, and GitHub's summary of the step if there is one.

    Returns what could not be written, in words: that fails no night.
    """
    from profkit.reporting.html import page  # here: its templates cost 50 ms

    blocks = view(night)
    texts = {
        "night.json": night_to_text(night),
        "report.md": markdown.render(blocks),
        "junit.xml": junit.render([blocks], strict=strict),
        "report.html": page.render(blocks),
    }
    faults = [_write_or_fault(folder / name, text) for name, text in texts.items()]
    if (summary := summary_file()) is not None:
        faults.append(append_summary(summary, blocks))
    return [fault for fault in faults if fault is not None]


def _write_or_fault(path: Path, text: str) -> str | None:
    try:
        write_text(path, text)
    except ProfkitError as fault:
        return fault.message
    return None
