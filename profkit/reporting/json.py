"""A run as its own JSON document, the same that stands in run.json."""

from __future__ import annotations

from profkit.core.run_folder import to_text
from profkit.core.types import RunDocument


def render(document: RunDocument) -> str:
    """One JSON document of schema "profkit.run/1"."""
    return to_text(document)
