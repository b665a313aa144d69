"""What limits an Apple GPU: occupancy, bandwidth against the chip's specification, arithmetic, and all counters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from profkit.analysis.summaries.metal_chip import Specified
from profkit.analysis.summaries.metal_counted import DILUTED as MEAN_OF_ALL
from profkit.analysis.summaries.metal_counted import OF_PEAK, known_counters
from profkit.analysis.summaries.metal_declared import BEYOND, FROM_CACHE, UNCHECKED
from profkit.analysis.summaries.metal_told import doubts
from profkit.analysis.summaries.tables import metric_table, remarks
from profkit.core.formatting import figures, percent, quantity, shortened
from profkit.core.types import MetalTrace, Reading, Summary, Table

OCCUPANCY = ("gpu.occupancy", "gpu.occupancy.total", "gpu.occupancy.target", "gpu.limiter", "gpu.alu")
BANDWIDTH = ("bandwidth.gpu", "bandwidth.gpu.share", "bandwidth.gpu.read", "bandwidth.gpu.write")
ARITHMETIC = ("flops.gpu.rate", "flops.gpu.share", "arithmetic_intensity")
WHOLE_DEVICE = (
    "Counters speak of the whole device: what other programs did on the GPU at that time is in them."
)
SLC = (
    "GPU bandwidth may be served by the system level cache: near 100 % is not certain to be memory, and the processor"
    " shares the same memory."
)
DECLARED = (
    "Estimated: what the workload declares over the time that the process had work on the GPU. It is as true as what is"
    " declared, and knows nothing of caches."
)
DILUTED = (
    "Estimated: the recording of the counters does not tell when the process worked, so their means are taken as if all"
    " of it fell into the time in which the GPU was active."
)
PERCENTAGES = (
    "Estimated: the counters tell per cent, and not of what; they are taken to be of the bandwidth that the chip is"
    " specified with, read and write alike."
)
COUNTERS = 40  # in the table: an M1 has 32, later chips 86 and more


def summarize_metal_occupancy(metal: MetalTrace, readings: Sequence[Reading]) -> Summary:
    """How full the GPU was, what its own manager allowed, and how near its busiest unit was to its limit."""
    told = {r.metric: r for r in readings if r.metric in OCCUPANCY}
    compute, whole = told["gpu.occupancy"], told["gpu.occupancy.total"]
    shown = compute if compute.value is not None else whole
    if shown.value is None:
        headline = f"Threadgroup occupancy is not known: {shown.reason}."
    else:
        what = "compute work" if shown is compute else "work"
        headline = f"{percent(shown.value)} % of the SIMD groups that the GPU can hold were there with {what}"
        limit = told["gpu.limiter"].value
        headline += f"; its top limiter is at {percent(limit)} %." if limit is not None else "."
    table = metric_table("Occupancy and limits, while the process had work on the GPU", list(told.values()))
    tables = [found for found in (table, _counters(metal)) if found is not None]
    notes = [WHOLE_DEVICE] if metal.counters else []
    if any(r.quality == "estimated" for r in told.values()):
        notes.append(DILUTED)
    notes += doubts(told.values())
    rest = [r for r in told.values() if r.value is None] if shown.value is None else []
    return Summary("occupancy", headline, tuple(told.values()), tuple(tables), (*notes, *remarks(rest)))


def _counters(metal: MetalTrace) -> Table | None:
    known = known_counters(metal)
    if not known:
        return None
    rows = tuple(
        (
            shortened(one.name, 32),
            _number(one.active, one.unit),
            _number(one.mean, one.unit),
            _number(one.most, one.unit),
            str(one.samples),
        )
        for one in known[:COUNTERS]
    )
    rest = len(known) - COUNTERS
    covered = [one.covered for one in known if one.covered is not None]
    notes = [f"and {rest} further counters in run.json"] if rest > 0 else []
    if covered:
        least, most = percent(100 * min(covered)), percent(100 * max(covered))
        notes.append(f"samples cover {least if least == most else f'{least} to {most}'} % of the time")
    title = "All counters, of the whole device"
    return Table(title, ("counter", "at work", "mean", "most", "samples"), rows, "; ".join(notes) or None)


def _number(value: float | None, unit: str) -> str:
    return "-" if value is None else quantity(value, unit) if unit else figures(value)


def summarize_metal_bandwidth(chip: Specified, readings: Sequence[Reading]) -> Summary:
    """What the GPU moved against what the chip is specified with, and the arithmetic that the workload declares."""
    told = {r.metric: r for r in readings if r.metric in (*BANDWIDTH, *ARITHMETIC)}
    rate, part = told["bandwidth.gpu"], told["bandwidth.gpu.share"]
    shown = [r for r in told.values() if r.value is not None]
    table = metric_table("GPU bandwidth and arithmetic", shown, _specification(chip))
    notes = [SLC] if part.value is not None else []
    if any(r.quality == "estimated" and "declared" in (r.reason or "") for r in shown):
        notes.append(DECLARED)
    elif any(r.quality == "estimated" for r in (rate, part)):
        notes += _estimated(told.values(), chip)
    notes += doubts(told.values())
    missing = [r for r in (rate, part) if r.value is None]
    return Summary(
        "bandwidth",
        _headline(rate, part, chip),
        tuple(told.values()),
        (table,) if table is not None else (),
        (*notes, *remarks(missing)),
    )


def _estimated(readings: Iterable[Reading], chip: Specified) -> list[str]:
    """Why a bandwidth out of counters is an estimate."""
    formulas = " ".join(r.source.formula or "" for r in readings if r.value is not None)
    notes = [DILUTED] if MEAN_OF_ALL in formulas else []
    if OF_PEAK in formulas:
        notes.append(PERCENTAGES)
    if not chip.bandwidth_checked:
        notes.append(f"Estimated: {UNCHECKED}.")
    return notes


def _headline(rate: Reading, part: Reading, chip: Specified) -> str:
    if rate.value is None and part.value is None:
        return f"What the GPU moves is not known: {rate.reason}."
    how = "" if rate.quality == "measured" else " (estimated)"
    peak = quantity(chip.bandwidth, "B/s")
    if part.value is None:
        return f"The GPU moves {quantity(rate.value, 'B/s')}{how}; {part.reason}."
    if rate.value is None:
        return f"The GPU moves {percent(part.value)} % of what it can (estimated); {rate.reason}."
    more = f": {FROM_CACHE}" if part.value > BEYOND else ""
    return (
        f"The GPU moves {quantity(rate.value, 'B/s')}{how}, {percent(part.value)} % of the {peak} that the chip is"
        f" specified with{more}."
    )


def _specification(chip: Specified) -> str | None:
    if chip.bandwidth is None:
        return None
    arithmetic = f", {quantity(chip.flops, 'FLOP/s')} in float32" if chip.flops else ""
    sure = "" if chip.bandwidth_checked and (chip.flops_checked or not chip.flops) else " (of one report)"
    return f"specification of {chip.name}: {quantity(chip.bandwidth, 'B/s')}{arithmetic}{sure}"
