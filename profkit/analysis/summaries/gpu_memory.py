"""Memory of a GPU, kernel by kernel: bandwidth of each level, cache hits, and how well accesses are shaped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from profkit.analysis.summaries.kernel_table import Column, kernel_table, of
from profkit.analysis.summaries.kernels import KernelRow
from profkit.core.formatting import percent, quantity
from profkit.core.types import Reading, Summary, Table

# ncu's --cache-control: what it did to the caches before each replay.
_CACHES = {
    "all": "The caches were flushed before each replay: hit rates are those of a cold cache.",
    "none": "The caches were left as they were: hit rates are those of replays over warm data.",
}


def summarize_gpu_bandwidth(rows: Sequence[KernelRow], missing: Sequence[Reading] = ()) -> Summary:
    """DRAM, L2 and L1 traffic against their peaks."""
    table = kernel_table("Bandwidth", rows, _BANDWIDTH)
    top = _first(rows, "bandwidth.dram.share") or _first(rows, "bandwidth.dram")
    if top is None:
        headline = f"DRAM bandwidth is not known: {_reason(missing)}."
    else:
        rate, share, peak = (
            top.value(name) for name in ("bandwidth.dram", "bandwidth.dram.share", "bandwidth.dram.peak")
        )
        whole = (
            f" of the {quantity(peak, 'B/s')} that the device can do" if peak is not None else " of the peak"
        )
        parts = [
            f"moves {quantity(rate, 'B/s')} to and from DRAM" if rate is not None else "uses DRAM at",
            f"{percent(share)} %{whole}" if share is not None else "",
        ]
        headline = f"{_named(top)} {', '.join(part for part in parts if part)}."
    return _summary("bandwidth", headline, missing, table)


def summarize_gpu_cache(rows: Sequence[KernelRow], facts: Mapping[str, str]) -> Summary:
    """What L1 and L2 did not hold, and in which state the caches were."""
    table = kernel_table("Caches: share of the sectors that miss", rows, _CACHE)
    top = _first(rows, "cache.l2.miss_rate") or _first(rows, "cache.l1.miss_rate")
    if top is None:
        headline = "How well the caches serve was not counted."
    else:
        told = [
            f"{percent(value)} % miss {name}"
            for name, metric in (("L1", "cache.l1.miss_rate"), ("L2", "cache.l2.miss_rate"))
            if (value := top.value(metric)) is not None
        ]
        headline = f"Of the sectors that {_named(top)} asks for, {' and '.join(told)}."
    state = _CACHES.get(facts.get("cache control", ""))
    return _summary("cache", headline, (), table, (state,) if state and table else ())


def summarize_access(rows: Sequence[KernelRow], missing: Sequence[Reading] = ()) -> Summary:
    """Coalescing of global memory, bank conflicts of shared memory, spills."""
    table = kernel_table("Memory access", rows, _ACCESS)
    told = []
    poor = _worst(rows, "memory.coalescing", lowest=True)
    if poor is not None:
        told.append(
            f"{percent(poor.value('memory.coalescing') or 0.0)} % of the sectors that {poor.brief} moves were asked"
            " for"
        )
    banked = _worst(rows, "shared.bank_conflicts")
    if banked is not None:
        count = banked.value("shared.bank_conflicts") or 0.0
        told.append(
            f"{quantity(count, 'count')} bank conflicts in {banked.brief}" if count else "no bank conflicts"
        )
    spilled = _worst(rows, "memory.spill.loads")
    if spilled is not None and (spilled.value("memory.spill.loads") or 0.0) > 0:
        told.append(f"{spilled.brief} spills registers to local memory")
    text = "; ".join(told)
    headline = (
        f"{text[0].upper()}{text[1:]}."
        if text
        else f"How accesses are shaped is not known: {_reason(missing)}."
    )
    return _summary("access", headline, missing, table)


def _summary(
    concern: str, headline: str, missing: Sequence[Reading], table: Table | None, notes: Sequence[str] = ()
) -> Summary:
    return Summary(concern, headline, tuple(missing), (table,) if table is not None else (), tuple(notes))


def _first(rows: Sequence[KernelRow], metric: str) -> KernelRow | None:
    return next((row for row in rows if row.value(metric) is not None), None)


def _worst(rows: Sequence[KernelRow], metric: str, *, lowest: bool = False) -> KernelRow | None:
    """Of the kernels that matter (5 % of the time; all where shares are not known) the one furthest off."""
    known = [
        row for row in rows if row.value(metric) is not None and (row.share is None or row.share >= 0.05)
    ]
    if not known:
        return None
    return (min if lowest else max)(known, key=lambda row: row.value(metric) or 0.0)


def _named(row: KernelRow) -> str:
    return (
        f"{row.brief} ({percent(100 * row.share)} % of the GPU time)" if row.share is not None else row.brief
    )


def _reason(missing: Sequence[Reading]) -> str:
    return next((r.reason for r in missing if r.reason), "no counter tells it")


def _both(loads: str, stores: str) -> Column:
    def cell(row: KernelRow) -> str | None:
        pair = [row.value(loads), row.value(stores)]
        if pair == [None, None]:
            return None
        return "/".join(quantity(value, "count") if value is not None else "?" for value in pair)

    return Column("spills ld/st", cell)


def _sectors(row: KernelRow) -> str | None:
    pair = [row.value("memory.sectors_per_request.load"), row.value("memory.sectors_per_request.store")]
    if pair == [None, None]:
        return None
    return "/".join(f"{value:.1f}" if value is not None else "-" for value in pair)


_BANDWIDTH = (
    of("DRAM", "bandwidth.dram"),
    of("of peak", "bandwidth.dram.share"),
    of("read", "dram.read"),
    of("written", "dram.written"),
    of("L2", "bandwidth.l2"),
    of("L2 of peak", "bandwidth.l2.share"),
    of("L1", "bandwidth.l1"),
    of("L1 of peak", "bandwidth.l1.share"),
    of("memory units", "memory.throughput"),
    of("NVLink in", "nvlink.received", rare=True),
    of("NVLink out", "nvlink.sent", rare=True),
)
_CACHE = (of("L1 misses", "cache.l1.miss_rate"), of("L2 misses", "cache.l2.miss_rate"))
_ACCESS = (
    of("coalesced", "memory.coalescing"),
    Column("sectors/request ld/st", _sectors),
    of("excess sectors", "memory.sectors.excess"),
    of("bank conflicts", "shared.bank_conflicts"),
    of("exact", "shared.bank_conflicts.excess"),
    of("of shared", "shared.bank_conflicts.share"),
    _both("memory.spill.loads", "memory.spill.stores"),
)
