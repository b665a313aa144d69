"""The GPU's side of an export: the tables of Metal System Trace and of GPU counters, read one by one."""

from __future__ import annotations

from dataclasses import replace

from profkit.analysis.timeline.records import Spool
from profkit.core.types import Report
from profkit.profilers.xctrace.metal_counters import COUNTERS
from profkit.profilers.xctrace.metal_read import MetalTables
from profkit.profilers.xctrace.metal_report import metal_parts
from profkit.profilers.xctrace.metal_work import INTERVALS
from profkit.profilers.xctrace.recording import Recording
from profkit.profilers.xctrace.tables import Table

_OF_METAL = "metal-"


class MetalPiece:
    """Takes the tables of an export that speak of the GPU; the report gets what they come to."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._tables = MetalTables(Spool(), recording.latest)
        self.schemas = tuple(self._tables.takers())
        self._read = False

    def read(self, table: Table) -> None:
        """One table of `schemas`."""
        self._read = True
        self._tables.read(table)

    def finish(self, report: Report) -> Report:
        """The report with the trace, as Metal has it and as other tools have theirs, and the GPUs."""
        with self._tables.spool:
            if not self._read and not _expected(self._recording):
                return report
            parts = metal_parts(self._tables, self._recording)
        return replace(
            report,
            metal=parts.metal,
            trace=parts.trace or report.trace,
            gpus=parts.gpus or report.gpus,
            warnings=(*report.warnings, *parts.warnings),
        )


def _expected(recording: Recording) -> bool:
    """Whether the recording was one of the GPU, though no table of that was exported, or none that is read."""
    if any(schema.startswith(_OF_METAL) for schema in recording.exported):
        return True
    return recording.run is not None and (recording.run.has(INTERVALS) or recording.run.has(COUNTERS))
