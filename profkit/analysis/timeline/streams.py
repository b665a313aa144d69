"""What runs on each stream of a device, and how much of it runs beside the work of other streams."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from profkit.analysis.timeline.records import TRANSFER, Columns, Configuration
from profkit.analysis.timeline.spans import Spans, empty_spans, union
from profkit.core.types import DeviceStreams, StreamTime

_LAST = 1 << 62
MOST_STREAMS = 64  # of a process on a device; of more nothing is said


@dataclass
class _Stream:
    """Sums of one stream in ns: kernels, copies, and what of them ran while kernels of other streams did."""

    kernels: int = 0
    copies: int = 0
    computing: int = 0
    computing_beside: int = 0
    copying: int = 0
    copying_beside: int = 0
    time: Counter[int] = field(default_factory=Counter)  # by configuration


class StreamSums:
    """Fed with what counts, in the order of the starts. What is still open at the end of a block waits for the next."""

    def __init__(self, configurations: list[Configuration]) -> None:
        self._table = configurations
        self._streams: dict[
            tuple[int, int], dict[int, _Stream]
        ] = {}  # by device and process, then by its number
        self._open: dict[tuple[int, int], Columns] = {}
        self._computing: Counter[tuple[int, int]] = Counter()
        self._together: Counter[tuple[int, int]] = Counter()

    def add(self, block: Columns) -> None:
        """Activities (columns ACTIVITY)."""
        groups = block["device"].astype("i4") << 16 | block["process"]
        for group in _distinct(groups):
            rows = block if (groups == group).all() else block[groups == group]
            pair = (group >> 16, group & 0xFFFF)
            self._count(pair, rows)
            self._overlap(pair, rows, int(rows["start"][-1]))

    def _count(self, group: tuple[int, int], rows: Columns) -> None:
        import numpy as np

        streams = self._streams.setdefault(group, {})
        numbers = _distinct(rows["stream"])
        for number in numbers:
            own = rows[rows["stream"] == number] if len(numbers) > 1 else rows
            stream = streams.setdefault(number, _Stream())
            copies = own["kind"] == TRANSFER
            stream.copies += int(copies.sum())
            stream.kernels += int((~copies).sum())
            spent = np.bincount(own["what"][~copies], (own["end"] - own["start"])[~copies])
            for what in np.flatnonzero(spent).tolist():
                stream.time[what] += int(spent[what])

    def _overlap(self, group: tuple[int, int], rows: Columns, horizon: int) -> None:
        """Sum up until `horizon`, before which nothing more begins."""
        import numpy as np

        if group in self._open:
            rows = np.concatenate([self._open[group], rows])
        still = rows[rows["end"] > horizon].copy()
        still["start"] = np.maximum(still["start"], horizon)
        self._open[group] = still
        copies = rows["kind"] == TRANSFER
        ends = np.minimum(rows["end"], horizon)
        streams = self._streams[group]
        if len(streams) > MOST_STREAMS:
            return
        computing, copying = (
            {
                n: union(rows["start"][of], ends[of])
                for n in streams
                if (of := kind & (rows["stream"] == n)).any()
            }
            for kind in (~copies, copies)
        )
        together = empty_spans()
        for number, spans in computing.items():
            others = _joined([other for n, other in computing.items() if n != number])
            beside = spans & others
            together = together | beside
            streams[number].computing += spans.total
            streams[number].computing_beside += beside.total
        every = _joined(list(computing.values()))
        for number, spans in copying.items():
            streams[number].copying += spans.total
            streams[number].copying_beside += (spans & every).total
        self._computing[group] += every.total
        self._together[group] += together.total

    def summed(self) -> tuple[DeviceStreams, ...]:
        """By device and process, those with several streams alone."""
        for group, rows in self._open.items():
            self._overlap(group, rows[:0], _LAST)
        return tuple(
            DeviceStreams(
                group[0],
                tuple(
                    sorted(
                        (self._of(number, stream) for number, stream in streams.items()),
                        key=lambda stream: -(stream.kernel_seconds + stream.copy_seconds),
                    )
                ),
                self._computing[group] / 1e9,
                self._together[group] / 1e9,
            )
            for group, streams in sorted(self._streams.items())
            if 1 < len(streams) <= MOST_STREAMS
        )

    def _of(self, number: int, stream: _Stream) -> StreamTime:
        return StreamTime(
            number,
            stream.kernels,
            stream.computing / 1e9,
            stream.computing_beside / 1e9,
            stream.copies,
            stream.copying / 1e9,
            stream.copying_beside / 1e9,
            self._table[stream.time.most_common(1)[0][0]].name if stream.time else None,
        )


def _distinct(column: Columns) -> list[int]:
    """The values in a column, most often one: sorting it would take longer than all sums."""
    import numpy as np

    return [int(column[0])] if (column == column[0]).all() else np.unique(column).tolist()


def _joined(several: list[Spans]) -> Spans:
    import numpy as np

    if len(several) < 2:
        return several[0] if several else empty_spans()
    return union(np.concatenate([s.begins for s in several]), np.concatenate([s.ends for s in several]))
