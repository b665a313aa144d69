"""What a trace of Metal does not hold, on the page of a run: each with its reason, and the way to get it."""

from __future__ import annotations

from profkit.core.formatting import plural
from profkit.core.types import RunDocument
from profkit.reporting.html.metal_table import table
from profkit.reporting.html.part import Extras, Part


def part(document: RunDocument, extras: Extras) -> Part | None:
    """The list; None of a trace that lacks nothing, or of another device."""
    absent = document.metal.absent if document.metal is not None else ()
    if not absent:
        return None
    rows = [(one.what, one.reason, one.fix or "-") for one in absent]
    body = table("Not in this trace", ("table", "why", "to have it"), rows, words=3)
    tables = plural(len(absent), "table of Instruments is", "tables of Instruments are")
    told = f"{tables} missing or empty here: what would follow from them is not known."
    return Part("not-in-trace", "Not in the trace", body, told, folded=True)
