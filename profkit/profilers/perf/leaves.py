"""Joins perf's samples of native code with the Python stacks of the same run, by thread and time."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

from profkit.core.files.regular import open_regular
from profkit.core.types import Frame
from profkit.profilers.files import reading
from profkit.profilers.perf.samples import base_event
from profkit.profilers.perf.script import OWN_THREAD, ScriptStream

NEAR = 0.05  # s: a sample of perf's belongs to the stack that was seen last or next, if that was as near
MAX_SAMPLES = 2_000_000  # samples
Moment: TypeAlias = "tuple[float, int]"  # time on the system's monotonic clock, and the stack


class NativeLeaf(NamedTuple):
    """One sample: the innermost function of a thread at a time of the monotonic clock."""

    process: int
    thread: int
    name: str  # of the thread
    time: float
    weight: float
    seconds: bool  # the weight is in seconds
    frame: Frame


def read_leaves(path: Path) -> Iterator[NativeLeaf]:
    """Read the samples of a perf script text with times. Raises UnreadableReport where it cannot be read."""
    stream = ScriptStream()
    with reading(path, named=False), open_regular(path) as file:
        for number, (match, ids) in enumerate(stream.samples(file)):
            comm, process, thread, time, period, event = match.group(
                "comm", "pid", "tid", "time", "period", "event"
            )
            if number >= MAX_SAMPLES:
                return
            if comm == OWN_THREAD or not ids or not time:
                continue
            clock = base_event((event or b"").decode("utf-8", "replace")) in ("cpu-clock", "task-clock")
            weight = float(period or 1) * (1e-9 if clock else 1.0)
            yield NativeLeaf(
                int(process),
                int(thread or process),
                comm.decode("utf-8", "replace"),
                float(time),
                weight,
                clock and period is not None,
                stream.table.frames[ids[0]],
            )


def by_stack(
    leaves: Sequence[NativeLeaf], moments: Mapping[int, Sequence[Moment]]
) -> tuple[dict[tuple[int, int], dict[Frame, float]], list[NativeLeaf]]:
    """Return the weights of native functions by thread and stack, and the samples of threads without a stack.

    `moments` are by thread, in the order of their times.
    """
    by_stack_weights: dict[tuple[int, int], dict[Frame, float]] = {}
    without_stack: list[NativeLeaf] = []
    times = {thread: [time for time, _ in thread_moments] for thread, thread_moments in moments.items()}
    for leaf in leaves:
        thread_moments = moments.get(leaf.thread)
        if not thread_moments:
            without_stack.append(leaf)
            continue
        at = bisect_left(times[leaf.thread], leaf.time)
        near = min(thread_moments[max(0, at - 1) : at + 1], key=lambda moment: abs(moment[0] - leaf.time))
        if abs(near[0] - leaf.time) <= NEAR:
            weights = by_stack_weights.setdefault((leaf.thread, near[1]), {})
            weights[leaf.frame] = weights.get(leaf.frame, 0.0) + leaf.weight
    return by_stack_weights, without_stack
