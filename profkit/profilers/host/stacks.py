"""Makes a report of sampled Python stacks: functions, lines, threads, waits and the wall time (see `stack_records`)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from profkit.analysis.stacks.lines import LineTally, Role
from profkit.analysis.stacks.merge import FrameTable, StackMerger
from profkit.analysis.stacks.python_code import PythonSample, PythonTally, SeenValues, drawn_stack
from profkit.analysis.stacks.stretches import Places, ProcessStretches, thread_records
from profkit.analysis.stacks.wall_time import OTHER, WallStack, WallThread, wall_time
from profkit.analysis.timeline.thread_record import threads_timeline
from profkit.core.types import (
    Fact,
    Frame,
    Hotspot,
    Profile,
    Report,
    Stacks,
    StartedProgram,
    Timeline,
)
from profkit.profilers.host.stack_records import IMPORT, REST, SampledProcess, read_processes
from profkit.profilers.perf.leaves import NativeLeaf, by_stack, read_leaves

DEEPEST = 5000  # frames of one stack
# So many short child processes (mean seconds): one for each item, and their lines are not the program's.
MIN_CHILDREN, MAX_CHILD_SECONDS = 10, 0.5
# A line whose thread stood still in so many trials after it released the lock, and so many times as often as it went
# on, releases it for a moment. On busy processors, one that works without the lock went on in 3 to 5 of 10 trials.
STOOD_RATIO, MIN_STOOD = 8, 8
# Threads that took turns for so many seconds of a processor, and so much of it (0..1) without a place.
TURNS, UNPLACED = 0.3, 0.3
# Two standard errors of a share of a third, as a share of the run, above which shares are called rough, and the seconds
# from which on a program is long enough for that note.
ROUGH, LONG_ENOUGH = 0.05, 0.5
WAITS = 0.1  # share of the first thread's time that it must wait, for its wall time to be drawn beside


def read_stacks(path: Path, more: Sequence[Path] = ()) -> Report:
    """Read functions, lines and imports of all processes, their threads, and the stacks by processor time.

    Where any process entered a region, functions, lines and stacks are those of the regions. Seconds; shares are
    of the processor time of all threads. `more` are files of further runs of the same program, whose lines are
    added up. Torn lines are skipped. Raises UnreadableReport for what is no such file.
    """
    processes, torn = read_processes(path)
    first = min(processes, key=lambda process: process.begun)
    marked = any(process.entries for process in processes)
    lines = LineTally()
    collecting, children = _add_lines(lines, processes, first, marked)
    values = _seen_values(processes)
    main_count, seconds = first.main_count, first.seconds
    for file in more:
        again, _ = read_processes(file)
        beginning = min(again, key=lambda process: process.begun)
        main_count, seconds = main_count + beginning.main_count, seconds + beginning.seconds
        collecting += _add_lines(lines, again, beginning, marked)[0]
        values |= {frame: value for frame, value in _seen_values(again).items() if frame not in values}
    lines.give_work()
    table = FrameTable()
    running, waiting = StackMerger(table), StackMerger(table)
    tally = PythonTally()
    first_cpu = first_wall = 0.0
    for process in processes:
        for sample, inside in _samples(process, first):
            tally.add_import(sample)
            if marked and not inside:
                tally.add_outside(sample)
                continue
            tally.add(sample)
            numbers = table.stack(reversed(drawn_stack(sample.frames)))
            if sample.cpu > 0:
                running.add(numbers, sample.cpu)
            if sample.first:
                waiting.add(numbers, sample.wall)
                first_cpu, first_wall = first_cpu + sample.cpu, first_wall + sample.wall
    stacks = [running.stacks("Python, processor time of all threads", "s")] if running.samples else []
    if (wall := wall_time(_wall_threads(processes, first, marked))) is not None:
        stacks.insert(0, wall)
    if first_cpu < (1 - WAITS) * first_wall:
        stacks.append(waiting.stacks("Python, wall time of the main thread", "s"))
    count = sum(process.count for process in processes)
    facts = {
        "python": ", ".join(sorted({process.python for process in processes if process.python})),
        "processes": str(len(processes)),
        "samples": str(count),
    }
    return Report(
        "stacks",
        "python-stacks",
        timeline=_timeline(processes, first),
        facts={name: value for name, value in facts.items() if value},
        profiles=(*tally.profiles(values), _threads(processes, first)),
        stacks=tuple(stacks),
        warnings=(*_warnings(processes, first, torn), *_rough_shares(main_count, seconds)),
        sampled=replace(lines.sampled(values, collecting, children), programs=_started(processes)),
    )


def _timeline(processes: Sequence[SampledProcess], first: SampledProcess) -> Timeline | None:
    """Return what each thread did when, from the begin of the first process to the last end of any."""
    ordered = [first, *(process for process in processes if process is not first)]
    begun = {process.key: (process.begun - first.begun) / 1e3 for process in ordered}
    records = thread_records(
        ProcessStretches(begun[process.key], process.threads, process.stretches, partial(_places, process))
        for process in ordered
    )
    names = tuple(f"rank {process.rank}" if process.rank else process.program for process in ordered)
    length = max(begun[process.key] + process.seconds for process in ordered)
    return threads_timeline(tuple(records), length, names)


def _places(process: SampledProcess, node: int) -> Places:
    return tuple(zip(*_stack(process, node), strict=True))


def read_wall_time(path: Path, text: Path) -> Stacks | None:
    """Return the wall time of a run that perf sampled too, with native code below Python.

    perf's samples are in `text`. None where the two cannot be joined. Raises UnreadableReport as `read_stacks`
    does.
    """
    processes, _ = read_processes(path)
    first = min(processes, key=lambda process: process.begun)
    marked = any(process.entries for process in processes)
    moments = {
        process.natives[thread]: sorted(thread_moments)
        for process in processes
        for thread, thread_moments in process.moments.items()
        if thread in process.natives
    }
    if not moments:
        return None
    pids = {process.pid for process in processes}
    leaves = [leaf for leaf in read_leaves(text) if leaf.process in pids]
    native, without_stack = by_stack(leaves, moments)
    if not native:
        return None
    threads = _wall_threads(processes, first, marked, native)
    if not marked and all(
        leaf.seconds for leaf in leaves
    ):  # it is not known whether these ran inside a region
        threads += _native_threads(without_stack)
    return wall_time(threads)


def _native_threads(leaves: Sequence[NativeLeaf]) -> list[WallThread]:
    """Return threads without Python, such as OpenMP's.

    Samples show how long they ran, and not what they waited for.
    """
    weights: dict[str, dict[Frame, float]] = {}
    for leaf in leaves:
        thread = weights.setdefault(leaf.name, {})
        thread[leaf.frame] = thread.get(leaf.frame, 0.0) + leaf.weight
    return [
        WallThread(
            f"{name}, without Python", [WallStack((frame,), seconds) for frame, seconds in by_frame.items()]
        )
        for name, by_frame in weights.items()
    ]


def _wall_threads(
    processes: Sequence[SampledProcess],
    first: SampledProcess,
    marked: bool,
    native: Mapping[tuple[int, int], Mapping[Frame, float]] | None = None,
) -> list[WallThread]:
    """Return what each thread did in all of its time; threads of other processes with one name are joined.

    What is neither running nor a known wait is a wait for a processor as far as the system says so of the thread.
    """
    threads: dict[str, WallThread] = {}
    for process in (first, *(other_process for other_process in processes if other_process is not first)):
        queued = _queued_share(process)
        waits: dict[tuple[int, int], dict[str, float]] = {}
        for (node, number, kind), seconds in process.waits.items():
            waits.setdefault((node, number), {})[kind] = seconds
        for (node, number, inside), (wall, cpu) in process.sums.items():
            frames, _ = _stack(process, node)
            if not frames or (marked and not inside):
                continue
            name = process.threads.get(number, "unnamed")
            whose = name if process is first else f"{process.program} {name}"
            idle, waited = max(0.0, wall - cpu), waits.get((node, number), {})
            scale = min(1.0, idle / max(sum(waited.values()), 1e-12))
            spent = {kind: scale * seconds for kind, seconds in waited.items()}
            unexplained = idle - sum(spent.values())
            spent["queue"] = spent.get("queue", 0.0) + unexplained * queued.get(number, 0.0)
            spent[OTHER] = unexplained * (1 - queued.get(number, 0.0))
            leaves = (native or {}).get((process.natives.get(number, -1), node), {})
            stack = WallStack(drawn_stack(frames), cpu, spent, leaves)
            threads.setdefault(whose, WallThread(whose)).stacks.append(stack)
    return list(threads.values())


def _queued_share(process: SampledProcess) -> dict[int, float]:
    """Return by thread the share (0..1) of its unexplained waits in which it waited for a processor."""
    queued: dict[int, float] = {}
    unexplained: dict[int, float] = {}
    for row in process.stretches:
        if row.kind in ("queue", OTHER):
            sums = queued if row.kind == "queue" else unexplained
            sums[row.thread] = sums.get(row.thread, 0.0) + row.seconds
    return {
        thread: seconds / (seconds + unexplained.get(thread, 0.0) or 1.0)
        for thread, seconds in queued.items()
    }


def read_samples(path: Path) -> Iterator[PythonSample]:
    """Yield every stack of the main thread of each process, with its seconds. Raises as `read_stacks` does."""
    for process in read_processes(path)[0]:
        yield from (sample for sample, _ in _samples(process, process) if sample.first)


def _add_lines(
    lines: LineTally, processes: list[SampledProcess], first: SampledProcess, marked: bool
) -> tuple[float, int]:
    """Add one run of the program up by line.

    Returns the garbage collector's seconds, and the number of children where there are many short ones.
    """
    other_processes = [process for process in processes if not process.leads]
    leading = [process for process in processes if process.leads]
    mean = math.fsum(process.seconds for process in other_processes) / max(1, len(other_processes))
    children = (
        len(other_processes) if len(other_processes) >= MIN_CHILDREN and mean < MAX_CHILD_SECONDS else 0
    )
    for number, process in enumerate(leading if children else processes):
        main = min(process.threads, default=0)
        for (node, thread, inside), (wall, cpu) in process.sums.items():
            if marked and not inside:
                continue
            bare, role = _bare_sample(process, first, node, thread)
            if bare.frames:
                # Of further runs of the program the third process is that of the first run again.
                source = str(number if role == "process" else thread)
                lines.add(replace(bare, cpu=cpu, wall=wall), role, source, process.rank)
                if node in process.longest:
                    lines.note_longest(replace(bare, cpu=cpu), role, process.longest[node])
        for (node, thread, kind), seconds in process.waits.items():
            bare, role = _bare_sample(process, first, node, thread)
            lines.add_wait(bare, role, kind, seconds)
        if process is first and process.awaited:
            unseen = lines.add_unseen_inputs()
            for (node, alone), seconds in process.awaited.items():
                lines.move_wait(_bare_sample(process, first, node, main)[0], seconds * unseen, alone=alone)
    for node, held in first.held.items():
        lines.note_held(_bare_sample(first, first, node, min(first.threads, default=0))[0], *held)
    for node, (stood, went) in first.given.items():
        if stood >= max(MIN_STOOD, STOOD_RATIO * went):
            main_thread = min(first.threads, default=0)
            lines.note_given(_bare_sample(first, first, node, main_thread)[0], stood / max(1, first.trials))
    for (path, number), seconds in first.collected.items():
        lines.note_collecting(path, number, seconds)
    return first.collecting, children


def _started(processes: Sequence[SampledProcess]) -> tuple[StartedProgram, ...]:
    """Return the programs that were started several times one after the other, with the seconds of their imports."""
    by_program: dict[str, list[SampledProcess]] = {}
    for process in processes:
        if process.leads and process.program:
            by_program.setdefault(process.program, []).append(process)
    return tuple(
        StartedProgram(
            program,
            "python",
            len(alike),
            math.fsum(process.seconds for process in alike),
            math.fsum(map(_importing, alike)),
        )
        for program, alike in by_program.items()
        if len(alike) > 1
    )


def _importing(process: SampledProcess) -> float:
    """Return the wall seconds in which a process's main thread imports."""
    samples = (sample for sample, _ in _samples(process, process))
    return math.fsum(sample.wall for sample in samples if sample.first and None in sample.frames)


def _bare_sample(
    process: SampledProcess, first: SampledProcess, node: int, thread: int
) -> tuple[PythonSample, Role]:
    """Return a stack without its times, and whose it is."""
    leads = process is first or process.leads
    is_main = leads and thread == min(process.threads, default=0)
    frames, numbers = _stack(process, node)
    role: Role = "main" if is_main else "thread" if leads else "process"
    return PythonSample(frames, numbers, 0.0, 0.0, is_main), role


def _seen_values(processes: Iterable[SampledProcess]) -> dict[Frame, SeenValues]:
    """Return the values seen of each function's variables, from the process that looked most often."""
    values_by_frame: dict[Frame, SeenValues] = {}
    for process in processes:
        for number, values in process.values.items():
            frame = process.functions.get(number)
            if frame is not None and (
                frame not in values_by_frame or values_by_frame[frame].looks < values.looks
            ):
                values_by_frame[frame] = values
    return values_by_frame


def _warnings(processes: list[SampledProcess], first: SampledProcess, torn: int) -> Iterator[Fact]:
    if not first.ended:
        yield Fact("no-python-exit")
    failures = dict.fromkeys(process.failed for process in processes if process.failed)
    if failures:
        yield Fact.of("sampling-failed", said="; ".join(list(failures)[:3]))
    if torn:
        yield Fact.of("torn-lines", count=torn)
    if any(not process.own_clocks for process in processes):
        yield Fact("no-thread-clocks")
    turns, unplaced = (math.fsum(process.turns[part] for process in processes) for part in (0, 1))
    if turns >= TURNS and unplaced >= UNPLACED * turns:
        yield Fact.of("turns-not-told-apart", share=unplaced / turns)
    if any(REST in process.functions for process in processes):
        yield Fact("more-stacks")


def _rough_shares(count: int, seconds: float) -> Iterator[Fact]:
    """Say how well shares are known where samples are few: p (1 - p) / n is the variance of a share p of n samples.

    Samples at nearly even moments are somewhat surer than that, and some that stand for long calls less sure.
    """
    error = 2 * math.sqrt(1 / 3 * 2 / 3 / max(1, count))
    if count > 0 and seconds >= LONG_ENOUGH and error > ROUGH:
        yield Fact.of("rough-shares", count=count, points=f"{100 * error:.0f}")


def _samples(process: SampledProcess, first: SampledProcess) -> Iterator[tuple[PythonSample, bool]]:
    main = min(process.threads, default=0)
    stacks: dict[int, tuple[tuple[Frame | None, ...], tuple[int, ...]]] = {}
    for (node, thread, inside), (wall, cpu) in process.sums.items():
        if node not in stacks:
            stacks[node] = _stack(process, node)
        frames, lines = stacks[node]
        if frames:
            is_main = (process is first or process.leads) and thread == main
            yield PythonSample(frames, lines, cpu, wall, is_main), inside


def _stack(process: SampledProcess, node: int) -> tuple[tuple[Frame | None, ...], tuple[int, ...]]:
    """Return frames and lines of a stack, outermost first; empty where a line with a part of it was lost."""
    frames: list[Frame | None] = []
    lines: list[int] = []
    if node == REST:
        return (_REST,), (0,)
    while node and len(frames) < DEEPEST:
        if node not in process.nodes:
            return (), ()
        node, function, line = process.nodes[node]
        frame = (
            None
            if function == IMPORT
            else _REST
            if function == REST
            else process.functions.get(function, _LOST)
        )
        frames.append(frame)
        lines.append(line)
    return tuple(reversed(frames)), tuple(reversed(lines))


_REST = Frame("[more functions]")
_LOST = Frame("[function not recorded]")


def _threads(processes: list[SampledProcess], first: SampledProcess) -> Profile:
    """Return the table of threads by name; threads of all processes of one program are joined.

    The first process, in which the program began, stays apart.
    """
    cpu_sums: dict[tuple[str, str, bool], float] = {}
    wall: dict[tuple[str, str, bool], float] = {}
    members: dict[tuple[str, str, bool], int] = {}
    for process in processes:
        for thread in dict.fromkeys(key[1] for key in process.sums):
            key = (process.program, process.threads.get(thread, "unnamed"), process is first)
            times = [times for (_, number, _), times in process.sums.items() if number == thread]
            cpu_sums[key] = cpu_sums.get(key, 0.0) + sum(cpu for _, cpu in times)
            wall[key] = wall.get(key, 0.0) + sum(time for time, _ in times)
            members[key] = members.get(key, 0) + 1
    hotspots = [
        Hotspot(
            thread,
            cpu_sums[key],
            wall[key],
            library=program or None,
            counters={"threads": float(members[key]), "first_process": float(is_first)},
        )
        for key in cpu_sums
        for program, thread, is_first in (key,)
    ]
    hotspots.sort(key=lambda spot: -spot.own)
    return Profile("Python threads", "s", math.fsum(cpu_sums.values()), tuple(hotspots), "sampled-threads")
