"""Makes one place out of the rows of lines that belong together: which those are, and what is known of the place.

Of a Python program and of one of machine code alike.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from profkit.analysis.function_names import brief_name, function_name, library_name
from profkit.analysis.hot_spots.callees import WITH, made_in, public_call, written_calls
from profkit.analysis.stacks.line_counts import calls_in, count_of
from profkit.analysis.stacks.lines import COMPREHENSIONS
from profkit.analysis.stacks.python_code import is_users_code, module_name
from profkit.core.types import (
    Beneath,
    CodeLine,
    CodeSpot,
    Hotspot,
    LineCode,
    LineSamples,
    Place,
    Profile,
    ProfileKind,
    RunDocument,
    SampledTime,
    SpotKind,
)

MIN_SHARE = 0.005  # of the wall time: what is less is part of the rest
MAX_SPOTS = 20
A_ROW = 0.05  # of the wall time: a line of a function that takes so much is a place of its own
AN_OPERATION = 0.01  # the same of one that works on arrays of NumPy
# what is waited for may be the program's own work elsewhere
_AT_WORK = 0.5
_OF_THREADS = frozenset({"acquire", "join", "wait", "wait_for", "get", "put", "result", "shutdown"})
_COMPILES = re.compile(r"/jax/_src/compiler\.py:backend_compile(_and_load)?$")
_OF_JAX = ("jax", "jaxlib", "flax", "optax", "equinox", "haiku")
MAJORITY = 0.5
NEARLY_NONE = 0.05
GIVEN_SHARE = 0.2  # of the trials
TELLING = 0.1  # of the most in a line of the function
_SLOW = ("contains", "shift", "grow", "pattern")
LEAF = 1.05  # times its own time, with what it calls: it calls nothing of Python
UNHURRIED = 20e-6  # seconds of a call: cProfile adds about one microsecond
FEW = 0.1  # of the calls of a function: so many of other lines say little of a line's own
SURE = 0.3  # of the time: two shares that overlap at least by this much belong together
WAITS: Mapping[str, SpotKind] = {
    "sleep": "sleep", "lock": "lock", "network": "network", "input": "input", "child": "child", "pipe": "pipe",
    "file": "file", "sync": "sync", "await": "await",
}  # fmt: skip
_OURS = re.compile(r"/profkit/(runtime|kernels|evaluation|sweep)/")


@dataclass
class Row:
    """Wall seconds of one line, by kind."""

    line: LineSamples
    kinds: dict[SpotKind, float] = field(default_factory=dict)

    def add(self, kind: SpotKind, seconds: float) -> None:
        """Add wall seconds of a kind; nothing where there are none."""
        if seconds > 0:
            self.kinds[kind] = self.kinds.get(kind, 0.0) + seconds

    @property
    def seconds(self) -> float:
        """Return its wall seconds of all kinds."""
        return sum(self.kinds.values())

    @property
    def kind(self) -> SpotKind:
        """Return the kind of most of its seconds."""
        return max(self.kinds, key=lambda kind: self.kinds[kind], default="python")


def path_of(line: CodeLine) -> str:
    """Return the path of a line's file, with slashes; empty for none."""
    return (line.file or "").replace("\\", "/")


def group_rows(
    rows: Sequence[Row], whole: float, apart: Callable[[LineSamples], bool] = lambda _: False
) -> list[list[Row]]:
    """Return the lines that form one place each: those with a twentieth of `whole`, those that call a library, and
    waits.

    A line that is `apart` is one if it takes a hundredth.

    The small lines of one function that compute by themselves are one place together.
    """
    groups: dict[object, list[Row]] = {}
    for row in rows:
        line = row.line
        joined = line.own >= MAJORITY * line.main_cpu if row.kind == "native" else row.kind == "python"
        key = (line.file, line.function, None if joined else line.line)
        groups.setdefault(key, []).append(row)
    ordered = [
        _by_importance(part)
        for group in groups.values()
        for part in _large_lines(
            group, [(AN_OPERATION if apart(row.line) else A_ROW) * whole for row in group]
        )
    ]
    return sorted(ordered, key=lambda group: -sum(row.seconds for row in group))


def _large_lines(group: Sequence[Row], least: Sequence[float]) -> list[list[Row]]:
    """Return the lines of a function that have at least so many seconds, each alone, and all others.

    The operator of a construct that may be slow by itself is followed by the lines at which its end was seen: they
    stay with it.
    """
    if _is_slow(_by_importance(group)[0], max(row.seconds for row in group)):
        return [list(group)]
    small = [row for row, enough in zip(group, least, strict=True) if row.seconds < enough]
    large = [[row] for row, enough in zip(group, least, strict=True) if row.seconds >= enough]
    return large + ([small] if small else [])


def is_called_by(edge: Hotspot, line: LineSamples) -> bool:
    """Return whether cProfile's caller is the function of the line, or a comprehension that begins there."""
    if edge.file != line.file:
        return False
    own = edge.function == line.function.rpartition(".")[2]
    return own or (edge.function in COMPREHENSIONS and edge.line == line.line)


def _by_importance(group: Sequence[Row]) -> list[Row]:
    """Sort the lines so that the one that represents its function comes first.

    Of those with a good part of the function's time it is one that may be slow by itself.

    A sampler inside of the process sees the end of an operator's work at the next call.
    """
    most = max(row.seconds for row in group)

    def order(row: Row) -> tuple[bool, bool, float]:
        code = row.line.code
        # The cost of a call is seen where a function begins, and its work in the other lines.
        is_head = code is not None and code.text.startswith(("def ", "async def ", "class "))
        return is_head, not _is_slow(row, most), -row.seconds

    return sorted(group, key=order)


def _is_slow(row: Row, most: float) -> bool:
    """Return whether a line with a good part of its function's time holds a construct that may be slow by itself."""
    code = row.line.code
    if code is None or row.seconds < TELLING * most:
        return False
    kinds = {construct.kind for construct in code.constructs}
    if "element" in kinds:  # counts[key] += 1
        kinds.discard("grow")
    return not kinds.isdisjoint(_SLOW)


def make_spot(document: RunDocument, group: Sequence[Row], share: float, seconds: float) -> CodeSpot:
    """Return the place that a group of rows is together, whose first line stands for it."""
    line, kind = group[0].line, group[0].kind
    function, counted = counted_function(document, line), count_of(document, line.file, line.line)
    first = line.callers[0] if line.callers else None
    # What measures calls the benchmark's function, and is not worth a look.
    own = first is not None and _OURS.search(path_of(first)) is not None
    under = _beneath(document, line, share, seconds)
    if compiles_with_xla(line):
        kind, under = "library", Beneath("XLA's compiler")
    elif kind == "lock" and (
        waits_for_xla(document, under, line.code) or waits_for_its_threads(document, under, seconds)
    ):
        kind = "library"
    elif kind == "lock" and waits_for_workers(line):
        kind = "workers"
    caller = first if first is not None and is_users_code(first.file, "") and not own else None
    return CodeSpot(
        share,
        seconds,
        kind,
        Place(function=line.function, file=line.file, line=line.line),
        under,
        line.code,
        function.calls if function is not None else None,
        line.longest,
        max(row.line.threads for row in group),
        max(row.line.processes for row in group),
        line.looks,
        line.arguments,
        line.variables,
        line.ranks if len(line.ranks) > 1 else {},
        f"{function_name(caller.function)}, {path_of(caller).rpartition('/')[2]}:{caller.line}"
        if caller is not None and caller.function != line.function
        else None,
        partial=any(profile.partial for profile in document.profiles),
        below=_shares(line, line.below),
        inside=_shares(line, line.inside) if kind == "library" else (),
        callers=line.callers,
        caller_code=line.caller_code,
        beside=is_met_for_others(line),
        executions=counted.executions if counted is not None and _is_one_line(group) else None,
    )


def waits_for_xla(document: RunDocument, under: Beneath | None, code: LineCode | None) -> bool:
    """Return whether a wait for a lock is one for XLA's own threads, which a window saw at work for most of its time.

    So it is below JAX, and on a line that calls what is not in Python, as a jitted function is, and no lock or thread.
    """
    xla = profile_of(document, "xla-operations")
    if xla is None or sum(hotspot.own for hotspot in xla.hotspots) < _AT_WORK * xla.total:
        return False
    if under is not None and under.name:
        return under.library in _OF_JAX
    calls = {call.name.rpartition(".")[2] for call in code.find("call")} if code is not None else set()
    return bool(calls) and not calls & _OF_THREADS


def waits_for_its_threads(document: RunDocument, under: Beneath | None, seconds: float) -> bool:
    """Return whether the call of a library waits for threads of the library's own machine code, as in Polars.

    Of so many `seconds` at a place, perf saw this code at work for a good part, as far as other programs let it run.
    """
    profile, library = profile_of(document, "libraries"), under.library if under is not None else None
    if profile is None or not library or library in ("built-in", "standard library"):
        return False
    split = document.time_split
    idle = split.queued / split.wall if split is not None and split.queued and split.wall > 0 else 0.0
    own = sum(
        hotspot.own
        for hotspot in profile.hotspots
        if library in (hotspot.library or hotspot.function).partition(".")[0]
        and ".so" in (hotspot.library or hotspot.function)
    )
    return own >= SURE * (1 - idle) * seconds


_POOLS = re.compile(r"/multiprocessing/pool\.py:|/concurrent/futures/|/joblib/|/threading\.py:Thread\.join$")


def waits_for_workers(line: LineSamples) -> bool:
    """Return whether a line waits for results of a pool of threads or processes, or joins a thread, and takes no lock
    itself.
    """
    seconds = (each.value for each in line.below if _POOLS.search(f"{path_of(each)}:{each.function}"))
    return max(seconds, default=0.0) > MAJORITY * (line.main_wall + line.other_wall)


def compiles_with_xla(line: LineSamples) -> bool:
    """Return whether JAX compiles for most of a line's time. XLA does it in threads, for which the line waits."""
    seconds = (
        callee.value for callee in line.below if _COMPILES.search(f"{path_of(callee)}:{callee.function}")
    )
    return max(seconds, default=0.0) > _AT_WORK * (line.main_wall + line.other_wall)


def is_met_for_others(line: LineSamples) -> bool:
    """Return whether samples are taken at a line also while the lines around it run.

    It gives the interpreter's lock away for a moment, again and again: who waits for the lock gets it there.
    """
    waits = sum(line.waits.values()) > SURE * line.main_wall
    return line.given >= GIVEN_SHARE and not waits and line.code is not None and line.code.beside


def _is_one_line(group: Sequence[Row]) -> bool:
    """Return whether nearly all of a place's time is that of its first line."""
    first, whole = group[0].line, sum(row.seconds for row in group)
    others = (row.seconds for row in group if row.line.line != first.line)
    return sum(others) <= NEARLY_NONE * whole


def _shares(line: LineSamples, functions: Sequence[CodeLine]) -> tuple[CodeLine, ...]:
    """Return functions below a line with their shares (0..1) of its time."""
    whole = line.main_wall + line.other_wall
    return (
        tuple(replace(callee, value=min(1.0, callee.value / whole)) for callee in functions)
        if whole > 0
        else ()
    )


def counted_function(document: RunDocument, line: LineSamples) -> Hotspot | None:
    """Return the function as cProfile counted it."""
    profile = profile_of(document, "own-time")
    name = line.function.rpartition(".")[2]
    same = (
        hotspot
        for hotspot in (profile.hotspots if profile is not None else ())
        if hotspot.function == name and hotspot.file == line.file
    )
    return max(same, key=lambda hotspot: hotspot.total or hotspot.own, default=None)


def _beneath(document: RunDocument, line: LineSamples, share: float, row: float) -> Beneath | None:
    """Return what the line calls: by sampled stacks a function of Python, by cProfile what is built in; `row`:
    its seconds.

    cProfile counts the calls of a function, not of a line: where two lines of it call the same, those of one are
    known by how often the line ran.
    """
    called = (
        line.callees[0] if line.callees and line.own < MAJORITY * (line.main_cpu + line.other_cpu) else None
    )
    public = public_call(line, called) if called is not None else None
    named = written_calls(line.code)
    if called is not None:
        # A method in C that calls a private function has the same calls, and all of their time.
        named = {last_part(called.function), *(name for name in (public,) if name in named)}
    profile = profile_of(document, "program-calls")
    edges = [
        edge
        for edge in (profile.hotspots if profile is not None else ())
        if edge.callee is not None
        and is_called_by(edge, line)
        and last_part(edge.callee.function) in named
        and not is_users_code(edge.callee.file, edge.callee.function)
    ]
    edge = max(edges, key=lambda edge: edge.total or edge.own, default=None)
    # What takes a small part of the place's time is not what it is about: an operator beside it may be. Of a sampled
    # call the samples say this: the run under cProfile is another one.
    seen = called is not None and called.value >= SURE * (line.main_wall + line.other_wall)
    made = made_in(line.code.statement) if called is None and line.code is not None else None
    part = MAJORITY if made is not None else SURE
    least = part * share * profile.total if profile is not None and not seen else 0.0
    if edge is not None and (edge.total or edge.own) < least:
        edge = None
    if edge is not None and edge.callee is not None:
        others = _others_of(document, line, last_part(edge.callee.function))
        # Under cProfile each call takes longer: together they take no more than the row does.
        calls, seconds = edge.calls or 0, min(edge.total or edge.own, row)
        shared = others is None or others > FEW * calls or _is_also_below(document, line, called)
        if not shared:
            calls -= others or 0
        else:
            calls = min(calls, _calls_at(document, line, last_part(edge.callee.function)))
        library = edge.callee.library if edge.callee.file else _native_library(document, share)
        # What cProfile timed are all calls of the function, of which other lines make some.
        each = seconds / calls if calls and not shared else None
        if calls and profile is not None and profile.partial:
            # The row has the time of all calls, of which a part was counted. Built-in ones take as long under cProfile,
            # unless they call back: `sum` of a generator took 5 times as long.
            mean, leaf = edge.own / calls, (edge.total or edge.own) <= LEAF * edge.own
            built_in = edge.callee.file is None and leaf and edge.own <= row
            each = mean if built_in and mean >= UNHURRIED else None
        # Samples have the class of a method, which cProfile does not.
        if called is None:
            public = _public_name(edge.callee.function, edge.callee.file)
        if public != WITH:
            shown = public if edge.callee.file else None  # a built-in one has no other name
            return Beneath(brief_name(edge.callee.function), library, calls or None, each, shown)
    if called is not None:
        file = called.file
        library = module_name(file).partition(".")[0] if file and file.endswith(".py") else file
        if public != WITH:
            return Beneath(last_part(called.function), library, public=public)
    library = _native_library(document, share)
    # Of a line that only calls built-in functions, what those that are timed leave is a type's.
    timed = sum(edge.total or edge.own for edge in edges)
    if profile is None or timed >= MAJORITY * share * profile.total:
        made = None
    return Beneath("", library, public=made) if library is not None or made is not None else None


def _others_of(document: RunDocument, line: LineSamples, name: str) -> int | None:
    """Return how often the other lines of a function called what is named so; None where this is not known.

    That is 0 where there are none; once for each call of the function where they are in no loop.
    """
    elsewhere = line.code.find("called-elsewhere") if line.code is not None else ()
    found = [call for call in elsewhere if call.name == name]
    function = counted_function(document, line)
    if any(not call.how for call in found) or (found and function is None):
        return None
    return sum(int(call.how) for call in found) * ((function.calls or 0) if function is not None else 0)


def _is_also_below(document: RunDocument, line: LineSamples, called: CodeLine | None) -> bool:
    """Return whether another line of the same function was seen to call the same, without a name in its text: an
    operator, an index or an attribute.
    """
    if called is None or not re.fullmatch(r"__\w+__", last_part(called.function)):
        return False
    others = (
        other
        for sampled in document.sampled
        for other in sampled.lines
        if (other.file, other.function) == (line.file, line.function) and other.line != line.line
    )
    return any(
        (callee.file, callee.function) == (called.file, called.function)
        for other in others
        for callee in other.callees
    )


def _calls_at(document: RunDocument, line: LineSamples, name: str) -> int:
    """Return how often the line called what is named so; 0 where its executions were not counted, or do not show it."""
    counted = count_of(document, line.file, line.line)
    if counted is None or line.code is None:
        return 0
    return counted.executions * calls_in(line.code.statement).get(name, 0)


def _public_name(function: str, file: str | None) -> str | None:
    """Return the name of a function in a module of Python that a report shows; None where its own is public."""
    private = last_part(function).startswith(("_", "<"))
    return library_name(function, module_name(file)) if private and file and file.endswith(".py") else None


def _native_library(document: RunDocument, share: float) -> str | None:
    """Return the library of machine code that works below a line: where both have so much of the time that they
    overlap.
    """
    profile = profile_of(document, "libraries")
    if profile is None:
        return None
    first = max(profile.hotspots, key=lambda hotspot: hotspot.own)
    name = first.library or first.function
    known = not name.startswith(("[", "python", "libpython")) and not name.startswith(
        ("libc.", "libc-", "ld-")
    )
    return name if known and share + first.own / profile.total - 1 >= SURE else None


def last_part(function: str) -> str:
    """Return the name of a function without its class and module."""
    return brief_name(function).rpartition(".")[2]


def profile_of(document: RunDocument, kind: ProfileKind) -> Profile | None:
    """Return the run's profile of that kind; None where there is none, or an empty one."""
    return next(
        (
            profile
            for profile in document.profiles
            if profile.kind == kind and profile.hotspots and profile.total > 0
        ),
        None,
    )


def sampled_runs(document: RunDocument, sampled: SampledTime) -> float:
    """Return how many runs of the program the lines' samples are of: a short one is sampled several times.

    Threads are sampled in the first of them alone.
    """
    threads = profile_of(document, "sampled-threads")
    main = sum(row.total or 0.0 for row in threads.hotspots if row.function == "main") if threads else 0.0
    return max(1.0, sampled.wall / main) if main > 0 else 1.0
