"""Imports take longer: that is start-up, not the work."""

from __future__ import annotations

from collections.abc import Iterator

from profkit.compare.causes.words import became
from profkit.compare.view import View
from profkit.model import Cause


def find(view: View) -> Iterator[Cause]:
    """Where the time of imports rose."""
    change = view.rose("time.import")
    if change is not None:
        yield Cause(
            "imports",
            "Imports before the work take longer.",
            evidence=(became("imports", change.baseline.value, change.candidate.value, "s"),),
        )
