"""The columns of the kernel table: what stands in each, and where it comes from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from profkit.analysis.summaries.gpu_kernels import limiter_text
from profkit.analysis.summaries.kernels import BOTTLENECK_TITLES, KernelRow
from profkit.core.formatting import percent
from profkit.core.types import Reading, RunDocument, Scope, Source

Value = float | str | None


@dataclass(frozen=True)
class Column:
    """One column. `unit` is that of its numbers; "text" where it holds words.

    `value` is what is shown and sorted by, `reading` what it comes from: None where there is none for this kernel.
    """

    title: str
    unit: str
    value: Callable[[KernelRow], Value]
    reading: Callable[[KernelRow], Reading | None]
    meaning: str = ""


def columns(document: RunDocument) -> tuple[Column, ...]:
    """All columns that a table of kernels may have, in their order; the first is the name."""
    return (
        Column(
            "Kernel", "text", lambda row: row.label, _nothing, "a short name; the whole one below the table"
        ),
        *_of_trace(document),
        Column("Limited by", "text", _bound, _nothing, "the busiest unit, or what the warps wait for"),
        _of("Occupancy", "occupancy.achieved"),
        _of("Possible", "occupancy.theoretical"),
        Column("Limiter", "text", limiter_text, _nothing, "what allows no more warps on a multiprocessor"),
        _of("DRAM", "bandwidth.dram.share"),
        _of("DRAM rate", "bandwidth.dram"),
        _of("L2", "bandwidth.l2.share"),
        _of("L1 misses", "cache.l1.miss_rate"),
        _of("L2 misses", "cache.l2.miss_rate"),
        _of("SM", "sm.throughput"),
        _of("Tensor", "tensor.utilization"),
        _of("Warp eff.", "warp.execution_efficiency"),
        _of("Coalesced", "memory.coalescing"),
        _of("Conflicts", "shared.bank_conflicts"),
        _of("Spill loads", "memory.spill.loads"),
        Column("Registers", "count", _registers, _nothing, "registers of a thread"),
        Column("Shared", "B", _shared, _nothing, "shared memory of a block"),
        Column("Blocks", "count", lambda row: _product(row, 0), _nothing, "blocks of the grid"),
        Column("Threads", "count", lambda row: _product(row, 1), _nothing, "threads of a block"),
    )


def _nothing(row: KernelRow) -> Reading | None:
    return None


def _of(title: str, metric: str) -> Column:
    """A column with the values of one metric."""
    return Column(title, "", lambda row: row.value(metric), lambda row: row.readings.get(metric))


def _of_trace(document: RunDocument) -> tuple[Column, ...]:
    """Times and launches, as the trace (or a report of counters) told them."""
    trace = document.trace
    if trace is None:
        return (Column("Share", "%", _share, _nothing, "of the time of all kernels"),)
    artifact = next((r.artifacts[0] for r in document.passes if r.name == "trace" and r.artifacts), None)

    def column(title: str, unit: str, value: Callable[[KernelRow], Value], name: str, formula: str) -> Column:
        def reading(row: KernelRow) -> Reading | None:
            told = value(row)
            if not isinstance(told, (int, float)):
                return None
            source = Source(trace.tool, artifact=artifact, formula=formula)
            return Reading(name, float(told), unit, "measured", Scope("kernel"), source)

        return Column(title, unit, value, reading, formula)

    return (
        column("Share", "%", _share, "GPU time, share", "its time / the time of all kernels"),
        column(
            "GPU time",
            "s",
            lambda r: r.time.total if r.time else None,
            "GPU time",
            "sum over its launches that count",
        ),
        column(
            "Launches",
            "count",
            lambda r: r.time.launches if r.time else None,
            "Launches",
            "its launches that count",
        ),
        column(
            "Median",
            "s",
            lambda r: r.time.median if r.time else None,
            "Time of a launch",
            "median of its launches",
        ),
    )


def _share(row: KernelRow) -> Value:
    return None if row.share is None else 100 * row.share


def _bound(row: KernelRow) -> Value:
    bound = row.bound
    if bound is None:
        return None
    near = bound.nearest
    if bound.busiest is not None and bound.busiest != bound.bound:
        return (
            f"{BOTTLENECK_TITLES[bound.bound]} ({BOTTLENECK_TITLES[bound.busiest]} {percent(near)} %)"
            if near is not None
            else None
        )
    return BOTTLENECK_TITLES[bound.bound] + (f" {percent(near)} %" if near is not None else "")


def _registers(row: KernelRow) -> Value:
    return row.time.kernel.registers if row.time is not None else None


def _shared(row: KernelRow) -> Value:
    return row.time.kernel.shared if row.time is not None else None


def _product(row: KernelRow, place: int) -> Value:
    """Blocks (0) or threads of a block (1), from `132x1x1 of 384x1x1`."""
    parts = (row.scope.id or "").split(" of ")
    if len(parts) != 2:
        return None
    product = 1
    for size in parts[place].split("x"):
        if not size.isdecimal() or len(size) > 12:
            return None
        product *= int(size)
    return product
