"""The same checkout against itself, in pairs: how often this machine sees a change where there is none.

A history stores it as runs under names of their own (`gated_mlp/calibration`), whose value is the ratio.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from dataclasses import replace

from profkit.core.errors import ProfkitError
from profkit.core.run_folder import clean_name
from profkit.core.statistics import median
from profkit.core.types import Calibration, Change, Entry, SeriesKey, Value
from profkit.regression.history import History, HistoryFilter
from profkit.regression.nightly.config import WorkloadSpec
from profkit.regression.nightly.pairs import pair_options
from profkit.regression.nightly.session import CALIBRATION_FOLDER, NightSession
from profkit.regression.paired.checkout import CheckoutSpec
from profkit.regression.paired.interleave import TIME, PairedRuns
from profkit.regression.paired.version import version_of

CALIBRATION = "calibration"
_RUN_FACT = "of"  # of a calibration's entry: the id of the run whose checkout it was


def calibrate(session: NightSession, spec: WorkloadSpec, tonight: Entry) -> tuple[tuple[Change, ...], str]:
    """The same checkout against itself, by the same pairs and the same rule: the changes, and why there are none."""
    limits = session.config.calibrate
    if session.left <= 0:
        return (), "the night's budget is used up"
    folder = session.folder / CALIBRATION_FOLDER / clean_name(spec.name)
    options = pair_options(spec, session.config.pairs, min(limits.budget, session.left), limits.rounds)
    try:
        with version_of(
            None, spec.command, spec.cwd, CheckoutSpec(), folder, session.progress.tick, spec.env
        ) as version:
            result = PairedRuns(version, version, options, folder, session.progress).run()
    except ProfkitError as fault:
        return (), fault.message.splitlines()[0]
    finally:
        shutil.rmtree(session.folder / CALIBRATION_FOLDER, ignore_errors=True)
    if result.interrupted:
        raise KeyboardInterrupt
    changes = tuple(change for change in result.changes if change.metric == TIME)
    if changes:  # without time for four pairs it was no trial
        _store_trial(session.history, tonight, changes)
    return changes, "" if changes else "there was no time for four pairs"


def _store_trial(history: History, run: Entry, changes: Sequence[Change]) -> None:
    """Store the results of one checkout against itself; stored again they change nothing."""
    name = f"{run.workload}/{CALIBRATION}"
    facts, values = {_RUN_FACT: run.id}, []
    for change in changes:
        scope = change.scope
        facts[f"{change.metric} {scope.kind} {scope.name or ''}".rstrip()] = change.word
        if change.ratio is not None:
            sides = change.candidate, change.baseline
            samples = tuple(tuple(v for group in side.groups for v in group) for side in sides)
            key = SeriesKey(name, run.backend, change.metric, scope)
            values.append(
                Value(key, "ratio", "none", change.ratio, "measured", change.low, change.high, samples)
            )
    history.add(
        replace(
            run,
            id=f"{CALIBRATION}-{run.id}",
            workload=name,
            state="complete",
            source=f"profkit-{CALIBRATION}",
            path=None,
            facts=facts,
            values=tuple(values),
            outcome=None,
            valid=True,
            reason=None,
        )
    )


def last_trial(history: History, workload: str) -> str:
    """When a workload was last run against itself; empty where it never was."""
    return max((e.started for e in history.entries(HistoryFilter(f"{workload}/{CALIBRATION}"))), default="")


def calibration_of(history: History, workloads: Iterable[str], expected: float) -> Calibration | None:
    """All trials so far; `expected`: the share of them that chance alone gets wrong. None where there are none."""
    words: list[str] = []
    ratios: list[float] = []
    rounds = 0
    last: str | None = None
    for name in workloads:
        chosen = HistoryFilter(f"{name}/{CALIBRATION}")
        for entry in history.entries(chosen):
            words += [word for fact, word in entry.facts.items() if fact != _RUN_FACT]
            last = max(last or "", entry.started)
        for series in history.series(chosen) if last else ():
            ratios += [abs(point.value - 1) for point in series.points]
            rounds += sum(len(point.groups[0]) for point in series.points if point.groups)
    if not words:
        return None
    return Calibration(
        rounds=rounds,
        looked_at=len(words),
        alarms=words.count("different"),
        expected=len(words) * expected,
        noise=median(ratios) if ratios else None,
        worst=max(ratios, default=None),
        when=last,
    )
