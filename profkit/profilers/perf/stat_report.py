"""What the readers of `perf stat` share: from counted rows and odd lines to a Report, or a clear refusal."""

from __future__ import annotations

import re
from collections.abc import Sequence

from profkit.core.errors import UnreadableReport
from profkit.core.types import Report
from profkit.profilers.perf.faults import explain
from profkit.profilers.perf.stat_tally import Tally

_STARTED = re.compile(r"# started on (?P<when>\S.{5,60})")


class Gathering:
    """One file while it is being read."""

    def __init__(self, name: str, format: str) -> None:
        self.name = name
        self.format = format
        self.tally = Tally()
        self.foreign = 0
        self.facts: dict[str, str] = {}
        self.warnings: list[str] = []

    def comment(self, text: str) -> None:
        """Take what a comment line tells."""
        if (match := _STARTED.match(text)) is not None:
            self.facts.setdefault("started-on", match["when"].strip())

    def cut_off(self) -> None:
        """Note that the file ends in the middle of a line."""
        self.warnings.append("the last line is cut off; what stands before it was read")

    def nothing(self, first: Sequence[str]) -> UnreadableReport:
        """Why there is no count in the file: perf's own error in it, emptiness, or another format."""
        text = "\n".join(first)
        if not text.strip():
            return UnreadableReport(f"{self.name} is empty: perf stat counted nothing, or was killed")
        if (fault := explain(text, 1)) is not None:
            return UnreadableReport(f"{self.name} holds an error and no counts: {fault.reason}", fault.fix)
        return UnreadableReport(f"{self.name} holds no counts of perf stat")

    def report(self, first: Sequence[str]) -> Report:
        """The Report. Raises UnreadableReport where nothing was counted in the file."""
        if self.tally.rows == 0:
            raise self.nothing(first)
        counters, warnings, facts = self.tally.finish()
        if self.foreign:
            lines = "1 line that is" if self.foreign == 1 else f"{self.foreign} lines that are"
            self.warnings.append(f"passed over {lines} not of perf stat")
        return Report(
            tool="perf",
            format=self.format,
            facts={**self.facts, **facts},
            counters=counters,
            warnings=(*self.warnings, *warnings),
        )
