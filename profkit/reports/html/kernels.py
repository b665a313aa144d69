"""The kernels of a run as a table that sorts and filters."""

from __future__ import annotations

from profkit.model import RunDocument
from profkit.reports.html.part import Extras, Part


def part(document: RunDocument, extras: Extras) -> Part | None:
    """The table; None where no kernel was seen."""
    return None
