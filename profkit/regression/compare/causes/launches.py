"""More kernels are launched in each iteration, or fewer."""

from __future__ import annotations

from collections.abc import Iterator

from profkit.core.formatting import figures
from profkit.core.types import Cause
from profkit.regression.compare.causes.words import kernel, kernels
from profkit.regression.compare.view import View

_NAMED = 3


def find(view: View) -> Iterator[Cause]:
    """Where the number of launches of an iteration is different, with those that were added or left out."""
    for change in view.different("launch.count"):
        before, after = change.baseline.value, change.candidate.value
        word = "more" if after > before else "fewer"
        differ = sorted(
            ((k.name, (k.candidate_calls or 0.0) - (k.baseline_calls or 0.0)) for k in view.kernels),
            key=lambda item: -abs(item[1]),
        )
        named = [f"{kernel(name)} {size:+.3g}" for name, size in differ[:_NAMED] if abs(size) > 0.1]
        yield Cause(
            "launches",
            f"Each iteration launches {figures(abs(after - before))} {kernels(view)} {word}.",
            evidence=(f"launches per iteration {figures(before)} -> {figures(after)}", *named),
        )
