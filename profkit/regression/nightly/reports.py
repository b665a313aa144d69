"""The reports of a night: night.json (`profkit.night/1`), the other files in its folder, and notices for others."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

from profkit.core.codec import build, plain
from profkit.core.errors import MachineError, ProfkitError, UnreadableReport
from profkit.core.types import Json, MetricOutcome, Night
from profkit.regression.nightly.config import NotifySpec
from profkit.regression.nightly.session import write_text
from profkit.reporting import junit, markdown
from profkit.reporting.annotations import render as render_annotations
from profkit.reporting.views.night import view

NIGHT_SCHEMA = "profkit.night/1"
NIGHTS_SCHEMA = "profkit.nights/1"


def night_to_json(night: Night) -> dict[str, Json]:
    """The night without the points behind its plots: those are in the history, and there are thousands."""
    workloads = tuple(
        replace(workload, metrics=tuple(_without_points(metric) for metric in workload.metrics))
        for workload in night.workloads
    )
    body = cast("dict[str, Json]", plain(replace(night, workloads=workloads)))
    return {"schema": NIGHT_SCHEMA, **body}


def night_to_text(night: Night) -> str:
    """As JSON text with a final newline."""
    return json.dumps(night_to_json(night), ensure_ascii=False, allow_nan=False, indent=1) + "\n"


def nights_to_text(nights: Sequence[Night], exit_code: int) -> str:
    """Several nights as one document: `{"schema": "profkit.nights/1", "exit_code": ..., "nights": [...]}`."""
    body = {
        "schema": NIGHTS_SCHEMA,
        "exit_code": exit_code,
        "nights": [night_to_json(night) for night in nights],
    }
    return json.dumps(body, ensure_ascii=False, allow_nan=False, indent=1) + "\n"


def night_from_text(text: str) -> Night:
    """The night behind `to_text`; raises UnreadableReport for anything else."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UnreadableReport(f"no whole JSON ({error})") from error
    if not isinstance(data, dict) or data.get("schema") != NIGHT_SCHEMA:
        raise UnreadableReport(f"not a night: its schema is not {NIGHT_SCHEMA}")
    return build(Night, data)


def _without_points(metric: MetricOutcome) -> MetricOutcome:
    if metric.trend is None:
        return metric
    series = replace(metric.trend.series, points=())
    return replace(metric, trend=replace(metric.trend, series=series))


def write_reports(folder: Path, night: Night, *, strict: bool = False, html: bool = True) -> list[str]:
    """night.json, report.md, junit.xml and report.html into `folder`; what could not be written, in words."""
    made: dict[str, Callable[[], str]] = {
        "night.json": lambda: night_to_text(night),
        "report.md": lambda: markdown.render(view(night)),
        "junit.xml": lambda: junit.render([view(night)], strict=strict),
    }
    if html:
        from profkit.reporting.html import page  # here: its templates cost 50 ms

        made["report.html"] = lambda: page.render(view(night))
    troubles = []
    for name, make in made.items():
        try:
            write_text(folder / name, make())
        except ProfkitError as fault:
            troubles.append(fault.message)
    return troubles


def write_notices(spec: NotifySpec, night: Night, *, strict: bool = False) -> list[str]:
    """The files for others; what could not be written, in words: a broken notice costs no night."""
    troubles = []
    if spec.junit is not None:
        try:
            write_text(spec.junit, junit.render([view(night)], strict=strict))
        except ProfkitError as fault:
            troubles.append(fault.message)
    summary = spec.summary or _step_summary()
    if summary is not None:
        try:
            _append_summary(summary, night)
        except ProfkitError as fault:
            troubles.append(fault.message)
    return troubles


def annotations_of(spec: NotifySpec, night: Night) -> str:
    """The lines for GitHub's runner; empty where it does not listen."""
    listening = spec.annotations == "always" or (
        spec.annotations == "auto" and os.environ.get("GITHUB_ACTIONS") == "true"
    )
    return render_annotations(view(night)) if listening else ""


def _step_summary() -> Path | None:
    path = os.environ.get("GITHUB_STEP_SUMMARY")
    return Path(path) if path else None


def _append_summary(path: Path, night: Night) -> None:
    """Behind what is there, within what GitHub shows of one step in all."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        there = path.stat().st_size if path.exists() else 0
        with path.open("a", encoding="utf-8") as file:
            file.write(markdown.render(view(night), max(4096, markdown.STEP_SUMMARY - there - 1024)) + "\n")
    except OSError as error:
        raise MachineError(f"cannot write {path}: {error.strerror}") from error
