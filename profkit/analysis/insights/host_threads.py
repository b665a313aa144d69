"""Rules on threads that spin, that are too many, or that wait for each other's locks."""

from __future__ import annotations

import re
from collections.abc import Iterator

from profkit.analysis.insights.evidence import RunEvidence, percent_text
from profkit.analysis.insights.host_memory import hottest_place
from profkit.core.formatting import plural
from profkit.core.types import Gain, Insight

SPINS = 0.25  # of the samples: what threads wait at barriers of balanced work is less
TOO_MANY = 2.0  # threads that could run, for each processor: with less, one of them is soon done
OWN_PROCESSORS = 0.8  # of the processors: with less, other programs had the rest
LOCKED = 0.25  # of the samples
_LOCKS = re.compile(
    r"pthread_(mutex|rwlock|spin)_(timed|try)?(rd|wr)?(un)?lock|lll_lock|futex|spin_lock_slowpath"
)
_OPENMP = re.compile(r"lib(gomp|iomp5|omp)\b")


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
    yield Insight(
        "oversubscribed-threads",
        f"Use no more threads than there are processors: {machine.cores}",
        f"{many}; {split.thread_count} threads in all" if split.thread_count else many,
        "Threads that compute, of all processes together, should be as many as processors: "
        f"max_workers={machine.cores} of a pool; with several processes that use numpy, torch or OpenMP, one thread in "
        "each (OMP_NUM_THREADS=1, torch.set_num_threads(1)). More of them push each other's data out of the caches "
        "and hold more memory; where they meet at barriers, each waits for the one that has no processor.",
        hottest_place(run),
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
    yield Insight(
        "lock-contention",
        "Take locks less often",
        f"{percent_text(100 * share)} of the samples are in taking and giving up locks ({locking[0].function}), by "
        f"{split.thread_count} threads",
        "Give each thread data of its own and add it up at the end; take the lock once for many steps; several locks, "
        "each for a part of the data; atomic operations for single counters.",
        hottest_place(run),
        Gain(share, "the CPU time", "as if locks took none"),
    )
