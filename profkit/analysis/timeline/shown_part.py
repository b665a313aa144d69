"""Which part of a trace is drawn: the step, or the entry of a region, of median length; else all of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from profkit.analysis.timeline.range_names import is_region
from profkit.analysis.timeline.records import TRANSFER, Range, Spool
from profkit.analysis.timeline.steady import SteadyPart, find_steady
from profkit.analysis.timeline.time_windows import EVER, TimeWindows
from profkit.core.types import TimelineKind

MIN_REPEATS = 3  # of what repeats: two alike may be chance
ALL = 0.9  # of the launches in the only entry of a region: what repeats in less of it is a part of a step, a layer


@dataclass(frozen=True)
class ShownPart:
    """The part from `begin` to `end`, in ns of the recording: one of `of` that are alike."""

    kind: TimelineKind
    begin: int
    end: int
    of: int = 1
    name: str = ""


@dataclass(frozen=True)
class Launches:
    """What one device did for one process, in the order of its launches, in ns.

    `first` and `last` bound the work of all devices: from the first launch to the end of the last activity.
    """

    when: Any
    start: Any
    end: Any
    first: int
    last: int

    def begin_of(self, launched: int) -> int | None:
        """Return when (ns) the device began the first work launched at `launched` or later; None without any."""
        at = int(self.when.searchsorted(launched))
        return int(self.start[at]) if at < len(self.when) else None


def launches_of(activities: Spool, lane: int) -> Launches:
    """Return the kernels of one process and device, which `lane` numbers as `trace.launch_order` does."""
    import numpy as np

    columns: list[Any] = []
    first, last = EVER[1], EVER[0]
    for block in activities:
        requested = np.where(block["launch"] >= 0, block["launch"], block["start"])
        first, last = min(first, int(requested.min())), max(last, int(block["end"].max()))
        mine = block[
            (block["kind"] != TRANSFER) & (((block["process"].astype("i8") << 16) | block["device"]) == lane)
        ]
        when = np.where(mine["launch"] >= 0, mine["launch"], mine["start"])
        columns.append(np.stack([when, mine["start"], mine["end"]]))
    rows = np.concatenate(columns, axis=1) if columns else np.zeros((3, 0), dtype=np.int64)
    when, start, end = rows[:, np.argsort(rows[0], kind="stable")]
    return Launches(when, start, end, first, last)


def choose_part(
    ranges: Sequence[Range],
    windows: TimeWindows,
    order: Any,
    steady: SteadyPart | None,
    filling: Sequence[bool],
    launches: Launches,
) -> ShownPart | None:
    """Choose the part of the trace to draw; None for a trace without a launch.

    It is the region's entry or the step of median length, else the whole trace. `order` is the `LaunchOrder` of
    the busiest device, `steady` what of it repeats, where nothing is marked.
    """
    if not len(order.sequence):
        return None
    inner = _repeated_inside(order, windows, filling) if steady is None and windows.marked else None
    if windows.marked and windows.bounds != (EVER,) and inner is None:
        entries = [_entry(launches, *bound) for bound in windows.bounds]
        found = _median([entry for entry in entries if entry is not None])
        name = next((range_.name for range_ in ranges if is_region(range_.name, range_.domain)), "")
        if found is not None:
            return ShownPart("region", *found, of=len(windows.bounds), name=name)
    steady = steady or inner
    if steady is not None and (found := _median(_steps(order, steady, launches))) is not None:
        return ShownPart("step", *found, of=steady.repeats)
    return ShownPart("trace", launches.first, launches.last)


def _entry(launches: Launches, begin: int, end: int) -> tuple[int, int] | None:
    """Return begin and end (ns) on the device of what was launched between two times; None for nothing.

    The host's time belongs to it, unless the device is so far behind that other entries lie in between.
    """
    first, last = launches.when.searchsorted([begin, end]).tolist()
    if first >= last:
        return None
    start, stop = int(launches.start[first:last].min()), int(launches.end[first:last].max())
    if end < begin or end >= EVER[1]:
        return start, stop
    return (begin if start - begin <= end - begin else start), max(stop, end if start <= end else stop)


def _repeated_inside(order: Any, windows: TimeWindows, filling: Sequence[bool]) -> SteadyPart | None:
    """Return what repeats in the only window, if nearly all (ALL) of the window's launches do."""
    import numpy as np

    at = np.flatnonzero(windows.number(order.times) >= 0)
    if len(windows.bounds) > 1 or not len(at):
        return None
    first, last = int(at[0]), int(at[-1]) + 1
    fills = order.filling if len(order.filling) == len(order.weights) else filling
    found = find_steady(order.sequence[first:last], order.weights, fills)
    if found is None or found.repeats < MIN_REPEATS or found.repeats * found.period < ALL * (last - first):
        return None
    return SteadyPart(found.first + first, found.last + first, found.period, found.repeats)


def _steps(order: Any, steady: SteadyPart, launches: Launches) -> list[tuple[int, int]]:
    """Return begin and end (ns) of the steps on the device.

    Where at least MIN_REPEATS steps have the same launches as the middle one, only those are returned.
    """
    period = max(1, steady.period)
    firsts = list(range(steady.first, steady.last - period + 1, period))
    middle = firsts[len(firsts) // 2] if firsts else steady.first
    usual = order.sequence[middle : middle + period]
    alike = [
        at
        for at in firsts
        if len(launches_of_step := order.sequence[at : at + period]) == len(usual)
        and (launches_of_step == usual).all()
    ]
    steps = []
    for at in alike if len(alike) >= MIN_REPEATS else firsts:
        begin = launches.begin_of(int(order.times[at]))
        until = at + period
        end = launches.begin_of(int(order.times[until])) if until < len(order.times) else None
        if end is None:
            first, last = launches.when.searchsorted([order.times[at], order.times[until - 1] + 1]).tolist()
            end = int(launches.end[first:last].max()) if first < last else None
        if begin is not None and end is not None and end > begin:
            steps.append((begin, end))
    return steps


def _median(found: Sequence[tuple[int, int]]) -> tuple[int, int] | None:
    ranked = sorted(found, key=lambda span: span[1] - span[0])
    return ranked[len(ranked) // 2] if ranked else None
