"""Trials of the same code against itself, as the history keeps them: what this machine calls a change where none is.

They are entries as runs are, under names of their own (`gated_mlp/calibration`), so that one file holds all that a
night depends on, and export, prune and several writers work for them too. Their value is the ratio that was measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timezone

from profkit.core.statistics import median
from profkit.core.types import Calibration, Entry, Scope, SeriesKey, Value
from profkit.regression.detection.confirm import Confirmation
from profkit.regression.history import History
from profkit.regression.nightly.rounds import Wanted

KIND = "calibration"
_OF = "of"  # the fact that names the run whose checkout it was


def now() -> str:
    """This moment, ISO 8601 in UTC."""
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def remember_trial(history: History, of: Entry, words: Mapping[Wanted, Confirmation]) -> None:
    """Keep the words on one checkout against itself; told again they change nothing."""
    values = []
    for (metric, scope), word in words.items():
        change = word.change
        if change is not None and change.ratio is not None:
            samples = tuple(
                tuple(v for group in side.groups for v in group)
                for side in (change.candidate, change.baseline)
            )
            key = SeriesKey(f"{of.workload}/{KIND}", of.backend, metric, scope)
            values.append(
                Value(key, "ratio", "none", change.ratio, "measured", change.low, change.high, samples)
            )
    history.add(
        Entry(
            id=f"{KIND}-{of.id}",
            started=of.started,
            workload=f"{of.workload}/{KIND}",
            backend=of.backend,
            state="complete",
            source=f"profkit-{KIND}",
            machine=of.machine,
            features=of.features,
            commit=of.commit,
            dirty=of.dirty,
            night=of.night,
            facts={_OF: of.id, **{_fact(*want): word.word for want, word in words.items()}},
            values=tuple(values),
        )
    )


def last_trial(history: History, workload: str) -> str:
    """When a workload was last run against itself; empty where it never was."""
    return max((e.started for e in history.entries(workload=f"{workload}/{KIND}")), default="")


def calibration(history: History, workloads: Iterable[str], expected: float) -> Calibration | None:
    """All trials so far; `expected`: the share of them that chance alone gets wrong. None where there are none."""
    rounds = looked = alarms = 0
    ratios: list[float] = []
    when: str | None = None
    for name in workloads:
        for entry in history.entries(workload=f"{name}/{KIND}"):
            words = [word for fact, word in entry.facts.items() if fact != _OF]
            looked += len(words)
            alarms += words.count("different")
            when = max(when or "", entry.started)
        for series in history.series(workload=f"{name}/{KIND}") if when else ():
            ratios += [abs(point.value - 1) for point in series.points]
            rounds += sum(len(point.groups[0]) for point in series.points if point.groups)
    if not looked:
        return None
    return Calibration(
        rounds=rounds,
        looked_at=looked,
        alarms=alarms,
        expected=looked * expected,
        noise=median(ratios) if ratios else None,
        worst=max(ratios, default=None),
        when=when,
    )


def _fact(metric: str, scope: Scope) -> str:
    return f"{metric} {scope.kind} {scope.name or ''}".rstrip()
