"""A kernel is called more often in each iteration, or less."""

from __future__ import annotations

from collections.abc import Iterator

from profkit.core.formatting import figures
from profkit.core.types import Cause, Scope
from profkit.regression.compare.causes.words import kernel
from profkit.regression.compare.view import View

LEAST = 0.01  # of the GPU time
APART = 0.02  # calls per iteration, relative: the ends of a trace cut through an iteration


def find(view: View) -> Iterator[Cause]:
    """For each kernel that became slower or faster, and is launched another number of times."""
    for k in view.kernels:
        before, after = k.baseline_calls, k.candidate_calls
        if k.word not in ("slower", "faster") or k.share < LEAST or not before or not after:
            continue
        if abs(after / before - 1) > APART:
            word = "more" if after > before else "less"
            yield Cause(
                "calls",
                f"{kernel(k.name)} is called {word} often in each iteration.",
                Scope("kernel", k.name, k.launch),
                (f"calls {figures(before)} -> {figures(after)}",),
            )
