"""The JSON Schemas of what `profkit compare --format json` prints, worked out from the model's types.

`python -m tests.comparison_schema` writes comparison.schema.json and, of a suite, comparisons.schema.json into
profkit/core/schema/; a test holds them together.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from profkit.core import types as model
from tests.run_schema import _object

FOLDER = Path(__file__).resolve().parent.parent / "profkit" / "core" / "schema"
PUBLISHED = FOLDER / "comparison.schema.json"
PUBLISHED_SUITE = FOLDER / "comparisons.schema.json"


def schema() -> dict[str, Any]:
    """Of one comparison, draft 2020-12."""
    return _whole(model.Comparison, "profkit.comparison/1", "two runs side by side")


def suite_schema() -> dict[str, Any]:
    """Of several workloads, draft 2020-12."""
    return _whole(
        model.ComparedSuite, "profkit.comparisons/1", "several workloads, each between two versions"
    )


def _whole(kind: type, name: str, title: str) -> dict[str, Any]:
    kinds: dict[str, Any] = {}
    top = _object(kind, kinds)
    top["properties"] = {"schema": {"const": name}, **top["properties"]}
    top["required"] = list(top["properties"])
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"{name}: {title}",
        "description": "Fields may be added; a reader passes over what it does not know.",
        **top,
        "$defs": dict(sorted(kinds.items())),
    }


def text(whole: dict[str, Any]) -> str:
    """A schema as the published file holds it."""
    return json.dumps(whole, indent=1) + "\n"


if __name__ == "__main__":
    PUBLISHED.write_text(text(schema()), encoding="utf-8")
    PUBLISHED_SUITE.write_text(text(suite_schema()), encoding="utf-8")
