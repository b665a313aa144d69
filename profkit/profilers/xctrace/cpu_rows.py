"""The rows of a table of samples, each as what is made of it, whatever the table lacks."""

from __future__ import annotations

import re
from collections.abc import Iterator

from profkit.profilers.xctrace.cells import Backtrace, Process, Thread
from profkit.profilers.xctrace.cpu_samples import RUNNING
from profkit.profilers.xctrace.tables import Table

_WANTED = (
    "time",
    "thread",
    "process",
    "thread-state",
    "weight",
    "stack",
    "counters-array",
    "weight/@fmt",
    "core/@fmt",
)
_WANTED_RAW = ("time", "thread", "process", "thread-state", "cp-kernel-callstack", "cp-user-callstack")
_KIND = re.compile(r"\((\w+ Core)\)")
_MOST_CORES = 4096

Sample = tuple[
    int | None,  # time, ns
    Thread | None,
    Process | None,
    str | None,  # state of the thread
    int | None,  # weight
    Backtrace | None,
    tuple[int, ...] | None,  # counts
    str | None,  # the weight as Instruments shows it
    str | None,  # kind of core
]


def rows(table: Table) -> Iterator[Sample]:
    """The samples of a table with names of functions. Raises UnreadableReport as its rows do."""
    kinds: dict[object, str | None] = {}
    for time, thread, process, state, weight, stack, counts, shown, core in table.rows(_WANTED):
        owner = process if isinstance(process, Process) else None
        if core not in kinds and len(kinds) < _MOST_CORES:
            kinds[core] = _core_kind(core)
        yield (
            time if isinstance(time, int) else None,
            thread if isinstance(thread, Thread) else None,
            owner or (thread.process if isinstance(thread, Thread) else None),
            state if isinstance(state, str) else None,
            weight if isinstance(weight, int) and weight >= 0 else None,
            stack if isinstance(stack, Backtrace) else None,
            counts if isinstance(counts, tuple) else None,  # type: ignore[misc]
            shown if isinstance(shown, str) else None,
            kinds.get(core),
        )


def raw_rows(table: Table) -> Iterator[Sample]:
    """Samples as the kernel took them: addresses without names, and no weight; each stands for itself.

    A state other than running is of a stack shot taken of all threads at once, no sample of time.
    """
    for time, thread, process, state, kernel, user in table.rows(_WANTED_RAW):
        owner = process if isinstance(process, Process) else None
        stack = user if isinstance(user, Backtrace) else None
        if isinstance(kernel, Backtrace):
            stack = Backtrace((*kernel.frames, *(stack.frames if stack is not None else ())))
        if isinstance(state, str) and state != RUNNING:
            continue
        yield (
            time if isinstance(time, int) else None,
            thread if isinstance(thread, Thread) else None,
            owner or (thread.process if isinstance(thread, Thread) else None),
            state if isinstance(state, str) else None,
            1,
            stack,
            None,
            None,
            None,
        )


def _core_kind(shown: object) -> str | None:
    """The kind of a core as Instruments shows it, "CPU 4 (P Core)"; an SMT core is half of one, and no kind."""
    told = _KIND.search(shown) if isinstance(shown, str) else None
    return told[1] if told is not None and told[1] != "SMT Core" else None
