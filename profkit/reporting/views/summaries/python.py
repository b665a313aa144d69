"""What the Python process did, in words: time by function, imports, memory, and Triton's tuning and compiling."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from profkit.core.formatting import format_percent, format_quantity, plural, shorten
from profkit.core.types import (
    AllocationLine,
    CodeLine,
    Hotspot,
    Profile,
    Reading,
    RunDocument,
    SteadyLine,
    Timing,
    TritonWork,
    Tuning,
)
from profkit.reporting.view import DataTable
from profkit.reporting.views.summaries.parts import (
    NOTHING,
    TOP_FUNCTIONS,
    ConcernFacts,
    SummaryText,
    absence_notes,
    first_reason,
    function_place,
    hotspot_table,
    last_parts,
    metric_table,
    named_table,
    share_text,
    summary_text,
)

ROWS, THREAD_ROWS, LINE_ROWS = 5, 6, 8  # modules and lines worth a row: below these the rest is small change
LEAST = 0.001  # share below which a function is not worth a row: a hundred of them are still a tenth
SAMPLED_LEAST = 0.005  # of samples: one or two of a short program
FEW = 0.5  # seconds of processor time: some 50 samples
_SLOWED = "cProfile slows Python code more than native code: compare shares, not seconds, with other passes."
_SAMPLED = (
    "Sampled a hundred times a second where the interpreter lets threads change places: a call into compiled code "
    "counts for the line that makes it."
)
_IMPORTS = "Imports, each with what it imports in turn"


def python_text(facts: ConcernFacts) -> SummaryText | None:
    """By sampled stacks, else by cProfile: functions, lines, imports and threads; else why nothing is known."""
    kinds = {profile.kind: profile for profile in facts.document.profiles}
    own, imports = kinds.get("own-time"), kinds.get("imports")
    if "sampled-functions" in kinds:
        return _samples_text(facts)
    if own is None:
        if not facts.readings:
            return None
        note = (f"To have it: {facts.readings[0].fix}",) if facts.readings[0].fix else ()
        headline = f"Where Python's time goes is not known: {facts.readings[0].reason}."
        return summary_text("python", headline, facts.readings, (), note)
    apart = f", {format_quantity(imports.total, 's')} of it imports" if imports is not None else ""
    headline = f"cProfile saw {format_quantity(own.total, 's')}{apart}."
    if own.hotspots:
        top = own.hotspots[0]
        of = f"{share_text(top.own, own.total)} of {format_quantity(own.total, 's')} under cProfile"
        headline = f"{function_place(top)} has the most own time, {of}{apart}."
    tables = [_profiled_table("Python functions by own time", "own", own)]
    if (cumulative := kinds.get("cumulative-time")) is not None:
        tables.append(_profiled_table("Python functions with all they call", "total", _by_total(cumulative)))
    notes = [_SLOWED]
    if imports is not None:
        tables.append(_module_table(_by_total(imports)))
        if own.total > 0 and imports.total > 0.5 * own.total:
            part = format_percent(100 * imports.total / own.total)
            words = "of what was profiled: mark the work with profkit.region to leave them out"
            notes.append(f"Imports are {part} % {words}.")
    return summary_text("python", headline, facts.readings, tables, notes)


def _by_total(profile: Profile) -> Profile:
    return replace(profile, hotspots=tuple(sorted(profile.hotspots, key=lambda spot: -(spot.total or 0.0))))


def _profiled_table(title: str, what: str, profile: Profile) -> DataTable:
    def seconds(spot: Hotspot) -> float:
        return spot.own if what == "own" else spot.total or 0.0

    columns = (
        ("function", function_place),
        (what, lambda spot: format_quantity(seconds(spot), "s")),
        ("share", lambda spot: share_text(seconds(spot), profile.total)),
        ("calls", lambda spot: _count(spot.calls)),
    )
    return hotspot_table(title, profile, columns, most=TOP_FUNCTIONS, least=LEAST, by=seconds)


def _module_table(profile: Profile) -> DataTable:
    columns = (
        ("module", lambda spot: last_parts(spot.file or spot.function)),
        ("total", lambda spot: format_quantity(spot.total, "s")),
        ("share", lambda spot: share_text(spot.total or 0.0, profile.total)),
    )
    return hotspot_table(_IMPORTS, profile, columns, most=ROWS, least=-1.0)


def _count(calls: int | None) -> str:
    return format_quantity(float(calls), "count") if calls is not None else NOTHING


# ---------------------------------------------------------------- sampled stacks


def _samples_text(facts: ConcernFacts) -> SummaryText:
    """Functions with hottest line and main caller, the program's own lines, imports, and threads where several."""
    kinds = {profile.kind: profile for profile in facts.document.profiles}
    functions, calls = kinds["sampled-functions"], kinds.get("own-time")
    lines, imports, threads = (kinds.get(f"sampled-{what}") for what in ("lines", "imports", "threads"))  # type: ignore[call-overload]
    title = "Python functions by processor time"
    tables = [
        _sampled_table(title, functions, calls),
        _line_table(lines) if lines is not None else None,
        _import_table(imports) if imports is not None else None,
        _thread_table(threads) if threads is not None and len(threads.hotspots) > 1 else None,
    ]
    notes = [_SAMPLED]
    if functions.total < FEW:
        seconds = format_quantity(functions.total, "s")
        notes.append(f"Only {seconds} of processor time: shares are rough, a longer run gives more.")
    if calls is not None:
        notes.append("Calls are those that cProfile counted, in the process and thread that it sees.")
    headline = _samples_headline(functions, imports, threads)
    return summary_text("python", headline, facts.readings, tables, notes, brief=(title,))


def _samples_headline(functions: Profile, imports: Profile | None, threads: Profile | None) -> str:
    count = sum(int(s.counters.get("threads", 1)) for s in threads.hotspots) if threads is not None else 1
    of = f" of {plural(count, 'Python thread')}" if count > 1 else ""
    apart = f"; imports take {format_quantity(imports.total, 's')}" if imports is not None else ""
    if not functions.hotspots or functions.total <= 0:
        return f"No function of Python ran for as long as a sample{apart}."
    top, whole = functions.hotspots[0], functions.total
    share = f"{share_text(top.own, whole)} of {format_quantity(whole, 's')}"
    return f"{function_place(_hottest_line(top))} takes {share} of processor time{of}{apart}."


def _hottest_line(spot: Hotspot) -> Hotspot:
    """The function at the line that most of its own time is spent in, instead of its first."""
    return replace(spot, line=spot.lines[0].line) if spot.lines else spot


def _line_place(lines: Sequence[CodeLine]) -> str:
    """`main app.py:40`, of the first."""
    if not lines:
        return NOTHING
    return function_place(Hotspot(lines[0].function, 0.0, file=lines[0].file, line=lines[0].line), 30)


def _sampled_table(title: str, profile: Profile, calls: Profile | None) -> DataTable:
    """`calls`: the profile that counted them, where one did."""
    known = {(spot.file, spot.line): spot.calls for spot in calls.hotspots} if calls is not None else {}
    columns = (
        ("function, hottest line", lambda spot: function_place(_hottest_line(spot), 36)),
        ("own", lambda spot: share_text(spot.own, profile.total)),
        ("with callees", lambda spot: share_text(spot.total or 0.0, profile.total)),
        ("calls", lambda spot: _count(known.get((spot.file, spot.line)))),
        ("called from", lambda spot: _line_place(spot.callers)),
    )
    return hotspot_table(
        title, profile, columns, most=TOP_FUNCTIONS, least=SAMPLED_LEAST, words=("called from",)
    )


def _line_table(profile: Profile) -> DataTable:
    """Time below a line counts for it, also that of a library's functions."""
    columns = (
        ("line", lambda spot: function_place(spot, 40)),
        ("with libraries", lambda spot: share_text(spot.total or 0.0, profile.total)),
        ("own", lambda spot: share_text(spot.own, profile.total)),
        ("calls most", lambda spot: shorten(spot.lines[0].function, 28) if spot.lines else None),
    )
    title, least = "Lines of the program", SAMPLED_LEAST
    return hotspot_table(
        title,
        profile,
        columns,
        most=LINE_ROWS,
        least=least,
        by=lambda spot: spot.total or 0.0,
        words=("calls most",),
    )


def _import_table(profile: Profile) -> DataTable:
    columns = (
        ("module", lambda spot: shorten(spot.function, 36)),
        ("total", lambda spot: format_quantity(spot.total, "s")),
        ("share", lambda spot: share_text(spot.total or 0.0, profile.total)),
        ("imported at", lambda spot: _line_place(spot.callers)),
    )
    return hotspot_table(_IMPORTS, profile, columns, most=ROWS, least=-1.0, words=("imported at",))


def _thread_table(profile: Profile) -> DataTable:
    columns = (
        (
            "thread",
            lambda spot: shorten(f"{spot.library}: {spot.function}" if spot.library else spot.function, 40),
        ),
        ("how many", lambda spot: str(int(spot.counters.get("threads", 1)))),
        ("ran", lambda spot: format_quantity(spot.own, "s")),
        ("did not run", lambda spot: format_quantity(max(0.0, (spot.total or 0.0) - spot.own), "s")),
    )
    return hotspot_table("Python threads", profile, columns, most=THREAD_ROWS, least=-1.0)


# ---------------------------------------------------------------- memory

OF_PROCESS = ("memory.rss_peak", "memory.rss_growth", "memory.device_peak", "memory.device_recommended")


def memory_text(facts: ConcernFacts) -> SummaryText:
    """Resident memory, and what tracemalloc said of Python's: peak, leak or not, the lines that hold and grow most."""
    table = metric_table("Memory of the process", [r for r in facts.readings if r.metric in OF_PROCESS])
    if facts.document.allocations is not None:
        headline, tables, notes = _allocations_parts(facts.document, facts.readings)
        return summary_text("memory", headline, facts.readings, tables, notes, [table])
    missing = [r for r in facts.readings if r.value is None and r.metric.startswith("memory.python")]
    resident = next((r.value for r in facts.readings if r.metric == "memory.rss_peak"), None)
    process = f"The process holds {format_quantity(resident, 'B')} at most." if resident is not None else ""
    if process and missing and all(reading.code == "not-python" for reading in missing):
        return summary_text("memory", process, facts.readings, (), (), [table])
    reason = first_reason(missing, "there is no tracemalloc result")
    headline = f"{process} What Python holds is not known: {reason}.".strip()
    return summary_text("memory", headline, facts.readings, (), absence_notes(missing), [table])


def _allocations_parts(
    document: RunDocument, readings: Sequence[Reading]
) -> tuple[str, list[DataTable], list[str]]:
    found = document.allocations
    assert found is not None
    growth = found.growth
    peak = next((r.value for r in readings if r.metric == "memory.python_peak"), None)
    reason = next((r.reason for r in readings if r.metric == "memory.python_growth"), None)
    leak = f"no leak in {plural(growth.iterations, 'iteration')}"
    if growth.leak is None and found.steady:
        leak = f"it grows as long as the program runs, most at {_allocation_place(found.steady[0])}"
    elif growth.leak is None:
        leak = f"whether it leaks is not known ({reason})"
    elif growth.leak:
        leak = f"each iteration leaves {format_quantity(growth.per_iteration, 'B')} behind: it leaks"
    tables = []
    if found.steady:
        end = format_quantity(found.steady[0].end, "s")
        note = f"held more at each of {found.steady[0].looks} looks, the last {end} after the start"
        rows = [(line, line.last, line.blocks) for line in found.steady]
        tables.append(_allocation_table("Lines that grow", rows, note))
    if growth.leak:
        between = found.growth_between
        note = f"from iteration {between[0]} to {between[1]}" if between is not None else ""
        grown = [(line, line.size, line.count) for line in found.growing if line.size > 0]
        tables.append(_allocation_table("Lines that grow", grown, note))
    held = [(line, line.size, line.count) for line in found.top]
    tables.append(_allocation_table("Lines that hold most", held, ""))
    notes = list(found.notes)
    if growth.low is not None and growth.high is not None:
        low, high = format_quantity(growth.low, "B"), format_quantity(growth.high, "B")
        interval = f"95 % interval {low} to {high}, of {growth.iterations} iterations"
        notes.append(f"Growth per iteration: {interval}.")
    of_python = [r for r in readings if r.metric.startswith("memory.python")]
    return (
        f"Python holds {format_quantity(peak, 'B')} at most; {leak}.",
        tables,
        [*notes, *absence_notes(of_python)],
    )


def _allocation_table(
    title: str, lines: Sequence[tuple[AllocationLine | SteadyLine, int, int]], note: str
) -> DataTable:
    rows = [
        (
            _allocation_place(line),
            format_quantity(float(size), "B"),
            format_quantity(float(blocks), "count"),
        )
        for line, size, blocks in lines[:ROWS]
    ]
    return named_table(title, ("line", "size", "blocks"), rows, note)


def _allocation_place(line: AllocationLine | SteadyLine) -> str:
    return f"{shorten(last_parts(line.file), 48)}:{line.line}"


# ---------------------------------------------------------------- Triton

TOP_TUNINGS = 6  # kernels in the table: more were tuned by hardly any workload, and nobody reads on


def triton_text(facts: ConcernFacts) -> SummaryText | None:
    """Tuning of the process that did most of it, and whether all passes ran the same configurations.

    None where no process told of Triton.
    """
    works, timings = facts.document.triton, facts.document.timings
    if not works:
        return None
    timed = [work for work in works if work.pass_name == "timing"]
    shown = max(timed or works, key=lambda work: _tuned_seconds(work) or 0.0)
    notes = [
        *_tuning_notes(shown),
        *_region_notes(timings, shown),
        *_agreement_notes(works, shown),
    ]
    headline = _triton_headline(shown, timings)
    return summary_text("triton", headline, (), [_tuning_table(shown.tunings)], notes)


def _tuned_seconds(work: TritonWork) -> float | None:
    seconds = [tuning.seconds for tuning in work.tunings if tuning.seconds is not None]
    return sum(seconds) if seconds else None


def _triton_headline(work: TritonWork, timings: Sequence[Timing]) -> str:
    tuned = [tuning for tuning in work.tunings if not tuning.cached]
    if tuned:
        seconds = _tuned_seconds(work)
        took = f" in {format_quantity(seconds, 's')}" if seconds is not None else ""
        text = f"Triton tuned {_tuned_kernels(tuned)}{took}{_tuning_outcome(tuned)}"
    else:
        outcome = _tuning_outcome(work.tunings)
        text = f"Triton's choice for {_tuned_kernels(work.tunings)} came from its cache on disk{outcome}"
    return f"{text}; left out of every time." if tuned and _are_benchmarks(timings) else f"{text}."


def _tuning_outcome(tunings: Sequence[Tuning]) -> str:
    """`: 3 configurations tried, best BLOCK_M 128, 8 warps`; nothing where there is more than one outcome."""
    if len(tunings) > 1:
        return ""
    tried, best = tunings[0].configurations, tunings[0].best
    return f": {plural(tried, 'configuration')} tried, best {best}" if tried else f": {best}"


def _tuned_kernels(tunings: Sequence[Tuning]) -> str:
    names = list(dict.fromkeys(tuning.kernel for tuning in tunings))
    return shorten(names[0], 40) if len(names) == 1 else plural(len(names), "kernel")


def _are_benchmarks(timings: Sequence[Timing]) -> bool:
    """A benchmark's warm-up and what came before it are in no sample."""
    return bool(timings) and all(timing.kind == "benchmark" for timing in timings)


def _tuning_table(tunings: Sequence[Tuning]) -> DataTable:
    rows = [
        (
            shorten(tuning.kernel, 28),
            shorten(tuning.key, 36) or NOTHING,
            str(tuning.configurations) if tuning.configurations is not None else NOTHING,
            "from disk"
            if tuning.cached
            else format_quantity(tuning.seconds, "s")
            if tuning.seconds is not None
            else NOTHING,
        )
        for tuning in _longest_tunings(tunings)
    ]
    more = len(tunings) - TOP_TUNINGS
    note = f"and {plural(more, 'further choice')}" if more > 0 else None
    return named_table(
        "Tuned by Triton", ("kernel", "tuned for", "tried", "took"), rows, note, ("tuned for",)
    )


def _longest_tunings(tunings: Sequence[Tuning]) -> list[Tuning]:
    return sorted(tunings, key=lambda tuning: -(tuning.seconds or 0.0))[:TOP_TUNINGS]


def _tuning_notes(work: TritonWork) -> Iterator[str]:
    if len(work.tunings) > 1:
        for one in _longest_tunings(work.tunings):
            yield f"{shorten(one.kernel, 40)} ({shorten(one.key, 60)}): {one.best}."
    if any(tuning.seconds is not None for tuning in work.tunings):
        yield "What tuning took includes compiling the candidates."
    for tuning in work.tunings[:TOP_TUNINGS]:
        if tuning.failed:
            failed = f"{tuning.failed} of {tuning.configurations} configurations"
            yield f"{shorten(tuning.kernel, 40)}: {failed} did not compile, or did not fit this device."
    if any(tuning.seconds is None and not tuning.cached for tuning in work.tunings):
        yield "Triton keeps what tuning took for the last key of each kernel alone: the sum is a lower bound."
    if work.left_out:
        yield f"{plural(work.left_out, 'further choice')} of Triton's are not listed."


def _region_notes(timings: Sequence[Timing], work: TritonWork) -> Iterator[str]:
    loaded_alone = all(tuning.cached for tuning in work.tunings)
    if timings and not _are_benchmarks(timings) and not loaded_alone:
        yield (
            "A region whose first entry tunes has that in its first time, which is no sample"
            " where the entries after it are faster."
        )


def _agreement_notes(works: Sequence[TritonWork], shown: TritonWork) -> list[str]:
    """Whether what was counted and traced is what was timed: each process chooses for itself."""
    chosen = {_tuning_key(tuning): tuning.best for tuning in shown.tunings}
    others = [(w, t) for w in works if w is not shown for t in w.tunings if _tuning_key(t) in chosen]
    notes = [
        f"{_pass_title(work)} ran {shorten(tuning.kernel, 40)} as {tuning.best}, the {_pass_title(shown)[4:]} as"
        f" {chosen[_tuning_key(tuning)]}: Triton chose again, so these are two kernels."
        for work, tuning in others
        if tuning.best != chosen[_tuning_key(tuning)]
    ]
    if others and not notes:
        return ["Every pass ran the same configurations."]
    return list(dict.fromkeys(notes))[:TOP_TUNINGS]


def _pass_title(work: TritonWork) -> str:
    return "The timing" if work.pass_name == "timing" else f"The {work.pass_name} pass"


def _tuning_key(tuning: Tuning) -> tuple[str, str, str]:
    return tuning.module, tuning.kernel, tuning.key
