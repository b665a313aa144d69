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

import re
from array import array
from collections.abc import Iterator
from dataclasses import dataclass

from profkit.analysis.timeline.records import Spool
from profkit.analysis.timeline.spans import Spans, Union, overlap_lengths
from profkit.core.codec import is_finite_number
from profkit.core.types import MetalCounter
from profkit.profilers.xctrace.cells import Value
from profkit.profilers.xctrace.metal.tables import (
    MORE,
    NumberedNames,
    RowCount,
    Rows,
    cell_text,
    parse_interval,
)
from profkit.profilers.xctrace.tables import ExportTable

COUNTERS, COUNTER_INFO, COUNTER_VALUES = (
    "metal-gpu-counter-intervals",
    "gpu-counter-info",
    "gpu-counter-value",
)
# In the order to be read in, with the cells that are wanted.
COUNTER_TABLES = {
    COUNTERS: ("start", "duration", "name", "value", "percent-value", "is-percentage", "gpu", "label/@fmt"),
    COUNTER_INFO: ("counter-id", "name", "description", "type"),
    COUNTER_VALUES: ("timestamp", "counter-id", "value", "accelerator-id", "ring-buffer-index"),
}
MOST_COUNTERS = 1024
TOP_LIMITER = "Top Performance Limiter"  # its label names which limiter that was
_SAMPLE = [("start", "i8"), ("end", "i8"), ("value", "f8"), ("counter", "i4")]
_BLOCK = 1 << 16
_LONGEST_HOLD = 8  # times the usual distance of two samples; the GPU was asleep after that
_NEVER = 1 << 61
_SHARE_TOLD = 0.01  # of the sampled time; a limiter that was the top one for less is not named

_LABEL = re.compile(
    r"\s*([-+]?\d[\d.,]*(?:[eE][-+]?\d+)?)\s*([^\s()\d][^\s()]*)?\s*(?:\((.*)\))?\s*", re.DOTALL
)
_BYTES = {"B": 1.0, "bytes": 1.0, "kB": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
          "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30, "TiB": 2.0**40}  # fmt: skip
_LOOKED_AT = 256  # samples of a counter whose labels are compared with their values
_CLOSE = 0.02
_LAST_DIGIT = 0.6e-4  # half of it, and a little: labels are rounded to four decimals


@dataclass(frozen=True)
class SampleLabel:
    """What the label of a sample says. `unit` in base units ("%", "B/s", "B"), "" where there is none."""

    value: float  # in that unit
    unit: str
    scale: float  # of the unit as it is written
    note: str  # in brackets behind it


def read_label(text: str) -> SampleLabel | None:
    """The number, unit and note of a label; None where it begins with no number."""
    match = _LABEL.fullmatch(text)
    if match is None:
        return None
    digits, unit, note = match[1], match[2] or "", (match[3] or "").strip()
    try:
        value = float(digits.replace(",", "") if "." in digits else digits.replace(",", "."))
    except ValueError:
        return None
    size, slash, per = unit.partition("/")
    if size in _BYTES and (not slash or per in ("s", "sec", "second")):
        return SampleLabel(value * _BYTES[size], "B/s" if slash else "B", _BYTES[size], note)
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

    @property
    def factor(self) -> float | None:
        """What to multiply a value with; None where label and value have nothing to do with each other."""
        if self._ratio is None:
            return self._scale
        rounded = _LAST_DIGIT * self._scale / self._largest
        for candidate in (self._scale, 100.0, *_BYTES.values()):
            if abs(self._ratio - candidate) <= max(_CLOSE * candidate, rounded):
                return candidate
        return None


@dataclass(frozen=True)
class CounterIdentity:
    """One counter: its GPU ("" where that is not known) and its name.

    `of` is not "": no counter, but the time in which the counter of this name said so.
    """

    gpu: str
    name: str
    of: str = ""


class CounterSamples:
    """Fed with tables; puts the samples aside in `spool`, numbered by `counters`. Of both kinds the first counts."""

    def __init__(self, spool: Spool) -> None:
        self.spool = spool
        self.counters = NumberedNames(CounterIdentity("", MORE), MOST_COUNTERS)
        self.units: dict[int, UnitOfCounter] = {}
        self.skipped = 0
        # from the begin of the first sample to the end of the last, ns
        self.extent: tuple[int, int] | None = None
        self.longest: dict[int, int] = {}  # ns that a sample of a counter holds at most
        self._rows: dict[str, int] = {}
        self._names: dict[int, tuple[str, str, str]] = {}
        self._samples = 0
        self._times: tuple[array[int], array[int], array[int]] = array("q"), array("q"), array("q")
        self._values = array("d")

    def read(self, table: ExportTable) -> int:
        """The rows of one table; how many the longest of its schema has."""
        rows = RowCount(table.rows(COUNTER_TABLES[table.schema]))  # type: ignore[arg-type]
        if table.schema == COUNTER_INFO:
            self._add_info(rows)
        elif self._samples:
            for _ in rows:
                pass
        elif table.schema == COUNTERS:
            self._add_intervals(rows)
        else:
            self._add_values(rows)
        self._rows[table.schema] = max(rows.rows, self._rows.get(table.schema, 0))
        return self._rows[table.schema]

    def _add_intervals(self, rows: Rows) -> None:
        numbers: dict[tuple[Value, Value], int] = {}
        for start, duration, name, value, percentage, is_percentage, gpu, label in rows:
            when = parse_interval(start, duration)
            amount = value if isinstance(value, (int, float)) else percentage
            if when is None or not is_finite_number(amount) or not name:
                self.skipped += 1
                continue
            number = numbers.get((gpu, name))
            if number is None:
                number = numbers[gpu, name] = self._number(CounterIdentity(cell_text(gpu), cell_text(name)))
            unit = self.units[number]
            if isinstance(label, str):
                unit.learn(float(amount), label)
                if name == TOP_LIMITER and (shown := read_label(label)) is not None and shown.note:
                    which = shown.note.partition(".")[2] or shown.note
                    limiter = self._number(CounterIdentity(cell_text(gpu), which, TOP_LIMITER))
                    self._append(*when, 1.0, limiter)
            elif is_percentage:
                unit.unit = unit.unit or "%"
            self._append(*when, float(amount), number)
            self._samples += 1
        self._flush()

    def _add_info(self, rows: Rows) -> None:
        """What the numbers in the other table mean; comes before it."""
        for number, name, description, kind in rows:
            if isinstance(number, int) and cell_text(name):
                self._names[number] = (cell_text(name), cell_text(description), cell_text(kind))

    def _add_values(self, rows: Rows) -> None:
        last: dict[tuple[Value, Value, Value], tuple[int, float, int]] = {}
        distances: dict[int, list[int]] = {}  # how often two samples were 2^n ns apart
        for at, number, value, device, ring in rows:
            when = parse_interval(at, 0)
            known = self._names.get(number) if isinstance(number, int) else None
            if when is None or known is None or not is_finite_number(value):
                self.skipped += 1
                continue
            key = (device, number, ring)
            before = last.get(key)
            if before is None:
                counter = self._number(CounterIdentity("", known[0]))
                self.units[counter].note = known[1]
                if known[2].lower().startswith("percent"):
                    self.units[counter].unit = "%"
            else:
                since, amount, counter = before
                if when[0] > since:
                    self._append(since, when[0], amount, counter)
                    distances.setdefault(counter, [0] * 64)[min((when[0] - since).bit_length(), 63)] += 1
            last[key] = (when[0], float(value), counter)
            self._samples += 1
        self._flush()
        for counter, counts in distances.items():
            self.longest[counter] = min(_LONGEST_HOLD << _find_median_place(counts), _NEVER)

    def _number(self, identity: CounterIdentity) -> int:
        number = self.counters.number(identity)
        self.units.setdefault(number, UnitOfCounter())
        return number

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

        block = np.zeros(len(self._values), dtype=_SAMPLE)
        block["start"], block["end"], block["counter"] = (np.frombuffer(c, dtype="q") for c in self._times)
        block["value"] = np.frombuffer(self._values, dtype="d")
        if len(block):
            first, last = int(block["start"].min()), int(block["end"].max())
            before = self.extent or (first, last)
            self.extent = min(first, before[0]), max(last, before[1])
        self.spool.add(block)
        self._times, self._values = (array("q"), array("q"), array("q")), array("d")


def _find_median_place(counts: list[int]) -> int:
    """The place at which half of all counts is reached."""
    total, reached = sum(counts), 0
    for place, count in enumerate(counts):
        reached += count
        if 2 * reached >= total:
            return place
    return 0


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
    samples: CounterSamples, part: Spans, busy: Spans | None, gpu: str | None
) -> tuple[MetalCounter, ...]:
    """Every counter of a GPU in the part that counts, by name.

    `busy` is when the process had work on the GPU. The mean of a counter is the sum of value times the time that the
    sample held within the part, over the sum of those times.
    """
    if not samples.counters.all or not part.total:
        return ()
    counters = _list_counters(samples, _sum_samples(samples, part, busy), part, gpu)
    return tuple(sorted(counters, key=lambda counter: counter.name))


def _list_counters(
    samples: CounterSamples, sums: _Sums, part: Spans, gpu: str | None
) -> Iterator[MetalCounter]:
    limiters = _name_limiters(samples, sums)
    for at, identity in enumerate(samples.counters.all):
        if identity.of or not sums.weight[at] or (gpu is not None and identity.gpu not in ("", gpu)):
            continue
        unit = samples.units[at]
        factor, word = (1.0, "") if unit.factor is None else (unit.factor, unit.unit)
        least, most = float(sums.least[at]) * factor, float(sums.most[at]) * factor
        mean, active, filled = sums.total[at] / sums.weight[at] * factor, None, None
        if sums.active_weight[at]:
            filled = float(sums.active_weight[at] / sums.touched[at])
            active = _clamp(least, sums.active_total[at] / sums.active_weight[at] * factor, most)
        yield MetalCounter(
            identity.name,
            word,
            _clamp(least, mean, most),
            least,
            most,
            int(sums.count[at]),
            (sums.covered[at].spans() & part).total / part.total,
            limiters.get(identity.gpu) if identity.name == TOP_LIMITER else unit.note or None,
            active,
            filled,
        )


def _clamp(least: float, mean: float, most: float) -> float:
    """A mean without the last digit that its sums lost."""
    return min(max(float(mean), least), most)


def _sum_samples(samples: CounterSamples, part: Spans, busy: Spans | None) -> _Sums:
    import numpy as np

    size = len(samples.counters.all)
    sums = _Sums(size)
    working = None if busy is None else part & busy
    longest = np.full(size, _NEVER, dtype=np.int64)
    for number, hold in samples.longest.items():
        longest[number] = hold
    for block in samples.spool:
        start, end = block["start"], np.minimum(block["end"], block["start"] + longest[block["counter"]])
        held = overlap_lengths(start, end, part)
        inside = held > 0
        if not inside.any():
            continue
        counter, value = block["counter"][inside], block["value"][inside]
        start, end, held = start[inside], end[inside], held[inside]
        sums.weight += np.bincount(counter, held, size)
        sums.total += np.bincount(counter, held * value, size)
        sums.count += np.bincount(counter, minlength=size)
        if working is not None:
            active = overlap_lengths(start, end, working)
            sums.active_weight += np.bincount(counter, active, size)
            sums.active_total += np.bincount(counter, active * value, size)
            sums.touched += np.bincount(counter, held * (active > 0), size)
        np.minimum.at(sums.least, counter, value)
        np.maximum.at(sums.most, counter, value)
        for at in np.unique(counter).tolist():
            sums.covered[at].add(start[counter == at], end[counter == at])
    return sums


def _name_limiters(samples: CounterSamples, sums: _Sums) -> dict[str, str]:
    """By GPU what the top limiter was, with its share of the sampled time, in words."""
    weights: dict[str, list[tuple[float, str]]] = {}
    for at, identity in enumerate(samples.counters.all):
        if identity.of:
            weights.setdefault(identity.gpu, []).append((float(sums.weight[at]), identity.name))
    limiters = {}
    for gpu, named in weights.items():
        whole = sum(weight for weight, _ in named)
        parts = [
            f"{name} {100 * weight / whole:.0f} %"
            for weight, name in sorted(named, key=lambda item: (-item[0], item[1]))
            if whole and weight / whole >= _SHARE_TOLD
        ]
        limiters[gpu] = ", ".join(parts[:5])
    return limiters
