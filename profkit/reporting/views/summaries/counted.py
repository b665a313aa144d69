"""What was counted of kernels, in words: occupancy, bandwidth, caches, access, warps, arithmetic, waiting."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from profkit.analysis.kernel_names import shape
from profkit.analysis.summaries.kernels import (
    LIMITS,
    STALL_MEANINGS,
    KernelRow,
    longest_stalls,
    occupancy_limiters,
)
from profkit.analysis.summaries.roofline_points import (
    TENSOR,
    TENSOR_PEAK,
    RooflinePlace,
    has_hidden_tensor_work,
    place_kernel,
    tensor_rate,
)
from profkit.core.formatting import format_figures, format_percent, format_quantity, shorten
from profkit.core.types import Reading
from profkit.reporting.views.summaries.kernels import limiter_cell
from profkit.reporting.views.summaries.parts import (
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

_WORTH = 0.05  # of the GPU time


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
