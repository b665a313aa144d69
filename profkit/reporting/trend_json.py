"""Trends as one JSON document: of a history, or of one file."""

from __future__ import annotations

import json
from collections.abc import Sequence

from profkit.core.codec import plain
from profkit.core.types import Json, Trend

TRENDS_SCHEMA = "profkit.trends/1"
TREND_SCHEMA = "profkit.trend/1"


def render(trends: Sequence[Trend], history: str) -> str:
    """Schema "profkit.trends/1": `trends`, each with its points and the indices of its change points."""
    body = {"schema": TRENDS_SCHEMA, "history": history, "trends": [trend_json(trend) for trend in trends]}
    return _text(body)


def render_file(trend: Trend, path: str, column: str, by: str | None, rows: Sequence[int]) -> str:
    """Schema "profkit.trend/1": `change_points` are indices into `values`, `rows` the first row of each value."""
    told = trend_json(trend)
    body: dict[str, Json] = {
        "schema": TREND_SCHEMA,
        "file": path,
        "column": column,
        "by": by,
        "change_points": told["change_points"],
        "changes": told["changes"],
        "values": [point.value if point.valid else None for point in trend.series.points],
        "labels": [point.started for point in trend.series.points],
        "rows": list(rows),
        "noise": told["noise"],
        "detectable": told["detectable"],
        "autocorrelation": told["autocorrelation"],
        "notes": told["notes"],
    }
    return _text(body)


def trend_json(trend: Trend) -> dict[str, Json]:
    """One trend: whose it is, its points, its epochs, and the changes with the ratio that each makes."""
    series = trend.series
    return {
        "workload": series.key.workload,
        "backend": series.key.backend,
        "metric": series.key.metric,
        "scope": plain(series.key.scope),
        "unit": series.unit,
        "better": series.better,
        "change_points": [change.index for change in trend.change_points],
        "changes": [_with_ratio(plain(change), change.ratio) for change in trend.change_points],
        "epochs": plain(trend.epochs),
        "points": [_without_samples(plain(point)) for point in series.points],
        "noise": plain(trend.noise),
        "detectable": plain(trend.detectable),
        "autocorrelation": plain(trend.autocorrelation),
        "notes": plain(trend.notes),
    }


def _with_ratio(change: Json, ratio: float | None) -> Json:
    return {**change, "ratio": plain(ratio)} if isinstance(change, dict) else change


def _without_samples(point: Json) -> Json:
    return (
        {name: value for name, value in point.items() if name != "groups"}
        if isinstance(point, dict)
        else point
    )


def _text(body: object) -> str:
    return json.dumps(plain(body), ensure_ascii=False, allow_nan=False, indent=1) + "\n"
