"""The kernels of a run: one table of all launch configurations, with every number that is known of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Literal

from profkit.analysis.kernel_names import shape
from profkit.analysis.metrics import all_metrics, metric
from profkit.analysis.summaries.kernels import KernelRow, kernel_rows
from profkit.backends import backend_named
from profkit.core.formatting import format_quantity, plural
from profkit.core.types import Reading, RunDocument, Scope, Source, Verdict
from profkit.reporting.chart_blocks import CellValue, RowDetail, SortableColumn, SortableTable
from profkit.reporting.footnotes import MARKS, footnote_of
from profkit.reporting.view import Block, Fold, Section, TableColumn, Text, code, table
from profkit.reporting.views.run_charts import is_metal
from profkit.reporting.views.run_text import SIGNS, WORDS, scope_name
from profkit.reporting.views.summaries.kernels import bottleneck_cell, limiter_cell

_NAME = 4000  # characters of a whole name: longer ones, which somebody made, are cut
_NAMES = 400_000  # characters of all names: of what is beyond each is cut shorter
_SHORTENED = 240
_DETAILED = 300  # kernels whose every number is in the page
_NAMED = 50  # whole names in a table


@dataclass(frozen=True)
class KernelColumn:
    """One column. `unit` is that of its numbers ("": that of its readings); "text" where it holds words.

    `reading` is what a value comes from: None where there is none for this kernel.
    """

    title: str
    unit: str
    value: Callable[[KernelRow], CellValue]
    reading: Callable[[KernelRow], Reading | None] = lambda _row: None
    meaning: str = ""


def kernels_of(document: RunDocument) -> tuple[KernelRow, ...]:
    """The rows of a GPU's kernels, largest first; none of an Apple GPU, whose encoders are no launch configurations."""
    return () if is_metal(document) else kernel_rows(document)


def kernel_table(
    document: RunDocument, kernels: Sequence[KernelRow], otherwise: Sequence[Block]
) -> SortableTable:
    """The table of all kernels; `otherwise` is what formats without scripts show, beside names and sources."""
    columns = [
        column for column in kernel_columns(document) if any(_is_known(column.value(row)) for row in kernels)
    ]
    uncounted = sum(not row.readings for row in kernels)
    only = f" (of {len(kernels)}, {uncounted} only timed)" if uncounted else ""
    return SortableTable(
        "Kernels by launch configuration",
        tuple(_column(column, kernels) for column in columns),
        tuple(_whole_names(kernels)),
        tuple(shape(row.scope.id) if row.scope.id else "" for row in kernels),
        _details(document, kernels),
        f"An empty cell was not counted for this kernel{only}; – could not be measured, and its source says why.",
        reference=(*otherwise, *references(document)),
    )


def kernel_columns(document: RunDocument) -> tuple[KernelColumn, ...]:
    """All columns that a table of kernels may have, in their order; the first is the name."""
    return (
        KernelColumn(
            "Kernel", "text", lambda row: row.label, meaning="a short name; the whole one below the table"
        ),
        *_timed_columns(document),
        KernelColumn(
            "Limited by", "text", bottleneck_cell, meaning="the busiest unit, or what the warps wait for"
        ),
        _measured("Occupancy", "occupancy.achieved"),
        _measured("Possible", "occupancy.theoretical"),
        KernelColumn(
            "Limiter", "text", limiter_cell, meaning="what allows no more warps on a multiprocessor"
        ),
        _measured("DRAM", "bandwidth.dram.share"),
        _measured("DRAM rate", "bandwidth.dram"),
        _measured("L2", "bandwidth.l2.share"),
        _measured("L1 misses", "cache.l1.miss_rate"),
        _measured("L2 misses", "cache.l2.miss_rate"),
        _measured("SM", "sm.throughput"),
        _measured("Tensor", "tensor.utilization"),
        _measured("Warp eff.", "warp.execution_efficiency"),
        _measured("Coalesced", "memory.coalescing"),
        _measured("Conflicts", "shared.bank_conflicts"),
        _measured("Spill loads", "memory.spill.loads"),
        KernelColumn(
            "Registers",
            "count",
            lambda row: row.time.kernel.registers if row.time is not None else None,
            meaning="registers per thread",
        ),
        KernelColumn(
            "Shared",
            "B",
            lambda row: row.time.kernel.shared if row.time is not None else None,
            meaning="shared memory per block",
        ),
        KernelColumn("Blocks", "count", lambda row: _size(row, "grid"), meaning="blocks of the grid"),
        KernelColumn("Threads", "count", lambda row: _size(row, "block"), meaning="threads per block"),
    )


def _measured(title: str, name: str) -> KernelColumn:
    """A column with the values of one metric."""
    return KernelColumn(title, "", lambda row: row.value(name), lambda row: row.readings.get(name))


def _timed_columns(document: RunDocument) -> tuple[KernelColumn, ...]:
    """Times and launches, as the trace (or a report of counters) has them."""
    trace = document.trace
    if trace is None:
        return (KernelColumn("Share", "%", _share, meaning="of the time of all kernels"),)
    artifact = next((r.artifacts[0] for r in document.passes if r.name == "trace" and r.artifacts), None)

    def column(
        title: str, unit: str, value: Callable[[KernelRow], CellValue], name: str, formula: str
    ) -> KernelColumn:
        def reading(row: KernelRow) -> Reading | None:
            known = value(row)
            if not isinstance(known, (int, float)):
                return None
            source = Source(trace.tool, artifact=artifact, formula=formula)
            return Reading(name, float(known), unit, "measured", Scope("kernel"), source)

        return KernelColumn(title, unit, value, reading, formula)

    return (
        column("Share", "%", _share, "GPU time, share", "100 * its time / the time of all kernels"),
        column(
            "GPU time",
            "s",
            lambda row: row.time.total if row.time else None,
            "GPU time",
            "sum over its launches that count",
        ),
        column(
            "Launches",
            "count",
            lambda row: row.time.launches if row.time else None,
            "Launches",
            "its launches that count",
        ),
        column(
            "Median",
            "s",
            lambda row: row.time.median if row.time else None,
            "Time of a launch",
            "median of its launches",
        ),
    )


def _share(row: KernelRow) -> CellValue:
    return None if row.share is None else 100 * row.share


def _size(row: KernelRow, side: Literal["grid", "block"]) -> CellValue:
    """Blocks of the grid, or threads of a block; None where no shape is told."""
    sizes: tuple[int, ...] = getattr(row.time.kernel, side) if row.time is not None else ()
    return prod(sizes) if sizes else None


def _is_known(value: CellValue) -> bool:
    return value is not None and value != "not known"


def _column(column: KernelColumn, rows: Sequence[KernelRow]) -> SortableColumn:
    readings = [column.reading(row) for row in rows]
    unit = column.unit or next((r.unit for r in readings if r is not None and r.value is not None), "")
    sources = tuple((footnote_of(r), _mark(r)) if r is not None else (None, "") for r in readings)
    known = sources if any(readings) else ()
    return SortableColumn(column.title, unit, tuple(map(column.value, rows)), column.meaning, known)


def _mark(reading: Reading) -> str:
    return "?" if reading.doubt else MARKS.get(reading.quality, "")


def _whole_names(rows: Sequence[KernelRow]) -> Iterator[str]:
    """The whole names, as long as the page can bear them."""
    used = 0
    for row in rows:
        name = row.scope.name or "?"
        most = _NAME if used < _NAMES else _SHORTENED
        if len(name) > most:
            name = f"{name[:most]}… ({len(name)} characters, whole in run.json)"
        used += len(name)
        yield name


def _details(document: RunDocument, rows: Sequence[KernelRow]) -> dict[int, RowDetail]:
    """Of the first kernels that were counted every number, and the verdicts that did not pass."""
    order = {metric.name: number for number, metric in enumerate(all_metrics())}
    verdicts: dict[Scope, list[Verdict]] = {}
    for verdict in document.verdicts:
        if verdict.scope.kind == "kernel" and verdict.verdict in ("fail", "unknown"):
            verdicts.setdefault(verdict.scope, []).append(verdict)
    details: dict[int, RowDetail] = {}
    for number, row in enumerate(rows):
        if len(details) == _DETAILED:
            break
        if not (row.readings or row.bound or row.scope in verdicts):
            continue
        readings = sorted(
            row.readings.values(), key=lambda r: (r.value is None, order.get(r.metric, len(order)))
        )
        details[number] = RowDetail(
            row.bound.reason if row.bound is not None else "",
            tuple((_value(r), footnote_of(r), _mark(r)) for r in readings),
            tuple(
                (v.verdict, f"{SIGNS[v.verdict]} {WORDS[v.verdict]}", v.target, v.reason)
                for v in verdicts.get(row.scope, ())
            ),
        )
    return details


def _value(reading: Reading) -> str:
    return "not known" if reading.value is None else format_quantity(reading.value, reading.unit)


# ---------------------------------------------------------------- for whoever checks a number


def references(document: RunDocument) -> Iterator[Section]:
    """Whole kernel names, and the counters behind each metric."""
    scopes = (
        [kernel_time.kernel.scope for kernel_time in document.trace.kernels]
        if document.trace is not None
        else []
    )
    scopes += [reading.scope for reading in document.readings if reading.scope.kind == "kernel"]
    known = list(dict.fromkeys(scopes))
    if not known or backend_named(document.backend).work == "encoder":
        return  # encoders have a table of their own, and no grid
    rows: list[tuple[Text, ...]] = [
        (scope_name(scope), (scope.name or "")[:_NAME], scope.id or "-") for scope in known[:_NAMED]
    ]
    more = len(known) - _NAMED
    note = f"and {plural(more, 'further configuration')}: they stand in run.json" if more > 0 else ""
    names = table(("kernel", "whole name", "grid of block"), rows, words=3, note=note)
    yield Section("Whole names of the kernels", (names,), fold=Fold.REFERENCE)
    yield from _sources(document)


def _sources(document: RunDocument) -> Iterator[Section]:
    """One row for each way in which a metric of a kernel came about."""
    ways: dict[tuple[str, ...], set[Scope]] = {}
    for reading in document.readings:
        if reading.scope.kind == "kernel" and reading.value is not None:
            source = reading.source
            origin = source.artifact or source.tool
            way = (reading.metric, source.formula or "-", source.counter or "-", origin)
            ways.setdefault(way, set()).add(reading.scope)
    if not ways:
        return
    counted = len({scope for scopes in ways.values() for scope in scopes})
    rows: list[tuple[Text, ...]] = [
        (
            metric(way[0]).title,
            *(code(text) if text != "-" else "-" for text in way[1:]),
            f"{len(scopes)} of {counted}",
        )
        for way, scopes in ways.items()
    ]
    columns = ("metric", "formula", "counters", "file", TableColumn("kernels", numeric=True))
    body = table(columns, rows, words=5)
    yield Section("Where each number of a kernel comes from", (body,), fold=Fold.REFERENCE)
