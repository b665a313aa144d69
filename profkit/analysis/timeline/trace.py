"""From what a reader recorded to a `GpuTrace`: joined, restricted to the part that counts, and summed up.

Everything is read once and put aside in a spool, since what counts may be known only at the end; then summed up from
there. Memory does not grow with the trace, but for some 30 bytes per kernel where nothing is marked.
"""

from __future__ import annotations

from collections.abc import Iterator

from profkit.analysis.timeline.launches import CodeLoading, PendingCalls, bounds_with_copies, launch_order
from profkit.analysis.timeline.records import Columns, Recording, Spool
from profkit.analysis.timeline.steady import SteadyPart, fills_memory, find_steady
from profkit.analysis.timeline.sums import Sums
from profkit.analysis.timeline.windows import EVER, TimeWindows, marked_windows
from profkit.core.formatting import plural
from profkit.core.types import GpuTrace


def build_trace(recording: Recording) -> tuple[GpuTrace, tuple[str, ...]]:
    """The trace, and what has to be said of it."""
    with Spool() as activities, Spool() as calls:
        loading = CodeLoading(recording.tables.calls)
        _gather(recording, activities, calls, loading)
        windows, steady, notes = _part_that_counts(recording, activities, loading)
        sums = Sums(recording, windows)
        for block in activities:
            sums.add(block)
        for block in calls:
            sums.add_calls(block)
        trace = sums.trace(
            repeats=steady.repeats if steady is not None else None,
            compile_seconds=_compile_seconds(loading, windows),
        )
    return trace, (*notes, *_loading_notes(loading, windows), *sums.notes())


def _gather(recording: Recording, activities: Spool, calls: Spool, loading: CodeLoading) -> None:
    """Join both streams as they come: a call begins before what it asks for."""
    pending_calls = PendingCalls()
    pending = iter(recording.calls)
    reached = -(1 << 62)
    for block in recording.activities:
        latest = int(block["start"].max()) if len(block) else reached
        while reached < latest and (more := next(pending, None)) is not None:
            reached = _take_calls(more, pending_calls, calls, loading, reached)
        pending_calls.join(block)
        activities.add(block)
    for more in pending:
        reached = _take_calls(more, pending_calls, calls, loading, reached)


def _take_calls(
    block: Columns, pending_calls: PendingCalls, calls: Spool, loading: CodeLoading, reached: int
) -> int:
    if not len(block):
        return reached
    pending_calls.add(block)
    loading.add(block)
    calls.add(block)
    return max(reached, int(block["start"].max()))


def _part_that_counts(
    recording: Recording, activities: Spool, loading: CodeLoading
) -> tuple[TimeWindows, SteadyPart | None, tuple[str, ...]]:
    windows = marked_windows(recording.ranges, recording.profiler)
    if windows is not None:
        return windows, None, ()
    if recording.captured:
        return TimeWindows((EVER,), marked=True, tight=True), None, ()
    whole = TimeWindows((EVER,), marked=False, tight=True)
    import numpy as np

    table = recording.tables.configurations
    order = launch_order(activities, [fills_memory(configuration.name) for configuration in table])
    if not len(order.sequence):
        return whole, None, ()
    loads = np.searchsorted(order.times, [start for start, _, _ in loading.moments])
    steady = find_steady(order.sequence, order.weights, order.filling, loads.tolist())
    if steady is None:
        return (
            whole,
            None,
            ("nothing is marked and no loop takes most of it: the whole trace counts, set-up included",),
        )
    after = len(order.sequence) - steady.last
    whose = " of the busiest device" if order.lanes > 1 else ""
    note = (
        f"nothing is marked: the part that repeats counts as the workload ({steady.repeats} times, "
        f"{steady.last - steady.first} of {len(order.sequence)} launches{whose}), "
        f"what came before as set-up{_left_out_text(after)}"
    )
    bounds = bounds_with_copies(activities, order, steady)
    return TimeWindows((bounds,), marked=False, tight=True), steady, (note,)


def _left_out_text(after: int) -> str:
    return f"; {plural(after, 'launch', 'launches')} after it left out" if after else ""


def _compile_seconds(loading: CodeLoading, windows: TimeWindows) -> float | None:
    return loading.before(windows.begin) if windows.begin != EVER[0] else None


def _loading_notes(loading: CodeLoading, windows: TimeWindows) -> Iterator[str]:
    """Code that was loaded in a marked part is a cost of the first call, not of the work."""
    import numpy as np

    if not windows.marked or not loading.moments:
        return
    starts = np.array([start for start, _, _ in loading.moments])
    inside = windows.number(starts) >= 0
    if inside.any():
        spent = sum(took for (_, took, _), there in zip(loading.moments, inside, strict=True) if there) / 1e9
        yield (
            f"in the marked part the host loaded or compiled code {int(inside.sum())} times "
            f"({spent * 1e3:.1f} ms): a few calls before it would keep that out"
        )
