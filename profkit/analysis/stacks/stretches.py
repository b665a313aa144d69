"""From stretches of sampled threads to the lanes of a timeline: where each thread was, and which coroutine it ran."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from profkit.analysis.stacks.python_code import MODULE, is_users_frame, module_name
from profkit.analysis.timeline.thread_record import Stretch, ThreadRecord
from profkit.core.types import Frame, MarkKind, MarkLabel

# As the sampler writes what a thread did, beside the kinds of waits: it ran; or it is not known.
KINDS: dict[str, MarkKind] = {
    "run": "python", "queue": "processor-wait", "lock": "lock", "network": "network", "input": "input",
    "file": "file", "pipe": "pipe", "sync": "sync", "sleep": "sleep", "child": "child",
}  # fmt: skip
MAX_TASKS = 12  # coroutines with a lane of their own
_LOOP = ("/asyncio/events.py", "_run")  # of asyncio, which calls all that an event loop runs

Places = tuple[tuple["Frame | None", int], ...]


class WrittenStretch(NamedTuple):
    """One row of a process: times in seconds since the process began; `node` is its stack."""

    thread: int
    begin: float
    length: float
    kind: str
    node: int
    seconds: float


@dataclass(frozen=True)
class ProcessStretches:
    """All of one process, which began so many seconds after the first one."""

    begun: float
    threads: dict[int, str]
    rows: Sequence[WrittenStretch]
    stack: Callable[[int], Places]  # outermost first, with lines


def thread_records(processes: Iterable[ProcessStretches]) -> Iterator[ThreadRecord]:
    """Yield a lane for each thread, and below an event loop's thread one for each coroutine that ran long in it."""
    for number, process in enumerate(processes):
        lanes: dict[int, ThreadRecord] = {}
        tasks: dict[tuple[int, str], ThreadRecord] = {}
        stack = lru_cache(maxsize=None)(process.stack)
        for row in process.rows:
            places = stack(row.node)
            begin = process.begun + row.begin
            label = _label(places, KINDS.get(row.kind, "waiting"))
            stretch = Stretch(begin, begin + row.length, row.seconds, label)
            thread = lanes.setdefault(
                row.thread,
                ThreadRecord("thread", process.threads.get(row.thread, "unnamed"), number, row.thread),
            )
            thread.stretches.append(stretch)
            if (name := _coroutine(places)) is not None:
                task = ThreadRecord("task", name, number, row.thread)
                tasks.setdefault((row.thread, name), task).stretches.append(stretch)
        longest = sorted(tasks.values(), key=lambda task: task.weight, reverse=True)[:MAX_TASKS]
        for at, lane in sorted(lanes.items()):
            yield lane
            yield from (task for task in longest if task.number == at)


def _label(places: Places, kind: MarkKind) -> MarkLabel:
    """Return the innermost line of the program; `what` is the function of a library that it is in."""
    frames = [(frame, line) for frame, line in places if frame is not None]
    if not frames:
        return MarkLabel(kind, "")
    if places[-1][0] is None or any(frame is None for frame, _ in places):
        imported = _imported(places)
        if imported is not None:
            return MarkLabel(kind, imported)
    at = next((n for n in reversed(range(len(frames))) if is_users_frame(frames, n)), len(frames) - 1)
    frame, line = frames[at]
    inner = frames[-1][0]
    what = (
        ""
        if inner is frame
        else f"{module_name(inner.file)}.{inner.function}"
        if inner.file
        else inner.function
    )
    return MarkLabel(kind, frame.function, what, file=frame.file, line=line or None, function=frame.function)


def _imported(places: Places) -> str | None:
    """Return `import torch`: the outermost module that is being imported."""
    importing = False
    for frame, _ in places:
        if frame is None:
            importing = True
        elif importing and frame.function == MODULE and frame.file is not None:
            return f"import {module_name(frame.file)}"
    return None


def _coroutine(places: Places) -> str | None:
    """Return what an event loop runs: the first function that it calls."""
    for (frame, _), (inner, _) in pairwise(places):
        if (
            frame is not None
            and inner is not None
            and frame.function.rpartition(".")[2] == _LOOP[1]
            and (frame.file or "").endswith(_LOOP[0])
        ):
            return inner.function
    return None
