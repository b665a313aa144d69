"""A nightly: what needs attention first, the worst on top; what passed in one table; and what a night would do."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from profkit.core.formatting import format_duration, format_figures, format_quantity, format_utc_time, signed
from profkit.core.types import MetricOutcome, Night, NightPairs, Outcome, WorkloadOutcome
from profkit.core.types.history import EXACTLY, MISSED_TARGET, OUTCOME_ORDER, PAIRED
from profkit.reporting.charts.marks import ChartGroup
from profkit.reporting.charts.trend import trend_chart
from profkit.reporting.forges import Annotation, AnnotationList, Case, CaseList
from profkit.reporting.view import (
    Block,
    Commands,
    ItemList,
    Label,
    Paragraph,
    Section,
    Span,
    Status,
    Statuses,
    StatusRow,
    Text,
    View,
    code,
    joined,
    notes,
    soft,
    strong,
    table,
)
from profkit.reporting.views.night_words import (
    missed_targets,
    name_of,
    night_notes,
    night_reason,
    reason_of,
    short_reason,
    workload_notes,
    workload_reason,
)
from profkit.runtime.passes.shown_command import line_to_type, shown_line

OUTCOMES: dict[Outcome, Status] = {
    "regressed": Status.FAIL,
    "missing": Status.REFUSED,
    "invalid": Status.INVALID,
    "ambiguous": Status.UNKNOWN,
    "improved": Status.BETTER,
    "new": Status.NEW,
    "pass": Status.PASS,
}
# Codes whose reason begins with the size of the change.
_WITH_SIZE = (PAIRED, EXACTLY, "nights", "change-point", "standing", "improved")
# Codes whose reason begins with the value, and with what it is compared with.
_WITH_VALUE = ("collapse", "held", "seen-before", "suspect", "same", "same-night", "perhaps-better")
QUIET: tuple[Outcome, ...] = ("pass", "new")  # nobody needs to act
_SHADED = "Shaded: the control limits. Around the line: the 95 % interval of each night."
_LOUD = 8  # plots of one workload, the worst first: what moves together looks alike


def view(night: Night, folder: Path | None = None) -> View:
    """Return the night as blocks; `folder` is where its files are, for the closing lines."""
    facts: list[tuple[str, Text]] = [("Workloads", counts(night.workloads))]
    facts += [("Took", format_duration(night.seconds)), ("Started", format_utc_time(night.started))]
    facts += [("Commit", night.commit[:12])] if night.commit else []
    return View(
        f"{night.name}: night {night.id}",
        tuple(_blocks(night, folder)),
        Label(OUTCOMES[night.outcome], night.outcome.upper()),
        (night_reason(night),),
        tuple(facts),
        warning="This night was interrupted: what was finished is shown below." if night.interrupted else "",
    )


def _blocks(night: Night, folder: Path | None) -> Iterator[Block]:
    loud = [workload for workload in night.workloads if workload.outcome not in QUIET]
    calm = [workload for workload in night.workloads if workload.outcome in QUIET]
    for workload in loud:
        label = Label(OUTCOMES[workload.outcome], word_of(workload))
        yield Section((label.span, f": {workload.name}"), tuple(_loud(workload, night)))
    if calm:
        new = all(workload.outcome == "new" for workload in calm)
        title = "New" if new else "Passed, and the smallest change that each would have shown"
        yield Section(title, (_passed(calm),))
    watched = [(w, m) for w in calm for m in alarming(w)]
    if watched:
        below = _commits([metric for _, metric in watched])
        body = (
            _statuses([_status(w, m, w.name) for w, m in watched]),
            *((ItemList(tuple(below)),) if below else ()),
        )
        yield Section("Watched metrics, which fail no night", body)
    yield from notes(night_notes(night), "Notes")
    lines = _next_lines(loud)
    if lines:
        yield Section("Next", (Commands(lines),))
    if folder is not None:
        yield Section("Files", (Paragraph(str(folder)),))
    yield from (_cases(night, workload) for workload in night.workloads)
    yield AnnotationList(tuple(_annotations(night)))


def word_of(workload: WorkloadOutcome) -> str:
    """Return `REGRESSED`, ...; a target that is missed is `FAILED`, since nothing need have changed."""
    return "FAILED" if workload.code == MISSED_TARGET else workload.outcome.upper()


def counts(workloads: Sequence[WorkloadOutcome]) -> Text:
    """Return `✗ 1 REGRESSED, ✓ 7 PASS`: how many workloads of each outcome, the worst first."""
    parts: list[str | Span] = []
    for outcome, status in OUTCOMES.items():
        words = [word_of(workload) for workload in workloads if workload.outcome == outcome]
        for word in dict.fromkeys(words):
            parts += [", "] if parts else []
            parts.append(strong(f"{status.sign} {words.count(word)} {word}", status))
    return tuple(parts) or "no workload"


def change_of(metric: MetricOutcome) -> str:
    """Return `640 µs → 694 µs (+8.4 %)`; what there is of it."""
    if metric.value is None:
        return ""
    now = format_quantity(metric.value, metric.unit)
    if metric.expected is None:
        return now
    text = f"{format_quantity(metric.expected, metric.unit)} → {now}"
    if not metric.expected or metric.code in _WITH_SIZE:
        return text
    return f"{text} ({signed(100 * (metric.value / metric.expected - 1), 2)} %)"


def why_of(metric: MetricOutcome, pairs: NightPairs | None) -> str:
    """Return its change, and the reason of its outcome."""
    change, reason = change_of(metric), reason_of(metric, pairs)
    return f"{change}: {reason}" if change and metric.code not in _WITH_VALUE else reason


def detectable(metric: MetricOutcome) -> str:
    """Return how small a change tonight could have seen."""
    if metric.detectable is None:
        return "-" if metric.outcome == "new" or metric.code == "same-code" else "not known"
    return f"{format_figures(metric.detectable * 100, 2)} %"


def alarming(workload: WorkloadOutcome) -> list[MetricOutcome]:
    """Return the metrics that somebody must look at, the worst first; those that gate before those that are watched."""
    loud = [metric for metric in workload.metrics if metric.outcome not in QUIET]
    return sorted(loud, key=lambda metric: (not metric.gates, OUTCOME_ORDER.index(metric.outcome)))


def _next_lines(workloads: Sequence[WorkloadOutcome]) -> tuple[str, ...]:
    """Return what to type next: the comparison that shows why, the search for the commit, or accepting the change."""
    lines: list[str] = []
    for workload in workloads:
        if workload.outcome != "regressed" or workload.code == MISSED_TARGET:
            continue
        if workload.code == "vanished":
            lines.append(workload.fix or "")
            continue
        worst = next((m for m in workload.metrics if m.gates and m.outcome == "regressed"), None)
        good, here = (worst.good_commit, worst.commit) if worst is not None else (None, None)
        how = workload.in_pairs
        if how and good and here and good != here:
            setup = f"--setup {shlex.quote(line_to_type(how.setup))} " if how.setup else ""
            end = f"{setup}-- {line_to_type(how.command)}"
            start = " ".join((*map(shown_line, zip(how.env)), "profkit"))
            old, new = shlex.quote(good[:12]), shlex.quote(here[:12])
            if worst is not None and worst.step_since:
                lines.append(
                    f"{start} compare --base {shlex.quote(worst.step_since[:12])} {end}  # what came on top"
                )
            lines.append(f"{start} compare --base {old} --head {new} {end}  # why")
            lines.append(f"{start} bisect {old} {new} {end}  # if there are commits between them")
        name = shlex.quote(workload.name)
        lines.append(f"profkit history accept {name} --because WHY  # if it is meant to be so")
    return tuple(dict.fromkeys(lines))


# ---------------------------------------------------------------- one workload


def _loud(workload: WorkloadOutcome, night: Night) -> Iterator[Block]:
    """Yield a workload that needs attention: its reason, its metrics, what to type, its plots."""
    loud = alarming(workload)
    if not any(metric.gates for metric in loud):
        yield Paragraph(short_reason(workload_reason(workload, interrupted=night.interrupted)))
    if loud:
        yield _statuses([_status(workload, metric) for metric in loud])
    lines: list[Text] = [joined(Span("✗ ", status=Status.FAIL), line) for line in missed_targets(workload)]
    lines += [joined(strong("fix: "), workload.fix)] if workload.fix else []
    lines += _commits(loud)
    if workload.run:
        page = f"{workload.run}/report.html" if workload.ending == "done" else None
        lines.append((soft("run: "), Span(workload.run, link=page)))
    if workload.log and workload.ending != "done":
        lines.append((soft("log: "), Span(workload.log, link=workload.log)))
    if lines:
        yield ItemList(tuple(lines))
    charts = [
        trend_chart(metric.trend, (metric.band[0], metric.band[-1]) if metric.band else None)
        for metric in loud[:_LOUD]
        if metric.trend is not None and metric.trend.series.points
    ]
    if charts:
        yield ChartGroup(tuple(charts), _SHADED, repeats=True)


def _commits(metrics: Sequence[MetricOutcome]) -> list[Text]:
    """Return the commits since the last good one, once for all metrics that have the same."""
    names: dict[str, list[str]] = {}
    for metric in metrics:
        good, here = metric.good_commit, metric.commit
        if metric.outcome in ("regressed", "ambiguous") and good and here and good != here:
            names.setdefault(f"git log {good[:12]}..{here[:12]}", []).append(name_of(metric))
    several = len(names) > 1
    lines: list[Text] = []
    for line, of in names.items():
        named = f" ({', '.join(of)})" if several else ""
        lines.append(joined(soft(f"commits since then{named}: "), code(line)))
    return lines


def _status(workload: WorkloadOutcome, metric: MetricOutcome, place: str = "") -> StatusRow:
    """Return the metric, its change and why."""
    word = metric.outcome.upper() + ("" if metric.gates else ", watched")
    return StatusRow(
        OUTCOMES[metric.outcome],
        word,
        (name_of(metric),),
        why_of(metric, workload.pairs),
        limit=detectable(metric),
        place=place,
    )


def _statuses(rows: Sequence[StatusRow]) -> Statuses:
    return Statuses(
        tuple(rows), ("metric", "could show", "", "workload"), "outcome", below_title="", below_word=""
    )


def _passed(workloads: Sequence[WorkloadOutcome]) -> Block:
    """Return a row for each metric that gates."""
    rows: list[tuple[Text, ...]] = []
    for workload in workloads:
        metrics = [m for m in workload.metrics if m.outcome in QUIET and m.gates]
        status = OUTCOMES[workload.outcome]
        name = (Span(status.sign, status=status), f" {workload.name}")
        if not metrics:
            rows.append((name, "-", "-", "-", workload_reason(workload)))
        for m in metrics:
            values = (format_quantity(m.value, m.unit), format_quantity(m.expected, m.unit))
            rows.append((name, name_of(m), *values, detectable(m)))
    return table(("workload", "metric", "tonight", "usual", "could show"), rows, words=2)


# ---------------------------------------------------------------- for machines


def _cases(night: Night, workload: WorkloadOutcome) -> CaseList:
    """Return a suite of one case: what the workload came to, and below it what each of its metrics says."""
    group = f"{night.name}.{workload.name}"
    reason = workload_reason(workload, interrupted=night.interrupted)
    lines = [reason, *workload_notes(workload)]
    lines += [f"{name_of(metric)}: {why_of(metric, workload.pairs)}" for metric in workload.metrics]
    lines += missed_targets(workload)
    lines += [f"fix: {workload.fix}"] if workload.fix else []
    state = OUTCOMES[workload.outcome].case
    words = (short_reason(reason), "\n".join(lines), workload.seconds, workload.code)
    case = Case(group, "workload", state, *words)
    facts = {"night": night.id, "outcome": workload.outcome, "code": workload.code}
    facts |= {"commit": night.commit} if night.commit else {}
    facts |= {"run": workload.run} if workload.run else {}
    title = f"{workload.name} on {workload.backend}"
    return CaseList(title, (case,), night.started, workload.seconds, tuple(facts.items()), "\n".join(lines))


def _annotations(night: Night) -> Iterator[Annotation]:
    """Yield each workload that somebody must look at: the reason, the targets that failed and the fix, a line each."""
    for workload in sorted(night.workloads, key=lambda w: OUTCOME_ORDER.index(w.outcome)):
        level = OUTCOMES[workload.outcome].level
        if level is None:
            continue
        lines = [short_reason(workload_reason(workload, interrupted=night.interrupted))]
        lines += missed_targets(workload)[1:5]
        lines += [f"fix: {workload.fix}"] if workload.fix else []
        yield Annotation(
            level,
            f"{workload.name}: {word_of(workload).lower()}",
            "\n".join(" ".join(line.split()) for line in lines if line),
        )
