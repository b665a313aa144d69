"""What sampled Python stacks say: the hottest functions and lines, where it waits, imports and threads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from profkit.analysis.summaries.readings import TOP_FUNCTIONS, function_place, share_text
from profkit.core.formatting import format_quantity, plural, shorten
from profkit.core.types import RUN, CodeLine, Hotspot, Profile, ProfileKind, Reading, Source, Summary, Table

IMPORT_ROWS, THREAD_ROWS, LINE_ROWS = 5, 6, 8
LEAST = 0.005  # of the whole: one or two samples of a short program
FEW = 0.5  # seconds of processor time: some 50 samples
METHOD = (
    "Sampled a hundred times a second where the interpreter lets threads change places: a call into compiled code "
    "counts for the line that makes it."
)
_SOURCE = "stacks"


def has_samples(profiles: Sequence[Profile]) -> bool:
    """Whether Python stacks were sampled."""
    return any(profile.kind == "sampled-functions" for profile in profiles)


def hottest_line(spot: Hotspot) -> Hotspot:
    """The function at the line that most of its own time is spent in, instead of its first."""
    return replace(spot, line=spot.lines[0].line) if spot.lines else spot


def line_place(line: CodeLine) -> str:
    """`main app.py:40`."""
    return function_place(Hotspot(line.function, 0.0, file=line.file, line=line.line), 30)


def sample_readings(profiles: Sequence[Profile]) -> tuple[Reading, ...]:
    """Processor time of Python's threads without imports, and the wall time of imports (s)."""
    kinds = {profile.kind: profile for profile in profiles}
    functions, imports = kinds.get("sampled-functions"), kinds.get("sampled-imports")
    if functions is None:
        return ()
    seconds = sum(spot.own for spot in functions.hotspots)
    readings = [_reading("time.python", seconds, "processor time sampled outside of imports")]
    if imports is not None:
        readings.append(_reading("time.import", imports.total, "wall time sampled in imports"))
    return tuple(readings)


def _reading(name: str, seconds: float, formula: str) -> Reading:
    return Reading(name, seconds, "s", "estimated", RUN, Source(_SOURCE, formula=formula))


def summarize_samples(profiles: Sequence[Profile]) -> Summary:
    """Functions with hottest line and main caller, the program's own lines, imports, and threads where several."""
    kinds: Mapping[ProfileKind | None, Profile] = {profile.kind: profile for profile in profiles}
    functions = kinds["sampled-functions"]
    tables = [_function_table(functions, kinds.get("own-time"))]
    lines, imports, threads = (
        kinds.get(kind) for kind in ("sampled-lines", "sampled-imports", "sampled-threads")
    )
    if lines is not None:
        tables.append(_line_table(lines))
    if imports is not None:
        tables.append(_import_table(imports))
    if threads is not None and len(threads.hotspots) > 1:
        tables.append(_thread_table(threads))
    return Summary(
        "python",
        _headline(functions, imports, threads),
        sample_readings(profiles),
        tuple(table for table in tables if table.rows),
        tuple(_notes(functions, kinds.get("own-time"))),
    )


def _headline(functions: Profile, imports: Profile | None, threads: Profile | None) -> str:
    count = (
        sum(int(spot.counters.get("threads", 1)) for spot in threads.hotspots) if threads is not None else 1
    )
    of = f"{format_quantity(functions.total, 's')} of processor time"
    of += f" of {plural(count, 'Python thread')}" if count > 1 else ""
    apart = f"; imports take {format_quantity(imports.total, 's')}" if imports is not None else ""
    if not functions.hotspots or functions.total <= 0:
        return f"No function of Python ran for as long as a sample{apart}."
    top = functions.hotspots[0]
    return f"{function_place(hottest_line(top))} takes {share_text(top.own, functions.total)} of {of}{apart}."


def _function_table(profile: Profile, calls: Profile | None) -> Table:
    """`calls`: the profile that counted them, where one did."""
    known = {(spot.file, spot.line): spot.calls for spot in calls.hotspots} if calls is not None else {}
    counted = bool(known)
    rows = tuple(
        (
            function_place(hottest_line(spot), 36),
            share_text(spot.own, profile.total),
            share_text(spot.total or 0.0, profile.total),
            *((_count(known.get((spot.file, spot.line))),) if counted else ()),
            line_place(spot.callers[0]) if spot.callers else "-",
        )
        for spot in profile.hotspots[:TOP_FUNCTIONS]
        if spot.own > LEAST * profile.total
    )
    columns = (
        "function, hottest line",
        "own",
        "with callees",
        *(("calls",) if counted else ()),
        "called from",
    )
    return Table("Python functions by processor time", columns, rows, main=True)


def _count(calls: int | None) -> str:
    return format_quantity(float(calls), "count") if calls is not None else "-"


def _line_table(profile: Profile) -> Table:
    """Time below a line counts for it, also that of a library's functions."""
    rows = tuple(
        (
            function_place(spot, 40),
            share_text(spot.total or 0.0, profile.total),
            share_text(spot.own, profile.total),
            shorten(spot.lines[0].function, 28) if spot.lines else "-",
        )
        for spot in profile.hotspots[:LINE_ROWS]
        if (spot.total or 0.0) > LEAST * profile.total
    )
    return Table("Lines of the program", ("line", "with libraries", "own", "calls most"), rows)


def _import_table(profile: Profile) -> Table:
    rows = tuple(
        (
            shorten(spot.function, 36),
            format_quantity(spot.total, "s"),
            share_text(spot.total or 0.0, profile.total),
            line_place(spot.callers[0]) if spot.callers else "-",
        )
        for spot in profile.hotspots[:IMPORT_ROWS]
    )
    columns = ("module", "total", "share", "imported at")
    return Table("Imports, each with what it imports in turn", columns, rows)


def _thread_table(profile: Profile) -> Table:
    rows = tuple(
        (
            shorten(f"{spot.library}: {spot.function}" if spot.library else spot.function, 40),
            str(int(spot.counters.get("threads", 1))),
            format_quantity(spot.own, "s"),
            format_quantity(max(0.0, (spot.total or 0.0) - spot.own), "s"),
        )
        for spot in profile.hotspots[:THREAD_ROWS]
    )
    return Table("Python threads", ("thread", "how many", "ran", "did not run"), rows)


def _notes(functions: Profile, calls: Profile | None) -> list[str]:
    notes = [METHOD]
    if functions.total < FEW:
        seconds = format_quantity(functions.total, "s")
        notes.append(f"Only {seconds} of processor time: shares are rough, a longer run gives more.")
    if calls is not None:
        notes.append("Calls are those that cProfile counted, in the process and thread that it sees.")
    return notes
