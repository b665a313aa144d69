"""Rules on waiting: a program in which no thread runs, and threads that wait for each other."""

from __future__ import annotations

import re
from collections.abc import Iterator

from profkit.analysis.insights.evidence import RunEvidence
from profkit.analysis.insights.host_samples import never_waits, waiting_line
from profkit.analysis.insights.rule import percent_text
from profkit.core.formatting import format_quantity
from profkit.core.types import Gain, Hotspot, Insight, Place

WAITS = 0.2  # of the wall time: less is what any program that reads its files has
SPINS = 0.25  # of the samples: what threads wait at barriers of balanced work is less
_OPENMP = re.compile(r"lib(gomp|iomp5|omp)\b")
_SLEEPS = ("time.sleep", "'sleep'")
_NETWORK = ("socket", "recv", "send", "connect", "ssl", "getaddrinfo")
_LOCKS = ("acquire", "_thread.lock", "'wait'")
_POLLS = ("select", "poll", "epoll", "kqueue")
_CHILDREN = ("waitpid", "wait4", "communicate")
_FILES = ("io.open", "'read'", "'write'", "fsync", "readline")
_WHAT: tuple[tuple[tuple[str, ...], str, str], ...] = (
    (_SLEEPS, "sleep", "Wait for the event itself: a condition, a queue, a file that changes."),
    (_NETWORK, "the network", "Keep several requests under way (asyncio, threads, a pool of connections)."),
    (
        _LOCKS,
        "a lock or another thread",
        "Hold locks for a shorter time, or give each thread data of its own.",
    ),
    (
        _POLLS,
        "input in an event loop",
        "Keep more requests under way at a time; look at the other side, too.",
    ),
    (_CHILDREN, "a child process", "Start several children side by side, or profile the child itself."),
    (_FILES, "files", "Read and write larger blocks, ahead of their use, and only what is needed."),
)


def waiting_program(run: RunEvidence) -> Iterator[Insight]:
    """A program in which no thread runs for much of the time, and no device is known to work meanwhile."""
    split = run.document.time_split
    if split is None or split.waiting is None or split.wall <= 0 or run.document.gpus:
        return
    share = split.waiting / split.wall
    if share < WAITS or split.waiting < 0.05 or never_waits(run):
        return
    call = _waiting_call(run)
    evidence = (
        f"no thread runs for {percent_text(100 * share)} of the time "
        f"({format_quantity(split.waiting, 's')} of {format_quantity(split.wall, 's')})"
    )
    what, change = (
        "something",
        "Let waits overlap: threads, asyncio, or several processes; or ask for less at a time.",
    )
    where = Place()
    if call is not None:
        hotspot, what, change, part = call
        evidence += f"; {percent_text(100 * part)} of the profiled time is in {hotspot.function}"
        where = Place(function=hotspot.function, file=hotspot.file, line=hotspot.line)
    sampled = waiting_line(run)
    if sampled is not None:
        line, part = sampled
        evidence += f"; {percent_text(100 * part)} of what its main thread waits is in this line"
        where = Place(function=line.function, file=line.file, line=line.line)
    yield Insight(
        "waiting-program",
        f"The program waits for {what}" if call is not None else "The program waits, and computes little",
        evidence,
        change,
        where,
        Gain(share, "the run's time", "the time in which no thread runs"),
    )


def _waiting_call(run: RunEvidence) -> tuple[Hotspot, str, str, float] | None:
    """The built-in function in which most time was spent, where it is one that waits."""
    profile = run.profile("own-time") or run.profile("python-functions")
    if profile is None or profile.total <= 0:
        return None
    for hotspot in sorted(profile.hotspots, key=lambda one: -one.own)[:3]:
        for names, what, change in _WHAT:
            if any(name in hotspot.function for name in names) and hotspot.own >= 0.1 * profile.total:
                return hotspot, what, change, hotspot.own / profile.total
    return None


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
        "keep their processors busy with it",
        "The work between two barriers is too small, or there are fewer free processors than threads. Try "
        "OMP_NUM_THREADS=1 (torch.set_num_threads), leave busy processors out, and give each parallel part more work.",
        gain=Gain(
            share,
            "the CPU time",
            "the processor time that is spent waiting; the time by the clock may not change",
        ),
    )
