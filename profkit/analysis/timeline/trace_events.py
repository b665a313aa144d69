"""A recording as trace events in JSON, which Perfetto and chrome://tracing open.

`TraceEvents` writes what a device and its host did; `mark_events` writes marks that name their own tracks.

Format: "Trace Event Format" (Chromium's catapult): complete events (`X`) with times in µs, names of tracks (`M`), and
arrows (`s`, `f`) from the call that launched something to what was launched. Perfetto takes slices that overlap on one
track for an error (its FAQ, "overlapping events in JSON traces"), so each gets a track on which it nests.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from profkit.analysis.kernel_names import short_name
from profkit.analysis.timeline.records import GRAPH, KERNEL, Columns, Range, Recording, Tables
from profkit.core.codec import valid_text


class Tracks:
    """Gives every slice a track of its kind. Slices come in the order of their starts; memory is what is open at once.

    Kernels of several streams overlap, and so do ranges that were not pushed and popped. Each goes to the first track
    on which it nests; a further track is opened where there is none.
    """

    def __init__(self) -> None:
        self._open: list[list[int]] = []  # of each track the ends of what is open, the outermost first

    def place(self, start: int, end: int) -> int:
        """The number of the track, from 0, for a slice from `start` to `end`."""
        for number, ends in enumerate(self._open):
            while ends and ends[-1] <= start:
                ends.pop()
            if not ends or end <= ends[-1]:
                ends.append(end)
                return number
        self._open.append([end])
        return len(self._open) - 1


# Characters of a kernel's name on its slice; the first of each configuration has the whole name
KERNEL_NAME = 120
ROWS = 4096  # slices that are text at one time
DEVICES = 1 << 20  # process numbers of devices begin here, behind those of the host


class TraceEvents:
    """Writes one recording. Everything is made while it is taken: memory does not grow with the trace."""

    def __init__(self, recording: Recording, counted: Callable[[int], None] = lambda _: None) -> None:
        self._recording = recording
        self._counted = counted  # is called after each block with the number of events so far
        self._events = 0
        self._tracks: dict[tuple[int, str, int], Tracks] = {}
        self._names: dict[tuple[int, int], str] = {}  # of tracks, by process and track number
        self._numbers: dict[tuple[int, str, int], dict[int, int]] = {}
        self._shown: set[int] = set()
        self._last = 0

    def pieces(self) -> Iterator[str]:
        """The document, in pieces of some thousand events."""
        yield '{"displayTimeUnit": "ns", "traceEvents": [\n'
        for lines in self._blocks():
            self._events += len(lines)
            self._counted(self._events)
            yield "".join(line + ",\n" for line in lines)
        yield ",\n".join(self._metadata())
        yield "\n]}\n"

    def _blocks(self) -> Iterator[list[str]]:
        tables = self._recording.tables
        for block in self._recording.activities:
            for at in range(0, len(block), ROWS):
                yield list(self._activities(block[at : at + ROWS], tables))
        for block in self._recording.calls:
            for at in range(0, len(block), ROWS):
                yield list(self._calls(block[at : at + ROWS], tables))
        yield list(self._ranges(self._recording.ranges))

    def _activities(self, block: Columns, tables: Tables) -> Iterator[str]:
        columns = zip(*(block[name].tolist() for name in _ACTIVITY), strict=True)
        for start, end, key, size, what, device, kind in columns:
            self._last = max(self._last, end)
            if kind in (KERNEL, GRAPH):
                name, args = self._kernel(what, tables)
                place = self._place(DEVICES + device, "kernels", 0, start, end)
            else:
                name, args = tables.transfers[what].name, f'{{"bytes": {size}}}'
                place = self._place(DEVICES + device, "copies", 0, start, end)
            yield _slice_event(name, "gpu", start, end, place, args)
            if key >= 0:
                yield _arrow_event("f", key, start, place)

    def _kernel(self, what: int, tables: Tables) -> tuple[str, str]:
        """Name and arguments; the whole name once, since a thousand characters a launch would fill the disk."""
        configuration = tables.configurations[what]
        args: dict[str, Any] = {
            "grid": "x".join(map(str, configuration.grid)),
            "block": "x".join(map(str, configuration.block)),
        }
        if what not in self._shown:
            self._shown.add(what)
            args["whole name"] = valid_text(configuration.name)
        return short_name(configuration.name, KERNEL_NAME), json.dumps(args)

    def _calls(self, block: Columns, tables: Tables) -> Iterator[str]:
        columns = zip(*(block[name].tolist() for name in _CALL), strict=True)
        for start, end, key, what, thread, process in columns:
            self._last = max(self._last, end)
            place = self._place(process + 1, "calls", thread, start, end)
            yield _slice_event(tables.calls[what], "cuda", start, end, place)
            if key >= 0:
                yield _arrow_event("s", key, start, place)

    def _ranges(self, ranges: Iterable[Range]) -> Iterator[str]:
        for entry in sorted(ranges, key=lambda r: (r.start, -(r.end if r.end is not None else 1 << 62))):
            end = entry.end if entry.end is not None else max(self._last, entry.start)
            thread = entry.thread if entry.thread is not None else -1
            place = self._place(entry.process + 1, "ranges", thread, entry.start, end)
            args = {"domain": entry.domain} if entry.domain else {}
            if entry.end is None:
                args["end"] = "it was still open when the recording ended"
            yield _slice_event(entry.name, "range", entry.start, end, place, json.dumps(args) if args else "")

    def _place(self, process: int, role: str, thread: int, start: int, end: int) -> tuple[int, int]:
        """Process and track number of a slice; a new track gets its name."""
        group = (process, role, thread)
        tracks = self._tracks.get(group)
        if tracks is None:
            tracks = self._tracks[group] = Tracks()
        lane = tracks.place(start, end)
        numbers = self._numbers.setdefault(group, {})
        number = numbers.get(lane)
        if number is None:
            number = numbers[lane] = sum(map(len, self._numbers.values())) + 1
            whose = "" if process >= DEVICES else " of the process" if thread < 0 else f" of thread {thread}"
            self._names[process, number] = f"{role}{whose}{f' ({lane + 1})' if lane else ''}"
        return process, number

    def _metadata(self) -> Iterator[str]:
        for process in sorted({process for process, _ in self._names}):
            name = f"GPU {process - DEVICES}" if process >= DEVICES else f"host process {process}"
            yield _metadata_event("process_name", process, 0, name)
        for (process, number), name in self._names.items():
            yield _metadata_event("thread_name", process, number, name)
        yield _metadata_event("trace_source", 0, 0, self._recording.tool)


_ACTIVITY = ("start", "end", "key", "bytes", "what", "device", "kind")
_CALL = ("start", "end", "key", "name", "thread", "process")


def microseconds(nanoseconds: int) -> str:
    """A time in µs with all its digits: as a float it would lose the last ones.

    >>> microseconds(1234567)
    '1234.567'
    """
    sign = "-" if nanoseconds < 0 else ""
    whole, rest = divmod(abs(nanoseconds), 1000)
    return f"{sign}{whole}.{rest:03d}"


def _slice_event(
    name: str, category: str, start: int, end: int, place: tuple[int, int], args: str = ""
) -> str:
    more = f', "args": {args}' if args else ""
    return (
        f'{{"ph": "X", "name": {json.dumps(valid_text(name))}, "cat": "{category}", "ts": {microseconds(start)}, '
        f'"dur": {microseconds(end - start)}, "pid": {place[0]}, "tid": {place[1]}{more}}}'
    )


def _arrow_event(phase: str, key: int, at: int, place: tuple[int, int]) -> str:
    """From a launch to what was launched; `bp` binds its end to the slice that is there, not to the next one."""
    end = ', "bp": "e"' if phase == "f" else ""
    return (
        f'{{"ph": "{phase}", "name": "launch", "cat": "launch", "id": "{key:x}", "ts": {microseconds(at)}, '
        f'"pid": {place[0]}, "tid": {place[1]}{end}}}'
    )


def _metadata_event(what: str, process: int, track: int, name: str) -> str:
    return json.dumps(
        {"ph": "M", "name": what, "pid": process, "tid": track, "args": {"name": valid_text(name)}}
    )
