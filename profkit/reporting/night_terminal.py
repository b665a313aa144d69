"""A night for the terminal: what needs somebody first, the worst on top; what passed in a line each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from profkit.core.formatting import plural, quantity
from profkit.core.types import MetricOutcome, Night, Outcome, WorkloadOutcome
from profkit.reporting.night_words import (
    QUIET,
    SIGNS,
    alarming,
    calibration_line,
    causes,
    chance_line,
    change_of,
    counted,
    doubts,
    duration,
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
    word_of,
)
from profkit.reporting.screen import Screen

STYLES: dict[Outcome, str] = {
    "regressed": "bold red",
    "missing": "bold red",
    "invalid": "yellow",
    "ambiguous": "yellow",
    "improved": "green",
    "new": "cyan",
    "pass": "green",
}
_LABEL = 12


def render(
    night: Night, folder: Path | None = None, *, color: bool | None = None, width: int | None = None
) -> str:
    """The night as text of at most `width` (80) columns; `folder` is where its files are."""
    screen = Screen(color, width)
    screen.line((heading(night), "bold"))
    screen.blank()
    screen.line("Outcome   ", *_counted(night), hang=10)
    screen.line("          ", (night.reason, STYLES[night.outcome]), hang=10)
    screen.line("Took      ", duration(night.seconds), "; interrupted" if night.interrupted else "", hang=10)
    if together := shared(night):
        screen.heading("What has one beginning")
        for incident in together:
            screen.labelled((SIGNS[incident.outcome], STYLES[incident.outcome]), incident.headline, width=2)
            for member in incident.members:
                screen.line((member, "dim"), indent=6, hang=2)
    loud = [workload for workload in night.workloads if workload.outcome not in QUIET]
    if loud:
        screen.heading("What needs somebody")
        for workload in loud:
            _loud(screen, workload)
    calm = [workload for workload in night.workloads if workload.outcome in QUIET]
    if calm:
        screen.heading("Passed, and how small a change each would have shown")
        _table(screen, calm)
    _watched(screen, calm)
    told = [epoch for workload in night.workloads for epoch in _with(workload, epochs(workload))]
    _lines(screen, "Epochs", told)
    kept = [line for line in (chance_line(night), calibration_line(night)) if line is not None]
    _lines(screen, "How far to trust it", kept)
    remarks = [note for workload in night.workloads for note in _with(workload, list(workload.notes))]
    _lines(screen, "Notes", [*night.notes, *remarks])
    _lines(screen, "Next", [line for workload in loud for line in following(workload)])
    if folder is not None:
        screen.heading("Files")
        screen.line(str(folder), indent=2)
        screen.line("report.md  report.html  night.json  junit.xml  runs/", indent=4)
    return screen.text()


def walk(nights: Sequence[Night], *, color: bool | None = None, width: int | None = None) -> str:
    """Many nights: a line for each workload in each night in which it became another outcome, quiet nights counted."""
    screen = Screen(color, width)
    screen.line((f"{nights[0].name}: {plural(len(nights), 'night')}", "bold"))
    before: dict[str, tuple[str, str]] = {}
    quiet_ones = 0
    for night in nights:
        now: dict[str, tuple[str, str]] = {
            w.name: (w.outcome, w.code if w.outcome == "regressed" else "") for w in night.workloads
        }
        moved = [w for w in night.workloads if before.get(w.name) != now[w.name]]
        moved = [
            w for w in moved if not (w.code == "standing" and before.get(w.name, ("",))[0] == "regressed")
        ]
        before = now
        notes = night.notes if night is not nights[-1] else ()  # those of the last night stand below it
        if not moved and not notes:
            quiet_ones += 1
            continue
        _uneventful(screen, quiet_ones)
        quiet_ones = 0
        screen.line((night.id, "bold"))
        for note in notes:
            screen.labelled(("", ""), note, width=_LABEL)
        for outcome in dict.fromkeys(w.outcome for w in moved):
            alike = [w for w in moved if w.outcome == outcome]
            label = (f"{SIGNS[outcome]} {word_of(alike[0])}", STYLES[outcome])
            if outcome in QUIET:
                screen.labelled(label, ", ".join(w.name for w in alike), width=_LABEL)
                continue
            for workload in alike:
                screen.labelled(label, (workload.name, "bold"), f"  {workload.reason}", width=_LABEL)
    _uneventful(screen, quiet_ones)
    return screen.text()


def _uneventful(screen: Screen, count: int) -> None:
    if count:
        screen.line((f"... {plural(count, 'night')} without anything new", "dim"))


def _counted(night: Night) -> list[str | tuple[str, str]]:
    parts: list[str | tuple[str, str]] = []
    for outcome, text in counted(night.workloads):
        parts += [", " if parts else "", (text, STYLES[outcome])]
    return parts or ["no workload"]


def _loud(screen: Screen, workload: WorkloadOutcome) -> None:
    style = STYLES[workload.outcome]
    label = f"{SIGNS[workload.outcome]} {word_of(workload)}"
    told = "" if any(m.gates for m in alarming(workload)) else f"  {workload.reason}"
    screen.labelled((label, style), (workload.name, "bold"), told, width=_LABEL)
    for metric in alarming(workload):
        _metric(screen, metric)
    for line in missed(workload):
        screen.line("✗ ", line, indent=4, hang=2)
    for line in causes(workload):
        screen.line("why: ", line, indent=4, hang=5)
    for line in doubts(workload):
        screen.line("mind: ", line, indent=4, hang=6)
    if workload.fix:
        screen.line("fix: ", workload.fix, indent=4, hang=5)
    places = [f"run: {workload.run}"] if workload.run else []
    places += [f"log: {workload.log}"] if workload.log and workload.ending != "done" else []
    for line in places:
        screen.line((line, "dim"), indent=4, hang=5)


def _metric(screen: Screen, metric: MetricOutcome) -> None:
    watched = "" if metric.gates else " (watched)"
    change = change_of(metric)
    head = f"{name_of(metric)}{watched}"
    screen.line(
        (SIGNS[metric.outcome], STYLES[metric.outcome]),
        f" {head}{f'  {change}' if change else ''}: {metric.reason}",
        indent=4,
        hang=2,
    )
    for line in (*evidence(metric), *points(metric)[:2]):
        screen.line(line, indent=6, hang=2)


def _table(screen: Screen, workloads: list[WorkloadOutcome]) -> None:
    rows: list[tuple[str, ...]] = []
    for workload in workloads:
        metrics = [m for m in quiet(workload) if m.gates]
        for metric in metrics:
            value = quantity(metric.value, metric.unit)
            expected = quantity(metric.expected, metric.unit)
            name = f"{SIGNS[metric.outcome]} {workload.name}"
            rows.append((name, name_of(metric), value, expected, _seen(metric)))
        if not metrics:
            rows.append((f"{SIGNS[workload.outcome]} {workload.name}", "-", "-", "-", workload.reason))
    screen.table(("workload", "metric", "tonight", "usual", "could show"), tuple(rows))


def _seen(metric: MetricOutcome) -> str:
    return "new" if metric.outcome == "new" and metric.detectable is None else seen(metric)


def _watched(screen: Screen, calm: list[WorkloadOutcome]) -> None:
    """What changed without deciding anything."""
    found = [(w, m) for w in calm for m in alarming(w)]
    if found:
        screen.heading("Watched, and failing nothing")
    for workload, metric in found:
        change = change_of(metric)
        screen.line(
            (SIGNS[metric.outcome], STYLES[metric.outcome]),
            f" {workload.name}: {name_of(metric)}{f'  {change}' if change else ''}: {metric.reason}",
            indent=2,
            hang=2,
        )


def _with(workload: WorkloadOutcome, lines: list[str]) -> list[str]:
    return [f"{workload.name}: {line}" for line in lines]


def _lines(screen: Screen, title: str, lines: list[str]) -> None:
    if lines:
        screen.heading(title)
    for line in lines:
        screen.line(line, indent=2, hang=2)
