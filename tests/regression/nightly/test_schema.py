"""The published schema of night.json is the one of the model's types."""

from __future__ import annotations

from tests import night_schema


def test_the_published_schema_is_the_one_of_the_types() -> None:
    assert night_schema.PUBLISHED.read_text(encoding="utf-8") == night_schema.text(), (
        "python -m tests.night_schema"
    )
