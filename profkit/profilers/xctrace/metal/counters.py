"""GPU counters: the table `metal-gpu-counter-intervals`.

It holds samples of the device, not of a process, every 3 to 330 us. The GPU is not sampled all the time (37 to 79 % in
recordings), so each mean is weighted by how long its samples held, and comes with the share of the time that they
cover. Samples of several ring buffers go into one mean: which part of the GPU each speaks of is not known.

A counter is in per cent where the table says so (`is-percentage`), else it has no unit.
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

COUNTERS = "metal-gpu-counter-intervals"
# The cells that are wanted.
COUNTER_TABLES = {
    COUNTERS: ("start", "duration", "name", "value", "percent-value", "is-percentage", "gpu", "label/@fmt"),
}
MOST_COUNTERS = 1024
TOP_LIMITER = "Top Performance Limiter"  # its label names which limiter that was
_SAMPLE = [("start", "i8"), ("end", "i8"), ("value", "f8"), ("counter", "i4")]
_BLOCK = 1 << 16
_SHARE_TOLD = 0.01  # of the sampled time; a limiter that was the top one for less is not named

# What stands in brackets behind a label: "0.0148% (9.Texture Write Limiter)"
_LIMITER = re.compile(r"[^(]*\((?:\d+\.)?([^()]+)\)\s*")


@dataclass(frozen=True)
class CounterIdentity:
    """One counter: its GPU ("" where that is not known) and its name.

    `of` is not "": no counter, but the time in which the counter of this name said so.
    """

    gpu: str
    name: str
    of: str = ""


class CounterSamples:
    """Fed with tables; puts the samples aside in `spool`, numbered by `counters`."""

    def __init__(self, spool: Spool) -> None:
        self.spool = spool
        self.counters = NumberedNames(CounterIdentity("", MORE), MOST_COUNTERS)
        self.units: dict[int, str] = {}
        self.skipped = 0
        # from the begin of the first sample to the end of the last, ns
        self.extent: tuple[int, int] | None = None
        self._rows = 0
        self._times: tuple[array[int], array[int], array[int]] = array("q"), array("q"), array("q")
        self._values = array("d")

    def read(self, table: ExportTable) -> int:
        """The rows of one table; how many the longest has."""
        rows = RowCount(table.rows(COUNTER_TABLES[table.schema]))  # type: ignore[arg-type]
        self._add_intervals(rows)
        self._rows = max(rows.rows, self._rows)
        return self._rows

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
            if is_percentage:
                self.units[number] = "%"
            if name == TOP_LIMITER and (which := _LIMITER.fullmatch(str(label))) is not None:
                self._append(*when, 1.0, self._number(CounterIdentity(cell_text(gpu), which[1], TOP_LIMITER)))
            self._append(*when, float(amount), number)
        self._flush()

    def _number(self, identity: CounterIdentity) -> int:
        number = self.counters.number(identity)
        self.units.setdefault(number, "")
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
        least, most = float(sums.least[at]), float(sums.most[at])
        mean, active, filled = sums.total[at] / sums.weight[at], None, None
        if sums.active_weight[at]:
            filled = float(sums.active_weight[at] / sums.touched[at])
            active = _clamp(least, sums.active_total[at] / sums.active_weight[at], most)
        yield MetalCounter(
            identity.name,
            samples.units[at],
            _clamp(least, mean, most),
            least,
            most,
            int(sums.count[at]),
            (sums.covered[at].spans() & part).total / part.total,
            limiters.get(identity.gpu) if identity.name == TOP_LIMITER else None,
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
    for block in samples.spool:
        start, end = block["start"], block["end"]
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
