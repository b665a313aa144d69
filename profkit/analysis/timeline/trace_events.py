"""A recording as trace events in JSON, which Perfetto and chrome://tracing open.

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
from profkit.analysis.timeline.tracks import Tracks
from profkit.core.codec import valid_text

NAME = (
    120  # characters of a kernel's name on its slice; the first of each configuration carries the whole name
)
ROWS = 4096  # slices that are text at one time
DEVICES = 1 << 20  # process numbers of devices begin here, behind those of the host


class TraceEvents:
    """Writes one recording. Everything is made while it is taken: memory does not grow with the trace."""

    def __init__(self, recording: Recording, told: Callable[[int], None] = lambda _: None) -> None:
        self._recording = recording
        self._told = told  # hears after each block how many events there are
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
            self._told(self._events)
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
                name, args = tables.transfers[what], f'{{"bytes": {size}}}'
                place = self._place(DEVICES + device, "copies", 0, start, end)
            yield _slice(name, "gpu", start, end, place, args)
            if key >= 0:
                yield _arrow("f", key, start, place)

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
        return short_name(configuration.name, NAME), json.dumps(args)

    def _calls(self, block: Columns, tables: Tables) -> Iterator[str]:
        columns = zip(*(block[name].tolist() for name in _CALL), strict=True)
        for start, end, key, what, thread, process in columns:
            self._last = max(self._last, end)
            place = self._place(process + 1, "calls", thread, start, end)
            yield _slice(tables.calls[what], "cuda", start, end, place)
            if key >= 0:
                yield _arrow("s", key, start, place)

    def _ranges(self, ranges: Iterable[Range]) -> Iterator[str]:
        for one in sorted(ranges, key=lambda r: (r.start, -(r.end if r.end is not None else 1 << 62))):
            end = one.end if one.end is not None else max(self._last, one.start)
            thread = one.thread if one.thread is not None else -1
            place = self._place(one.process + 1, "ranges", thread, one.start, end)
            args = {"domain": one.domain} if one.domain else {}
            if one.end is None:
                args["end"] = "it was still open when the recording ended"
            yield _slice(one.name, "range", one.start, end, place, json.dumps(args) if args else "")

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
            yield _named("process_name", process, 0, name)
        for (process, number), name in self._names.items():
            yield _named("thread_name", process, number, name)
        yield _named("trace_source", 0, 0, self._recording.tool)


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


def _slice(name: str, category: str, start: int, end: int, place: tuple[int, int], args: str = "") -> str:
    more = f', "args": {args}' if args else ""
    return (
        f'{{"ph": "X", "name": {json.dumps(valid_text(name))}, "cat": "{category}", "ts": {microseconds(start)}, '
        f'"dur": {microseconds(end - start)}, "pid": {place[0]}, "tid": {place[1]}{more}}}'
    )


def _arrow(phase: str, key: int, at: int, place: tuple[int, int]) -> str:
    """From a launch to what was launched; `bp` binds its end to the slice that is there, not to the next one."""
    end = ', "bp": "e"' if phase == "f" else ""
    return (
        f'{{"ph": "{phase}", "name": "launch", "cat": "launch", "id": "{key:x}", "ts": {microseconds(at)}, '
        f'"pid": {place[0]}, "tid": {place[1]}{end}}}'
    )


def _named(what: str, process: int, track: int, name: str) -> str:
    return json.dumps({"ph": "M", "name": what, "pid": process, "tid": track, "args": {"name": name}})
