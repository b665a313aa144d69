"""Sums up what counts in a trace, block by block, into a `GpuTrace`: idle time, host calls, ranges, copies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeAlias, TypeVar

from profkit.analysis.timeline.device_time import PAUSE, CommunicationSums, Idle, common_windows, host_pauses
from profkit.analysis.timeline.host_calls import HeldHost, StretchTimes
from profkit.analysis.timeline.kernel_sums import Durations, KernelSums, LineSums, TransferSums
from profkit.analysis.timeline.origins import OriginIndex
from profkit.analysis.timeline.range_names import SourceLine, range_meaning
from profkit.analysis.timeline.range_paths import RangePaths
from profkit.analysis.timeline.records import KERNEL, TRANSFER, Columns, Range, Recording, distinct_pairs
from profkit.analysis.timeline.stream_order import StreamSums
from profkit.analysis.timeline.time_windows import TimeWindows
from profkit.analysis.timeline.work_sums import WorkSums, multiplies
from profkit.core.types import ApiCall, GpuLine, GpuOperation, GpuRange, GpuTrace, Kernel, KernelTime

_LATENCY, _CALL = 0, 1  # groups of durations
LARGE_COPY = 1 << 20  # bytes of a copy to the host that somebody there works on: less is a number, or a flag


class HostSums:
    """Sums up launch latencies and the host's calls, fed with the kernels and the calls that count."""

    def __init__(self) -> None:
        self._durations = Durations()
        self._calls = Durations()  # by name

    def add_launches(self, rows: Columns) -> None:
        """Add kernels (columns ACTIVITY). A launch of a graph starts many of them: only the first counts."""
        import numpy as np

        rows = rows[rows["launch"] >= 0]
        graphs = rows["graph"]
        if graphs.any():
            first = np.zeros(len(rows), dtype=bool)
            first[np.unique(rows["key"], return_index=True)[1]] = True
            rows = rows[~graphs | first]
        self._durations.add(np.full(len(rows), _LATENCY), rows["start"] - rows["launch"])
        self._durations.add(np.full(len(rows), _CALL), rows["call"])

    def add_calls(self, rows: Columns) -> None:
        """Add calls (columns CALL)."""
        self._calls.add(rows["name"], rows["end"] - rows["start"])

    def latencies(self) -> tuple[float, float] | None:
        """Return the medians of the launch latency and of the launch call, in seconds; None without launches.

        The latency is the time from the begin of a launch call to that of its kernel.
        """
        sums = self._durations.summed()
        return (sums[_LATENCY].median / 1e9, sums[_CALL].median / 1e9) if sums else None

    def api(self, names: Sequence[str]) -> tuple[ApiCall, ...]:
        """Return the calls by name, most time first."""
        ranked = sorted(self._calls.summed().items(), key=lambda call: -call[1].total)
        return tuple(ApiCall(names[name], sums.counted, sums.total / 1e9) for name, sums in ranked)


MAX_RANGES = 256  # by name, those with most GPU time; programs that number their ranges have one per step
MAX_NAMES = 32  # ranges that are named with one kernel
MAX_LINES = 4  # of one configuration

_Key: TypeAlias = "tuple[str, str | None]"  # name, domain


class RangeSums:
    """Sums up kernels by range and by origin, fed with the kernels that count."""

    def __init__(
        self, ranges: Sequence[Range], windows: TimeWindows, configurations: Sequence[Kernel], lines: LineSums
    ) -> None:
        self._table = configurations
        self._ranges, self._windows, self._paths = ranges, windows, RangePaths(ranges)
        self._inside: dict[tuple[int, int], None] = {}  # paths, and configurations that were launched there
        self._in_paths = Durations()  # kernels by path
        self._lines, self._origins = lines, lines.origins
        self._work = WorkSums(lines.origins, configurations)
        self._launched_by: dict[int, Counter[int]] = {}  # by configuration the launches from each origin

    def add(self, rows: Columns, when: Any) -> None:
        """Add kernels (columns ACTIVITY), each with the time in ns at which it was launched."""
        if self._paths:
            path = self._paths.find(when, rows["process"], rows["thread"])
            paths, configurations, _, _ = distinct_pairs(path, rows["what"])
            pairs = zip(paths.tolist(), configurations.tolist(), strict=True)
            self._inside.update(dict.fromkeys(pairs))
            self._in_paths.add(path, rows["end"] - rows["start"])
        found = self._origins.find_calls(when, rows["process"], rows["thread"])
        if found is None:
            return
        origin, call = found
        self._lines.add_kernels(rows, origin)
        self._work.add(rows, origin, call)
        configurations, numbers, _, counts = distinct_pairs(rows["what"], origin)
        for what, number, count in zip(
            configurations.tolist(), numbers.tolist(), counts.tolist(), strict=True
        ):
            self._launched_by.setdefault(what, Counter())[number] += count

    def operations(self) -> dict[int, KernelTime]:
        """Return for each configuration its most frequent operation, and the line of most of its launches."""
        return {
            what: launched
            for what, origins in self._launched_by.items()
            if (launched := self._commonest(origins, self._table[what])) is not None
        }

    def _commonest(self, origins: Counter[int], kernel: Kernel) -> KernelTime | None:
        """Return the most frequent operation and the lines of a configuration; None if none is known.

        Where operations were recorded for a part of the time only, launches in the rest are taken to be alike.
        """
        numbered = [(number, count) for number, count in origins.items() if number >= 0]
        known = [(self._origins.origins[number], count) for number, count in numbered]
        launches, of = Counter[str | None](), Counter[tuple[str | None, str | None]]()
        lines = Counter[SourceLine | None]()
        for origin, count in known:
            launches[origin.operation] += count
            of[origin.operation, origin.backward_of] += count
            lines[origin.line] += count
        if not known or (not any(launches) and not any(lines)):
            return None
        each = origins.total() / launches.total()
        operation = next((name for name, _ in launches.most_common(2) if name is not None), None)
        file, number, function = _majority(lines) or (None, None, None)
        top = [(place, count) for place, count in lines.most_common(MAX_LINES) if place is not None]
        return KernelTime(
            kernel,
            origins.total(),
            0.0,
            operation=operation,
            operation_launches=round(each * launches[operation]) if operation is not None else 0,
            operations=sum(name is not None for name in launches),
            backward_of=_majority(Counter({back: n for (name, back), n in of.items() if name == operation})),
            file=file,
            line=number,
            function=function,
            flops=self._work.flops(numbered) if multiplies(kernel.name) else None,
            lines=tuple(GpuLine(*place, launches=round(count * each)) for place, count in top),
        )

    def work(self) -> tuple[GpuOperation, ...]:
        """Return the operations that launched kernels, with the least work that each needs."""
        return self._work.summed()

    def names(self) -> dict[int, tuple[str, ...]]:
        """Return for each configuration the ranges in which it was launched, without operations."""
        names: dict[int, dict[str, None]] = {}
        for path, what in self._inside:
            marked = (key for key in self._paths.names[path] if key not in self._paths.operations)
            names.setdefault(what, {}).update((name, None) for name, _ in marked)
        return {what: tuple(ranges)[:MAX_NAMES] for what, ranges in names.items()}

    def ranges(self) -> tuple[tuple[GpuRange, ...], int]:
        """Return the ranges, most GPU time first, and how many of them are a framework's operations.

        Ranges are summed by name and domain, over what counts. The number is that of entries, not of names.
        """
        launched, spent = Counter[_Key](), Counter[_Key]()
        for path, sums in self._in_paths.summed().items():
            for key in self._paths.names[path]:
                launched[key] += sums.counted
                spent[key] += sums.total
        entries, seconds = Counter[_Key](), Counter[_Key]()
        for entry in self._ranges:
            end = entry.start if entry.end is None else entry.end
            meaning = range_meaning(entry.name, entry.domain)
            if meaning.line is None and self._windows.touched(entry.start, end):
                entries[meaning.key] += 1
                seconds[meaning.key] += end - entry.start
        ranked = sorted(entries, key=lambda key: (-spent[key], -seconds[key], key[0]))[:MAX_RANGES]
        written = sum(entries[key] for key in self._paths.operations)
        ranges = tuple(
            GpuRange(
                *key,
                entries[key],
                seconds[key] / 1e9,
                launched[key],
                spent[key] / 1e9,
                key in self._paths.operations,
            )
            for key in ranked
        )
        return ranges, written


_Value = TypeVar("_Value")


def _majority(counts: Counter[_Value | None]) -> _Value | None:
    """Return the value with more than half of the counts; None where none has."""
    value, count = counts.most_common(1)[0]
    return value if 2 * count > counts.total() else None


class TraceSums:
    """Sums up a trace, fed with all activities in the order of their starts, then with all calls."""

    def __init__(self, recording: Recording, windows: TimeWindows) -> None:
        self._recording, self._windows = recording, windows
        self._kernels = KernelSums(recording.tables.configurations)
        self._lines = LineSums(recording.ranges, windows, recording.tables, recording.operations)
        self._ranges = RangeSums(recording.ranges, windows, recording.tables.configurations, self._lines)
        self._host = HostSums()
        self._transfers = TransferSums()
        self._devices: dict[int, Idle] = {}
        self._computing: dict[int, Idle] = {}  # the same without copies, and memsets
        self._communication = CommunicationSums(recording.tables.configurations, windows)
        self._streams = StreamSums(recording.tables)
        self._working: set[int] = set()  # devices that ran kernels
        self._threads = Counter[tuple[int, int]]()  # kernels by process and thread that launched them
        self._bounds: tuple[int, int] | None = None  # first and last launch that counts, in ns
        self._held: HeldHost | None = None  # made when all activities are known
        self._seen = 0  # kernels so far, in the order of their starts

    @property
    def origins(self) -> OriginIndex:
        """Return the origins of launches."""
        return self._lines.origins

    def add(self, block: Columns) -> None:
        """Add activities (columns ACTIVITY), joined with their launches."""
        import numpy as np

        when = np.where(block["launch"] >= 0, block["launch"], block["start"])
        window = self._windows.number(when)
        counts = window >= 0
        kernels = block["kind"] == KERNEL
        ordinal = self._seen + np.cumsum(kernels) - 1
        self._seen += int(np.count_nonzero(kernels))
        early = kernels & (when < self._windows.begin)
        if early.any():
            self._kernels.add_setup(block[early])
        chosen = kernels & counts
        if chosen.any():
            rows = block[chosen]
            self._kernels.add(rows, ordinal[chosen])
            self._host.add_launches(rows)
            self._ranges.add(rows, when[chosen])
            self._working.update(np.unique(rows["device"]).tolist())
            self._add_threads(rows, when[chosen])
        moved = counts & (block["kind"] == TRANSFER)
        self._transfers.add(block[moved])
        self._lines.add_copies(block[moved], when[moved])
        self._add_devices(block[counts], window[counts])

    def _add_threads(self, rows: Columns, when: Any) -> None:
        processes, threads, _, counts = distinct_pairs(rows["process"], rows["thread"])
        for process, thread, count in zip(processes.tolist(), threads.tolist(), counts.tolist(), strict=True):
            self._threads[process, thread] += count
        first, last = self._bounds or (int(when.min()), int(when.max()))
        self._bounds = min(first, int(when.min())), max(last, int(when.max()))

    def _holding(self) -> HeldHost | None:
        """Return the sums of calls that hold up the thread that launches; None where there is no such one."""
        if self._bounds is None or len({process for process, _ in self._threads}) != 1:
            return None
        if self._held is None:
            working = [self._devices[number] for number in sorted(self._working)]
            for device in working:
                device.finish()
            devices = [device.stretches for device in working]
            self._held = HeldHost(
                self._recording.tables.calls,
                [StretchTimes(stretches) for stretches in devices],
                [StretchTimes(stretches, at_least=PAUSE) for stretches in devices],
                sum(self._bounds) // 2,
            )
        return self._held

    def _add_devices(self, block: Columns, window: Columns) -> None:
        import numpy as np

        # A kernel is queued when its call is done, or has begun before that: one that loads code first queues nothing.
        done = np.minimum(block["launch"] + np.maximum(block["call"], 0), block["start"])
        launched = (block["kind"] == KERNEL) & (block["launch"] >= 0)
        queued = np.where(launched, np.maximum(done, block["launch"]), block["launch"])
        table = self._recording.tables.transfers
        to_host = np.array([kind.name == "device to host" for kind in table] or [False])
        copied = block["kind"] == TRANSFER
        returned = copied & (block["bytes"] >= LARGE_COPY)
        returned[copied] &= to_host[block["what"][copied]]
        for device in np.unique(block["device"]).tolist():
            rows = block["device"] == device
            idle = self._devices.setdefault(device, Idle(self._windows))
            idle.add(block["start"][rows], block["end"][rows], queued[rows], window[rows], returned[rows])
            self._streams.add(device, block[rows])
            rows &= block["kind"] != TRANSFER
            if rows.any():
                computing = self._computing.setdefault(device, Idle(self._windows))
                untold = np.full(np.count_nonzero(rows), -1)
                computing.add(block["start"][rows], block["end"][rows], untold, window[rows])
                self._communication.add(device, block[rows], window[rows])

    def add_calls(self, block: Columns) -> None:
        """Add calls of the host (columns CALL)."""
        rows = block[self._windows.number(block["start"]) >= 0]
        self._host.add_calls(rows)
        self._lines.add_calls(rows)
        held = self._holding()
        if held is not None:
            process, thread = self._threads.most_common(1)[0][0]
            held.add(rows[(rows["process"] == process) & (rows["thread"] == thread)])

    def sequence(self, trace: GpuTrace) -> tuple[tuple[int, float], ...]:
        """Return the first launches of one device that count, each as index of the trace's kernel and seconds."""
        return self._kernels.sequence(trace.kernels)

    def trace(self, *, repeats: int | None) -> GpuTrace:
        """Return the trace of all that was added.

        `span` and `busy` of several devices are means: a device that waits for others is idle. `repeats` is the
        number of iterations where the part that counts was found by repetition.
        """
        # One that only got a copy is not one that should work.
        working = sorted(self._working or self._devices)
        devices = [self._devices[number] for number in working]
        windows = common_windows(devices)
        spans = [device.among(windows) for device in devices]
        judged = sum(device.judged for device in devices)
        computing = sum(self._computing[n].worked() for n in working if n in self._computing)
        latency, call = self._host.latencies() or (None, None)
        kernels = self._kernels.summed(self._recording.tool, self._ranges.names(), self._ranges.operations())
        lines, line_span = self._lines.summed()
        ranges, operations = self._ranges.ranges()
        span = sum(span for span, _ in spans) / len(spans) / 1e9 if spans else None
        return replace(
            kernels,
            span=span,
            busy=sum(busy for _, busy in spans) / len(spans) / 1e9 if spans else None,
            transfers=self._transfers.summed(self._recording.tables.transfers),
            ranges=ranges,
            api=self._host.api(self._recording.tables.calls),
            launch_latency=latency,
            launch_call=call,
            starved=sum(device.starved for device in devices) / judged if judged else None,
            pauses=host_pauses(devices),
            holding=self._held.summed() if self._held is not None else (),
            largest_gap=max(device.largest for device in devices) / 1e9 if devices else None,
            copying=max(0.0, (sum(busy for _, busy in spans) - computing) / len(spans) / 1e9)
            if spans
            else None,
            device_busy=tuple(busy / span if span else 0.0 for span, busy in spans) if len(spans) > 1 else (),
            marked=self._windows.marked,
            repeats=repeats,
            setup_seconds=kernels.setup_seconds if repeats is None else kernels.setup_seconds or 0.0,
            operations=operations,
            communication=self._communication.summed(self._computing),
            streams=self._streams.summed(),
            lines=lines,
            work=self._ranges.work(),
            line_span=line_span,
            lines_of=span if lines else None,
        )
