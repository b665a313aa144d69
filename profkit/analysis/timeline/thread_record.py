"""What the threads of a program did when, as lanes: running, waiting for a lock, for input, for a processor.

Each lane is made of equal parts of the run. Within one part the order of what was done is not known: its
marks are in the order of their kinds, each as long as it took.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from profkit.analysis.timeline.marks import MAX_LANES, MAX_MARKS, LabelTable
from profkit.core.types import ActivityBins, Lane, LaneKind, MarkKind, MarkLabel, Timeline

PARTS = 1000  # of the run, at most: what a screen can show separately
MIN_PARTS = 20
STRIP = 300  # parts of the strip above
RUNNING: tuple[MarkKind, ...] = ("python", "native")
# In which order the marks of one part stand: what runs first.
_ORDER: tuple[MarkKind, ...] = (
    *RUNNING, "processor-wait", "gpu", "lock", "network", "input", "file", "pipe", "sync", "child", "await",
    "sleep", "waiting",
)  # fmt: skip
Place: TypeAlias = MarkLabel  # with the kind of what is done there


@dataclass(frozen=True)
class Stretch:
    """What one thread did for `seconds` of the time from `begin` to `end`, in s from the begin of the run."""

    begin: float
    end: float
    seconds: float
    label: Place


@dataclass
class ThreadRecord:
    """One lane under construction: whose it is, and its stretches."""

    kind: LaneKind
    name: str
    process: int = 0
    number: int | None = None
    stretches: list[Stretch] = field(default_factory=list)

    @property
    def weight(self) -> tuple[float, float]:
        """Return the seconds in which it ran, then all of its seconds: most first, where lanes are too many."""
        ran = sum(stretch.seconds for stretch in self.stretches if stretch.label.kind in RUNNING)
        return ran, sum(stretch.seconds for stretch in self.stretches)


def threads_timeline(
    records: Sequence[ThreadRecord], seconds: float, processes: Sequence[str] = ()
) -> Timeline | None:
    """Build the timeline of a run of `seconds`, lanes in the order of `records`; None without stretches.

    Parts are made longer until all lanes together have at most MAX_MARKS marks, or a run has MIN_PARTS parts.
    """
    found = [record for record in records if record.stretches]
    if not found or seconds <= 0:
        return None
    chosen = sorted(found, key=lambda record: record.weight, reverse=True)[:MAX_LANES]
    kept = [record for record in found if any(record is other for other in chosen)]
    parts = max(MIN_PARTS, min(PARTS, MAX_MARKS // len(kept)))
    while True:
        labels = LabelTable()
        lanes = [_lane(record, seconds / parts, parts, labels) for record in kept]
        if sum(len(lane.starts) for lane in lanes) <= MAX_MARKS or parts <= MIN_PARTS:
            break
        parts = max(MIN_PARTS, parts * 2 // 3)
    return Timeline(
        "threads",
        0.0,
        seconds,
        seconds,
        tuple(labels.table),
        tuple(lanes),
        tuple(_strip(kept, seconds, processes)),
        shortest=seconds / parts,
        left_out=len(found) - len(kept),
        processes=tuple(processes),
    )


def _lane(record: ThreadRecord, width: float, parts: int, labels: LabelTable) -> Lane:
    """Split each part of the run by what was done in it, and join what goes on from one part to the next."""
    sums: list[dict[Place, float]] = [{} for _ in range(parts)]
    for stretch in record.stretches:
        for part, share in _spread(stretch, width, parts):
            sums[part][stretch.label] = sums[part].get(stretch.label, 0.0) + share
    starts: list[int] = []
    ends: list[int] = []
    numbers: list[int] = []
    for part, done in enumerate(sums):
        at = round(1e9 * part * width)
        for label, seconds in _by_kind(done):
            end = at + round(1e9 * seconds)
            number = labels.number(label)
            if numbers and numbers[-1] == number and at - ends[-1] < 1e9 * width / 50:
                ends[-1] = end
            elif end > at:
                starts.append(at)
                ends.append(end)
                numbers.append(number)
            at = end
    lengths = tuple(end - start for start, end in zip(starts, ends, strict=True))
    return Lane(
        record.kind,
        tuple(starts),
        lengths,
        tuple(numbers),
        process=record.process,
        number=record.number,
        name=record.name,
    )


def _spread(stretch: Stretch, width: float, parts: int) -> Iterator[tuple[int, float]]:
    """Yield the parts that a stretch overlaps and its seconds in each, spread evenly."""
    length = max(stretch.end - stretch.begin, 1e-9)
    first = min(parts - 1, max(0, int(stretch.begin / width)))
    for part in range(first, min(parts, int(stretch.end / width) + 1)):
        overlap = min(stretch.end, (part + 1) * width) - max(stretch.begin, part * width)
        if overlap > 0:
            yield part, min(stretch.seconds, length) * overlap / length


def _by_kind(done: Mapping[Place, float]) -> list[tuple[Place, float]]:
    """Return one mark for each kind with its seconds, labelled with the place that has most of it."""
    kinds: dict[MarkKind, dict[Place, float]] = {}
    for label, seconds in done.items():
        kinds.setdefault(label.kind, {})[label] = seconds
    return [
        (max(places, key=places.__getitem__), sum(places.values()))
        for kind in _ORDER
        if (places := kinds.get(kind))
    ]


def _strip(
    records: Sequence[ThreadRecord], seconds: float, processes: Sequence[str]
) -> Iterator[ActivityBins]:
    """Yield the share in % of each part of the run in which a process ran, at most 100 for several threads."""
    width = seconds / STRIP
    for process in sorted({entry.process for entry in records}):
        spent = [0.0] * STRIP
        for record in records:
            for stretch in record.stretches if record.process == process and record.kind == "thread" else ():
                if stretch.label.kind in RUNNING:
                    for part, share in _spread(stretch, width, STRIP):
                        spent[part] += share
        shares = tuple(min(100, round(100 * ran / width)) for ran in spent)
        name = processes[process] if process < len(processes) else ""
        yield ActivityBins(shares, process, name=name)
