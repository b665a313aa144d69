"""Rules on the processor's side: a program that waits, imports that take long, the hottest Python function."""

from __future__ import annotations

import re
from collections.abc import Iterator

from profkit.analysis.insights.evidence import RunEvidence
from profkit.analysis.insights.rule import percent_text
from profkit.core.formatting import format_quantity
from profkit.core.types import Gain, Hotspot, Insight, Place, Profile, ProfileKind, RunDocument

WAITS = 0.2  # of the wall time: less is what any program that reads its files has
WORTH = 0.15  # of the time: a function with less is not where one would begin
IMPORTS = 0.2
INTERPRETED = 0.4  # of the instructions or samples: below, native code does the work
SPINS = 0.25  # of the samples: what threads wait at barriers of balanced work is less
_INTERPRETER = re.compile(r"(^|/)(lib)?python[\d.]*(\.so[\d.]*)?$")
_OPENMP = re.compile(r"lib(gomp|iomp5|omp)\b")
_ARRAYS = frozenset({"numpy", "torch", "pandas", "jax", "scipy"})
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
    """The function of the user's own code in which the interpreter itself spends the most time.

    cProfile counts the operators of arrays and tensors as their caller's own time. So where native code was sampled or
    counted, the interpreter must be what works; where it was not, and such a library is loaded, the advice is for both.
    """
    profile = _profile(run.document, "own-time") or _profile(run.document, "python-functions")
    if profile is None or profile.total <= 0:
        return
    own = [hotspot for hotspot in profile.hotspots if is_users_code(hotspot.file)]
    first = max(own, key=lambda hotspot: hotspot.own, default=None)
    interpreter = interpreter_share(run.document)
    if (
        first is None
        or first.own < WORTH * profile.total
        or (interpreter is not None and interpreter < INTERPRETED)
    ):
        return
    share = first.own / profile.total
    calls = f", in {first.calls} calls" if first.calls else ""
    each = f" of {format_quantity(first.own / first.calls, profile.unit)}" if first.calls else ""
    arrays = interpreter is None and bool(_ARRAYS & run.document.packages.keys())
    loop = (
        "move its loop into a library that works on whole arrays (numpy, pandas, torch), call it less often or "
        "cache its results (functools.cache), or compile it (numba, Cython)."
    )
    yield Insight(
        "hot-python-function",
        f"Look at {first.function} first"
        if arrays
        else f"Speed up {first.function}: Python itself works there",
        f"{percent_text(100 * share)} of the profiled time is in the lines of {first.function}{calls}{each}",
        f"If it works on single elements: {loop} If it works on whole arrays: fewer and larger operations, smaller "
        "types, torch.compile or numba."
        if arrays
        else loop[0].upper() + loop[1:],
        Place(function=first.function, file=first.file, line=first.line),
        Gain(share, "the profiled time", "its own time, as if it took none"),
    )


def interpreter_share(document: RunDocument) -> float | None:
    """Share (0..1) of the instructions, or else of the samples, in Python's own interpreter; None: nobody looked."""
    for kind in ("counted-functions", "libraries"):
        profile = _profile(document, kind)
        if profile is not None and profile.total > 0:
            inside = sum(
                one.own for one in profile.hotspots if _INTERPRETER.search(one.library or one.function)
            )
            return inside / profile.total
    return None


def spinning_threads(run: RunEvidence) -> Iterator[Insight]:
    """Threads of OpenMP that wait for each other and keep their processors busy with it."""
    libraries = _profile(run.document, "libraries")
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


def is_users_code(file: str | None) -> bool:
    """Whether a Python file is neither the standard library's nor an installed package's."""
    if file == "<string>":  # python -c
        return True
    if not file or file.startswith(("<", "~")) or not file.endswith((".py", ".ipynb")):
        return False
    return not any(part in file for part in ("site-packages", "dist-packages", "/lib/python", "importlib"))


def _profile(document: RunDocument, kind: ProfileKind) -> Profile | None:
    return next((profile for profile in document.profiles if profile.kind == kind and profile.hotspots), None)
