"""More bytes come from memory, or fewer."""

from __future__ import annotations

from collections.abc import Iterator

from profkit.core.types import Cause
from profkit.regression.compare.causes.words import became, by, kernel
from profkit.regression.compare.view import View


def find(view: View) -> Iterator[Cause]:
    """Of the run, and of each kernel that takes another time."""
    for change in view.different("dram.bytes"):
        before, after = change.baseline.value, change.candidate.value
        says = f"moves {by(before, after)} between"
        if change.scope.kind != "kernel":
            sentence = f"It {says} the last cache and memory."
        elif view.retimed(change.scope):
            sentence = f"{kernel(change.scope.name or '')} {says} the device's caches and its memory."
        else:
            continue
        yield Cause("bytes", sentence, change.scope, (became("memory traffic", before, after, "B"),))
