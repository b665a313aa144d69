"""Where the time of a program goes: one short list of places, made once from all that was sampled and counted.

Shares are of the wall time of the program's first process and add up to 1. While its main thread waits for other
threads or processes of the program, the time belongs to the lines that those run, as far as they run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from profkit.analysis.function_names import brief_name, function_name, library_name
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
LEADS_TO_OTHERS = ("lock", "child", "pipe", "input")
MOSTLY = 0.5
NEARLY_NONE = 0.05
GIVEN = 0.2  # of the trials
RUNS = 0.05  # of the wall time of a thread: one that runs less waits for something
TELLING = 0.1  # of the most in a line of the function
_SLOW = ("contains", "shift", "grow", "pattern")
UNHURRIED = 20e-6  # seconds of a call: cProfile adds about one microsecond
ONE_PROCESSOR = 1.1
SURE = 0.3  # of the time: two shares that overlap at least by this much belong together
_WAITS: Mapping[str, SpotKind] = {
    "sleep": "sleep", "lock": "lock", "network": "network", "input": "input", "child": "child", "pipe": "pipe",
    "file": "file", "sync": "sync", "await": "await",
}  # fmt: skip
# The kinds of a place that executes code: with the name of what is called the text is `runs: NAME`.
RUNS_CODE: tuple[SpotKind, ...] = ("python", "library", "native")
# What a place does, in words.
DOES: Mapping[SpotKind, str] = {
    "python": "runs Python code",
    "library": "runs library code",
    "native": "runs compiled code",
    "gpu": "computes on the GPU",
    "import": "imports",
    "sleep": "sleeps",
    "lock": "waits for a lock",
    "network": "waits for the network",
    "await": "awaits one thing at a time",
    "input": "waits for input",
    "child": "waits for another process",
    "pipe": "waits at a pipe",
    "file": "reads and writes files",
    "sync": "waits for the disk",
    "waiting": "waits",
}
_RUNS = 1.9  # times a plain run: a pass that cost so much ran the program more than once
_STARTED = 0.3  # seconds that a pass takes beside the program: perf and the sampler begin and end
_WITH = "contextlib"  # what enters a generator: a row of `with lock():` says more by its code
_OURS = re.compile(r"/profkit/(runtime|kernels|evaluation|sweep)/")
_CHILDREN = re.compile(r"/subprocess\.py$|/multiprocessing/popen_\w+\.py$")


def hot_spots(document: RunDocument) -> tuple[CodeSpot, ...]:
    """Return the places of a run, the largest share first; empty if nothing was sampled."""
    python = next((one for one in document.sampled if not one.native and one.wall > 0), None)
    native = next((one for one in document.sampled if one.native and one.cpu > 0), None)
    if python is not None and (python.lines or native is None):
        spots, wall = _python_spots(document, python)
    elif native is not None:
        spots, wall = _native_spots(document, native)
    else:
        spots, wall = _device_spots(document)
    if wall <= 0:
        return ()
    rest = max(0.0, 1 - sum(spot.share for spot in spots))
    return (*sorted(spots, key=lambda spot: -spot.share), CodeSpot(rest, rest * wall, "rest"))


def _device_spots(document: RunDocument) -> tuple[list[CodeSpot], float]:
    """Return what the devices of a program did whose host was not sampled: kernels by the line that they belong to."""
    trace, split = document.trace, document.time_split
    if trace is None or split is None or document.metal is not None or split.wall <= 0:
        return [], 0.0
    if trace.span is None and trace.busy is None:  # kernels that were replayed one by one
        return [], 0.0
    seconds: dict[Place, float] = {}
    for time in trace.kernels:
        name = None if time.file is not None else time.kernel.name
        place = Place(kernel=name, function=time.function, file=time.file, line=time.line)
        seconds[place] = seconds.get(place, 0.0) + time.total
    known = {place: total for place, total in seconds.items() if total >= MIN_SHARE * split.wall}
    if not known:
        return [], 0.0
    # Kernels of several streams or devices run side by side.
    scale = min(1.0, split.wall / sum(known.values()))
    spots = [
        CodeSpot(scale * total / split.wall, scale * total, "gpu", place) for place, total in known.items()
    ]
    return sorted(spots, key=lambda spot: -spot.share)[:MAX_SPOTS], split.wall


# ------------------------------------------------------------ a Python program


@dataclass
class _Row:
    """Wall seconds of one line, by kind."""

    line: LineSamples
    kinds: dict[SpotKind, float] = field(default_factory=dict)

    def add(self, kind: SpotKind, seconds: float) -> None:
        if seconds > 0:
            self.kinds[kind] = self.kinds.get(kind, 0.0) + seconds

    @property
    def seconds(self) -> float:
        return sum(self.kinds.values())

    @property
    def kind(self) -> SpotKind:
        return max(self.kinds, key=lambda kind: self.kinds[kind], default="python")


def _python_spots(document: RunDocument, sampled: SampledTime) -> tuple[list[CodeSpot], float]:
    rows = [part for row in _rows(sampled) for part in _with_callee(document, row)]
    wall, whole = _seconds_of(document, sampled), _whole_run(document, sampled)
    spots: list[CodeSpot] = []
    for group in _groups(rows, whole, lambda line: _works_on_arrays(document, line)):
        share = sum(row.seconds for row in group) / whole
        if share >= MIN_SHARE and len(spots) < MAX_SPOTS:
            spots.append(_spot(document, group, share, share * wall))
    on_lines = sum(line.main_wall for line in sampled.lines)
    imports = _profile(document, "sampled-imports")  # lines beyond the first hundred are no imports
    left = max(0.0, sampled.wall - on_lines - sampled.rest_wall)
    share = min(left, imports.total) / whole if imports is not None else 0.0
    if share >= MIN_SHARE:
        spots += _import_spots(imports, sampled, share, wall)
    return spots, wall


def outer_spots(document: RunDocument) -> list[CodeSpot]:
    """Return lines that call functions of the program, with everything below: shares of the same time as the places.

    What runs in other threads counts while the main one waits.
    """
    sampled = next((one for one in document.sampled if not one.native and one.wall > 0), None)
    if sampled is None:
        return []
    wall, whole = _seconds_of(document, sampled), _whole_run(document, sampled)
    waited = sum(
        seconds
        for line in sampled.lines
        for kind, seconds in _waits_of(line).items()
        if kind in LEADS_TO_OTHERS
    )
    others = sum(line.other_cpu for line in sampled.lines)
    spots = []
    for line in sampled.outer:
        given = min(waited, others) * line.other_cpu / others if others > 0 else 0.0
        share = min(1.0, (line.main_wall + given) / whole)
        row = _Row(line, {"calls": share * whole})
        spots.append(_spot(document, [row], share, share * wall))
    return spots


def is_below(document: RunDocument, spot: CodeSpot, outer: Place) -> bool:
    """Return whether most of a place's time is spent under a line that calls functions of the program."""
    sampled = next((one for one in document.sampled if not one.native and one.wall > 0), None)
    where = spot.where
    here = [
        one
        for one in (sampled.lines if sampled is not None else ())
        if (one.file, one.function) == (where.file, where.function)
        and (spot.kind == "python" or one.line == where.line)
    ]
    under = sum(
        each.value
        for one in here
        for each in one.within
        if (each.file, each.line) == (outer.file, outer.line) and outer.function == each.function
    )
    return under > MOSTLY * sum(one.main_wall for one in here)


def _rows(sampled: SampledTime) -> list[_Row]:
    """Return each line with its wall time by kind, once the waiting for other threads and processes is theirs."""
    rows = [_Row(line) for line in sampled.lines]
    waits = {id(row): _waits_of(row.line) for row in rows}
    if _one_at_a_time(sampled):
        for row in rows:
            _add_starved(row.line, waits[id(row)])
    leads = {id(row): (*LEADS_TO_OTHERS, "sleep") if _polls(row.line) else LEADS_TO_OTHERS for row in rows}
    led = {
        key: sum(seconds for kind, seconds in kinds.items() if kind in leads[key])
        for key, kinds in waits.items()
    }
    work = {id(row): _working(row.line) for row in rows}
    working = sum(work.values())
    other_waits = [
        (row, kind, seconds)
        for row in rows
        for kind, seconds in row.line.other_waits.items()
        if kind not in LEADS_TO_OTHERS
    ]
    # A main thread without a line of its own in a launcher or a pool's client waits as well.
    resting = max(0.0, sampled.rest_wall - sampled.rest_cpu) if working > 0 else 0.0
    to_give = sum(led.values()) + resting
    given_work = min(to_give, working)
    waiting = sum(seconds for _, _, seconds in other_waits)
    given_waits = min(to_give - given_work, waiting)
    left = 1.0 - (given_work + given_waits) / to_give if to_give > 0 else 1.0
    for row in rows:
        line, kinds = row.line, waits[id(row)]
        computing = max(0.0, line.main_wall - sum(kinds.values()))
        row.add(_computing(line), computing)
        for kind, seconds in kinds.items():
            row.add(_WAITS.get(kind, "waiting"), seconds * (left if kind in leads[id(row)] else 1.0))
        if working > 0:
            row.add(_computing(line), work[id(row)] * given_work / working)
    for row, kind, seconds in other_waits:
        row.add(_WAITS.get(kind, "waiting"), seconds * given_waits / waiting)
    return [row for row in rows if row.kinds]


def _one_at_a_time(sampled: SampledTime) -> bool:
    """Return whether other threads took a good part of the time, and all threads together at most one processor."""
    others = sum(one.other_cpu for one in sampled.lines if not one.processes)
    return others >= SURE * sampled.wall and sampled.cpu <= ONE_PROCESSOR * sampled.wall


def _add_starved(line: LineSamples, kinds: dict[str, float]) -> None:
    """Count as a wait what the main thread was ready to run and did not, while others had the interpreter's lock."""
    ready = line.main_wall - line.main_cpu - sum(kinds.values())
    if ready > 0:
        kinds["lock"] = kinds.get("lock", 0.0) + ready


def _polls(line: LineSamples) -> bool:
    """Return whether the main thread sleeps there in a loop: until others of the program are done."""
    code = line.code
    return code is not None and bool(code.find("sleep") and code.find("while") and not code.find("coroutine"))


def _working(line: LineSamples) -> float:
    """Return the wall seconds in which other threads and processes worked in a line, or waited for a processor to do
    so.
    """
    runnable = line.other_wall - sum(line.other_waits.values())
    return max(line.other_cpu, runnable) if line.other_cpu > RUNS * line.other_wall else line.other_cpu


def _waits_of(line: LineSamples) -> dict[str, float]:
    """Return what the main thread waited for in a line, in seconds; `child` where a library of processes waits."""
    most = max(0.0, line.main_wall - line.main_cpu)
    known = sum(line.waits.values())
    scale = min(1.0, most / known) if known > 0 else 0.0
    kinds: dict[str, float] = {}
    for kind, seconds in line.waits.items():
        child = kind in ("input", "pipe", "file") and any(
            _CHILDREN.search(_path(one)) for one in line.callees[:1]
        )
        kinds["child" if child else kind] = kinds.get("child" if child else kind, 0.0) + seconds * scale
    # Waits that are shorter than the time between two samples are seen in none of them.
    if _waits_for_inputs(line) and kinds.get("input", 0.0) < most:
        kinds["input"] = max(0.0, most - sum(value for kind, value in kinds.items() if kind != "input"))
    # A busy machine lets a line wait that computes: without a system call that waits, it is no wait.
    if not kinds and line.main_cpu < 0.1 * line.main_wall and most > 0:
        kinds["child" if any(_CHILDREN.search(_path(one)) for one in line.callees[:1]) else "waiting"] = most
    return kinds


def _waits_for_inputs(line: LineSamples) -> bool:
    """Return whether most of a line's time ends in a call of an event loop that waits for any of several inputs."""
    selects = (one for one in line.below if one.function.rpartition(".")[2] in ("select", "poll"))
    return any(
        _path(one).endswith("/selectors.py") and one.value >= MOSTLY * line.main_wall for one in selects
    )


def _path(line: CodeLine) -> str:
    return (line.file or "").replace("\\", "/")


def _computing(line: LineSamples) -> SpotKind:
    return "python" if line.own >= MOSTLY * (line.main_cpu + line.other_cpu) else "library"


def _groups(
    rows: Sequence[_Row], whole: float, apart: Callable[[LineSamples], bool] = lambda _: False
) -> list[list[_Row]]:
    """Return the lines that form one place each: those with a twentieth of `whole`, those that call a library, and
    waits.

    A line that is `apart` is one if it takes a hundredth.

    The small lines of one function that compute by themselves are one place together.
    """
    groups: dict[object, list[_Row]] = {}
    for row in rows:
        line = row.line
        joined = line.own >= MOSTLY * line.main_cpu if row.kind == "native" else row.kind == "python"
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


def _large_lines(group: Sequence[_Row], least: Sequence[float]) -> list[list[_Row]]:
    """Return the lines of a function that have at least so many seconds, each alone, and all others.

    The operator of a construct that may be slow by itself is followed by the lines at which its end was seen: they
    stay with it.
    """
    if _is_slow(_by_importance(group)[0], max(row.seconds for row in group)):
        return [list(group)]
    small = [row for row, enough in zip(group, least, strict=True) if row.seconds < enough]
    large = [[row] for row, enough in zip(group, least, strict=True) if row.seconds >= enough]
    return large + ([small] if small else [])


def _works_on_arrays(document: RunDocument, line: LineSamples) -> bool:
    """Return whether arrays of NumPy were seen at a line: what it asks for is another operation than what others do."""
    counted = count_of(document, line.file, line.line)
    forms = (one for several in (counted.forms.values() if counted is not None else ()) for one in several)
    return any(one.shape is not None for one in forms)


def _with_callee(document: RunDocument, row: _Row) -> Iterator[_Row]:
    """Yield the line, and apart from it the short function that it calls, by what cProfile finds of the time in each.

    A sampler inside of the process is let in between two calls, never in the middle of an operator: what a short
    function did is seen at the line that called it.
    """
    line, profile = row.line, _profile(document, "program-calls")
    own = _counted(document, line)
    if line.code is None or profile is None or own is None or row.kind != "python":
        yield row
        return
    left = 1.0
    edges = [edge for edge in profile.hotspots if edge.callee is not None and _is_by(edge, line)]
    named = {one.name.rpartition(".")[2] for one in line.code.find("call")}
    named |= {"__enter__", "__exit__"} if line.code.text.startswith("with ") else set()
    built_in = sum(
        edge.own
        for edge in edges
        if edge.callee is not None and not edge.callee.file and _last(edge.callee.function) in named
    )
    for inner in line.code.into:
        called = [
            edge
            for edge in edges
            if edge.callee is not None
            and (edge.callee.file, edge.callee.function) == (line.file, inner.function)
        ]
        taken = max((edge.total or edge.own for edge in called), default=0.0)
        part = left * taken / max(taken + own.own + built_in, 1e-9)
        if part < MIN_SHARE or taken < own.own * MIN_SHARE:
            continue
        left -= part
        every = (one for sampled in document.sampled for one in sampled.lines)
        looked_at = (one for one in every if one.function.rpartition(".")[2] == inner.function)
        seen = max(looked_at, key=lambda one: one.looks, default=line)
        place = CodeLine(line.function, line.file, line.line, 0.0)
        function = seen.function if seen is not line else inner.function
        callee = replace(
            seen,
            function=function,
            line=inner.line,
            code=inner.code,
            callers=(place,),
            callees=(),
            own=line.own,
        )
        callee = replace(callee, main_cpu=line.main_cpu, other_cpu=line.other_cpu)
        yield _Row(callee, {kind: part * seconds for kind, seconds in row.kinds.items()})
    yield _Row(line, {kind: left * seconds for kind, seconds in row.kinds.items()})


def _is_by(edge: Hotspot, line: LineSamples) -> bool:
    """Return whether cProfile's caller is the function of the line, or a comprehension that begins there."""
    if edge.file != line.file:
        return False
    own = edge.function == line.function.rpartition(".")[2]
    return own or (edge.function in COMPREHENSIONS and edge.line == line.line)


def _by_importance(group: Sequence[_Row]) -> list[_Row]:
    """Sort the lines so that the one that represents its function comes first.

    Of those with a good part of the function's time it is one that may be slow by itself.

    A sampler inside of the process sees the end of an operator's work at the next call.
    """
    most = max(row.seconds for row in group)

    def order(row: _Row) -> tuple[bool, bool, float]:
        code = row.line.code
        # The cost of a call is seen where a function begins, and its work in the other lines.
        is_head = code is not None and code.text.startswith(("def ", "async def ", "class "))
        return is_head, not _is_slow(row, most), -row.seconds

    return sorted(group, key=order)


def _is_slow(row: _Row, most: float) -> bool:
    """Return whether a line with a good part of its function's time holds a construct that may be slow by itself."""
    code = row.line.code
    if code is None or row.seconds < TELLING * most:
        return False
    kinds = {one.kind for one in code.constructs}
    if "element" in kinds:  # counts[key] += 1
        kinds.discard("grow")
    return not kinds.isdisjoint(_SLOW)


def _spot(document: RunDocument, group: Sequence[_Row], share: float, seconds: float) -> CodeSpot:
    line, kind = group[0].line, group[0].kind
    function, counted = _counted(document, line), count_of(document, line.file, line.line)
    first = line.callers[0] if line.callers else None
    # What measures calls the benchmark's function, and is no place that anybody would look at.
    own = first is not None and _OURS.search(_path(first)) is not None
    under = _beneath(document, line, share, seconds)
    if compiles_with_xla(line):
        kind, under = "library", Beneath("XLA's compiler")
    elif kind == "lock" and waits_for_xla(document, under, line.code):
        kind = "library"
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
        f"{function_name(caller.function)}, {_path(caller).rpartition('/')[2]}:{caller.line}"
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
    xla = _profile(document, "xla-operations")
    if xla is None or sum(one.own for one in xla.hotspots) < _AT_WORK * xla.total:
        return False
    if under is not None and under.name:
        return under.library in _OF_JAX
    calls = {one.name.rpartition(".")[2] for one in code.find("call")} if code is not None else set()
    return bool(calls) and not calls & _OF_THREADS


def compiles_with_xla(line: LineSamples) -> bool:
    """Return whether JAX compiles for most of a line's time. XLA does it in threads, for which the line waits."""
    seconds = (one.value for one in line.below if _COMPILES.search(f"{_path(one)}:{one.function}"))
    return max(seconds, default=0.0) > _AT_WORK * (line.main_wall + line.other_wall)


def is_met_for_others(line: LineSamples) -> bool:
    """Return whether samples are taken at a line also while the lines around it run.

    It gives the interpreter's lock away for a moment, again and again: who waits for the lock gets it there.
    """
    waits = sum(line.waits.values()) > SURE * line.main_wall
    return line.given >= GIVEN and not waits and line.code is not None and line.code.beside


def _is_one_line(group: Sequence[_Row]) -> bool:
    """Return whether nearly all of a place's time is that of its first line."""
    first, whole = group[0].line, sum(row.seconds for row in group)
    others = (row.seconds for row in group if row.line.line != first.line)
    return sum(others) <= NEARLY_NONE * whole


def _shares(line: LineSamples, functions: Sequence[CodeLine]) -> tuple[CodeLine, ...]:
    """Return functions below a line with their shares (0..1) of its time."""
    whole = line.main_wall + line.other_wall
    return tuple(replace(one, value=min(1.0, one.value / whole)) for one in functions) if whole > 0 else ()


def _counted(document: RunDocument, line: LineSamples) -> Hotspot | None:
    """Return the function as cProfile counted it."""
    profile = _profile(document, "own-time")
    name = line.function.rpartition(".")[2]
    same = (
        one
        for one in (profile.hotspots if profile is not None else ())
        if one.function == name and one.file == line.file
    )
    return max(same, key=lambda one: one.total or one.own, default=None)


def _beneath(document: RunDocument, line: LineSamples, share: float, row: float) -> Beneath | None:
    """Return what the line calls: by sampled stacks a function of Python, by cProfile what is built in; `row`:
    its seconds.

    cProfile counts the calls of a function, not of a line: where two lines of it call the same, those of one are
    known by how often the line ran.
    """
    called = (
        line.callees[0] if line.callees and line.own < MOSTLY * (line.main_cpu + line.other_cpu) else None
    )
    named = (
        {one.name.rpartition(".")[2] for one in line.code.find("call")} if line.code is not None else set()
    )
    profile = _profile(document, "program-calls")
    edges = [
        edge
        for edge in (profile.hotspots if profile is not None else ())
        if edge.callee is not None
        and _is_by(edge, line)
        and _last(edge.callee.function) in (named if called is None else {_last(called.function)})
        and not is_users_code(edge.callee.file, edge.callee.function)
    ]
    edge = max(edges, key=lambda one: one.total or one.own, default=None)
    # What takes a small part of the place's time is not what it is about: an operator beside it may be.
    if edge is not None and profile is not None and (edge.total or edge.own) < SURE * share * profile.total:
        edge = None
    if edge is not None and edge.callee is not None:
        shared = line.code is not None and _last(edge.callee.function) in {
            one.name for one in line.code.find("called-elsewhere")
        }
        # Under cProfile each call takes longer: together they take no more than the row does.
        calls, seconds = edge.calls or 0, min(edge.total or edge.own, row)
        if shared:
            calls = min(calls, _calls_at(document, line, _last(edge.callee.function)))
        library = edge.callee.library if edge.callee.file else _native_library(document, share)
        # What cProfile timed are all calls of the function, of which other lines make some.
        each = seconds / calls if calls and not shared else None
        if calls and profile is not None and profile.partial:
            # The row has the time of all calls, of which a part was counted. Built-in ones take as long under cProfile.
            mean = edge.own / calls
            each = mean if edge.callee.file is None and mean >= UNHURRIED else None
        # Samples tell the class of a method, which cProfile does not.
        public = _public_name(
            called.function if called is not None else edge.callee.function, edge.callee.file
        )
        if public != _WITH:
            return Beneath(brief_name(edge.callee.function), library, calls or None, each, public)
    if called is not None:
        file = called.file
        library = module_name(file).partition(".")[0] if file and file.endswith(".py") else file
        if (public := _public_name(called.function, file)) != _WITH:
            return Beneath(_last(called.function), library, public=public)
    library = _native_library(document, share)
    return Beneath("", library) if library is not None else None


def _calls_at(document: RunDocument, line: LineSamples, name: str) -> int:
    """Return how often the line called what is named so; 0 where its executions were not counted, or do not tell it."""
    counted = count_of(document, line.file, line.line)
    if counted is None or line.code is None:
        return 0
    return counted.executions * calls_in(line.code.statement).get(name, 0)


def _public_name(function: str, file: str | None) -> str | None:
    """Return the name of a function in a module of Python that a report shows; None where its own is public."""
    private = _last(function).startswith(("_", "<"))
    return library_name(function, module_name(file)) if private and file and file.endswith(".py") else None


def _native_library(document: RunDocument, share: float) -> str | None:
    """Return the library of machine code that works below a line: where both have so much of the time that they
    overlap.
    """
    profile = _profile(document, "libraries")
    if profile is None:
        return None
    first = max(profile.hotspots, key=lambda one: one.own)
    name = first.library or first.function
    known = not name.startswith(("[", "python", "libpython")) and not name.startswith(
        ("libc.", "libc-", "ld-")
    )
    return name if known and share + first.own / profile.total - 1 >= SURE else None


def _last(function: str) -> str:
    return brief_name(function).rpartition(".")[2]


def _import_spots(imports: Profile | None, sampled: SampledTime, share: float, wall: float) -> list[CodeSpot]:
    """Return the time of imports, `share` of the wall time, at the lines of the program that import libraries.

    A module of the program imports others in its turn: what can be left out is an import of a library, at the line
    deepest in the program. What no such line has, as the program's own modules, is that of the line with most.
    """
    if imports is None or imports.total <= 0:
        return [CodeSpot(share, share * wall, "import")]
    loads = imported_lines(imports)
    rest = imports.total - sum(seconds for _, _, seconds in loads)
    spots = []
    for number, (line, name, seconds) in enumerate(loads):
        part = share * min(1.0, (seconds + (max(0.0, rest) if number == 0 else 0.0)) / imports.total)
        place = Place(function=line.function, file=line.file, line=line.line)
        code = sampled.import_codes.get(f"{line.file}:{line.line}")
        spots.append(
            CodeSpot(part, part * wall, "import", place, Beneath(name, None, None, seconds), code=code)
        )
    return [spot for spot in spots if spot.share >= MIN_SHARE] or [CodeSpot(share, share * wall, "import")]


def imported_lines(imports: Profile) -> list[tuple[CodeLine, str, float]]:
    """Return the program's lines that import libraries, each with the library and its seconds, the most first.

    Where its own modules take the time themselves, they are listed in the place of libraries.
    """
    found: dict[tuple[str | None, int | None], tuple[CodeLine, str, float]] = {}
    for own in (False, True):
        for module in imports.hotspots:
            if is_users_code(module.file) != own:
                continue
            for line in module.callers:
                if is_users_code(line.file) and line.value > 0:
                    known = found.get((line.file, line.line))
                    name, most = (known[1], known[2]) if known is not None else (module.function, 0.0)
                    # One line may import several: the one that takes most is named.
                    name = module.function if line.value > most else name
                    found[line.file, line.line] = (line, name, most + line.value)
        if found:
            break
    return sorted(found.values(), key=lambda each: -each[2])


def _seconds_of(document: RunDocument, sampled: SampledTime) -> float:
    """Return the wall seconds of the run without sampling, if all of it counts; else those of the sampled run."""
    timings, split = document.timings, document.time_split
    whole = split is not None and (not timings or timings[0].kind == "process")
    return split.wall if split is not None and whole else sampled.wall


def _whole_run(document: RunDocument, sampled: SampledTime) -> float:
    """Return the seconds that shares are of: those of the first Python process.

    A script of the shell starts programs that are not Python beside it: then they are those of the whole run that
    was sampled, and what no line of Python has is the rest.
    """
    run = next((one for one in document.passes if one.name == "stacks" and one.state == "finished"), None)
    marked = bool(document.timings) and document.timings[0].kind != "process"
    if document.workload.python is not None or marked or run is None or (run.cost or _RUNS) >= _RUNS:
        return sampled.wall
    beside = run.seconds - sampled.wall
    return run.seconds if beside >= max(_STARTED, TELLING * sampled.wall) else sampled.wall


def _profile(document: RunDocument, kind: ProfileKind) -> Profile | None:
    return next(
        (one for one in document.profiles if one.kind == kind and one.hotspots and one.total > 0), None
    )


# ------------------------------------------------------------ a program of machine code


def _native_spots(document: RunDocument, sampled: SampledTime) -> tuple[list[CodeSpot], float]:
    """Return the places of a compiled program and its wall seconds.

    The samples are of processor time, so the time that the program waited is a separate place.
    """
    split = document.time_split
    waiting = split.waiting / split.wall if split is not None and split.waiting and split.wall > 0 else 0.0
    wall = split.wall if split is not None else sampled.wall
    rows = [_Row(line, {"native": line.main_cpu}) for line in sampled.lines]
    spots: list[CodeSpot] = []
    for group in _groups(rows, sampled.cpu / (1 - waiting) if waiting < 1 else 0.0):
        share = (1 - waiting) * sum(row.seconds for row in group) / sampled.cpu
        if share >= MIN_SHARE and len(spots) < MAX_SPOTS:
            spot = _spot(document, group, share, share * wall)
            spots.append(replace(spot, kind="native", under=_native_beneath(group[0].line)))
    placed = _native_waits(document, sampled, waiting, wall)
    left = waiting - sum(spot.share for spot in placed)
    if left >= MIN_SHARE:
        placed.append(CodeSpot(left, left * wall, "waiting"))
    return spots + placed, wall


def _native_waits(document: RunDocument, sampled: SampledTime, waiting: float, wall: float) -> list[CodeSpot]:
    """Return the lines at which a compiled program waits, together no more than it waited (0..1 of the wall time).

    That is without the time in which another thread worked while the main one waited.
    """
    if sampled.span <= 0 or waiting < MIN_SHARE:
        return []
    whole = sum(line.main_wall for line in sampled.waiting) / sampled.span
    scale = min(1.0, waiting / whole) / sampled.span if whole > 0 else 0.0
    spots = []
    for line in sampled.waiting[:MAX_SPOTS]:
        share = scale * line.main_wall
        if share >= MIN_SHARE:
            row = _Row(line, {_WAITS.get(kind, "waiting"): seconds for kind, seconds in line.waits.items()})
            # One call that stores data waits several times, and not all calls were seen.
            least = row.kind == "sync"
            each = line.each_wait if not least else None
            under = Beneath(line.callees[0].function, None, line.waited, each)
            spot = _spot(document, [row], share, share * wall)
            spots.append(replace(spot, kind=row.kind, under=under, partial=least))
    return spots


def _native_beneath(line: LineSamples) -> Beneath | None:
    """Return what a line of compiled code calls, by where its samples are and what the line calls of a library."""
    public = next((one.function for one in line.inside if one.value >= SURE * line.main_cpu), None)
    if line.own < MOSTLY * line.main_cpu:
        return Beneath(line.callees[0].function, line.callees[0].file, public=public)
    return Beneath(public) if public is not None else None
