"""What a night's reports say alike: signs, order, and the sentences that they share."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import PurePath

from profkit.core.formatting import figures, plural, quantity
from profkit.core.types import Incident, MetricOutcome, Night, Outcome, WorkloadOutcome
from profkit.reporting.views.comparison import DISTURBANCES as DOUBTS

# The worst first: what is wrong, what was not measured, what is not known, what is good.
ORDER: tuple[Outcome, ...] = ("regressed", "missing", "invalid", "ambiguous", "improved", "new", "pass")
SIGNS: dict[Outcome, str] = {
    "regressed": "✗",
    "missing": "!",
    "invalid": "!",
    "ambiguous": "?",
    "improved": "▲",
    "new": "+",
    "pass": "✓",
}
WORDS: dict[Outcome, str] = {outcome: outcome.upper() for outcome in ORDER}
QUIET: tuple[Outcome, ...] = ("pass", "new")  # what is folded: nobody needs to act
TARGET = "target"  # the code of a workload that only misses a target: nothing became slower


def word_of(workload: WorkloadOutcome) -> str:
    """`REGRESSED`, ...; a target that is missed is `FAILED`, since nothing need have changed."""
    return "FAILED" if workload.code == TARGET else WORDS[workload.outcome]


def counted(workloads: Sequence[WorkloadOutcome]) -> list[tuple[Outcome, str]]:
    """`✗ 1 REGRESSED`, `✓ 7 PASS`: how many workloads of each outcome, the worst first."""
    told: list[tuple[Outcome, str]] = []
    for outcome in ORDER:
        words = [word_of(workload) for workload in workloads if workload.outcome == outcome]
        for word in dict.fromkeys(words):
            told.append((outcome, f"{SIGNS[outcome]} {words.count(word)} {word}"))
    return told


def shared(night: Night) -> list[Incident]:
    """The incidents of several metrics: one of a single metric says no more than the metric does."""
    return [incident for incident in night.incidents if len(incident.members) > 1]


def change_of(metric: MetricOutcome) -> str:
    """`640 µs → 694 µs (+8.4 %)`; what there is of it."""
    if metric.value is None:
        return ""
    now = quantity(metric.value, metric.unit)
    if metric.expected is None:
        return now
    text = f"{quantity(metric.expected, metric.unit)} → {now}"
    return f"{text} ({share(metric.value / metric.expected - 1)})" if metric.expected else text


def share(ratio: float) -> str:
    """A relative change with its sign: `+8.4 %`."""
    return f"{'+' if ratio >= 0 else '-'}{figures(abs(ratio) * 100, 2)} %"


def seen(metric: MetricOutcome) -> str:
    """How small a change tonight could have seen."""
    return "not known" if metric.detectable is None else f"{figures(metric.detectable * 100, 2)} %"


def name_of(metric: MetricOutcome) -> str:
    """The metric, and where it was measured if that is not the run."""
    return f"{metric.metric} of {metric.scope.name}" if metric.scope.name else metric.metric


def alarming(workload: WorkloadOutcome) -> list[MetricOutcome]:
    """The metrics that somebody must look at, the worst first; those that gate before those that are watched."""
    loud = [m for m in workload.metrics if m.outcome not in QUIET]
    return sorted(loud, key=lambda m: (not m.gates, ORDER.index(m.outcome)))


def quiet(workload: WorkloadOutcome) -> list[MetricOutcome]:
    """The metrics that passed or are new, in the order in which they stand."""
    return [m for m in workload.metrics if m.outcome in QUIET]


def missed(workload: WorkloadOutcome) -> list[str]:
    """Targets that failed, with the reason of each."""
    return [
        f"target {v.target} ({v.threshold}): {v.reason}" for v in workload.verdicts if v.verdict == "fail"
    ]


def causes(workload: WorkloadOutcome) -> list[str]:
    """Why it changed, as far as the counters of tonight's run and of the last good one tell."""
    found = workload.comparison.causes if workload.comparison is not None else ()
    return [cause.sentence for cause in found if cause.kind not in DOUBTS]


def doubts(workload: WorkloadOutcome) -> list[str]:
    """What was in the way of measuring tonight's run or the last good one: no reason for a change."""
    found = workload.comparison.causes if workload.comparison is not None else ()
    return [" ".join((c.sentence, *c.evidence)) for c in found if c.kind in DOUBTS]


def evidence(metric: MetricOutcome) -> list[str]:
    """What the re-run of this night showed, and where to look: the commits since the last good one."""
    told = []
    if (change := metric.change) is not None and None not in (change.ratio, change.low, change.high):
        by, low, high = (share((end or 0.0) - 1) for end in (change.ratio, change.low, change.high))
        told.append(f"side by side with the last good commit: {by}, between {low} and {high}")
    good, here = metric.good_commit, metric.commit
    if metric.outcome in ("regressed", "ambiguous") and good and here and good != here:
        told.append(f"what came in: git log {good[:12]}..{here[:12]}")
    return told


def following(workload: WorkloadOutcome) -> list[str]:
    """What to type next of a workload that regressed: the whole comparison, and what makes a change the normal."""
    if workload.outcome != "regressed" or workload.code == TARGET:
        return []
    told = []
    if (found := workload.comparison) is not None and found.baseline.path and found.candidate.path:
        told.append(f"profkit compare {' '.join(_near(found.baseline.path, found.candidate.path))}")
    return [
        *told,
        f"profkit history accept {shlex.quote(workload.name)} --because WHY  # if it is meant to be so",
    ]


def _near(baseline: str, candidate: str) -> list[str]:
    """Both folders as they are typed where the nightly's file lies: `reports/nights/n1/...`, without the host's own."""
    paths = [PurePath(baseline), PurePath(candidate)]
    if all(path.is_absolute() for path in paths) and baseline != candidate:
        shared = PurePath(os.path.commonpath(paths)).parent.parent
        paths = [path.relative_to(shared) for path in paths]
    return [shlex.quote(str(path)) for path in paths]


def points(metric: MetricOutcome) -> list[str]:
    """The change points of its history, the newest first."""
    told = []
    for point in reversed(metric.change_points):
        ratio = f" ({share(point.ratio - 1)})" if point.ratio is not None else ""
        when = f" on {point.started[:10]}" if point.started else ""
        commit = f" with {point.commit[:12]}" if point.commit else ""
        values = f"{quantity(point.before, metric.unit)} → {quantity(point.after, metric.unit)}{ratio}"
        told.append(f"changed{when}{commit}: {values}; {plural(len(point.votes), 'detector')} of 3 say so")
    return told


def epochs(workload: WorkloadOutcome) -> list[str]:
    """Where its series begin anew, each told once, the newest first."""
    told: dict[str, None] = {}
    for metric in workload.metrics:
        for epoch in reversed(metric.trend.epochs if metric.trend is not None else ()):
            if epoch.cause != "begin" and metric.trend is not None:
                when = metric.trend.series.points[epoch.first].started[:10]
                told[f"new epoch since {when}: {epoch.reason}"] = None
    return sorted(told, reverse=True)


def chance_line(night: Night) -> str | None:
    """`2 of 40 metrics outside of their bands; 0.4 expected by chance`."""
    if not night.looked_at:
        return None
    told = f"{night.suspects} of {plural(night.looked_at, 'metric')} outside of their bands"
    if night.expected_false is None:
        return told
    return f"{told}; {figures(night.expected_false, 2)} expected by chance"


def calibration_line(night: Night) -> str | None:
    """What the same code against itself showed on this machine."""
    c = night.calibration
    if c is None or not c.looked_at:
        return None
    alarms = f"{plural(c.alarms, 'alarm')} in {plural(c.looked_at, 'trial')} of the same code against itself"
    told = f"{alarms}, {figures(c.expected, 2)} expected by chance"
    if c.noise is not None:
        told += f"; one and the same differed by {figures(c.noise * 100, 2)} % (median)"
    if c.worst is not None:
        told += f", {figures(c.worst * 100, 2)} % at most"
    return told


def heading(night: Night) -> str:
    """`ours: night 20261120-0200, commit 1a2b3c4d5e6f`."""
    commit = f", commit {night.commit[:12]}" if night.commit else ""
    return f"{night.name}: night {night.id}{commit}"


def summed_up(night: Night) -> str:
    """One line for people in a hurry."""
    told = ", ".join(text for _, text in counted(night.workloads)) or "no workload"
    return f"{told} in {duration(night.seconds)}" + ("; interrupted" if night.interrupted else "")


def duration(seconds: float) -> str:
    """`42 s`, `8 min 20 s`, `2 h 5 min`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
