"""The JSON Schema of night.json, worked out from the model's types.

`python -m tests.night_schema` writes profkit/core/schema/night.schema.json; a test holds the two together.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from profkit.core import types as model
from profkit.regression.nightly.night import NIGHT_SCHEMA
from tests.run_schema import _object

PUBLISHED = Path(__file__).resolve().parent.parent / "profkit" / "core" / "schema" / "night.schema.json"


def schema() -> dict[str, Any]:
    """The whole schema, draft 2020-12."""
    kinds: dict[str, Any] = {}
    top = _object(model.Night, kinds)
    top["properties"] = {"schema": {"const": NIGHT_SCHEMA}, **top["properties"]}
    top["required"] = ["schema", "id", "name", "started", "outcome", "reason", "exit_code", "workloads"]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"{NIGHT_SCHEMA}: one nightly",
        "description": "Fields may be added; a reader passes over what it does not know.",
        **top,
        "$defs": dict(sorted(kinds.items())),
    }


def text() -> str:
    """The schema as the published file holds it."""
    return json.dumps(schema(), indent=1) + "\n"


if __name__ == "__main__":
    PUBLISHED.write_text(text(), encoding="utf-8")
