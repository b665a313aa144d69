"""From what a reader recorded to a `GpuTrace`: joined, restricted to the part that counts, and summed up.

Everything is read once and stored in a spool, since what counts may be known only at the end; then it is
summed up from there. Memory does not grow with the trace, except for some 30 bytes per kernel where nothing
is marked, and 16 for each time that a device waited for the host.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from profkit.analysis.kernel_names.owner import is_tuning_kernel, kernel_owner
from profkit.analysis.timeline.joined_recordings import MODULE
from profkit.analysis.timeline.phases import LaunchClues
from profkit.analysis.timeline.range_names import range_meaning
from profkit.analysis.timeline.records import TRANSFER, Columns, Range, Recording, Spool
from profkit.analysis.timeline.shown_part import choose_part, launches_of
from profkit.analysis.timeline.steady import SteadyPart, fills_memory, find_steady
from profkit.analysis.timeline.step_record import build_timeline
from profkit.analysis.timeline.sums import TraceSums
from profkit.analysis.timeline.time_windows import EVER, TimeWindows, marked_windows, merge_intervals
from profkit.core.types import Fact, GpuLoop, GpuTrace, Kernel, Timeline


def build_trace(recording: Recording) -> tuple[GpuTrace, tuple[Fact, ...]]:
    """Build the trace, and the notes about it."""
    trace, notes, _ = build_ordered_trace(recording)
    return trace, notes


def build_ordered_trace(
    recording: Recording,
) -> tuple[GpuTrace, tuple[Fact, ...], tuple[tuple[int, float], ...]]:
    """Build the trace, the notes about it, and the first launches of one device with their seconds."""
    with Spool() as activities, Spool() as calls:
        loading, repeats = CodeLoading(recording.tables.calls), DuplicateFilter()
        _gather(recording, activities, calls, loading, repeats)
        windows, steady, loops, notes = _part_that_counts(recording, activities, loading)
        sums = TraceSums(recording, windows)
        for block in activities:
            sums.add(block)
        for block in calls:
            sums.add_calls(block)
        trace = sums.trace(repeats=steady.repeats if steady is not None else None)
        timeline = _timeline(recording, activities, calls, windows, steady, sums)
        trace = replace(trace, timeline=timeline, loops=loops)
    return trace, (*notes, *_loading_notes(loading, windows), *repeats.notes()), sums.sequence(trace)


def _timeline(
    recording: Recording,
    activities: Spool,
    calls: Spool,
    windows: TimeWindows,
    steady: SteadyPart | None,
    sums: TraceSums,
) -> Timeline | None:
    """Build the timeline of one typical step; None where nothing was launched."""
    filling = [fills_memory(configuration.name) for configuration in recording.tables.configurations]
    order = launch_order(activities, filling)
    part = choose_part(recording.ranges, windows, order, steady, filling, launches_of(activities, order.lane))
    return build_timeline(recording, activities, calls, part, sums.origins) if part is not None else None


class DuplicateFilter:
    """Drops activities that a report contains twice, and counts them."""

    def __init__(self) -> None:
        self._last: Columns | None = None  # the rows that began last
        self.twice = 0

    def without(self, block: Columns) -> Columns:
        """Return the rows of a block (columns ACTIVITY, by their starts) that did not occur before."""
        import numpy as np

        if not len(block):
            return block
        before = 0 if self._last is None else len(self._last)
        rows = block if self._last is None else np.concatenate([self._last, block])
        again = _repeats(rows)
        self._last = rows[rows["start"] == rows["start"][-1]]
        if not again.any():
            return block
        self.twice += int(np.count_nonzero(again[before:]))
        first_copies: Columns = rows[before:][~again[before:]]
        return first_copies

    def notes(self) -> Iterator[Fact]:
        """Yield a note with the number of rows that were dropped, if there were any."""
        if self.twice:
            yield Fact.of("told-twice", count=self.twice)


# On one stream nothing begins and ends with something else: what is the same in all of these is one thing.
_SAME = ("start", "end", "key", "what", "bytes", "stream", "process", "device", "kind")


def _repeats(rows: Columns) -> Any:
    """Return for each row, ordered by their starts, whether an earlier one is the same.

    False where no stream or no launch is known.
    """
    import numpy as np

    again = np.zeros(len(rows), dtype=bool)
    starts = rows["start"]
    near = np.zeros(len(rows), dtype=bool)
    near[1:] = starts[1:] == starts[:-1]
    near[:-1] |= near[1:].copy()
    at = np.flatnonzero(near & (rows["stream"] >= 0) & (rows["key"] >= 0))
    if len(at):
        kept = rows[at]
        _, numbers = np.unique(
            np.stack([kept[name].astype(np.int64) for name in _SAME], axis=1), axis=0, return_inverse=True
        )
        first = np.zeros(len(at), dtype=bool)
        first[np.unique(numbers.reshape(-1), return_index=True)[1]] = True
        again[at] = ~first
    return again


def _gather(
    recording: Recording, activities: Spool, calls: Spool, loading: CodeLoading, repeats: DuplicateFilter
) -> None:
    """Join activities with calls as both are read, since a call begins before what it launches."""
    pending_calls = PendingCalls()
    pending = iter(recording.calls)
    reached = -(1 << 62)
    for block in recording.activities:
        latest = int(block["start"].max()) if len(block) else reached
        while reached < latest and (more := next(pending, None)) is not None:
            reached = _take_calls(more, pending_calls, calls, loading, reached)
        block = repeats.without(block)
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
) -> tuple[TimeWindows, SteadyPart | None, tuple[GpuLoop, ...], tuple[Fact, ...]]:
    windows = marked_windows(recording.ranges, recording.profiler)
    if windows is not None:
        return windows, None, (), ()
    if recording.captured:
        return TimeWindows((EVER,), marked=True, tight=True), None, (), ()
    whole = TimeWindows((EVER,), marked=False, tight=True)
    import numpy as np

    table = recording.tables.configurations
    order = launch_order(activities, [fills_memory(configuration.name) for configuration in table])
    if not len(order.sequence):
        return whole, None, (), ()
    # Lines of the program are written in the first part of a run alone: half of them have to be in what counts.
    lines = [
        range_.start
        for range_ in recording.ranges
        if range_meaning(range_.name, range_.domain).line is not None
    ]
    latest = lines[len(lines) // 2] if lines else EVER[1]
    loads = np.searchsorted(order.times, [start for start, _ in loading.moments if start <= latest])
    programs = launched_programs(recording.ranges, order.times)
    steady = _steady_part(order, table, loads.tolist(), programs)
    if steady is None:
        return whole, None, (), (Fact("whole-trace"),)
    later = sum(loop.last - loop.first for loop in steady.others if loop.first >= steady.last)
    note = Fact.of(
        "repeated-part",
        repeats=steady.repeats,
        launches=steady.last - steady.first,
        of=len(order.sequence),
        lanes=order.lanes,
        after=len(order.sequence) - steady.last - later,
    )
    bounds = bounds_with_copies(activities, order, steady)
    windows = TimeWindows(_without_compiling(bounds, recording, steady), marked=False, tight=True)
    loops = other_loops(activities, order, steady)
    others = (Fact.of("other-loop", **asdict(loop)) for loop in loops)
    return windows, steady, loops, (note, *others)


def other_loops(activities: Spool, order: LaunchOrder, steady: SteadyPart) -> tuple[GpuLoop, ...]:
    """Return the loops outside what counts, each from its first kernel's begin to its last one's end."""
    if not steady.others:
        return ()
    launches = launches_of(activities, order.lane)
    loops = []
    for part in steady.others:
        until = int(order.times[part.last - 1]) + 1
        first, last = launches.when.searchsorted([order.times[part.first], until]).tolist()
        took = int(launches.end[first:last].max()) - int(launches.start[first:last].min())
        loops.append(GpuLoop(part.repeats, took / 1e9, before=part.first < steady.first))
    return tuple(loops)


def _without_compiling(
    bounds: tuple[int, int], recording: Recording, steady: SteadyPart
) -> tuple[tuple[int, int], ...]:
    """Cut the times in which the host compiled out of what repeats, where few of the steps have any.

    There are at least SELDOM steps for each compilation then.
    """
    begin, end = bounds
    inside = [
        interval
        for interval in merge_intervals(recording.compiling)
        if begin < interval[0] and interval[1] < end
    ]
    if not inside or SELDOM * len(inside) > steady.repeats:
        return (bounds,)
    begins, ends = [begin, *(until + 1 for _, until in inside)], [*(since - 1 for since, _ in inside), end]
    return tuple((first, last) for first, last in zip(begins, ends, strict=True) if first <= last)


SELDOM = 20  # steps for each compilation: what compiles more often belongs to the steps
# Of the kernels' time: what repeats with less may be a piece of something that only changes its sizes.
MIN_REPEATING = 0.5
MIN_STEP_LAUNCHES = (
    10  # launches of a step that is known by its kernels' names: loops of a few are tuning, or layers
)
_LIBRARIES = ("cublas", "cutlass", "cudnn")  # which choose another kernel for another size
_DIGITS = re.compile(r"\d+")


def launched_programs(ranges: Sequence[Range], times: Any) -> Any:
    """Return the number of XLA's program that made each launch, -1 where none did.

    Empty where no program is recorded.
    """
    import numpy as np

    named = [(range_, MODULE.search(range_.name)) for range_ in ranges if "hlo_module" in range_.name]
    entries = sorted(
        (range_.start, range_.end if range_.end is not None else EVER[1], module[1])
        for range_, module in named
        if module is not None
    )
    if not entries:
        return np.zeros(0, dtype=np.int32)
    starts, ends, names = zip(*entries, strict=True)
    numbers = np.unique(np.array(names), return_inverse=True)[1].reshape(-1)
    at = np.maximum(np.searchsorted(starts, times, side="right") - 1, 0)
    inside = (times >= np.array(starts)[at]) & (times <= np.array(ends)[at])
    return np.where(inside, numbers[at], -1)


def _steady_part(
    order: LaunchOrder, table: Sequence[Kernel], loads: Sequence[int], programs: Any
) -> SteadyPart | None:
    """Find what repeats by launch configurations; where that is little of the time, by kernels' names.

    A sequence that grows by a token has other grids in each step. By name alone layers of other sizes would be
    alike, too, and so would the candidates of a tuner: configurations come first, and most of what they find has
    to be of the same kernels.
    """
    import numpy as np

    kinds: dict[str, int] = {}
    numbers = [
        kinds.setdefault(
            _kind_of(table[number].name) if number < len(table) else f"[graph {number}]", len(kinds)
        )
        for number in range(len(order.weights))
    ]
    tuning = [number < len(table) and is_tuning_kernel(table[number].name) for number in range(len(numbers))]
    clues = LaunchClues(programs, numbers, tuning)
    steady = find_steady(order.sequence, order.weights, order.filling, loads, clues)
    cost = np.asarray(order.weights, dtype=np.float64)[order.sequence]
    loops = (steady, *steady.others) if steady is not None else ()
    covered = sum(cost[loop.first : loop.last].sum() for loop in loops) / cost.sum() if cost.any() else 0.0
    if covered >= MIN_REPEATING:
        return steady
    sequence = np.array(numbers, dtype=np.int32)[order.sequence]
    counts = np.maximum(np.bincount(sequence, minlength=len(kinds)), 1)
    weights = (np.bincount(sequence, cost, minlength=len(kinds)) / counts).tolist()
    filling = dict(zip(numbers, order.filling, strict=True))
    clues = LaunchClues(programs)
    alike = find_steady(sequence, weights, [filling[number] for number in range(len(kinds))], loads, clues)
    if (
        alike is None
        or alike.period < MIN_STEP_LAUNCHES
        or cost[alike.first : alike.last].sum() < MIN_REPEATING * cost.sum()
    ):
        return steady
    known = set(sequence[alike.first : alike.last].tolist())
    pieces = sequence[steady.first : steady.last].tolist() if steady is not None else []
    same = sum(kind in known for kind in pieces)
    return alike if same >= MIN_REPEATING * len(pieces) else steady


def _kind_of(name: str) -> str:
    """Return a kernel's name without numbers; for a library that chooses kernels by size the library's name."""
    owner = kernel_owner(name)
    return owner if owner in _LIBRARIES else _DIGITS.sub("", name)


def _loading_notes(loading: CodeLoading, windows: TimeWindows) -> Iterator[Fact]:
    """Yield a note on code that was loaded in a marked part: a cost of the first call, not of the work."""
    import numpy as np

    if not windows.marked or not loading.moments:
        return
    starts, took = np.array(loading.moments).T
    inside = windows.number(starts) >= 0
    if inside.any():
        yield Fact.of("loaded-code", count=int(inside.sum()), seconds=float(took[inside].sum()) / 1e9)


# Calls that are kept while the work that they started has not been seen. A device queue holds about a thousand
# launches, so this is hundreds of full queues.
MAX_KEPT = 1 << 18


class PendingCalls:
    """Keeps calls until their work is seen, by key: a process and its correlation number are unique."""

    def __init__(self) -> None:
        self._kept: Columns | None = None  # sorted by key

    def add(self, calls: Columns) -> None:
        """Remember `calls` (columns CALL), and forget the oldest where there are too many."""
        import numpy as np

        calls = calls[calls["key"] >= 0]
        if not len(calls):
            return
        calls_by_key = calls if self._kept is None else np.concatenate([self._kept, calls])
        if len(calls_by_key) > MAX_KEPT:
            calls_by_key = calls_by_key[np.argsort(calls_by_key["start"], kind="stable")][-(MAX_KEPT // 2) :]
        self._kept = calls_by_key[np.argsort(calls_by_key["key"], kind="stable")]

    def join(self, activities: Columns) -> None:
        """Fill in `launch`, `call` and `thread` of `activities` (columns ACTIVITY) where their call is known."""
        import numpy as np

        calls = self._kept
        if calls is None or not len(activities):
            return
        keys = calls["key"]
        at = np.searchsorted(keys, activities["key"])
        at[at == len(keys)] = 0
        joined = (keys[at] == activities["key"]) & (activities["key"] >= 0)
        at = at[joined]
        activities["launch"][joined] = calls["start"][at]
        activities["call"][joined] = calls["end"][at] - calls["start"][at]
        activities["thread"][joined] = calls["thread"][at]


# Compiled just now (Triton, NVRTC, Numba), or long ago and loaded when first used.
_LOADS = re.compile(
    r"^cu(?:da)?(?:Library(?:Load|GetKernel)|Module(?:Load|GetFunction|LoadFatBinary)|Link(?:Complete|AddData)\b)|^nvrtc|"
    r"^JAX compiles$",
    re.IGNORECASE,
)


@dataclass
class CodeLoading:
    """Notes every load of code, fed with all calls in order.

    `moments` holds `(begin, duration)` of each load, in ns.
    """

    names: list[str]  # the table of calls; it may grow
    moments: list[tuple[int, int]] = field(default_factory=list)

    def add(self, calls: Columns) -> None:
        """Note the loads in a block of calls (columns CALL)."""
        import numpy as np

        loads = np.array([_LOADS.search(name) is not None for name in self.names] or [False])
        found = calls[loads[calls["name"]]]
        self.moments += zip(found["start"].tolist(), (found["end"] - found["start"]).tolist(), strict=True)


@dataclass(frozen=True)
class LaunchOrder:
    """The launches in order: for each the number of what was launched, and when (ns).

    `weights` and `filling` are indexed by that number: mean ns, and whether it only fills memory. One launch of a
    CUDA graph is one entry with a number of its own: its nodes come and go together.
    """

    sequence: Any
    times: Any
    weights: list[float]
    filling: list[bool]
    lanes: int = 1  # pairs of a process and a device that launched;
    lane: int = -1  # this is one of them


def launch_order(activities: Spool, filling: Sequence[bool]) -> LaunchOrder:
    """Return the launches of the process and device with most kernel time, in order.

    `filling` is by configuration. Of several processes or devices one is enough to know when the workload began.
    """
    import numpy as np

    busiest, graphs, lanes = _busiest_lane(activities)
    numbers = list(filling)
    total, count = np.zeros(len(numbers)), np.zeros(len(numbers))
    parts: list[tuple[Any, ...]] = []
    for block in activities:
        kernels = block[block["kind"] != TRANSFER]
        mine = kernels[_lanes(kernels) == busiest]
        if not len(mine):
            continue
        spent = mine["end"] - mine["start"]
        total += np.bincount(mine["what"], spent, minlength=len(numbers))
        count += np.bincount(mine["what"], minlength=len(numbers))
        when = np.where(mine["launch"] >= 0, mine["launch"], mine["start"])
        key = np.where(mine["graph"] & (mine["key"] >= 0), mine["key"], -1)
        parts.append((mine["what"].copy(), when, *((key, spent) if graphs else ())))
    if not parts:
        return LaunchOrder(np.zeros(0, np.int32), np.zeros(0, np.int64), [], [])
    what, when, *more = (np.concatenate(column) for column in zip(*parts, strict=True))
    parts.clear()
    if (when[1:] < when[:-1]).any():
        order = np.argsort(when, kind="stable")
        what, when, more = what[order], when[order], [column[order] for column in more]
    weights: list[float] = (total / np.maximum(count, 1)).tolist()
    if graphs:
        what, when, weights, numbers = _fold_graphs(what, when, more[1], more[0], weights, numbers)
    return LaunchOrder(what, when, weights, numbers, lanes, busiest)


def _busiest_lane(activities: Spool) -> tuple[int, bool, int]:
    """Return the lane with most kernel time (-1: none), whether there are graphs, and the number of lanes.

    A lane is a process and a device, as `_lanes` numbers them.
    """
    import numpy as np

    time: dict[int, int] = {}
    graphs = False
    for block in activities:
        kernels = block[block["kind"] != TRANSFER]
        graphs = graphs or bool(kernels["graph"].any())
        lanes, spent = _lanes(kernels), kernels["end"] - kernels["start"]
        for lane in np.unique(lanes).tolist():
            time[lane] = time.get(lane, 0) + int(spent[lanes == lane].sum())
    return max(time, key=lambda lane: time[lane], default=-1), graphs, len(time)


def _lanes(kernels: Columns) -> Any:
    """Return the process and device of each kernel as one number."""
    return (kernels["process"].astype("i8") << 16) | kernels["device"]


def _fold_graphs(
    what: Any, when: Any, spent: Any, graph: Any, weights: list[float], filling: list[bool]
) -> tuple[Any, Any, list[float], list[bool]]:
    """Fold the nodes of each launch of a graph into one entry; equal launches get equal numbers."""
    import numpy as np

    firsts = np.flatnonzero(np.r_[True, (graph[1:] != graph[:-1]) | (graph[1:] < 0)])
    whole = graph[firsts] >= 0
    with np.errstate(over="ignore"):
        # By the sum of a mixed number of each node, so that the order of parallel branches does not matter.
        mixed = (what.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        sums = np.add.reduceat((mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9), firsts)
    kinds, numbers = np.unique(sums[whole], return_inverse=True)
    numbers = numbers.reshape(-1)
    folded = what[firsts].astype(np.int32)
    folded[whole] = len(filling) + numbers
    times = np.add.reduceat(spent, firsts)[whole]
    mean: list[float] = (np.bincount(numbers, times) / np.bincount(numbers)).tolist() if len(kinds) else []
    return folded, when[firsts], [*weights, *mean], [*filling, *([False] * len(kinds))]


def bounds_with_copies(activities: Spool, order: LaunchOrder, steady: SteadyPart) -> tuple[int, int]:
    """Return from when to when (ns) the repetition was launched, with the copies around its kernels.

    A loop that copies in, computes and copies out begins before its first kernel and ends behind its last. What
    lies between the last kernel of an iteration and the first of the next is one set of copies; as much of it as
    there is before the first kernel belongs to the first iteration, and the rest, if any, to the last.
    """
    times = order.times
    middle = steady.first + steady.repeats // 2 * steady.period
    first, last = int(times[steady.first]), int(times[steady.last - 1])
    if not steady.first < middle < steady.last:
        return first, last
    before = int(times[steady.first - 1]) if steady.first else -(1 << 62)
    after = int(times[steady.last]) if steady.last < len(times) else 1 << 62
    when, kinds = _transfers(activities, order.lane)

    def between(begin: int, end: int) -> slice:
        return slice(*when.searchsorted([begin + 1, end]).tolist())

    lead, copies, trail = (
        between(before, first),
        between(times[middle - 1], times[middle]),
        between(last, after),
    )
    left = Counter(kinds[copies].tolist())
    begins = _take_while_left(zip(when[lead][::-1], kinds[lead][::-1], strict=True), left)
    ends = _take_while_left(zip(when[trail], kinds[trail], strict=True), left)
    return min([first, *begins]), max([last, *ends])


def _transfers(activities: Spool, lane: int) -> tuple[Any, Any]:
    """Return when (ns) each transfer of a lane was launched, in order, and of which kind it was."""
    import numpy as np

    times, kinds = [np.zeros(0, np.int64)], [np.zeros(0, np.int32)]
    for block in activities:
        moved = block[(block["kind"] == TRANSFER) & (_lanes(block) == lane)]
        times.append(np.where(moved["launch"] >= 0, moved["launch"], moved["start"]))
        kinds.append(moved["what"])
    when, what = np.concatenate(times), np.concatenate(kinds)
    order = np.argsort(when, kind="stable")
    return when[order], what[order]


def _take_while_left(moved: Iterable[tuple[int, int]], left: Counter[Any]) -> list[int]:
    """Return the times of leading `moved` (times, kinds) that `left` covers; each uses up one of its kind."""
    taken = []
    for when, kind in moved:
        if left[kind] <= 0:
            break
        left[kind] -= 1
        taken.append(int(when))
    return taken
