"""profkit's own sampler of Python stacks: its files are read. It is no program: `profkit profile` starts it."""

from __future__ import annotations

from collections.abc import Iterable

from profkit.core.types import Check
from profkit.profilers.profiler import Format, lazy_function


class StackSamples:
    """The sampler that runs inside of each Python process of a workload."""

    name = "stacks"
    formats = (
        Format(
            "python-stacks",
            name,
            "sampled Python stacks",
            lazy_function("profkit.profilers.stacks.read.looks_like_stacks"),
            lazy_function("profkit.profilers.stacks.read.read_stacks"),
            has_stacks=True,
        ),
    )
    recorder = None
    explain = None

    def checks(self) -> Iterable[Check]:
        """It is always there."""
        return ()
