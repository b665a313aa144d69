"""What counters and samples of a processor say: caches, branches, instructions, hottest functions and libraries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from profkit.analysis.metrics import derive, formula_table, metric
from profkit.analysis.stacks.merge import PYTHON
from profkit.analysis.summaries.readings import (
    TOP_FUNCTIONS,
    absence_notes,
    first_reason,
    function_place,
    make_summary,
    metric_table,
    share_text,
)
from profkit.core.formatting import format_percent, format_quantity, joined, shorten
from profkit.core.types import Counter, Hotspot, Profile, Reading, Scope, Summary, Table

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
    values = _known_values(readings)
    levels = [
        (name, values[f"cache.{key}.miss_rate"])
        for key, name in _LEVELS
        if f"cache.{key}.miss_rate" in values
    ]
    if not levels:
        return _unknown_summary("cache", "How well the caches serve is not known", readings)
    words = [f"{format_percent(value)} % miss {name}" for name, value in levels]
    headline = f"Of the accesses that reach each level, {joined(words)}{_common_quality(readings)}."
    notes = (SIMULATED,) if any(r.quality == "simulated" for r in readings) else ()
    return _counted_summary(
        "cache", headline, readings, "Caches: share of the accesses to each level that miss", notes
    )


_LEVELS = (("l1", "L1"), ("l2", "L2"), ("l3", "L3"), ("last", "the last level"))


def summarize_branches(readings: Sequence[Reading]) -> Summary:
    """How often a branch was predicted wrongly; `readings` are the branch.* metrics of one scope."""
    values = _known_values(readings)
    if "branch.miss_rate" not in values:
        return _unknown_summary("branches", "How well branches are predicted is not known", readings)
    of = f" of {format_quantity(values['branch.count'])}" if "branch.count" in values else ""
    headline = (
        f"{format_percent(values['branch.miss_rate'])} %{of} branches are "
        f"mispredicted{_common_quality(readings)}."
    )
    return _counted_summary("branches", headline, readings, "Branches", ())


def summarize_instructions(readings: Sequence[Reading]) -> Summary:
    """Instructions, cycles, IPC and SIMD share of one scope."""
    values = _known_values(readings)
    if not values:
        return _unknown_summary("instructions", "How the core is used is not known", readings)
    parts: list[str] = []
    if "ipc" in values:
        parts.append(f"{values['ipc']:.2f} instructions per cycle")
    elif "instructions" in values:
        parts.append(f"{format_quantity(values['instructions'])} instructions")
    if "simd.utilization" in values:
        parts.append(
            f"{format_percent(values['simd.utilization'])} % of the floating-point arithmetic is SIMD"
        )
    if not parts:
        parts = [
            f"{metric(name).title.lower()} {format_quantity(v, metric(name).unit)}"
            for name, v in values.items()
        ][:2]
    headline = f"{'; '.join(parts)}{_common_quality(readings)}."
    return _counted_summary("instructions", headline, readings, "Instructions", ())


def _known_values(readings: Sequence[Reading]) -> dict[str, float]:
    return {r.metric: r.value for r in readings if r.value is not None}


def _common_quality(readings: Sequence[Reading]) -> str:
    """` (simulated)` where that holds for everything there is."""
    kinds = {r.quality for r in readings if r.value is not None}
    return f" ({next(iter(kinds))})" if len(kinds) == 1 and "measured" not in kinds else ""


def _unknown_summary(concern: str, what: str, readings: Sequence[Reading]) -> Summary:
    reason = first_reason(readings, "no counter was collected")
    return Summary(concern, f"{what}: {reason}.", tuple(readings), (), absence_notes(readings))


def _remark(reading: Reading) -> str | None:
    """What is to be said of a value; that it was multiplexed comes last, and stands in the table."""
    return reading.reason if reading.quality != "multiplexed" else (reading.reason or "").rpartition("; ")[0]


def _counted_summary(
    concern: str, headline: str, readings: Sequence[Reading], title: str, notes: tuple[str, ...]
) -> Summary:
    remarks = [
        f"{metric(r.metric).title}: {remark}."
        for r in readings
        if r.value is not None and (remark := _remark(r))
    ]
    table = metric_table(title, readings)
    return make_summary(concern, headline, readings, [table], (*notes, *remarks, *absence_notes(readings)))


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


def summarize_functions(profiles: Sequence[Profile]) -> Summary | None:
    """Hottest functions with instructions, L1 misses, lines from memory and FLOPs; None without counters."""
    profile = counted_profile(profiles)
    if profile is None:
        return None
    spots = sorted(profile.hotspots, key=lambda spot: -spot.counters.get("Ir", 0.0))[:HOTTEST]
    columns = [
        ("instructions", ("Ir",)),
        ("L1 misses", _MISSES_L1),
        ("from DRAM", _LAST_READ if _any_counted(profile, _LAST_READ) else _LAST_PLAIN),
        ("FLOPs", _FLOPS),
    ]
    shown = [(title, names) for title, names in columns if _any_counted(profile, names)]
    totals = {title: sum(_sum_counters(spot, names) for spot in profile.hotspots) for title, names in shown}
    rows = tuple(
        (
            function_place(spot, 36),
            *(share_text(_sum_counters(spot, names), totals[title]) for title, names in shown),
        )
        for spot in spots
    )
    notes = tuple(f"{title}: {format_quantity(totals[title], 'count')} in all" for title, _ in shown)
    headline = (
        f"{function_place(spots[0])} executes {share_text(_sum_counters(spots[0], ('Ir',)), totals['instructions'])}"
        f" of {format_quantity(totals['instructions'], 'count')} instructions (simulated)."
    )
    table = Table("Functions by share of all", ("function", *(t for t, _ in shown)), rows, "; ".join(notes))
    lines = next((one for one in profiles if one.kind == "counted-lines"), None)
    tables = (table, _line_table(lines, shown, totals)) if lines is not None else (table,)
    return Summary("functions", headline, (), tables)


def _line_table(
    profile: Profile, columns: Sequence[tuple[str, Sequence[str]]], totals: Mapping[str, float]
) -> Table:
    """The costliest source lines, each by its largest share of what all functions together have."""
    shares = [
        (spot, [_sum_counters(spot, names) / (totals[title] or 1.0) for title, names in columns])
        for spot in profile.hotspots
    ]
    shares.sort(key=lambda line: -max(line[1]))
    rows = tuple(
        (function_place(spot, 36), *(share_text(part, 1.0) for part in parts))
        for spot, parts in shares[:HOTTEST]
    )
    return Table("Source lines by share of all", ("line", *(title for title, _ in columns)), rows)


def _any_counted(profile: Profile, names: Sequence[str]) -> bool:
    return any(name in spot.counters for spot in profile.hotspots for name in names)


def _sum_counters(spot: Hotspot, names: Sequence[str]) -> float:
    return sum(spot.counters.get(name, 0.0) for name in names)


# A share of n samples is known to about sqrt(p * (1 - p) / n): with fewer than these, 10 % may be 4 or 16.
ENOUGH_SAMPLES = 100
SAMPLED = ("functions", "python-functions", "libraries", "threads")


def is_sampled(profile: Profile) -> bool:
    """True for a profile that samples were added up to, by function, library or thread."""
    counted = any("Ir" in spot.counters for spot in profile.hotspots) or profile.unit == "instructions"
    return profile.kind in SAMPLED and not counted


def summarize_trace(profiles: Sequence[Profile], missing: Reading | None = None) -> Summary | None:
    """Hottest functions and libraries; None where nothing was sampled and `missing` does not say why."""
    operations = next((p for p in profiles if p.kind == "operations" and p.hotspots), None)
    if operations is not None:  # timed one by one, not sampled
        top = operations.hotspots[0]
        share = share_text(top.own, operations.total)
        return Summary(
            "trace",
            f"{shorten(top.function, 40)} takes {share} of the CPU time of all operations.",
            (),
            (_function_table("Operations by CPU time", operations),),
        )
    traced = [profile for profile in profiles if is_sampled(profile)]
    if not traced:
        if missing is None:
            return None
        note = (f"To have it: {missing.fix}",) if missing.fix else ()
        return Summary(
            "trace", f"Where time goes in native code is not known: {missing.reason}.", (), (), note
        )
    functions = next((p for p in traced if p.kind == "functions" and p.hotspots), None)
    libraries = next((p for p in traced if p.kind == "libraries" and p.hotspots), None)
    python = next((p for p in traced if p.kind == "python-functions" and _is_interpreted(p)), None)
    if any(profile.kind == "sampled-functions" and profile.hotspots for profile in profiles):
        python = None  # Python's own summary has them, of all processes
    tables = [_function_table("Python functions by samples", python)] if python is not None else []
    if functions is not None:
        tables.append(_function_table("Functions by samples", functions))
    if libraries is not None:
        tables.append(_library_table(libraries))
    return Summary(
        "trace",
        _samples_headline(python or functions, libraries),
        (),
        tuple(tables),
        _sample_notes(functions or traced[0]),
    )


def _is_interpreted(profile: Profile) -> bool:
    """Whether functions of Python are a good part of what was sampled: else compiled code has no Python above it."""
    known = sum(spot.own for spot in profile.hotspots if spot.library == PYTHON)
    return known >= WORTH * profile.total > 0


def _samples_headline(functions: Profile | None, libraries: Profile | None) -> str:
    parts: list[str] = []
    if functions is not None:
        top = next((s for s in functions.hotspots if not s.function.startswith("[")), functions.hotspots[0])
        parts.append(f"{function_place(top)} takes {share_text(top.own, functions.total)} of the samples")
    if libraries is not None:
        top = libraries.hotspots[0]
        parts.append(f"{shorten(top.function, 40)} as a library {share_text(top.own, libraries.total)}")
    return f"{', '.join(parts)}." if parts else "The trace holds no sample."


def _function_table(title: str, profile: Profile) -> Table:
    rows = tuple(
        (
            function_place(spot, 52),
            share_text(spot.own, profile.total),
            share_text(spot.total, profile.total) if spot.total is not None else "-",
        )
        for spot in profile.hotspots[:TOP_FUNCTIONS]
        if spot.own > 0
    )
    return Table(title, ("function", "own", "with callees"), rows)


def _library_table(profile: Profile) -> Table:
    rows = tuple(
        (shorten(spot.function, 52), share_text(spot.own, profile.total))
        for spot in profile.hotspots[:TOP_FUNCTIONS]
        if spot.own > 0
    )
    return Table("Libraries by samples", ("library", "own"), rows)


def _sample_notes(profile: Profile) -> tuple[str, ...]:
    notes: list[str] = []
    if profile.unit == "samples" and profile.total < ENOUGH_SAMPLES:
        notes.append(f"Only {profile.total:.0f} samples: shares are rough. A longer region gives more.")
    unknown = sum(spot.own for spot in profile.hotspots if spot.function in ("[unknown]", ""))
    if profile.total > 0 and unknown > 0.1 * profile.total:
        part = format_percent(100 * unknown / profile.total)
        notes.append(
            f"{part} % of the samples have no symbol: their libraries are stripped of function names."
        )
    return tuple(notes)
