"""`profkit.load`: runs and reports for notebooks and scripts, as rows that pandas and polars take as they are.

The file is not called `load.py`, since a module of that name would hide the function in `profkit`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from profkit.analysis.kernel_names import short_name
from profkit.core.run_folder import FILE_NAME
from profkit.core.types import Reading, RunDocument, Scope, Timing
from profkit.profiling.summarize import read_judged
from profkit.reporting.facts import fact_text
from profkit.reporting.plain_text import threshold_text, without_control_characters
from profkit.reporting.views.run_text import time_line, worst_first

Cell: TypeAlias = "str | int | float | bool | None"
Row: TypeAlias = "dict[str, Cell]"


@dataclass(frozen=True)
class Run:
    """One run, or one report. `document` is all of run.json as typed values; the methods give rows of it.

    Every row is a flat dict and all rows of a method have the same keys in the same order. Times are in seconds and
    values in the unit that stands beside them; what is not known is None, never 0 or NaN.
    """

    document: RunDocument
    path: Path

    @property
    def name(self) -> str:
        """What tells this run from others: the name of its folder, or of the report."""
        return self.path.name

    def rows(self) -> list[Row]:
        """One row for each reading: `metric`, `value`, `unit`, `quality`, what it speaks of, where it comes from.

        A reading that is unavailable has the value None, and its `reason`.
        """
        return [self._run_columns() | _reading_row(reading) for reading in self.document.readings]

    def samples(self) -> list[Row]:
        """One row for each sample of the timing pass: `seconds` per iteration, in the order in which they were taken.

        `process` counts from 1; `warmup` marks what came before the samples that count.
        """
        rows = (row for timing in self.document.timings for row in _sample_rows(timing))
        return [self._run_columns() | row for row in rows]

    def kernels(self) -> list[Row]:
        """One row for each launch configuration of a GPU's trace: launches, times, share, and what limits it.

        Of an Apple GPU one for each label of an encoder, which has no grid and no block.
        """
        return [self._run_columns() | row for row in _kernel_rows(self.document)]

    def verdicts(self) -> list[Row]:
        """One row for each verdict, worst first; `advice` has a line for each thing to try."""
        rows = []
        for verdict in worst_first(self.document.verdicts):
            columns: Row = {
                "target": verdict.target,
                "metric": verdict.metric,
                "verdict": verdict.verdict,
                "value": _as_float(verdict.value),
                "unit": verdict.unit,
                "threshold": threshold_text(verdict),
                "quality": verdict.quality,
                **_scope_columns(verdict.scope),
                "reason": fact_text(verdict.reason),
                "weight": verdict.weight,
                "advice": "\n".join(verdict.advice) or None,
            }
            rows.append(self._run_columns() | columns)
        return rows

    def _run_columns(self) -> Row:
        """The columns that every row begins with: which run it is of."""
        revision = self.document.revision
        return {
            "run": self.name,
            "workload": self.document.workload.name,
            "backend": self.document.backend,
            "state": self.document.state,
            "started": self.document.started or None,
            "commit": revision.commit if revision is not None else None,
        }

    def __repr__(self) -> str:
        """One line for a prompt; all of the document would be a page of a megabyte."""
        document = self.document
        parts = [f"{self.name}: {document.name} on {document.backend}", document.state, time_line(document)]
        line = without_control_characters(", ".join(part for part in parts if part))
        return f"<Run {line}; rows(), samples(), kernels(), verdicts(), .document>"


def load(source: str | os.PathLike[str]) -> Run:
    """Read a run's folder, its run.json, or any report that profkit knows.

    A run keeps the verdicts that it got when it was made; a report is judged by the default targets. Raises
    `profkit.core.errors.ProfkitError`: UnreadableReport for what cannot be read, MachineError where only a tool that is
    not here could read it. Its `message` says why, and its `fix` how to mend it.
    """
    path = Path(source)
    document = read_judged(path)
    if path.name == FILE_NAME:
        path = path.absolute().parent
    return Run(document, path if path.name else path.resolve())


def _reading_row(reading: Reading) -> Row:
    return {
        "metric": reading.metric,
        "value": _as_float(reading.value),
        "unit": reading.unit,
        "quality": reading.quality,
        **_scope_columns(reading.scope),
        "tool": reading.source.tool,
        "counter": reading.source.counter,
        "formula": reading.source.formula,
        "artifact": reading.source.artifact,
        "reason": fact_text(reading.reason) or None,
        "fix": reading.fix,
        "doubt": fact_text(reading.doubt) or None,
        "share": reading.share,
    }


def _scope_columns(scope: Scope) -> Row:
    return {"scope_kind": scope.kind, "scope_name": scope.name, "scope_id": scope.id}


def _sample_rows(timing: Timing) -> Iterator[Row]:
    for number, process in enumerate(timing.processes, 1):
        samples = [(True, seconds) for seconds in process.warmup] + [(False, s) for s in process.seconds]
        for index, (warmup, seconds) in enumerate(samples):
            yield {
                "timing": timing.name,
                "kind": timing.kind,
                "process": number,
                "pid": process.pid,
                "sample": index,
                "warmup": warmup,
                "seconds": float(seconds),
                "iterations": 1 if warmup else process.loops,
                "clock": process.clock,
            }


def _kernel_rows(document: RunDocument) -> Iterator[Row]:
    trace = document.trace
    classes = {one.scope: one for one in document.kernels}
    whole = sum(one.total for one in trace.kernels) if trace is not None else 0.0
    for one in trace.kernels if trace is not None else ():
        bottleneck = classes.get(one.kernel.scope)
        yield {
            "kernel": one.kernel.name,
            "label": short_name(one.kernel.name),
            "grid": "x".join(map(str, one.kernel.grid)) or None,
            "block": "x".join(map(str, one.kernel.block)) or None,
            "launches": one.launches,
            "seconds": _as_float(one.total),
            "median": _as_float(one.median),
            "least": _as_float(one.least),
            "most": _as_float(one.most),
            "share": one.total / whole if whole > 0 else None,
            "bound": bottleneck.bound if bottleneck is not None else None,
            "bound_reason": fact_text(bottleneck.reason) if bottleneck is not None else None,
            "nearest": _as_float(bottleneck.nearest) if bottleneck is not None else None,
            "registers": one.kernel.registers,
            "shared": one.kernel.shared,
            "ranges": " > ".join(one.ranges) or None,
            "graph": one.graph,
        }


def _as_float(value: float | None) -> float | None:
    """As a float, whole numbers too: a column has one type."""
    return float(value) if value is not None else None
