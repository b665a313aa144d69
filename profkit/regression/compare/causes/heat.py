"""The hardware slowed itself down: heat, or its power cap."""

from __future__ import annotations

from collections.abc import Iterator

from profkit.core.types import Cause
from profkit.regression.compare.state import throttled
from profkit.regression.compare.view import View


def find(view: View) -> Iterator[Cause]:
    """Where only one of the two was held down, or for another reason, and a time is not the same."""
    before, after = throttled(view.baseline), throttled(view.candidate)
    if before == after or not any(c.unit == "s" and c.word != "same" for c in view.changes):
        return
    for name, reasons in (("baseline", before), ("candidate", after)):
        if reasons:
            yield Cause("throttled", f"The {name} was throttled.", evidence=reasons)
