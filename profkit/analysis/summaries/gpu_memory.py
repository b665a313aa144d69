"""Copies; memory and arithmetic of each kernel: bandwidth, cache hits, access patterns, FLOPs, pipes, roofline."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from profkit.analysis.summaries.kernels import KernelRow, KernelTableColumn, kernel_table, metric_column
from profkit.analysis.summaries.readings import first_reason, make_summary
from profkit.analysis.summaries.roofline_points import (
    TENSOR,
    TENSOR_PEAK,
    RooflinePlace,
    has_hidden_tensor_work,
    place_kernel,
    tensor_rate,
)
from profkit.core.formatting import format_figures, format_percent, format_quantity
from profkit.core.types import GpuTrace, Reading, Summary, Table, Transfer

# ncu's --cache-control: what it did to the caches before each replay.
_CACHES = {
    "all": "The caches were flushed before each replay: hit rates are those of a cold cache.",
    "none": "The caches were left as they were: hit rates are those of replays over warm data.",
}


def summarize_gpu_bandwidth(rows: Sequence[KernelRow], missing: Sequence[Reading] = ()) -> Summary:
    """DRAM, L2 and L1 traffic against their peaks."""
    table = kernel_table("Bandwidth", rows, _BANDWIDTH)
    top = _first_with(rows, "bandwidth.dram.share") or _first_with(rows, "bandwidth.dram")
    if top is None:
        headline = f"DRAM bandwidth is not known: {first_reason(missing)}."
    else:
        rate, share, peak = (
            top.value(name) for name in ("bandwidth.dram", "bandwidth.dram.share", "bandwidth.dram.peak")
        )
        whole = (
            f" of the {format_quantity(peak, 'B/s')} that the device can do"
            if peak is not None
            else " of the peak"
        )
        parts = [
            f"moves {format_quantity(rate, 'B/s')} to and from DRAM" if rate is not None else "uses DRAM at",
            f"{format_percent(share)} %{whole}" if share is not None else "",
        ]
        headline = f"{_kernel_and_share(top)} {', '.join(part for part in parts if part)}."
    return make_summary("bandwidth", headline, missing, [table])


def summarize_gpu_cache(rows: Sequence[KernelRow], facts: Mapping[str, str]) -> Summary:
    """What L1 and L2 did not hold, and in which state the caches were."""
    table = kernel_table("Caches: share of the sectors that miss", rows, _CACHE)
    top = _first_with(rows, "cache.l2.miss_rate") or _first_with(rows, "cache.l1.miss_rate")
    if top is None:
        headline = "How well the caches serve was not counted."
    else:
        rates = [
            f"{format_percent(value)} % miss {name}"
            for name, metric in (("L1", "cache.l1.miss_rate"), ("L2", "cache.l2.miss_rate"))
            if (value := top.value(metric)) is not None
        ]
        headline = f"Of the sectors that {_kernel_and_share(top)} asks for, {' and '.join(rates)}."
    state = _CACHES.get(facts.get("cache control", ""))
    return make_summary("cache", headline, (), [table], [state] if state and table else ())


def summarize_access(rows: Sequence[KernelRow], missing: Sequence[Reading] = ()) -> Summary:
    """Coalescing of global memory, bank conflicts of shared memory, spills."""
    table = kernel_table("Memory access", rows, _ACCESS)
    sentences = []
    poor = _worst_kernel(rows, "memory.coalescing", lowest=True)
    if poor is not None:
        sentences.append(
            f"{format_percent(poor.value('memory.coalescing') or 0.0)} % of the sectors that {poor.brief} moves "
            f"were asked"
            " for"
        )
    banked = _worst_kernel(rows, "shared.bank_conflicts")
    if banked is not None:
        count = banked.value("shared.bank_conflicts") or 0.0
        sentences.append(
            f"{format_quantity(count, 'count')} bank conflicts in {banked.brief}"
            if count
            else "no bank conflicts"
        )
    spilled = _worst_kernel(rows, "memory.spill.loads")
    if spilled is not None and (spilled.value("memory.spill.loads") or 0.0) > 0:
        sentences.append(f"{spilled.brief} spills registers to local memory")
    text = "; ".join(sentences)
    headline = (
        f"{text[0].upper()}{text[1:]}."
        if text
        else f"How accesses are shaped is not known: {first_reason(missing)}."
    )
    return make_summary("access", headline, missing, [table])


def _first_with(rows: Sequence[KernelRow], metric: str) -> KernelRow | None:
    return next((row for row in rows if row.value(metric) is not None), None)


def _worst_kernel(rows: Sequence[KernelRow], metric: str, *, lowest: bool = False) -> KernelRow | None:
    """Of the kernels that matter (5 % of the time; all where shares are not known) the one furthest off."""
    known = [
        row for row in rows if row.value(metric) is not None and (row.share is None or row.share >= 0.05)
    ]
    if not known:
        return None
    return (min if lowest else max)(known, key=lambda row: row.value(metric) or 0.0)


def _kernel_and_share(row: KernelRow) -> str:
    return (
        f"{row.brief} ({format_percent(100 * row.share)} % of the GPU time)"
        if row.share is not None
        else row.brief
    )


def _spills_column(loads: str, stores: str) -> KernelTableColumn:
    def cell(row: KernelRow) -> str | None:
        pair = [row.value(loads), row.value(stores)]
        if pair == [None, None]:
            return None
        return "/".join(format_quantity(value, "count") if value is not None else "?" for value in pair)

    return KernelTableColumn("spills ld/st", cell)


def _sectors_cell(row: KernelRow) -> str | None:
    pair = [row.value("memory.sectors_per_request.load"), row.value("memory.sectors_per_request.store")]
    if pair == [None, None]:
        return None
    return "/".join(f"{value:.1f}" if value is not None else "-" for value in pair)


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
_CACHE = (metric_column("L1 misses", "cache.l1.miss_rate"), metric_column("L2 misses", "cache.l2.miss_rate"))
_ACCESS = (
    metric_column("coalesced", "memory.coalescing"),
    KernelTableColumn("sectors/request ld/st", _sectors_cell),
    metric_column("excess sectors", "memory.sectors.excess"),
    metric_column("bank conflicts", "shared.bank_conflicts"),
    metric_column("exact", "shared.bank_conflicts.excess"),
    metric_column("of shared", "shared.bank_conflicts.share"),
    _spills_column("memory.spill.loads", "memory.spill.stores"),
)


def summarize_arithmetic(rows: Sequence[KernelRow]) -> Summary:
    """FLOPs and pipes of each kernel, and the roofline as a table."""
    tables = [
        kernel_table("Arithmetic", rows, _ARITHMETIC),
        kernel_table("Roofline", _rows_with_place(rows), _ROOFLINE),
    ]
    hidden = [row.brief for row in rows if has_hidden_tensor_work(row)]
    notes = []
    if hidden:
        notes.append(
            f"{', '.join(hidden[:3])}: FLOPs of the tensor cores are in no counter of this report; those shown are of"
            " the CUDA cores."
        )
    if any((place := place_kernel(row)) is not None and place.estimated for row in rows):
        notes.append(f"{TENSOR_PEAK[0].upper()}{TENSOR_PEAK[1:]}.")
    return make_summary("arithmetic", _arithmetic_headline(rows), (), tables, notes)


def _rows_with_place(rows: Sequence[KernelRow]) -> list[KernelRow]:
    return [row for row in rows if place_kernel(row) is not None]


def _arithmetic_headline(rows: Sequence[KernelRow]) -> str:
    for row in rows:
        tensor, place = row.value("tensor.utilization"), place_kernel(row)
        if tensor is not None and tensor > TENSOR:
            rate = tensor_rate(row)
            does = f"does {format_quantity(rate, 'FLOP/s')} and " if rate is not None else ""
            return f"{row.brief} {does}keeps the tensor cores busy {format_percent(tensor)} % of the time."
        if place is not None:
            over = f" at {_intensity_text(place.intensity)} FLOP/B" if place.intensity is not None else ""
            speed, share = (
                format_quantity(place.rate, "FLOP/s"),
                format_percent(100 * place.rate / place.attainable),
            )
            return (
                f"{row.brief} does {speed} in {place.kind}, {share} % of the {place.ceiling} ceiling{over}."
            )
    if any(row.value("flops") is not None for row in rows):
        return "No floating-point operation was executed."
    if any(row.value("tensor.utilization") is not None for row in rows):
        return "The tensor cores do nothing; other arithmetic was not counted."
    return "No arithmetic was counted."


def _rate_cell(row: KernelRow) -> str | None:
    """All FLOP/s that were counted, CUDA and tensor cores together."""
    rates = [value for value in (row.value("flops.rate"), tensor_rate(row)) if value is not None]
    return format_quantity(sum(rates), "FLOP/s") if rates else None


def _intensity_text(intensity: float) -> str:
    """Three figures; a kernel that hardly touches DRAM has millions of FLOPs for a byte."""
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
    _roofline_column("FLOP/B", lambda p: _intensity_text(p.intensity) if p.intensity is not None else None),
    _roofline_column("ridge at", lambda place: format_figures(place.ridge)),
    _roofline_column("FLOP/s", lambda place: format_quantity(place.rate, "FLOP/s")),
    _roofline_column(
        "ceiling", lambda place: f"{place.ceiling} {format_quantity(place.attainable, 'FLOP/s')}"
    ),
    _roofline_column(
        "of the ceiling", lambda place: f"{format_percent(100 * place.rate / place.attainable)} %"
    ),
)


def copies_table(trace: GpuTrace) -> Table:
    """Copies and memsets by kind, most time first."""
    rows: list[tuple[str, ...]] = [
        (
            copies.kind,
            str(copies.count),
            format_quantity(float(copies.bytes), "B")
            if copies.bytes > 0
            else "-",  # AMD's traces do not tell it
            format_quantity(copies.seconds, "s"),
            format_quantity(copies.bytes / copies.seconds, "B/s")
            if copies.seconds > 0 and copies.bytes > 0
            else "-",
            _memory_text(copies),
        )
        for copies in sorted(trace.transfers, key=lambda copies: -copies.seconds)
    ]
    titles = ("kind", "count", "bytes", "time", "rate", "host memory")
    has_memory = any(transfer.memory for transfer in trace.transfers)
    shown = len(titles) if has_memory else len(titles) - 1
    return Table("Copies", titles[:shown], tuple(row[:shown] for row in rows), main=True)


def _memory_text(transfer: Transfer) -> str:
    """`pinned`, or `pageable 90 %, pinned 10 %` of the time."""
    if len(transfer.memory) == 1 and transfer.memory[0].count == transfer.count:
        return transfer.memory[0].kind
    total = sum(memory.seconds for memory in transfer.memory) or 1.0
    parts = (f"{memory.kind} {format_percent(100 * memory.seconds / total)} %" for memory in transfer.memory)
    return ", ".join(parts) or "-"
