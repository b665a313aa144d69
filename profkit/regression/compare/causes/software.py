"""Another torch, Triton, driver or Python: it may bring other kernels by itself."""

from __future__ import annotations

from collections.abc import Iterator

from profkit.analysis.comparability import all_fields, fingerprint_differences, fingerprint_of
from profkit.core.types import Cause
from profkit.regression.compare.view import View


def find(view: View) -> Iterator[Cause]:
    """Where anything is different, and a version that both tell."""
    if not any(change.word == "different" for change in view.changes):
        return
    for difference in fingerprint_differences(fingerprint_of(view.baseline), fingerprint_of(view.candidate)):
        field = all_fields()[difference.name]
        if field.of == "software" and difference.baseline is not None and difference.candidate is not None:
            versions = f"{difference.baseline} -> {difference.candidate}"
            yield Cause(
                "software",
                f"Another {field.title}: {difference.meaning}.",
                evidence=(f"{field.title} {versions}",),
            )
