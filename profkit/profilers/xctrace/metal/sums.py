"""GPU time by name in the part that counts: encoders, channels, shaders, processes. Columns in ns, sums in s."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal

from profkit.analysis.timeline.spans import Spans, overlap_lengths, union
from profkit.core.types import Kernel, KernelTime, MetalProcess, MetalWork, Spread
from profkit.profilers.xctrace.cells import Process, Value, process_label
from profkit.profilers.xctrace.metal.work import (
    MORE,
    Columns,
    Encoders,
    GpuWork,
    NumberedNames,
    PresentedFrames,
    cell_text,
    encoder_name,
    parse_interval,
    process_of,
)

MOST_TOLD = 512  # names of one kind that are kept apart in a result
REST = "[more]"
_DIGITS = re.compile(r"\d+")
_MIDDLE, _NEARLY_ALL = 50, 95


@dataclass(frozen=True)
class NamedWork:
    """All work of one name. Times in ns; `busy` is the union, `each` one value per instance."""

    name: str
    busy: int
    each: Any

    @property
    def total(self) -> int:
        """What may have run side by side, added up."""
        return int(self.each.sum())

    def work(self, kind: Literal["encoder", "shader", "channel"]) -> MetalWork:
        """The same as the model has it."""
        import numpy as np

        return MetalWork(
            self.name,
            kind,
            len(self.each),
            self.total / 1e9,
            self.busy / 1e9,
            float(np.median(self.each)) / 1e9,
            int(self.each.max()) / 1e9,
        )

    def kernel(self) -> KernelTime:
        """The same as other tools' traces have kernels."""
        import numpy as np

        return KernelTime(
            Kernel(self.name, (), ()),
            len(self.each),
            self.total / 1e9,
            float(np.median(self.each)) / 1e9,
            int(self.each.min()) / 1e9,
            int(self.each.max()) / 1e9,
        )


def by_name(
    names: Sequence[str], which: Any, start: Any, end: Any, part: Spans, instance: Any | None = None
) -> tuple[NamedWork, ...]:
    """Work by name, largest first: `which` is the number of each interval's name.

    Intervals of one name with the same `instance` other than 0 are one (an encoder in several pieces, or with a vertex
    and a fragment part). Numbers in names are folded where there are more names than anybody reads.
    """
    import numpy as np

    inside = overlap_lengths(start, end, part)
    kept = inside > 0
    which, start, end, inside = which[kept], start[kept], end[kept], inside[kept]
    if not len(which):
        return ()
    names, which = _fold_names(names, which, inside)
    own = np.arange(len(which), dtype=np.int64) + (1 << 62)  # a piece without an id is an instance of its own
    instance = own if instance is None else np.where(instance[kept] == 0, own, instance[kept])
    order = np.argsort(which, kind="stable")
    cuts = np.flatnonzero(np.r_[True, np.diff(which[order]) != 0, True])
    found = []
    for first, last in pairwise(cuts.tolist()):
        rows = order[first:last]
        _, of = np.unique(instance[rows], return_inverse=True)
        each = np.bincount(of, inside[rows]).astype(np.int64)
        found.append(
            NamedWork(names[int(which[rows[0]])], (union(start[rows], end[rows]) & part).total, each)
        )
    return tuple(sorted(found, key=lambda one: (-one.total, one.name)))


def _fold_names(names: Sequence[str], which: Any, inside: Any) -> tuple[list[str], Any]:
    """Names as they are; of too many those that differ in numbers alone are one, and of still too many the largest."""
    import numpy as np

    used = np.flatnonzero(np.bincount(which))
    if len(used) <= MOST_TOLD:
        return list(names), which
    table: dict[str, int] = {}
    place = np.zeros(len(names), dtype=np.int64)
    for number in used.tolist():
        place[number] = table.setdefault(_DIGITS.sub("#", names[number]), len(table))
    which = place[which]
    if len(table) <= MOST_TOLD:
        return list(table), which
    spent = np.bincount(which, inside, len(table))
    rank = np.empty(len(table), dtype=np.int64)
    rank[np.argsort(-spent, kind="stable")] = np.arange(len(table))
    ordered = sorted(table, key=lambda name: int(rank[table[name]]))
    return [*ordered[: MOST_TOLD - 1], REST], np.minimum(rank[which], MOST_TOLD - 1)


def processes_in(
    processes: Sequence[Process | None],
    which: Any,
    start: Any,
    end: Any,
    part: Spans,
    target: Collection[int],
) -> tuple[MetalProcess, ...]:
    """What each process had on the GPU in the part that counts, busiest first."""
    return tuple(
        sorted(
            _processes(processes, which, start, end, part, target),
            key=lambda one: (-one.busy, one.name, one.pid or 0),
        )
    )


def _processes(
    processes: Sequence[Process | None],
    which: Any,
    start: Any,
    end: Any,
    part: Spans,
    target: Collection[int],
) -> Iterator[MetalProcess]:
    for number, process in enumerate(processes):
        rows = which == number
        inside = overlap_lengths(start[rows], end[rows], part) > 0
        count = int(inside.sum())
        if count or number in target:
            busy = (union(start[rows], end[rows]) & part).total
            name = process_label(process) if process is None else process.name
            pid = None if process is None else process.pid
            yield MetalProcess(name, pid, busy / 1e9, count, number in target)


def time_spread(values: Any) -> Spread | None:
    """Many times in ns, as seconds; None of none."""
    import numpy as np

    if not len(values):
        return None
    median, p95 = np.percentile(values, (_MIDDLE, _NEARLY_ALL))
    return Spread(
        len(values), float(median) / 1e9, float(p95) / 1e9, int(values.max()) / 1e9, int(values.sum()) / 1e9
    )


_DRAWS = "Fragment"


def frames_in(
    own: Mapping[str, Any],
    channels: Sequence[str],
    presents: PresentedFrames | None,
    whose: Collection[Process | None],
    part: Spans,
) -> Spread | None:
    """From the begin of one frame on the GPU to that of the next, both in one stretch of the part that counts.

    A frame is a `frame-number` that was presented; where the table that tells this is not there (`presents` None), each
    of a process that had work on the fragment channel: one that only computes draws nothing.
    """
    import numpy as np

    numbered = own["frame"] > 0
    if presents is None:
        drawing = [number for number, name in enumerate(channels) if name == _DRAWS]
        if not np.isin(own["channel"], drawing).any():
            return None
    else:
        shown = set().union(*(presents.frames.get(process, set()) for process in whose))
        numbered &= np.isin(own["frame"], sorted(shown))
    frame, start = own["frame"][numbered], own["start"][numbered]
    order = np.lexsort((start, frame))
    frame, start = frame[order], start[order]
    if not len(frame):
        return None
    begins = np.sort(start[np.flatnonzero(np.r_[True, frame[1:] != frame[:-1]])])
    begins = begins[part.holds(begins)]
    stretch = np.searchsorted(part.begins, begins, side="right")
    return time_spread(np.diff(begins)[stretch[1:] == stretch[:-1]])


NO_LABEL = "(no label)"
BLIT = "Blit"


def encoder_names(work: GpuWork, rows: Mapping[str, Any], encoders: Encoders) -> tuple[list[str], Any]:
    """Names, and for each interval the number of its own.

    The label in the list of encoders, joined by `encoder-id`; else the labels that the interval itself shows
    ("command buffer:encoder"); else the channel.
    """
    import numpy as np

    listed = encoders.labels.all
    shown = [encoder_name(*_split_label(label)) for label in work.labels.all]
    channels = [f"{channel} {NO_LABEL}".strip() for channel in work.channels.all]
    names = [*listed, *shown, *channels]
    empty_listed = np.array([not label for label in listed] or [True])
    empty_shown = np.array([not label for label in shown] or [True])
    number = encoders.label_numbers(rows["encoder"])
    by_list = (number >= 0) & ~empty_listed[np.maximum(number, 0)]
    by_interval = ~empty_shown[rows["label"]] if len(shown) else np.zeros(len(number), dtype=bool)
    which = np.where(
        by_list,
        number,
        np.where(by_interval, len(listed) + rows["label"], len(listed) + len(shown) + rows["channel"]),
    )
    table: dict[str, int] = {}
    place = np.array([table.setdefault(name, len(table)) for name in names] or [0])
    return list(table), place[which]


def _split_label(shown: str) -> tuple[str, str]:
    """`Command Buffer 0:Compute Command 0` as label of the command buffer and of the encoder."""
    buffer, colon, label = shown.partition(":")
    return (buffer.strip(), label.strip()) if colon else ("", shown)


SHADERS = "metal-shader-profiler-intervals"
SHADER_LIST = "metal-shader-profiler-shader-list"
SHADER_PCS = "gpu-shader-profiler-interval"
SHADER = ("start", "duration", "name", "label", "process")
LISTED = ("name", "pc-start", "pc-end", "process")
SHADER_PC = ("start", "duration", "pc")
UNKNOWN = "[not in the list of shaders]"
_MOST_LISTED = 1 << 17
_LARGEST = 1 << 63


@dataclass
class ShaderTimes:
    """Fed with rows of the three tables, the list before the program counters."""

    names: NumberedNames[str] = field(default_factory=lambda: NumberedNames(MORE))
    processes: NumberedNames[Process | None] = field(default_factory=NumberedNames)
    rows: int = 0
    skipped: int = 0
    _columns: Columns = field(default_factory=lambda: Columns("start", "end", "name", "process"))
    _listed: list[tuple[int, int, str, Process | None]] = field(default_factory=list)

    def add(self, rows: Iterable[Sequence[Value]]) -> None:
        """Rows with the columns `SHADER`; of several tables that hold the same the first with rows is taken."""
        if self.rows:
            return
        for start, duration, name, label, process in rows:
            when = parse_interval(start, duration)
            if when is None:
                self.skipped += 1
                continue
            self._append(*when, cell_text(name) or cell_text(label) or UNKNOWN, process_of(process))

    def add_list(self, rows: Iterable[Sequence[Value]]) -> None:
        """Rows with the columns `LISTED`."""
        for name, begin, end, process in rows:
            if not isinstance(begin, int) or not isinstance(end, int) or not cell_text(name):
                continue
            if 0 <= begin < end < _LARGEST and len(self._listed) < _MOST_LISTED:
                self._listed.append((begin, end, cell_text(name), process_of(process)))

    def add_pcs(self, rows: Iterable[Sequence[Value]]) -> None:
        """Rows with the columns `SHADER_PC`; without a list of shaders they say nothing."""
        import numpy as np

        if self.rows:
            return
        listed = sorted(self._listed, key=lambda one: one[0])
        begins = np.array([one[0] for one in listed], dtype=np.int64)
        for start, duration, pc in rows:
            when = parse_interval(start, duration)
            if when is None or not isinstance(pc, int) or not listed or not 0 <= pc < _LARGEST:
                self.skipped += 1
                continue
            at = int(np.searchsorted(begins, pc, side="right")) - 1
            if at >= 0 and pc < listed[at][1]:
                self._append(*when, listed[at][2], listed[at][3])
            else:
                self._append(*when, UNKNOWN, None)

    def _append(self, start: int, end: int, name: str, process: Process | None) -> None:
        self.rows += 1
        self._columns.add(start, end, self.names.number(name), self.processes.number(process))

    def within(self, part: Spans, whose: Collection[Process | None]) -> tuple[NamedWork, ...]:
        """The shaders of some processes in the part that counts, largest first."""
        import numpy as np

        start, end, name, process = self._columns.arrays().values()
        own = np.isin(process, [n for n, one in enumerate(self.processes.all) if one in whose])
        return by_name(self.names.all, name[own], start[own], end[own], part)
