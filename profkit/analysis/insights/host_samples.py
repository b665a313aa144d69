"""Rules on sampled Python stacks: the hottest function with its line and caller, imports, and the line that waits.

Samples see all threads and processes, and charge nothing for calls. What they lack is told by cProfile, where it ran
too: how often a function was called, and whether a line of it works itself or calls a built-in function.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from profkit.analysis.insights import host_calls, host_python
from profkit.analysis.insights.evidence import RunEvidence, percent_text
from profkit.analysis.insights.host_calls import WORTH, brief_name
from profkit.analysis.insights.host_python import IMPORTS, INTERPRETED, interpreter_share, title_of
from profkit.analysis.stacks.python_code import IMPORT_SYSTEM, is_users_code
from profkit.core.formatting import format_quantity, plural
from profkit.core.types import CodeLine, Gain, Hotspot, Insight, Place, Profile

LEAST_SECONDS = 0.15  # of processor time in a function: some 15 samples
BUSY = 0.4  # of the time a kernel runs: then the host's own work is not what the program waits for
ONE_LINE = 0.4  # of a function's own time: a line with less is not its hottest one alone
# of time that a line waits over that in which it runs: a busy machine makes less of a computing one
WAIT_RATIO = 8.0
REAL_WAITS = 0.3  # of what the main thread waits
MAIN_WAIT = 0.5  # of what the main thread waits for, in one line
_ARRAYS = frozenset({"numpy", "torch", "pandas", "jax", "scipy"})
_LOOP = (
    "Move its loop into a library that works on whole arrays (numpy, pandas, torch), call it less often or "
    "cache its results (functools.cache), or compile it (numba, Cython)."
)


def hottest_function(run: RunEvidence) -> Iterator[Insight]:
    """The function of the program in whose own lines most processor time goes; by cProfile where nothing was sampled.

    A line that waits uses none, so a program that waits is not told to compute faster: the bound is of the whole time.
    """
    profile = run.profile("sampled-functions")
    if profile is None:
        yield from host_python.hottest_function(run)
        return
    first = max(
        (spot for spot in profile.hotspots if is_users_code(spot.file, spot.function)),
        key=lambda spot: spot.own,
        default=None,
    )
    interpreter = interpreter_share(run)
    working = _working_share(run)
    if (
        first is None
        or first.own < max(LEAST_SECONDS, WORTH * profile.total)
        or working * first.own < (WORTH * profile.total)
    ):
        return
    if (interpreter is not None and interpreter < INTERPRETED) or (run.busy is not None and run.busy > BUSY):
        return
    counted, share = _counted_calls(run, first), first.own / profile.total
    known = counted is not None and counted.own >= 0.5 * share * _counted_total(run)
    if interpreter is None and _ARRAYS & run.document.packages.keys() and not known:
        return  # a line that calls compiled code all the time: whether too much of it is not known
    named = {one.where.function for one in host_python.interpreter_constructs(run)}
    named |= {
        one.where.function for one in (*host_calls.slow_constructs(run), *host_calls.object_columns(run))
    }
    if {first.function, first.function.rpartition(".")[2]} & named:
        return
    yield _hot_insight(run, profile, first, working, interpreter is None)


def _hot_insight(
    run: RunEvidence, profile: Profile, first: Hotspot, working: float, unknown: bool
) -> Insight:
    share = first.own / profile.total
    line = first.lines[0] if first.lines and first.lines[0].value >= ONE_LINE * first.own else None
    counted = _counted_calls(run, first)
    built_in = _built_in(run, counted, share)
    where = (
        f", {percent_text(100 * line.value / profile.total)} in line {line.line} alone"
        if line is not None
        else ""
    )
    calls = f"; {plural(counted.calls, 'call')} by cProfile" if counted is not None and counted.calls else ""
    evidence = (
        f"{percent_text(100 * share)} of the processor time of Python's threads is in the lines of {title_of(first)}"
        f"{where}{_caller_text(first)}{calls}"
    )
    arrays = unknown and bool(_ARRAYS & run.document.packages.keys())
    if built_in is not None:
        title = f"Look at {built_in} in {title_of(first)}"
        change = (
            f"Call {built_in} less often, on less data or outside of the loop, keep what it gives, or use one that "
            "fits better."
        )
    elif arrays:
        title = f"Look at {title_of(first)} first"
        change = (
            f"If it works on single elements: {_LOOP[0].lower()}{_LOOP[1:]} If it works on whole arrays: fewer and "
            "larger operations, smaller types, torch.compile or numba."
        )
    else:
        title, change = f"Speed up {title_of(first)}: Python itself works there", _LOOP
    whole = _of_whole_run(run)
    return Insight(
        "hot-python-function",
        title,
        evidence,
        change,
        Place(function=first.function, file=first.file, line=line.line if line is not None else first.line),
        Gain(
            share * working if whole else share,
            "the run's time" if whole else "the processor time",
            "its own time, as if it took none"
            + (", of the time in which the program works" if whole else ""),
        ),
    )


def _caller_text(spot: Hotspot) -> str:
    """`; called from main, app.py:40`, where one line calls it for most of its time."""
    if not spot.callers or spot.callers[0].value < 0.5 * spot.own:
        return ""
    caller = spot.callers[0]
    return f"; called from {caller.function}, {_line_text(caller)}"


def _line_text(line: CodeLine) -> str:
    name = (line.file or "").replace("\\", "/").rpartition("/")[2]
    return f"{name}:{line.line}" if line.line else name


def _counted_calls(run: RunEvidence, spot: Hotspot) -> Hotspot | None:
    """The function as cProfile saw it."""
    counted = run.profile("own-time")
    same = (one for one in (counted.hotspots if counted is not None else ()))
    return next((one for one in same if one.file == spot.file and one.line == spot.line), None)


def _counted_total(run: RunEvidence) -> float:
    counted = run.profile("own-time")
    return counted.total if counted is not None else 0.0


def _built_in(run: RunEvidence, counted: Hotspot | None, share: float) -> str | None:
    """The built-in function that takes the time, where cProfile finds little of it in the function's own lines."""
    profile = run.profile("own-time")
    if profile is None or counted is None or counted.own > 0.5 * share * profile.total:
        return None
    built_in = [
        one for one in profile.hotspots if one.file is None and one.own >= 0.5 * share * profile.total
    ]
    return brief_name(built_in[0].function) if built_in else None


def _working_share(run: RunEvidence) -> float:
    """Share (0..1) of the wall time in which the program works: all of it where only a region was sampled."""
    split = run.document.time_split
    if not _of_whole_run(run) or split is None or split.waiting is None or split.wall <= 0:
        return 1.0
    return max(0.0, 1.0 - split.waiting / split.wall)


def _of_whole_run(run: RunEvidence) -> bool:
    timings, split = run.document.timings, run.document.time_split
    return split is not None and split.waiting is not None and (not timings or timings[0].kind == "process")


def heavy_imports(run: RunEvidence) -> Iterator[Insight]:
    """A program that spends a good part of its time on loading modules, and the lines that load them."""
    imports, threads = run.profile("sampled-imports"), run.profile("sampled-threads")
    timings = run.document.timings
    if (
        run.document.trace is not None
    ):  # of a program on a device the steps count, however few a profiled run has
        return
    if imports is None or threads is None:
        yield from host_python.heavy_imports(run)
        return
    whole = sum(spot.total or 0.0 for spot in threads.hotspots if spot.function == "main")
    share = min(1.0, imports.total / whole) if whole > 0 else 0.0
    if share < IMPORTS or (timings and timings[0].kind != "process"):
        return
    outermost = [spot for spot in imports.hotspots if spot.function != IMPORT_SYSTEM]
    heaviest = sorted(outermost, key=lambda spot: -spot.counters.get("outermost", 0.0))[:3]
    named = [spot for spot in heaviest if spot.counters.get("outermost", 0.0) >= 0.05 * imports.total]
    if not named:
        return
    first = named[0].callers[0] if named[0].callers else None
    yield Insight(
        "heavy-imports",
        f"Load less at the start: {named[0].function}",
        f"{percent_text(100 * share)} of the main threads' time is imports: {_import_names(named)}",
        "Import what only some runs need inside the function that needs it; import the submodule and not the "
        "package; keep one process alive instead of starting many.",
        Place(
            function=named[0].function,
            file=first.file if first is not None else named[0].file,
            line=first.line if first is not None else None,
        ),
        Gain(share, "the time of the main threads", "as if nothing were imported"),
    )


def _import_names(modules: Sequence[Hotspot]) -> str:
    return ", ".join(
        f"{spot.function} {format_quantity(spot.counters['outermost'], 's')}"
        + (f" ({_line_text(spot.callers[0])})" if spot.callers else "")
        for spot in modules
    )


def never_waits(run: RunEvidence) -> bool:
    """Whether the main thread was ready to run for most of the time in which it did not run: samples tell.

    A line that waits uses no processor time. Where a line uses some, its thread was held up by others.
    """
    lines = run.profile("sampled-lines")
    whole = sum(_main_waiting(line) for line in lines.hotspots) if lines is not None else 0.0
    if lines is None or whole <= 0:
        return False
    return sum(_main_waiting(line) for line in lines.hotspots if _is_wait(line)) < REAL_WAITS * whole


def waiting_line(run: RunEvidence) -> tuple[Hotspot, float] | None:
    """The line of the program in which its main thread waits most, and the share (0..1) of its waiting time."""
    lines = run.profile("sampled-lines")
    waits = [line for line in lines.hotspots if _is_wait(line)] if lines is not None else []
    if not waits:
        return None
    first = max(waits, key=_main_waiting)
    whole = sum(map(_main_waiting, waits))
    return (first, _main_waiting(first) / whole) if _main_waiting(first) >= MAIN_WAIT * whole > 0 else None


def _main_waiting(line: Hotspot) -> float:
    return line.counters.get("main_waiting", 0.0)


def _is_wait(line: Hotspot) -> bool:
    return line.counters.get("waiting", 0.0) >= WAIT_RATIO * (line.total or 0.0)


def _lines_of(run: RunEvidence, place: Place) -> list[Hotspot]:
    """The sampled lines of the function that begins at a place; samples call a method `Class.method`."""
    lines, functions = run.profile("sampled-lines"), run.profile("sampled-functions")
    if lines is None or functions is None or place.function is None or place.line is None:
        return []
    names = {
        spot.function
        for spot in functions.hotspots
        if (spot.file, spot.line) == (place.file, place.line)
        and spot.function.rpartition(".")[2] == place.function.rpartition(".")[2]
    }
    return [spot for spot in lines.hotspots if spot.file == place.file and spot.function in names]


def with_hottest_line(run: RunEvidence, insight: Insight) -> Insight:
    """An insight on a Python function of which the first line is known, at the line that takes most of its time."""
    hottest = max(_lines_of(run, insight.where), key=lambda spot: spot.total or 0.0, default=None)
    return (
        replace(insight, where=replace(insight.where, line=hottest.line)) if hottest is not None else insight
    )
