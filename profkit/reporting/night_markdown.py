"""A night as GitHub-flavoured Markdown: the summary of a CI step, and report.md. The worst first, passes folded."""

from __future__ import annotations

from profkit.core.formatting import quantity
from profkit.core.types import MetricOutcome, Night, WorkloadOutcome
from profkit.reporting.markdown_text import code, escaped, fitted, folded, grid_of
from profkit.reporting.night_words import (
    QUIET,
    SIGNS,
    WORDS,
    alarming,
    calibration_line,
    causes,
    chance_line,
    change_of,
    doubts,
    epochs,
    evidence,
    following,
    heading,
    missed,
    name_of,
    points,
    quiet,
    seen,
    shared,
    summed_up,
    word_of,
)


def render(night: Night, limit: int | None = None) -> str:
    """The night as Markdown, in at most `limit` bytes of UTF-8: what is left out then, from the end, is counted."""
    loud = [w for w in night.workloads if w.outcome not in QUIET]
    calm = [w for w in night.workloads if w.outcome in QUIET]
    parts = [_head(night), _incidents(night), *(_loud(workload) for workload in loud)]
    parts += [_folded("Passed, and how small a change each would have shown", _quiet(calm))]
    parts += [_watched(calm)]
    told = [f"{w.name}: {line}" for w in night.workloads for line in epochs(w)]
    parts += [_list("Epochs", told)]
    trust = [line for line in (chance_line(night), calibration_line(night)) if line is not None]
    parts += [_list("How far to trust it", trust)]
    remarks = [f"{w.name}: {note}" for w in night.workloads for note in w.notes]
    parts += [_list("Notes", [*night.notes, *remarks])]
    return fitted([part for part in parts if part], limit)


def _head(night: Night) -> str:
    lines = [f"## {SIGNS[night.outcome]} {escaped(heading(night))}"]
    lines.append(f"**{escaped(summed_up(night))}**  \n{escaped(night.reason)}")
    return "\n\n".join(lines)


def _incidents(night: Night) -> str:
    lines = []
    for incident in shared(night):
        lines.append(f"- {SIGNS[incident.outcome]} **{escaped(incident.headline)}**")
        lines += [f"  - {escaped(member)}" for member in incident.members]
    return "### What has one beginning\n\n" + "\n".join(lines) if lines else ""


def _loud(workload: WorkloadOutcome) -> str:
    sign = SIGNS[workload.outcome]
    parts = [f"### {sign} {word_of(workload)} {escaped(workload.name)}", _why(workload)]
    if metrics := alarming(workload):
        rows = [_row(metric) for metric in metrics]
        parts.append(grid_of(("", "metric", "change", "why"), rows))
    lines = [f"- {escaped(line)}" for m in alarming(workload) for line in (*evidence(m), *points(m)[:2])]
    lines += [f"- ✗ {escaped(line)}" for line in missed(workload)]
    lines += [f"- **Why:** {escaped(line)}" for line in causes(workload)]
    lines += [f"- **Mind:** {escaped(line)}" for line in doubts(workload)]
    lines += [f"- **Fix:** {code(workload.fix)}"] if workload.fix else []
    lines += [f"- Next: {code(line)}" for line in following(workload)]
    lines += [f"- Run: {code(workload.run)}"] if workload.run else []
    lines += [f"- Log: {code(workload.log)}"] if workload.log and workload.ending != "done" else []
    parts += ["\n".join(lines)] if lines else []
    if rest := quiet(workload):
        parts.append(_folded("Its other metrics", grid_of(_TITLES, [_passed(workload, m) for m in rest])))
    return "\n\n".join(part for part in parts if part)


def _why(workload: WorkloadOutcome) -> str:
    """What the table of its metrics does not say already."""
    return "" if any(m.gates for m in alarming(workload)) else escaped(workload.reason)


def _row(metric: MetricOutcome) -> tuple[str, ...]:
    word = f"{SIGNS[metric.outcome]} {WORDS[metric.outcome]}"
    return (
        word if metric.gates else f"{word}, watched",
        escaped(name_of(metric)),
        escaped(change_of(metric)),
        escaped(metric.reason),
    )


_TITLES = ("", "workload", "metric", "tonight", "usual", "could show")


def _quiet(workloads: list[WorkloadOutcome]) -> str:
    rows = []
    for workload in workloads:
        metrics = quiet(workload)
        rows += [_passed(workload, metric) for metric in metrics]
        if not metrics:
            rows.append(
                (SIGNS[workload.outcome], escaped(workload.name), escaped(workload.reason), "", "", "")
            )
    return grid_of(_TITLES, rows) if rows else ""


def _passed(workload: WorkloadOutcome, metric: MetricOutcome) -> tuple[str, ...]:
    return (
        SIGNS[metric.outcome],
        escaped(workload.name),
        escaped(name_of(metric)),
        escaped(quantity(metric.value, metric.unit)),
        escaped(quantity(metric.expected, metric.unit)),
        escaped(seen(metric)),
    )


def _watched(calm: list[WorkloadOutcome]) -> str:
    rows = [(escaped(w.name), *_row(m)) for w in calm for m in alarming(w)]
    if not rows:
        return ""
    return "### Watched, and failing nothing\n\n" + grid_of(("workload", "", "metric", "change", "why"), rows)


def _folded(title: str, body: str) -> str:
    return folded(title, body) if body else ""


def _list(title: str, lines: list[str]) -> str:
    return f"### {title}\n\n" + "\n".join(f"- {escaped(line)}" for line in lines) if lines else ""
