"""A night as one page in the frame of all pages: the worst first with its plots, what passed in one table below."""

from __future__ import annotations

from dataclasses import dataclass

from profkit.core.formatting import moment, plural, quantity
from profkit.core.types import MetricOutcome, Night, Outcome, WorkloadOutcome
from profkit.reporting.charts.trend import trend_chart
from profkit.reporting.html.chart_figures import figures
from profkit.reporting.html.frame import page
from profkit.reporting.html.part import Part
from profkit.reporting.html.templates import filled
from profkit.reporting.night_words import (
    ORDER,
    QUIET,
    SIGNS,
    WORDS,
    alarming,
    calibration_line,
    causes,
    chance_line,
    counted,
    doubts,
    duration,
    epochs,
    evidence,
    following,
    missed,
    name_of,
    points,
    quiet,
    seen,
    share,
    shared,
    word_of,
)

# Which of the page's four colours an outcome has; its word and its sign say the same without colour.
TONES: dict[Outcome, str] = {
    "regressed": "fail",
    "missing": "fail",
    "invalid": "unknown",
    "ambiguous": "unknown",
    "improved": "pass",
    "new": "not-applicable",
    "pass": "pass",
}
STYLES, SCRIPTS = ("charts.css",), ("charts.js",)
SHADED = "Shaded: what is usual here, in which no night is a suspect. Round the line: the 95 % interval of each night."
LOUD = 8  # plots of one workload, the worst first: what moves together looks alike
CHARTS = 24  # plots of a page beside those of what is wrong: each is some kB, and the history tells the rest


@dataclass(frozen=True)
class _Row:
    """One metric as it is shown; all of it plain text."""

    tone: str
    sign: str
    word: str
    gates: bool
    workload: str
    metric: str
    usual: str
    tonight: str
    change: str
    seen: str
    why: str
    points: tuple[str, ...]


def render(night: Night) -> str:
    """The night as one self-contained HTML file, as text for UTF-8."""
    loud = [w for w in night.workloads if w.outcome not in QUIET]
    calm = [w for w in night.workloads if w.outcome in QUIET]
    parts = [_incidents(night)]
    parts += [_loud(number, workload) for number, workload in enumerate(loud, 1)]
    parts += [_calm(calm), _plots(calm), _trust(night), _notes(night)]
    made = [part for part in parts if part is not None]
    return page(f"{night.name}: night {night.id}", made, head=_head(night), styles=STYLES, scripts=SCRIPTS)


def _head(night: Night) -> str:
    facts = [("Started", moment(night.started)), ("Took", duration(night.seconds))]
    facts += [("Commit", night.commit[:12])] if night.commit else []
    return filled(
        "night_head.html.j2",
        night=night,
        tone=TONES[night.outcome],
        counted=", ".join(text for _, text in counted(night.workloads)) or "no workload",
        facts=facts,
    )


def _incidents(night: Night) -> Part | None:
    told = [(incident, TONES[incident.outcome], SIGNS[incident.outcome]) for incident in shared(night)]
    if not told:
        return None
    return Part("incidents", "What has one beginning", filled("night_incidents.html.j2", incidents=told))


def _loud(number: int, workload: WorkloadOutcome) -> Part:
    ordered = [*alarming(workload), *quiet(workload)]
    lines = [("Target", line) for line in missed(workload)]
    lines += [("Why", line) for line in causes(workload)]
    lines += [("Mind", line) for line in doubts(workload)]
    lines += [("Next", line) for line in following(workload)]
    lines += [("Epoch", line) for line in epochs(workload)]
    lines += [("Note", line) for line in workload.notes]
    charts = [chart for metric in alarming(workload)[:LOUD] if (chart := _chart(metric)) is not None]
    body = filled(
        "night_workload.html.j2",
        table=_table([(workload, metric) for metric in ordered], f"Metrics of {workload.name}", named=False),
        lines=lines,
        fix=workload.fix,
        charts=[figures(charts, SHADED)] if charts else [],
        run=f"{workload.run}/report.html" if workload.run and workload.ending == "done" else None,
        log=workload.log if workload.ending != "done" else None,
    )
    title = f"{SIGNS[workload.outcome]} {word_of(workload)}: {workload.name}"
    return Part(f"workload-{number}", title, body, headline=workload.reason)


def _calm(calm: list[WorkloadOutcome]) -> Part | None:
    if not calm:
        return None
    rows = [(w, m) for w in calm for m in (*alarming(w), *quiet(w))]
    body = _table(rows, "What passed", named=True)
    bare = [f"{w.name}: {w.reason}" for w in calm if not w.metrics]
    body += filled("notes.html.j2", notes=bare) if bare else ""
    return Part("passed", "Passed", body, headline="and how small a change each would have shown")


def _plots(calm: list[WorkloadOutcome]) -> Part | None:
    charts = [chart for w in calm for m in w.metrics if m.gates and (chart := _chart(m)) is not None]
    if not charts:
        return None
    left = len(charts) - CHARTS
    told = f"{plural(min(len(charts), CHARTS), 'plot')} of what passed"
    told += f"; {left} more: profkit history trend" if left > 0 else ""
    return Part("plots", "Over the nights", figures(charts[:CHARTS], SHADED), headline=told, folded=True)


def _chart(metric: MetricOutcome) -> str | None:
    if metric.trend is None or not metric.trend.series.points:
        return None
    band = (metric.band[0], metric.band[-1]) if metric.band else None
    return trend_chart(metric.trend, band)


def _trust(night: Night) -> Part | None:
    lines = [line for line in (chance_line(night), calibration_line(night)) if line is not None]
    if not lines:
        return None
    return Part("trust", "How far to trust it", filled("notes.html.j2", notes=lines))


def _notes(night: Night) -> Part | None:
    calm = [w for w in night.workloads if w.outcome in QUIET]
    told = [*night.notes, *(f"{w.name}: {line}" for w in calm for line in (*epochs(w), *w.notes))]
    return Part("notes", "Notes", filled("notes.html.j2", notes=told)) if told else None


def _table(pairs: list[tuple[WorkloadOutcome, MetricOutcome]], label: str, *, named: bool) -> str:
    ordered = sorted(pairs, key=lambda pair: (not pair[1].gates, ORDER.index(pair[1].outcome)))
    rows = [_row(workload, metric) for workload, metric in ordered]
    return filled("night_metrics.html.j2", rows=rows, label=label, named=named)


def _row(workload: WorkloadOutcome, metric: MetricOutcome) -> _Row:
    change = "-"
    if metric.value is not None and metric.expected:
        change = share(metric.value / metric.expected - 1)
    return _Row(
        tone=TONES[metric.outcome],
        sign=SIGNS[metric.outcome],
        word=WORDS[metric.outcome],
        gates=metric.gates,
        workload=workload.name,
        metric=name_of(metric),
        usual=quantity(metric.expected, metric.unit),
        tonight=quantity(metric.value, metric.unit),
        change=change,
        seen=seen(metric),
        why=metric.reason,
        points=(*evidence(metric), *points(metric)[:3]),
    )
