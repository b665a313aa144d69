"""Rules on threads that spin, or that wait for each other's locks."""

from __future__ import annotations

import re
from collections.abc import Iterator

from profkit.analysis.insights.evidence import RunEvidence, percent_text
from profkit.analysis.insights.host_memory import hottest_place
from profkit.core.types import Gain, Insight

SPINS = 0.25  # of the samples: what threads wait at barriers of balanced work is less
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
    yield Insight(
        "spinning-threads",
        "Use fewer threads",
        f"{percent_text(100 * share)} of the samples are in OpenMP's own library: threads wait for each other, and "
        f"keep their processors busy with it",
        "The work between two barriers is too small, or there are fewer free processors than threads. Try "
        "OMP_NUM_THREADS=1 (torch.set_num_threads), leave busy processors out, and give each parallel part more work.",
        gain=Gain(
            share,
            "the CPU time",
            "the processor time that is spent waiting; the time by the clock may not change",
        ),
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
