"""Places of a program in the steps that it repeats, at which the host computes or waits for what is no device.

The account of a step has a row for each while the device is idle, and a rule says of the largest what to change.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

from profkit.analysis.evidence import RunEvidence, outwards
from profkit.analysis.timeline.xla_order import runs_programs
from profkit.core.types import NOWHERE, CodeSpot, GpuTrace, LineSamples, Place, RunDocument

_LOADER = "/torch/utils/data/"
_OF_LOADERS = (".__getitem__", ".__getitems__", "collate_fn")  # methods that a loader calls for its batches
SEVERAL = 5  # calls of torch: a line with fewer belongs to what comes before the steps
# What the host does at a place, where it is the program's own work and no launch.
_HOSTS = ("python", "library", "native", "file", "network", "sleep", "child", "lock", "workers", "sync")


class StepPlace(NamedTuple):
    """A place of the host. `loaded`: a loader of torch leads to it. `share`: of a step (0..1), as it was sampled."""

    spot: CodeSpot
    loaded: bool
    share: float


def step_places(run: RunEvidence) -> Iterator[StepPlace]:
    """Yield the places, most time first. A line that launches or waits is none: its calls were timed."""
    trace = run.trace
    if trace is None or not trace.lines_of:
        return
    using = {(line.file, line.line) for line in trace.lines if line.launches or line.waits}
    for spot in run.document.hot_spots:
        if spot.kind not in _HOSTS or (spot.where.file, spot.where.line) in using:
            continue
        loaded = leads_from_step(run, spot)
        if loaded is not None:
            yield StepPlace(spot, loaded, min(1.0, spot.seconds / trace.lines_of))


_ALONE = 0.9  # of the time of all that is compiled again: where a line has less, others may be meant


def compiling_line(document: RunDocument, calls: int) -> Place:
    """Return the line at which JAX compiles again in so many calls; nowhere where several may be, or none is known."""
    again = [
        spot
        for profile in document.profiles
        if profile.kind == "recompilations"
        for spot in profile.hotspots
        if spot.counters.get("jax") and spot.file is not None
    ]
    seconds: dict[tuple[str | None, int | None, str | None], float] = {}
    counts: dict[tuple[str | None, int | None, str | None], int] = {}
    for spot in again:
        key = (spot.file, spot.line, spot.function)
        seconds[key] = seconds.get(key, 0.0) + (spot.total or 0.0)
        counts[key] = counts.get(key, 0) + (spot.calls or 0)
    most = max(seconds, key=seconds.__getitem__, default=None)
    if most is None or seconds[most] < _ALONE * sum(seconds.values()) or counts[most] < calls:
        return NOWHERE
    file, line, function = most
    return Place(function=function, file=file, line=line)


HOST_BOUND = 0.5  # of a step idle, and of that for want of launches
_JAX = re.compile(r"/(?:jax|jaxlib|flax|optax)/")
# Of functions of JAX that run where something is traced and compiled; what is compiled already passes them by.
_COMPILES = re.compile(r"compile|cache_miss|_run_python_pjit")
_COMPILING = 0.3  # of a line's time: beside it more goes into what comes before a compilation
# Also of a line's time. Up to here the rest is of the steps where all lines together have no more than was traced idle.
_MOSTLY_COMPILING = 0.6
_LONGER = 1.1  # times what was traced: a traced run is slower, and it saw the same steps
_MIN_SHARE = 0.05  # of a loop's time: a line with less may have been met before the steps alone
_UNCLEAR = 0.1  # of a loop's time, of lines that may do something else than launch


def dispatching_lines(document: RunDocument) -> list[tuple[Place, float]]:
    """Return the lines that launch JAX's operations one by one in the program's only loop, with their shares (0..1).

    None where stacks show another loop, or lines of it that do something else: the time is no line's then. What a line
    compiled is left out.
    """
    trace = document.trace
    if trace is None or not runs_programs(trace) or not trace.repeats or not trace.span or trace.busy is None:
        return []
    if trace.starved is None or min(1 - trace.busy / trace.span, trace.starved) < HOST_BOUND:
        return []
    lines = [line for sampled in document.sampled[:1] if not sampled.native for line in sampled.lines]
    loops: dict[_Loop, float] = {}
    looped: list[tuple[LineSamples, set[_Loop], float]] = []
    for line in lines:
        around, left = _loops_around(line, lines), line.main_wall - _compiled_in(line)
        if around:
            looped.append((line, around, left))
        for loop in around:
            loops[loop] = loops.get(loop, 0.0) + left
    main = max(loops, key=loops.__getitem__, default=None)
    own = [(line, left) for line, around, left in looped if main in around and _is_jax(line)]
    starved = trace.starved * (1 - trace.busy / trace.span)
    steady = _without_compiling(own, starved * (trace.span + (trace.untraced or 0.0)))
    total, every = sum(left for _, left in steady), sum(left for *_, left in looped)
    if not total or total < (1 - _UNCLEAR) * every:
        return []
    return [
        (Place(function=line.function, file=line.file, line=line.line), left / total)
        for line, left in steady
        if left >= _MIN_SHARE * total
    ]


def _without_compiling(
    lines: Sequence[tuple[LineSamples, float]], starved: float
) -> list[tuple[LineSamples, float]]:
    """Return the lines, with their seconds, whose time is the steps' and not what comes before a compilation.

    `starved`: seconds in which the steps had nothing on the device for want of launches; of those that were not traced
    as much as of the traced ones.
    """
    some = [(line, left) for line, left in lines if _compiled_in(line) < _MOSTLY_COMPILING * line.main_wall]
    if sum(left for _, left in some) <= _LONGER * starved:
        return some
    return [(line, left) for line, left in lines if _compiled_in(line) < _COMPILING * line.main_wall]


_Loop: TypeAlias = "tuple[str | None, str, int]"  # file, function, and the line at which it begins


def _loops_around(line: LineSamples, lines: Sequence[LineSamples]) -> set[_Loop]:
    """Return the loops of the program that a line is in, its own and those of the lines that lead to it."""
    places = {(line.file, line.function, line.line), *((o.file, o.function, o.line) for o in line.within)}
    return {
        (other.file, other.function, other.code.loop)
        for other in lines
        if (other.file, other.function, other.line) in places
        and other.code is not None
        and other.code.loop is not None
    }


def _compiled_in(line: LineSamples) -> float:
    every = (*line.below, *line.callees)
    return max((inner.value for inner in every if _COMPILES.search(inner.function)), default=0.0)


def _is_jax(line: LineSamples) -> bool:
    """Return whether most of a line's time is in JAX, or in what is built on it."""
    inside = sum(
        callee.value for callee in line.callees if _JAX.search((callee.file or "").replace("\\", "/"))
    )
    return inside > line.main_wall / 2


AS_LONG = 0.5  # of the steps' time as it was traced: in a loop that was seen for less they do not run


def holding_line(document: RunDocument, share: float) -> Place:
    """Return the line that most of certain calls, which take `share` (0..1) of a step, are made in; nowhere where it
    need not be one.

    Where a line has 95 % of a loop's time, and calls take 60 % of a step, at least 55 % of the step are both. It has to
    be so in each loop that may be the one of the steps, and nothing else may be.
    """
    trace = document.trace
    sampled = next((sampled for sampled in document.sampled if not sampled.native), None)
    if trace is None or not trace.span or not trace.repeats or sampled is None or share <= 0:
        return NOWHERE
    least, totals = AS_LONG * trace.span, dict[_Loop, float]()
    own: dict[tuple[str | None, str, int | None], dict[_Loop, float]] = {}
    for line in sampled.lines:
        loops = _seconds_in_loops(line, (*sampled.lines, *sampled.outer))
        imports = line.code is not None and line.code.text.startswith(("import ", "from "))
        if not loops and not imports and line.main_wall >= least:
            return NOWHERE  # which a loop of a library may call
        own[line.file, line.function, line.line] = loops
        for loop, seconds in loops.items():
            totals[loop] = totals.get(loop, 0.0) + seconds
    possible = {loop: seconds for loop, seconds in totals.items() if seconds >= least}
    for (file, function, number), loops in own.items() if possible else ():
        part = min(loops.get(loop, 0.0) / seconds for loop, seconds in possible.items())
        if share + part - 1 > share / 2:
            return Place(function=function, file=file, line=number)
    return NOWHERE


def _seconds_in_loops(line: LineSamples, lines: Sequence[LineSamples]) -> dict[_Loop, float]:
    """Return the main thread's seconds of a line in each loop of the program around it."""
    around = {(o.file, o.function, o.line): o.value for o in line.within}
    around[line.file, line.function, line.line] = line.main_wall
    seconds: dict[_Loop, dict[tuple[str | None, str, int | None], float]] = {}
    for other in lines:
        place = (other.file, other.function, other.line)
        if place in around and other.code is not None and other.code.loop is not None:
            loop = (other.file, other.function, other.code.loop)
            seconds.setdefault(loop, {})[place] = around[place]
    return {loop: min(line.main_wall, sum(places.values())) for loop, places in seconds.items()}


def is_loader(file: str | None) -> bool:
    """Return whether a file is part of torch's loader of data."""
    return _LOADER in (file or "").replace("\\", "/")


def leads_from_step(run: RunEvidence, spot: CodeSpot) -> bool | None:
    """Return whether a place belongs to what is repeated: True through a loader of torch, False without; None: it
    does not.

    It does where one of its callers is a loader, or stands among the lines of a function that use the device.
    """
    trace = run.trace
    steady: dict[tuple[str | None, str | None], list[int]] = {}
    for line in trace.lines if trace is not None else ():
        if line.calls >= SEVERAL:
            steady.setdefault((line.file, line.function), []).append(line.line)
    for place, lines in outwards(run, spot.where):
        if is_loader(place.file) or (place.function or "").endswith(_OF_LOADERS):
            return True
        around = steady.get((place.file, place.function))
        known = around is not None and place.line is not None
        if known and _calls_torch_only_there(place.file, place.function, trace):
            return False if _is_among(around or (), place.line or 0, lines) else None
    return None


def _is_among(around: Sequence[int], number: int, lines: Sequence[LineSamples]) -> bool:
    """Return whether a line of a function lies between those that use the device, or in the same loop."""
    loops = {sample.line: sample.code.loop for sample in lines if sample.code is not None}
    heads = [head for line in around if (head := loops.get(line)) is not None]
    return min(*heads, *around) <= number <= max(around) if heads else min(around) <= number <= max(around)


def _calls_torch_only_there(file: str | None, function: str | None, trace: GpuTrace | None) -> bool:
    """Return whether a function uses the device itself, and does not only make tensors on the host."""
    return trace is not None and any(
        (line.file, line.function) == (file, function) and (line.launches or line.waits or line.transfers)
        for line in trace.lines
    )
