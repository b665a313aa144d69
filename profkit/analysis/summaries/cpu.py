"""What is asked of a processor's counters, and the functions that are worth a verdict."""

from __future__ import annotations

from collections.abc import Sequence

from profkit.analysis.metrics import derive, formula_table
from profkit.core.types import Counter, Hotspot, Profile, Reading, Scope

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
HOTTEST = 5  # functions that are judged: each of their verdicts is something to work on
WORTH = 0.05  # share of the whole below which a function's verdict would not pay the work
SAMPLED = ("functions", "python-functions", "libraries", "threads")


def counted_profile(profiles: Sequence[Profile]) -> Profile | None:
    """The profile whose functions carry instruction counts, or None."""
    for profile in profiles:
        if any("Ir" in spot.counters for spot in profile.hotspots):
            return profile
    return None


def hottest_functions(profile: Profile) -> tuple[Hotspot, ...]:
    """The functions that are worth a verdict: at most five, each at least 5 % of the whole."""
    ordered = sorted(profile.hotspots, key=lambda spot: -spot.own)
    return tuple(s for s in ordered[:HOTTEST] if profile.total > 0 and s.own >= WORTH * profile.total)


def function_scope(spot: Hotspot) -> Scope:
    """The scope of a function's readings: its name, and its library (else its file) as id."""
    return Scope("function", spot.function, spot.library or spot.file)


def function_readings(profiles: Sequence[Profile], tool: str) -> tuple[Reading, ...]:
    """Metrics of the hottest functions from the counters that `tool` simulated for each; empty where there are none."""
    profile = counted_profile(profiles)
    if profile is None:
        return ()
    counters = [
        Counter(name, value, "measured", scope=function_scope(spot))
        for spot in hottest_functions(profile)
        for name, value in spot.counters.items()
    ]
    return derive(counters, formula_table(tool), tool) if counters else ()


def is_sampled(profile: Profile) -> bool:
    """True for a profile that samples were added up to, by function, library or thread."""
    counted = any("Ir" in spot.counters for spot in profile.hotspots) or profile.unit == "instructions"
    return profile.kind in SAMPLED and not counted
