"""It holds more memory, and which part of the program holds it."""

from __future__ import annotations

from collections.abc import Iterator

from profkit.core.types import Cause
from profkit.regression.compare.causes.words import became
from profkit.regression.compare.view import View


def find(view: View) -> Iterator[Cause]:
    """Where a peak or a growth rose; what rose with the process is told with it."""
    process = view.rose("memory.rss_peak")
    if process is not None:
        more = process.candidate.value - process.baseline.value
        both = view.both("memory.python_peak", process.scope)
        evidence = [became("resident memory", process.baseline.value, process.candidate.value, "B")]
        if both is not None:  # else nothing tells whose it is, and that it holds more is the change itself
            evidence.append(became("Python's heap", *both, "B"))
            whose = _whose((both[1] - both[0]) / more)
            yield Cause("memory", f"The process holds more memory; {whose}.", evidence=tuple(evidence))
    growth = view.rose("memory.python_growth")
    if growth is not None and growth.candidate.value > 0:
        yield Cause(
            "leak",
            "Python's heap grows with each iteration.",
            evidence=(became("growth", growth.baseline.value, growth.candidate.value, growth.unit),),
        )


def _whose(share: float) -> str:
    if share > 0.5:
        return "Python objects hold most of it"
    return (
        f"Python objects hold {100 * share:.0f} % of it"
        if share > 0.1
        else "hardly any of it is in Python objects"
    )
