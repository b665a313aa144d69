"""Whose work counts: the process that was launched, or where that is not told the one that used the GPU most."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from profkit.profilers.xctrace.cells import Process
from profkit.profilers.xctrace.toc import Run

# They draw what others made, so they are never what was profiled unless the recording says so.
COMPOSITORS = frozenset(("WindowServer", "backboardd"))


@dataclass(frozen=True)
class Target:
    """`numbers` are those of the processes whose work counts; `name` tells them; `note`: what has to be said.

    `others` is a process that counts and had nothing on the GPU. `guessed`: nothing says that it is what was profiled.
    """

    numbers: frozenset[int] = frozenset()
    name: str | None = None
    note: str | None = None
    others: tuple[Process, ...] = ()
    guessed: bool = False


def choose_target(
    processes: Sequence[Process | None],
    busy: Mapping[int, int],
    run: Run | None,
    recorded: Iterable[Process | None] = (),
    pids: Collection[int] = (),
) -> Target:
    """The target among `processes`, which used the GPU for `busy` ns each, by number.

    In this order: those of `pids` (the workload told them itself), the process that the table of contents names, the
    busiest of those whose Metal calls were `recorded`, and without a table of contents the busiest of all that are no
    compositor. A launched process that did nothing on the GPU stays the target: others' work is not the workload's.
    """
    if pids:
        own = [n for n, process in enumerate(processes) if process is not None and process.pid in pids]
        if own:
            return Target(frozenset(own), told(processes[max(own, key=lambda n: busy.get(n, 0))]))
    launched = _launched(run)
    if launched is not None:
        own = [n for n, process in enumerate(processes) if process is not None and _same(process, launched)]
        if own:
            return Target(frozenset(own), told(launched))
    called = {process for process in recorded if process is not None}
    found = _busiest(processes, busy, called)
    if found is not None:
        note = (
            f"the recording names no process: {found.name} counts, the busiest whose Metal calls it holds"
            if launched is None
            else f"{told(launched)} was launched and had nothing on the GPU: {found.name} counts,"
            " whose Metal calls were recorded with it"
        )
        return Target(found.numbers, found.name, note)
    if launched is not None:
        note = f"{told(launched)} was launched and had nothing on the GPU"
        return Target(frozenset(), told(launched), note, (launched,))
    others = {p for p in processes if p is not None and p.name not in COMPOSITORS}
    found = _busiest(processes, busy, others or {p for p in processes if p is not None})
    if found is None:
        return Target()
    return Target(
        found.numbers,
        found.name,
        f"the recording names no process: {found.name} counts, the busiest on the GPU",
        guessed=True,
    )


def told(process: Process | None) -> str:
    """`python (4242)`, or the name alone."""
    if process is None:
        return "a process that is not told"
    return process.name if process.pid is None else f"{process.name} ({process.pid})"


def _launched(run: Run | None) -> Process | None:
    if run is None or not (run.process.get("name") or run.process.get("pid")):
        return None
    pid = run.process.get("pid", "")
    number = int(pid) if pid.isascii() and pid.isdigit() and len(pid) < 12 else None
    return Process(run.process.get("name") or f"process {pid}", number)


def _same(process: Process, launched: Process) -> bool:
    if process.pid is not None and launched.pid is not None:
        return process.pid == launched.pid
    return process.name == launched.name


def _busiest(
    processes: Sequence[Process | None], busy: Mapping[int, int], among: Collection[Process]
) -> Target | None:
    own = [n for n, process in enumerate(processes) if process in among]
    if not own:
        return None
    first = max(own, key=lambda n: busy.get(n, 0))
    process = processes[first]
    # A process that changed its name (exec) has several, with one pid.
    same = [n for n in own if process is not None and _same_pid(processes[n], process)]
    return Target(frozenset(same or [first]), told(process))


def _same_pid(one: Process | None, other: Process) -> bool:
    return one is not None and (one == other or (one.pid is not None and one.pid == other.pid))
