"""One night out of its workloads: its outcome and incidents, its document (`profkit.night/1`), and its reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

from profkit.core.codec import json_text, to_plain_data
from profkit.core.errors import Interrupted, MachineError, ProfkitError, WorkloadError
from profkit.core.types import Incident, IncidentMember, Json, MetricOutcome, Night, WorkloadOutcome
from profkit.core.types.night import MISSED_TARGET, OUTCOME_ORDER
from profkit.regression.nightly.config import NotifySpec
from profkit.regression.nightly.session import write_text
from profkit.reporting import junit, markdown
from profkit.reporting.forges import annotations_in_step, append_summary, summary_file
from profkit.reporting.views.night import view

NIGHT_SCHEMA = "profkit.night/1"
KNOWN_CODES = (MISSED_TARGET, "standing")  # nothing new tonight: behind what is
REGRESSION, UNDECIDED = 1, 5


def build_night(
    id: str,
    name: str,
    started: str,
    workloads: Sequence[WorkloadOutcome],
    *,
    strict: bool = False,
    **more: object,
) -> Night:
    """The night as a whole; `more` are further fields of it."""
    ordered = sorted(workloads, key=lambda w: (OUTCOME_ORDER.index(w.outcome), w.code in KNOWN_CODES))
    looked = [m for w in ordered for m in w.metrics if m.band and m.value is not None]
    night = Night(
        id=id,
        name=name,
        started=started,
        outcome=ordered[0].outcome if ordered else "missing",
        workloads=tuple(ordered),
        incidents=tuple(find_incidents(ordered)),
        looked_at=len(looked),
        suspects=sum(not m.band[0] <= (m.value or 0.0) <= m.band[-1] for m in looked),
    )
    night = replace(night, **more)  # type: ignore[arg-type]
    return replace(night, exit_code=exit_code(night, strict=strict))


def exit_code(night: Night, *, strict: bool = False) -> int:
    """What the contracts ask for, the gravest first.

    130 interrupted; 1 something regressed, or a target that was asked for failed; 4 a workload failed, died or ran out
    of time; 3 this machine could not run one; 5 a workload or a metric was not measured for another reason, or what was
    measured is not valid, and with `strict` also where it could not be decided. 0 only where every workload ran.
    """
    if night.interrupted:
        return Interrupted.exit_code
    outcomes, endings = {w.outcome for w in night.workloads}, {w.ending for w in night.workloads}
    if "regressed" in outcomes:
        return REGRESSION
    if endings & {"workload-failed", "died", "out-of-time", "budget-spent"}:
        return WorkloadError.exit_code
    if endings & {"machine", "not-stored", "refused", "profkit-failed"}:
        return MachineError.exit_code
    if not outcomes or outcomes & {"missing", "invalid"} or (strict and "ambiguous" in outcomes):
        return UNDECIDED
    return 0


def find_incidents(workloads: Sequence[WorkloadOutcome]) -> list[Incident]:
    """Changes with one beginning as one: of the same commit where it is known, else of the same night.

    Only confirmed changes of metrics that gate make one: candidates wait, and watched metrics explain.
    """
    groups: dict[tuple[str, str], list[tuple[str, MetricOutcome]]] = {}
    for workload in workloads:
        for metric in workload.metrics:
            if metric.gates and metric.outcome in ("regressed", "improved"):
                since = metric.commit or (metric.since or "")[:10]
                groups.setdefault((metric.outcome, since), []).append((workload.name, metric))
    incidents = [
        Incident(
            changes[0][1].outcome,
            tuple(IncidentMember(name, m.metric, m.scope, _relative_size(m)) for name, m in changes),
            changes[0][1].since,
            changes[0][1].commit,
        )
        for changes in groups.values()
    ]
    return sorted(incidents, key=lambda one: (OUTCOME_ORDER.index(one.outcome), -len(one.members)))


def _relative_size(metric: MetricOutcome) -> float | None:
    """The relative change: of the pairs where there were any, else of tonight against the past."""
    if metric.change is not None and metric.change.ratio is not None:
        return metric.change.ratio - 1
    return metric.value / metric.expected - 1 if metric.value is not None and metric.expected else None


# ---------------------------------------------------------------- its files


def night_to_text(night: Night) -> str:
    """The night as JSON, without the points behind its plots: those are in the history, and there are thousands."""
    workloads = tuple(replace(w, metrics=tuple(map(_without_points, w.metrics))) for w in night.workloads)
    body = cast("dict[str, Json]", to_plain_data(replace(night, workloads=workloads)))
    return json_text({"schema": NIGHT_SCHEMA, **body})


def _without_points(metric: MetricOutcome) -> MetricOutcome:
    if metric.trend is None:
        return metric
    return replace(metric, trend=replace(metric.trend, series=replace(metric.trend.series, points=())))


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
