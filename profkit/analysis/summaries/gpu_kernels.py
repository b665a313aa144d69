"""The table of kernels: how often, how long, what limits each, and how well it uses the device."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from profkit.analysis.summaries.kernel_table import Column, kernel_table, of
from profkit.analysis.summaries.kernels import BOUNDS, KernelRow
from profkit.analysis.summaries.occupancy import limiter
from profkit.core.formatting import bar, percent, plural, quantity
from profkit.core.types import KernelClass, Summary

OCCUPANCY = ("occupancy.achieved", "occupancy.theoretical")
# What fills tensors with numbers: the first kernel of a program, and so the one that `ncu --launch-count 1` counts.
_FILLS = re.compile(r"^[^(]*(distribution_(elementwise|nullary)|randperm|generate_seed_pseudo)")
_SHAPE = re.compile(r"\(\d[\dx]* of \d[\dx]*\)")  # behind a name that several configurations have
SHAPES = "in brackets: so many blocks of so many threads"
BAR = 4  # characters of the bar beside a share


def summarize_kernels(rows: Sequence[KernelRow], *, chosen: bool = True) -> Summary:
    """Every kernel with its share of the GPU time, its class, and what decides most targets.

    `chosen`: by a plan of profkit's. In a report of anybody's a kernel that only fills tensors is worth a warning.
    """
    table = kernel_table("Kernels by GPU time", rows, COLUMNS)
    if table is not None and any(_SHAPE.search(row[0]) for row in table.rows):
        table = replace(table, note="; ".join(filter(None, (table.note, SHAPES))))
    notes = _notes(rows) if chosen else (*_filling(rows), *_notes(rows))
    return Summary("kernels", _headline(rows), (), (table,) if table is not None else (), notes)


def summarize_wholes(rows: Sequence[KernelRow]) -> Summary | None:
    """What was counted over several kernels at once (ranges, graphs as wholes); None where nothing was."""
    table = kernel_table("Counted as wholes", rows, COLUMNS)
    if table is None:
        return None
    what = plural(len(rows), "range")
    headline = f"{what} of several kernels counted as one: what holds of each kernel in it is not known."
    return Summary("ranges", headline, (), (replace(table, columns=("range", *table.columns[1:])),))


def _headline(rows: Sequence[KernelRow]) -> str:
    if not rows:
        return "No kernel was seen."
    top = rows[0]
    what = plural(len(rows), "launch configuration")
    share = f" takes {percent(100 * top.share)} % of the kernel time" if top.share is not None else ""
    if top.bound is None or top.bound.bound == "unknown":
        return f"{what}; {top.label}{share or ' is the first'}."
    return f"{what}; {top.label}{share}, limited by {_why(top.bound)}."


def _notes(rows: Sequence[KernelRow]) -> tuple[str, ...]:
    """Why each further kernel is in its class; the first one's reason is the headline."""
    notes = [
        f"{row.brief}: {_why(row.bound)}."
        for row in rows[1:]
        if row.bound is not None and row.bound.bound != "unknown" and (row.share is None or row.share >= 0.01)
    ]
    return tuple(notes[:9])


def _filling(rows: Sequence[KernelRow]) -> tuple[str, ...]:
    found = next((row for row in rows if row.readings and _FILLS.search(row.scope.name or "")), None)
    if found is None:
        return ()
    return (
        f"{found.brief} draws random numbers: the set-up of a program more often than its work "
        "(another kernel: ncu --kernel-name regex:NAME, or --launch-skip N).",
    )


def _why(bound: KernelClass) -> str:
    """`FP32 pipe: at 91 % of its peak; ...`: the class, and the evidence without saying it twice."""
    word = BOUNDS[bound.bound]
    return f"{word}: {bound.reason.removeprefix(f'{word} ')}"


def _launches(row: KernelRow) -> str | None:
    return str(row.time.launches) if row.time is not None else None


def _share(row: KernelRow) -> str | None:
    if row.share is None:
        return None
    return f"{percent(100 * row.share).rjust(5)} % {bar(row.share, BAR)}".rstrip()


def _median(row: KernelRow) -> str | None:
    time = row.time
    if time is None or time.launches == 0:
        value = row.value("time.kernel")
        return quantity(value, "s") if value is not None else None
    if time.median is not None or time.launches == 1:
        return quantity(time.median if time.median is not None else time.total, "s")
    return (
        f"{quantity(time.total / time.launches, 's')} (mean)"  # of nsys before 2021.4, which tells no median
    )


def _bound(row: KernelRow) -> str | None:
    if row.bound is None or (row.bound.bound == "unknown" and row.bound.nearest is None):
        return None
    near = row.bound.nearest
    unit = row.bound.busiest
    word = BOUNDS[row.bound.bound]
    if near is None:
        return word
    at = f" {near:.0f} %"
    return f"{word}{at}" if unit in (None, row.bound.bound) else f"{word} ({BOUNDS[unit]}{at})"


def _occupancy(row: KernelRow) -> str | None:
    achieved, possible = row.value("occupancy.achieved"), row.value("occupancy.theoretical")
    if achieved is None and possible is None:
        return None
    most = f"/{percent(possible)}" if possible is not None else ""
    doubtful = any((r := row.readings.get(n)) and r.doubt for n in OCCUPANCY)
    return f"{percent(achieved) if achieved is not None else '-'}{most} %{'?' if doubtful else ''}"


COLUMNS = (
    Column("launches", _launches),
    Column("GPU time", _share),
    Column("median", _median),
    Column("limited by", _bound),
    Column("occupancy", _occupancy),
    Column("limiter", limiter),
    of("DRAM", "bandwidth.dram.share"),
    of("DRAM rate", "bandwidth.dram"),
    of("tensor", "tensor.utilization"),
    of("conflicts", "shared.bank_conflicts"),
    of("warp eff.", "warp.execution_efficiency"),
    of("coalesced", "memory.coalescing"),
)
