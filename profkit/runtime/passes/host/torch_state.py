"""What torch itself knows at the end of a program: lines whose tensors stay on the device, and where compiling stopped.

The allocator keeps the stack of what is allocated now, for which it is asked a few times, ever less often. A line that
holds more each time lets memory grow. The calling process pays some microseconds for each allocation.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from contextlib import suppress
from math import inf
from time import perf_counter
from typing import Any

FIRST, SLOWER = 0.25, 1.5  # seconds until the first look, and how much longer it takes until each next one
LOOKS = 4  # at least, of which each found more
LEAST_GROWTH = 16 << 20  # bytes between the first of them and the last
MOST_BLOCKS = 200_000  # a look at more takes seconds
MOST_ROWS = 10

_Line = tuple[str, int, str]


class DeviceMemory:
    """Looks at which lines of the program hold memory of the device."""

    def __init__(self, is_foreign: Callable[[str], bool]) -> None:
        self._is_foreign = is_foreign
        self._looks: list[tuple[float, dict[_Line, tuple[int, int]]]] = []
        self._torch: Any = None
        self._begun = self._pause = 0.0
        self._next = inf

    def begin(self, torch: Any) -> None:
        """Look from here on; CUDA is in use."""
        torch.cuda.memory._record_memory_history("state", context="state", stacks="python")
        self._torch, self._begun, self._pause = torch, perf_counter(), FIRST
        self._next = self._begun + FIRST

    def look_now_and_then(self) -> None:
        """Look, if it is time: called in the main thread, again and again."""
        if perf_counter() < self._next:
            return
        self._pause *= SLOWER
        try:
            going = self._look()
        except Exception:  # the program comes first
            going = False
        self._next = perf_counter() + self._pause if going else inf

    def end(self) -> list[list[object]]:
        """Lines that grew: place, number of looks, seconds and bytes of the first and the last, and blocks held."""
        if self._next < inf:
            with suppress(Exception):
                self._torch.cuda.memory._record_memory_history(None)
        self._next = inf
        rows = []
        for line in {line for _, held in self._looks for line in held}:
            seen = [(when, *held.get(line, (0, 0))) for when, held in self._looks]
            while len(seen) > 1 and seen[0][1] == 0:
                seen.pop(0)
            first, last = seen[0], seen[-1]
            if len(seen) < LOOKS or last[1] - first[1] < LEAST_GROWTH:
                continue
            if all(after[1] > before[1] for before, after in itertools.pairwise(seen)):
                rows.append([*line, len(seen), first[0], first[1], last[0], last[1], last[2]])
        return sorted(rows, key=lambda row: row[5] - row[7])[:MOST_ROWS]

    def _look(self) -> bool:
        torch = self._torch
        held: dict[_Line, tuple[int, int]] = {}
        if torch.cuda.is_current_stream_capturing():
            return True
        blocks = 0
        for segment in torch.cuda.memory._snapshot()["segments"]:
            for block in segment["blocks"]:
                if not block["state"].startswith("active"):
                    continue
                blocks += 1
                line = self._line_of(block.get("frames", ()))
                size, count = held.get(line, (0, 0))
                held[line] = (size + block.get("requested_size", block["size"]), count + 1)
        self._looks.append((round(perf_counter() - self._begun, 3), held))
        return blocks < MOST_BLOCKS

    def _line_of(self, frames: Any) -> _Line:
        for frame in frames:
            if not self._is_foreign(frame["filename"]) and frame["filename"] != "??":
                return os.path.abspath(frame["filename"]), frame["line"], frame["name"]
        return "", 0, ""


def graph_breaks(dynamo: Any, is_foreign: Callable[[str], bool]) -> list[list[object]]:
    """Where torch.compile left the program to Python: place, reason, and how often it compiled up to there."""
    breaks: dict[tuple[str, int, str, str], int] = {}
    for one in getattr(dynamo, "graph_break_reasons", ()):
        own = [frame for frame in one.user_stack if not is_foreign(frame.filename)]
        if not own or not getattr(one, "graph_break", True):
            continue
        frame, reason = own[-1], str(one.reason).strip().partition("\n")[0][:200]
        key = (os.path.abspath(frame.filename), frame.lineno or 0, frame.name, reason)
        breaks[key] = breaks.get(key, 0) + 1
    return [[*key, count] for key, count in sorted(breaks.items(), key=lambda one: -one[1])][:MOST_ROWS]
