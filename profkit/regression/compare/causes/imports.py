"""Imports take longer: that is start-up, not the work."""

from __future__ import annotations

from collections.abc import Iterator

from profkit.core.types import Cause
from profkit.regression.compare.causes.words import became
from profkit.regression.compare.view import View


def find(view: View) -> Iterator[Cause]:
    """Where the time of imports rose."""
    change = view.rose("time.import")
    if change is not None:
        yield Cause(
            "imports",
            "Imports before the work take longer.",
            evidence=(became("imports", change.baseline.value, change.candidate.value, "s"),),
        )
