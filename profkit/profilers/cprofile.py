"""Reads cProfile (pstats) files of any Python 3: own and cumulative time, calls, and the time of imports."""

from __future__ import annotations

import json
import math
import re
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from profkit.core.codec import from_plain_data, is_finite_number
from profkit.core.errors import UnreadableReport
from profkit.core.files.regular import read_bounded
from profkit.core.types import FIRST_CALLS, LAST_CALLS, Fact, Frame, Hotspot, Profile, Report
from profkit.profilers.files import reading

MAX_DEPTH = 16  # a pstats file nests 5 deep
_FLAG_REF = 0x80
_Missing = object()


class NotPlainData(ValueError):
    """The bytes are not marshal data, or hold more than numbers, text, tuples and dicts."""


class HoldsCode(NotPlainData):
    """The data holds a code object, whose length only the Python version that wrote it can tell."""


def read_marshal(data: bytes) -> object:
    """Read the one value that `data` holds: int, float, str, tuple and dict, all that a pstats file has.

    Keys of dicts are plain values or tuples of plain values. Raises NotPlainData for anything else, also where
    the data ends early or goes on after the value.
    """
    reader = _Reader(data)
    try:
        value = reader.value(MAX_DEPTH)
    except (struct.error, IndexError):
        raise NotPlainData("the data ends within a value") from None
    if reader.at != len(data):
        raise NotPlainData("there is more after the end of the value")
    return value


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self.at = 0
        self._refs: list[object] = []
        self._interned: list[object] = []

    def value(self, depth: int) -> object:
        value = self._next(depth)
        if value is _Missing:
            raise NotPlainData("a value is missing")
        return value

    def _next(self, depth: int) -> object:
        """Read the next value; _Missing for the mark that ends a dict."""
        if depth == 0:
            raise NotPlainData(f"nested more than {MAX_DEPTH} deep")
        code = self._data[self.at]
        self.at += 1
        kind = code & ~_FLAG_REF
        if kind in b"({)":  # may hold a reference to itself, so it gets its number before its parts are read
            return self._container(kind, depth, code & _FLAG_REF)
        value = self._scalar(kind)
        if code & _FLAG_REF and kind != ord("r"):
            self._refs.append(value)
        return value

    def _container(self, kind: int, depth: int, numbered: int) -> object:
        place = len(self._refs)
        if numbered:
            self._refs.append(_Missing)
        container: object
        if kind == ord("{"):
            container = self._dict(depth - 1)
        else:
            count = self._byte() if kind == ord(")") else self._length()
            items = [self.value(depth - 1) for _ in range(self._at_most(count))]
            container = tuple(items)
        if numbered:
            self._refs[place] = container
        return container

    def _dict(self, depth: int) -> dict[object, object]:
        table: dict[object, object] = {}
        while (key := self._next(depth)) is not _Missing:
            # Nothing deeper than this is hashed: tuples that refer to tuples could take for ever.
            for part in key if isinstance(key, tuple) else (key,):
                if isinstance(part, tuple | dict):
                    raise NotPlainData("a key is not a plain value")
            table[key] = self.value(depth)
        return table

    def _scalar(self, kind: int) -> object:
        match chr(kind):
            case "i":
                return self._unpack("<i", 4)
            case "g":
                return self._unpack("<d", 8)
            case "I":
                return self._unpack("<q", 8)
            case "r":
                return self._reference(self._refs)
            case "z" | "Z":
                return self._take(self._byte()).decode("latin-1")
            case "a" | "A":
                return self._take(self._length()).decode("latin-1")
            case "u" | "s":  # of Python 2 a text is what bytes are today
                return self._take(self._length()).decode("utf-8", "replace")
            case "t":
                self._interned.append(self._take(self._length()).decode("utf-8", "replace"))
                return self._interned[-1]
            case "R":  # of Python 2, whose references are to interned texts alone
                return self._reference(self._interned)
            case "f":  # written before Python 2.5, and on request for an old version of the format
                return self._written_number()
            case "c":
                raise HoldsCode("it holds code")
            case "0":
                return _Missing
            case "l":
                return self._long()
        raise NotPlainData(f"it holds a value of type {chr(kind)!r}")

    def _reference(self, values: Sequence[object]) -> object:
        index = self._unpack("<I", 4)
        assert isinstance(index, int)
        if index >= len(values) or values[index] is _Missing:
            raise NotPlainData("a reference leads nowhere")
        return values[index]

    def _written_number(self) -> float:
        try:
            return float(self._take(self._byte()))
        except ValueError:
            raise NotPlainData("a number is not valid") from None

    def _long(self) -> int:
        """Read an integer as digits of 15 bits, with the sign in their count.

        Numbers of a profile fit into 64 bits; longer ones raise NotPlainData.
        """
        digits = self._unpack("<i", 4)
        assert isinstance(digits, int)
        if abs(digits) > 8:
            raise NotPlainData("a number has too many digits")
        number = 0
        for place in range(abs(digits)):
            digit = self._unpack("<H", 2)
            assert isinstance(digit, int)
            number |= digit << (15 * place)
        return -number if digits < 0 else number

    def _unpack(self, form: str, size: int) -> object:
        (value,) = struct.unpack_from(form, self._data, self.at)
        self.at += size
        return value

    def _byte(self) -> int:
        self.at += 1
        return self._data[self.at - 1]

    def _length(self) -> int:
        length = self._unpack("<i", 4)
        assert isinstance(length, int)
        return length

    def _at_most(self, count: int) -> int:
        """Return `count` if so many values can still be there: every value takes at least one byte.

        Raises NotPlainData otherwise.
        """
        if not 0 <= count <= len(self._data) - self.at:
            raise NotPlainData("the data ends within a value")
        return count

    def _take(self, count: int) -> bytes:
        self.at += self._at_most(count)
        return self._data[self.at - count : self.at]


MAX_EDGES, MAX_EDGES_BY_CALLS = 60, 20  # calls that are kept, by time and by number
MAX_BYTES = 1 << 28  # a program with 100 000 functions leaves some 30 MB
BUILT_IN = "built-in"
STANDARD_LIBRARY = "standard library"

# A dict (with or without the mark of a later reference) whose first key is a tuple of three: (file, line, function).
_SIGN = re.compile(
    rb"(?:\{|\xfb)(?:[)\xa9]\x03|[(\xa8]\x03\0\0\0)[\x7a\xfa\x5a\xda\x61\xe1\x41\xc1\x75\xf5\x74\xf4\x73]"
)
_PACKAGE = re.compile(r".*[/\\](?:site|dist)-packages[/\\]([^/\\]+)")
_EXEC = "<built-in method builtins.exec>"  # it runs the program, and modules that are imported
_GENERATED = re.compile(r"<class '(\w+)\.")  # networkx names code that it made after the class that made it
_STANDARD = re.compile(r".*[/\\]lib(?:64)?[/\\]python3\.\d+t?[/\\]|.*[/\\]Lib[/\\](?!site-packages)|<frozen ")
_IMPORT = re.compile(
    r"<frozen importlib\._bootstrap(?:_external)?>|.*importlib[/\\]_bootstrap(?:_external)?\.py"
)


@dataclass(frozen=True)
class _Function:
    """One entry of the profile.

    `primitive` calls are those that the function did not make itself, directly or indirectly. Times are in
    seconds.
    """

    file: str
    line: int
    name: str
    primitive: int
    calls: int
    own: float
    cumulative: float
    callers: Mapping[tuple[str, int, str], tuple[int, float, float]]  # calls, own and cumulative seconds

    def hotspot(self) -> Hotspot:
        has_file = self.file not in ("~", "")
        return Hotspot(
            self.name,
            self.own,
            self.cumulative,
            self.calls,
            self.file if has_file else None,
            self.line if has_file and self.line > 0 else None,
            library_of(self.file),
            {"primitive_calls": self.primitive},
        )

    def frame(self) -> Frame:
        has_file = self.file not in ("~", "")
        return Frame(
            self.name,
            library_of(self.file),
            self.file if has_file else None,
            self.line if has_file and self.line > 0 else None,
        )


def looks_like_cprofile(head: bytes) -> bool:
    """Return whether the file begins as a pstats file does: a dict with keys (file, line, function)."""
    return _SIGN.match(head) is not None


def library_of(file: str) -> str | None:
    """Return the library that a file belongs to; None for the program's own code.

    `built-in`, `standard library`, or the name of the installed package.
    """
    if file == "~":
        return BUILT_IN
    if package := _PACKAGE.match(file) or _GENERATED.match(file):
        return package[1].removesuffix(".py")
    return STANDARD_LIBRARY if _STANDARD.match(file) else None


def read_cprofile(path: Path) -> Report:
    """Read the profiles of a pstats file: by own time, the program's own calls, and import time.

    Times are in seconds. The total of the first is the sum of all own times, which is the profiled time. The last
    one is there when anything was imported: its total is the cumulative time of the import system, its entries
    the imported modules (`Hotspot.total` with what they import in turn). A function's
    `counters["primitive_calls"]` leaves recursive calls out. Raises UnreadableReport for anything that is no such
    file.
    """
    functions = _read_functions(path)
    total = math.fsum(f.own for f in functions)
    by_own = sorted(functions, key=lambda f: (-f.own, -f.cumulative, f.name))
    doubt = _contradiction(functions, total)
    spots = tuple(f.hotspot() for f in by_own)
    profiles = [Profile("own time by function", "s", total, spots, "own-time", doubt=doubt)]
    if calls := program_calls(functions, total):
        profiles.append(calls)
    if imports := import_time(functions):
        profiles.append(imports)
    facts = {"functions": str(len(functions))}
    profiles = [replace(profile, doubt=doubt) for profile in profiles]
    warnings = (doubt,) if doubt is not None else ()
    return Report("cprofile", "pstats", facts=facts, profiles=tuple(profiles), warnings=warnings)


_MEASURING = 1.01


def _contradiction(functions: Sequence[_Function], total: float) -> Fact | None:
    """Return a fact about the first function whose times are impossible; None where all are possible.

    Such files are not refused: from Python 3.12 on one profiler sees all threads, and mixes up their callers.
    """
    # A cumulative time holds that of the functions that measure, which the sum of own times does not.
    whole = total * _MEASURING + 1e-3
    for function in functions:
        if function.own > function.cumulative * 1.001 + 1e-3:
            return Fact.of(
                "own-above-cumulative",
                name=function.name[:80],
                own=function.own,
                cumulative=function.cumulative,
            )
        longest = max((function.cumulative, *(cumulative for _, _, cumulative in function.callers.values())))
        if longest > whole:
            return Fact.of("longer-than-all", name=function.name[:80], seconds=longest, total=total)
    return None


def read_pass_notes(path: Path) -> tuple[Fact, ...]:
    """Read the remarks of the pass itself (threads it did not see, an early end); none without a file."""
    try:
        return from_plain_data(tuple[Fact, ...], json.loads(read_bounded(path))["notes"], "notes")
    except (OSError, ValueError, KeyError, TypeError, RecursionError, UnreadableReport):
        return ()


def is_partial(path: Path) -> bool:
    """Return whether the pass ended before the program did, so that calls are missing."""
    try:
        return json.loads(read_bounded(path)).get("partial") is True
    except (OSError, ValueError, AttributeError):
        return False


def with_growth(profile: Profile, path: Path) -> Profile:
    """Return the profile with how long a call took in the first and the last eighth of all, where that grew.

    They are counters of its functions, in seconds; the pass wrote them into the file of its notes.
    """
    try:
        rows = json.loads(read_bounded(path)).get("growth", [])
        grown = {
            (str(file), int(line), str(name)): {FIRST_CALLS: float(parts[0]), LAST_CALLS: float(parts[-1])}
            for file, line, name, parts in rows
        }
    except (OSError, ValueError, AttributeError, TypeError, IndexError):
        return profile
    spots = (
        (spot, grown.get((spot.file or "~", spot.line or 0, spot.function), {})) for spot in profile.hotspots
    )
    return replace(
        profile,
        hotspots=tuple(
            replace(spot, counters={**spot.counters, **more}) if more else spot for spot, more in spots
        ),
    )


def program_calls(functions: Sequence[_Function], total: float) -> Profile | None:
    """Return calls from and to the program's own functions, by caller and callee; None without any.

    A hotspot is the caller, its times are those of the callee when called from there. Packages and built-ins that
    call the program's own functions back are among the callers: `DataFrame.apply` and what it applies.
    """
    edges = []
    for callee in functions:
        inside = library_of(callee.file) is None
        for (file, line, name), (calls, own_time, cumulative) in callee.callers.items():
            if (not inside and library_of(file) is not None) or name == _EXEC:
                continue
            caller = _Function(file, line, name, 0, calls, own_time, cumulative, {}).hotspot()
            edges.append(replace(caller, counters={}, callee=callee.frame()))
    if not edges:
        return None
    by_time = sorted(edges, key=lambda edge: (-(edge.total or 0.0), -(edge.calls or 0)))[:MAX_EDGES]
    by_calls = sorted(edges, key=lambda edge: -(edge.calls or 0))[:MAX_EDGES_BY_CALLS]
    shown = [*by_time, *(edge for edge in by_calls if edge not in by_time)]
    return Profile("own functions and what they call", "s", total, tuple(shown), "program-calls")


def import_time(functions: list[_Function]) -> Profile | None:
    """Return the time that imports took, from the import system's entry point; None without imports.

    cProfile adds the time of a recursive function only for its outermost call, so the cumulative time of
    `_find_and_load` is that of all imports together, each counted once.
    """
    roots = [f for f in functions if f.name == "_find_and_load" and _IMPORT.match(f.file)]
    if not roots:
        return None
    # `<module>` with few callers would be the profiled program itself; that one is run by exec, not imported,
    # but pstats names both alike. Its cumulative time exceeds that of all imports, unless imports are all it does.
    total = math.fsum(f.cumulative for f in roots)
    modules = [f for f in functions if f.name == "<module>" and f.cumulative <= total]
    modules.sort(key=lambda f: (-f.cumulative, f.file))
    return Profile("import time by module", "s", total, tuple(f.hotspot() for f in modules), "imports")


def _read_functions(path: Path) -> list[_Function]:
    with reading(path):
        data = read_bounded(path, MAX_BYTES)
    if not data:
        raise UnreadableReport(f"{path} is empty")
    try:
        entries = read_marshal(data)
    except HoldsCode:
        raise UnreadableReport(
            f"{path} was written by Python's module `profile`, which stores code in it: profkit does not read that",
            "python -m cProfile -o run.prof SCRIPT   (cProfile records the same, and is faster)",
        ) from None
    except NotPlainData as error:
        raise UnreadableReport(f"{path} is not a cProfile file, or is cut short: {error}") from error
    if not isinstance(entries, dict):
        raise UnreadableReport(f"{path} is not a cProfile file: it has no table of functions")
    if not entries:
        raise UnreadableReport(f"{path} contains no function: the profiler was never switched on")
    if all(isinstance(value, tuple) and value[:2] == (-1, -1) for value in entries.values()):
        raise UnreadableReport(
            f"{path} is a profile of pyinstrument, which does not count calls",
            "profkit profile -- python SCRIPT",
        )
    functions = [_parse_function(key, value) for key, value in entries.items()]
    if None in functions:
        raise UnreadableReport(
            f"{path} is not a cProfile file: an entry of it is not a function with its times"
        )
    return [f for f in functions if f is not None]


def _parse_function(key: object, value: object) -> _Function | None:
    match key, value:
        case (str(file), int(line), str(name)), (
            int(primitive),
            int(calls),
            int() | float() as own,
            int() | float() as cumulative,
            *rest,
        ) if is_finite_number(own) and is_finite_number(cumulative) and 0 <= primitive <= calls:
            # A clock that was set back leaves a tiny negative time; it is no time at all.
            own, cumulative = max(0.0, own), max(0.0, cumulative)
            return _Function(file, line, name, primitive, calls, own, cumulative, _parse_callers(rest))
    return None


def _parse_callers(rest: Sequence[object]) -> dict[tuple[str, int, str], tuple[int, float, float]]:
    """Parse calls and times of each caller; entries of any other form are left out."""
    callers: dict[tuple[str, int, str], tuple[int, float, float]] = {}
    for key, cost in rest[0].items() if rest and isinstance(rest[0], dict) else ():
        match key, cost:
            case (str(file), int(line), str(name)), (
                int(calls),
                int(),
                int() | float() as own,
                int() | float() as cumulative,
            ) if is_finite_number(own) and is_finite_number(cumulative):
                callers[file, line, name] = (calls, max(0.0, own), max(0.0, cumulative))
    return callers
