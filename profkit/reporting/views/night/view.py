"""A nightly: what needs attention first, the worst on top; what passed in one table; and what a night would do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from profkit.core.formatting import format_quantity, format_utc_time
from profkit.core.types import Incident, MetricOutcome, Night, Outcome, Verdict, VerdictWord, WorkloadOutcome
from profkit.core.types.night import OUTCOME_ORDER
from profkit.reporting.chart_blocks import Charts
from profkit.reporting.charts.marks import Chart
from profkit.reporting.charts.trend import trend_chart
from profkit.reporting.footnotes import threshold_text
from profkit.reporting.forges import Annotation, Annotations, Case, Cases, CaseState
from profkit.reporting.view import (
    Block,
    Commands,
    Detail,
    Fold,
    Item,
    Items,
    Label,
    Paragraph,
    Section,
    Span,
    Status,
    Statuses,
    StatusRow,
    Text,
    View,
    joined,
    notes,
    soft,
    strong,
    table,
)
from profkit.reporting.views.night.reasons import (
    incident_lines,
    missed_targets,
    name_of,
    night_reason,
    short_reason,
    workload_reason,
)
from profkit.reporting.views.night.text import (
    BESIDE_BASE,
    OUTCOMES,
    QUIET,
    alarming,
    causes,
    change_of,
    change_points,
    counts,
    detectable,
    disturbances,
    duration,
    evidence,
    new_segments,
    next_lines,
    night_notes,
    trust_lines,
    why_of,
    word_of,
    workload_notes,
)

_CASES: dict[Outcome, CaseState] = {
    "pass": "passed",
    "improved": "passed",
    "new": "passed",
    "regressed": "failure",
    "missing": "error",
    "invalid": "error",
    "ambiguous": "unknown",
}
_LEVELS: dict[Outcome, Literal["error", "warning", "notice"]] = {
    "regressed": "error",
    "missing": "error",
    "invalid": "warning",
    "ambiguous": "warning",
    "improved": "notice",
}
_SHADED = "Shaded: the control limits. Around the line: the 95 % interval of each night."
_PAIRED = " It is what each night's own run measured, not what the pairs did: they decided."
_LOUD = 8  # plots of one workload, the worst first: what moves together looks alike
_CHARTS = 24  # plots of what passed: each is some kB, and the history has the rest


def view(night: Night, folder: Path | None = None) -> View:
    """The night as blocks; `folder` is where its files are, for the closing lines."""
    facts: list[tuple[str, Text]] = [
        ("Workloads", counts(night.workloads)),
        ("Took", duration(night.seconds)),
    ]
    facts += [("Started", format_utc_time(night.started))]
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
    together = [incident for incident in night.incidents if len(incident.members) > 1]
    if together:
        items = tuple(_incident(night, incident) for incident in together)
        yield Section("Changes that belong together", (Items(items),))
    loud = [workload for workload in night.workloads if workload.outcome not in QUIET]
    calm = [workload for workload in night.workloads if workload.outcome in QUIET]
    for workload in loud:
        yield Section(
            (Label(OUTCOMES[workload.outcome], word_of(workload)).span, f": {workload.name}"),
            tuple(_loud(workload, night)),
        )
    if calm:
        title = "Passed, and the smallest change that each would have shown"
        if all(workload.outcome == "new" for workload in calm):
            title = "New: with nothing to be compared with yet"
        yield Detail(
            (Section(title, (_passed(calm, watched=True),), fold=Fold.FOLDED),),
            (Section(title, (_passed(calm, watched=False),)),),
        )
    watched = tuple(_status(w, m, w.name) for w in calm for m in alarming(w))
    if watched:
        yield Section("Watched metrics, which fail no night", (_statuses(watched),))
    yield from notes([f"{w.name}: {line}" for w in night.workloads for line in new_segments(w)], "Segments")
    yield from notes(trust_lines(night), "How far to trust it")
    yield from notes(night_notes(night), "Notes")
    charts = [chart for w in calm for m in w.metrics if m.gates for chart in _chart(m)]
    if charts:
        left = len(charts) - _CHARTS
        more = f" {left} more: profkit history trend" if left > 0 else ""
        body = Charts(tuple(charts[:_CHARTS]), _SHADED + more, repeats=True)
        yield Section("Over the nights", (body,), fold=Fold.REFERENCE)
    lines = next_lines(loud)
    if lines:
        yield Section("Next", (Commands(lines),))
    if folder is not None:
        files = "report.md  report.html  night.json  junit.xml  runs/"
        yield Section("Files", (Paragraph(str(folder)), Paragraph(soft(files))))
    yield from (_cases(night, workload) for workload in night.workloads)
    yield Annotations(tuple(_annotations(night)))


def _incident(night: Night, incident: Incident) -> Item:
    status = OUTCOMES[incident.outcome]
    headline, lines = incident_lines(night, incident)
    return Item((Span(f"{status.sign} ", status=status), strong(headline)), tuple(map(soft, lines)))


# ---------------------------------------------------------------- one workload


def _loud(workload: WorkloadOutcome, night: Night) -> Iterator[Block]:
    """A workload that needs attention: its reason, its metrics, why, what to type, its plots."""
    loud = alarming(workload)
    if not any(metric.gates for metric in loud):
        yield Paragraph(short_reason(workload_reason(workload, interrupted=night.interrupted)))
    if loud:
        yield _statuses([_status(workload, metric) for metric in loud])
    lines: list[Text] = [joined(Span("✗ ", status=Status.FAIL), line) for line in missed_targets(workload)]
    lines += [joined(strong("why: "), line) for line in causes(workload)]
    lines += [joined(strong("note: "), line) for line in disturbances(workload)]
    lines += [joined(strong("fix: "), workload.fix)] if workload.fix else []
    if workload.run:
        page = f"{workload.run}/report.html" if workload.ending == "done" else None
        lines.append((soft("run: "), Span(workload.run, link=page)))
    if workload.log and workload.ending != "done":
        lines.append((soft("log: "), Span(workload.log, link=workload.log)))
    if lines:
        yield Items(tuple(lines))
    charts = [chart for metric in loud[:_LOUD] for chart in _chart(metric)]
    if charts:
        paired = any(metric.code in BESIDE_BASE for metric in loud)
        yield Charts(tuple(charts), _SHADED + (_PAIRED if paired else ""), repeats=True)
    others = [metric for metric in workload.metrics if metric.outcome in QUIET]
    if others:
        body = _metrics_table([(workload, metric) for metric in others])
        yield Detail((Section("Its other metrics", (body,), fold=Fold.FOLDED),))


def _status(workload: WorkloadOutcome, metric: MetricOutcome, place: str = "") -> StatusRow:
    """The metric, its change and why; below it what a re-run showed and where its history changed."""
    word = metric.outcome.upper() + ("" if metric.gates else ", watched")
    return StatusRow(
        OUTCOMES[metric.outcome],
        word,
        (name_of(metric),),
        why_of(metric, workload.pairs),
        limit=detectable(metric),
        place=place,
        below=(*evidence(metric), *change_points(metric)[:2]),
    )


def _statuses(rows: Sequence[StatusRow]) -> Statuses:
    return Statuses(
        tuple(rows), ("metric", "could show", "", "workload"), "outcome", below_title="", below_word=""
    )


def _passed(workloads: Sequence[WorkloadOutcome], *, watched: bool) -> Block:
    pairs: list[tuple[WorkloadOutcome, MetricOutcome | None]] = []
    for workload in workloads:
        metrics = [m for m in workload.metrics if m.outcome in QUIET and (m.gates or watched)]
        pairs += [(workload, metric) for metric in metrics] or [(workload, None)]
    return _metrics_table(pairs)


def _metrics_table(pairs: Sequence[tuple[WorkloadOutcome, MetricOutcome | None]]) -> Block:
    rows: list[tuple[Text, ...]] = []
    for workload, metric in pairs:
        status = OUTCOMES[metric.outcome if metric is not None else workload.outcome]
        name = (Span(status.sign, status=status), f" {workload.name}")
        if metric is None:
            rows.append((name, "-", "-", "-", workload_reason(workload)))
            continue
        values = format_quantity(metric.value, metric.unit), format_quantity(metric.expected, metric.unit)
        rows.append((name, name_of(metric), *values, detectable(metric)))
    return table(("workload", "metric", "tonight", "usual", "could show"), rows, words=2)


def _chart(metric: MetricOutcome) -> list[Chart]:
    if metric.trend is None or not metric.trend.series.points:
        return []
    return [trend_chart(metric.trend, (metric.band[0], metric.band[-1]) if metric.band else None)]


# ---------------------------------------------------------------- for machines


def _cases(night: Night, workload: WorkloadOutcome) -> Cases:
    """A suite: a case for each metric and target, and for the workload where none of these says what it came to.

    A watched metric fails nothing, so it is skipped where it moved.
    """
    group = f"{night.name}.{workload.name}"
    reason = workload_reason(workload, interrupted=night.interrupted)
    cases = [_metric_case(group, workload, metric) for metric in workload.metrics]
    cases += [_target_case(group, verdict) for verdict in workload.verdicts]
    state = _CASES[workload.outcome]
    if not any(case.state == state for case in cases):
        detail = f"{reason}\nfix: {workload.fix}" if workload.fix else reason
        words = (group, "workload", state, short_reason(reason), detail, workload.seconds, workload.code)
        cases.insert(0, Case(*words))
    facts = {"night": night.id, "outcome": workload.outcome, "code": workload.code}
    facts |= {"commit": night.commit} if night.commit else {}
    facts |= {"run": workload.run} if workload.run else {}
    lines = [reason, *causes(workload), *new_segments(workload), *workload_notes(workload)]
    lines += [
        f"{name_of(m)}: could have shown a change of {detectable(m)}"
        for m in workload.metrics
        if m.detectable is not None
    ]
    return Cases(
        f"{workload.name} on {workload.backend}",
        tuple(cases),
        night.started,
        workload.seconds,
        tuple(facts.items()),
        "\n".join([*lines, *trust_lines(night)]),
    )


def _metric_case(group: str, workload: WorkloadOutcome, metric: MetricOutcome) -> Case:
    state = _CASES[metric.outcome]
    state = state if metric.gates or state == "passed" else "skipped"
    message = why_of(metric, workload.pairs)
    detail = "\n".join([message, *change_points(metric)])
    return Case(group, name_of(metric), state, message, detail, kind=metric.code)


def _target_case(group: str, verdict: Verdict) -> Case:
    states: dict[VerdictWord, CaseState] = {
        "pass": "passed",
        "fail": "failure",
        "unknown": "unknown",
        "not-applicable": "skipped",
    }
    message = f"{verdict.reason} (target {threshold_text(verdict)})"
    return Case(f"{group}.targets", verdict.target, states[verdict.verdict], message, kind=verdict.verdict)


def _annotations(night: Night) -> Iterator[Annotation]:
    """Each workload that somebody must look at: the reason, the metrics, the causes and the fix, a line each."""
    for workload in sorted(night.workloads, key=lambda w: OUTCOME_ORDER.index(w.outcome)):
        level = _LEVELS.get(workload.outcome)
        if level is None:
            continue
        loud = alarming(workload)
        reason = short_reason(workload_reason(workload, interrupted=night.interrupted))
        lines = [] if any(metric.gates for metric in loud) else [reason]
        for metric in loud[:5]:
            separator = " " if change_of(metric) else ": "
            lines.append(f"{name_of(metric)}{separator}{why_of(metric, workload.pairs)}")
        lines += [*missed_targets(workload)[:5], *causes(workload)[:5]]
        lines += [f"fix: {workload.fix}"] if workload.fix else []
        yield Annotation(
            level,
            f"{workload.name}: {word_of(workload).lower()}",
            "\n".join(" ".join(line.split()) for line in lines if line),
        )
