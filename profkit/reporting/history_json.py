"""What a history holds and what became of a change to it, as one JSON document each."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from profkit.core.codec import plain
from profkit.core.types import Accepted, Entry, Json

LIST_SCHEMA = "profkit.history/1"
SHOW_SCHEMA = "profkit.entry/1"
ADDED_SCHEMA = "profkit.added/1"
CHANGED_SCHEMA = "profkit.history-change/1"


def render_list(entries: Sequence[Entry], accepted: Sequence[Accepted], path: str, total: int) -> str:
    """Schema "profkit.history/1": the runs without their values, newest first; `total` counts those not meant too."""
    runs = [{k: v for k, v in _plain(entry).items() if k != "values"} for entry in reversed(entries)]
    return _text(
        {
            "schema": LIST_SCHEMA,
            "history": path,
            "total": total,
            "runs": runs,
            "accepted": plain(tuple(accepted)),
        }
    )


def render_show(entry: Entry) -> str:
    """Schema "profkit.entry/1": one run with its values and raw samples."""
    return _text({"schema": SHOW_SCHEMA, **_plain(entry)})


def render_added(
    rows: Sequence[Mapping[str, object]], errors: Sequence[Mapping[str, object]], path: str
) -> str:
    """Schema "profkit.added/1": what became of each path."""
    return _text({"schema": ADDED_SCHEMA, "history": path, "runs": list(rows), "errors": list(errors)})


def render_change(verb: str, path: str, told: Mapping[str, object]) -> str:
    """Schema "profkit.history-change/1": what `prune`, `accept`, `mark` and `export` did."""
    return _text({"schema": CHANGED_SCHEMA, "verb": verb, "history": path, **told})


def _plain(entry: Entry) -> dict[str, Json]:
    body = plain(entry)
    assert isinstance(body, dict)
    return body


def _text(body: object) -> str:
    return json.dumps(plain(body), ensure_ascii=False, allow_nan=False, indent=1) + "\n"
