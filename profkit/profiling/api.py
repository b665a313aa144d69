"""`profkit.load`: runs and reports for notebooks and scripts, as rows that pandas and polars take as they are.

The file is not called `load.py`, since a module of that name would hide the function in `profkit`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TypeAlias, overload

from profkit.analysis.kernel_names import short_name
from profkit.core.run_folder import FILE_NAME
from profkit.core.types import Reading, RunDocument, Scope, Timing
from profkit.profiling.summarize import read_judged
from profkit.reporting.footnotes import threshold_text
from profkit.reporting.plain_text import without_control_characters
from profkit.reporting.views.run_insights import to_do_lines
from profkit.reporting.views.run_text import SIGNS, WORDS, time_line, worst_first

Cell: TypeAlias = "str | int | float | bool | None"
Row: TypeAlias = "dict[str, Cell]"
LOOKED_AT = 100  # rows from which polars.DataFrame tells the type of a column (its infer_schema_length)


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
        return _typed_first(
            [self._run_columns() | _reading_row(reading) for reading in self.document.readings]
        )

    def samples(self) -> list[Row]:
        """One row for each sample of the timing pass: `seconds` per iteration, in the order in which they were taken.

        `process` counts from 1; `warmup` marks what came before the samples that count.
        """
        return _typed_first(
            [self._run_columns() | row for timing in self.document.timings for row in _sample_rows(timing)]
        )

    def kernels(self) -> list[Row]:
        """One row for each launch configuration of a GPU's trace: launches, times, share, and what limits it.

        Of an Apple GPU one for each label of an encoder, which has no grid and no block.
        """
        return _typed_first([self._run_columns() | row for row in _kernel_rows(self.document)])

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
                "reason": verdict.reason,
                "weight": verdict.weight,
                "gain": verdict.gain,
                "advice": "\n".join(verdict.advice) or None,
            }
            rows.append(self._run_columns() | columns)
        return _typed_first(rows)

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
        parts = [f"{self.name}: {document.name} on {document.backend}", document.state]
        line = without_control_characters(", ".join([*parts, *self._headline()]))
        return f"<Run {line}; rows(), samples(), kernels(), verdicts(), .document>"

    def _repr_html_(self) -> str:
        """What a notebook shows: the time, the verdicts, and what to do first."""
        document = self.document
        head = f"<b>{_escape_html(self.name)}</b> ({document.backend}, {document.state})"
        todo = "".join(
            f"<li><b>{_escape_html(what)}</b><br>{_escape_html(why)}</li>"
            for what, why in to_do_lines(document)
        )
        return "<br>".join([head, *map(_escape_html, self._headline())]) + (
            f"<ol>{todo}</ol>" if todo else ""
        )

    def _headline(self) -> list[str]:
        """The time, and how many verdicts of the run there are of each word; what there is of both."""
        document = self.document
        counted = [
            f"{SIGNS[word]} {number} {WORDS[word]}"
            for word in WORDS
            if (
                number := sum(
                    v.verdict == word and v.scope.kind in ("run", "region") for v in document.verdicts
                )
            )
        ]
        return [line for line in (time_line(document), ", ".join(counted)) if line]


class Runs(Sequence[Run]):
    """Several runs, whose rows stand below each other; the column `run` tells them apart."""

    def __init__(self, runs: Iterable[Run]) -> None:
        self._runs = tuple(runs)

    @overload
    def __getitem__(self, index: int) -> Run: ...
    @overload
    def __getitem__(self, index: slice) -> Runs: ...
    def __getitem__(self, index: int | slice) -> Run | Runs:
        return Runs(self._runs[index]) if isinstance(index, slice) else self._runs[index]

    def __len__(self) -> int:
        return len(self._runs)

    def __repr__(self) -> str:
        return f"Runs({', '.join(run.name for run in self._runs)})"

    def rows(self) -> list[Row]:
        """The rows of `Run.rows` of all of them."""
        return _typed_first([row for run in self._runs for row in run.rows()])

    def samples(self) -> list[Row]:
        """The rows of `Run.samples` of all of them."""
        return _typed_first([row for run in self._runs for row in run.samples()])

    def kernels(self) -> list[Row]:
        """The rows of `Run.kernels` of all of them."""
        return _typed_first([row for run in self._runs for row in run.kernels()])

    def verdicts(self) -> list[Row]:
        """The rows of `Run.verdicts` of all of them, each run's worst first."""
        return _typed_first([row for run in self._runs for row in run.verdicts()])

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return "<hr>".join(run._repr_html_() for run in self._runs)


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


def load_all(sources: Iterable[str | os.PathLike[str]]) -> Runs:
    """Read several, in the order given, for rows of all of them. Raises as `load` does, at the first that fails."""
    return Runs(load(source) for source in sources)


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
        "reason": reading.reason,
        "fix": reading.fix,
        "doubt": reading.doubt,
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
                "cache": process.cache,
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
            "bound_reason": bottleneck.reason if bottleneck is not None else None,
            "nearest": _as_float(bottleneck.nearest) if bottleneck is not None else None,
            "registers": one.kernel.registers,
            "shared": one.kernel.shared,
            "ranges": " > ".join(one.ranges) or None,
            "graph": one.graph,
        }


def _as_float(value: float | None) -> float | None:
    """As a float, whole numbers too: a column has one type."""
    return float(value) if value is not None else None


def _typed_first(rows: list[Row]) -> list[Row]:
    """The rows, with those first that show the type of a column which would else be None as far as anybody looks.

    polars tells types from the first rows, and refuses a text in a column that began with nothing but None.
    """
    if len(rows) <= LOOKED_AT:
        return rows
    missing = {key for key in rows[0] if all(row[key] is None for row in rows[: LOOKED_AT // 2])}
    first: list[int] = []
    for key in rows[0]:
        if key in missing and not any(rows[index][key] is not None for index in first):
            first += [index for index, row in enumerate(rows) if row[key] is not None][:1]
    chosen = set(first)
    return [rows[index] for index in first] + [row for index, row in enumerate(rows) if index not in chosen]


def _escape_html(text: str) -> str:
    return escape(without_control_characters(text))
