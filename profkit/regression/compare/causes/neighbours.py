"""Other work took part of the machine while one of the two was timed."""

from __future__ import annotations

from collections.abc import Iterator

from profkit.core.types import Cause
from profkit.regression.compare.state import busy
from profkit.regression.compare.view import View


def find(view: View) -> Iterator[Cause]:
    """Where a time could not be decided, and one of the two ran on a busy machine."""
    if not any(c.unit == "s" and c.word == "ambiguous" for c in view.changes):
        return
    for name, document in (("baseline", view.baseline), ("candidate", view.candidate)):
        reason = busy(document)
        if reason is not None:
            yield Cause("neighbours", f"Other work disturbed the {name}.", evidence=(reason,))
