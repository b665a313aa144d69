"""GPU counters as they stream by: `metal-gpu-counter-intervals`, or `gpu-counter-info` with `gpu-counter-value`.

Both hold samples, of the device and not of a process, every 3 to 330 us; a sample of the second holds until the next
one of its counter and ring buffer. The GPU is not sampled all the time (seen: 37 to 79 %), so each mean is weighted by
how long its samples held and comes with the share of the time that they cover. What comes of several ring buffers side
by side is one mean: which part of the GPU each speaks of is not told.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from profkit.analysis.timeline.records import Spool
from profkit.profilers.xctrace.cells import Value
from profkit.profilers.xctrace.metal_units import PER_CENT, UnitOfCounter, read_label
from profkit.profilers.xctrace.metal_work import MORE, Names, interval, text

COUNTERS = "metal-gpu-counter-intervals"
COUNTER_INFO = "gpu-counter-info"
COUNTER_VALUES = "gpu-counter-value"
SAMPLE = ("start", "duration", "name", "value", "percent-value", "is-percentage", "gpu", "label/@fmt")
COUNTER = ("counter-id", "name", "max-value", "description", "type")
RAW_SAMPLE = ("timestamp", "counter-id", "value", "accelerator-id", "ring-buffer-index")
SAMPLES = [("start", "i8"), ("end", "i8"), ("value", "f8"), ("counter", "i4")]

MOST_COUNTERS = 1024
TOP_LIMITER = "Top Performance Limiter"  # its label names which limiter that was
_BLOCK = 1 << 16
_LONGEST_HOLD = 8  # times the usual distance of two samples; the GPU was asleep after that


@dataclass(frozen=True)
class Counted:
    """One counter: its GPU ("" where that is not told), its name, unit and description.

    `of` is not "": no counter, but the time in which the counter of this name said so.
    """

    gpu: str
    name: str
    of: str = ""


@dataclass
class CounterSamples:
    """Fed with rows; puts the samples aside in `spool`, numbered by `counters`."""

    spool: Spool
    counters: Names[Counted] = field(default_factory=lambda: Names(Counted("", MORE), MOST_COUNTERS))
    units: dict[int, UnitOfCounter] = field(default_factory=dict)
    rows: int = 0
    skipped: int = 0
    extent: tuple[int, int] | None = None  # from the begin of the first sample to the end of the last, ns
    longest: dict[int, int] = field(default_factory=dict)  # ns that a sample of a counter holds at most
    _names: dict[int, tuple[str, str, str]] = field(default_factory=dict)
    _times: tuple[array[int], array[int], array[int]] = field(default_factory=lambda: _empty())
    _values: array[float] = field(default_factory=lambda: array("d"))

    def add(self, rows: Iterable[Sequence[Value]]) -> None:
        """Rows with the columns `SAMPLE`."""
        cache: dict[tuple[Value, Value], int] = {}
        for start, duration, name, value, percentage, is_percentage, gpu, label in rows:
            when = interval(start, duration)
            amount = value if isinstance(value, (int, float)) else percentage
            if when is None or not isinstance(amount, (int, float)) or not math.isfinite(amount) or not name:
                self.skipped += 1
                continue
            key = (gpu, name)
            at = cache.get(key)
            if at is None:
                at = cache[key] = self._number(Counted(text(gpu), text(name)))
            unit = self.units[at]
            if isinstance(label, str):
                unit.look(float(amount), label)
                if name == TOP_LIMITER and (told := read_label(label)) is not None and told.note:
                    which = told.note.partition(".")[2] or told.note
                    self._append(*when, 1.0, self._number(Counted(text(gpu), which, TOP_LIMITER)))
            elif is_percentage:
                unit.per_cent()
            self._append(*when, float(amount), at)
            self.rows += 1
        self._flush()

    def add_info(self, rows: Iterable[Sequence[Value]]) -> None:
        """Rows with the columns `COUNTER`: what the numbers in the other table mean. Comes before them."""
        for number, name, _, description, kind in rows:
            if isinstance(number, int) and text(name):
                self._names[number] = (text(name), text(description), text(kind))

    @property
    def known(self) -> tuple[str, ...]:
        """The names of the counters that were selected, as far as the table of them was there."""
        return tuple(name for name, _, _ in self._names.values())

    def add_raw(self, rows: Iterable[Sequence[Value]]) -> None:
        """Rows with the columns `RAW_SAMPLE`; those of a counter without a name are passed over."""
        last: dict[tuple[Value, Value, Value], tuple[int, float, int]] = {}
        distances: dict[int, list[int]] = {}
        for at, number, value, device, ring in rows:
            when = interval(at, 0)
            known = self._names.get(number) if isinstance(number, int) else None
            if (
                when is None
                or known is None
                or not isinstance(value, (int, float))
                or not math.isfinite(value)
            ):
                self.skipped += 1
                continue
            key = (device, number, ring)
            before = last.get(key)
            if before is None:
                counter = self._number(Counted("", known[0]))
                self._describe(counter, known)
            else:
                since, amount, counter = before
                if when[0] > since:
                    self._append(since, when[0], amount, counter)
                    width = (when[0] - since).bit_length()
                    distances.setdefault(counter, [0] * 65)[min(width, 64)] += 1
            last[key] = (when[0], float(value), counter)
            self.rows += 1
        self._flush()
        self.longest = {counter: _LONGEST_HOLD << _middle(counts) for counter, counts in distances.items()}

    def _describe(self, counter: int, known: tuple[str, str, str]) -> None:
        unit = self.units[counter]
        unit.note = known[1]
        if known[2].lower().startswith("percent"):
            unit.unit = PER_CENT

    def _number(self, counted: Counted) -> int:
        at = self.counters.number(counted)
        self.units.setdefault(at, UnitOfCounter())
        return at

    def _append(self, start: int, end: int, value: float, counter: int) -> None:
        starts, ends, counters = self._times
        starts.append(start)
        ends.append(end)
        counters.append(counter)
        self._values.append(value)
        if len(starts) >= _BLOCK:
            self._flush()

    def _flush(self) -> None:
        import numpy as np

        block = np.zeros(len(self._values), dtype=SAMPLES)
        block["start"], block["end"], block["counter"] = (np.frombuffer(c, dtype="q") for c in self._times)
        block["value"] = np.frombuffer(self._values, dtype="d")
        if len(block):
            first, last = int(block["start"].min()), int(block["end"].max())
            before = self.extent or (first, last)
            self.extent = min(first, before[0]), max(last, before[1])
        self.spool.add(block)
        self._times, self._values = _empty(), array("d")


def _empty() -> tuple[array[int], array[int], array[int]]:
    return array("q"), array("q"), array("q")


def _middle(counts: Sequence[int]) -> int:
    """The place at which half of all counts is reached."""
    total, seen = sum(counts), 0
    for place, count in enumerate(counts):
        seen += count
        if 2 * seen >= total:
            return place
    return 0
