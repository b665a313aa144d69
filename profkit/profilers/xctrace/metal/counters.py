"""GPU counters: `metal-gpu-counter-intervals`, or `gpu-counter-info` with `gpu-counter-value`.

Both hold samples of the device, not of a process, every 3 to 330 us; a sample of the second holds until the next one
of its counter and ring buffer. The GPU is not sampled all the time (37 to 79 % in recordings), so each mean is weighted
by how long its samples held, and comes with the share of the time that they cover. Samples of several ring buffers go
into one mean: which part of the GPU each speaks of is not known.

The unit of a counter stands in the labels of its samples: "78.9400% (Percentage of ...)", "8.8599 GB/s", "0.0148%
(9.Texture Write Limiter)". The column `value` holds the number of the label (recordings of an M1, an M3 and an M3
Ultra); that is checked for each counter.
"""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from profkit.analysis.timeline.records import Spool
from profkit.analysis.timeline.spans import Spans, Union, overlap_lengths
from profkit.core.types import MetalCounter
from profkit.profilers.xctrace.cells import Value
from profkit.profilers.xctrace.metal.work import MORE, NumberedNames, cell_text, parse_interval

_LABEL = re.compile(
    r"\s*([-+]?\d[\d.,]*(?:[eE][-+]?\d+)?)\s*([^\s()\d][^\s()]*)?\s*(?:\((.*)\))?\s*", re.DOTALL
)
_BINARY = {"KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30, "TiB": 2.0**40}
_DECIMAL = {"B": 1.0, "bytes": 1.0, "kB": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}
_BYTES = _BINARY | _DECIMAL
_LOOKED_AT = 256  # samples of a counter whose labels are compared with their values
_CLOSE = 0.02
_LAST_DIGIT = 0.6e-4  # half of it, and a little: labels are rounded to four decimals
PER_CENT = "%"


@dataclass(frozen=True)
class SampleLabel:
    """What the label of a sample says. `unit` in base units ("%", "B/s", "B"), "" where there is none."""

    value: float  # in that unit
    unit: str
    scale: float  # of the unit as it is written
    note: str  # in brackets behind it


def read_label(text: str) -> SampleLabel | None:
    """The number, unit and note of a label; None where it begins with no number."""
    found = _LABEL.fullmatch(text)
    if found is None:
        return None
    digits, unit, note = found[1], found[2] or "", (found[3] or "").strip()
    try:
        value = float(digits.replace(",", "") if "." in digits else digits.replace(",", "."))
    except ValueError:
        return None
    size, slash, per = unit.partition("/")
    if size in _BYTES and (not slash or per in ("s", "sec", "second")):
        scale = _BYTES[size]
        return SampleLabel(value * scale, "B/s" if slash else "B", scale, note)
    return SampleLabel(value, unit, 1.0, note)


class UnitOfCounter:
    """Learns from the samples of one counter what its values are to be multiplied with to be in the base unit."""

    def __init__(self) -> None:
        self.unit = ""
        self.note = ""
        self._seen = 0
        self._largest = 0.0
        self._ratio: float | None = None  # of what the label says, in the base unit, to the value
        self._scale = 1.0

    def learn(self, value: float, label: str) -> None:
        """One sample; those of 0 tell the unit, others also how it is written."""
        if self._seen >= _LOOKED_AT or (self._seen and value == 0):
            return
        shown = read_label(label)
        if shown is None:
            return
        self._seen += 1
        if abs(value) > self._largest or self._seen == 1:
            self.unit, self.note, self._scale = shown.unit, self.note or shown.note, shown.scale
            if value != 0 and shown.value != 0:  # else it was rounded to nothing
                self._largest, self._ratio = abs(value), shown.value / value

    def per_cent(self) -> None:
        """The table says that the values are percentages, and no label was there."""
        if not self._seen:
            self.unit = PER_CENT

    @property
    def factor(self) -> float | None:
        """What to multiply a value with; None where label and value have nothing to do with each other."""
        if self._ratio is None:
            return self._scale
        for candidate in (self._scale, 100.0, *_BYTES.values()):
            rounded = _LAST_DIGIT * self._scale / self._largest
            if abs(self._ratio - candidate) <= max(_CLOSE * candidate, rounded):
                return candidate
        return None


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
class CounterIdentity:
    """One counter: its GPU ("" where that is not known), its name, unit and description.

    `of` is not "": no counter, but the time in which the counter of this name said so.
    """

    gpu: str
    name: str
    of: str = ""


@dataclass
class CounterSamples:
    """Fed with rows; puts the samples aside in `spool`, numbered by `counters`."""

    spool: Spool
    counters: NumberedNames[CounterIdentity] = field(
        default_factory=lambda: NumberedNames(CounterIdentity("", MORE), MOST_COUNTERS)
    )
    units: dict[int, UnitOfCounter] = field(default_factory=dict)
    rows: int = 0
    skipped: int = 0
    extent: tuple[int, int] | None = None  # from the begin of the first sample to the end of the last, ns
    longest: dict[int, int] = field(default_factory=dict)  # ns that a sample of a counter holds at most
    _names: dict[int, tuple[str, str, str]] = field(default_factory=dict)
    _times: tuple[array[int], array[int], array[int]] = field(default_factory=lambda: _empty_columns())
    _values: array[float] = field(default_factory=lambda: array("d"))

    def add(self, rows: Iterable[Sequence[Value]]) -> None:
        """Rows with the columns `SAMPLE`; of several tables that hold the same the first with rows is taken."""
        if self.rows:
            return
        cache: dict[tuple[Value, Value], int] = {}
        for start, duration, name, value, percentage, is_percentage, gpu, label in rows:
            when = parse_interval(start, duration)
            amount = value if isinstance(value, (int, float)) else percentage
            if when is None or not isinstance(amount, (int, float)) or not math.isfinite(amount) or not name:
                self.skipped += 1
                continue
            key = (gpu, name)
            at = cache.get(key)
            if at is None:
                at = cache[key] = self._number(CounterIdentity(cell_text(gpu), cell_text(name)))
            unit = self.units[at]
            if isinstance(label, str):
                unit.learn(float(amount), label)
                if name == TOP_LIMITER and (shown := read_label(label)) is not None and shown.note:
                    which = shown.note.partition(".")[2] or shown.note
                    self._append(
                        *when, 1.0, self._number(CounterIdentity(cell_text(gpu), which, TOP_LIMITER))
                    )
            elif is_percentage:
                unit.per_cent()
            self._append(*when, float(amount), at)
            self.rows += 1
        self._flush()

    def add_info(self, rows: Iterable[Sequence[Value]]) -> None:
        """Rows with the columns `COUNTER`: what the numbers in the other table mean. Comes before them."""
        for number, name, _, description, kind in rows:
            if isinstance(number, int) and cell_text(name):
                self._names[number] = (cell_text(name), cell_text(description), cell_text(kind))

    def add_raw(self, rows: Iterable[Sequence[Value]]) -> None:
        """Rows with the columns `RAW_SAMPLE`; those of a counter without a name are passed over."""
        if self.rows:
            return
        last: dict[tuple[Value, Value, Value], tuple[int, float, int]] = {}
        distances: dict[int, list[int]] = {}
        for at, number, value, device, ring in rows:
            when = parse_interval(at, 0)
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
                counter = self._number(CounterIdentity("", known[0]))
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
        self.longest = {
            counter: _LONGEST_HOLD << _median_place(counts) for counter, counts in distances.items()
        }

    def _describe(self, counter: int, known: tuple[str, str, str]) -> None:
        unit = self.units[counter]
        unit.note = known[1]
        if known[2].lower().startswith("percent"):
            unit.unit = PER_CENT

    def _number(self, counted: CounterIdentity) -> int:
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
        self._times, self._values = _empty_columns(), array("d")


def _empty_columns() -> tuple[array[int], array[int], array[int]]:
    return array("q"), array("q"), array("q")


def _median_place(counts: Sequence[int]) -> int:
    """The place at which half of all counts is reached."""
    total, seen = sum(counts), 0
    for place, count in enumerate(counts):
        seen += count
        if 2 * seen >= total:
            return place
    return 0


_NEVER = 1 << 61
_SHARE_TOLD = 0.01  # of the sampled time; a limiter that was the top one for less is not named


class _Sums:
    """Columns by the number of the counter. Weights in ns."""

    def __init__(self, size: int) -> None:
        import numpy as np

        self.weight, self.total = np.zeros(size), np.zeros(size)
        self.active_weight, self.active_total = np.zeros(size), np.zeros(size)
        self.touched = np.zeros(size)  # weight of the samples in which the process worked
        self.least, self.most = np.full(size, np.inf), np.full(size, -np.inf)
        self.count = np.zeros(size, dtype=np.int64)
        self.covered = [Union() for _ in range(size)]


def counters_in(
    samples: CounterSamples, part: Spans, busy: Spans | None, gpu: str | None = None
) -> tuple[MetalCounter, ...]:
    """Each counter (of one GPU, where they tell theirs) over the part that counts, by name.

    `busy`: when the process had the GPU. The mean of a counter is the sum of value times the time that the sample held
    within the part, over the sum of those times.
    """
    table = samples.counters.all
    if not table or not part.total:
        return ()
    sums = _sum_samples(samples, part, busy, len(table))
    limiters = _name_limiters(table, sums)
    return tuple(
        sorted(
            _counters(samples, sums, part, gpu, limiters, with_active=busy is not None),
            key=lambda counter: counter.name,
        )
    )


def _counters(
    samples: CounterSamples,
    sums: _Sums,
    part: Spans,
    gpu: str | None,
    limiters: dict[str, str],
    *,
    with_active: bool,
) -> Iterator[MetalCounter]:
    for at, counted in enumerate(samples.counters.all):
        if counted.of or not sums.weight[at] or (gpu is not None and counted.gpu not in ("", gpu)):
            continue
        unit = samples.units[at]
        factor, word = (1.0, "") if unit.factor is None else (unit.factor, unit.unit)
        least, most = float(sums.least[at]) * factor, float(sums.most[at]) * factor
        mean, active, filled = sums.total[at] / sums.weight[at] * factor, None, None
        if with_active and sums.active_weight[at]:
            filled = float(sums.active_weight[at] / sums.touched[at])
            active = _clamp(least, sums.active_total[at] / sums.active_weight[at] * factor, most)
        yield MetalCounter(
            counted.name,
            word,
            _clamp(least, mean, most),
            least,
            most,
            int(sums.count[at]),
            (sums.covered[at].spans() & part).total / part.total,
            limiters.get(counted.gpu) if counted.name == TOP_LIMITER else unit.note or None,
            active,
            filled,
        )


def _clamp(least: float, mean: float, most: float) -> float:
    """A mean without the last digit that its sums lost."""
    return min(max(float(mean), least), most)


def _sum_samples(samples: CounterSamples, part: Spans, busy: Spans | None, size: int) -> _Sums:
    import numpy as np

    sums = _Sums(size)
    working = None if busy is None else part & busy
    longest = np.full(size, _NEVER, dtype=np.int64)
    for number, hold in samples.longest.items():
        longest[number] = hold
    for counter, start, end, value in _sample_blocks(samples, part, longest):
        held = overlap_lengths(start, end, part)
        sums.weight += np.bincount(counter, held, size)
        sums.total += np.bincount(counter, held * value, size)
        sums.count += np.bincount(counter, minlength=size)
        if working is not None:
            active = overlap_lengths(start, end, working)
            sums.active_weight += np.bincount(counter, active, size)
            sums.active_total += np.bincount(counter, active * value, size)
            sums.touched += np.bincount(counter, held * (active > 0), size)
        _add_extremes(sums, counter, value)
        for at in np.flatnonzero(np.bincount(counter)).tolist():
            sums.covered[at].add(start[counter == at], end[counter == at])
    return sums


def _sample_blocks(samples: CounterSamples, part: Spans, longest: Any) -> Iterator[tuple[Any, Any, Any, Any]]:
    """Counter, begin, end and value of the samples that touch the part that counts."""
    import numpy as np

    for block in samples.spool:
        end = np.minimum(block["end"], block["start"] + longest[block["counter"]])
        inside = overlap_lengths(block["start"], end, part) > 0
        if inside.any():
            yield block["counter"][inside], block["start"][inside], end[inside], block["value"][inside]


def _add_extremes(sums: _Sums, counter: Any, value: Any) -> None:
    import numpy as np

    order = np.argsort(counter, kind="stable")
    cuts = np.flatnonzero(np.r_[True, np.diff(counter[order]) != 0])
    which = counter[order][cuts]
    sums.least[which] = np.minimum(sums.least[which], np.minimum.reduceat(value[order], cuts))
    sums.most[which] = np.maximum(sums.most[which], np.maximum.reduceat(value[order], cuts))


def _name_limiters(table: list[CounterIdentity], sums: _Sums) -> dict[str, str]:
    """By GPU what the top limiter was, with its share of the sampled time, in words."""
    found: dict[str, list[tuple[float, str]]] = {}
    for at, counted in enumerate(table):
        if counted.of:
            found.setdefault(counted.gpu, []).append((float(sums.weight[at]), counted.name))
    named_limiters = {}
    for gpu, named in found.items():
        whole = sum(weight for weight, _ in named)
        parts = [
            f"{name} {100 * weight / whole:.0f} %"
            for weight, name in sorted(named, key=lambda item: (-item[0], item[1]))
            if whole and weight / whole >= _SHARE_TOLD
        ]
        named_limiters[gpu] = ", ".join(parts[:5])
    return named_limiters
