"""What samples and counts on one kind of system: perf and a simulation on Linux, Instruments on macOS."""

from __future__ import annotations

from typing import Protocol

from profkit.backends import Findings, Known
from profkit.core.types import PassPlan, PassResult


class Recorder(Protocol):
    """The passes of the CPU backend that need a tool of the system."""

    def tools(self, wanted: tuple[str, ...]) -> dict[str, str | None]:
        """The version of each tool that the passes `wanted` use; None where it does not work."""

    def trace(self, known: Known) -> PassPlan:
        """Where time goes, by sampling."""

    def counters(self, known: Known) -> list[PassPlan]:
        """What is counted, in one pass or several."""

    def findings(self, plan: PassPlan, result: PassResult) -> Findings:
        """What a pass of this recorder left. Raises UnreadableReport where it cannot be read."""
