"""The kernels of a run: one table of all launch configurations, and their costliest instructions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from profkit.analysis.kernel_names import shape, short_name
from profkit.analysis.metrics import metric
from profkit.analysis.summaries.kernels import KernelRow, kernel_rows
from profkit.backends import backend_named
from profkit.core.formatting import format_percent
from profkit.core.types import KernelInstruction, Reading, RunDocument, Scope, Source
from profkit.reporting.columns import CellValue, Column, SortableTable, data_table, sortable_table
from profkit.reporting.plain_text import reading_span
from profkit.reporting.view import Block, Detail, Fold, Section, Text, code
from profkit.reporting.views.summaries.kernels import bottleneck_cell, limiter_cell

_NAME = 1000  # characters of a whole name: longer ones, which somebody made, are cut
_NAMED = 50  # whole names in a table


def kernels_of(document: RunDocument) -> tuple[KernelRow, ...]:
    """The rows of a GPU's kernels, largest first; none of an Apple GPU, whose encoders are no launch configurations."""
    metal = document.metal is not None or backend_named(document.backend).work == "encoder"
    return () if metal else kernel_rows(document)


def kernel_table(
    document: RunDocument, kernels: Sequence[KernelRow], otherwise: Sequence[Block]
) -> SortableTable:
    """The table of all kernels; `otherwise` is what formats without scripts show."""
    return sortable_table(
        "Kernels by launch configuration",
        kernel_columns(document),
        kernels,
        [
            f"{row.scope.name or '?'}"[:_NAME] + f" {shape(row.scope.id) if row.scope.id else ''}"
            for row in kernels
        ],
        note="An empty cell was not counted for this kernel; a name tells the whole one where the pointer rests.",
        reference=tuple(otherwise),
    )


def kernel_columns(document: RunDocument) -> tuple[Column[KernelRow], ...]:
    """All columns that a table of kernels may have, in their order; the first is the name."""
    return (
        Column("Kernel", lambda row: row.label, hidden_when_empty=False),
        _timed(document, "Share", "%", _share, "100 * its time / the time of all kernels"),
        _timed(
            document, "GPU time", "s", lambda r: r.time.total if r.time else None, "sum over its launches"
        ),
        _timed(
            document, "Launches", "count", lambda r: r.time.launches if r.time else None, "those that count"
        ),
        _timed(
            document, "Median", "s", lambda r: r.time.median if r.time else None, "median of its launches"
        ),
        Column("Limited by", bottleneck_cell, meaning="the busiest unit, or what the warps wait for"),
        _measured("Occupancy", "occupancy.achieved"),
        _measured("Possible", "occupancy.theoretical"),
        Column("Limiter", limiter_cell, meaning="what allows no more warps on a multiprocessor"),
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
        Column("Registers", lambda r: r.time.kernel.registers if r.time else None, "count", "per thread"),
        Column("Shared", lambda r: r.time.kernel.shared if r.time else None, "B", "per block"),
        Column(
            "Blocks", lambda r: prod(r.time.kernel.grid) or None if r.time else None, "count", "of the grid"
        ),
        Column(
            "Threads", lambda r: prod(r.time.kernel.block) or None if r.time else None, "count", "per block"
        ),
    )


def _measured(title: str, name: str) -> Column[KernelRow]:
    """A column with the values of one metric, each with its source."""

    def text(row: KernelRow) -> Text:
        reading = row.readings.get(name)
        return "" if reading is None else reading_span(reading, None if reading.value is not None else "–")

    return Column(title, lambda row: row.value(name), metric(name).unit or "count", text=text)


def _timed(
    document: RunDocument, title: str, unit: str, value: Callable[[KernelRow], CellValue], formula: str
) -> Column[KernelRow]:
    """A column of times and launches, as the trace has them."""
    tool = document.trace.tool if document.trace is not None else "profkit"
    artifact = next((r.artifacts[0] for r in document.passes if r.name == "trace" and r.artifacts), None)
    source = Source(tool, artifact=artifact, formula=formula)

    def text(row: KernelRow) -> Text:
        known = value(row)
        if not isinstance(known, int | float):
            return ""
        return reading_span(Reading(title, float(known), unit, "measured", Scope("kernel"), source))

    return Column(title, value, unit, formula, text=text)


def _share(row: KernelRow) -> CellValue:
    return None if row.share is None else 100 * row.share


# ---------------------------------------------------------------- instructions

_INSTRUCTIONS, _KERNELS = 6, 5  # instructions of a kernel, and kernels
_LEAST = 0.05  # of the kernel's samples, wasted sectors or conflicts


def instructions_section(document: RunDocument) -> Section | None:
    """A table for each of the largest kernels; None where no report had values for single instructions."""
    by_kernel: dict[Scope, list[KernelInstruction]] = {}
    for instruction in document.instructions:
        if max(instruction.samples, instruction.excess_sectors, instruction.conflicts) >= _LEAST:
            by_kernel.setdefault(instruction.kernel, []).append(instruction)
    if not by_kernel:
        return None
    blocks = tuple(
        data_table(_INSTRUCTION, own[:_INSTRUCTIONS], title=short_name(kernel.name or "?", 60))
        for kernel, own in list(by_kernel.items())[:_KERNELS]
    )
    headline = "Where warps wait, and which accesses waste sectors or conflict, by machine instruction."
    return Section("Instructions", (Detail(blocks),), headline, Fold.FOLDED)


def _place(instruction: KernelInstruction) -> Text:
    """A place in the source, else the offset in the kernel's code."""
    if instruction.file is None:
        return f"at {instruction.offset:#x}"
    return code(f"{instruction.file.rsplit('/', 1)[-1]}:{instruction.line}")


def _stall(instruction: KernelInstruction) -> str | None:
    known = instruction.stall is not None and instruction.samples >= _LEAST
    return instruction.stall.replace("_", " ") if known and instruction.stall else None


def _part(title: str, share: Callable[[KernelInstruction], float]) -> Column[KernelInstruction]:
    def text(instruction: KernelInstruction) -> str:
        return f"{format_percent(100 * share(instruction))} %" if share(instruction) > 0 else "-"

    return Column(title, share, "%", text=text)


_INSTRUCTION: tuple[Column[KernelInstruction], ...] = (
    Column("line", _place),
    Column("instruction", lambda one: code(one.text) if one.text is not None else None),
    Column("waits for", _stall),
    _part("of its waiting", lambda one: one.samples),
    _part("of the wasted sectors", lambda one: one.excess_sectors),
    _part("of the conflicts", lambda one: one.conflicts),
)
