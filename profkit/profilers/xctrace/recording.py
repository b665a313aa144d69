"""What is known of a recording before its tables are read, and what the readers of its tables look like."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from profkit.core.types import Report
from profkit.profilers.xctrace.alignment import Alignment
from profkit.profilers.xctrace.cells import Process
from profkit.profilers.xctrace.tables import Table
from profkit.profilers.xctrace.toc import Run


@dataclass(frozen=True)
class Recording:
    """One run of a recording, as far as its exports tell it.

    `run` is its entry in the table of contents (None where there is none), `target` the process that was profiled,
    `alignment` the part of it that counts. `exported` are the schemas that were exported with a table, whether it has
    rows or not; `left_out` those that were to be exported and could not be, with the reason,
    and `broken` those whose export is damaged. `pids` are the processes of the workload that said so themselves: what
    was launched may be a shell, and start them.
    """

    run: Run | None = None
    target: Process | None = None
    alignment: Alignment = field(default_factory=Alignment)
    exported: frozenset[str] = frozenset()
    left_out: Mapping[str, str] = field(default_factory=dict)
    pids: frozenset[int] = frozenset()
    broken: Mapping[str, str] = field(default_factory=dict)

    @property
    def latest(self) -> int | None:
        """The ns in which no row of it can lie any more, nor before as many below 0; None where that is not told.

        In recordings of an M1 no row lies behind the duration in the table of contents. Twice that and 10 s leave room
        for clocks; where only the last seconds were kept ("Windowed") the duration says nothing of the times.
        """
        if self.run is None or self.run.length is None:
            return None
        if "window" in self.run.summary.get("recording-mode", "").lower():
            return None
        return 2 * self.run.length + 10_000_000_000

    @property
    def windows(self) -> tuple[tuple[int, int], ...] | None:
        """What counts, as stretches of trace time in ns; None where the whole recording does."""
        return self.alignment.windows or None


class Piece(Protocol):
    """Reads tables of one kind, and says at the end what they come to.

    `schemas` are those that it reads, in the order in which it wants them.
    """

    @property
    def schemas(self) -> tuple[str, ...]:
        """Names of tables."""

    def read(self, table: Table) -> None:
        """Take the rows of one table; of a schema there may be several, or none."""

    def finish(self, report: Report) -> Report:
        """The report with what the tables came to. Called once, after the last table; also where none came."""
