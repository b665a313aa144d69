"""The passes of a run: what each took and how it ended, with the reason and the fix where it did not finish."""

from __future__ import annotations

from profkit.core.formatting import plural
from profkit.core.types import RunDocument
from profkit.reporting.html.part import Extras, Part
from profkit.reporting.html.templates import filled
from profkit.reporting.order import cost, troubles


def part(document: RunDocument, extras: Extras) -> Part | None:
    """A table of the passes; None for a report that somebody else recorded."""
    if not document.passes:
        return None
    left = troubles(document)
    told = f"{len(document.passes) - len(left)} of {plural(len(document.passes), 'pass', 'passes')} finished."
    rows = [(one, cost(one)) for one in document.passes]
    return Part("passes", "Passes", filled("passes.html.j2", rows=rows, files=extras.paths), headline=told)
