"""Kernels in words: what limits each, its occupancy, memory, arithmetic and waiting; what is not known; the cost."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import PurePath

from profkit.analysis.kernel_names import shape
from profkit.analysis.metrics import metric
from profkit.analysis.summaries.gpu import measured_replays, planned_replays
from profkit.analysis.summaries.gpu_time import lacks_timeline
from profkit.analysis.summaries.kernels import (
    BOTTLENECK_TITLES,
    FULL,
    LIMITS,
    STALL_MEANINGS,
    KernelRow,
    longest_stalls,
    occupancy_limiters,
    range_rows,
)
from profkit.analysis.summaries.roofline_points import (
    TENSOR,
    TENSOR_PEAK,
    RooflinePlace,
    has_hidden_tensor_work,
    place_kernel,
    tensor_rate,
)
from profkit.backends import backend_named
from profkit.core.formatting import format_figures, format_percent, format_quantity, plural, shorten, text_bar
from profkit.core.types import KernelBottleneck, Reading, RunDocument
from profkit.reporting.summaries.parts import (
    Cell,
    ConcernFacts,
    KernelTableColumn,
    SummaryText,
    capitalized,
    first_reason,
    kernel_table,
    metric_column,
    summary_text,
)

# ---------------------------------------------------------------- all kernels

# What fills tensors with numbers: the first kernel of a program, and so the one that `ncu --launch-count 1` counts.
_FILLS = re.compile(r"^[^(]*(distribution_(elementwise|nullary)|randperm|generate_seed_pseudo)")
_SHAPES = "in brackets: so many blocks of so many threads"
_BY_TIME = "Kernels by GPU time"
BAR = 4  # characters of the bar beside a share
_LONG = 60  # characters of an operation with its shapes
_WORTH = 0.05  # of the GPU time


def kernels_text(facts: ConcernFacts) -> SummaryText | None:
    """Every kernel with its share of the GPU time, what limits it, and what decides most targets."""
    if not facts.rows:
        return None
    names = [row.scope.name for row in facts.rows]
    note = _SHAPES if len(set(names)) < len(names) else ""
    tables = [
        kernel_table(_BY_TIME, facts.rows, KERNEL_COLUMNS, note),
        kernel_table("What launched them", facts.rows, _ORIGIN),
    ]
    notes = (*_filling_note(facts.document, facts.rows), *_bottleneck_notes(facts.rows))
    return summary_text("kernels", _kernels_headline(facts.rows), (), tables, notes, brief=(_BY_TIME,))


def ranges_text(facts: ConcernFacts) -> SummaryText | None:
    """What was counted over several kernels at once (ranges, graphs as wholes); None where nothing was."""
    rows = range_rows(facts.document)
    table = kernel_table("Counted as wholes", rows, KERNEL_COLUMNS, first="range")
    if table is None:
        return None
    what = plural(len(rows), "range")
    headline = f"{what} of several kernels counted as one: the values of its single kernels are not known."
    return summary_text("ranges", headline, (), [table])


def _kernels_headline(rows: Sequence[KernelRow]) -> str:
    top = rows[0]
    what = plural(len(rows), "launch configuration")
    share = f" takes {format_percent(100 * top.share)} % of the kernel time" if top.share is not None else ""
    if top.bound is None or top.bound.bound == "unknown":
        return f"{what}; {top.label}{share or ' is the first'}."
    return f"{what}; {top.label}{share}, limited by {_bottleneck_text(top.bound)}."


def _bottleneck_notes(rows: Sequence[KernelRow]) -> list[str]:
    """Why each further kernel is in its class; the first one's reason is the headline."""
    notes = [
        f"{row.brief}: {_bottleneck_text(row.bound)}."
        for row in rows[1:]
        if row.bound is not None and row.bound.bound != "unknown" and (row.share is None or row.share >= 0.01)
    ]
    return notes[:9]


def _filling_note(document: RunDocument, rows: Sequence[KernelRow]) -> Iterator[str]:
    """A warning where no plan of ours chose what was counted, and it is a kernel that only fills tensors."""
    line = backend_named(document.backend).tool_lines.count_other
    filling = next((row for row in rows if row.readings and _FILLS.search(row.scope.name or "")), None)
    if filling is not None and line and document.plan is None and not document.passes:
        set_up = "draws random numbers. That is more often the set-up of a program than its work"
        yield f"{filling.brief} {set_up} (another kernel: {line})."


def _bottleneck_text(bound: KernelBottleneck) -> str:
    """`FP32 pipe: at 91 % of its peak; ...`: the class, and the evidence without saying it twice."""
    word = BOTTLENECK_TITLES[bound.bound]
    return f"{word}: {bound.reason.removeprefix(f'{word} ')}"


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


def bottleneck_cell(row: KernelRow) -> str | None:
    """`DRAM 91 %`, `latency (L2 43 %)`: what limits the kernel, and how near its busiest unit is to its peak."""
    bound = row.bound
    if bound is None or (bound.bound == "unknown" and bound.nearest is None):
        return None
    word, at = BOTTLENECK_TITLES[bound.bound], f" {bound.nearest or 0.0:.0f} %"
    if bound.nearest is None:
        return word
    if bound.busiest in (None, bound.bound):
        return f"{word}{at}"
    return f"{word} ({BOTTLENECK_TITLES[bound.busiest]}{at})"


def _occupancy_cell(row: KernelRow) -> str | None:
    names = ("occupancy.achieved", "occupancy.theoretical")
    achieved, possible = map(row.value, names)
    if achieved is None and possible is None:
        return None
    most = f"/{format_percent(possible)}" if possible is not None else ""
    doubtful = any((r := row.readings.get(n)) and r.doubt for n in names)
    return f"{format_percent(achieved) if achieved is not None else '-'}{most} %{'?' if doubtful else ''}"


def limiter_cell(row: KernelRow) -> str | None:
    """The limiters: `regs+shared`; `none` where every warp fits; None where it is not known."""
    most = row.value("occupancy.theoretical")
    if most is not None and most >= FULL:
        return "none"
    short = {"shared memory": "shared", "registers": "regs"}
    return "+".join(short.get(word, word) for word in occupancy_limiters(row)) or None


def _line_cell(row: KernelRow) -> str | None:
    """`train.py:12 step`: the file by its name, since a table has little room."""
    time = row.time
    if time is None or time.file is None:
        return None
    function = f" {shorten(time.function, 24)}" if time.function is not None else ""
    return f"{PurePath(time.file).name}:{time.line}{function}"


def _name_cell(name: str) -> Cell:
    def cell(row: KernelRow) -> str | None:
        value: str | None = getattr(row.time, name, None)
        return shorten(value, _LONG) if value is not None else None

    return cell


KERNEL_COLUMNS = (
    KernelTableColumn("launches", lambda row: str(row.time.launches) if row.time is not None else None),
    KernelTableColumn("GPU time", _share_cell),
    KernelTableColumn("median", _median_cell),
    KernelTableColumn("limited by", bottleneck_cell),
    KernelTableColumn("occupancy", _occupancy_cell),
    KernelTableColumn("limiter", limiter_cell),
    metric_column("DRAM", "bandwidth.dram.share"),
    metric_column("DRAM rate", "bandwidth.dram"),
    metric_column("tensor", "tensor.utilization"),
    metric_column("conflicts", "shared.bank_conflicts"),
    metric_column("warp eff.", "warp.execution_efficiency"),
    metric_column("coalesced", "memory.coalescing"),
)
_ORIGIN = (
    KernelTableColumn("operation", _name_cell("operation")),
    KernelTableColumn("backward of", _name_cell("backward_of")),
    KernelTableColumn("line", _line_cell),
)


# ---------------------------------------------------------------- what was counted, by concern


def _first_with(rows: Sequence[KernelRow], *names: str) -> KernelRow | None:
    """The largest kernel that has the first of these metrics, else the next."""
    return next((row for name in names for row in rows if row.value(name) is not None), None)


def _worst_kernel(rows: Sequence[KernelRow], name: str, *, lowest: bool = False) -> tuple[str, float] | None:
    """Of the kernels that matter (5 % of the time; all where shares are not known) the one furthest off."""
    known = [
        (row.brief, value)
        for row in rows
        if (value := row.value(name)) is not None and (row.share is None or row.share >= _WORTH)
    ]
    return (min if lowest else max)(known, key=lambda pair: pair[1], default=None)


def _kernel_and_share(row: KernelRow) -> str:
    share = f" ({format_percent(100 * row.share)} % of the GPU time)" if row.share is not None else ""
    return row.brief + share


def _occupancy_headline(rows: Sequence[KernelRow], missing: Sequence[Reading]) -> str:
    top = _first_with(rows, "occupancy.achieved")
    if top is None:
        return f"Achieved occupancy is not known: {first_reason(missing)}."
    achieved, most = top.value("occupancy.achieved") or 0.0, top.value("occupancy.theoretical")
    text = f"{_kernel_and_share(top)} keeps {format_percent(achieved)} % of the warps active"
    if most is None:
        return f"{text}."
    why = limiters_clause(occupancy_limiters(top))
    return f"{text}, {format_percent(most)} % are possible{': ' if why else ''}{why}."


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


_LIMITS = "blocks per SM*"
_OCCUPANCY = (
    metric_column("achieved", "occupancy.achieved"),
    metric_column("theoretical", "occupancy.theoretical"),
    KernelTableColumn("limiter", limiter_cell),
    metric_column("cluster", "cluster.occupancy", rare=True),
    metric_column("registers", "launch.registers", bare=True),
    metric_column("shared/block", "launch.shared"),
    KernelTableColumn(
        "grid of block", lambda row: shape(row.scope.id) if row.scope.id else None, alone=False
    ),
    metric_column("waves", "launch.waves", bare=True),
    KernelTableColumn(_LIMITS, _limits_cell, alone=False),
)


def occupancy_text(facts: ConcernFacts) -> SummaryText:
    """Achieved and theoretical occupancy with the limiter, and the launch attributes behind them."""
    note = f"* as many as {', '.join(LIMITS.values())} allow" if any(map(_limits_cell, facts.rows)) else ""
    table = kernel_table("Occupancy and launch", facts.rows, _OCCUPANCY, note)
    return summary_text("occupancy", _occupancy_headline(facts.rows, facts.readings), facts.readings, [table])


_BANDWIDTH = (
    metric_column("DRAM", "bandwidth.dram"),
    metric_column("of peak", "bandwidth.dram.share"),
    metric_column("read", "dram.read"),
    metric_column("written", "dram.written"),
    metric_column("L2", "bandwidth.l2"),
    metric_column("L2 of peak", "bandwidth.l2.share"),
    metric_column("L1", "bandwidth.l1"),
    metric_column("L1 of peak", "bandwidth.l1.share"),
    metric_column("memory units", "memory.throughput"),
    metric_column("NVLink in", "nvlink.received", rare=True),
    metric_column("NVLink out", "nvlink.sent", rare=True),
)


def gpu_bandwidth_text(facts: ConcernFacts) -> SummaryText:
    """DRAM, L2 and L1 traffic against their peaks."""
    top = _first_with(facts.rows, "bandwidth.dram.share", "bandwidth.dram")
    headline = f"DRAM bandwidth is not known: {first_reason(facts.readings)}."
    if top is not None:
        names = ("bandwidth.dram", "bandwidth.dram.share", "bandwidth.dram.peak")
        rate, share, peak = map(top.value, names)
        whole = "the peak"
        if peak is not None:
            whole = f"the {format_quantity(peak, 'B/s')} that the device can do"
        moves = (
            f"moves {format_quantity(rate, 'B/s')} to and from DRAM" if rate is not None else "uses DRAM at"
        )
        part = f", {format_percent(share)} % of {whole}" if share is not None else ""
        headline = f"{_kernel_and_share(top)} {moves}{part}."
    return summary_text(
        "bandwidth", headline, facts.readings, [kernel_table("Bandwidth", facts.rows, _BANDWIDTH)]
    )


_CACHE = (metric_column("L1 misses", "cache.l1.miss_rate"), metric_column("L2 misses", "cache.l2.miss_rate"))
# ncu's --cache-control: what it did to the caches before each replay.
_CACHES = {
    "all": "The caches were flushed before each replay: hit rates are those of a cold cache.",
    "none": "The caches were left as they were: hit rates are those of replays over warm data.",
}


def gpu_cache_text(facts: ConcernFacts) -> SummaryText:
    """What L1 and L2 did not hold, and in which state the caches were."""
    table = kernel_table("Caches: share of the sectors that miss", facts.rows, _CACHE)
    top = _first_with(facts.rows, "cache.l2.miss_rate", "cache.l1.miss_rate")
    headline = "How well the caches serve was not counted."
    if top is not None:
        values = (("L1", top.value("cache.l1.miss_rate")), ("L2", top.value("cache.l2.miss_rate")))
        rates = [f"{format_percent(value)} % miss {name}" for name, value in values if value is not None]
        headline = f"Of the sectors that {_kernel_and_share(top)} asks for, {' and '.join(rates)}."
    state = _CACHES.get(facts.document.facts.get("cache control", ""))
    return summary_text("cache", headline, (), [table], [state] if state and table else ())


def _pair_column(
    title: str, names: tuple[str, str], text: Callable[[float], str], gap: str
) -> KernelTableColumn:
    """Loads and stores in one cell: `12/3.4`."""

    def cell(row: KernelRow) -> str | None:
        pair = [row.value(name) for name in names]
        if pair == [None, None]:
            return None
        return "/".join(text(value) if value is not None else gap for value in pair)

    return KernelTableColumn(title, cell)


_SECTORS = ("memory.sectors_per_request.load", "memory.sectors_per_request.store")
_ACCESS = (
    metric_column("coalesced", "memory.coalescing"),
    _pair_column("sectors/request ld/st", _SECTORS, lambda value: f"{value:.1f}", "-"),
    metric_column("excess sectors", "memory.sectors.excess"),
    metric_column("bank conflicts", "shared.bank_conflicts"),
    metric_column("exact", "shared.bank_conflicts.excess"),
    metric_column("of shared", "shared.bank_conflicts.share"),
    _pair_column(
        "spills ld/st",
        ("memory.spill.loads", "memory.spill.stores"),
        lambda value: format_quantity(value, "count"),
        "?",
    ),
)


def access_text(facts: ConcernFacts) -> SummaryText:
    """Coalescing of global memory, bank conflicts of shared memory, spills."""
    parts = []
    if (poor := _worst_kernel(facts.rows, "memory.coalescing", lowest=True)) is not None:
        parts.append(f"{format_percent(poor[1])} % of the sectors that {poor[0]} moves were asked for")
    if (banked := _worst_kernel(facts.rows, "shared.bank_conflicts")) is not None:
        count = f"{format_quantity(banked[1], 'count')} bank conflicts in {banked[0]}"
        parts.append(count if banked[1] else "no bank conflicts")
    if (spilled := _worst_kernel(facts.rows, "memory.spill.loads")) is not None and spilled[1] > 0:
        parts.append(f"{spilled[0]} spills registers to local memory")
    known = capitalized("; ".join(parts)) + "."
    headline = known if parts else f"How accesses are shaped is not known: {first_reason(facts.readings)}."
    return summary_text(
        "access", headline, facts.readings, [kernel_table("Memory access", facts.rows, _ACCESS)]
    )


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


def execution_text(facts: ConcernFacts) -> SummaryText:
    """Lanes at work, branches, instructions per cycle."""
    top = _first_with(facts.rows, "warp.execution_efficiency")
    headline = f"How many lanes of a warp work is not known: {first_reason(facts.readings)}."
    if top is not None:
        lanes, ipc = format_percent(top.value("warp.execution_efficiency") or 0.0), top.value("ipc")
        rate = f", {format_figures(ipc)} instructions per cycle" if ipc is not None else ""
        headline = f"In {top.brief} {lanes} % of the lanes of an executed instruction work{rate}."
    return summary_text(
        "execution", headline, facts.readings, [kernel_table("Warps and issue", facts.rows, _EXECUTION)]
    )


def _rate_cell(row: KernelRow) -> str | None:
    """All FLOP/s that were counted, CUDA and tensor cores together."""
    rates = [value for value in (row.value("flops.rate"), tensor_rate(row)) if value is not None]
    return format_quantity(sum(rates), "FLOP/s") if rates else None


def _intensity_text(intensity: float | None) -> str | None:
    """Three figures; a kernel that hardly touches DRAM has millions of FLOPs for a byte."""
    if intensity is None:
        return None
    return format_figures(intensity) if intensity < 1e4 else format_quantity(intensity, "count")


def _roofline_column(title: str, text: Callable[[RooflinePlace], str | None]) -> KernelTableColumn:
    def cell(row: KernelRow) -> str | None:
        place = place_kernel(row)
        return text(place) if place is not None else None

    return KernelTableColumn(title, cell)


_ARITHMETIC = (
    KernelTableColumn("FLOP/s", _rate_cell),
    metric_column("FP32", "flops.f32", rare=True),
    metric_column("FP32 of peak", "flops.share.f32", rare=True),
    metric_column("FP64", "flops.f64", rare=True),
    metric_column("FP64 of peak", "flops.share.f64", rare=True),
    metric_column("FP16", "flops.f16", rare=True),
    metric_column("FP16 of peak", "flops.share.f16", rare=True),
    metric_column("tensor", "flops.tensor", rare=True),
    metric_column("tensor pipe", "tensor.utilization"),
    metric_column("FP32 pipe", "pipe.fp32.utilization"),
    metric_column("FP64 pipe", "pipe.fp64.utilization", rare=True),
    metric_column("FP16 pipe", "pipe.fp16.utilization", rare=True),
    metric_column("integer pipe", "pipe.alu.utilization"),
    metric_column("load/store pipe", "pipe.lsu.utilization"),
    metric_column("special", "pipe.xu.utilization", rare=True),
)
_ROOFLINE = (
    _roofline_column("arithmetic", lambda place: place.kind),
    _roofline_column("FLOP/B", lambda place: _intensity_text(place.intensity)),
    _roofline_column("ridge at", lambda place: format_figures(place.ridge)),
    _roofline_column("FLOP/s", lambda place: format_quantity(place.rate, "FLOP/s")),
    _roofline_column("ceiling", lambda p: f"{p.ceiling} {format_quantity(p.attainable, 'FLOP/s')}"),
    _roofline_column("of the ceiling", lambda p: f"{format_percent(100 * p.rate / p.attainable)} %"),
)


def arithmetic_text(facts: ConcernFacts) -> SummaryText:
    """FLOPs and pipes of each kernel, and the roofline as a table."""
    placed = [(row, place) for row in facts.rows if (place := place_kernel(row)) is not None]
    tables = [
        kernel_table("Arithmetic", facts.rows, _ARITHMETIC),
        kernel_table("Roofline", [row for row, _ in placed], _ROOFLINE),
    ]
    hidden = [row.brief for row in facts.rows if has_hidden_tensor_work(row)]
    notes = []
    if hidden:
        where = "are in no counter of this report; those shown are of the CUDA cores"
        notes.append(f"{', '.join(hidden[:3])}: FLOPs of the tensor cores {where}.")
    if any(place.estimated for _, place in placed):
        notes.append(f"{capitalized(TENSOR_PEAK)}.")
    return summary_text("arithmetic", _arithmetic_headline(facts.rows), (), tables, notes)


def _arithmetic_headline(rows: Sequence[KernelRow]) -> str:
    for row in rows:
        tensor, place = row.value("tensor.utilization"), place_kernel(row)
        if tensor is not None and tensor > TENSOR:
            rate = tensor_rate(row)
            does = f"does {format_quantity(rate, 'FLOP/s')} and " if rate is not None else ""
            return f"{row.brief} {does}keeps the tensor cores busy {format_percent(tensor)} % of the time."
        if place is not None:
            over = f" at {_intensity_text(place.intensity)} FLOP/B" if place.intensity is not None else ""
            share = format_percent(100 * place.rate / place.attainable)
            does = f"does {format_quantity(place.rate, 'FLOP/s')} in {place.kind}"
            return f"{row.brief} {does}, {share} % of the {place.ceiling} ceiling{over}."
    if any(row.value("flops") is not None for row in rows):
        return "No floating-point operation was executed."
    if any(row.value("tensor.utilization") is not None for row in rows):
        return "The tensor cores do nothing; other arithmetic was not counted."
    return "No arithmetic was counted."


SHOWN = 3  # stalls in a row: what comes after the third is seldom worth work


def stalls_text(facts: ConcernFacts) -> SummaryText | None:
    """The longest stalls of each kernel, with their share of all that its warps waited."""
    top = next((row for row in facts.rows if longest_stalls(row)), None)
    if top is None:
        return None
    columns = [KernelTableColumn(t, _stall_cell(n)) for n, t in enumerate(("most", "then", "and"))]
    name, value = longest_stalls(top)[0]
    share = format_percent(100 * value / sum(part for _, part in longest_stalls(top)))
    wait = f"wait most for {STALL_MEANINGS.get(name, name)}"
    named = {name for row in facts.rows[:5] for name, _ in longest_stalls(row)[:SHOWN]}
    notes = [f"{word}: {meaning}." for word, meaning in STALL_MEANINGS.items() if word in named]
    headline = f"Warps of {top.brief} {wait}: {share} % of their cycles."
    return summary_text(
        "stalls", headline, (), [kernel_table("What warps wait for", facts.rows, columns)], notes
    )


def _stall_cell(number: int) -> Cell:
    def cell(row: KernelRow) -> str | None:
        stalls = longest_stalls(row)
        if number >= len(stalls):
            return None
        name, value = stalls[number]
        return f"{shorten(name, 20)} {format_percent(100 * value / sum(part for _, part in stalls))} %"

    return cell


# ---------------------------------------------------------------- what is not known, and what measuring cost

# What most kernels and devices do not have, and nobody misses: no word where there is none of it.
_RARE = ("nvlink.", "cluster.", "memory.sectors_per_request.")
NAMED = 12  # metrics named in one line


def unknown_kernels_text(facts: ConcernFacts) -> SummaryText | None:
    """Unavailable readings of kernels grouped by reason, then the doubtful ones; None where there are none."""
    lines = backend_named(facts.document.backend).tool_lines
    counted = [row for row in facts.rows if row.readings]
    collect = "--depth full" if facts.document.plan is not None else lines.count_all
    grouped: dict[tuple[str, str | None], dict[str, list[str]]] = {}
    contradicted: dict[str, list[str]] = {}
    nothing: dict[str, None] = {}
    with_value = {n for row in counted for n, r in row.readings.items() if r.value is not None}
    for row in counted:
        for name, reading in row.readings.items():
            if reading.value is not None:
                if reading.doubt is not None:
                    contradicted.setdefault(f"{metric(name).title}: {reading.doubt}", []).append(row.brief)
            elif reading.code == "nothing-to-measure":
                if name not in with_value and not name.startswith(_RARE):  # else the table shows which has it
                    nothing[f"{metric(name).title} ({reading.reason})"] = None
            else:
                why = reading.reason or "", reading.fix
                if reading.code in ("not-collected", "deeper"):
                    why = "not collected", reading.fix or collect
                grouped.setdefault(why, {}).setdefault(name, []).append(row.brief)
    notes = [_reason_line(*why, metrics, len(counted)) for why, metrics in grouped.items()]
    for text, labels in contradicted.items():
        notes.append(f"Contradicted: {text} (in {_kernels_clause(labels, len(counted))}).")
    if nothing:
        notes.append(f"Nothing to measure: {'; '.join(nothing)}.")
    if not counted and facts.rows and facts.document.plan is None:
        what = "Occupancy, bandwidth, conflicts, coalescing and what limits each kernel"
        notes.append(f"{what}: a trace has times and no counters ({lines.count}).")
    if (
        facts.document.plan is None
        and facts.document.trace is not None
        and lacks_timeline(facts.document.trace)
    ):
        why_not = "the report has single kernels and no timeline"
        notes.append(f"How busy the GPU was: {why_not} (trace it: {lines.trace}).")
    if not notes:
        return None
    names = {name for metrics in grouped.values() for name in metrics}
    counts = [plural(len(names), "metric")] if names else []
    counts += [plural(len(contradicted), "contradicted reading")] if contradicted else []
    headline = f"{' and '.join(counts)} of the kernels." if counts else "What this report cannot tell."
    return summary_text("unknown", capitalized(headline), (), (), notes)


def _reason_line(reason: str, fix: str | None, kernels_by_metric: dict[str, list[str]], counted: int) -> str:
    titles = list(dict.fromkeys(metric(name).title for name in kernels_by_metric))
    more = f" and {len(titles) - NAMED} more" if len(titles) > NAMED else ""
    labels = list(dict.fromkeys(label for kernels in kernels_by_metric.values() for label in kernels))
    where = f" (in {_kernels_clause(labels, counted)})" if len(labels) < counted else ""
    return f"{', '.join(titles[:NAMED])}{more}: {reason}{where}" + (f" ({fix})" if fix else "") + "."


def _kernels_clause(labels: Sequence[str], counted: int) -> str:
    return " and ".join(labels) if len(labels) <= 2 else f"{len(labels)} of {counted} kernels"


ON_DEVICE = ("trace", "counters", "explain")


def cost_text(facts: ConcernFacts) -> SummaryText | None:
    """Replay passes as planned and as they were, and the wall time of what was measured; None for neither."""
    planned, counted = planned_replays(facts.document), measured_replays(facts.document, facts.rows)
    columns = (
        KernelTableColumn("planned", lambda row: str(planned[row.scope]) if row.scope in planned else None),
        KernelTableColumn("replay passes", lambda row: f"{counted[row.scope]:.0f}"),
        metric_column("replayed for", "time.replayed"),
    )
    parts = []
    if counted:
        passes = plural(round(sum(counted.values())), "replay pass", "replay passes")
        parts.append(f"{plural(len(counted), 'launch configuration')} counted in {passes}")
    for result in facts.document.passes:
        if result.name in ON_DEVICE and result.state == "finished":
            runs = f" ({result.cost:.1f} plain runs)" if result.cost is not None else ""
            parts.append(f"{result.name} took {format_quantity(result.seconds, 's')}{runs}")
    table = kernel_table("Replays", [row for row in facts.rows if row.scope in counted], columns)
    return summary_text("cost", f"{capitalized('; '.join(parts))}.", (), [table]) if parts else None
