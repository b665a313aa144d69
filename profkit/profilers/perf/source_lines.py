"""Attributes samples to lines of a compiled program: time in a library belongs to the line that calls it.

Addresses come from the text of `perf script` as symbol and offset. Where their lines cannot be found, a place
is its function.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias, TypeVar

from profkit.analysis.function_names import called_in_library, plain_symbol
from profkit.analysis.stacks.merge import KERNEL
from profkit.core.files.regular import open_regular
from profkit.core.types import CodeLine, LineSamples, Place, SampledTime
from profkit.profilers.files import reading
from profkit.profilers.perf.script import ScriptBlocks, parse_frame, parse_header
from profkit.profilers.perf.sorts import sorting_frame, sorts_in_c
from profkit.profilers.perf.switches import Blamed, SampledWaits, SwitchTimes, is_switch, wait_kind
from profkit.profilers.perf.tasks import Tasks

MAX_ADDRESSES = 1000  # of most time
MAX_FRAMES = 48  # of the program in one stack: templates of C++ call each other through a dozen
MAX_BELOW = 40  # functions of libraries below a line
MIN_SHARE = 0.002  # of the samples
MIN_SORTING = 0.05  # of the samples: a sort with less is not worth a look
MAX_OF_SORTS = 120  # functions of libraries below a sort: Rust has thirty for each String that is made
_Name = TypeVar("_Name")
_WITH_OFFSET = re.compile(rb"^\s*[0-9a-f]+ (.+?)\+(0x[0-9a-f]+) \((.+)\)$")
_HASH = re.compile(r"::h[0-9a-f]{16}$")  # what Rust's compiler appends


@dataclass
class _Place:
    """Weight of one line of the program, and of what was called there."""

    weight: float = 0.0
    own: float = 0.0
    callees: dict[tuple[str, str | None], float] = field(default_factory=dict)
    below: dict[str, float] = field(default_factory=dict)
    called: dict[str, float] = field(default_factory=dict)
    threads: set[bytes] = field(default_factory=set)
    processes: set[bytes] = field(default_factory=set)
    addresses: dict[Address, float] = field(default_factory=dict)
    within: dict[Place, float] = field(default_factory=dict)  # the lines whose sort called it


Address: TypeAlias = "tuple[str, int]"  # symbol and offset


@dataclass(frozen=True)
class CodeAt:
    """What the debug information says of an address: the program's line, and what a library inlined into it."""

    place: Place | None  # None where all of it is a library's
    inlined: tuple[str, ...] = ()  # functions of libraries, innermost first


Resolve: TypeAlias = "Callable[[Path, Sequence[Address]], Mapping[Address, CodeAt]]"
_Leaf: TypeAlias = "tuple[str, str | None]"  # function and library


@dataclass(frozen=True)
class _Chain:
    """Frames of the program in one stack, innermost first, and what they call outside of it."""

    leaf: _Leaf | None
    called: tuple[str, ...]  # functions outside of the program's file, innermost first
    keys: tuple[Address, ...]
    thread: bytes
    process: bytes
    sorting: int | None = None  # so many of its frames are below a sort of the C library


def native_lines(
    path: Path,
    program: Path,
    resolve: Resolve,
    switches: SwitchTimes | None = None,
    tasks: Tasks | None = None,
) -> SampledTime | None:
    """Return the lines of the program in which the samples of a `perf script` text are; None without any.

    `resolve` finds the lines of addresses of the program. Weights become seconds where perf sampled by a clock,
    and stay samples' periods else. With `switches` of the same recording, also where it waits, and with `tasks`
    the programs that it started. Raises UnreadableReport.
    """
    chains: dict[_Chain, float] = {}
    waits: SampledWaits[_Chain] = SampledWaits(switches)
    # Each call waits several times: those are counted between which something else of the thread was seen.
    synced: dict[bytes, _Chain] = {}
    calls: dict[_Chain, int] = {}
    total = rest = 0.0
    started_programs: dict[str, float] = {}
    for process, thread, when, event, period, frames in native_samples(path):
        chain = _chain_of(frames, program.name.encode(), thread, process)
        if is_switch(event):
            kind = waits_for_what(frames)
            waits.add(thread, when, period, kind, chain)
            if kind == "sync" and synced.get(thread) != chain:
                calls[chain] = calls.get(chain, 0) + 1
                synced[thread] = chain
            continue
        if thread in synced and waits_for_what(frames) != "sync":
            del synced[thread]
        total += period
        if chain.keys:
            chains[chain] = chains.get(chain, 0.0) + period
        elif (started := _program_of(frames)) is not None:
            started_programs[started] = started_programs.get(started, 0.0) + period
        else:
            rest += period
    if tasks is not None and tasks.programs:  # records miss no process, and a clock's samples the short ones
        started_programs = {program.name: program.seconds for program in tasks.programs}
        computing = sum(chains.values())
        total = max(computing + sum(started_programs.values()), tasks.seconds)
        rest = total - computing - sum(started_programs.values())
    if not chains and not started_programs:
        return None
    blamed = [
        replace(wait, times=calls.get(wait.chain, 1), origin=(b"", 0)) if wait.kind == "sync" else wait
        for wait in waits.blamed()
    ]
    weights: dict[Address, float] = {}
    for chain, weight in chains.items():
        for address in chain.keys:
            weights[address] = weights.get(address, 0.0) + weight
    for wait in blamed:
        for address in (*wait.chain.keys, *(wait.awaited.keys if wait.awaited is not None else ())):
            weights[address] = weights.get(address, 0.0) + wait.seconds
    codes = resolve(program, sorted(weights, key=lambda key: -weights[key])[:MAX_ADDRESSES])
    rows = _computing_rows(chains, codes)
    sorting = _sorting_lines(chains, codes)
    rows |= {Place(function=name): _Place(weight, weight) for name, weight in started_programs.items()}
    samples = [_line_samples(where, row) for where, row in rows.items() if row.weight >= MIN_SHARE * total]
    samples.sort(key=lambda line: -line.main_cpu)
    first = max(rows.values(), key=lambda row: row.weight).addresses
    symbol, offset = max(first, key=lambda key: first[key], default=("", 0))
    hottest = f"{symbol}+{offset:#x}" if symbol else None
    return SampledTime(
        total,
        total,
        rest,
        rest,
        native=True,
        hottest=hottest,
        lines=tuple(samples),
        outer=tuple(line for line in sorting if line.main_cpu >= MIN_SORTING * total),
        waiting=_waiting_lines(waits, blamed, codes),
        span=waits.span,
        programs=tasks.programs if tasks is not None else (),
    )


def _computing_rows(chains: Mapping[_Chain, float], codes: Mapping[Address, CodeAt]) -> dict[Place, _Place]:
    """Return the lines of the program that were computing, with what they called."""
    rows: dict[Place, _Place] = {}
    for chain, weight in chains.items():
        at = _level_of(chain.keys, codes)
        symbol, offset = chain.keys[at]
        code = codes.get(chain.keys[at])
        row = rows.setdefault((code.place if code is not None else None) or Place(function=symbol), _Place())
        row.weight += weight
        row.threads.add(chain.thread)
        row.processes.add(chain.process)
        leaf = chain.leaf or ((chain.keys[0][0], None) if at else None)
        if leaf is None:
            row.own += weight
        else:
            row.callees[leaf] = row.callees.get(leaf, 0.0) + weight
        _add_below(row, _below(chain, at, codes), weight)
        sort = _sort_of(chain, codes)
        if sort is not None:
            row.within[sort[0]] = row.within.get(sort[0], 0.0) + weight
        # perf unwinds a caller to the byte before the instruction to which it comes back.
        reached = (symbol, offset + 1) if leaf is not None else (symbol, offset)
        row.addresses[reached] = row.addresses.get(reached, 0.0) + weight
    return rows


def _sort_of(chain: _Chain, codes: Mapping[Address, CodeAt]) -> tuple[Place, int | None] | None:
    """Return the line that calls a sort, and the outermost frame of the program that the sort calls; None without."""
    known = ((key, codes.get(key)) for key in chain.keys)
    frames = [
        (key[0], code.place if code is not None else None, code.inlined if code is not None else ())
        for key, code in known
    ]
    found = next(sorting_frame(frames, chain.sorting), None)
    place = frames[found[0]][1] if found is not None else None
    return (place, found[1]) if found is not None and place is not None else None


def _sorting_lines(chains: Mapping[_Chain, float], codes: Mapping[Address, CodeAt]) -> list[LineSamples]:
    """Return the lines that sort, with all below: what the sort calls of the program, and of libraries for that."""
    rows: dict[Place, _Place] = {}
    for chain, weight in chains.items():
        sort = _sort_of(chain, codes)
        if sort is None:
            continue
        place, inside = sort
        row = rows.setdefault(place, _Place())
        row.weight += weight
        if inside is None:
            continue
        # What a sort was compiled into has its name; the program's own function below it says more.
        own = next((n for n in range(inside, -1, -1) if not _LIBRARY.match(chain.keys[n][0])), None)
        code = codes.get(chain.keys[inside])
        called = code.place.function if code is not None and code.place is not None else None
        name = chain.keys[own][0] if own is not None else called or chain.keys[inside][0]
        row.callees[_HASH.sub("", name), None] = row.callees.get((_HASH.sub("", name), None), 0.0) + weight
        row.own += weight
        for below in {plain_symbol(symbol) for symbol in _below(chain, inside, codes)} - {""}:
            row.below[below] = row.below.get(below, 0.0) + weight
    lines = [
        replace(
            _line_samples(place, row),
            below=tuple(CodeLine(name, None, None, own) for name, own in _most(row.below, MAX_OF_SORTS)),
        )
        for place, row in rows.items()
    ]
    return sorted(lines, key=lambda line: -line.main_cpu)


def waits_for_what(frames: Sequence[bytes]) -> str:
    """Return what a thread waits for that gave up the processor with this stack, innermost first."""
    return _wait_of(tuple(frames))


@lru_cache(maxsize=4096)  # a thread gives up the processor thousands of times, at a few places
def _wait_of(frames: tuple[bytes, ...]) -> str:
    parsed = [frame for line in frames if (frame := parse_frame(line)) is not None]
    kernel = [frame.function for frame in parsed if frame.library == KERNEL]
    return wait_kind(kernel, [plain_symbol(frame.function) for frame in parsed if frame.library != KERNEL])


def _waiting_lines(
    waits: SampledWaits[_Chain], blamed: Sequence[Blamed[_Chain]], codes: Mapping[Address, CodeAt]
) -> tuple[LineSamples, ...]:
    """Return the lines at which the program waits, each with one kind of wait, the longest first."""
    rows: dict[tuple[Place, str], _Place] = {}
    counts: dict[tuple[Place, str], dict[tuple[_Chain, tuple[bytes, int]], tuple[float, float]]] = {}
    awaited: dict[tuple[Place, str], dict[Place, float]] = {}
    for wait in blamed:
        chain = wait.chain
        key = (_place_of(chain, codes), wait.kind)
        row = rows.setdefault(key, _Place())
        row.weight += wait.seconds
        row.threads.add(chain.thread)
        row.processes.add(chain.process)
        counts.setdefault(key, {})[chain, wait.origin] = wait.times, wait.whole
        names = _below(chain, _level_of(chain.keys, codes), codes)
        leaf = (_waits_in(names), None)
        row.callees[leaf] = row.callees.get(leaf, 0.0) + wait.seconds
        _add_below(row, names, wait.seconds)
        if wait.awaited is not None and wait.awaited.keys:
            places, by = awaited.setdefault(key, {}), _place_of(wait.awaited, codes)
            places[by] = places.get(by, 0.0) + wait.seconds
    times = {key: sum(number for number, _ in by_origin.values()) for key, by_origin in counts.items()}
    lines = [
        replace(
            _line_samples(where, row),
            main_wall=row.weight,
            main_cpu=0.0,
            waits={kind: row.weight},
            other_waits={"": max(map(waits.waits_elsewhere, row.threads))},
            waited=max(1, round(times[where, kind])),
            each_wait=sum(whole for _, whole in counts[where, kind].values()) / max(1.0, times[where, kind]),
            awaited=tuple(
                CodeLine(by.function or "", by.file, by.line, seconds)
                for by, seconds in _most(awaited.get((where, kind), {}), 1)
            ),
        )
        for (where, kind), row in rows.items()
    ]
    return tuple(sorted(lines, key=lambda line: -line.main_wall))


def _place_of(chain: _Chain, codes: Mapping[Address, CodeAt]) -> Place:
    key = chain.keys[_level_of(chain.keys, codes)]
    code = codes.get(key)
    return (code.place if code is not None else None) or Place(function=key[0])


def _waits_in(names: Sequence[str]) -> str:
    """Return the function that a line calls and that waits: the outermost public function below the line."""
    for name in reversed(names):
        if public := called_in_library(plain_symbol(name).lstrip("_").removeprefix("IO_")):
            return public
    return ""


# Functions of the libraries of C++ and Rust, whose code is compiled into the program.
_LIBRARY = re.compile(r"<?&?(std|__gnu_cxx|core|alloc|hashbrown)::")


def _level_of(keys: Sequence[Address], codes: Mapping[Address, CodeAt]) -> int:
    """Return the index of the innermost frame that has a line of the program.

    Where no line is known, of the innermost frame that is not named as a library's.
    """
    for n, key in enumerate(keys):
        code = codes.get(key)
        if code is not None and code.place is not None:
            return n
    return next((n for n, (symbol, _) in enumerate(keys) if not _LIBRARY.match(symbol)), 0)


def _below(chain: _Chain, at: int, codes: Mapping[Address, CodeAt]) -> list[str]:
    """Return the functions of libraries below a frame of the program, innermost first."""
    names = list(chain.called)
    for n, key in enumerate(chain.keys[: at + 1]):
        code = codes.get(key)
        if n < at:
            names += code.inlined if code is not None and code.inlined else (key[0],)
        elif code is not None and code.place is not None:
            names += code.inlined
    return names


def _add_below(row: _Place, names: Sequence[str], weight: float) -> None:
    """Add a sample's functions to a row: each once, and what the program's own line calls."""
    for name in {plain_symbol(symbol) for symbol in names} - {""}:
        row.below[name] = row.below.get(name, 0.0) + weight
    for name in reversed(names):
        if public := called_in_library(name):
            row.called[public] = row.called.get(public, 0.0) + weight
        if public or "::" not in name:
            return  # a function of C that is private calls no public one


def _program_of(frames: list[bytes]) -> str | None:
    """Return the program in whose process a sample is, by its first frame that is in no library."""
    for line in frames:
        file = line.rpartition(b" (")[2].removesuffix(b")").removesuffix(b" (deleted)")
        if file.startswith(b"/") and b".so" not in file:
            return file.rpartition(b"/")[2].decode("utf-8", "replace")
    return None


def _chain_of(frames: list[bytes], program: bytes, thread: bytes, process: bytes) -> _Chain:
    leaf: _Leaf | None = None
    called: list[str] = []
    keys: list[Address] = []
    sorting: int | None = None
    for line in frames:
        match = _WITH_OFFSET.match(line)
        if match is not None and match[3].removesuffix(b" (deleted)").rpartition(b"/")[2] == program:
            keys.append((match[1].decode("utf-8", "replace"), int(match[2], 16)))
            if len(keys) == MAX_FRAMES:
                break
        elif keys and b"sort" in line:
            parsed = parse_frame(line)
            if sorting is None and parsed is not None and sorts_in_c(parsed.function):
                sorting = len(keys)
        elif not keys and (parsed := parse_frame(line)) is not None:
            if sorts_in_c(parsed.function):
                sorting = 0
            if parsed.library != KERNEL:
                called.append(parsed.function)
            # the kernel's functions say little to an author
            if leaf is None or leaf[1] == KERNEL:
                leaf = (parsed.function, parsed.library)
    return _Chain(leaf, tuple(called[-MAX_FRAMES:]), tuple(keys), thread, process, sorting)


def _line_samples(where: Place, row: _Place) -> LineSamples:
    return LineSamples(
        _HASH.sub("", where.function or ""),
        where.file,
        where.line,
        row.weight,
        row.weight,
        own=row.own,
        callees=tuple(
            CodeLine(name, library, None, weight) for (name, library), weight in _most(row.callees, 3)
        ),
        below=tuple(CodeLine(name, None, None, weight) for name, weight in _most(row.below, MAX_BELOW)),
        inside=tuple(CodeLine(name, None, None, weight) for name, weight in _most(row.called, 1)),
        threads=max(0, len(row.threads) - 1),
        processes=max(0, len(row.processes) - 1),
        within=tuple(CodeLine(at.function or "", at.file, at.line, own) for at, own in _most(row.within, 3)),
    )


def _most(weights: Mapping[_Name, float], count: int) -> list[tuple[_Name, float]]:
    return sorted(weights.items(), key=lambda item: -item[1])[:count]


def native_samples(path: Path) -> Iterator[tuple[bytes, bytes, bytes, bytes, float, list[bytes]]]:
    """Yield process, thread, time, event, period and frames (innermost first) of each sample."""
    with reading(path), open_regular(path) as file:
        for block in ScriptBlocks().blocks(file):
            header, _, body = block.partition(b"\n")
            match = parse_header(header)
            if match is None or not body:
                continue
            clock = b"clock" in (match["event"] or b"")
            period = float(match["period"] or 1) * (1e-9 if clock else 1.0)
            thread = match["tid"] or match["pid"]
            yield match["pid"], thread, match["time"], match["event"] or b"", period, body.split(b"\n")
