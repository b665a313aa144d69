"""Rules on threads and processes that spin, wait for the interpreter's lock, or have too little to do at a time."""

from __future__ import annotations

import re
from collections.abc import Iterator

from profkit.analysis.insights.evidence import RunEvidence, percent_text
from profkit.analysis.insights.host_memory import hottest_native, line_of_function
from profkit.analysis.insights.host_python import INTERPRETED, interpreter_share
from profkit.analysis.stacks.python_code import is_users_code
from profkit.core.formatting import plural
from profkit.core.types import Gain, Hotspot, Insight, Place

SPINS = 0.25  # of the samples: what threads wait at barriers of balanced work is less
BUSY = 0.1  # of the processor time: a thread with less does not compete
ONE_AT_A_TIME = 1.15  # threads used: the kernel's clock is coarse
HANDED_OVER = 0.3  # of the processor time, in queues between processes
TOO_MANY = 2.0  # threads that could run, for each processor: with less, one of them is soon done
OWN_PROCESSORS = 0.8  # of the processors: with less, other programs had the rest
LOCKED = 0.25  # of the samples
_LOCKS = re.compile(
    r"pthread_(mutex|rwlock|spin)_(timed|try)?(rd|wr)?(un)?lock|lll_lock|futex|spin_lock_slowpath"
)
_OPENMP = re.compile(r"lib(gomp|iomp5|omp)\b")
_POOL_THREAD = re.compile(r"\(_handle_(tasks|results|workers)\)$")  # of a pool of processes: they hand over
_MACHINERY = re.compile(r".*/(multiprocessing/|concurrent/futures/|selectors\.py|pickle\.py)")


def spinning_threads(run: RunEvidence) -> Iterator[Insight]:
    """Threads of OpenMP that wait for each other and keep their processors busy with it."""
    libraries = run.profile("libraries")
    if libraries is None or libraries.total <= 0:
        return
    spinning = sum(one.own for one in libraries.hotspots if _OPENMP.search(one.library or one.function))
    share = spinning / libraries.total
    if share < SPINS:
        return
    many = _runnable_text(run)
    yield Insight(
        "spinning-threads",
        "Use fewer threads",
        f"{percent_text(100 * share)} of the samples are in OpenMP's own library: threads wait for each other, and "
        f"keep their processors busy with it{'; ' + many if many is not None else ''}",
        "The work between two barriers is too small, or there are fewer free processors than threads. Try "
        "OMP_NUM_THREADS=1 (torch.set_num_threads), leave busy processors out, and give each parallel part more work.",
        gain=Gain(
            share,
            "the CPU time",
            "the processor time that is spent waiting; the time by the clock may not change",
        ),
    )


def oversubscribed_threads(run: RunEvidence) -> Iterator[Insight]:
    """More threads that compute than there are processors for them, by the time in which they stood in the queue.

    Without a bound: threads that take turns without waiting for each other lose little by it. Nothing where other
    programs had the processors, which the split of the time says.
    """
    many = _runnable_text(run)
    if many is None or any(spinning_threads(run)):
        return
    machine, split = run.document.machine, run.document.time_split
    assert machine is not None
    assert split is not None
    line = _starting_line(run)
    if line.file is None:
        function, number = _hottest_function(run)
        line = Place(function=function.function, file=function.file, line=number) if function else line
    if line.file is None and not run.document.workload.python:
        line = hottest_native(run, "Ir", "cycles")
    yield Insight(
        "oversubscribed-threads",
        f"Use no more threads than there are processors: {machine.cores}",
        f"{many}; {split.thread_count} threads in all" if split.thread_count else many,
        "Threads that compute, of all processes together, should be as many as processors: "
        f"max_workers={machine.cores} of a pool; with several processes that use numpy, torch or OpenMP, one thread in "
        "each (OMP_NUM_THREADS=1, torch.set_num_threads(1)). More of them push each other's data out of the caches "
        "and hold more memory; where they meet at barriers, each waits for the one that has no processor.",
        line,
    )


def _runnable_text(run: RunEvidence) -> str | None:
    """How many threads could run at a time; None where that is what fits, or where others had the processors."""
    split, machine = run.document.time_split, run.document.machine
    if split is None or machine is None or split.runnable is None or split.cpu is None:
        return None
    if split.runnable < TOO_MANY * machine.cores:
        return None
    if split.cpu < OWN_PROCESSORS * machine.cores * (split.wall - (split.waiting or 0.0)):
        return None
    return (
        f"{split.runnable:.1f} threads could run at a time, and {plural(machine.cores, 'processor')} ran them: "
        f"each waited for {percent_text(100 * (1 - machine.cores / split.runnable))} of its time"
    )


def native_locks(run: RunEvidence) -> Iterator[Insight]:
    """Compiled threads that spend their time on taking and giving up locks."""
    sampled, split = run.profile("functions"), run.document.time_split
    if sampled is None or split is None or (split.thread_count or 1) < 2 or run.document.workload.python:
        return
    locking = [one for one in sampled.hotspots if _LOCKS.search(one.function)]
    share = sum(one.own for one in locking) / sampled.total
    if share < LOCKED:
        return
    own = [
        one
        for one in sampled.hotspots
        if one not in locking and one.library not in (None, "[kernel]") and ".so" not in (one.library or "")
    ]
    first = max(own, key=lambda one: one.own, default=None)
    yield Insight(
        "lock-contention",
        "Take locks less often",
        f"{percent_text(100 * share)} of the samples are in taking and giving up locks ({locking[0].function}), by "
        f"{split.thread_count} threads",
        "Give each thread data of its own and add it up at the end; take the lock once for many steps; several locks, "
        "each for a part of the data; atomic operations for single counters.",
        line_of_function(run, first) if first is not None else Place(),
        Gain(share, "the CPU time", "as if locks took none"),
    )


def interpreter_lock(run: RunEvidence) -> Iterator[Insight]:
    """Threads of Python that all compute: the interpreter's lock lets one of them run at a time."""
    split, threads = run.document.time_split, run.profile("sampled-threads")
    if split is None or threads is None or split.threads is None or split.threads > ONE_AT_A_TIME:
        return
    if (split.waiting or 0.0) > 0.2 * split.wall or (interpreter_share(run) or 1.0) < INTERPRETED:
        return
    busy = [
        one
        for one in threads.hotspots
        if one.own >= BUSY * threads.total
        and one.counters.get("first_process")
        and not _POOL_THREAD.search(one.function)
    ]
    count = sum(round(one.counters.get("threads", 1.0)) for one in busy)
    if count < 2 or len({one.function for one in busy}) < 1:
        return
    share = sum(one.own for one in busy) / threads.total
    most = max(one.own for one in busy) / threads.total if len(busy) == count else 1 / count
    left = max(most, 1 / max(1, run.document.machine.cores if run.document.machine is not None else count))
    if left > 0.8:  # one of them does nearly all
        return
    function, line = _hottest_function(run)
    yield Insight(
        "interpreter-lock",
        "Use processes instead of threads: one thread of Python runs at a time",
        f"{count} threads have {percent_text(100 * share)} of the processor time, and {split.threads:.1f} of them run "
        "at a time: they wait for the interpreter's lock",
        "concurrent.futures.ProcessPoolExecutor in place of threads, with large pieces of work; or numpy, torch and "
        "other libraries that give up the lock while they compute; or a free-threaded Python (3.13t and later).",
        Place(function=function.function, file=function.file, line=line) if function is not None else Place(),
        Gain(1 - left, "the run's time", "until all processors work, or the busiest thread is left"),
    )


def small_tasks(run: RunEvidence) -> Iterator[Insight]:
    """A pool of processes that spends its time on handing over work."""
    functions = run.profile("sampled-functions")
    if functions is None:
        return
    handing = [one for one in functions.hotspots if _MACHINERY.match(one.file or "")]
    share = sum(one.own for one in handing) / functions.total
    if share < HANDED_OVER or not any("/multiprocessing/" in (one.file or "") for one in handing):
        return
    function, _ = _hottest_function(run)
    work = ""
    if function is not None:
        work = f", {percent_text(100 * function.own / functions.total)} in {function.function}, which does the work"
    yield Insight(
        "small-tasks",
        "Give the processes of the pool more work at a time",
        f"{percent_text(100 * share)} of the processor time of all processes is spent on handing over work "
        f"(queues, pipes, pickling){work}",
        "pool.map(function, items, chunksize=1000), and the same for imap and ProcessPoolExecutor.map; pass "
        "indices or file names instead of data; for less work than a millisecond each, no pool.",
        _starting_line(run),
        Gain(share, "the CPU time", "as if handing over took none"),
    )


def _hottest_function(run: RunEvidence) -> tuple[Hotspot | None, int | None]:
    """The program's own function with the most processor time, in all threads and processes, and its hottest line."""
    functions = run.profile("sampled-functions")
    own = [
        one
        for one in (functions.hotspots if functions is not None else ())
        if is_users_code(one.file, one.function)
    ]
    first = max(own, key=lambda one: one.own, default=None)
    if first is None:
        return None, None
    return first, first.lines[0].line if first.lines else first.line


def _starting_line(run: RunEvidence) -> Place:
    """The program's line that leads to the pool."""
    lines = run.profile("sampled-lines")
    leading = [
        one
        for one in (lines.hotspots if lines is not None else ())
        if any(
            "/multiprocessing/" in (line.file or "") or "/concurrent/" in (line.file or "")
            for line in one.lines
        )
    ]
    first = max(leading, key=lambda one: one.counters.get("main_waiting", 0.0), default=None)
    return Place(function=first.function, file=first.file, line=first.line) if first is not None else Place()
