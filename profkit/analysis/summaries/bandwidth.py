"""Bandwidth: how much goes to memory and back, against what this machine was measured to move."""

from __future__ import annotations

from collections.abc import Sequence

from profkit.analysis.summaries.pick import derived
from profkit.analysis.summaries.tables import metric_table, remarks
from profkit.analysis.summaries.work import BEYOND, BEYOND_WHOLE, Roofs, Work, doubted, traffic_doubts
from profkit.core.formatting import percent, quantity
from profkit.core.types import Reading, Summary


def bandwidth_readings(work: Work, limit: Roofs) -> tuple[Reading, ...]:
    """bandwidth.dram, its share of the peak, and what the declared bytes make of it."""
    scope = work.scope
    dram = derived(
        "bandwidth.dram",
        (work.dram, work.seconds),
        lambda b, s: b / s,
        "dram.bytes per iteration / time.median",
        scope,
    )
    share = derived(
        "bandwidth.dram.share",
        (dram, limit.bandwidth),
        lambda rate, peak: 100 * rate / peak,
        f"100 * bandwidth.dram / measured peak ({limit.threads} threads)",
        scope,
    )
    found = [dram, doubted(share, *traffic_doubts(work.dram))]
    if work.declared_bytes is not None:
        found.append(
            derived(
                "bandwidth.declared",
                (work.seconds,),
                lambda s: (work.declared_bytes or 0.0) / s,
                "bytes that the workload declares / time.median",
                scope,
            )
        )
    return tuple(found)


def summarize_bandwidth(readings: Sequence[Reading], limit: Roofs, dram: Reading) -> Summary:
    """How much goes to memory and back, against what this machine was measured to move."""
    told = {r.metric: r for r in readings}
    rate, share = told["bandwidth.dram"], told["bandwidth.dram.share"]
    rows = [dram, *readings] if dram.metric not in told else list(readings)
    if rate.value is None and dram.value is not None:
        headline = (
            f"{quantity(dram.value, 'B')} to and from memory ({dram.quality}); in which time is not known."
        )
    elif rate.value is None:
        headline = f"Traffic to memory is not known: {rate.reason}."
    elif share.value is None:
        headline = (
            f"{quantity(rate.value, 'B/s')} to and from memory ({rate.quality}); the peak is not known."
        )
    elif share.value > BEYOND:
        headline = (
            f"{quantity(rate.value, 'B/s')} to and from memory ({rate.quality}) would be {percent(share.value)} %"
            f" of the {quantity(limit.bandwidth.value, 'B/s')} that this machine was measured to reach:"
            f" {share.reason or BEYOND_WHOLE}."
        )
    else:
        headline = (
            f"{quantity(rate.value, 'B/s')} to and from memory, {percent(share.value)} % of the"
            f" {quantity(limit.bandwidth.value, 'B/s')} that this machine reaches ({rate.quality})."
        )
    table = metric_table("Memory traffic", rows)
    notes = (f"Held against the measured peak of {limit.why}.",) if limit.bandwidth.value is not None else ()
    return Summary(
        "bandwidth", headline, tuple(readings), (table,) if table else (), (*notes, *remarks(rows))
    )
