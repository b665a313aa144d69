"""A kernel is launched in another shape: another grid, another block."""

from __future__ import annotations

from collections.abc import Iterator

from profkit.core.types import Cause
from profkit.regression.compare.causes.words import kernel
from profkit.regression.compare.view import View


def find(view: View) -> Iterator[Cause]:
    """For each kernel with 1 % of the GPU time that is launched otherwise, where its time is not the same."""
    for pair in view.main_kernels():
        change = view.fate(pair.baseline.scope)
        if pair.reshaped and change is not None and change.word != "same":
            yield Cause(
                "shape",
                f"{kernel(pair.candidate.name)} is launched in another shape.",
                pair.candidate.scope,
                (f"{pair.baseline.id} -> {pair.candidate.id}",),
            )
