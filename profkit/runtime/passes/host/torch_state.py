"""What torch knows of the device's memory: lines whose tensors stay there, and what held it when it was full.

The allocator keeps the stack of what is allocated now. While there is more at each look, it is read: in the
program's own thread, since the answer may import parts of torch.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from contextlib import suppress
from math import inf
from time import perf_counter
from typing import Any

FIRST, SLOWER = 0.1, 1.3  # seconds until the first look, and how much longer it takes until each next one
HELD_EVERY = 0.02  # seconds between two looks at how much memory is held
MAX_HELD = 480  # looks that are kept; beyond it the interval is doubled
LOOKS = 3  # at least, of which each found more
MIN_STEP_BYTES, MIN_GROWTH_BYTES = 1 << 20, 16 << 20  # between two looks, and between the first and the last
MIN_KEPT = 0.9  # of a line's bytes, from one look to the next: tensors that stay are the same ones
MAX_BLOCKS = 200_000  # a look at more takes seconds
MAX_ROWS = 10

_Line = tuple[str, int, str]
_Blocks = dict[int, int]  # the sizes of blocks by their addresses


def _sizes(blocks: dict[_Line, _Blocks]) -> dict[_Line, tuple[int, int]]:
    """Return the bytes and the number of blocks of each line."""
    return {line: (sum(own.values()), len(own)) for line, own in blocks.items()}


class DeviceMemory:
    """Looks at which lines of the program hold memory of the device."""

    def __init__(self, is_foreign: Callable[[str], bool]) -> None:
        self._is_foreign = is_foreign
        self._looks: list[tuple[float, dict[_Line, tuple[int, int]]]] = []
        self._last_blocks: dict[_Line, _Blocks] = {}
        self._given_back: set[_Line] = set()  # lines of which blocks went since: what grows is made anew
        self._held: list[int] = []  # bytes at each look
        self.course: list[list[float]] = []  # at some times: seconds, bytes that are allocated, and reserved
        self._every, self._next_held = HELD_EVERY, inf
        self._torch: Any = None
        self._begun = self._pause = 0.0
        self._next = inf
        self.when_full: list[
            list[object]
        ] = []  # lines that held memory when there was no more, most bytes first

    def begin(self, torch: Any) -> None:
        """Look from here on; CUDA is in use."""
        torch.cuda.memory._record_memory_history("state", context="state", stacks="python")
        with suppress(Exception):
            torch._C._cuda_attach_out_of_memory_observer(self._ran_out)
        self._torch, self._begun, self._pause = torch, perf_counter(), FIRST
        self._next = self._begun + FIRST
        self._next_held = self._begun

    def look_now_and_then(self) -> None:
        """Look, if it is time: called in the main thread, again and again."""
        now = perf_counter()
        if now >= self._next_held:
            self._next_held = inf
            with suppress(Exception):
                self._note_held(now)
                self._next_held = now + self._every
        if now < self._next:
            return
        self._pause *= SLOWER
        self._next = inf
        with suppress(Exception):  # the program comes first
            if self._look():
                self._next = perf_counter() + self._pause

    def end(self) -> list[list[object]]:
        """Return lines that grew: place, looks, seconds and bytes of the first and the last, and blocks held."""
        self._next = inf
        if self._torch is not None:
            with suppress(Exception):
                self._torch.cuda.memory._record_memory_history(None)
        rows: list[tuple[int, list[object]]] = []
        for line in {line for _, held in self._looks for line in held} - self._given_back:
            seen = [(when, *held.get(line, (0, 0))) for when, held in self._looks]
            while len(seen) > 1 and seen[0][1] == 0:
                seen.pop(0)
            first, last = seen[0], seen[-1]
            growth = last[1] - first[1]
            steady = all(after[1] > before[1] for before, after in itertools.pairwise(seen))
            if len(seen) >= LOOKS and growth >= MIN_GROWTH_BYTES and steady:
                rows.append((growth, [*line, len(seen), first[0], first[1], last[0], last[1], last[2]]))
        return [row for _, row in sorted(rows, key=lambda row: -row[0])][:MAX_ROWS]

    def _note_held(self, now: float) -> None:
        """Record how much the allocator holds; in a long run half as many looks are enough."""
        reserved = self._torch.cuda.memory_reserved()
        self.course.append([round(now - self._begun, 4), self._torch.cuda.memory_allocated(), reserved])
        if len(self.course) > MAX_HELD:
            del self.course[1::2]
            self._every *= 2

    def _look(self) -> bool:
        """Return whether to look again."""
        torch = self._torch
        if torch.cuda.is_current_stream_capturing():
            return True
        self._held.append(torch.cuda.memory_allocated())
        last = self._held[-LOOKS:]
        growing = all(after >= before + MIN_STEP_BYTES for before, after in itertools.pairwise(last))
        if len(last) < LOOKS or not growing:
            self._looks.clear()
            self._last_blocks = {}
            self._given_back.clear()
            return True
        blocks = self._blocks_by_line()
        held = _sizes(blocks)
        held.pop(("", 0, ""), None)
        self._note_given_back(blocks)
        self._looks.append((round(perf_counter() - self._begun, 3), held))
        return sum(map(len, blocks.values())) < MAX_BLOCKS

    def _note_given_back(self, blocks: dict[_Line, _Blocks]) -> None:
        """Note the lines that no longer hold what they held at the last look.

        The activations of a sequence that gets longer are larger at each look, too, but none of them stays.
        """
        for line, before in self._last_blocks.items():
            now = blocks.get(line, {})
            kept = sum(size for address, size in before.items() if now.get(address) == size)
            if kept < MIN_KEPT * sum(before.values()):
                self._given_back.add(line)
        self._last_blocks = blocks

    def _blocks_by_line(self) -> dict[_Line, _Blocks]:
        """Return what is allocated now, by line; blocks without a line belong to the backward pass."""
        held: dict[_Line, _Blocks] = {}
        for segment in self._torch.cuda.memory._snapshot()["segments"]:
            address = segment["address"]
            for block in segment["blocks"]:
                if block["state"].startswith("active"):
                    line = self._line_of(block.get("frames", ()))
                    held.setdefault(line, {})[address] = block.get("requested_size", block["size"])
                address += block["size"]  # blocks of a segment follow each other
        return held

    def _ran_out(self, _device: int, requested: int, _limit: int, _free: int) -> None:
        """Record what is held when torch runs out of memory; called before torch raises, so the last time counts."""
        with suppress(Exception):
            reserved = self._torch.cuda.memory_reserved()
            rows = sorted(_sizes(self._blocks_by_line()).items(), key=lambda line: -line[1][0])
            self.when_full = [[*line, *held, requested, reserved] for line, held in rows]

    def _line_of(self, frames: Any) -> _Line:
        for frame in frames:
            if not self._is_foreign(frame["filename"]) and frame["filename"] != "??":
                return os.path.abspath(frame["filename"]), frame["line"], frame["name"]
        return "", 0, ""
