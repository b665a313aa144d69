"""Rules on waiting: a program in which no thread runs, and an event loop that is blocked."""

from __future__ import annotations

import re
from collections.abc import Iterator

from profkit.analysis.insights.evidence import RunEvidence, percent_text
from profkit.analysis.insights.host_calls import brief_name
from profkit.analysis.insights.host_samples import never_waits, waiting_line
from profkit.analysis.stacks.python_code import WAITS_FOR, is_users_code
from profkit.core.formatting import format_quantity, plural
from profkit.core.types import Gain, Hotspot, Insight, Place

WAITS = 0.2  # of the wall time: less is what any program that reads its files has
_SLEEPS = ("time.sleep", "'sleep'")
_NETWORK = ("socket", "recv", "send", "connect", "ssl", "getaddrinfo")
_LOCKS = ("acquire", "_thread.lock", "'wait'")
_POLLS = ("select", "poll", "epoll", "kqueue")
_CHILDREN = ("waitpid", "wait4", "communicate")
_FILES = ("io.open", "'read'", "'write'", "fsync", "readline")
UNKNOWN = "something"
LOCK, POLL = "a lock or another thread", "input in an event loop"
# What a coroutine awaits stands in no stack: the line that started the loop is all that samples know.
EVENT_LOOP = "what its coroutines await"
_EVENT_LOOP_CHANGE = (
    "Where they await one thing after the other that do not need each other's result, start them together: "
    "asyncio.gather, or a TaskGroup. Where all are under way already, look at the other side."
)
MOST_WAITS = 0.3  # of what they wait, in one line
SEVERAL = 10  # times that the same is awaited: fewer may be all that there is to do
_TASKS = re.compile(r"create_task|ensure_future|gather|wait|as_completed|TaskGroup")
_SIDE_BY_SIDE = (
    "Start what does not need the result of the other together: asyncio.gather, or a TaskGroup; "
    "where there are many, with a semaphore."
)
# Calls that wait, and libraries whose calls do.
_BLOCKS = re.compile(
    r"<built-in method time\.sleep>|urlopen|<built-in method posix\.(system|waitpid)>|check_output"
)
_BLOCKING_LIBRARIES = frozenset(
    {"requests", "urllib3", "psycopg2", "pymysql", "MySQLdb", "boto3", "botocore"}
)
_WHAT: tuple[tuple[tuple[str, ...], str, str], ...] = (
    (_SLEEPS, "sleep", "Wait for the event itself: a condition, a queue, a file that changes."),
    (_NETWORK, "the network", "Keep several requests under way (asyncio, threads, a pool of connections)."),
    (
        _LOCKS,
        LOCK,
        "Hold locks for a shorter time, or give each thread data of its own.",
    ),
    (
        _POLLS,
        POLL,
        "Keep more requests under way at a time; look at the other side, too.",
    ),
    (_CHILDREN, "a child process", "Start several children side by side, or profile the child itself."),
    (_FILES, "files", "Read and write larger blocks, ahead of their use, and only what is needed."),
)

MAIN_KIND = 0.5  # of what a line waits
_KINDS = {  # of system calls, as the sampler names them
    kind: (what, change)
    for kind, (_, what, change) in zip(
        ("sleep", "network", "lock", "input", "child", "file"), _WHAT, strict=True
    )
} | {
    "input": ("input", "Keep more requests under way at a time; look at the other side, too."),
    "pipe": ("another program at a pipe", "Look at the program at the other end: it is the slower one."),
}


def waiting_program(run: RunEvidence) -> Iterator[Insight]:
    """A program in which no thread runs for much of the time, and no device is known to work meanwhile."""
    split = run.document.time_split
    if split is None or split.waiting is None or split.wall <= 0 or run.document.gpus:
        return
    share = split.waiting / split.wall
    if share < WAITS or split.waiting < 0.05 or never_waits(run) or any(blocked_loop(run)):
        return
    call = _waiting_call(run)
    evidence = (
        f"no thread runs for {percent_text(100 * share)} of the time "
        f"({format_quantity(split.waiting, 's')} of {format_quantity(split.wall, 's')})"
    )
    what, change = (
        UNKNOWN,
        "Let waits overlap: threads, asyncio, or several processes; or ask for less at a time.",
    )
    where: Place | None = None
    if call is not None:
        hotspot, what, change, part = call
        evidence += f"; {percent_text(100 * part)} of the profiled time is in {brief_name(hotspot.function)}"
        where = _calling_function(run, hotspot)
    if what == POLL and (one_by_one := _awaited_one_by_one(run)) is not None:
        what, change = "one thing after the other", _SIDE_BY_SIDE
        evidence += f"; {one_by_one[0]}"
        where = one_by_one[1]
    elif what == LOCK and (locked := _lock_line(run)) is not None:
        where = locked
    elif (sampled := waiting_line(run)) is not None:
        line, part = sampled
        if call is None and (kind := _kind_of_wait(line)) is not None:
            what, change = kind
        evidence += f"; {percent_text(100 * part)} of what its main thread waits is in this line"
        where = Place(function=line.function, file=line.file, line=line.line)
    yield Insight(
        "waiting-program",
        f"The program waits for {what}" if what != UNKNOWN else "The program waits, and computes little",
        evidence,
        change,
        where or Place(),
        Gain(share, "the run's time", "the time in which no thread runs"),
    )


def _kind_of_wait(line: Hotspot) -> tuple[str, str] | None:
    """What a sampled line mostly waits for, by its system calls, and what to do about it."""
    kinds = {
        name.removeprefix(WAITS_FOR): seconds
        for name, seconds in line.counters.items()
        if name.startswith(WAITS_FOR)
    }
    if line.lines and "/asyncio/" in (line.lines[0].file or "").replace("\\", "/"):
        return EVENT_LOOP, _EVENT_LOOP_CHANGE
    first = max(kinds, key=lambda kind: kinds[kind], default="")
    if kinds.get(first, 0.0) < MAIN_KIND * line.counters.get("main_waiting", 0.0):
        return None
    return _KINDS.get(first)


def _lock_line(run: RunEvidence) -> Place | None:
    """The line at which other threads than the main one wait most: that one only waits for their end."""
    profile = run.profile("sampled-lines")
    if profile is None:
        return None

    def waiting(line: Hotspot) -> float:
        return line.counters.get("waiting", 0.0) - line.counters.get("main_waiting", 0.0)

    first = max(profile.hotspots, key=waiting)
    if waiting(first) < MOST_WAITS * sum(map(waiting, profile.hotspots)) or waiting(first) <= 0:
        return None
    return Place(function=first.function, file=first.file, line=first.line)


def _calling_function(run: RunEvidence, waiting: Hotspot) -> Place | None:
    """The function of the program that calls what waits, by cProfile."""
    profile = run.profile("program-calls")
    callers = [
        edge
        for edge in (profile.hotspots if profile is not None else ())
        if edge.callee is not None and edge.callee.function == waiting.function and is_users_code(edge.file)
    ]
    first = max(callers, key=lambda edge: edge.own, default=None)
    return Place(function=first.function, file=first.file, line=first.line) if first is not None else None


def _awaited_one_by_one(run: RunEvidence) -> tuple[str, Place] | None:
    """The coroutine of the program that awaits the same again and again, where no task runs beside it."""
    profile = run.profile("program-calls")
    calls = [edge for edge in (profile.hotspots if profile is not None else ()) if edge.callee is not None]
    if any(edge.callee is not None and _TASKS.fullmatch(edge.callee.function) for edge in calls):
        return None
    awaited = [
        edge
        for edge in calls
        if edge.callee is not None
        and "/asyncio/" in (edge.callee.file or "")
        and is_users_code(edge.file)
        and (edge.calls or 0) >= SEVERAL
    ]
    inner = max(awaited, key=lambda edge: edge.calls or 0, default=None)
    if inner is None or inner.callee is None:
        return None
    outer = max(
        (
            edge
            for edge in calls
            if edge.callee is not None
            and (edge.callee.function, edge.callee.file) == (inner.function, inner.file)
            and is_users_code(edge.file)
        ),
        key=lambda edge: edge.calls or 0,
        default=inner,
    )
    cause = f"{inner.function} awaits {inner.callee.function} again and again, and no task runs beside it"
    return cause, Place(function=outer.function, file=outer.file, line=outer.line)


def blocked_loop(run: RunEvidence) -> Iterator[Insight]:
    """A call that waits inside a coroutine: until it returns, nothing else of the event loop runs."""
    profile, own = run.profile("program-calls"), run.profile("own-time")
    if profile is None or own is None or not any("/asyncio/" in (one.file or "") for one in own.hotspots):
        return
    if not any(one.function == "_run_once" for one in own.hotspots):
        return
    blocking = [
        edge
        for edge in profile.hotspots
        if edge.callee is not None
        and is_users_code(edge.file)
        and (_BLOCKS.fullmatch(edge.callee.function) or edge.callee.library in _BLOCKING_LIBRARIES)
    ]
    first = max(blocking, key=lambda edge: edge.total or 0.0, default=None)
    if first is None or first.callee is None or (first.total or 0.0) < WAITS * profile.total:
        return
    share, calls = (first.total or 0.0) / profile.total, first.calls or 1
    name = brief_name(first.callee.function)
    yield Insight(
        "blocked-event-loop",
        f"Do not block the event loop with {name} in {first.function}",
        f"{percent_text(100 * share)} of the profiled time is in {plural(calls, 'call')} of {name} below the event "
        "loop: meanwhile no other task runs",
        "Await what does not block (asyncio.sleep, an asynchronous client), or move it to a thread: "
        "await asyncio.to_thread(function, ...).",
        Place(function=first.function, file=first.file, line=first.line),
        Gain(share * (1 - 1 / calls), "the profiled time", "all these calls at the same time"),
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
