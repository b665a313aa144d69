"""Triton's autotuner chose another configuration."""

from __future__ import annotations

from collections.abc import Iterator

from profkit.core.types import Cause, RunDocument, Scope
from profkit.regression.compare.view import View


def find(view: View) -> Iterator[Cause]:
    """For each kernel and key that both runs tuned, where the choice is another."""
    if all(k.word == "same" for k in view.kernels) and not any(c.word == "different" for c in view.changes):
        return
    before, after = _choices(view.baseline), _choices(view.candidate)
    for (kernel, key), best in before.items():
        other = after.get((kernel, key))
        if other is not None and other != best:
            yield Cause(
                "triton",
                f"Triton chose another configuration of {kernel} for {key}.",
                Scope("kernel", kernel),
                (f"{best} -> {other}",),
            )


def _choices(document: RunDocument) -> dict[tuple[str, str], str]:
    """The last choice of each kernel and key in the timing pass, else in any."""
    works = sorted(document.triton, key=lambda work: work.pass_name == "timing")
    return {(t.kernel, t.key): t.best for work in works for t in work.tunings}
