"""GPU time by name in the part that counts: encoders, channels, shaders, processes, states. Times in ns, sums in s."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

from profkit.analysis.timeline.spans import Spans, overlap_lengths, union
from profkit.core.types import Kernel, KernelTime, MetalProcess, MetalState, MetalWork
from profkit.profilers.xctrace.cells import process_label
from profkit.profilers.xctrace.metal.part import CountedPart, look_up
from profkit.profilers.xctrace.metal.tables import (
    ENCODERS,
    INTERVALS,
    NO_ID,
    SHADERS,
    MetalTable,
    MetalTables,
    encoder_name,
)

MOST_NAMES = 512  # names of one kind that are kept apart in a result
REST = "[more]"
NO_LABEL = "(no label)"


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
        work = self.work("encoder")
        least = int(self.each.min()) / 1e9
        return KernelTime(
            Kernel(self.name, (), ()),
            work.count,
            work.seconds,
            work.median or 0.0,
            least,
            work.longest or 0.0,
        )


def sum_by_name(
    names: Sequence[str], which: Any, work: Mapping[str, Any], part: Spans, *, by_encoder: bool = False
) -> tuple[NamedWork, ...]:
    """Work by name, largest first: `which` is the number of each interval's name.

    `by_encoder`: intervals of one name and one encoder are one (several pieces, or a vertex and a fragment part).
    """
    import numpy as np

    inside = overlap_lengths(work["start"], work["end"], part)
    counted = inside > 0
    which, start, end, inside = which[counted], work["start"][counted], work["end"][counted], inside[counted]
    if not len(which):
        return ()
    names, which = _fold_names(names, which, inside)
    instance = np.arange(len(which), dtype=np.int64) + (1 << 62)  # a piece without an id is one of its own
    if by_encoder:
        encoder = work["encoder"][counted]
        instance = np.where(encoder == NO_ID, instance, encoder)
    order = np.argsort(which, kind="stable")
    cuts = np.flatnonzero(np.r_[True, np.diff(which[order]) != 0, True])
    sums = []
    for first, last in pairwise(cuts.tolist()):
        rows = order[first:last]
        _, of = np.unique(instance[rows], return_inverse=True)
        each = np.bincount(of, inside[rows]).astype(np.int64)
        busy = (union(start[rows], end[rows]) & part).total
        sums.append(NamedWork(names[int(which[rows[0]])], busy, each))
    return tuple(sorted(sums, key=lambda named: (-named.total, named.name)))


def _fold_names(names: Sequence[str], which: Any, inside: Any) -> tuple[Sequence[str], Any]:
    """Names as they are; of more than anybody reads the largest, and the rest as one."""
    import numpy as np

    spent = np.bincount(which, inside, len(names))
    if np.count_nonzero(spent) <= MOST_NAMES:
        return names, which
    largest_first = np.argsort(-spent, kind="stable")
    rank = np.argsort(largest_first)
    largest = [names[number] for number in largest_first[: MOST_NAMES - 1]]
    return [*largest, REST], np.minimum(rank[which], MOST_NAMES - 1)


def encoder_sums(tables: MetalTables, part: CountedPart) -> tuple[tuple[NamedWork, ...], float | None]:
    """The target's work by encoder, and the seconds of the window in which nothing but copies ran (None: no copies).

    The label is that in the list of encoders, joined by `encoder-id`; else the one that the interval itself shows
    ("command buffer:encoder"); else the channel.
    """
    import numpy as np

    work, names, encoders = part.own_work, tables[INTERVALS].names, tables[ENCODERS]
    listed = encoders.names["label"].all
    shown = [encoder_name(*_split_label(label)) for label in names["label"].all]
    channels = [f"{channel} {NO_LABEL}".strip() for channel in names["channel"].all]
    has_listed = np.array([bool(label) for label in listed] or [False])
    has_shown = np.array([bool(label) for label in shown] or [False])
    known = encoders["encoder"] != NO_ID
    number = look_up(work["encoder"], encoders["encoder"][known], encoders["label"][known])
    which = np.where(
        (number >= 0) & has_listed[np.maximum(number, 0)],
        number,
        np.where(
            has_shown[work["label"]],
            len(listed) + work["label"],
            len(listed) + len(shown) + work["channel"],
        ),
    )
    table: dict[str, int] = {}
    place = np.array([table.setdefault(name, len(table)) for name in (*listed, *shown, *channels)] or [0])
    which = place[which]
    copies = np.isin(which, [number for name, number in table.items() if "Blit" in name.split()])
    copying = None
    if copies.any():
        rest = union(work["start"][~copies], work["end"][~copies])
        copying = ((part.busy - rest) & part.window).total / 1e9
    return sum_by_name(list(table), which, work, part.counted, by_encoder=True), copying


def _split_label(shown: str) -> tuple[str, str]:
    """`Command Buffer 0:Compute Command 0` as label of the command buffer and of the encoder."""
    buffer, colon, label = shown.partition(":")
    return (buffer.strip(), label.strip()) if colon else ("", shown)


def channel_sums(tables: MetalTables, part: CountedPart) -> tuple[NamedWork, ...]:
    """The target's work by channel of the GPU."""
    names, work = tables[INTERVALS].names["channel"].all, part.own_work
    return sum_by_name(names, work["channel"], work, part.counted)


def shader_sums(tables: MetalTables, part: CountedPart) -> tuple[NamedWork, ...]:
    """The target's shaders, largest first."""
    table = tables[SHADERS]
    own = table.where("process", part.target.processes)
    work = {name: column[own] for name, column in table.arrays().items()}
    return sum_by_name(table.names["name"].all, work["name"], work, part.counted)


def processes_in(tables: MetalTables, part: CountedPart) -> tuple[MetalProcess, ...]:
    """What each process had on the GPU in the part that counts, busiest first."""
    processes = _list_processes(tables, part)
    return tuple(sorted(processes, key=lambda process: (-process.busy, process.name, process.pid or 0)))


def _list_processes(tables: MetalTables, part: CountedPart) -> Iterator[MetalProcess]:
    work = part.work
    for number, process in enumerate(tables[INTERVALS].names["process"].all):
        rows = work["process"] == number
        start, end = work["start"][rows], work["end"][rows]
        count = int((overlap_lengths(start, end, part.counted) > 0).sum())
        target = process in part.target.processes
        if count or target:
            busy = (union(start, end) & part.counted).total
            name = process_label(process) if process is None else process.name
            yield MetalProcess(name, None if process is None else process.pid, busy / 1e9, count, target)


def state_times(table: MetalTable, track: str | None) -> dict[str, Spans]:
    """When each state held; of several tracks on that one, where it is there."""
    tracks = table.names["track"].all
    chosen = table.where("track", (track,) if track in tracks else tracks)
    return {
        name: table.times(chosen & (table["state"] == number))
        for number, name in enumerate(table.names["state"].all)
        if name
    }


def states_in(times: Mapping[str, Spans], part: Spans, busy: Spans | None) -> tuple[MetalState, ...]:
    """How long each state held in the part that counts, longest first; `busy`: when the process had the GPU."""
    states = [
        MetalState(
            name, (spans & part).total / 1e9, None if busy is None else (spans & part & busy).total / 1e9
        )
        for name, spans in times.items()
    ]
    return tuple(sorted((state for state in states if state.seconds > 0), key=lambda s: (-s.seconds, s.name)))
