"""Insights on places where a program waits, and on threads, processes and ranks that wait for each other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from profkit.analysis.function_names import function_name, place_name
from profkit.analysis.hot_spots.rows import sampled_runs
from profkit.analysis.judge.rules.counted import last_name, profile_of
from profkit.analysis.judge.rules.spot_event_loop import blocked_event_loop, held_event_loop, sequential_waits
from profkit.analysis.judge.rules.spots import (
    MIN_CALLS,
    SEVERAL,
    called_names,
    calls_text,
    count_text,
    is_compiled,
    say,
)
from profkit.analysis.judge.words import words
from profkit.analysis.stacks.python_code import is_users_code
from profkit.analysis.summaries.host import is_disturbed
from profkit.core.formatting import format_quantity, percent_text
from profkit.core.types import CodeSpot, Construct, Insight, LineSamples, Place, RunDocument, SampledTime

OTHERS_WAIT = 1.0  # threads that wait for a lock on average while one holds it
ONE_AT_A_TIME = 1.15  # threads that run on average: the kernel's clock is coarse
BUSY = 0.1  # of the processor time: a thread that uses less does not compete
AT_ONCE = 1.7  # threads that are ready to run, on average
HANDED_OVER = 0.3  # of the processor time, spent in queues between processes
MIN_WAITED = 0.5  # of a place's time
MUCH, LARGE = 10e6, 8192  # bytes that are read and written, and at a time: more than results and modules
MIN_TASKS = 1000  # tasks of a pool
PIECES = 4  # of tasks, for each processor, so that all workers end together
OWN_WORK = 0.25  # of the processor time: with more, the pool is useful
MUCH_SLEEP, SHORT_SLEEP = 0.2, 0.1  # of the time in which compiled code sleeps, and seconds of one sleep
AHEAD = 1.5  # times the work of the other ranks: they wait for a rank with more
_MACHINERY = re.compile(
    r".*/(multiprocessing/|concurrent/futures/|selectors\.py|pickle\.py|threading\.py|queue\.py)"
)
_POOLS = re.compile(r".*/(multiprocessing/|concurrent/futures/)")
_GIVES_TASKS = (
    "apply", "apply_async", "map", "map_async", "imap", "imap_unordered", "starmap", "starmap_async", "submit",
)  # fmt: skip
_HANDS_OVER = ("next", "submit", "apply_async")  # called once for each task that is not a piece of a map
_PROCESSES = frozenset(
    {"run", "Popen", "call", "check_call", "check_output", "system", "popen", "communicate", "wait", "start"}
)
_WAITING = re.compile(r"_?wait\w*|join|select|accept|recv\w*|read\w*|sleep")


def polling(document: RunDocument, spot: CodeSpot) -> Insight | None:
    """Return a program that sleeps and checks again and again; not one that works at a fixed pace, or until a time."""
    code = spot.code
    if is_compiled(document):
        return _compiled_polling(document, spot)
    if spot.kind != "sleep" or code is None or not code.find("sleep") or code.find("coroutine"):
        return None
    if not any(construct.how != "clock" for construct in code.find("while")):
        return None
    pause = code.find("sleep")[0].how
    return say(
        spot,
        "polling",
        f"{place_name(spot.where)} polls: it sleeps and checks again until something has happened",
        f"it sleeps {pause + ' s' if pause else ''} at a time in a loop".replace("  ", " "),
        spot.share * _slept_in_vain(spot, pause),
    )


def _slept_in_vain(spot: CodeSpot, pause: str) -> float:
    """Return the share (0..1) of a loop's pauses that another way to wait may save: the last one of each wait.

    All the others are waited for in any case. It is 1 where it is not known how often the loop ended.
    """
    nested = spot.code is not None and spot.code.find("nested-loop")
    waits = 0 if nested else spot.calls or 0
    try:
        pauses = spot.executions or spot.seconds / float(pause)
    except (ValueError, ZeroDivisionError):
        return 1.0
    return min(1.0, waits / pauses) if waits and pauses else 1.0


def _compiled_polling(document: RunDocument, spot: CodeSpot) -> Insight | None:
    """Return the same for machine code, if perf saw many short sleeps and the loop's text only checks."""
    under, code = spot.under, spot.code
    if spot.kind != "sleep" or code is None or not code.find("while") or spot.share < MUCH_SLEEP:
        return None
    if under is None or (under.calls or 0) < MIN_CALLS or (under.seconds_per_call or 0.0) > SHORT_SLEEP:
        return None
    line = _waiting_line(document, spot)
    if line is None or sum(line.other_waits.values()) >= MIN_WAITED * line.main_wall:
        return None  # the awaited thing is waiting itself, and would not be there any sooner
    there = line.awaited[0] if line.awaited else None
    file = f", {there.file.rpartition('/')[2]}:{there.line}," if there is not None and there.file else ""
    meanwhile = f"; {function_name(there.function)}{file} waits for it meanwhile" if there is not None else ""
    return say(
        spot,
        "polling",
        f"{place_name(spot.where)} polls: it sleeps and checks again until something has happened",
        calls_text(spot) + meanwhile,
        change=words("polling.compiled", "host"),
    )


def _waiting_line(document: RunDocument, spot: CodeSpot) -> LineSamples | None:
    """Return the samples of a place of machine code that waits."""
    where = (spot.where.file, spot.where.function, spot.where.line)
    waiting = (line for each in document.sampled for line in each.waiting if spot.kind in line.waits)
    return next((line for line in waiting if (line.file, line.function, line.line) == where), None)


def repeated_sync(document: RunDocument, spot: CodeSpot) -> Insight | None:
    """Return a program that commits, or waits for the disk, after each piece that it writes."""
    names = {name.rpartition(".")[2] for name in called_names(spot)}
    counted = (spot.under.calls if spot.under is not None else None) or spot.calls or 0
    # cProfile may have seen the first part of the run alone; how often the line ran was counted to its end
    calls = max(counted, spot.executions or 0)
    if not names & {"commit", "fsync", "fdatasync"} or spot.kind == "network" or calls < SEVERAL:
        return None
    commit = "commit" in names
    # A database in memory waits for no disk, and each commit costs what the library does for it.
    waits = spot.kind in ("sync", "file", "waiting")
    does = "waits for the disk" if waits else "commits" if commit else "asks for the disk"
    least = spot.partial and (is_compiled(document) or calls > (spot.executions or 0))
    return say(
        spot,
        "repeated-sync",
        f"{place_name(spot.where)} {does} {'at least ' if least else ''}{count_text(calls)} times, after each piece",
        calls_text(spot) if calls == counted else "",
        spot.share * (1 - 1 / calls),
        change=words(f"repeated-sync.{'commit' if commit else 'fsync'}", "host"),
    )


def process_per_item(document: RunDocument, spot: CodeSpot) -> Insight | None:
    """Find a process that is started, and waited for, for each item."""
    names = called_names(spot)
    starts = next((name for name in names if name.rpartition(".")[2] in _PROCESSES), None)
    sampled = next((samples for samples in document.sampled if not samples.native), None)
    children = sampled.children if sampled is not None else 0
    under = (
        spot.under.calls
        if spot.under is not None and spot.under.name in ("run", "Popen", "__init__", "call")
        else 0
    )
    count = max(children, under or 0, spot.calls or 0 if starts else 0)
    if spot.kind not in ("child", "pipe", "library", "python", "file", "input", "waiting") or starts is None:
        return None
    if count < SEVERAL or not (starts.startswith(("subprocess", "os.")) or children):
        return None
    each = format_quantity(spot.seconds / count, "s")
    return say(
        spot,
        "process-per-item",
        f"{place_name(spot.where)} starts a process {count_text(count)} times and waits for each",
        f"{each} for each process",
        spot.share * (1 - 1 / count),
    )


def lock_held(document: RunDocument, spot: CodeSpot) -> Insight | None:
    """Return what is done while a lock is held for which other threads wait."""
    within, spot = _lock_around(spot)
    if within is None:
        return None
    sampled = next((samples for samples in document.sampled if not samples.native), None)
    waiting = [
        line
        for line in (sampled.lines if sampled is not None else ())
        if line.file == spot.where.file and str(line.line) == within.how
    ]
    waits = sum(line.waits.get("lock", 0.0) + line.other_waits.get("lock", 0.0) for line in waiting)
    if sampled is None or waits < OTHERS_WAIT * spot.share * sampled.wall:
        return None
    # Of the run's time a line that is held has a part only where the program waits for it: threads are counted by
    # the seconds of all lines in the block.
    held = sum(
        line.main_wall + line.other_wall
        for line in sampled.lines
        if any(
            code is not None and file == spot.where.file and within in code.find("within")
            for code, file in (
                (line.code, line.file),
                (line.caller_code, line.callers[0].file if line.callers else None),
            )
        )
    )
    return say(
        spot,
        "lock-held",
        f"{within.name or 'A lock'} is held here, and other threads wait for it",
        f"{waits / (held or spot.share * sampled.wall):.1f} threads wait in line {within.how} meanwhile",
        change=f"do this outside of the block of line {within.how}, and hold the lock only to read or store the "
        "result; or give each thread data of its own",
    )


def _lock_around(spot: CodeSpot) -> tuple[Construct | None, CodeSpot]:
    """Return the `with` block around a place, or around the line that calls its function, and the place in that block.

    Of a caller, the block is one of something with a name, as a lock is: `with open(path)` holds nothing.
    """
    own = spot.code.find("within") if spot.code is not None else ()
    if own:
        return own[-1], spot
    outer = [
        each
        for each in (spot.caller_code.find("within") if spot.caller_code is not None else ())
        if each.name
    ]
    if not outer or not spot.callers:
        return None, spot
    caller = spot.callers[0]
    where = Place(function=caller.function, file=caller.file, line=caller.line)
    return outer[-1], replace(spot, where=where, code=spot.caller_code)


def interpreter_lock(document: RunDocument, spot: CodeSpot) -> Insight | None:
    """Find threads of Python that all compute: the interpreter's lock lets one of them run at a time."""
    split = document.time_split
    if spot.kind != "python" or spot.threads < 2 or split is None:
        return None
    if split.threads is None or split.threads > ONE_AT_A_TIME or is_disturbed(document):
        return None  # if other programs take the processors, threads wait for these
    ready = _computing_threads(document)
    if ready < AT_ONCE:
        return None
    cores = document.machine.cores if document.machine is not None else ready
    return say(
        spot,
        "interpreter-lock",
        "Several threads run Python code, but only one of them can run at a time",
        f"{ready:.1f} threads besides the main one are ready to run on average, and {split.threads:.1f} run: they wait "
        "for the interpreter's lock",
        spot.share * (1 - 1 / max(1, min(ready, cores))),
    )


def _computing_threads(document: RunDocument) -> float:
    """Return how many threads beside the main one compute in Python at the same time, on average of the longest one's
    time.

    A thread counts while it is in a line of the program and does not wait there: for a system call, or in a function
    that waits for others. 0 where one only asks whether others are done.
    """
    threads = profile_of(document, "sampled-threads")
    sampled = next((samples for samples in document.sampled if not samples.native), None)
    beside = [
        row.total or 0.0
        for row in (threads.hotspots if threads is not None else ())
        if row.counters.get("first_process") and row.function != "main"
    ]
    if sampled is None or threads is None or not beside:
        return 0.0
    runs = sampled_runs(document, sampled)
    computing = 0.0
    for line in sampled.lines:
        waits = sum(line.other_waits.values()) + max(
            (frame.value for frame in line.below if _WAITING.fullmatch(frame.function.rpartition(".")[2])),
            default=0.0,
        )
        if line.code is not None and line.code.find("spin") and line.other_cpu >= BUSY * sampled.cpu:
            return 0.0  # what that loop takes, the others wait for: without it they may not
        if line.threads and not line.processes:
            computing += max(0.0, line.other_wall - waits)
    return computing / (runs * max(beside))


def small_tasks(document: RunDocument, spot: CodeSpot) -> Insight | None:
    """Return a pool that spends its time on passing work to its workers."""
    functions = next(
        (
            profile
            for profile in document.profiles
            if profile.kind == "sampled-functions" and profile.total > 0
        ),
        None,
    )
    if functions is None or spot.code is None:
        return None
    handing = [row for row in functions.hotspots if _MACHINERY.match((row.file or "").replace("\\", "/"))]
    share = sum(row.own for row in handing) / functions.total
    pooled = any(_POOLS.match((row.file or "").replace("\\", "/")) for row in handing)
    own = (
        sum(row.own for row in functions.hotspots if is_users_code(row.file, row.function)) / functions.total
    )
    stands = _stands_still(document, spot)
    if share < HANDED_OVER or not pooled or own > share or spot.kind == "sleep":
        return None
    if spot.kind == "python" and stands < MIN_WAITED:
        return None
    split = document.time_split
    moved = (split.read or 0.0) + (split.written or 0.0) if split is not None else 0.0
    if split is not None and split.io_calls and moved >= MUCH and moved / split.io_calls >= LARGE:
        return say(
            spot,
            "pickling",
            "Large objects are pickled and sent to the workers again and again",
            f"{percent_text(100 * share)} of the processor time of all processes is spent on pickling and pipes; "
            f"{format_quantity(moved, 'B')} were read and written, {format_quantity(moved / split.io_calls, 'B')} "
            "at a time",
            spot.share * stands if spot.kind == "python" else None,
            _handing_over(document, spot),
        )
    if spot.kind == "python" or own > OWN_WORK:
        return None
    tasks, cores = _tasks_of(document), document.machine.cores if document.machine is not None else 1
    if tasks < MIN_TASKS * max(1, _pools_of(document)):
        return None  # few tasks in large pieces leave workers without any
    return say(
        spot,
        "small-tasks",
        "The pool spends more time handing over tasks than working on them",
        f"{percent_text(100 * share)} of the processor time of all processes is spent on handing over {tasks:,} tasks "
        f"(queues, pipes, pickling), and {percent_text(100 * own)} in the program's own functions",
        change=words("small-tasks", "host").format(size=tasks // (PIECES * cores)),
    )


def _stands_still(document: RunDocument, spot: CodeSpot) -> float:
    """Return the share (0..1) of a place's time in which it is ready to compute, but another thread has the lock."""
    sampled = next((samples for samples in document.sampled if not samples.native), None)
    here = [
        line
        for line in (sampled.lines if sampled is not None else ())
        if (line.file, line.function) == (spot.where.file, spot.where.function) and line.main_wall > 0
    ]
    wall, ran = sum(line.main_wall for line in here), sum(line.main_cpu for line in here)
    waited = sum(sum(line.waits.values()) for line in here)
    return max(0.0, 1 - (ran + waited) / wall) if wall > 0 else 0.0


def _handing_over(document: RunDocument, spot: CodeSpot) -> Place | None:
    """Return the function of the program that gives a pool its tasks, as cProfile counted, with its first line.

    A thread of the pool pickles them: where the program waits meanwhile says nothing, unless that is the same function.
    """
    calls = next((profile for profile in document.profiles if profile.kind == "program-calls"), None)
    given = [
        row
        for row in (calls.hotspots if calls is not None else ())
        if row.callee is not None
        and row.callee.function in _GIVES_TASKS
        and _POOLS.match((row.callee.file or "").replace("\\", "/"))
        and is_users_code(row.file, row.function)
    ]
    most = max(given, key=lambda row: row.calls or 0, default=None)
    if most is None or (most.function, most.file) == (last_name(spot.where.function or ""), spot.where.file):
        return None
    return Place(function=most.function, file=most.file, line=most.line)


def _tasks_of(document: RunDocument) -> int:
    """Return how many tasks were handed over one by one, as cProfile counted; 0 if it is not known."""
    counted = profile_of(document, "own-time")
    calls = [
        row.calls or 0
        for row in (counted.hotspots if counted is not None else ())
        if row.function in _HANDS_OVER and _POOLS.match((row.file or "").replace("\\", "/"))
    ]
    return max(calls, default=0)


_MAKES_PROCESSES = (
    "_launch_processes",
    "_setup_queues",
)  # once for each pool: concurrent.futures, multiprocessing


def _pools_of(document: RunDocument) -> int:
    """Return how many pools of processes were made, as cProfile counted; 0 if it is not known."""
    counted = profile_of(document, "own-time")
    return sum(
        row.calls or 0
        for row in (counted.hotspots if counted is not None else ())
        if row.function in _MAKES_PROCESSES and _POOLS.match((row.file or "").replace("\\", "/"))
    )


WAITS = (
    lock_held,
    blocked_event_loop,
    held_event_loop,
    polling,
    interpreter_lock,
    small_tasks,
    process_per_item,
    repeated_sync,
    sequential_waits,
)


def rank_behind(document: RunDocument) -> Iterator[Insight]:
    """Find ranks of a program of which one works while the others wait for it."""
    sampled = next((samples for samples in document.sampled if not samples.native), None)
    ranks = sorted({rank for line in sampled.lines for rank in line.ranks}) if sampled is not None else []
    if sampled is None or len(ranks) < 2:
        return
    work = {
        rank: sum(
            line.ranks.get(rank, 0.0)
            for line in sampled.lines
            if not any("distributed" in (callee.file or "") for callee in line.callees)
        )
        for rank in ranks
    }
    slow = max(ranks, key=lambda rank: work[rank])
    others = [rank for rank in ranks if rank != slow]
    mean = sum(work[rank] for rank in others) / len(others)
    if work[slow] < AHEAD * mean:
        return
    waits = max(sampled.lines, key=lambda line: sum(line.rank_waits.get(rank, 0.0) for rank in others))
    line, more = line_ahead(sampled, slow)
    share = min(1.0, more / sampled.wall) if sampled.wall > 0 else 0.0
    waited = any(waits.rank_waits.get(rank, 0.0) for rank in others)
    where = f", while the others wait in line {waits.line}, {function_name(waits.function)}" if waited else ""
    spot = CodeSpot(
        share, more, "python", Place(function=line.function, file=line.file, line=line.line), code=line.code
    )
    yield say(
        spot,
        "rank-behind",
        f"Rank {slow} works in {function_name(line.function)}, and the other ranks wait for it",
        f"rank {slow} works for {format_quantity(work[slow], 's')}, the others for "
        f"{format_quantity(mean, 's')} on average{where}",
    )


def line_ahead(sampled: SampledTime, rank: str) -> tuple[LineSamples, float]:
    """Return the line in which a rank spends more than the others do on average, and by how many seconds."""
    others = {other_rank for line in sampled.lines for other_rank in line.ranks} - {rank}

    def ahead(line: LineSamples) -> float:
        return line.ranks.get(rank, 0.0) - sum(
            line.ranks.get(other_rank, 0.0) for other_rank in others
        ) / len(others)

    line = max(sampled.lines, key=ahead)
    return line, ahead(line)
