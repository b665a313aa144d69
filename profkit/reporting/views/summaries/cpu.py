"""What counters and samples of a processor say, in words: caches, branches, instructions, limits, hottest functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from profkit.analysis.metrics import metric
from profkit.analysis.stacks.merge import PYTHON
from profkit.analysis.summaries.cpu import HOTTEST, WORTH, counted_profile, is_sampled
from profkit.analysis.summaries.roofline import BEYOND, BEYOND_WHOLE, Ceilings, lower_ceiling, work_of
from profkit.core.formatting import format_figures, format_percent, format_quantity, joined, shorten
from profkit.core.types import Hotspot, Profile, Reading, RunDocument
from profkit.reporting.view import DataTable
from profkit.reporting.views.summaries.parts import (
    NOTHING,
    TOP_FUNCTIONS,
    ConcernFacts,
    SummaryText,
    absence_notes,
    function_place,
    hotspot_table,
    metric_table,
    named_table,
    share_text,
    summary_text,
    unknown_text,
)

# Why simulated rates are not those of the chip (valgrind's cache model).
_SIMULATED = (
    "Simulated: no prefetcher, least-recently-used replacement, one core alone. Compare simulated values only"
    " with simulated ones; a chip with prefetchers misses less."
)
_LEVELS = (("l1", "L1"), ("l2", "L2"), ("l3", "L3"), ("last", "the last level"))


def cache_text(facts: ConcernFacts) -> SummaryText:
    """Miss rates level by level."""
    values = _known_values(facts.readings)
    misses = [
        f"{format_percent(values[name])} % miss {title}"
        for key, title in _LEVELS
        if (name := f"cache.{key}.miss_rate") in values
    ]
    if not misses:
        return unknown_text("cache", "How well the caches serve is", facts.readings)
    headline = f"Of the accesses that reach each level, {joined(misses)}{_common_quality(facts.readings)}."
    notes = (_SIMULATED,) if any(r.quality == "simulated" for r in facts.readings) else ()
    title = "Caches: share of the accesses to each level that miss"
    return _counted_text("cache", headline, facts.readings, title, notes)


def branches_text(facts: ConcernFacts) -> SummaryText:
    """How often a branch was predicted wrongly."""
    values = _known_values(facts.readings)
    if "branch.miss_rate" not in values:
        return unknown_text("branches", "How well branches are predicted is", facts.readings)
    of = f" of {format_quantity(values['branch.count'])}" if "branch.count" in values else ""
    rate = format_percent(values["branch.miss_rate"])
    headline = f"{rate} %{of} branches are mispredicted{_common_quality(facts.readings)}."
    return _counted_text("branches", headline, facts.readings, "Branches")


def instructions_text(facts: ConcernFacts) -> SummaryText:
    """Instructions, cycles, IPC and SIMD share."""
    values = _known_values(facts.readings)
    if not values:
        return unknown_text("instructions", "How the core is used is", facts.readings)
    parts: list[str] = []
    if "ipc" in values:
        parts.append(f"{values['ipc']:.2f} instructions per cycle")
    elif "instructions" in values:
        parts.append(f"{format_quantity(values['instructions'])} instructions")
    if (simd := values.get("simd.utilization")) is not None:
        parts.append(f"{format_percent(simd)} % of the floating-point arithmetic is SIMD")
    others = (f"{metric(n).title.lower()} {format_quantity(v, metric(n).unit)}" for n, v in values.items())
    headline = f"{'; '.join(parts or list(others)[:2])}{_common_quality(facts.readings)}."
    return _counted_text("instructions", headline, facts.readings, "Instructions")


def _known_values(readings: Sequence[Reading]) -> dict[str, float]:
    return {r.metric: r.value for r in readings if r.value is not None}


def _common_quality(readings: Sequence[Reading]) -> str:
    """` (simulated)` where that holds for everything there is."""
    kinds = {r.quality for r in readings if r.value is not None}
    return f" ({next(iter(kinds))})" if len(kinds) == 1 and "measured" not in kinds else ""


def _counted_text(
    concern: str, headline: str, readings: Sequence[Reading], title: str, notes: Sequence[str] = ()
) -> SummaryText:
    remarks = [
        f"{metric(r.metric).title}: {r.reason}."
        for r in readings
        if r.value is not None and r.reason and r.quality != "multiplexed"
    ]
    notes = (*notes, *remarks, *absence_notes(readings))
    return summary_text(concern, headline, readings, (), notes, [metric_table(title, readings)])


# ---------------------------------------------------------------- against the peaks of this machine

# Above half of a ceiling that is what limits; below, something else does (latency, overhead, dependencies).
NEAR_CEILING = 50.0
# Counted and declared FLOPs further apart than this are not the same work, or not all of it was counted.
FLOPS_APART = 0.10


def bandwidth_text(facts: ConcernFacts) -> SummaryText:
    """How much goes to memory and back, against what this machine was measured to move."""
    work, limit = work_of(facts.document)
    known = {r.metric: r for r in facts.readings}
    rows = [*([] if work.dram.metric in known else [work.dram]), *facts.readings]
    notes = [f"Held against the measured peak of {_threads_text(limit)}."] if limit.bandwidth.value else []
    headline = _bandwidth_headline(known["bandwidth.dram"], known["bandwidth.dram.share"], work.dram, limit)
    table = metric_table("Memory traffic", rows)
    return summary_text("bandwidth", headline, facts.readings, (), (*notes, *absence_notes(rows)), [table])


def _bandwidth_headline(rate: Reading, share: Reading, dram: Reading, limit: Ceilings) -> str:
    if rate.value is None and dram.value is not None:
        moved = format_quantity(dram.value, "B")
        return f"{moved} to and from memory ({dram.quality}); the time for it is not known."
    if rate.value is None:
        return f"Traffic to memory is not known: {rate.reason}."
    moved = f"{format_quantity(rate.value, 'B/s')} to and from memory"
    if share.value is None:
        return f"{moved} ({rate.quality}); the peak is not known."
    of = f"{format_percent(share.value)} % of the {format_quantity(limit.bandwidth.value, 'B/s')} that this machine"
    if share.value > BEYOND:
        return (
            f"{moved} ({rate.quality}) would be {of} was measured to reach: {share.reason or BEYOND_WHOLE}."
        )
    return f"{moved}, {of} reaches ({rate.quality})."


def _threads_text(limit: Ceilings) -> str:
    used = (
        "how many it used is not known" if limit.busy is None else f"{limit.busy / 100:.1f} cores kept busy"
    )
    return f"one thread ({used})" if limit.single else f"all {limit.threads} threads ({used})"


def roofline_text(facts: ConcernFacts) -> SummaryText:
    """The position under the roofline, with the ceilings of one thread and of all of them."""
    work, limit = work_of(facts.document)
    known = {r.metric: r for r in facts.readings}
    share = known["roofline.share"]
    under = lower_ceiling(known["arithmetic_intensity"], limit)
    headline = f"The position under the roofline is not known: {share.reason}."
    if share.value is not None and under is not None:
        limits = "memory" if under == "memory" else "arithmetic"
        near = f"{limits} would limit it, but something else limits it first"
        if share.value > BEYOND:
            near = share.reason or BEYOND_WHOLE
        elif share.value >= NEAR_CEILING:
            near = f"{limits} is what limits it"
        rate = format_quantity(known["flops.rate"].value, "FLOP/s")
        over = format_figures(known["arithmetic_intensity"].value or 0.0)
        part = format_percent(share.value)
        headline = f"{rate} is {part} % of what the {under} ceiling allows at {over} FLOP/B: {near}."
    notes = [f"Held against {_threads_text(limit)}."] if share.value is not None else []
    if any(r.quality == "estimated" for r in facts.readings) and work.dram.quality == "simulated":
        notes.append("Estimated: bytes and FLOPs are simulated on one core, the time is measured.")
    counted, declared = work.flops.value, work.declared_flops
    if counted is not None and declared and abs(counted - declared) > FLOPS_APART * declared:
        notes.append(
            f"Counted {format_quantity(counted, 'FLOP')} per iteration, declared {format_quantity(declared, 'FLOP')}:"
            " the declared number is wrong, or not all work was counted."
        )
    tables = [_ceiling_table(facts.document)]
    metrics = [metric_table("Roofline", facts.readings)]
    return summary_text(
        "roofline", headline, facts.readings, tables, (*notes, *absence_notes(facts.readings)), metrics
    )


def _ceiling_table(document: RunDocument) -> DataTable | None:
    peaks = document.peaks
    if peaks is None:
        return None
    rows = [
        (name, format_quantity(one, unit), format_quantity(every, unit))
        for name, one, every, unit in (
            ("Memory", peaks.bandwidth_one, peaks.bandwidth_all, "B/s"),
            ("float32 arithmetic", peaks.flops_f32_one, peaks.flops_f32_all, "FLOP/s"),
        )
    ]
    note = "measured here; how stands in run.json, peaks.method"
    return named_table("What this machine reaches", ("", "1 thread", f"{peaks.threads} threads"), rows, note)


# ---------------------------------------------------------------- hottest functions

# callgrind's own names, and those of FLOPs counted from instructions.
_LAST_READ, _LAST_PLAIN = ("D3mr", "D3mw"), ("DLmr", "DLmw")


def functions_text(facts: ConcernFacts) -> SummaryText | None:
    """Hottest functions with instructions, L1 misses, lines from memory and FLOPs; None without counters."""
    profile = counted_profile(facts.document.profiles)
    if profile is None:
        return None
    last = _LAST_READ if _any_counted(profile, _LAST_READ) else _LAST_PLAIN
    columns = {
        "instructions": ("Ir",),
        "L1 misses": ("D1mr", "D1mw"),
        "from DRAM": last,
        "FLOPs": ("FLOP",),
    }
    columns = {title: names for title, names in columns.items() if _any_counted(profile, names)}
    totals = {t: sum(_sum_counters(spot, names) for spot in profile.hotspots) for t, names in columns.items()}
    spots = sorted(profile.hotspots, key=lambda spot: -spot.counters.get("Ir", 0.0))[:HOTTEST]
    total = format_quantity(totals["instructions"], "count")
    share = share_text(_sum_counters(spots[0], ("Ir",)), totals["instructions"])
    note = "; ".join(f"{title}: {format_quantity(totals[title], 'count')} in all" for title in columns)
    tables = [_share_table("Functions by share of all", "function", spots, columns, totals, note)]
    lines = next((one for one in facts.document.profiles if one.kind == "counted-lines"), None)
    if lines is not None:  # the costliest, each by its largest share of what all functions together have
        costliest = sorted(
            lines.hotspots,
            key=lambda spot: -max(_sum_counters(spot, n) / (totals[t] or 1.0) for t, n in columns.items()),
        )
        title = "Source lines by share of all"
        tables.append(_share_table(title, "line", costliest[:HOTTEST], columns, totals, None))
    headline = f"{function_place(spots[0])} executes {share} of {total} instructions (simulated)."
    return summary_text("functions", headline, (), tables)


def _share_table(
    title: str,
    what: str,
    spots: Sequence[Hotspot],
    columns: Mapping[str, Sequence[str]],
    totals: Mapping[str, float],
    note: str | None,
) -> DataTable:
    rows = [
        (
            function_place(spot, 36),
            *(share_text(_sum_counters(spot, names), totals[t] or 1.0) for t, names in columns.items()),
        )
        for spot in spots
    ]
    return named_table(title, (what, *columns), rows, note)


def _any_counted(profile: Profile, names: Sequence[str]) -> bool:
    return any(name in spot.counters for spot in profile.hotspots for name in names)


def _sum_counters(spot: Hotspot, names: Sequence[str]) -> float:
    return sum(spot.counters.get(name, 0.0) for name in names)


# A share of n samples is known to about sqrt(p * (1 - p) / n): with fewer than these, 10 % may be 4 or 16.
ENOUGH_SAMPLES = 100


def trace_text(facts: ConcernFacts) -> SummaryText | None:
    """Hottest functions and libraries; None where nothing was sampled and nobody says why."""
    profiles = facts.document.profiles
    operations = next((p for p in profiles if p.kind == "operations" and p.hotspots), None)
    if operations is not None:  # timed one by one, not sampled
        top = operations.hotspots[0]
        share = share_text(top.own, operations.total)
        headline = f"{shorten(top.function, 40)} takes {share} of the CPU time of all operations."
        return summary_text("trace", headline, (), [_function_table("Operations by CPU time", operations)])
    traced = [profile for profile in profiles if is_sampled(profile)]
    if not traced:
        missing = next(iter(facts.readings), None)
        if missing is None:
            return None
        note = (f"To have it: {missing.fix}",) if missing.fix else ()
        headline = f"Where time goes in native code is not known: {missing.reason}."
        return summary_text("trace", headline, facts.readings, (), note)
    functions = next((p for p in traced if p.kind == "functions" and p.hotspots), None)
    libraries = next((p for p in traced if p.kind == "libraries" and p.hotspots), None)
    python = next((p for p in traced if p.kind == "python-functions" and _is_interpreted(p)), None)
    if any(profile.kind == "sampled-functions" and profile.hotspots for profile in profiles):
        python = None  # Python's own summary has them, of all processes
    tables = [
        _function_table("Python functions by samples", python) if python is not None else None,
        _function_table("Functions by samples", functions) if functions is not None else None,
        _library_table(libraries) if libraries is not None else None,
    ]
    headline = _samples_headline(python or functions, libraries)
    return summary_text("trace", headline, (), tables, _sample_notes(functions or traced[0]))


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


def _function_table(title: str, profile: Profile) -> DataTable:
    def below(spot: Hotspot) -> str:
        return share_text(spot.total, profile.total) if spot.total is not None else NOTHING

    columns = (
        ("function", lambda spot: function_place(spot, 52)),
        ("own", lambda spot: share_text(spot.own, profile.total)),
        ("with callees", below),
    )
    return hotspot_table(title, profile, columns, most=TOP_FUNCTIONS)


def _library_table(profile: Profile) -> DataTable:
    columns = (
        ("library", lambda spot: shorten(spot.function, 52)),
        ("own", lambda spot: share_text(spot.own, profile.total)),
    )
    return hotspot_table("Libraries by samples", profile, columns, most=TOP_FUNCTIONS)


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
