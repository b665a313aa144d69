"""One night out of its workloads: its outcome, its document (`profkit.night/1`), and its reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

from profkit.core.codec import json_text, to_plain_data
from profkit.core.errors import Interrupted, MachineError, ProfkitError, WorkloadError
from profkit.core.types import Json, MetricOutcome, Night, WorkloadOutcome
from profkit.core.types.night import MISSED_TARGET, OUTCOME_ORDER
from profkit.regression.nightly.session import write_text
from profkit.reporting import junit, markdown
from profkit.reporting.forges.step import append_summary, summary_file
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
    """The night's four files into `folder`, and GitHub's summary of the step where there is one.

    What could not be written, in words: it costs no night.
    """
    from profkit.reporting.html import page  # here: its templates cost 50 ms

    blocks = view(night)
    texts = {
        "night.json": night_to_text(night),
        "report.md": markdown.render(blocks),
        "junit.xml": junit.render([blocks], strict=strict),
        "report.html": page.render(blocks),
    }
    faults = [_write_or_fault(folder / name, text) for name, text in texts.items()]
    if (summary := summary_file()) is not None:
        faults.append(append_summary(summary, blocks))
    return [fault for fault in faults if fault is not None]


def _write_or_fault(path: Path, text: str) -> str | None:
    try:
        write_text(path, text)
    except ProfkitError as fault:
        return fault.message
    return None
