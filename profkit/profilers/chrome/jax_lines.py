"""Attributes the time of XLA on the processor to lines of the program.

It joins the windows that jax.profiler recorded with the source lines that XLA's modules carry.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from profkit.analysis.timeline.time_windows import merge_intervals
from profkit.core.errors import ProfkitError
from profkit.core.files.regular import read_bounded
from profkit.core.types import CodeLine, Hotspot, Profile
from profkit.profilers.chrome.reading import ChromeTrace, to_nanoseconds

MAX_BYTES = 64 << 20
MAX_EVENTS = 1 << 20
MAX_SECONDS = 1e6  # of one compilation
COLUMNS = 6  # of a row that a process wrote
COMPILED_AGAIN = "compiled again by JAX"
_Instruction = tuple[str, str]  # module and name


@dataclass
class _Window:
    """Collect the instructions of one trace, by thread: start and end in ns."""

    threads: dict[str, list[tuple[int, int, _Instruction]]] = field(default_factory=dict)
    count: int = 0

    def take(self, event: object) -> None:
        """Add an event if it is an instruction of XLA."""
        args = event.get("args") if isinstance(event, dict) else None
        if not isinstance(event, dict) or not isinstance(args, dict) or self.count >= MAX_EVENTS:
            return
        start, length = to_nanoseconds(event.get("ts")), to_nanoseconds(event.get("dur"))
        name, module = args.get("hlo_op"), args.get("hlo_module")
        is_instruction = isinstance(name, str) and isinstance(module, str)
        if (
            event.get("ph") == "X"
            and is_instruction
            and start is not None
            and length is not None
            and length >= 0
        ):
            self.count += 1
            row = start, start + length, (str(module), str(name))
            self.threads.setdefault(f"{event.get('pid')} {event.get('tid')}", []).append(row)

    @property
    def busy(self) -> tuple[tuple[int, int], ...]:
        """Return the intervals, in ns, in which any thread ran an instruction."""
        return merge_intervals([(start, end) for rows in self.threads.values() for start, end, _ in rows])


def read_jax_lines(folder: Path, stem: str) -> Profile | None:
    """Return the time that XLA ran, by line and by JAX's name, the largest first.

    It is taken from the window that holds most of it. `own` adds up to the seconds in which XLA ran anything,
    shared by the time of each instruction where several ran at a time; `total` of the profile is the window.
    `lines` has the line with its function; an instruction whose line is not known has no file. None without
    windows.
    """
    best: _Window | None = None
    most = 0
    for path in sorted(folder.glob(f"{stem}.xla.*.json.gz")):
        window = _Window()
        try:
            ChromeTrace(window.take).read(path, "jax.profiler")
        except ProfkitError:  # half a file
            continue
        seconds = sum(end - start for start, end in window.busy)
        best, most = (window, seconds) if seconds > most else (best, most)
    if best is None:
        return None
    busy = best.busy
    places = dict(_places(folder / f"{stem}.xla.operations"))
    sums: dict[tuple[str | None, int | None, str, str], tuple[float, int]] = {}
    own_times = _own_times(best)
    scale = most / 1e9 / max(1, sum(time for time, _ in own_times.values()))
    for instruction, (time, calls) in own_times.items():
        key = places.get(instruction, (None, None, "", instruction[1]))
        before = sums.get(key, (0.0, 0))
        sums[key] = before[0] + time * scale, before[1] + calls
    spots = []
    for (file, line, function, name), (spent, calls) in sorted(sums.items(), key=lambda item: -item[1][0]):
        at = (CodeLine(function, file, line, spent),) if file is not None else ()
        spots.append(Hotspot(name, spent, None, calls, file, line, lines=at))
    return Profile(
        "operations of XLA by line", "s", (busy[-1][1] - busy[0][0]) / 1e9, tuple(spots), "xla-operations"
    )


def read_jax_compilations(path: Path) -> Profile | None:
    """Return the functions that JAX compiled again, by the line that called them; None if there is none.

    `own` is how often, `total` the seconds of it, `library` JAX's name of the function.
    """
    spots = []
    for file, line, function, name, count, seconds in _rows(path, "jax"):
        with suppress(ValueError, TypeError, OverflowError):
            times, each = int(count), float(seconds)
            if 0 < times < MAX_EVENTS and 0 <= each < MAX_SECONDS:
                spots.append(
                    Hotspot(
                        *(str(function), float(times), times * each, times, str(file), int(line), str(name)),
                        counters={"jax": 1.0},
                    )
                )
    spots.sort(key=lambda spot: -spot.own)
    every = sum(spot.own for spot in spots)
    return Profile(COMPILED_AGAIN, "count", every, tuple(spots), "recompilations") if spots else None


def _own_times(window: _Window) -> Mapping[_Instruction, tuple[int, int]]:
    """Return nanoseconds and calls of each instruction, without those that ran inside it in its thread.

    A loop, for example, does not hold the time of its body.
    """
    times: dict[_Instruction, tuple[int, int]] = {}

    def add(instruction: _Instruction, time: int, calls: int) -> None:
        before = times.get(instruction, (0, 0))
        times[instruction] = before[0] + time, before[1] + calls

    for rows in window.threads.values():
        open_: list[tuple[int, _Instruction]] = []
        for start, end, instruction in sorted(rows, key=lambda row: (row[0], -row[1])):
            while open_ and open_[-1][0] <= start:
                open_.pop()
            if open_:
                add(open_[-1][1], start - min(end, open_[-1][0]), 0)
            add(instruction, end - start, 1)
            open_.append((end, instruction))
    return times


def _places(path: Path) -> Iterator[tuple[_Instruction, tuple[str, int, str, str]]]:
    """Yield the place and JAX's name of each instruction that the processes wrote down."""
    for file, number, function, instruction, module, name in _rows(path, "xla"):
        with suppress(ValueError, TypeError):
            yield (str(module), str(instruction)), (str(file), int(number), str(function), str(name))


def _rows(path: Path, key: str) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of six that the processes wrote under a key: any program may have written that file."""
    try:
        text = read_bounded(path, MAX_BYTES).decode("utf-8", "replace")
    except (OSError, ProfkitError):
        return
    for line in text.splitlines():
        with suppress(ValueError, TypeError, AttributeError, RecursionError):
            yield from (tuple(row) for row in json.loads(line).get(key, ()) if len(row) == COLUMNS)
