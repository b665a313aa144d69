"""What else must be known to read this run: its notes, and those of every concern."""

from __future__ import annotations

from profkit.core.types import RunDocument
from profkit.reporting.html.part import Extras, Part
from profkit.reporting.html.templates import filled


def part(document: RunDocument, extras: Extras) -> Part | None:
    """The notes as a list; None where there are none."""
    if not document.notes:
        return None
    return Part("notes", "Notes", filled("notes.html.j2", notes=document.notes))
