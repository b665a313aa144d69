"""Which encoders of Metal carry what became slower: their trace has no counters of each that would say why."""

from __future__ import annotations

from collections.abc import Iterator

from profkit.core.formatting import percent
from profkit.core.types import Cause, Scope
from profkit.regression.compare.causes.words import became, by, kernel
from profkit.regression.compare.kernels import moved
from profkit.regression.compare.view import View

LEAST = 0.1  # of what was added: less explains nothing
_NAMED = 3


def find(view: View) -> Iterator[Cause]:
    """The encoders with most of the time that was added, each with its part of it; nothing where the sum fell."""
    if view.candidate.backend != "mps":
        return
    added = sum(moved(one) for one in view.kernels)
    if added <= 0:
        return
    slower = [one for one in view.kernels if one.word == "slower" and moved(one) >= LEAST * added]
    for one in sorted(slower, key=lambda one: -moved(one))[:_NAMED]:
        before, after = one.baseline_seconds or 0.0, one.candidate_seconds or 0.0
        part = min(1.0, moved(one) / added)
        yield Cause(
            "encoder",
            f"{kernel(one.name)} takes {by(before, after)}: {percent(100 * part)} % of the GPU time that was added.",
            Scope("kernel", one.name, one.launch or None),
            (became("seconds per iteration", before, after, "s"),),
        )
