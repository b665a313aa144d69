"""night.json: a night as one document, schema `profkit.night/1`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from profkit.core.codec import build, plain
from profkit.core.errors import UnreadableReport
from profkit.core.types import Json, MetricOutcome, Night

SCHEMA = "profkit.night/1"
MANY = "profkit.nights/1"


def to_json(night: Night) -> dict[str, Json]:
    """The night without the points behind its plots: those are in the history, and there are thousands."""
    workloads = tuple(
        replace(workload, metrics=tuple(_told(metric) for metric in workload.metrics))
        for workload in night.workloads
    )
    body = cast("dict[str, Json]", plain(replace(night, workloads=workloads)))
    return {"schema": SCHEMA, **body}


def to_text(night: Night) -> str:
    """As JSON text with a final newline."""
    return json.dumps(to_json(night), ensure_ascii=False, allow_nan=False, indent=1) + "\n"


def many_to_text(nights: Sequence[Night], exit_code: int) -> str:
    """Several nights as one document: `{"schema": "profkit.nights/1", "exit_code": ..., "nights": [...]}`."""
    body = {"schema": MANY, "exit_code": exit_code, "nights": [to_json(night) for night in nights]}
    return json.dumps(body, ensure_ascii=False, allow_nan=False, indent=1) + "\n"


def from_text(text: str) -> Night:
    """The night behind `to_text`; raises UnreadableReport for anything else."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UnreadableReport(f"no whole JSON ({error})") from error
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        raise UnreadableReport(f"not a night: its schema is not {SCHEMA}")
    return build(Night, data)


def _told(metric: MetricOutcome) -> MetricOutcome:
    if metric.trend is None:
        return metric
    series = replace(metric.trend.series, points=())
    return replace(metric, trend=replace(metric.trend, series=series))
