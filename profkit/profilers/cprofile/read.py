"""Reads a cProfile (pstats) file of any Python 3: own and cumulative time, calls, and import time apart."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path

from profkit.core.errors import UnreadableReport
from profkit.core.types import Hotspot, Profile, Report
from profkit.profilers.cprofile.marshal_reader import NotPlainData, loads

MOST_BYTES = 1 << 28  # a program with 100 000 functions leaves some 30 MB
BUILT_IN = "built-in"
STANDARD_LIBRARY = "standard library"

# A dict (with or without the mark of a later reference) whose first key is a tuple of three: (file, line, function).
_SIGN = re.compile(
    rb"(?:\{|\xfb)(?:[)\xa9]\x03|[(\xa8]\x03\0\0\0)[\x7a\xfa\x5a\xda\x61\xe1\x41\xc1\x75\xf5\x74\xf4]"
)
_PACKAGE = re.compile(r".*[/\\](?:site|dist)-packages[/\\]([^/\\]+)")
_STANDARD = re.compile(r".*[/\\]lib(?:64)?[/\\]python3\.\d+t?[/\\]|.*[/\\]Lib[/\\](?!site-packages)|<frozen ")
_IMPORT = re.compile(
    r"<frozen importlib\._bootstrap(?:_external)?>|.*importlib[/\\]_bootstrap(?:_external)?\.py"
)


@dataclass(frozen=True)
class _Function:
    """One entry. `primitive` calls are those that were not made by the function itself, directly or not."""

    file: str
    line: int
    name: str
    primitive: int
    calls: int
    own: float
    cumulative: float

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


def looks_like(head: bytes) -> bool:
    """True where the file begins as a pstats file does: a dict with keys (file, line, function)."""
    return _SIGN.match(head) is not None


def library_of(file: str) -> str | None:
    """`built-in`, `standard library`, the installed package's name, or None: the program's own code."""
    if file == "~":
        return BUILT_IN
    if package := _PACKAGE.match(file):
        return package[1].removesuffix(".py")
    return STANDARD_LIBRARY if _STANDARD.match(file) else None


def read_cprofile(path: Path) -> Report:
    """Four profiles, in this order: by own time, by cumulative time, by calls, and import time.

    Times are in seconds. The total of the first two is the sum of all own times, which is the profiled time.
    In the second, functions stand in the order of `Hotspot.total`. The third counts calls, recursive ones
    too. The last one is there when anything was imported: its total is the cumulative time of the import
    system, its entries the imported modules (`Hotspot.total` with what they import in turn). A function's
    `counters["primitive_calls"]` leaves recursive calls out. Raises UnreadableReport for anything that is no
    such file.
    """
    functions = _functions(path)
    total = math.fsum(f.own for f in functions)
    by_own = sorted(functions, key=lambda f: (-f.own, -f.cumulative, f.name))
    by_cumulative = sorted(functions, key=lambda f: (-f.cumulative, -f.own, f.name))
    by_calls = sorted(functions, key=lambda f: (-f.calls, -f.own, f.name))
    profiles = [
        Profile("own time by function", "s", total, tuple(f.hotspot() for f in by_own)),
        Profile("cumulative time by function", "s", total, tuple(f.hotspot() for f in by_cumulative)),
        Profile(
            "calls by function",
            "calls",
            float(sum(f.calls for f in functions)),
            tuple(
                Hotspot(f.name, float(f.calls), None, f.calls, h.file, h.line, h.library)
                for f in by_calls
                for h in (f.hotspot(),)
            ),
        ),
    ]
    if imports := import_time(functions):
        profiles.append(imports)
    facts = {"functions": str(len(functions))}
    return Report("cprofile", "pstats", facts=facts, profiles=tuple(profiles))


def import_time(functions: list[_Function]) -> Profile | None:
    """What importing cost, from the import system's entry point; None where nothing was imported.

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
    return Profile("import time by module", "s", total, tuple(f.hotspot() for f in modules))


def _functions(path: Path) -> list[_Function]:
    try:
        if path.stat().st_size > MOST_BYTES:
            raise UnreadableReport(f"{path} is larger than any cProfile file ({MOST_BYTES >> 20} MiB)")
        data = path.read_bytes()
    except OSError as error:
        raise UnreadableReport(f"{path} cannot be read: {error.strerror}") from error
    if not data:
        raise UnreadableReport(f"{path} is empty")
    try:
        entries = loads(data)
    except NotPlainData as error:
        raise UnreadableReport(f"{path} is no cProfile file, or is cut short: {error}") from error
    if not isinstance(entries, dict):
        raise UnreadableReport(f"{path} is no cProfile file: it holds no table of functions")
    if not entries:
        raise UnreadableReport(f"{path} holds no function: the profiler was never on")
    functions = [_function(key, value) for key, value in entries.items()]
    if None in functions:
        raise UnreadableReport(f"{path} is no cProfile file: an entry is no function with its times")
    return [f for f in functions if f is not None]


def _function(key: object, value: object) -> _Function | None:
    match key, value:
        case (str(file), int(line), str(name)), (
            int(primitive),
            int(calls),
            int() | float() as own,
            int() | float() as cumulative,
            *_,
        ) if math.isfinite(own) and math.isfinite(cumulative):
            # A clock that was set back leaves a tiny negative time; it is no time at all.
            return _Function(file, line, name, primitive, calls, max(0.0, own), max(0.0, cumulative))
    return None
