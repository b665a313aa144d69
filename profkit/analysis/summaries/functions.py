"""The hottest functions with what the counters (simulated or counted) say of each: misses, FLOPs, rates."""

from __future__ import annotations

from collections.abc import Sequence

from profkit.analysis.metrics import derive, formula_table
from profkit.analysis.summaries.tables import share, where
from profkit.core.formatting import quantity
from profkit.core.types import Counter, Hotspot, Profile, Reading, Scope, Summary, Table

HOTTEST = 5  # functions that are judged: each of their verdicts is something to work on
WORTH = 0.05  # share of the whole below which a function's verdict would not pay the work

# callgrind's and cachegrind's own names, and those of FLOPs counted from instructions.
_MISSES_L1, _LAST_READ, _FLOPS = ("D1mr", "D1mw"), ("D3mr", "D3mw"), ("FLOP",)
_LAST_PLAIN = ("DLmr", "DLmw")


def counted_profile(profiles: Sequence[Profile]) -> Profile | None:
    """The profile whose functions carry instruction counts, or None."""
    for profile in profiles:
        if any("Ir" in spot.counters for spot in profile.hotspots):
            return profile
    return None


def hottest(profile: Profile) -> tuple[Hotspot, ...]:
    """The functions that are worth a verdict: at most five, each at least 5 % of the whole."""
    ordered = sorted(profile.hotspots, key=lambda spot: -spot.own)
    return tuple(s for s in ordered[:HOTTEST] if profile.total > 0 and s.own >= WORTH * profile.total)


def function_scope(spot: Hotspot) -> Scope:
    """The scope of a function's readings: its name, and its library (else its file) as id."""
    return Scope("function", spot.function, spot.library or spot.file)


def function_readings(profiles: Sequence[Profile]) -> tuple[Reading, ...]:
    """Metrics of the hottest functions from their own simulated counters; empty where there are none."""
    profile = counted_profile(profiles)
    if profile is None:
        return ()
    counters = [
        Counter(name, value, "measured", scope=function_scope(spot))
        for spot in hottest(profile)
        for name, value in spot.counters.items()
    ]
    return derive(counters, formula_table("valgrind"), "valgrind") if counters else ()


def summarize_functions(profiles: Sequence[Profile]) -> Summary | None:
    """Hottest functions with instructions, L1 misses, lines from memory and FLOPs; None without counters."""
    profile = counted_profile(profiles)
    if profile is None:
        return None
    spots = sorted(profile.hotspots, key=lambda spot: -spot.counters.get("Ir", 0.0))[:HOTTEST]
    columns = [
        ("instructions", ("Ir",)),
        ("L1 misses", _MISSES_L1),
        ("from DRAM", _LAST_READ if _any(profile, _LAST_READ) else _LAST_PLAIN),
        ("FLOPs", _FLOPS),
    ]
    kept = [(title, names) for title, names in columns if _any(profile, names)]
    totals = {title: sum(_sum(spot, names) for spot in profile.hotspots) for title, names in kept}
    rows = tuple(
        (where(spot, 36), *(share(_sum(spot, names), totals[title]) for title, names in kept))
        for spot in spots
    )
    notes = tuple(f"{title}: {quantity(totals[title], 'count')} in all" for title, _ in kept)
    headline = (
        f"{where(spots[0])} executes {share(_sum(spots[0], ('Ir',)), totals['instructions'])}"
        f" of {quantity(totals['instructions'], 'count')} instructions (simulated)."
    )
    table = Table("Functions by share of all", ("function", *(t for t, _ in kept)), rows, "; ".join(notes))
    return Summary("functions", headline, (), (table,))


def _any(profile: Profile, names: Sequence[str]) -> bool:
    return any(name in spot.counters for spot in profile.hotspots for name in names)


def _sum(spot: Hotspot, names: Sequence[str]) -> float:
    return sum(spot.counters.get(name, 0.0) for name in names)
