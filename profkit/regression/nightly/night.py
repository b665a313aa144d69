"""One night out of its workloads: its outcome and incidents, its document (`profkit.night/1`), and its reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

from profkit.core.codec import json_text, to_plain_data
from profkit.core.errors import Interrupted, MachineError, ProfkitError, WorkloadError
from profkit.core.formatting import format_figures, plural
from profkit.core.types import Incident, Json, MetricOutcome, Night, Outcome, WorkloadOutcome
from profkit.core.types.night import MISSED_TARGET, OUTCOME_ORDER
from profkit.regression.nightly.config import NotifySpec
from profkit.regression.nightly.pairs import SAME_CODE
from profkit.regression.nightly.session import write_text
from profkit.reporting import junit, markdown
from profkit.reporting.forges.step import annotations_in_step, append_summary, summary_file
from profkit.reporting.views.night import view
from profkit.reporting.views.night.text import name_of, short_reason

KNOWN_CODES = (MISSED_TARGET, "standing")  # nothing new tonight: behind what is
REGRESSION, UNDECIDED = 1, 5


def worst_outcome(outcomes: Sequence[Outcome]) -> Outcome:
    """The worst of several; `missing` of none: nothing was measured."""
    return min(outcomes, key=OUTCOME_ORDER.index, default="missing")


def build_night(
    id: str,
    name: str,
    started: str,
    workloads: Sequence[WorkloadOutcome],
    *,
    commit: str | None = None,
    seconds: float = 0.0,
    notes: Sequence[str] = (),
    interrupted: bool = False,
    strict: bool = False,
) -> Night:
    """The night as a whole. `seconds` is wall time."""
    ordered = sorted(workloads, key=lambda w: (OUTCOME_ORDER.index(w.outcome), w.code in KNOWN_CODES))
    looked = [m for w in ordered for m in w.metrics if m.band and m.value is not None]
    chances = [m.chance for m in looked if m.chance is not None]
    night = Night(
        id=id,
        name=name,
        started=started,
        outcome=worst_outcome([w.outcome for w in ordered]),
        reason=_night_reason(ordered),
        seconds=seconds,
        commit=commit,
        workloads=tuple(ordered),
        incidents=tuple(find_incidents(ordered)),
        looked_at=len(looked),
        expected_false=sum(chances) if chances else None,
        notes=tuple(notes),
        suspects=sum(not _within_limits(m) for m in looked),
        interrupted=interrupted,
    )
    return replace(night, exit_code=exit_code(night, strict=strict))


def exit_code(night: Night, *, strict: bool = False) -> int:
    """What the contracts ask for, the gravest first.

    130 interrupted; 1 something regressed, or a target that was asked for failed; 4 a workload failed, died or ran out
    of time; 3 this machine could not run one; 5 a workload or a metric was not measured for another reason, or what was
    measured is not valid, and with `strict` also where it could not be decided. 0 only where every workload ran.
    """
    if night.interrupted:
        return Interrupted.exit_code
    if any(w.outcome == "regressed" for w in night.workloads):
        return REGRESSION
    endings = {w.ending for w in night.workloads}
    if endings & {"workload-failed", "died", "out-of-time"}:
        return WorkloadError.exit_code
    if endings & {"machine", "refused", "profkit-failed"}:
        return MachineError.exit_code
    outcomes = {w.outcome for w in night.workloads}
    if not outcomes or outcomes & {"missing", "invalid"} or (strict and "ambiguous" in outcomes):
        return UNDECIDED
    return 0


def _within_limits(metric: MetricOutcome) -> bool:
    return metric.value is None or metric.band[0] <= metric.value <= metric.band[-1]


def _night_reason(workloads: Sequence[WorkloadOutcome]) -> str:
    """One sentence: the worst of all workloads, and how many are as bad."""
    if not workloads:
        return "no workload was looked at"
    first = workloads[0]
    if first.outcome == "pass":
        gating = [m for w in workloads for m in w.metrics if m.gates]
        if gating and all(m.code == SAME_CODE for m in gating):
            return f"not compared: {gating[0].reason}"
        sizes = [m.detectable for w in workloads for m in w.metrics if m.gates and m.detectable is not None]
        if not sizes:
            return "nothing regressed"
        return f"nothing regressed; a change of {format_figures(100 * max(sizes), 2)} % would have been seen everywhere"
    alike = sum(w.outcome == first.outcome for w in workloads) - 1
    others = f"; and {plural(alike, 'other')}" if alike else ""
    return f"{first.name}: {short_reason(first.reason)}{others}"


# ---------------------------------------------------------------- incidents


def find_incidents(workloads: Sequence[WorkloadOutcome]) -> list[Incident]:
    """Changes with one beginning as one: of the same commit where it is known, else of the same night.

    Only confirmed changes of metrics that gate make one: candidates wait, and watched metrics explain.
    """
    groups: dict[tuple[str, str], list[tuple[str, MetricOutcome]]] = {}
    for workload in workloads:
        for metric in workload.metrics:
            if metric.gates and metric.outcome in ("regressed", "improved") and metric.step != "target":
                since = metric.commit or (metric.since or "")[:10]
                groups.setdefault((metric.outcome, since), []).append((workload.name, metric))
    incidents = [_build_incident(changes) for changes in groups.values()]
    return sorted(
        incidents, key=lambda incident: (OUTCOME_ORDER.index(incident.outcome), -len(incident.members))
    )


def _build_incident(changes: Sequence[tuple[str, MetricOutcome]]) -> Incident:
    """One incident of confirmed changes, each with the name of its workload."""
    first = changes[0][1]
    names = list(dict.fromkeys(name for name, _ in changes))
    what = names[0] if len(names) == 1 else plural(len(names), "workload")
    since = f" since {first.since[:10]}" if first.since else ""
    commit = f", with commit {first.commit[:12]}" if first.commit else ""
    sizes = sorted(r for _, metric in changes if (r := _relative_size(metric)) is not None)
    size = ""
    if sizes:
        low, high = f"{100 * sizes[0]:+.2g} %", f"{100 * sizes[-1]:+.2g} %"
        size = f" by {low}" if low == high else f" by {low} to {high}"
    members = tuple(f"{name}: {name_of(metric)}: {metric.reason}" for name, metric in changes)
    return Incident(f"{what} {first.outcome}{size}{since}{commit}", first.outcome, members)


def _relative_size(metric: MetricOutcome) -> float | None:
    """The relative change: of the re-run where there was one, else of tonight against the past."""
    if metric.change is not None and metric.change.ratio is not None:
        return metric.change.ratio - 1
    if metric.value is None or not metric.expected:
        return None
    return metric.value / metric.expected - 1


NIGHT_SCHEMA = "profkit.night/1"


def night_to_json(night: Night) -> dict[str, Json]:
    """The night without the points behind its plots: those are in the history, and there are thousands."""
    workloads = tuple(
        replace(workload, metrics=tuple(_without_points(metric) for metric in workload.metrics))
        for workload in night.workloads
    )
    body = cast("dict[str, Json]", to_plain_data(replace(night, workloads=workloads)))
    return {"schema": NIGHT_SCHEMA, **body}


def night_to_text(night: Night) -> str:
    """As JSON text with a final newline."""
    return json_text(night_to_json(night))


def _without_points(metric: MetricOutcome) -> MetricOutcome:
    if metric.trend is None:
        return metric
    series = replace(metric.trend.series, points=())
    return replace(metric, trend=replace(metric.trend, series=series))


def write_reports(folder: Path, night: Night, *, strict: bool = False) -> list[str]:
    """night.json, report.md, junit.xml and report.html into `folder`; what could not be written, in words."""
    from profkit.reporting.html import page  # here: its templates cost 50 ms

    blocks = view(night)
    texts = {
        "night.json": night_to_text(night),
        "report.md": markdown.render(blocks),
        "junit.xml": junit.render([blocks], strict=strict),
        "report.html": page.render(blocks),
    }
    return [fault for name, text in texts.items() if (fault := _write_or_fault(folder / name, text))]


def write_notices(spec: NotifySpec, night: Night, *, strict: bool = False) -> list[str]:
    """The files for others; what could not be written, in words: a broken notice costs no night."""
    faults = []
    if spec.junit is not None:
        faults.append(_write_or_fault(spec.junit, junit.render([view(night)], strict=strict)))
    summary = spec.summary or summary_file()
    if summary is not None:
        faults.append(append_summary(summary, view(night)))
    return [fault for fault in faults if fault is not None]


def _write_or_fault(path: Path, text: str) -> str | None:
    try:
        write_text(path, text)
    except ProfkitError as fault:
        return fault.message
    return None


def annotations_of(spec: NotifySpec, night: Night) -> str:
    """The lines for GitHub's runner; empty where it does not listen."""
    return annotations_in_step(view(night), spec.annotations)
