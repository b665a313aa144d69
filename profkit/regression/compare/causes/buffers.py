"""More command buffers are submitted to an Apple GPU in each iteration, or fewer."""

from __future__ import annotations

from collections.abc import Iterator

from profkit.core.formatting import figures
from profkit.core.types import Cause
from profkit.regression.compare.view import View


def find(view: View) -> Iterator[Cause]:
    """Where the number of command buffers of an iteration is different: each costs the host a submission."""
    for change in view.different("buffer.count"):
        before, after = change.baseline.value, change.candidate.value
        word = "more" if after > before else "fewer"
        yield Cause(
            "buffers",
            f"Each iteration submits {figures(abs(after - before))} command buffers {word}.",
            evidence=(f"command buffers per iteration {figures(before)} -> {figures(after)}",),
        )
