"""What processors and Python did, in words: where samples and counters fell, and memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from profkit.analysis.summaries.host import counted_profile, is_sampled
from profkit.core.formatting import format_quantity, plural, shorten
from profkit.core.types import AllocationLine, Hotspot, Profile, ProfileKind, RunDocument
from profkit.reporting.facts import fact_text, word_of
from profkit.reporting.view import DataTable, Section
from profkit.reporting.views.summaries.parts import (
    NOTHING,
    TOP_ROWS,
    absence_notes,
    concern_section,
    function_place,
    named_table,
    readings_of,
    readings_section,
    readings_table,
    share_text,
    unknown_section,
)

_OPERATOR = 32  # characters of an operator's name
_PSTATS_ROWS = 20  # as many as the guides to cProfile print
_ROWS = 5  # of modules and lines: below these the rest is small change
_MIN_SHARE = 0.001  # share below which a function is not worth a row: a hundred of them are still a tenth
# A share of n samples is known to about sqrt(p * (1 - p) / n): with fewer than these, 10 % may be 4 or 16.
_ENOUGH_SAMPLES = 100


# ---------------------------------------------------------------- where samples, times and counts fell

_BY_CPROFILE = (
    "cProfile slows Python code more than native code: compare shares, not seconds, with other passes."
)
_BY_SAMPLES = (
    "Sampled a hundred times a second where the interpreter lets threads change places: a call into compiled code "
    "counts for the line that makes it."
)


def python_section(document: RunDocument) -> Section | None:
    """Return functions, lines, imports and threads by sampled stacks, else by cProfile; else why nothing is known."""
    kinds = {profile.kind for profile in document.profiles}
    if "sampled-functions" in kinds:
        shown: tuple[ProfileKind, ...] = (
            "sampled-functions",
            "sampled-imports",
            "sampled-threads",
        )
        return _profiles_section("python", "Where Python's time goes", document, shown, _BY_SAMPLES)
    return _profiles_section(
        "python", "Where Python's time goes", document, ("own-time", "imports"), _BY_CPROFILE
    )


def trace_section(document: RunDocument) -> Section | None:
    """Return the hottest functions and libraries; None if nothing was sampled and no reason is known."""
    kinds = {profile.kind for profile in document.profiles}
    what = "Where time goes in native code"
    # Python's own summary has its functions, of all processes.
    python: tuple[ProfileKind, ...] = () if "sampled-functions" in kinds else ("python-functions",)
    sampled = next((p for p in document.profiles if is_sampled(p) and p.unit == "samples"), None)
    few = ""
    if sampled is not None and sampled.total < _ENOUGH_SAMPLES:
        few = f"Only {sampled.total:.0f} samples: shares are rough. A longer region gives more."
    return _profiles_section("trace", what, document, ("functions", *python, "libraries"), few)


def _profiles_section(
    concern: str, what: str, document: RunDocument, kinds: Sequence[ProfileKind], note: str = ""
) -> Section | None:
    """Return the profiles of these kinds, a table each; the first one's largest as the headline."""
    by_kind = {profile.kind: profile for profile in document.profiles}
    known = [by_kind[kind] for kind in kinds if kind in by_kind]
    if not known:
        readings = readings_of(document, concern)
        return unknown_section(concern, f"{what} is", readings) if readings else None
    tables = [table for profile in known for table in _profile_tables(profile)]
    first = known[0]
    headline = f"{word_of('profile', first.kind or '')}: none ran for as long as a sample."
    if first.hotspots and first.total > 0:
        top = next((s for s in first.hotspots if not s.function.startswith("[")), first.hotspots[0])
        share = f"{share_text(top.own, first.total)} of {format_quantity(first.total, first.unit)}"
        headline = f"{_place(top, first)} takes {share}."
    imports = next((p for p in known if p.kind in ("imports", "sampled-imports")), None)
    if imports is not None:
        # cProfile ended before the run did, perhaps within an import
        least = "at least " if imports.partial else ""
        headline = f"{headline[:-1]}; imports take {least}{format_quantity(imports.total, imports.unit)}."
    return concern_section(concern, headline, tables, (note,) if note else ())


def _place(spot: Hotspot, profile: Profile) -> str:
    """Return a function at the line that most of its own time is spent in, instead of its first; a module by its
    file.
    """
    if "imports" in (profile.kind or ""):
        return shorten(spot.function if spot.function != "<module>" else _last_parts(spot.file or ""), 36)
    if profile.kind != "sampled-functions" or not spot.lines:
        return function_place(spot)
    # The cost of a call is seen in the first line of a function, and its work in the others.
    hottest = next((line for line in spot.lines if line.line != spot.line), spot.lines[0])
    return function_place(replace(spot, line=hottest.line))


def _last_parts(file: str) -> str:
    """Return the last two parts of a file's name: `torch/__init__.py`."""
    return "/".join(file.replace("\\", "/").split("/")[-2:])


def _profile_tables(profile: Profile) -> list[DataTable]:
    """Return its table; of cProfile first one by cumulative time, since `main` itself does next to nothing."""
    if profile.kind != "own-time":
        return [_profile_table(profile)]
    return [_pstats_table(profile, cumulative=True), _pstats_table(profile, cumulative=False)]


def _pstats_table(profile: Profile, *, cumulative: bool) -> DataTable:
    """Return what `pstats.Stats.sort_stats("cumulative").print_stats(20)` prints, or by `tottime`; times in seconds."""

    def whole(spot: Hotspot) -> float:
        return spot.total if spot.total is not None else spot.own

    def size(spot: Hotspot) -> tuple[float, float]:
        return (whole(spot), spot.own) if cumulative else (spot.own, whole(spot))

    rows = [
        (
            _place(spot, profile),
            _calls_text(spot),
            format_quantity(whole(spot), "s"),
            format_quantity(whole(spot) / spot.calls, "s") if spot.calls else NOTHING,
            format_quantity(spot.own, "s"),
        )
        for spot in sorted(profile.hotspots, key=size, reverse=True)[:_PSTATS_ROWS]
    ]
    title = f"Python functions by {'cumulative' if cumulative else 'own'} time"
    columns = ("function", "calls", "cumulative", "each", "own")
    return named_table(title, columns, rows, f"of {format_quantity(profile.total, profile.unit)}")


def operators_section(document: RunDocument) -> Section | None:
    """Return torch's operators on the CPU, as `key_averages().table()` has them; None where no trace held any."""
    profile = next((p for p in document.profiles if p.kind == "operators"), None)
    if profile is None or not profile.hotspots:
        return None
    rows = [
        (
            shorten(spot.function, _OPERATOR),
            share_text(spot.own, profile.total),
            format_quantity(spot.own, "s"),
            format_quantity(spot.total or 0.0, "s"),
            f"{spot.calls:,}",
            _signed_bytes(spot.counters.get("own_bytes", 0.0)),
            _signed_bytes(spot.counters.get("bytes", 0.0)),
            spot.shapes or "",
        )
        for spot in profile.hotspots[:_PSTATS_ROWS]
    ]
    columns = ("operator", "own", "own time", "with callees", "calls", "own memory", "memory", "shapes")
    note = f"of {format_quantity(profile.total, 's')}"
    table = named_table("Operators by own time", columns, rows, note, words=("shapes",))
    top = profile.hotspots[0]
    headline = (
        f"{top.function} takes {share_text(top.own, profile.total)} of {format_quantity(profile.total, 's')}."
    )
    return concern_section("operators", headline, (table,))


def _signed_bytes(size: float) -> str:
    return NOTHING if size == 0 else f"{'-' if size < 0 else ''}{format_quantity(abs(size), 'B')}"


def _calls_text(spot: Hotspot) -> str:
    """Return `12`, or `12/4` of a recursive function: all calls, and those that are not made by itself."""
    primitive = spot.counters.get("primitive_calls")
    if primitive is None or spot.calls is None or primitive == spot.calls:
        return f"{spot.calls:,}" if spot.calls is not None else NOTHING
    return f"{spot.calls:,}/{primitive:,.0f}"


def _profile_table(profile: Profile) -> DataTable:
    """Return a row for each of the largest, with its own share, that including its callees, and its calls."""
    title, what = (word_of(kind, profile.kind or "") for kind in ("profile", "row"))
    threads = profile.kind == "sampled-threads"  # a thread calls nothing: its total is how long it was there

    def size(spot: Hotspot) -> float:
        return spot.own if what != "module" and what != "line" else spot.total or 0.0

    spots = sorted(profile.hotspots, key=size, reverse=True)
    rows = [
        (
            _place(spot, profile),
            share_text(spot.own, profile.total),
            _of_its_time(spot)
            if threads
            else share_text(spot.total, profile.total)
            if spot.total is not None
            else NOTHING,
            format_quantity(float(spot.calls), "count") if spot.calls is not None else NOTHING,
        )
        for spot in spots[: _ROWS if what == "module" else TOP_ROWS]
        if size(spot) > _MIN_SHARE * profile.total
    ]
    note = f"of {format_quantity(profile.total, profile.unit)}"
    if threads:
        return named_table(
            title, (what, "of the work", "of its time it ran"), [row[:3] for row in rows], note
        )
    return named_table(title, (what, "own", "with callees", "calls"), rows, note)


def _of_its_time(thread: Hotspot) -> str:
    """Return how much of the time in which it was there a thread ran; a clock that ticks coarsely says no more
    than all.
    """
    return share_text(min(thread.own, thread.total), thread.total) if thread.total is not None else NOTHING


def functions_section(document: RunDocument) -> Section | None:
    """Return the hottest functions and lines by instructions, misses and FLOPs; None without counters."""
    profile = counted_profile(document.profiles)
    if profile is None:
        return None
    columns = {
        "instructions": ("Ir",),
        "L1 misses": ("D1mr", "D1mw"),
        "from DRAM": ("D3mr", "D3mw", "DLmr", "DLmw"),
        "FLOPs": ("FLOP",),
    }
    totals = {t: sum(_counted(spot, names) for spot in profile.hotspots) for t, names in columns.items()}
    lines = next((counted for counted in document.profiles if counted.kind == "counted-lines"), None)
    tables = [
        named_table(
            f"{what.capitalize()}s by share of all",
            (what, *columns),
            [
                (
                    function_place(spot, 36),
                    *(share_text(_counted(spot, columns[t]), totals[t]) for t in columns),
                )
                for spot in sorted(counted.hotspots, key=lambda spot: -_counted(spot, ("Ir",)))[:TOP_ROWS]
            ],
        )
        for what, counted in (("function", profile), ("line", lines))
        if counted is not None
    ]
    top = max(profile.hotspots, key=lambda spot: _counted(spot, ("Ir",)))
    share = share_text(_counted(top, ("Ir",)), totals["instructions"])
    total = format_quantity(totals["instructions"], "count")
    headline = f"{function_place(top)} executes {share} of {total} instructions (simulated)."
    return concern_section("functions", headline, tables)


def _counted(spot: Hotspot, names: Sequence[str]) -> float:
    return sum(spot.counters.get(name, 0.0) for name in names)


# ---------------------------------------------------------------- memory

_OF_PROCESS = (
    "memory.rss_peak",
    "memory.rss_added",
    "memory.rss_growth",
    "memory.device_peak",
    "memory.device_recommended",
)


def memory_section(document: RunDocument) -> Section:
    """Return resident memory, and Python's from tracemalloc: peak, leaks, and the lines that hold and grow most."""
    readings = readings_of(document, "memory")
    known = {r.metric: r for r in reversed(readings)}
    of_process = [r for r in readings if r.metric in _OF_PROCESS]
    found = document.allocations
    if found is None:
        others = [r for r in readings if r.metric.startswith("memory.python")]
        unknown = [
            r for r in others if r.reason is None or r.reason.code not in ("not-python", "not-in-report")
        ]
        shown = (*of_process, *(unknown if of_process else others))
        return readings_section("memory", "Memory of the process", shown, what="What the process holds")
    growth = found.growth
    grows = known.get("memory.python_growth")
    leak = f"no leak in {plural(growth.iterations, 'iteration')}"
    if growth.leak is None:
        leak = f"whether it leaks is not known ({fact_text(grows.reason) if grows is not None else None})"
    elif growth.leak:
        leak = f"each iteration leaves {format_quantity(growth.per_iteration, 'B')} behind: it leaks"
    grown = [line for line in found.growing if line.size > 0] if growth.leak else []
    tables = [
        readings_table("Memory of the process", of_process),
        _allocation_table("Lines that grow", grown),
        _allocation_table("Lines that hold most", found.top),
    ]
    peak = known.get("memory.python_peak")
    held = format_quantity(peak.value if peak is not None else None, "B")
    most = f"at least {held}" if peak is not None and peak.doubt is not None else f"{held} at most"
    resident = next((r for r in of_process if r.metric == "memory.rss_peak" and r.value is not None), None)
    beside = f"Peak resident memory {format_quantity(resident.value, 'B')}; " if resident is not None else ""
    headline = f"{beside}Python holds {most}; {leak}."
    return concern_section(
        "memory",
        headline,
        tables,
        (*map(fact_text, found.notes), *absence_notes(readings)),
    )


def _allocation_table(title: str, lines: Sequence[AllocationLine]) -> DataTable:
    rows = [
        (
            f"{shorten(_last_parts(line.file), 48)}:{line.line}",
            format_quantity(float(line.size), "B"),
            format_quantity(float(line.count), "count"),
        )
        for line in lines[:_ROWS]
    ]
    return named_table(title, ("line", "size", "blocks"), rows)
