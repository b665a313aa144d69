"""A run as its own JSON document, the same that stands in run.json."""

from __future__ import annotations

from profkit.model import RunDocument
from profkit.run import to_text


def render(document: RunDocument) -> str:
    """One JSON document of schema "profkit.run/1"."""
    return to_text(document)
