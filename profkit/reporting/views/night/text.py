"""Texts of a night: the words of its outcomes, and the sentences on its metrics and workloads."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import PurePath

from profkit.core.formatting import format_figures, format_quantity, plural, signed
from profkit.core.types import MetricOutcome, Night, NightPairs, Outcome, WorkloadOutcome
from profkit.core.types.night import (
    EXACTLY,
    FIRST,
    MISSED_TARGET,
    NOT_COMPARED,
    OUTCOME_ORDER,
    PAIRED,
    SAME_CODE,
)
from profkit.reporting.charts.trend import segment_reason
from profkit.reporting.view import Span, Status, Text, strong
from profkit.reporting.views.comparison import DISTURBANCES
from profkit.reporting.views.comparison.words import cause_text, evidence_texts, fact_text
from profkit.reporting.views.night.reasons import no_pairs, reason_of, uncounted

OUTCOMES: dict[Outcome, Status] = {
    "regressed": Status.FAIL,
    "missing": Status.REFUSED,
    "invalid": Status.INVALID,
    "ambiguous": Status.UNKNOWN,
    "improved": Status.BETTER,
    "new": Status.NEW,
    "pass": Status.PASS,
}
BESIDE_BASE = (PAIRED, EXACTLY)  # codes whose reason begins with the size of the change
# Codes whose reason begins with the value, and with what it is compared with.
_WITH_VALUE = ("collapse", "held", "seen-before", "suspect", "same", "same-night", "perhaps-better")
QUIET: tuple[Outcome, ...] = ("pass", "new")  # nobody needs to act


def word_of(workload: WorkloadOutcome) -> str:
    """`REGRESSED`, ...; a target that is missed is `FAILED`, since nothing need have changed."""
    return "FAILED" if workload.code == MISSED_TARGET else workload.outcome.upper()


def counts(workloads: Sequence[WorkloadOutcome]) -> Text:
    """`✗ 1 REGRESSED, ✓ 7 PASS`: how many workloads of each outcome, the worst first."""
    parts: list[str | Span] = []
    for outcome, status in OUTCOMES.items():
        words = [word_of(workload) for workload in workloads if workload.outcome == outcome]
        for word in dict.fromkeys(words):
            parts += [", "] if parts else []
            parts.append(strong(f"{status.sign} {words.count(word)} {word}", status))
    return tuple(parts) or "no workload"


def change_of(metric: MetricOutcome) -> str:
    """`640 µs → 694 µs (+8.4 %)`; what there is of it."""
    if metric.value is None:
        return ""
    now = format_quantity(metric.value, metric.unit)
    if metric.expected is None:
        return now
    text = f"{format_quantity(metric.expected, metric.unit)} → {now}"
    if not metric.expected or metric.code in BESIDE_BASE:
        return text
    return f"{text} ({_signed(metric.value / metric.expected - 1)})"


def why_of(metric: MetricOutcome, pairs: NightPairs | None) -> str:
    """Its change, and the reason of its outcome."""
    change, reason = change_of(metric), reason_of(metric, pairs)
    return f"{change}: {reason}" if change and metric.code not in _WITH_VALUE else reason


def _signed(ratio: float) -> str:
    """A relative change with its sign: `+8.4 %`."""
    return f"{signed(100 * ratio, 2)} %"


def detectable(metric: MetricOutcome) -> str:
    """How small a change tonight could have seen."""
    if metric.detectable is None:
        return "-" if metric.outcome == "new" or metric.code == "same-code" else "not known"
    return f"{format_figures(metric.detectable * 100, 2)} %"


def alarming(workload: WorkloadOutcome) -> list[MetricOutcome]:
    """The metrics that somebody must look at, the worst first; those that gate before those that are watched."""
    loud = [metric for metric in workload.metrics if metric.outcome not in QUIET]
    return sorted(loud, key=lambda metric: (not metric.gates, OUTCOME_ORDER.index(metric.outcome)))


def causes(workload: WorkloadOutcome) -> list[str]:
    """Why it changed, as far as the counters of tonight's run and of the last good one tell."""
    all_causes = workload.comparison.causes if workload.comparison is not None else ()
    return [cause_text(cause) for cause in all_causes if cause.kind not in DISTURBANCES]


def disturbances(workload: WorkloadOutcome) -> list[str]:
    """What disturbed the measuring of tonight's run or the last good one: no reason for a change.

    Nothing where these runs decided nothing: pairs did, for both sides alike, or nothing was compared.
    """
    moved = [m for m in alarming(workload) if m.gates]
    if workload.comparison is None or all(m.code in (*BESIDE_BASE, "not-compared") for m in moved):
        return []
    told = [cause for cause in workload.comparison.causes if cause.kind in DISTURBANCES]
    return [
        f"{cause_text(c).rstrip('.')}: {'; '.join(evidence_texts(c))}" if c.evidence else cause_text(c)
        for c in told
    ]


def evidence(metric: MetricOutcome) -> list[str]:
    """Where to look: the commits since the last good one."""
    good, here = metric.good_commit, metric.commit
    if metric.outcome in ("regressed", "ambiguous") and good and here and good != here:
        return [f"commits since then: git log {good[:12]}..{here[:12]}"]
    return []


def next_lines(workloads: Sequence[WorkloadOutcome]) -> tuple[str, ...]:
    """What to type next; a bisection of the same two commits once, by the first workload that they made slower."""
    lines: list[str] = []
    bisected: set[tuple[str, str]] = set()
    for workload in workloads:
        ends = _ends_of(workload)
        lines += _next_commands(workload, bisect=ends not in bisected)
        bisected |= {ends} if ends is not None else set()
    return tuple(lines)


def _ends_of(workload: WorkloadOutcome) -> tuple[str, str] | None:
    """The last good commit and the one that its worst metric regressed with, where two commits are known."""
    worst = next((m for m in workload.metrics if m.gates and m.outcome == "regressed"), None)
    good, here = (worst.good_commit, worst.commit) if worst is not None else (None, None)
    return (good, here) if good and here and good != here else None


def _next_commands(workload: WorkloadOutcome, *, bisect: bool) -> list[str]:
    """What to type next of a workload that regressed: the whole comparison, and what makes a change the normal."""
    if workload.outcome != "regressed" or workload.code == MISSED_TARGET:
        return []
    lines = []
    ends = _ends_of(workload)
    if workload.in_pairs and ends is not None:
        good, here = ends
        how = workload.in_pairs
        setup = ("--setup", shlex.join(how.setup)) if how.setup else ()
        end = shlex.join((*setup, "--", *how.command))
        start = " ".join((*map(_quoted_value, how.env), "profkit"))
        lines.append(f"{start} compare --base {good[:12]} --head {here[:12]} {end}  # why")
        if bisect:
            lines.append(f"{start} bisect {good[:12]} {here[:12]} {end}  # if there are commits between them")
    elif (
        (comparison := workload.comparison) is not None
        and comparison.baseline.path
        and comparison.candidate.path
    ):
        lines.append(
            f"profkit compare {' '.join(_short_paths(comparison.baseline.path, comparison.candidate.path))}"
        )
    accept = f"profkit history accept {shlex.quote(workload.name)} --because WHY  # if it is meant to be so"
    return [*lines, accept]


def _quoted_value(assignment: str) -> str:
    name, _, value = assignment.partition("=")
    return f"{name}={shlex.quote(value)}"


def _short_paths(baseline: str, candidate: str) -> list[str]:
    """Both folders as they are typed where the nightly's file lies: `reports/nights/n1/...`, without the host's own."""
    paths = [PurePath(baseline), PurePath(candidate)]
    if all(path.is_absolute() for path in paths) and baseline != candidate:
        shared = PurePath(os.path.commonpath(paths)).parent.parent
        paths = [path.relative_to(shared) for path in paths]
    return [shlex.quote(str(path)) for path in paths]


def change_points(metric: MetricOutcome) -> list[str]:
    """The change points of its history, the newest first."""
    lines = []
    for point in reversed(metric.change_points):
        ratio = f" ({_signed(point.ratio - 1)})" if point.ratio is not None else ""
        when = f" on {point.started[:10]}" if point.started else ""
        commit = f" with {point.commit[:12]}" if point.commit else ""
        values = f"{format_quantity(point.before, metric.unit)} → {format_quantity(point.after, metric.unit)}{ratio}"
        lines.append(f"changed{when}{commit}: {values}")
    return lines


def new_segments(workload: WorkloadOutcome) -> list[str]:
    """Where a new segment of its series begins, each once, the newest first."""
    lines: dict[str, None] = {}
    for metric in workload.metrics:
        trend = metric.trend
        for segment in trend.epochs if trend is not None else ():
            if segment.cause != "begin" and trend is not None:
                when = trend.series.points[segment.first].started[:10]
                lines[f"new segment since {when}: {segment_reason(trend.series, segment)}"] = None
    return sorted(lines, reverse=True)


def trust_lines(night: Night) -> list[str]:
    """How many metrics are outside of their limits."""
    if not night.looked_at:
        return []
    return [f"{night.suspects} of {plural(night.looked_at, 'metric')} outside of their control limits"]


def night_notes(night: Night) -> list[str]:
    """The notes of the night and of its workloads, what several have once: `parse, small: ...`."""
    lines = list(night.notes)
    if night.left_out:
        lines.append(f"{night.left_out} of the workloads were left out (--only)")
    if night.interrupted:
        lines.append(f"the night goes on with the same command and --night {shlex.quote(night.id)}")
    names: dict[str, list[str]] = {}
    for workload in night.workloads:
        for note in workload_notes(workload):
            names.setdefault(note, []).append(workload.name)
    every = len(night.workloads)
    for note, whose in names.items():
        lines.append(f"{'all workloads' if 1 < len(whose) == every else ', '.join(whose)}: {note}")
    return lines


def workload_notes(workload: WorkloadOutcome) -> list[str]:
    """What is to be noted of one: why its run counts for little, and what of its pairs an outcome does not say."""
    lines, pairs = list(workload.notes), workload.pairs
    if workload.ending == "done" and workload.message and workload.outcome != "invalid":
        lines.insert(0, f"{workload.message}: only what was run in pairs counts")
    if pairs is None:
        return lines
    lines += [*map(fact_text, pairs.notes), *map(uncounted, pairs.uncounted)]
    told = any(m.gates and m.code in (NOT_COMPARED, SAME_CODE, FIRST) for m in workload.metrics)
    if pairs.code and not told:
        fix = f" (fix: {pairs.fix})" if pairs.fix else ""
        lines.append(f"not run in pairs: {no_pairs(pairs)}{fix}")
    return lines


def duration(seconds: float) -> str:
    """`42 s`, `8 min 20 s`, `2 h 5 min`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
