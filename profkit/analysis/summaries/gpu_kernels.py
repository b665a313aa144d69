"""The table of kernels, their occupancy, and how their warps ran."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePath

from profkit.analysis.kernel_names import shape
from profkit.analysis.summaries.kernels import (
    BOTTLENECK_TITLES,
    Cell,
    KernelRow,
    KernelTableColumn,
    kernel_table,
    metric_column,
)
from profkit.analysis.summaries.readings import first_reason, make_summary
from profkit.core.formatting import format_figures, format_percent, format_quantity, plural, shorten, text_bar
from profkit.core.types import KernelBottleneck, Reading, Summary

# What may limit the blocks on a multiprocessor -> how it is called.
LIMITS = {
    "occupancy.limit.registers": "registers",
    "occupancy.limit.shared": "shared memory",
    "occupancy.limit.warps": "warps",
    "occupancy.limit.blocks": "blocks",
    "occupancy.limit.barriers": "barriers",
}
SHORT = {"shared memory": "shared", "registers": "regs"}
FULL = 99.95  # %; where all warps fit, the warps themselves are the limit and nothing else is


def occupancy_limiters(row: KernelRow) -> tuple[str, ...]:
    """What allows the fewest blocks on a multiprocessor, all of them where several allow as few.

    Empty where it is not known, and where every warp fits.
    """
    most = row.value("occupancy.theoretical")
    limits = {word: value for name, word in LIMITS.items() if (value := row.value(name)) is not None}
    if not limits or (most is not None and most >= FULL):
        return ()
    least = min(limits.values())
    return tuple(word for word, value in limits.items() if value == least)


def limiter_text(row: KernelRow) -> str | None:
    """The limiters in a cell: `regs+shared`; `none` where every warp fits; None where it is not known."""
    most = row.value("occupancy.theoretical")
    if most is not None and most >= FULL:
        return "none"
    return "+".join(SHORT.get(word, word) for word in occupancy_limiters(row)) or None


def summarize_occupancy(rows: Sequence[KernelRow], missing: Sequence[Reading] = ()) -> Summary:
    """Achieved and theoretical occupancy with the limiter, and the launch attributes behind them."""
    table = kernel_table("Occupancy and launch", rows, _OCCUPANCY_COLUMNS)
    if table is not None and "blocks per SM*" in table.columns:
        words = ", ".join(LIMITS.values())
        table = replace(table, note=" ".join(filter(None, (table.note, f"* as many as {words} allow"))))
    return make_summary("occupancy", _occupancy_headline(rows, missing), missing, [table])


def _occupancy_headline(rows: Sequence[KernelRow], missing: Sequence[Reading]) -> str:
    known = [row for row in rows if row.value("occupancy.achieved") is not None]
    if not known:
        return f"Achieved occupancy is not known: {first_reason(missing)}."
    top = known[0]
    share = f" ({format_percent(100 * top.share)} % of the GPU time)" if top.share is not None else ""
    text = f"{top.brief}{share} keeps {format_percent(top.value('occupancy.achieved') or 0.0)} % of the warps active"
    most = top.value("occupancy.theoretical")
    if most is None:
        return f"{text}."
    held = occupancy_limiters(top)
    why = f": {limiters_clause(held)}" if held else ""
    return f"{text}, {format_percent(most)} % are possible{why}."


def limiters_clause(held: Sequence[str]) -> str:
    """`registers allow no more`, `shared memory allows no more`: limiters as a clause; empty where there are none."""
    verb = "allows" if list(held) == ["shared memory"] else "allow"
    return f"{' and '.join(held)} {verb} no more" if held else ""


def _limits_cell(row: KernelRow) -> str | None:
    """Blocks per multiprocessor that each resource allows, in the order of LIMITS: `3/1/16/32/-`."""
    limits = [row.value(name) for name in LIMITS]
    if not any(value is not None for value in limits):
        return None
    return "/".join("-" if value is None else f"{value:.0f}" for value in limits)


def _shape_cell(row: KernelRow) -> str | None:
    return shape(row.scope.id) if row.scope.id else None


_OCCUPANCY_COLUMNS = (
    metric_column("achieved", "occupancy.achieved"),
    metric_column("theoretical", "occupancy.theoretical"),
    KernelTableColumn("limiter", limiter_text),
    metric_column("cluster", "cluster.occupancy", rare=True),
    metric_column("registers", "launch.registers", bare=True),
    metric_column("shared/block", "launch.shared"),
    KernelTableColumn("grid of block", _shape_cell, alone=False),
    metric_column("waves", "launch.waves", bare=True),
    KernelTableColumn("blocks per SM*", _limits_cell, alone=False),
)


STALL = "stall."
SHOWN = 3  # reasons in a row: what comes after the third is seldom worth work


def summarize_execution(rows: Sequence[KernelRow], missing: Sequence[Reading] = ()) -> Summary:
    """Lanes at work, branches, instructions per cycle."""
    table = kernel_table("Warps and issue", rows, _EXECUTION)
    top = next((row for row in rows if row.value("warp.execution_efficiency") is not None), None)
    if top is None:
        headline = f"How many lanes of a warp work is not known: {first_reason(missing)}."
    else:
        lanes = top.value("warp.execution_efficiency") or 0.0
        ipc = top.value("ipc")
        rate = f", {format_figures(ipc)} instructions per cycle" if ipc is not None else ""
        headline = (
            f"In {top.brief} {format_percent(lanes)} % of the lanes of an executed instruction work{rate}."
        )
    return make_summary("execution", headline, missing, [table])


def longest_stalls(row: KernelRow) -> list[tuple[str, float]]:
    """What warps of this kernel waited for, longest first: the reason in ncu's word, warps per issued instruction."""
    stalls = [
        (name[len(STALL) :], reading.value)
        for name, reading in row.readings.items()
        if name.startswith(STALL) and reading.value is not None and reading.value > 0
    ]
    return sorted(stalls, key=lambda pair: -pair[1])


def summarize_stalls(rows: Sequence[KernelRow]) -> Summary:
    """The longest stalls of each kernel, with their share of all that its warps waited."""
    columns = tuple(
        KernelTableColumn(title, _stall_cell(number)) for number, title in enumerate(("most", "then", "and"))
    )
    table = kernel_table("What warps wait for", rows, columns)
    top = next((row for row in rows if longest_stalls(row)), None)
    if top is None:
        return Summary("stalls", "What the warps wait for was not counted.")
    name, value = longest_stalls(top)[0]
    share = 100 * value / sum(part for _, part in longest_stalls(top))
    meaning = STALL_MEANINGS.get(name, name)
    headline = f"Warps of {top.brief} wait most for {meaning}: {format_percent(share)} % of their cycles."
    notes = [
        f"{word}: {meaning}."
        for word, meaning in STALL_MEANINGS.items()
        if any(word == name for row in rows[:5] for name, _ in longest_stalls(row)[:SHOWN])
    ]
    return make_summary("stalls", headline, (), [table], notes)


def _stall_cell(number: int) -> Cell:
    def cell(row: KernelRow) -> str | None:
        stalls = longest_stalls(row)
        if number >= len(stalls):
            return None
        name, value = stalls[number]
        return f"{shorten(name, 20)} {format_percent(100 * value / sum(part for _, part in stalls))} %"

    return cell


# After the "Warp Stall Reasons" of NVIDIA's Nsight Compute documentation (Profiling Guide, Metrics Reference).
STALL_MEANINGS = {
    "long_scoreboard": "data from global or local memory (L1, L2 or DRAM)",
    "short_scoreboard": "data from shared memory, special functions or a dynamic branch",
    "barrier": "the other warps of its block at a barrier",
    "math_pipe_throttle": "a free arithmetic pipe",
    "lg_throttle": "room in the queue of global and local memory instructions",
    "mio_throttle": "room in the queue of shared memory and special instructions",
    "tex_throttle": "room in the queue of the texture unit",
    "wait": "the fixed latency of its own instruction before",
    "not_selected": "its turn: another warp was chosen",
    "selected": "nothing: it issued",
    "no_instruction": "its next instruction to be fetched",
    "no_instructions": "its next instruction to be fetched",
    "imc_miss": "a constant to come into its cache",
    "drain": "its stores to leave before it ends",
    "membar": "a memory barrier",
    "branch_resolving": "a branch target to be computed",
    "dispatch_stall": "the dispatcher",
    "sleeping": "itself: all its lanes sleep or yield",
    "misc": "something that has no name",
    "gmma": "an asynchronous matrix operation (tensor cores)",
    "tma": "the tensor memory accelerator",
}
_EXECUTION = (
    metric_column("lanes", "warp.execution_efficiency"),
    metric_column("not predicated off", "warp.predicated_efficiency"),
    metric_column("uniform branches", "branch.efficiency"),
    metric_column("divergent", "branch.divergent", rare=True),
    metric_column("IPC", "ipc", bare=True),
    metric_column("issue slots", "issue.active"),
    metric_column("eligible warps", "warps.eligible", bare=True),
    metric_column("SM busy", "sm.throughput"),
)


OCCUPANCY_METRICS = ("occupancy.achieved", "occupancy.theoretical")
# What fills tensors with numbers: the first kernel of a program, and so the one that `ncu --launch-count 1` counts.
_FILLS = re.compile(r"^[^(]*(distribution_(elementwise|nullary)|randperm|generate_seed_pseudo)")
_SHAPE = re.compile(r"\(\d[\dx]* of \d[\dx]*\)")  # behind a name that several configurations have
SHAPES = "in brackets: so many blocks of so many threads"
BAR = 4  # characters of the bar beside a share


def summarize_kernels(rows: Sequence[KernelRow], count_other: str = "") -> Summary:
    """Every kernel with its share of the GPU time, what limits it, and what decides most targets.

    `count_other` is the line that counts another kernel, of a report that no plan of profkit's has made: there a kernel
    that only fills tensors is worth a warning.
    """
    table = kernel_table("Kernels by GPU time", rows, KERNEL_COLUMNS)
    if table is not None and any(_SHAPE.search(row[0]) for row in table.rows):
        table = replace(table, note="; ".join(filter(None, (table.note, SHAPES))))
    if table is not None:
        table = replace(table, main=True)
    notes = (*_filling_note(rows, count_other), *_bottleneck_notes(rows))
    launched = kernel_table("What launched them", rows, _ORIGIN)
    return make_summary("kernels", _kernels_headline(rows), (), [table, launched], notes)


def _operation_cell(row: KernelRow) -> str | None:
    return (
        shorten(row.time.operation, _LONG)
        if row.time is not None and row.time.operation is not None
        else None
    )


def _backward_cell(row: KernelRow) -> str | None:
    time = row.time
    return shorten(time.backward_of, _LONG) if time is not None and time.backward_of is not None else None


def _line_cell(row: KernelRow) -> str | None:
    """`train.py:12 step`: the file by its name, since a table has little room."""
    time = row.time
    if time is None or time.file is None:
        return None
    function = f" {shorten(time.function, 24)}" if time.function is not None else ""
    return f"{PurePath(time.file).name}:{time.line}{function}"


_LONG = 60  # characters of an operation with its shapes
_ORIGIN = (
    KernelTableColumn("operation", _operation_cell),
    KernelTableColumn("backward of", _backward_cell),
    KernelTableColumn("line", _line_cell),
)


def summarize_ranges(rows: Sequence[KernelRow]) -> Summary | None:
    """What was counted over several kernels at once (ranges, graphs as wholes); None where nothing was."""
    table = kernel_table("Counted as wholes", rows, KERNEL_COLUMNS)
    if table is None:
        return None
    what = plural(len(rows), "range")
    headline = f"{what} of several kernels counted as one: the values of its single kernels are not known."
    return Summary("ranges", headline, (), (replace(table, columns=("range", *table.columns[1:])),))


def _kernels_headline(rows: Sequence[KernelRow]) -> str:
    if not rows:
        return "No kernel was seen."
    top = rows[0]
    what = plural(len(rows), "launch configuration")
    share = f" takes {format_percent(100 * top.share)} % of the kernel time" if top.share is not None else ""
    if top.bound is None or top.bound.bound == "unknown":
        return f"{what}; {top.label}{share or ' is the first'}."
    return f"{what}; {top.label}{share}, limited by {_bottleneck_text(top.bound)}."


def _bottleneck_notes(rows: Sequence[KernelRow]) -> tuple[str, ...]:
    """Why each further kernel is in its class; the first one's reason is the headline."""
    notes = [
        f"{row.brief}: {_bottleneck_text(row.bound)}."
        for row in rows[1:]
        if row.bound is not None and row.bound.bound != "unknown" and (row.share is None or row.share >= 0.01)
    ]
    return tuple(notes[:9])


def _filling_note(rows: Sequence[KernelRow], count_other: str) -> tuple[str, ...]:
    filling = next((row for row in rows if row.readings and _FILLS.search(row.scope.name or "")), None)
    if filling is None or not count_other:
        return ()
    return (
        f"{filling.brief} draws random numbers. That is more often the set-up of a program than its work "
        f"(another kernel: {count_other}).",
    )


def _bottleneck_text(bound: KernelBottleneck) -> str:
    """`FP32 pipe: at 91 % of its peak; ...`: the class, and the evidence without saying it twice."""
    word = BOTTLENECK_TITLES[bound.bound]
    return f"{word}: {bound.reason.removeprefix(f'{word} ')}"


def _launches_cell(row: KernelRow) -> str | None:
    return str(row.time.launches) if row.time is not None else None


def _share_cell(row: KernelRow) -> str | None:
    if row.share is None:
        return None
    return f"{format_percent(100 * row.share).rjust(5)} % {text_bar(row.share, BAR)}".rstrip()


def _median_cell(row: KernelRow) -> str | None:
    time = row.time
    if time is None or time.launches == 0:
        value = row.value("time.kernel")
        return format_quantity(value, "s") if value is not None else None
    if time.median is not None or time.launches == 1:
        return format_quantity(time.median if time.median is not None else time.total, "s")
    return f"{format_quantity(time.total / time.launches, 's')} (mean)"  # of nsys before 2021.4, which tells no median


def _bottleneck_cell(row: KernelRow) -> str | None:
    if row.bound is None or (row.bound.bound == "unknown" and row.bound.nearest is None):
        return None
    near = row.bound.nearest
    unit = row.bound.busiest
    word = BOTTLENECK_TITLES[row.bound.bound]
    if near is None:
        return word
    at = f" {near:.0f} %"
    return f"{word}{at}" if unit in (None, row.bound.bound) else f"{word} ({BOTTLENECK_TITLES[unit]}{at})"


def _occupancy_cell(row: KernelRow) -> str | None:
    achieved, possible = row.value("occupancy.achieved"), row.value("occupancy.theoretical")
    if achieved is None and possible is None:
        return None
    most = f"/{format_percent(possible)}" if possible is not None else ""
    doubtful = any((r := row.readings.get(n)) and r.doubt for n in OCCUPANCY_METRICS)
    return f"{format_percent(achieved) if achieved is not None else '-'}{most} %{'?' if doubtful else ''}"


KERNEL_COLUMNS = (
    KernelTableColumn("launches", _launches_cell),
    KernelTableColumn("GPU time", _share_cell),
    KernelTableColumn("median", _median_cell),
    KernelTableColumn("limited by", _bottleneck_cell),
    KernelTableColumn("occupancy", _occupancy_cell),
    KernelTableColumn("limiter", limiter_text),
    metric_column("DRAM", "bandwidth.dram.share"),
    metric_column("DRAM rate", "bandwidth.dram"),
    metric_column("tensor", "tensor.utilization"),
    metric_column("conflicts", "shared.bank_conflicts"),
    metric_column("warp eff.", "warp.execution_efficiency"),
    metric_column("coalesced", "memory.coalescing"),
)
