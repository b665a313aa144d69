"""Samples of short functions that were taken after what ran before them: it belongs to the line that called them.

The sampler gets the interpreter's lock where Python code runs. While `re.sub`, `sorted` or `map` work in C and call a
function of the program now and then, all samples are taken in that function, however little it does. So are those that
come during an operator, as `key in known`, in the function that is called next. cProfile times each of its calls, and
never as too short: what was sampled beyond that is the work of the code that calls it.
"""

from __future__ import annotations

from dataclasses import replace

from profkit.analysis.hot_spots.rows import last_part, profile_of, sampled_runs
from profkit.core.types import LineSamples, RunDocument, SampledTime

# Times what cProfile timed: the two runs differ, on a busy machine by half.
LATE = 3.0
WORTH_MOVING = 0.02  # of the run
BRIEF = 1e-3  # s of a call: in a longer one the samples are its own
WAITING = 0.5  # of a line's time: what waits may wait longer in one run than in the other
_Function = tuple[str | None, str]  # its file and name
_Place = tuple[str | None, int | None]  # a file and a line of it


def move_late_samples(document: RunDocument, sampled: SampledTime) -> SampledTime:
    """Return the samples with the time of such functions at the lines that called the compiled code, where these are
    known.
    """
    timed, runs = _brief_functions(document), sampled_runs(document, sampled)
    lines = list(sampled.lines)
    for function, once in timed.items():
        seconds = once * runs
        own = [at for at, line in enumerate(lines) if _function_of(line) == function and not _waits(line)]
        found = sum(lines[at].main_wall for at in own)
        if found <= LATE * seconds or found - seconds < WORTH_MOVING * sampled.wall:
            continue
        kept = seconds / found
        for at in own:
            caller = _caller(lines, sampled, lines[at])
            if caller is not None:
                lines[at], moved = _parted(lines[at], kept)
                _add(lines, caller, moved)
    return replace(sampled, lines=tuple(lines)) if lines != list(sampled.lines) else sampled


def _brief_functions(document: RunDocument) -> dict[_Function, float]:
    """Return the seconds of functions of the program that compiled code alone calls, or whose calls are brief, by a
    whole run under cProfile.
    """
    profile = profile_of(document, "program-calls")
    if profile is None or profile.partial:
        return {}
    timed: dict[_Function, float] = {}
    calls: dict[_Function, int] = {}
    others: set[_Function] = set()
    for edge in profile.hotspots:
        if edge.callee is None or edge.callee.file is None:
            continue
        function = edge.callee.file, last_part(edge.callee.function)
        if edge.file is not None:
            others.add(function)
        timed[function] = timed.get(function, 0.0) + (edge.total or edge.own)
        calls[function] = calls.get(function, 0) + (edge.calls or 0)
    return {
        function: seconds
        for function, seconds in timed.items()
        if function not in others or seconds < BRIEF * calls[function]
    }


def _waits(line: LineSamples) -> bool:
    return sum(line.waits.values()) > WAITING * line.main_wall


def _function_of(line: LineSamples) -> _Function:
    return line.file, last_part(line.function)


def _caller(lines: list[LineSamples], sampled: SampledTime, line: LineSamples) -> LineSamples | None:
    """Return the line that called the compiled code which called this one; None if no line has most of its calls."""
    first = max(line.callers, key=lambda caller: caller.value, default=None)
    if first is None or first.value < line.main_wall / 2:
        return None
    every = (*lines, *sampled.outer)
    return next(
        (
            line_samples
            for line_samples in every
            if (line_samples.file, line_samples.line) == (first.file, first.line)
        ),
        None,
    )


def _parted(line: LineSamples, kept: float) -> tuple[LineSamples, LineSamples]:
    """Return a line with a share (0..1) of its main thread's time, and the rest of it."""

    def share(factor: float) -> LineSamples:
        return replace(
            line,
            main_wall=factor * line.main_wall,
            main_cpu=factor * line.main_cpu,
            own=factor * line.own,
            waits={kind: factor * seconds for kind, seconds in line.waits.items()},
        )

    return share(kept), share(1 - kept)


def _add(lines: list[LineSamples], caller: LineSamples, moved: LineSamples) -> None:
    """Add what was moved to the time of a line. One that was no place yet, as it only called others, becomes one."""
    at = next((at for at, other in enumerate(lines) if other is caller), None)
    base = caller if at is not None else replace(caller, main_wall=0.0, main_cpu=0.0, own=0.0, waits={})
    waits = {
        kind: base.waits.get(kind, 0.0) + moved.waits.get(kind, 0.0) for kind in {**base.waits, **moved.waits}
    }
    more = replace(
        base,
        main_wall=base.main_wall + moved.main_wall,
        main_cpu=base.main_cpu + moved.main_cpu,
        own=base.own + moved.own,
        waits=waits,
    )
    if at is None:
        lines.append(more)
    else:
        lines[at] = more
