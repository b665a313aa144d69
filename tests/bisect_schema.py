"""The JSON Schema of bisect.json and of what `profkit bisect --format json` prints, worked out from the model's types.

`python -m tests.bisect_schema` writes profkit/core/schema/bisect.schema.json; a test holds the two together.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from profkit.core import types as model
from profkit.regression.bisect.state import SCHEMA
from tests.comparison_schema import _whole, text

PUBLISHED = Path(__file__).resolve().parent.parent / "profkit" / "core" / "schema" / "bisect.schema.json"


def schema() -> dict[str, Any]:
    """The whole schema, draft 2020-12."""
    return _whole(model.BisectDocument, SCHEMA, "the search of the commit that changed a time")


def published() -> Any:
    """The schema as it stands in the file."""
    return json.loads(PUBLISHED.read_text(encoding="utf-8"))


if __name__ == "__main__":
    PUBLISHED.write_text(text(schema()), encoding="utf-8")
