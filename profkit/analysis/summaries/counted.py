"""What counters alone answer: caches, branches, and how the core was kept busy."""

from __future__ import annotations

from collections.abc import Sequence

from profkit.analysis.metrics import metric
from profkit.analysis.summaries.tables import metric_table, remarks
from profkit.core.formatting import percent, quantity
from profkit.core.types import Reading, Summary

CACHE = (
    "cache.l1.miss_rate",
    "cache.l2.miss_rate",
    "cache.l3.miss_rate",
    "cache.last.miss_rate",
    "cache.l1i.miss_rate",
    "cache.l1i.mpki",
)
BRANCHES = ("branch.count", "branch.miss_rate")
INSTRUCTIONS = (
    "instructions",
    "cycles",
    "ipc",
    "frequency",
    "simd.utilization",
    "stalls.frontend",
    "stalls.backend",
    "tlb.data.miss_rate",
)
# Why simulated rates are not those of the chip (valgrind's cache model).
SIMULATED = (
    "Simulated: no prefetcher, least-recently-used replacement, one core alone. Compare simulated values only"
    " with simulated ones; a chip with prefetchers misses less."
)


def summarize_cache(readings: Sequence[Reading]) -> Summary:
    """Miss rates level by level; `readings` are the cache.* metrics of one scope."""
    told = _known(readings)
    levels = [
        (name, told[f"cache.{key}.miss_rate"]) for key, name in _LEVELS if f"cache.{key}.miss_rate" in told
    ]
    if not levels:
        return _nothing("cache", "How well the caches serve is not known", readings)
    words = [f"{percent(value)} % miss {name}" for name, value in levels]
    headline = f"Of the accesses that reach each level, {_listed(words)}{_kind(readings)}."
    notes = (SIMULATED,) if any(r.quality == "simulated" for r in readings) else ()
    return _summary(
        "cache", headline, readings, "Caches: share of the accesses to each level that miss", notes
    )


_LEVELS = (("l1", "L1"), ("l2", "L2"), ("l3", "L3"), ("last", "the last level"))


def summarize_branches(readings: Sequence[Reading]) -> Summary:
    """How often a branch was predicted wrongly; `readings` are the branch.* metrics of one scope."""
    told = _known(readings)
    if "branch.miss_rate" not in told:
        return _nothing("branches", "How well branches are predicted is not known", readings)
    of = f" of {quantity(told['branch.count'])}" if "branch.count" in told else ""
    headline = f"{percent(told['branch.miss_rate'])} %{of} branches are mispredicted{_kind(readings)}."
    return _summary("branches", headline, readings, "Branches", ())


def summarize_instructions(readings: Sequence[Reading]) -> Summary:
    """Instructions, cycles, IPC and SIMD share of one scope."""
    told = _known(readings)
    if not told:
        return _nothing("instructions", "How the core is used is not known", readings)
    parts: list[str] = []
    if "ipc" in told:
        parts.append(f"{told['ipc']:.2f} instructions per cycle")
    elif "instructions" in told:
        parts.append(f"{quantity(told['instructions'])} instructions")
    if "simd.utilization" in told:
        parts.append(f"{percent(told['simd.utilization'])} % of the floating-point arithmetic is SIMD")
    if not parts:
        parts = [
            f"{metric(name).title.lower()} {quantity(v, metric(name).unit)}" for name, v in told.items()
        ][:2]
    headline = f"{'; '.join(parts)}{_kind(readings)}."
    return _summary("instructions", headline, readings, "Instructions", ())


def _known(readings: Sequence[Reading]) -> dict[str, float]:
    return {r.metric: r.value for r in readings if r.value is not None}


def _kind(readings: Sequence[Reading]) -> str:
    """` (simulated)` where that holds for everything there is."""
    kinds = {r.quality for r in readings if r.value is not None}
    return f" ({next(iter(kinds))})" if len(kinds) == 1 and "measured" not in kinds else ""


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _nothing(concern: str, what: str, readings: Sequence[Reading]) -> Summary:
    reason = next((r.reason for r in readings if r.reason), "no counter was collected")
    return Summary(concern, f"{what}: {reason}.", tuple(readings), (), remarks(readings))


def _remark(reading: Reading) -> str | None:
    """What is to be said of a value; that it was multiplexed, and how much, stands in the table."""
    parts = [part for part in (reading.reason or "").split("; ") if not part.startswith("multiplexed")]
    return "; ".join(parts) or None


def _summary(
    concern: str, headline: str, readings: Sequence[Reading], title: str, notes: tuple[str, ...]
) -> Summary:
    table = metric_table(title, readings)
    told = tuple(
        f"{metric(r.metric).title}: {remark}."
        for r in readings
        if r.value is not None and (remark := _remark(r)) is not None
    )
    return Summary(
        concern,
        headline,
        tuple(readings),
        (table,) if table else (),
        (*notes, *told, *remarks(readings)),
    )
