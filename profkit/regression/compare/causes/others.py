"""Other kernels do the work: a library chose another algorithm, or the program calls something else."""

from __future__ import annotations

from collections.abc import Iterator

from profkit.core.formatting import percent, quantity
from profkit.core.types import Cause
from profkit.regression.compare.causes.words import kernel, kernels
from profkit.regression.compare.view import View

SHARE = 0.05  # of the GPU time: what smaller kernels do instead of each other is no story
_NAMED = 3


def find(view: View) -> Iterator[Cause]:
    """Where kernels with 5 % of the GPU time vanished and others appeared."""
    gone = [k for k in view.kernels if k.word == "vanished" and k.share >= SHARE]
    new = [k for k in view.kernels if k.word == "appeared" and k.share >= SHARE]
    if not gone or not new:
        return
    before, after = (sum(k.share for k in kernels) for kernels in (gone, new))
    evidence = [f"gone: {kernel(k.name)}, {quantity(k.baseline_seconds, 's')}" for k in gone[:_NAMED]]
    evidence += [f"new: {kernel(k.name)}, {quantity(k.candidate_seconds, 's')}" for k in new[:_NAMED]]
    yield Cause(
        "algorithm",
        f"Other {kernels(view)} do the work: {percent(100 * before)} % of the GPU time was in such that are gone, "
        f"{percent(100 * after)} % is in new ones.",
        evidence=tuple(evidence),
    )
