"""The files of a run, linked relative to its folder: the page lies beside them."""

from __future__ import annotations

from profkit.core.formatting import plural, quantity
from profkit.core.types import RunDocument
from profkit.reporting.html.part import Extras, Part
from profkit.reporting.html.templates import filled

MOST = 500  # files that are listed


def part(document: RunDocument, extras: Extras) -> Part | None:
    """A list of the files with their sizes; None where the page lies beside none."""
    if not extras.files:
        return None
    rows = [(one.path, quantity(float(one.size), "B")) for one in extras.files[:MOST]]
    total = quantity(float(sum(one.size for one in extras.files)), "B")
    told = f"{plural(len(extras.files), 'file')} beside this page, {total}."
    body = filled("files.html.j2", rows=rows, left=max(0, len(extras.files) - MOST))
    return Part("files", "Files", body, headline=told, folded=True)
