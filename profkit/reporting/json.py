"""Results as JSON documents, one schema each: the fields of the types, without NaN."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from profkit.core.codec import json_text, to_plain_data
from profkit.core.run_folder import run_to_json
from profkit.core.types import (
    AcceptedChange,
    BisectDocument,
    Check,
    ComparedSuite,
    Comparison,
    Entry,
    Json,
    Plan,
    RunDocument,
    Trend,
)
from profkit.profilers.redact import FileLeftOut, RemovedText


def run(whole: RunDocument) -> str:
    """Schema "profkit.run/6", the same that stands in run.json."""
    return json_text(run_to_json(whole))


_SCHEMAS: dict[type, str] = {
    Comparison: "profkit.comparison/2",
    ComparedSuite: "profkit.comparisons/3",
    BisectDocument: "profkit.bisect/3",
    Plan: "profkit.plan/1",
    Entry: "profkit.entry/2",
}


def document(whole: Comparison | ComparedSuite | BisectDocument | Plan | Entry) -> str:
    """A document that holds the fields of its type, and its schema's name."""
    return _text(_SCHEMAS[type(whole)], _fields(whole))


def checks(done: Sequence[Check]) -> str:
    """Schema "profkit.checks/1": the doctor's checks as a list."""
    return _text("profkit.checks/1", {"checks": tuple(done)})


# ---------------------------------------------------------------- history


def history(entries: Sequence[Entry], accepted: Sequence[AcceptedChange], path: str, total: int) -> str:
    """Schema "profkit.history/2": the runs without their values, newest first; `total` counts all that are stored."""
    runs = [{k: v for k, v in _fields(entry).items() if k != "values"} for entry in reversed(entries)]
    return _text(
        "profkit.history/2", {"history": path, "total": total, "runs": runs, "accepted": tuple(accepted)}
    )


def added(rows: Sequence[Mapping[str, object]], errors: Sequence[Mapping[str, object]], path: str) -> str:
    """Schema "profkit.added/1": what became of each path."""
    return _text("profkit.added/1", {"history": path, "runs": list(rows), "errors": list(errors)})


def history_change(verb: str, path: str, fields: Mapping[str, object]) -> str:
    """Schema "profkit.history-change/1": what `prune`, `accept`, `mark` and `export` did."""
    return _text("profkit.history-change/1", {"verb": verb, "history": path, **fields})


# ---------------------------------------------------------------- over time


def trends(series_trends: Sequence[Trend], path: str) -> str:
    """Schema "profkit.trends/2": each trend with its points and the indices of its change points."""
    return _text(
        "profkit.trends/2", {"history": path, "trends": [trend_fields(trend) for trend in series_trends]}
    )


def trend_of_file(trend: Trend, path: str) -> str:
    """Schema "profkit.trend/1": `change_points` are indices into `values`."""
    fields = trend_fields(trend)
    body: dict[str, Json] = {
        "file": path,
        "change_points": fields["change_points"],
        "changes": fields["changes"],
        "values": [point.value if point.valid else None for point in trend.series.points],
        **{name: fields[name] for name in ("noise", "autocorrelation")},
    }
    return _text("profkit.trend/1", body)


def trend_fields(trend: Trend) -> dict[str, Json]:
    """One trend: whose it is, its points, its epochs, and the changes with the ratio that each makes."""
    series = trend.series
    return {
        "workload": series.key.workload,
        "backend": series.key.backend,
        "metric": series.key.metric,
        "scope": to_plain_data(series.key.scope),
        "unit": series.unit,
        "better": series.better,
        "change_points": [change.index for change in trend.change_points],
        "changes": [
            {**_fields(change), "ratio": to_plain_data(change.ratio)} for change in trend.change_points
        ],
        "epochs": to_plain_data(trend.epochs),
        "points": [{k: v for k, v in _fields(p).items() if k != "groups"} for p in series.points],
        "noise": to_plain_data(trend.noise),
        "autocorrelation": to_plain_data(trend.autocorrelation),
    }


# ---------------------------------------------------------------- scrubbed copies


def scrubbed(
    source: str, output: str, removed: Sequence[RemovedText], left_out: Sequence[FileLeftOut]
) -> str:
    """Schema "profkit.scrub/3"."""
    body = {"source": source, "output": output, "removed": tuple(removed), "left_out": tuple(left_out)}
    return _text("profkit.scrub/3", body)


def _fields(value: object) -> dict[str, Json]:
    body = to_plain_data(value)
    assert isinstance(body, dict)
    return body


def _text(schema: str, body: Mapping[str, object]) -> str:
    return json_text({"schema": schema, **_fields(body)})
