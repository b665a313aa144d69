"""Rules on the processor's side: a program that waits, imports that take long, the hottest Python function."""

from __future__ import annotations

from collections.abc import Iterator

from profkit.analysis.insights.evidence import RunEvidence
from profkit.analysis.insights.rule import percent_text
from profkit.core.formatting import format_quantity
from profkit.core.types import Gain, Hotspot, Insight, Place, Profile, ProfileKind, RunDocument

WAITS = 0.2  # of the wall time: less is what any program that reads its files has
WORTH = 0.15  # of the time: a function with less is not where one would begin
IMPORTS = 0.2
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
    if share < WAITS or split.waiting < 0.05:
        return
    call = _waiting_call(run.document)
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
    yield Insight(
        "waiting-program",
        f"The program waits for {what}" if call is not None else "The program waits, and computes little",
        evidence,
        change,
        where,
        Gain(share, "the run's time", "the time in which no thread runs"),
    )


def _waiting_call(document: RunDocument) -> tuple[Hotspot, str, str, float] | None:
    """The built-in function in which most time was spent, where it is one that waits."""
    profile = _profile(document, "own-time") or _profile(document, "python-functions")
    if profile is None or profile.total <= 0:
        return None
    for hotspot in sorted(profile.hotspots, key=lambda one: -one.own)[:3]:
        for names, what, change in _WHAT:
            if any(name in hotspot.function for name in names) and hotspot.own >= 0.1 * profile.total:
                return hotspot, what, change, hotspot.own / profile.total
    return None


def heavy_imports(run: RunEvidence) -> Iterator[Insight]:
    """A program that spends a good part of its time on loading modules."""
    imports, whole = _profile(run.document, "imports"), _profile(run.document, "own-time")
    if (
        imports is None
        or not imports.hotspots
        or (run.document.timings and run.document.timings[0].kind != "process")
    ):
        return
    total = whole.total if whole is not None else imports.total
    loaded = max(imports.total, max(one.total or one.own for one in imports.hotspots))
    share = min(1.0, loaded / total) if total > 0 else 0.0
    if share < IMPORTS:
        return
    heaviest = sorted(imports.hotspots, key=lambda one: -(one.total or one.own))[:3]
    names = ", ".join(
        f"{one.function} {format_quantity(one.total or one.own, imports.unit)}" for one in heaviest
    )
    yield Insight(
        "heavy-imports",
        f"Load less at the start: {heaviest[0].function}",
        f"{percent_text(100 * share)} of the profiled time is imports: {names}",
        "Import what only some runs need inside the function that needs it; import the "
        "submodule and not the package; keep one "
        "process alive instead of starting many.",
        Place(function=heaviest[0].function, file=heaviest[0].file),
        Gain(share, "the profiled time", "as if nothing were imported"),
    )


def hottest_function(run: RunEvidence) -> Iterator[Insight]:
    """The function of the user's own code in which the interpreter itself spends the most time."""
    profile = _profile(run.document, "own-time") or _profile(run.document, "python-functions")
    if profile is None or profile.total <= 0:
        return
    own = [one for one in profile.hotspots if is_users_code(one.file)]
    first = max(own, key=lambda one: one.own, default=None)
    if first is None or first.own < WORTH * profile.total:
        return
    share = first.own / profile.total
    calls = f", in {first.calls} calls" if first.calls else ""
    each = f" of {format_quantity(first.own / first.calls, profile.unit)}" if first.calls else ""
    yield Insight(
        "hot-python-function",
        f"Speed up {first.function}: Python itself works there",
        f"{percent_text(100 * share)} of the profiled time is in the lines of {first.function}{calls}{each}",
        "Move its loop into a library that works on whole arrays (numpy, pandas, torch), "
        "call it less often or cache its "
        "results (functools.cache), or compile it (numba, Cython).",
        Place(function=first.function, file=first.file, line=first.line),
        Gain(share, "the profiled time", "its own time, as if it took none"),
    )


def is_users_code(file: str | None) -> bool:
    """Whether a Python file is neither the standard library's nor an installed package's."""
    if file == "<string>":  # python -c
        return True
    if not file or file.startswith(("<", "~")) or not file.endswith((".py", ".ipynb")):
        return False
    return not any(part in file for part in ("site-packages", "dist-packages", "/lib/python", "importlib"))


def _profile(document: RunDocument, kind: ProfileKind) -> Profile | None:
    return next((profile for profile in document.profiles if profile.kind == kind and profile.hotspots), None)
