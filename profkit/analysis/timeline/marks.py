"""What happened when, as marks on named tracks, written as trace events that Perfetto and chrome://tracing open.

For traces whose rows name their own tracks (an Apple GPU's channels, threads, states); `trace_events.py` writes those
of kernels, calls and ranges. Format and nesting are explained there.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from profkit.analysis.timeline.trace_events import microseconds
from profkit.analysis.timeline.tracks import Tracks
from profkit.core.codec import valid_text

WAITING = (
    1 << 12
)  # marks that wait for earlier ones: rows of one table are nearly in the order of their starts
PIECE = 2048  # marks that are text at one time
NAME = 200  # characters of a name

Told = Mapping[str, "str | int | float"]


@dataclass(frozen=True, slots=True, order=True)
class Mark:
    """One thing that lasted, in ns: on `track` of the process (or device) `group`."""

    start: int
    end: int
    group: str = field(compare=False)
    track: str = field(compare=False)
    name: str = field(compare=False)
    category: str = field(compare=False)
    told: Told = field(default_factory=dict, compare=False)


class _Lanes:
    """Lanes of one track; what comes earlier than what was placed before gets lanes of its own."""

    def __init__(self) -> None:
        self._turns: list[tuple[Tracks, int]] = []
        self.numbers: dict[tuple[int, int], int] = {}

    def place(self, start: int, end: int) -> tuple[int, int]:
        for turn, (tracks, last) in enumerate(self._turns):
            if start >= last:
                self._turns[turn] = (tracks, start)
                return turn, tracks.place(start, end)
        self._turns.append((Tracks(), start))
        return len(self._turns) - 1, self._turns[-1][0].place(start, end)


def written(
    marks: Iterable[Mark], source: str, told: Callable[[int], None] = lambda _: None
) -> Iterator[str]:
    """The document in pieces; memory does not grow with the number of marks.

    `told` hears after each piece how many there are. Groups and tracks are numbered as they come.
    """
    groups: dict[str, int] = {}
    lanes: dict[tuple[str, str], _Lanes] = {}
    names: list[str] = []
    yield '{"displayTimeUnit": "ns", "traceEvents": [\n'
    lines: list[str] = []
    for count, mark in enumerate(_in_order(marks), 1):
        process = groups.setdefault(mark.group, len(groups) + 1)
        track = lanes.setdefault((mark.group, mark.track), _Lanes())
        place = track.place(mark.start, mark.end)
        number = track.numbers.get(place)
        if number is None:
            number = track.numbers[place] = len(names) + 1
            more = len(track.numbers) - 1
            names.append(
                _named("thread_name", process, number, f"{mark.track}{f' ({more + 1})' if more else ''}")
            )
        lines.append(_slice(mark, process, number))
        if len(lines) == PIECE:
            told(count)
            yield "".join(f"{line},\n" for line in lines)
            lines.clear()
    yield "".join(f"{line},\n" for line in lines)
    named = [_named("process_name", number, 0, group) for group, number in groups.items()]
    yield ",\n".join([*named, *names, _named("trace_source", 0, 0, source)])
    yield "\n]}\n"


def _in_order(marks: Iterable[Mark]) -> Iterator[Mark]:
    """The marks by their starts, the longer first, as far as those that wait can tell."""
    waiting: list[tuple[int, int, int, Mark]] = []
    for number, mark in enumerate(marks):
        heapq.heappush(waiting, (mark.start, -mark.end, number, mark))
        if len(waiting) > WAITING:
            yield heapq.heappop(waiting)[3]
    while waiting:
        yield heapq.heappop(waiting)[3]


def _slice(mark: Mark, process: int, track: int) -> str:
    name = mark.name if len(mark.name) <= NAME else f"{mark.name[: NAME - 1]}…"
    args = ""
    if mark.told:
        told = {key: valid_text(v) if isinstance(v, str) else v for key, v in mark.told.items()}
        args = f', "args": {json.dumps(told)}'
    return (
        f'{{"ph": "X", "name": {json.dumps(valid_text(name))}, "cat": "{mark.category}", '
        f'"ts": {microseconds(mark.start)}, "dur": {microseconds(mark.end - mark.start)}, '
        f'"pid": {process}, "tid": {track}{args}}}'
    )


def _named(what: str, process: int, track: int, name: str) -> str:
    return json.dumps(
        {"ph": "M", "name": what, "pid": process, "tid": track, "args": {"name": valid_text(name)}}
    )
