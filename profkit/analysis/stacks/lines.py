"""Sampled Python stacks added up by line of the program: what runs below a line belongs to it.

The line of a stack is the innermost one that is the user's own code. What another process inherited from the one that
forked it, its parent's stack, is no line of its own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, TypeAlias

from profkit.analysis.stacks.python_code import LOCAL, PythonSample, SeenValues, is_users_frame, largest
from profkit.core.types import CodeLine, Frame, LineSamples, SampledTime

MAX_LINES = 100
MIN_SHARE = 0.0005  # of the whole: a line with less is left out
MAX_AROUND = 12  # lines of the program around one
A_CALL, MAX_CALLS = (
    0.05,
    40,
)  # of the whole: a line that calls functions of the program with less is left out
BELOW, MAX_BELOW = 0.1, 12  # of a line's time: a function anywhere below it with less is left out
# A line that calls a library is opened to the library's public functions with so much of the line's time. Of two
# functions within `WRAPS` of each other the outer one only leads to the inner one.
INSIDE, MAX_INSIDE, WRAPS = 0.5, 3, 0.05
COMPREHENSIONS = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")
_WORKERS = "/multiprocessing/process.py"
# What a worker of a pool runs before the work itself.
_POOLS = ("/joblib/", "/loky/", "/multiprocessing/", "/concurrent/futures/")
Role: TypeAlias = Literal["main", "thread", "process"]
Place: TypeAlias = tuple[Frame, int]


@dataclass
class _Line:
    main_wall: float = 0.0
    main_cpu: float = 0.0
    other_wall: float = 0.0
    other_cpu: float = 0.0
    own: float = 0.0
    longest: float = 0.0
    holds: int = 0
    held: float = 0.0
    crowded: float = 0.0
    given: float = 0.0
    waits: dict[str, float] = field(default_factory=partial(defaultdict, float))
    other_waits: dict[str, float] = field(default_factory=partial(defaultdict, float))
    callees: dict[Place, float] = field(default_factory=partial(defaultdict, float))
    callers: dict[Place, float] = field(default_factory=partial(defaultdict, float))
    below: dict[Place, float] = field(default_factory=partial(defaultdict, float))
    depths: dict[Frame, int] = field(
        default_factory=dict
    )  # calls from the line to a function below it, at least
    within: dict[Place, float] = field(default_factory=partial(defaultdict, float))
    threads: set[str] = field(default_factory=set)
    processes: set[str] = field(default_factory=set)
    ranks: dict[str, float] = field(default_factory=partial(defaultdict, float))
    rank_waits: dict[str, float] = field(default_factory=partial(defaultdict, float))


class LineTally:
    """Adds samples up by line of the program."""

    def __init__(self) -> None:
        self._lines: dict[Place, _Line] = {}
        self._outer: dict[Place, _Line] = {}
        self._collecting: dict[tuple[str | None, int], float] = {}  # by file and line
        self._parts: dict[Frame, Frame] = {}  # functions, and a comprehension in each
        self._work: list[tuple[PythonSample, str]] = []  # of workers, without a line of the program; whose
        self.wall = self.cpu = self._rest_wall = self._rest_cpu = 0.0

    def add(self, sample: PythonSample, role: Role, source: str, rank: str = "") -> None:
        """Count a sample; `source` names its thread or process, `rank` that of a distributed program."""
        self.cpu += sample.cpu
        self.wall += sample.wall if role == "main" else 0.0
        if None in sample.frames:
            return
        places = places_of(sample, role)
        found = _line_in(places)
        if found is None:
            self._rest_cpu += sample.cpu
            self._rest_wall += sample.wall if role == "main" else 0.0
            if role == "process" and sample.cpu > 0:
                self._work.append((sample, source))
            return
        place, outer, at = found
        if outer < at:
            self._parts[places[outer][0]] = places[at][0]
        around = [n for n in range(outer) if is_users_frame(places, n)]
        line = self._lines.setdefault(place, _Line())
        for n in around if role == "main" else ():  # the sampler has a function that calls itself once
            line.within[places[n]] += sample.wall
        _add_sample(line, places, (outer, at), sample, role, source)
        calls: dict[Place, tuple[int, int]] = {}
        for n in around[-MAX_AROUND:]:
            called = _function_of(places, n)
            calls[places[called][0], places[n][1]] = called, n
        for call, known in calls.items():
            _add_sample(self._outer.setdefault(call, _Line()), places, known, sample, role, source)
        if rank:
            line.ranks[rank] += sample.cpu
            line.rank_waits[rank] += max(0.0, sample.wall - sample.cpu)

    def give_work(self) -> None:
        """Count what workers did within a library alone to the line of the program that waited for them longest.

        `cross_val_score(n_jobs=2)` has its work in processes that joblib starts with a command of their own: no line of
        the program is in their stacks.
        """
        waiting = max(self._lines.values(), key=lambda line: sum(line.waits.values()), default=None)
        if waiting is None or not sum(waiting.waits.values()) > 0:
            return
        for sample, source in self._work:
            places = sample.places
            pool = [n for n, (frame, _) in enumerate(places) if _in_pool(frame)]
            work = places[pool[-1] + 1 :] if pool else []
            if not work:  # of no pool, or what the pool does for itself
                continue
            waiting.processes.add(source)
            waiting.other_wall += sample.wall
            waiting.other_cpu += sample.cpu
            # by a name that the library's documentation has: DecisionTreeClassifier.fit, not _fit_and_score
            waiting.callees[next((place for place in work if _is_public(place[0])), work[0])] += sample.wall
            self._rest_cpu -= sample.cpu
        self._work.clear()

    def add_wait(self, sample: PythonSample, role: Role, kind: str, seconds: float) -> None:
        """Count what a thread waited for to the line of the program that leads there."""
        line = self._line_of(sample, role)
        if line is not None:
            (line.waits if role == "main" else line.other_waits)[kind] += seconds

    def add_unseen_inputs(self) -> float:
        """Count as waits what an event loop's line neither computed nor was seen to wait for, and return the factor.

        A wait between two samples, of which the loop computed in a part, is seen in none of them: what was awaited then
        is what was awaited when it was seen.
        """
        source = self._source_of_inputs()
        seen = source.waits.get("input", 0.0)
        selects = sum(
            seconds
            for (frame, _), seconds in source.below.items()
            if frame.function.rpartition(".")[2] in ("select", "poll")
            and (frame.file or "").endswith("selectors.py")
        )
        unseen = source.main_wall - source.main_cpu - sum(source.waits.values())
        if seen <= 0 or unseen <= 0 or selects < source.main_wall / 2:
            return 1.0
        source.waits["input"] += unseen
        return (seen + unseen) / seen

    def _source_of_inputs(self) -> _Line:
        return max(self._lines.values(), key=lambda line: line.waits.get("input", 0.0), default=_Line())

    def move_wait(self, awaited: PythonSample, seconds: float, *, alone: bool) -> None:
        """Attribute an event loop's wait to the line of its first coroutine; `alone`: it had no other one to run."""
        places = places_of(awaited, "main")
        found = _line_in(places)
        if found is None:
            return
        source = self._source_of_inputs()
        moved = min(seconds, source.main_wall, source.waits.get("input", 0.0))
        if moved > 0:
            source.main_wall -= moved
            source.waits["input"] -= moved
        else:  # the loop is not started by the program: that of a notebook
            moved = min(seconds, self._rest_wall - self._rest_cpu)
            self._rest_wall -= moved
        line = self._lines.setdefault(found[0], _Line())
        line.main_wall += moved
        line.waits["await" if alone else "input"] += moved
        for outer in reversed(places[: found[1]]):
            line.callers[outer] += moved

    def note_longest(self, sample: PythonSample, role: Role, seconds: float) -> None:
        """Note the longest time between two samples that a line computed for without a pause."""
        line = self._line_of(sample, role)
        if line is not None and sample.cpu > 0:
            line.longest = max(line.longest, seconds)

    def note_held(self, sample: PythonSample, times: int, seconds: float, ready: float) -> None:
        """Note how a line kept an event loop: times and seconds without a pause; seconds in which others were ready."""
        line = self._line_of(sample, "main")
        if line is not None:
            line.holds += times
            line.held += seconds
            line.crowded += ready

    def note_given(self, sample: PythonSample, share: float) -> None:
        """Note the share (0..1) of all trials in which the main thread gave the interpreter's lock away at a line."""
        line = self._line_of(sample, "main")
        if line is not None:
            line.given += share

    def note_collecting(self, file: str, line: int, seconds: float) -> None:
        """Add what the garbage collector took while a line of the program ran."""
        self._collecting[file, line] = self._collecting.get((file, line), 0.0) + seconds

    def _line_of(self, sample: PythonSample, role: Role) -> _Line | None:
        found = _line_in(places_of(sample, role))
        return self._lines.get(found[0]) if found is not None else None

    def sampled(self, seen: Mapping[Frame, SeenValues], collecting: float, children: int) -> SampledTime:
        """Return all lines, the most time first."""

        def largest_of(sums: Mapping[Place, _Line], least: float, most: int) -> tuple[LineSamples, ...]:
            lines = [
                self._samples(frame, number, line, seen.get(frame) or seen.get(self._parts.get(frame, frame)))
                for (frame, number), line in sums.items()
                if max(line.main_wall, line.other_wall) >= least * max(self.cpu, self.wall)
            ]
            lines.sort(key=lambda line: (-(line.main_wall + line.other_cpu), line.file or "", line.line or 0))
            return tuple(lines[:most])

        return SampledTime(
            self.wall,
            self.cpu,
            self._rest_wall,
            self._rest_cpu,
            collecting,
            children,
            lines=largest_of(self._lines, MIN_SHARE, MAX_LINES),
            outer=largest_of(self._outer, A_CALL, MAX_CALLS),
        )

    def _samples(self, frame: Frame, number: int, line: _Line, seen: SeenValues | None) -> LineSamples:
        known = {name: value for name, value in vars(line).items() if name != "depths"}
        return LineSamples(
            frame.function,
            frame.file,
            number or None,
            **{
                **known,
                "callees": largest(_by_function(line.callees)),
                "callers": largest(line.callers),
                "below": _good_part(line),
                "inside": _opened(line),
                "within": largest(line.within, MAX_AROUND),
                "longest": line.longest or None,
                "collecting": self._collecting.get((frame.file, number), 0.0),
                "threads": len(line.threads),
                "processes": len(line.processes),
                **(vars(seen) if seen is not None else {}),
            },
        )


def _add_sample(
    line: _Line, places: Sequence[Place], at: tuple[int, int], sample: PythonSample, role: Role, source: str
) -> None:
    """Count a sample to a line; `at`: where its function stands among the frames, and where the line does itself."""
    outer, inner = at
    if role == "main":
        line.main_wall += sample.wall
        line.main_cpu += sample.cpu
    else:
        (line.threads if role == "thread" else line.processes).add(source)
        line.other_wall += sample.wall
        line.other_cpu += sample.cpu
    if inner == len(places) - 1:
        line.own += sample.cpu
    else:
        called = next(
            (n for n in range(inner + 1, len(places)) if LOCAL not in places[n][0].function), inner + 1
        )
        line.callees[places[called]] += sample.wall
        _add_below(line, places[inner + 1 :], sample.wall)
    if outer > 0:
        line.callers[places[outer - 1]] += sample.wall


def _function_of(places: Sequence[Place], at: int) -> int:
    """Return where the function of a frame stands: a comprehension is a part of the one that it stands in."""
    while at > 0 and places[at][0].function.rpartition(".")[2] in COMPREHENSIONS:
        at -= 1
    return at


def _by_function(places: Mapping[Place, float]) -> dict[Place, float]:
    """Return the seconds of each function, at the line of it that has most of them."""
    first: dict[Frame, Place] = {}
    sums: dict[Place, float] = {}
    for place, seconds in sorted(places.items(), key=lambda item: -item[1]):
        at = first.setdefault(place[0], place)
        sums[at] = sums.get(at, 0.0) + seconds
    return sums


def _good_part(line: _Line) -> tuple[CodeLine, ...]:
    """Return the functions anywhere below a line with a good part of its time, by their first lines."""
    least = BELOW * (line.main_wall + line.other_wall)
    large = {place: seconds for place, seconds in line.below.items() if seconds >= least}
    return largest(large, MAX_BELOW)


def _add_below(line: _Line, places: Sequence[Place], seconds: float) -> None:
    """Count `places`, outermost first, as functions below the line; one that calls itself counts once."""
    first: dict[Frame, int] = {}
    for depth, (frame, _) in enumerate(places):
        first.setdefault(frame, depth)
    for frame, depth in first.items():
        line.below[frame, frame.line or 0] += seconds
        line.depths[frame] = min(depth, line.depths.get(frame, depth))


def _opened(line: _Line) -> tuple[CodeLine, ...]:
    """Return the library's public functions in which most of the line's time is spent, outermost first.

    The functions that the line calls itself are left out: the row names them.
    """
    whole = line.main_wall + line.other_wall
    called = {frame for frame, _ in line.callees}
    large = [
        (line.depths[frame], place, seconds)
        for place, seconds in line.below.items()
        for frame in (place[0],)
        if seconds >= INSIDE * whole and frame not in called and _is_public(frame)
    ]
    large.sort(key=lambda item: item[0])
    inner: list[tuple[Place, float]] = []
    for _, place, seconds in large:
        if inner and inner[-1][1] - seconds < WRAPS * whole:
            inner.pop()
        inner.append((place, seconds))
    return tuple(
        CodeLine(frame.function, frame.file, number, seconds)
        for (frame, number), seconds in inner[-MAX_INSIDE:]
    )


def _in_pool(frame: Frame) -> bool:
    path = (frame.file or "").replace("\\", "/")
    return any(part in path for part in _POOLS)


def _is_public(frame: Frame) -> bool:
    return LOCAL not in frame.function and not any(part.startswith("_") for part in frame.function.split("."))


def _line_in(places: list[Place]) -> tuple[Place, int, int] | None:
    """Return the innermost line of the user's own code, the index of its function in the frames, and its own index.

    A comprehension is a part of the function that it stands in, as from Python 3.12 on.
    """
    at = next((n for n in reversed(range(len(places))) if is_users_frame(places, n)), None)
    if at is None:
        return None
    outer = _function_of(places, at)
    return (places[outer][0], places[at][1]), outer, at


def places_of(sample: PythonSample, role: Role) -> list[Place]:
    """Return functions with lines, outermost first; for another process from where its own work begins."""
    places = sample.places
    begins = [
        n
        for n, (frame, _) in enumerate(places)
        if (frame.file or "").replace("\\", "/").endswith(_WORKERS) and frame.function.endswith("_bootstrap")
    ]
    return places[begins[-1] :] if role == "process" and begins else places
