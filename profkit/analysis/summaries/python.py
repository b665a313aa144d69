"""What the Python process did: time by function, imports, memory, and Triton's tuning and compiling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from profkit.analysis.summaries.readings import (
    TOP_FUNCTIONS,
    absence_notes,
    first_reason,
    function_place,
    make_summary,
    metric_table,
    share_text,
    unavailable_reading,
)
from profkit.core.formatting import format_percent, format_quantity, plural, shorten
from profkit.core.types import (
    RUN,
    GpuTrace,
    Hotspot,
    Profile,
    ProfileKind,
    Reading,
    Source,
    Summary,
    Table,
    Timing,
    TritonWork,
    Tuning,
)

if TYPE_CHECKING:
    from profkit.runtime.passes.read_tracemalloc import AllocationLine, Allocations, SteadyLine


# What the cProfile reader tells; times in seconds.
CPROFILE_KINDS: tuple[ProfileKind, ...] = ("own-time", "cumulative-time", "calls", "imports")
IMPORT_ROWS = 5  # modules worth a row: below the fifth the rest is small change
LEAST = 0.001  # share below which a function is not worth a row: a hundred of them are still a tenth


def summarize_python(profiles: Sequence[Profile], missing: Reading | None = None) -> Summary:
    """Top functions by own and by cumulative time, import time apart.

    `missing` says why there is no cProfile, where there is none. cProfile slows Python code and not native
    code: shares lean towards small Python functions, and the times are not those of the timing pass.
    """
    by_kind = {profile.kind: profile for profile in profiles}
    own, imports = by_kind.get("own-time"), by_kind.get("imports")
    if own is None:
        reading = missing or unavailable_reading("time.python", RUN, "there is no cProfile file")
        note = (f"To have it: {reading.fix}",) if reading.fix else ()
        return Summary(
            "python", f"Where Python's time goes is not known: {reading.reason}.", (reading,), (), note
        )
    imported = imports.total if imports is not None else 0.0
    readings = [
        _time_reading(
            "time.python", max(0.0, own.total - imported), "own time of all functions - import time"
        )
    ]
    if imports is not None:
        readings.append(_time_reading("time.import", imports.total, "cumulative time of the import system"))
    tables = [_own_table(own)]
    if "cumulative-time" in by_kind:
        tables.append(_cumulative_table(by_kind["cumulative-time"]))
    if imports is not None and imports.hotspots:
        tables.append(_import_table(imports))
    return Summary(
        "python", _python_headline(own, imports), tuple(readings), tuple(tables), _python_notes(own, imports)
    )


def _time_reading(name: str, seconds: float, formula: str) -> Reading:
    return Reading(name, seconds, "s", "measured", RUN, Source("cprofile", formula=formula))


def _python_headline(own: Profile, imports: Profile | None) -> str:
    apart = f", {format_quantity(imports.total, 's')} of it imports" if imports is not None else ""
    if not own.hotspots:
        return f"cProfile saw {format_quantity(own.total, 's')}{apart}."
    top = own.hotspots[0]
    return (
        f"{function_place(top)} has the most own time, {share_text(top.own, own.total)} of"
        f" {format_quantity(own.total, 's')} under cProfile{apart}."
    )


def _own_table(profile: Profile) -> Table:
    rows = _function_rows(profile, [(spot, spot.own) for spot in profile.hotspots])
    return Table("Python functions by own time", ("function", "own", "share", "calls"), rows)


def _cumulative_table(profile: Profile) -> Table:
    rows = _function_rows(profile, [(spot, spot.total or 0.0) for spot in _by_total(profile)])
    return Table("Python functions with all they call", ("function", "total", "share", "calls"), rows)


def _function_rows(profile: Profile, times: Sequence[tuple[Hotspot, float]]) -> tuple[tuple[str, ...], ...]:
    return tuple(
        (
            function_place(spot),
            format_quantity(seconds, "s"),
            share_text(seconds, profile.total),
            _call_count(spot),
        )
        for spot, seconds in times[:TOP_FUNCTIONS]
        if seconds > LEAST * profile.total
    )


def _by_total(profile: Profile) -> list[Hotspot]:
    return sorted(profile.hotspots, key=lambda spot: -(spot.total or 0.0))


def _import_table(profile: Profile) -> Table:
    rows = tuple(
        (_module_name(spot), format_quantity(spot.total, "s"), share_text(spot.total or 0.0, profile.total))
        for spot in _by_total(profile)[:IMPORT_ROWS]
    )
    return Table("Imports, each with what it imports in turn", ("module", "total", "share"), rows)


def _module_name(spot: Hotspot) -> str:
    """The last two parts of the module's file: `torch/__init__.py`."""
    parts = (spot.file or spot.function).replace("\\", "/").split("/")
    return "/".join(parts[-2:])


def _call_count(spot: Hotspot) -> str:
    return format_quantity(float(spot.calls), "count") if spot.calls is not None else "-"


def _python_notes(own: Profile, imports: Profile | None) -> tuple[str, ...]:
    notes = [
        "cProfile slows Python code more than native code: compare shares, not seconds, with other passes."
    ]
    if imports is not None and own.total > 0 and imports.total > 0.5 * own.total:
        part = format_percent(100 * imports.total / own.total)
        notes.append(
            f"Imports are {part} % of what was profiled: mark the work with profkit.region to leave them out."
        )
    return tuple(notes)


ROWS = 5  # lines worth a row; the file has fifty
LINE_COLUMNS = ("line", "size", "blocks")
METRICS = ("memory.rss_peak", "memory.rss_growth", "memory.device_peak", "memory.device_recommended")


def allocation_readings(allocations: Allocations) -> tuple[Reading, ...]:
    """memory.python_peak (B, of the region where one was marked) and memory.python_growth (B/iteration).

    Growth is the part that is certain: the lower end of the 95 % interval of the Theil-Sen slope, at least 0.
    """
    growth = allocations.growth
    peak = allocations.region_peak if allocations.region_peak is not None else allocations.peak
    where = "in the region" if allocations.region_peak is not None else "of the whole process"
    readings = [_memory_reading("memory.python_peak", float(peak), "B", f"largest traced size {where}")]
    if growth.low is None:
        readings.append(
            unavailable_reading("memory.python_growth", RUN, growth.reason, source=Source("tracemalloc"))
        )
    else:
        formula = "lower end of the 95 % interval of bytes held per iteration, at least 0"
        readings.append(_memory_reading("memory.python_growth", max(0.0, growth.low), "B/iteration", formula))
    return tuple(readings)


def _memory_reading(name: str, value: float, unit: str, formula: str) -> Reading:
    return Reading(name, value, unit, "measured", RUN, Source("tracemalloc", formula=formula))


def summarize_allocations(allocations: Allocations) -> Summary:
    """What tracemalloc saw: peak, leak or not, and the lines that hold and grow most."""
    growth, readings = allocations.growth, allocation_readings(allocations)
    peak = format_quantity(readings[0].value, "B")
    if growth.leak is None and allocations.steady:
        line = allocations.steady[0]
        leak = f"it grows as long as the program runs, most at {_line_place(line)}"
    elif growth.leak is None:
        leak = f"whether it leaks is not known ({growth.reason})"
    elif growth.leak:
        leak = f"each iteration leaves {format_quantity(growth.per_iteration, 'B')} behind: it leaks"
    else:
        leak = f"no leak in {plural(growth.iterations, 'iteration')}"
    tables = [_line_table("Lines that hold most", allocations.top)]
    if growth.leak:
        grown = _line_table("Lines that grow", [line for line in allocations.growing if line.size > 0])
        if allocations.growth_between is not None:
            first, last = allocations.growth_between
            grown = replace(grown, note=f"from iteration {first} to {last}")
        tables.insert(0, grown)
    if allocations.steady:
        tables.insert(0, _steady_table(allocations.steady))
    notes = list(allocations.notes)
    if growth.low is not None and growth.high is not None:
        low, high = format_quantity(growth.low, "B"), format_quantity(growth.high, "B")
        notes.append(
            f"Growth per iteration: 95 % interval {low} to {high}, of {growth.iterations} iterations."
        )
    return Summary(
        "memory",
        f"Python holds {peak} at most; {leak}.",
        readings,
        tuple(table for table in tables if table.rows),
        (*notes, *absence_notes(readings)),
    )


def _steady_table(steady: Sequence[SteadyLine]) -> Table:
    rows = tuple(
        (
            _line_place(line),
            format_quantity(float(line.last), "B"),
            format_quantity(float(line.blocks), "count"),
        )
        for line in steady[:ROWS]
    )
    end = format_quantity(steady[0].end, "s")
    note = f"held more at each of {steady[0].looks} looks, the last {end} after the start"
    return Table("Lines that grow", LINE_COLUMNS, rows, note)


def _line_table(title: str, lines: Sequence[AllocationLine]) -> Table:
    rows = tuple(
        (
            _line_place(line),
            format_quantity(float(line.size), "B"),
            format_quantity(float(line.count), "count"),
        )
        for line in lines[:ROWS]
    )
    return Table(title, LINE_COLUMNS, rows)


def _line_place(line: AllocationLine | SteadyLine) -> str:
    parts = line.file.replace("\\", "/").split("/")
    return shorten("/".join(parts[-2:]), 48) + f":{line.line}"


def summarize_memory(
    readings: Sequence[Reading], stored: Summary | None, missing: Sequence[Reading]
) -> Summary:
    """Resident memory (`readings`: memory.* of the process) joined to what tracemalloc said, if it did.

    `missing` says why there is no tracemalloc result, where there is none.
    """
    table = metric_table("Memory of the process", [r for r in readings if r.metric in METRICS])
    if stored is not None:
        known = {(r.metric, r.scope) for r in stored.readings}
        more = tuple(r for r in readings if (r.metric, r.scope) not in known)
        line_tables = tuple(t for t in stored.tables if t.columns == LINE_COLUMNS)
        joined = (table, *line_tables) if table is not None else line_tables
        return replace(stored, readings=(*stored.readings, *more), tables=joined)
    resident = next((r.value for r in readings if r.metric == "memory.rss_peak"), None)
    process = f"The process holds {format_quantity(resident, 'B')} at most. " if resident is not None else ""
    if process and missing and all(reading.code == "not-python" for reading in missing):
        return make_summary("memory", process.strip(), (*readings, *missing), [table])
    reason = first_reason(missing, "there is no tracemalloc result")
    headline = f"{process}What Python holds is not known: {reason}."
    return make_summary("memory", headline, (*readings, *missing), [table], absence_notes(missing))


TOP_TUNINGS = 6  # kernels in the table: more were tuned by hardly any workload, and nobody reads on


def summarize_triton(
    works: Sequence[TritonWork], timings: Sequence[Timing] = (), trace: GpuTrace | None = None
) -> Summary | None:
    """Tuning and compiling of the process that did most of it, and whether all passes ran the same configurations.

    None where no process told of Triton.
    """
    if not works:
        return None
    timed = [work for work in works if work.pass_name == "timing"]
    shown = max(timed or works, key=lambda work: (_tuned_seconds(work) or 0.0, work.compile_seconds or 0.0))
    tables = (_tuning_table(shown.tunings),) if shown.tunings else ()
    notes = [
        *_tuning_notes(shown),
        *_compile_notes(shown, trace),
        *_region_notes(timings, shown),
        *_agreement_notes(works, shown),
    ]
    return Summary("triton", _triton_headline(shown, timings), (), tables, tuple(notes))


def _tuned_seconds(work: TritonWork) -> float | None:
    seconds = [tuning.seconds for tuning in work.tunings if tuning.seconds is not None]
    return sum(seconds) if seconds else None


def _triton_headline(work: TritonWork, timings: Sequence[Timing]) -> str:
    tuned = [tuning for tuning in work.tunings if not tuning.cached]
    parts: list[str] = []
    if tuned:
        seconds = _tuned_seconds(work)
        took = f" in {format_quantity(seconds, 's')}" if seconds is not None else ""
        parts.append(f"Triton tuned {_tuned_kernels(tuned)}{took}{_tuning_outcome(tuned)}")
    elif work.tunings:
        outcome = _tuning_outcome(work.tunings)
        parts.append(
            f"Triton's choice for {_tuned_kernels(work.tunings)} came from its cache on disk{outcome}"
        )
    elif work.compile_seconds:
        new = work.binaries - (work.cached or 0)
        took = format_quantity(work.compile_seconds, "s")
        parts.append(f"Triton compiled {plural(new, 'kernel')} in {took} or more")
    elif work.cached is not None:
        parts.append(f"{plural(work.binaries, 'kernel')} of Triton came compiled from its cache on disk")
    else:
        parts.append(f"Triton loaded {plural(work.binaries, 'kernel')}; the compile time is not known")
    if (tuned or work.compile_seconds) and _are_benchmarks(timings):
        parts.append("left out of every time")
    return f"{'; '.join(parts)}."


def _tuning_outcome(tunings: Sequence[Tuning]) -> str:
    """`: 3 configurations tried, best BLOCK_M 128, 8 warps`; nothing where there is more than one outcome."""
    if len(tunings) > 1:
        return ""
    tried = tunings[0].configurations
    return (
        f": {plural(tried, 'configuration')} tried, best {tunings[0].best}"
        if tried
        else f": {tunings[0].best}"
    )


def _tuned_kernels(tunings: Sequence[Tuning]) -> str:
    names = list(dict.fromkeys(tuning.kernel for tuning in tunings))
    return shorten(names[0], 40) if len(names) == 1 else plural(len(names), "kernel")


def _are_benchmarks(timings: Sequence[Timing]) -> bool:
    """A benchmark's warm-up and what came before it are in no sample."""
    return bool(timings) and all(timing.kind == "benchmark" for timing in timings)


def _tuning_table(tunings: Sequence[Tuning]) -> Table:
    rows = tuple(
        (
            shorten(tuning.kernel, 28),
            shorten(tuning.key, 36) or "-",
            str(tuning.configurations) if tuning.configurations is not None else "-",
            "from disk"
            if tuning.cached
            else format_quantity(tuning.seconds, "s")
            if tuning.seconds is not None
            else "-",
        )
        for tuning in _longest_tunings(tunings)
    )
    note = (
        f"and {plural(len(tunings) - TOP_TUNINGS, 'further choice')}" if len(tunings) > TOP_TUNINGS else None
    )
    return Table("Tuned by Triton", ("kernel", "tuned for", "tried", "took"), rows, note)


def _longest_tunings(tunings: Sequence[Tuning]) -> list[Tuning]:
    return sorted(tunings, key=lambda tuning: -(tuning.seconds or 0.0))[:TOP_TUNINGS]


def _tuning_notes(work: TritonWork) -> list[str]:
    notes = []
    if len(work.tunings) > 1:
        notes += [
            f"{shorten(t.kernel, 40)} ({shorten(t.key, 60)}): {t.best}."
            for t in _longest_tunings(work.tunings)
        ]
    if any(tuning.seconds is not None for tuning in work.tunings):
        notes.append("What tuning took includes compiling the candidates.")
    notes += [
        f"{shorten(tuning.kernel, 40)}: {tuning.failed} of {tuning.configurations} configurations did not compile,"
        " or did not fit this device."
        for tuning in work.tunings[:TOP_TUNINGS]
        if tuning.failed
    ]
    if any(t.seconds is None and not t.cached for t in work.tunings):
        notes.append(
            "Triton keeps what tuning took for the last key of each kernel alone: the sum is a lower bound."
        )
    if work.left_out:
        notes.append(f"{plural(work.left_out, 'further choice')} of Triton's are not listed.")
    return notes


def _compile_notes(work: TritonWork, trace: GpuTrace | None) -> list[str]:
    loading = trace.compile_seconds if trace is not None else None
    apart = (
        f" Loading them onto the device took {format_quantity(loading, 's')} more, by the trace."
        if loading
        else ""
    )
    if not work.binaries:
        return []
    if work.cached is None or work.compile_seconds is None:
        return [f"What compiling took is not known: this Triton does not tell where its files are.{apart}"]
    new = work.binaries - work.cached
    if not new:
        return [f"Compiled: nothing; {plural(work.binaries, 'kernel')} lay in Triton's cache on disk.{apart}"]
    cached = (
        f"; {work.cached} more lay in its cache on disk"
        if work.cached
        else "; its cache on disk had none of them"
    )
    took = format_quantity(work.compile_seconds, "s")
    return [
        f"Compiled: {plural(new, 'kernel')} in {took} or more, by the times of their files{cached}.{apart}"
    ]


def _region_notes(timings: Sequence[Timing], work: TritonWork) -> list[str]:
    if (
        not timings
        or _are_benchmarks(timings)
        or (all(t.cached for t in work.tunings) and not work.compile_seconds)
    ):
        return []
    return [
        "A region whose first entry tunes or compiles has that in its first time, which is no sample"
        " where the entries after it are faster."
    ]


def _agreement_notes(works: Sequence[TritonWork], shown: TritonWork) -> list[str]:
    """Whether what was counted and traced is what was timed: each process chooses for itself."""
    chosen = {_tuning_key(tuning): tuning.best for tuning in shown.tunings}
    notes: list[str] = []
    compared = 0
    for work in works:
        for tuning in work.tunings:
            known = chosen.get(_tuning_key(tuning))
            if work is shown or known is None:
                continue
            compared += 1
            if tuning.best != known:
                notes.append(
                    f"{_pass_title(work)} ran {shorten(tuning.kernel, 40)} as {tuning.best}, the"
                    f" {_pass_title(shown)[4:]} as {known}: Triton chose again, so these are two kernels."
                )
    if compared and not notes:
        return ["Every pass ran the same configurations."]
    return list(dict.fromkeys(notes))[:TOP_TUNINGS]


def _pass_title(work: TritonWork) -> str:
    return "The timing" if work.pass_name == "timing" else f"The {work.pass_name} pass"


def _tuning_key(tuning: Tuning) -> tuple[str, str, str]:
    return tuning.module, tuning.kernel, tuning.key
