"""A comparison as one JSON document."""

from __future__ import annotations

import json

from profkit.core.codec import plain
from profkit.core.types import Comparison

COMPARISON_SCHEMA = "profkit.comparison/1"


def render(comparison: Comparison) -> str:
    """One JSON document of schema "profkit.comparison/1": the fields of `model.Comparison`, without NaN."""
    data = plain(comparison)
    assert isinstance(data, dict)
    return json.dumps({"schema": COMPARISON_SCHEMA, **data}, ensure_ascii=False, allow_nan=False, indent=1)
