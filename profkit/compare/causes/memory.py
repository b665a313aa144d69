"""It holds more memory, and which part of the program holds it."""

from __future__ import annotations

from collections.abc import Iterator

from profkit.compare.causes.words import became
from profkit.compare.view import View
from profkit.model import Cause


def find(view: View) -> Iterator[Cause]:
    """Where a peak or a growth rose; what rose with the process is told with it."""
    python, process = view.rose("memory.python_peak"), view.rose("memory.rss_peak")
    if process is not None:
        more = process.candidate.value - process.baseline.value
        held = python.candidate.value - python.baseline.value if python is not None else 0.0
        whose = (
            "Python objects hold most of it" if held > more / 2 else "hardly any of it is in Python objects"
        )
        both = view.both("memory.python_peak", process.scope)
        evidence = [became("resident memory", process.baseline.value, process.candidate.value, "B")]
        if both is not None:  # else nothing tells whose it is, and that it holds more is the change itself
            evidence.append(became("Python's heap", *both, "B"))
            yield Cause("memory", f"The process holds more memory; {whose}.", evidence=tuple(evidence))
    growth = view.rose("memory.python_growth")
    if growth is not None:
        yield Cause(
            "leak",
            "Python's heap grows with each iteration.",
            evidence=(became("growth", growth.baseline.value, growth.candidate.value, growth.unit),),
        )
