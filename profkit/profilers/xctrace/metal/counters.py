"""GPU counters: the table `metal-gpu-counter-intervals`.

It holds samples of the device, not of a process, every 3 to 330 us. The GPU is not sampled all the time (37 to 79 % in
recordings), so each mean is weighted by how long its samples held, and comes with the share of the time that they
cover. A counter is in per cent where the table says so (`is-percentage`), else it has no unit.
"""

from __future__ import annotations

from array import array

from profkit.analysis.timeline.spans import Spans, overlap_lengths, union
from profkit.core.codec import is_finite_number
from profkit.core.types import MetalCounter
from profkit.profilers.xctrace.metal.tables import MORE, NumberedNames, cell_text, parse_interval
from profkit.profilers.xctrace.tables import ExportTable

COUNTERS = "metal-gpu-counter-intervals"
_CELLS = ("start", "duration", "name", "value", "percent-value", "is-percentage")
_MOST_COUNTERS = 1024


class CounterSamples:
    """The samples of the tables that were read, as columns; numbered by name."""

    def __init__(self) -> None:
        self.skipped = 0  # rows without a time, a name or a value
        self._names = NumberedNames(MORE, _MOST_COUNTERS)
        self._in_percent: set[int] = set()
        self._start, self._end, self._counter = array("q"), array("q"), array("q")
        self._value = array("d")

    def read(self, table: ExportTable) -> int:
        """The rows of one table, and how many there are."""
        rows = 0
        for start, duration, name, value, percentage, is_percentage in table.rows(_CELLS):
            rows += 1
            when = parse_interval(start, duration)  # type: ignore[arg-type]
            amount = value if isinstance(value, (int, float)) else percentage
            if when is None or not is_finite_number(amount) or not name:
                self.skipped += 1
                continue
            number = self._names.number(cell_text(name))  # type: ignore[arg-type]
            if is_percentage:
                self._in_percent.add(number)
            self._start.append(when[0])
            self._end.append(when[1])
            self._counter.append(number)
            self._value.append(amount)
        return rows

    @property
    def extent(self) -> tuple[int, int] | None:
        """From the begin of the first sample to the end of the last, in ns."""
        return (min(self._start), max(self._end)) if self._start else None

    def counters(self, part: Spans, busy: Spans | None) -> tuple[MetalCounter, ...]:
        """Every counter in the part that counts, by name. `busy` is when the process had work on the GPU.

        The mean of a counter is the sum of value times the time that the sample held within the part, over the sum of
        those times.
        """
        import numpy as np

        if not self._start or not part.total:
            return ()
        start, end = np.frombuffer(self._start, dtype="q"), np.frombuffer(self._end, dtype="q")
        value, counter = np.frombuffer(self._value, dtype="d"), np.frombuffer(self._counter, dtype="q")
        held = overlap_lengths(start, end, part)
        worked = np.zeros(len(held)) if busy is None else overlap_lengths(start, end, part & busy)
        counters = []
        for number, name in enumerate(self._names.all):
            own = (counter == number) & (held > 0)
            if not own.any():
                continue
            values, weights, active = value[own], held[own], worked[own]
            least, most = float(values.min()), float(values.max())
            counters.append(
                MetalCounter(
                    name,
                    "%" if number in self._in_percent else "",
                    _mean(values, weights, least, most),
                    least,
                    most,
                    int(own.sum()),
                    (union(start[own], end[own]) & part).total / part.total,
                    active=_mean(values, active, least, most) if active.any() else None,
                    filled=float(active.sum() / weights[active > 0].sum()) if active.any() else None,
                )
            )
        return tuple(sorted(counters, key=lambda one: one.name))


def _mean(values: object, weights: object, least: float, most: float) -> float:
    """A weighted mean, without the last digit that its sums lost."""
    import numpy as np

    return min(max(float(np.average(values, weights=weights)), least), most)  # type: ignore[call-overload]
