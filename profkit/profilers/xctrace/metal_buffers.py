"""Command buffers: committed by the host, run by the GPU, completed. Times in ns, -1 where one is not told."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from profkit.analysis.timeline.spans import Depth, Spans, depth, union
from profkit.profilers.xctrace.cells import Process
from profkit.profilers.xctrace.metal_host import Completions, Encoders, Submissions, looked_up
from profkit.profilers.xctrace.metal_work import NO_ID, NOT_TOLD

_BEFORE = -(1 << 60)


@dataclass(frozen=True)
class Buffers:
    """Columns, one place for each command buffer: first begin and last end on the GPU, the union of its time there,
    when it was committed and when it was completed."""

    begin: Any
    end: Any
    busy: Any
    commit: Any
    done: Any
    told: Any  # whether completion is told, and not taken for the end on the GPU

    def pending(self) -> Spans | None:
        """When something was committed and not done on the GPU; None where no commit is told.

        What is done and whose completion has not come to the host yet is no work that the GPU could do.
        """
        import numpy as np

        end = np.where(self.end >= 0, self.end, self.done)
        known = (self.commit >= 0) & (end >= 0)
        return union(self.commit[known], end[known]) if known.any() else None

    def queue(self, part: Spans) -> Depth | None:
        """How many were committed and not completed; None where no commit is told."""
        known = (self.commit >= 0) & (self.done >= 0)
        return depth(self.commit[known], self.done[known], part) if known.any() else None

    def latencies(self, part: Spans) -> Any:
        """From commit to the begin on the GPU, of those committed in the part that counts."""
        known = (self.commit >= 0) & (self.begin >= self.commit) & part.holds(self.commit)
        return (self.begin - self.commit)[known]

    def completions(self, part: Spans) -> Any:
        """From commit to completion, of those committed in the part that counts."""
        known = (self.commit >= 0) & self.told & (self.done >= self.commit) & part.holds(self.commit)
        return (self.done - self.commit)[known]

    def notices(self, part: Spans) -> Any:
        """From the end on the GPU to completion, of those that began there in the part that counts."""
        known = (self.end >= 0) & self.told & (self.done >= self.end) & part.holds(self.begin)
        return (self.done - self.end)[known]

    def times(self, part: Spans) -> Any:
        """The GPU time of each that began there in the part that counts."""
        known = (self.begin >= 0) & part.holds(self.begin)
        return self.busy[known]


def buffers_of(
    rows: Mapping[str, Any],
    submissions: Submissions,
    encoders: Encoders,
    completions: Completions,
    whose: Collection[Process | None],
) -> Buffers:
    """The command buffers of some processes: `rows` are their columns of `GpuWork`.

    Committed: as the table of submissions says; else at the begin of its GPU work less `start-latency`; else when its
    last encoder ended. Completed: as the table of completions says, else when its GPU work ended.
    """
    import numpy as np

    known = rows["buffer"] != NO_ID
    ids, start, end, latency = (rows[name][known] for name in ("buffer", "start", "end", "latency"))
    order = np.lexsort((start, ids))
    ids, start, end, latency = ids[order], start[order], end[order], latency[order]
    cuts = np.flatnonzero(np.r_[True, ids[1:] != ids[:-1]]) if len(ids) else np.empty(0, dtype=np.int64)
    keys = ids[cuts]
    begin = start[cuts]
    last = np.maximum.reduceat(end, cuts) if len(cuts) else end
    estimate = np.where(latency == NOT_TOLD, _BEFORE, start - latency)
    by_latency = np.maximum.reduceat(estimate, cuts) if len(cuts) else estimate
    sent = _own(submissions.committed(), submissions.processes.all, whose)
    made = _own(encoders.committed(), encoders.processes.all, whose)
    more = np.setdiff1d(sent[0], keys)  # committed, and nothing seen of them on the GPU
    keys = np.r_[keys, more]
    begin, last = np.r_[begin, np.full(len(more), -1)], np.r_[last, np.full(len(more), -1)]
    by_latency = np.r_[by_latency, np.full(len(more), _BEFORE)]
    commit = looked_up(keys, *sent, -1)
    commit = np.where((commit < 0) & (by_latency > _BEFORE), by_latency, commit)
    commit = np.where(commit < 0, looked_up(keys, *made, -1), commit)
    done = completions.at(keys)
    busy = np.r_[_busy(start, end, cuts), np.zeros(len(more), dtype=np.int64)]
    return Buffers(begin, last, busy, commit, np.where(done < 0, last, done), done >= 0)


def _own(
    table: Mapping[str, Any], processes: list[Process | None], whose: Collection[Process | None]
) -> tuple[Any, Any]:
    """Ids and times of a table, those of some processes."""
    import numpy as np

    own = np.isin(table["process"], [n for n, process in enumerate(processes) if process in whose])
    return table["buffer"][own], table["at"][own]


def _busy(start: Any, end: Any, cuts: Any) -> Any:
    """For each group of rows, which begins at `cuts` and is in order of starts, the union of its intervals."""
    import numpy as np

    if not len(cuts):
        return np.empty(0, dtype=np.int64)
    sizes = np.diff(np.r_[cuts, len(start)])
    shift = int(end.max()) - int(start.min()) + 1
    if shift * len(cuts) >= 1 << 62:  # hours, of millions: each by itself
        parts = zip(cuts, cuts + sizes, strict=True)
        return np.array([union(start[a:b], end[a:b]).total for a, b in parts], dtype=np.int64)
    # Each group gets a stretch of time of its own, one behind the other, so that one union is that of all.
    moved = np.repeat(np.arange(len(cuts)), sizes) * shift - int(start.min())
    spans = union(start + moved, end + moved)
    return np.bincount(spans.begins // shift, spans.ends - spans.begins, len(cuts)).astype(np.int64)
