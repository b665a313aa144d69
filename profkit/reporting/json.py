"""Results as JSON documents, one schema each: the fields of the types, without NaN.

What is printed, or lies in a folder that CI uploads, may be read by anybody: commands in it are as others may see them,
and what has the form of a secret is masked. Documents that only lie in a run's folder are whole.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from functools import lru_cache

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
    Night,
    Plan,
    RunDocument,
    Trend,
)
from profkit.profilers.redact import FileLeftOut, RemovedText
from profkit.runtime.passes.shown_command import MASK, mask_secrets, shown_command, shown_line


def run(whole: RunDocument) -> str:
    """Return the document with schema "profkit.run/6", as in run.json, with its command masked for others."""
    return json_text(run_fields(whole))


def run_fields(whole: RunDocument) -> dict[str, Json]:
    """Return the same as plain data."""
    return for_others(run_to_json(whole), whole.workload.command)


SCHEMAS: dict[type, str] = {
    Night: "profkit.night/2",
    Comparison: "profkit.comparison/2",
    ComparedSuite: "profkit.comparisons/3",
    BisectDocument: "profkit.bisect/3",
    Plan: "profkit.plan/1",
    Entry: "profkit.entry/2",
}


def document(whole: Night | Comparison | ComparedSuite | BisectDocument | Plan | Entry) -> str:
    """Return a document that holds the fields of its type, and its schema's name."""
    return _text(SCHEMAS[type(whole)], _fields(whole))


def checks(done: Sequence[Check]) -> str:
    """Return the document with schema "profkit.checks/1": the doctor's checks as a list."""
    return _text("profkit.checks/1", {"checks": tuple(done)})


# ---------------------------------------------------------------- history


def history(entries: Sequence[Entry], accepted: Sequence[AcceptedChange], path: str, total: int) -> str:
    """Return the document with schema "profkit.history/2".

    It has the runs without their values, newest first; `total` counts all stored runs.
    """
    runs = [{k: v for k, v in _fields(entry).items() if k != "values"} for entry in reversed(entries)]
    return _text(
        "profkit.history/2", {"history": path, "total": total, "runs": runs, "accepted": tuple(accepted)}
    )


def added(rows: Sequence[Mapping[str, object]], errors: Sequence[Mapping[str, object]], path: str) -> str:
    """Return the document with schema "profkit.added/1": the result for each path."""
    return _text("profkit.added/1", {"history": path, "runs": list(rows), "errors": list(errors)})


def history_change(action: str, path: str, fields: Mapping[str, object]) -> str:
    """Return the document with schema "profkit.history-change/1": what `prune`, `accept`, `mark` or `export` did."""
    return _text("profkit.history-change/1", {"verb": action, "history": path, **fields})


# ---------------------------------------------------------------- over time


def trends(series_trends: Sequence[Trend], path: str) -> str:
    """Return the document with schema "profkit.trends/2": each trend with its points and indices of change points."""
    return _text(
        "profkit.trends/2", {"history": path, "trends": [trend_fields(trend) for trend in series_trends]}
    )


def trend_of_file(trend: Trend, path: str) -> str:
    """Return the document with schema "profkit.trend/1", whose `change_points` are indices into `values`."""
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
    """Return one trend: what it is of, its points, its epochs, and the changes with their ratios."""
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
    """Return the document with schema "profkit.scrub/3"."""
    body = {"source": source, "output": output, "removed": tuple(removed), "left_out": tuple(left_out)}
    return _text("profkit.scrub/3", body)


def _fields(value: object) -> dict[str, Json]:
    body = to_plain_data(value)
    assert isinstance(body, dict)
    return body


def _text(schema: str, body: Mapping[str, object]) -> str:
    return json_text(for_others({"schema": schema, **_fields(body)}))


# ---------------------------------------------------------------- as others may see it


def for_others(body: dict[str, Json], command: Sequence[str] = ()) -> dict[str, Json]:
    """Return the document with each command in it as others may see it, and a mask for what has the form of a secret.

    `command` is the one that lines of tools have in them, which are shown but for its words.
    """
    masked = {old: new for old, new in zip(command, shown_command(command).words, strict=True) if old != new}

    def shown(value: Json, key: str = "") -> Json:
        if isinstance(value, dict):
            return {_text_shown(name): shown(part, name) for name, part in value.items()}
        if isinstance(value, str):
            return _command_shown(value) if key in _COMMANDS else _text_shown(value)
        if not isinstance(value, list):
            return value
        if not all(isinstance(word, str) for word in value):
            return [shown(part, key) for part in value]
        words = [str(word) for word in value]
        if key in _COMMANDS:
            return list(shown_command(words).words)
        if key == "env":
            return [shown_command([word]).words[0] for word in words]
        if key in _LINES_OF_TOOLS:
            words = [masked.get(word, word) for word in words]
        return list(map(_text_shown, words))

    return {_text_shown(name): shown(part, name) for name, part in body.items()}


_COMMANDS = ("command", "setup")
_LINES_OF_TOOLS = ("argv", "after")
_text_shown = lru_cache(maxsize=65536)(mask_secrets)


def _command_shown(line: str) -> str:
    """Return a command that is one text, as some tools keep it."""
    try:
        return shown_line(shlex.split(line))
    except ValueError:
        return MASK
