"""More is copied between host and device, or on the device."""

from __future__ import annotations

from collections.abc import Iterator

from profkit.analysis.summaries.readings import traced_iterations
from profkit.core.types import Cause, RunDocument
from profkit.regression.compare.causes.words import became, by
from profkit.regression.compare.view import View


def find(view: View) -> Iterator[Cause]:
    """Where the bytes of an iteration's copies are different, by their kind."""
    for change in view.different("transfer.bytes"):
        before, after = _kinds(view.baseline), _kinds(view.candidate)
        evidence = [
            became(kind, before.get(kind, 0.0), after.get(kind, 0.0), "B")
            for kind in dict.fromkeys((*before, *after))
            if before.get(kind) != after.get(kind)
        ]
        yield Cause(
            "transfers",
            f"Each iteration copies {by(change.baseline.value, change.candidate.value)}.",
            evidence=(
                became("bytes copied", change.baseline.value, change.candidate.value, "B"),
                *evidence,
            ),
        )


def _kinds(document: RunDocument) -> dict[str, float]:
    count = traced_iterations(document)
    transfers = document.trace.transfers if document.trace is not None else ()
    return {transfer.kind: transfer.bytes / count for transfer in transfers}
