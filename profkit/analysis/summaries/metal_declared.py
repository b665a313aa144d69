"""What follows from the work that a workload declares: rates of an Apple GPU against what its chip is specified with.

An estimate: declared bytes and FLOP over the union of the process's time on the GPU, where nothing was counted.
"""

from __future__ import annotations

from profkit.analysis.summaries.metal_chip import Specified
from profkit.analysis.summaries.metal_told import COUNTERS, INTERVALS, SAMPLES, missing, told, why_absent
from profkit.analysis.summaries.traced import traced_iterations
from profkit.core.formatting import quantity
from profkit.core.types import MetalTrace, Quality, Reading, RunDocument

TABLES = (COUNTERS, SAMPLES)
NOT_RECORDED = "the recording has no GPU counters"
BEYOND = 105.0  # % of a specification; what is well above it was moved by a cache
FROM_CACHE = "more than the memory can move: the system level cache served a part, and counts as well"
MARK = "mark what counts: with profkit.region(NAME): ..., or profkit.benchmark"
UNSPECIFIED = "the memory bandwidth of this chip is not known"
NARROW = "numbers narrower than float32, or matrix units of a later chip, pass its float32 figure"
UNCHECKED = "the figure of the chip is one report's"


def of_peak(metal: MetalTrace, rate: float, chip: Specified, quality: Quality, remark: str | None) -> Reading:
    """bandwidth.gpu.share: the rate as a share of what the chip is specified with."""
    peak = chip.bandwidth
    if not peak:
        return missing(metal, "bandwidth.gpu.share", chip.reason or UNSPECIFIED, chip.fix)
    value = 100 * rate / peak
    formula = f"100 * bandwidth.gpu / {quantity(peak, 'B/s')} (specification of {chip.name})"
    if not chip.bandwidth_checked:
        quality, remark = "estimated", UNCHECKED
    if value > BEYOND:
        remark = FROM_CACHE
    return told(metal, "bandwidth.gpu.share", value, TABLES, formula, quality=quality, remark=remark)


def estimated_bandwidth(
    document: RunDocument, metal: MetalTrace, chip: Specified, uncounted: str | None
) -> list[Reading]:
    """From the bytes that the workload declares over the union of its time on the GPU; else why there is none.

    `uncounted`: what is wrong with the counters that were recorded.
    """
    rate, why = _declared(document, metal, "bytes")
    formula = "declared bytes * iterations / union of the process on the GPU"
    remark = "declared by the workload, not counted"
    if rate is None:
        reason, fix = why_absent(metal, TABLES, NOT_RECORDED)
        if metal.counters and uncounted is not None:
            reason, fix = uncounted, None
        return [
            missing(metal, name, f"{reason}, and {why}", fix)
            for name in ("bandwidth.gpu", "bandwidth.gpu.share")
        ]
    return [
        told(metal, "bandwidth.gpu", rate, (INTERVALS,), formula, quality="estimated", remark=remark),
        of_peak(metal, rate, chip, "estimated", remark),
    ]


def arithmetic_readings(document: RunDocument, metal: MetalTrace, chip: Specified) -> list[Reading]:
    """flops.gpu.rate, its share of the chip's float32 figure, and the intensity: only where work is declared."""
    rate, why = _declared(document, metal, "flops")
    if rate is None:
        declared = document.timings and document.timings[0].flops
        return (
            [missing(metal, name, why, MARK) for name in ("flops.gpu.rate", "flops.gpu.share")]
            if declared
            else []
        )
    formula = "declared FLOP * iterations / union of the process on the GPU"
    remark = "declared by the workload, not counted"
    found = [told(metal, "flops.gpu.rate", rate, (INTERVALS,), formula, quality="estimated", remark=remark)]
    if not chip.flops:
        why = chip.reason or "the float32 rate of this chip is not known"
        found.append(missing(metal, "flops.gpu.share", why, chip.fix))
    else:
        of = (
            f"100 * flops.gpu.rate / {quantity(chip.flops, 'FLOP/s')} (specification of {chip.name}, float32)"
        )
        part = 100 * rate / chip.flops
        if part > BEYOND:
            remark = NARROW
        found.append(
            told(metal, "flops.gpu.share", part, (INTERVALS,), of, quality="estimated", remark=remark)
        )
    timing = document.timings[0]
    if timing.flops and timing.bytes:
        found.append(
            told(
                metal,
                "arithmetic_intensity",
                timing.flops / timing.bytes,
                (),
                "declared FLOP / declared bytes",
                quality="estimated",
                remark=remark,
            )
        )
    return found


def _declared(document: RunDocument, metal: MetalTrace, what: str) -> tuple[float | None, str]:
    """FLOP or bytes per second of the process's time on the GPU by what the workload declares; else why not."""
    timing = document.timings[0] if document.timings else None
    amount = None if timing is None else timing.flops if what == "flops" else timing.bytes
    words = "the workload declares no " + ("FLOP" if what == "flops" else "bytes")
    if not amount:
        return None, words
    if not metal.process_busy:
        return None, "the time of the process on the GPU is not known"
    if not metal.marked:
        return None, "without a marked region nobody knows how many iterations were traced"
    return amount * iterations(document, metal) / metal.process_busy, ""


def iterations(document: RunDocument, metal: MetalTrace) -> int:
    """How often the work of the timing was traced: as the plan told a benchmark, else the entries of the region."""
    return max(traced_iterations(document), metal.entries, 1)
