"""The places of a Python program: wall time of its main thread, and of what that waits for, by line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from profkit.analysis.hot_spots.callbacks import move_late_samples
from profkit.analysis.hot_spots.rows import (
    MAJORITY,
    MAX_SPOTS,
    MIN_SHARE,
    SURE,
    TELLING,
    WAITS,
    Row,
    counted_function,
    group_rows,
    is_called_by,
    last_part,
    make_spot,
    path_of,
    profile_of,
)
from profkit.analysis.stacks.line_counts import count_of
from profkit.analysis.stacks.python_code import is_users_code
from profkit.analysis.summaries.host import share_of_others
from profkit.core.types import (
    Beneath,
    CodeLine,
    CodeSpot,
    Hotspot,
    LineSamples,
    Place,
    Profile,
    RunDocument,
    SampledTime,
    SpotKind,
)

LEADS_TO_OTHERS = ("lock", "child", "pipe", "input")
RUNS = 0.05  # of the wall time of a thread: one that runs less waits for something
ONE_PROCESSOR = 1.1
COMPUTES = 0.1  # of the wall time that it could have run: a line that does less waits
_RUNS = 1.9  # times a plain run: a pass that cost so much ran the program more than once
_STARTED = 0.3  # seconds that a pass takes beside the program: perf and the sampler begin and end
_CHILDREN = re.compile(r"/subprocess\.py$|/multiprocessing/popen_\w+\.py$")
_SOCKETS = re.compile(r"/(socket|ssl)\.py$")


def python_spots(document: RunDocument, sampled: SampledTime) -> tuple[list[CodeSpot], float]:
    """Return the places of a Python program and its wall seconds, of which they are shares; imports last."""
    sampled = move_late_samples(document, sampled)
    rows = [part for row in _rows(sampled, share_of_others(document)) for part in _with_callee(document, row)]
    wall, whole = _seconds_of(document, sampled), _whole_run(document, sampled)
    spots: list[CodeSpot] = []
    for group in group_rows(rows, whole, lambda line: _works_on_arrays(document, line)):
        share = sum(row.seconds for row in group) / whole
        if share >= MIN_SHARE and len(spots) < MAX_SPOTS:
            spots.append(make_spot(document, group, share, share * wall))
    on_lines = sum(line.main_wall for line in sampled.lines)
    imports = profile_of(document, "sampled-imports")  # lines beyond the first hundred are no imports
    left = max(0.0, sampled.wall - on_lines - sampled.rest_wall)
    share = min(left, imports.total) / whole if imports is not None else 0.0
    if share >= MIN_SHARE:
        spots += _import_spots(imports, sampled, share, wall)
    return spots, wall


def outer_spots(document: RunDocument) -> list[CodeSpot]:
    """Return lines that call functions of the program, with everything below: shares of the same time as the places.

    What runs in other threads counts while the main one waits.
    """
    sampled = next((sampled for sampled in document.sampled if not sampled.native and sampled.wall > 0), None)
    if sampled is None:
        return _sorting_spots(document)
    wall, whole = _seconds_of(document, sampled), _whole_run(document, sampled)
    waited = sum(
        seconds
        for line in sampled.lines
        for kind, seconds in _waits_of(line, share_of_others(document)).items()
        if kind in LEADS_TO_OTHERS
    )
    others = sum(line.other_cpu for line in sampled.lines)
    spots = []
    for line in sampled.outer:
        given = min(waited, others) * line.other_cpu / others if others > 0 else 0.0
        share = min(1.0, (line.main_wall + given) / whole)
        row = Row(line, {"calls": share * whole})
        spots.append(make_spot(document, [row], share, share * wall))
    return spots


def _sorting_spots(document: RunDocument) -> list[CodeSpot]:
    """Return the lines of a compiled program that sort, with everything below."""
    sampled = next((sampled for sampled in document.sampled if sampled.native and sampled.cpu > 0), None)
    split = document.time_split
    if sampled is None:
        return []
    wall = split.wall if split is not None and split.wall > 0 else sampled.wall
    working = 1 - (split.waiting or 0.0) / split.wall if split is not None and split.wall > 0 else 1.0
    shares = ((line, working * line.main_cpu / sampled.cpu) for line in sampled.outer)
    return [
        make_spot(document, [Row(line, {"calls": share * wall})], share, share * wall)
        for line, share in shares
    ]


def is_below(document: RunDocument, spot: CodeSpot, outer: Place) -> bool:
    """Return whether most of a place's time is spent under a line that calls functions of the program."""
    sampled = next((sampled for sampled in document.sampled if not sampled.native and sampled.wall > 0), None)
    if sampled is None:
        sampled = next((sampled for sampled in document.sampled if sampled.native), None)
    where = spot.where
    here = [
        line
        for line in (sampled.lines if sampled is not None else ())
        if (line.file, line.function) == (where.file, where.function)
        and (spot.kind == "python" or line.line == where.line)
    ]
    under = sum(
        each.value
        for line in here
        for each in line.within
        if (each.file, each.line) == (outer.file, outer.line) and outer.function == each.function
    )
    return under > MAJORITY * sum(line.main_wall for line in here)


def _rows(sampled: SampledTime, queued: float) -> list[Row]:
    """Return each line with its wall time by kind, once the waiting for other threads and processes is theirs.

    `queued`: the share (0..1) of the run in which other programs had the processors.
    """
    rows = [Row(line) for line in sampled.lines]
    waits = {id(row): _waits_of(row.line, queued) for row in rows}
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
    # Workers that are in no line of the program pickle, send and receive: of that the line that waits for them stays.
    handing = max(0.0, sampled.rest_cpu - sampled.rest_wall)
    given_work = min(to_give * (working / (working + handing) if working > 0 else 1.0), working)
    waiting = sum(seconds for _, _, seconds in other_waits)
    unworked = 1.0 - given_work / to_give if to_give > 0 else 1.0
    # A loop that sleeps until another thread is done waiting polls: that is where the main thread's time goes.
    polled = sum(kinds.get("sleep", 0.0) for key, kinds in waits.items() if "sleep" in leads[key])
    given_waits = min((to_give - polled) * unworked, waiting)
    left = unworked - (given_waits / (to_give - polled) if to_give > polled else 0.0)
    for row in rows:
        line, kinds = row.line, waits[id(row)]
        computing = max(0.0, line.main_wall - sum(kinds.values()))
        row.add(_computing(line), computing)
        for kind, seconds in kinds.items():
            rest = unworked if kind == "sleep" else left
            row.add(WAITS.get(kind, "waiting"), seconds * (rest if kind in leads[id(row)] else 1.0))
        if working > 0:
            row.add(_computing(line), work[id(row)] * given_work / working)
    for row, kind, seconds in other_waits:
        row.add(WAITS.get(kind, "waiting"), seconds * given_waits / waiting)
    return [row for row in rows if row.kinds]


def _one_at_a_time(sampled: SampledTime) -> bool:
    """Return whether other threads took a good part of the time, and all threads together at most one processor."""
    others = sum(line.other_cpu for line in sampled.lines if not line.processes)
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


def _waits_of(line: LineSamples, queued: float) -> dict[str, float]:
    """Return what the main thread waited for in a line, in seconds: `child` where a library of processes waits,
    `network` where a socket does.
    """
    most = max(0.0, line.main_wall - line.main_cpu)
    known = sum(line.waits.values())
    scale = min(1.0, most / known) if known > 0 else 0.0
    kinds: dict[str, float] = {}
    for seen, seconds in line.waits.items():
        kind = seen
        if seen in ("input", "pipe", "file") and any(
            _CHILDREN.search(path_of(callee)) for callee in line.callees[:1]
        ):
            kind = "child"
        elif seen == "input" and _ends_in(line, _SOCKETS):
            kind = "network"  # a socket with a time limit polls before it receives
        kinds[kind] = kinds.get(kind, 0.0) + seconds * scale
    # Waits that are shorter than the time between two samples are seen in none of them.
    if _waits_for_inputs(line) and kinds.get("input", 0.0) < most:
        kinds["input"] = max(0.0, most - sum(value for kind, value in kinds.items() if kind != "input"))
    # A busy machine lets a line wait that computes: without a system call that waits, it is no wait unless it computed
    # much less than the processors' share that was left for the run.
    if not kinds and line.main_cpu < COMPUTES * (1 - queued) * line.main_wall and most > 0:
        kinds[
            "child" if any(_CHILDREN.search(path_of(callee)) for callee in line.callees[:1]) else "waiting"
        ] = most
    return kinds


def _ends_in(line: LineSamples, files: re.Pattern[str]) -> bool:
    """Return whether most of a line's time ends in a function of these files."""
    ends = (callee for callee in line.below if files.search(path_of(callee)))
    return any(callee.value >= MAJORITY * line.main_wall for callee in ends)


def _waits_for_inputs(line: LineSamples) -> bool:
    """Return whether most of a line's time ends in a call of an event loop that waits for any of several inputs."""
    selects = (callee for callee in line.below if callee.function.rpartition(".")[2] in ("select", "poll"))
    return any(
        path_of(callee).endswith("/selectors.py") and callee.value >= MAJORITY * line.main_wall
        for callee in selects
    )


def _computing(line: LineSamples) -> SpotKind:
    return "python" if line.own >= MAJORITY * (line.main_cpu + line.other_cpu) else "library"


def _works_on_arrays(document: RunDocument, line: LineSamples) -> bool:
    """Return whether arrays of NumPy were seen at a line: its operations are not those of other lines."""
    counted = count_of(document, line.file, line.line)
    forms = (form for several in (counted.forms.values() if counted is not None else ()) for form in several)
    return any(form.shape is not None for form in forms)


def _with_callee(document: RunDocument, row: Row) -> Iterator[Row]:
    """Yield the line, and apart from it the short function that it calls, by what cProfile finds of the time in each.

    A sampler inside of the process is let in between two calls, never in the middle of an operator: what a short
    function did is seen at the line that called it.
    """
    line, profile = row.line, profile_of(document, "program-calls")
    own = counted_function(document, line)
    if line.code is None or profile is None or own is None or row.kind != "python":
        yield row
        return
    edges = [edge for edge in profile.hotspots if edge.callee is not None and is_called_by(edge, line)]
    named = {call.name.rpartition(".")[2] for call in line.code.find("call")}
    named |= {"__enter__", "__exit__"} if line.code.text.startswith("with ") else set()
    built_in = sum(
        edge.own
        for edge in edges
        if edge.callee is not None and not edge.callee.file and last_part(edge.callee.function) in named
    )
    called = {inner.function: _time_in(edges, line.file, inner.function) for inner in line.code.into}
    apart = [
        inner
        for inner in line.code.into
        if not _is_sampled(document, line.file, inner.function, called[inner.function] / profile.total)
    ]
    whole = max(sum(called[inner.function] for inner in apart) + own.own + built_in, 1e-9)
    left = 1.0
    for inner in apart:
        taken = called[inner.function]
        part = taken / whole
        if part < MIN_SHARE or taken < own.own * MIN_SHARE:
            continue
        left -= part
        every = (other for sampled in document.sampled for other in sampled.lines)
        looked_at = (other for other in every if other.function.rpartition(".")[2] == inner.function)
        seen = max(looked_at, key=lambda other: other.looks, default=line)
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
        yield Row(callee, {kind: part * seconds for kind, seconds in row.kinds.items()})
    yield Row(line, {kind: left * seconds for kind, seconds in row.kinds.items()})


def _time_in(edges: Sequence[Hotspot], file: str | None, function: str) -> float:
    """Return the longest time, with callees, that cProfile counted for calls of a function of the same file."""
    called = (
        edge
        for edge in edges
        if edge.callee is not None and (edge.callee.file, edge.callee.function) == (file, function)
    )
    return max((edge.total or edge.own for edge in called), default=0.0)


def _is_sampled(document: RunDocument, file: str | None, function: str, share: float) -> bool:
    """Return whether the lines of a function have samples for at least half of its share (0..1) of the time.

    Then they are not seen at the line that calls it.
    """
    return any(
        sum(
            line.main_wall
            for line in sampled.lines
            if (line.file, last_part(line.function)) == (file, function)
        )
        >= MAJORITY * share * sampled.wall
        > 0
        for sampled in document.sampled[:1]
    )


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

    Its own modules are among them with what they take themselves.
    """
    found: dict[tuple[str | None, int | None], tuple[CodeLine, str, float]] = {}
    for module in imports.hotspots:
        share = min(1.0, module.own / module.total) if is_users_code(module.file) and module.total else 1.0
        for line in module.callers:
            if is_users_code(line.file) and (seconds := share * line.value) > 0:
                known = found.get((line.file, line.line))
                name, most = (known[1], known[2]) if known is not None else (module.function, 0.0)
                # One line may import several: the one that takes most is named.
                name = module.function if seconds > most else name
                found[line.file, line.line] = (line, name, most + seconds)
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
    run = next(
        (pass_ for pass_ in document.passes if pass_.name == "stacks" and pass_.state == "finished"), None
    )
    marked = bool(document.timings) and document.timings[0].kind != "process"
    if document.workload.python is not None or marked or run is None or (run.cost or _RUNS) >= _RUNS:
        return sampled.wall
    beside = run.seconds - sampled.wall
    return run.seconds if beside >= max(_STARTED, TELLING * sampled.wall) else sampled.wall
