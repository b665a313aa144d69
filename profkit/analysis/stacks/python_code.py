"""Sampled Python stacks added up: functions with their hottest lines and callers, the user's own lines, imports.

What runs while a module is imported counts to that import and to no function: imports happen once, work goes on.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from profkit.analysis.stacks.merge import PYTHON
from profkit.core.types import CodeLine, Frame, Hotspot, Profile, Variable

MAX_FUNCTIONS, MAX_IMPORTS = 300, 60
MAX_OUTSIDE = 10  # lines outside of regions
MIN_SHARE = 0.0005  # of the whole: a function with less is left out
TOP = 3  # lines and callers of each function
MODULE = "<module>"
IMPORT_SYSTEM = "[import system]"
_INSTALLED = ("site-packages", "dist-packages", "/lib/python", "importlib")
_COMMANDS = ("/bin", "/Scripts")
_TEXT = "<string>"  # `python -c`, and the methods that dataclasses and namedtuples make
_CELL = re.compile(r"cell \[\d+\]")  # of a notebook
_GENERATED = re.compile(r"__create_fn__|(^|\.)(<lambda>|__\w+__)$")
# in the name of a function that another one made: of a decorator, whose name says nothing
LOCAL = "<locals>"
_WORKERS = "/multiprocessing/"
_PACKAGE_ROOT = re.compile(
    r".*[/\\](?:(?:site|dist)-packages|lib(?:64)?[/\\]python3\.\d+t?(?:[/\\]lib-dynload)?)[/\\]"
)


def is_cell(file: str | None) -> bool:
    """Return whether the code is that of a notebook's cell."""
    return file is not None and _CELL.fullmatch(file) is not None


def is_users_code(file: str | None, function: str = "") -> bool:
    """Return whether a Python file, or a function of it, is neither the standard library's nor an installed
    package's.
    """
    if file == _TEXT:
        return not _GENERATED.search(function)
    if is_cell(file):
        return True
    if not file or file.startswith(("<", "~")) or any(part in file for part in _INSTALLED):
        return False
    if file.endswith((".py", ".ipynb")):
        return True
    # A script needs no suffix. What pip writes to start a package's command has no function of its own.
    folder, _, name = file.replace("\\", "/").rpartition("/")
    is_script = bool(folder and name) and not re.search(r"[.\[\]<>]", name)
    return is_script and not (folder.endswith(_COMMANDS) and function in ("", MODULE))


def module_name(file: str) -> str:
    """Return the module that a source file is: `torch.nn` of `.../site-packages/torch/nn/__init__.py`."""
    root = _PACKAGE_ROOT.match(file)
    inner = file[root.end() :] if root is not None else file
    parts = re.split(r"[/\\]", inner.removesuffix(".py"))
    if parts[-1] == "__init__" and len(parts) > 1:
        parts.pop()
    return ".".join(parts) if root is not None else parts[-1]


@dataclass(frozen=True)
class PythonSample:
    """Samples of one stack of one thread: seconds of processor time and of wall time.

    `frames` stand outermost first, each function with its first line; `lines` are where each of them is. A frame of
    None is the import system: what it imports comes next.
    """

    frames: tuple[Frame | None, ...]
    lines: tuple[int, ...]
    cpu: float
    wall: float
    first: bool  # of the main thread of the first process

    @property
    def places(self) -> list[tuple[Frame, int]]:
        """Return functions with lines, outermost first."""
        return [
            (frame, line) for frame, line in zip(self.frames, self.lines, strict=True) if frame is not None
        ]


@dataclass(frozen=True)
class SeenValues:
    """What was seen of a function's variables: see `LineSamples`."""

    looks: int
    arguments: int | None
    variables: Mapping[str, Variable]


@dataclass
class _Function:
    own: float = 0.0
    total: float = 0.0
    outermost: float = 0.0  # seconds in which no other import was under way around it
    lines: dict[tuple[Frame, int], float] = field(default_factory=partial(defaultdict, float))
    callers: dict[tuple[Frame, int], float] = field(default_factory=partial(defaultdict, float))


class PythonTally:
    """Adds samples up. Functions and lines are those of `add`; imports may be those of the whole program."""

    def __init__(self) -> None:
        self._functions: dict[Frame, _Function] = {}
        self._imports: dict[str, _Function] = {}
        self._files: dict[str, str | None] = {}
        self._outside: dict[tuple[Frame, int], float] = defaultdict(float)
        self.cpu = self.wall = self.importing = 0.0

    def add(self, sample: PythonSample) -> None:
        """Count a sample to its functions and lines."""
        self.cpu += sample.cpu
        self.wall += sample.wall
        if None in sample.frames or not sample.frames:
            return
        places = sample.places
        leaf, line = places[-1]
        function = self._functions.setdefault(leaf, _Function())
        function.own += sample.cpu
        function.lines[leaf, line] += sample.cpu
        if len(places) > 1:
            function.callers[places[-2]] += sample.cpu
        for frame in {frame for frame, _ in places}:
            self._functions.setdefault(frame, _Function()).total += sample.cpu

    def add_outside(self, sample: PythonSample) -> None:
        """Count a sample of the main thread, outside of all regions, to the program's line that it is in.

        What it imports is counted by `add_import`.
        """
        if not sample.first or None in sample.frames:
            return
        own = (place for place in reversed(sample.places) if is_users_code(place[0].file, place[0].function))
        if (place := next(own, None)) is not None:
            self._outside[place] += sample.wall

    def add_import(self, sample: PythonSample) -> None:
        """Count a sample to the modules that were being imported."""
        modules: dict[str, tuple[Frame, int] | None] = {}
        frames = sample.frames
        for at, frame in enumerate(frames):
            if frame is not None:
                continue
            inner = frames[at + 1] if at + 1 < len(frames) else None
            name = IMPORT_SYSTEM
            if inner is not None and inner.function == MODULE and inner.file:
                name = module_name(inner.file)
                self._files[name] = inner.file
            if name != IMPORT_SYSTEM or not modules:
                modules.setdefault(name, _importing_line(sample, at, outermost=not modules))
        if not modules:
            return
        self.importing += sample.wall
        for number, (name, caller) in enumerate(modules.items()):
            entry = self._imports.setdefault(name, _Function())
            entry.total += sample.wall
            entry.own += sample.wall if number == len(modules) - 1 else 0.0
            entry.outermost += sample.wall if number == 0 else 0.0
            if caller is not None:
                entry.callers[caller] += sample.wall

    def profiles(self, seen: Mapping[Frame, SeenValues]) -> tuple[Profile, ...]:
        """Return functions and the user's lines by processor time, and imports by wall time.

        A function of a library of which arguments were `seen` has among its counters `looks`, how many were
        `different`, and how many were met `[once]` and `[twice]`.
        """
        functions = [
            _hotspot(frame, entry, seen.get(frame))
            for frame, entry in self._functions.items()
            if max(entry.own, entry.total) >= MIN_SHARE * max(self.cpu, self.wall)
        ]
        by_own = sorted(functions, key=lambda spot: (-spot.own, -(spot.total or 0.0), spot.function))
        profiles = [
            Profile(
                "Python functions, sampled",
                "s",
                self.cpu,
                tuple(by_own[:MAX_FUNCTIONS]),
                "sampled-functions",
            ),
        ]
        if self._imports:
            imports = [self._import(name, entry) for name, entry in self._imports.items()]
            imports.sort(key=lambda spot: (-(spot.total or 0.0), spot.function))
            title = "imports, sampled"
            profiles.append(
                Profile(title, "s", self.importing, tuple(imports[:MAX_IMPORTS]), "sampled-imports")
            )
        if self._outside:
            ordered = sorted(self._outside.items(), key=lambda item: -item[1])[:MAX_OUTSIDE]
            rows = tuple(
                Hotspot(frame.function, seconds, seconds, file=frame.file, line=line)
                for (frame, line), seconds in ordered
            )
            seconds = sum(self._outside.values())
            profiles.append(Profile("lines outside of regions", "s", seconds, rows, "sampled-outside"))
        return tuple(profiles)

    def _import(self, name: str, entry: _Function) -> Hotspot:
        return Hotspot(
            name,
            entry.own,
            entry.total,
            file=self._files.get(name),
            counters={"outermost": entry.outermost},
            callers=largest(entry.callers),
        )


def _importing_line(sample: PythonSample, at: int, *, outermost: bool) -> tuple[Frame, int] | None:
    """Return the line that imports what begins at frame `at`: where no other import is around it, that of the program.

    A library that imports another one when it is first used does so for the program's line that uses it.
    """
    if at == 0:
        return None
    places = [
        (frame, line)
        for frame, line in zip(sample.frames[:at], sample.lines[:at], strict=True)
        if frame is not None
    ]
    if outermost:
        own = next((place for n, place in reversed([*enumerate(places)]) if is_users_frame(places, n)), None)
        if own is not None:
            return own
    outer = sample.frames[at - 1]
    return (outer, sample.lines[at - 1]) if outer is not None else None


def is_users_frame(places: Sequence[tuple[Frame, int]], at: int) -> bool:
    """Return whether a frame is of the user's code.

    The line with which multiprocessing starts a Python is not, and no text that a library executes: only `python -c`
    and the program itself.
    """
    frame = places[at][0]
    if frame.file != _TEXT:
        return is_users_code(frame.file, frame.function)
    inner = places[at + 1][0].file if at + 1 < len(places) else None
    of_library = at > 0 and not is_users_code(places[at - 1][0].file, places[at - 1][0].function)
    return (
        is_users_code(_TEXT, frame.function)
        and not of_library
        and not (inner is not None and _WORKERS in inner)
    )


def _hotspot(frame: Frame, entry: _Function, seen: SeenValues | None) -> Hotspot:
    looks = {}
    if seen is not None and seen.arguments is not None and not is_users_code(frame.file, frame.function):
        met = {name: float(variable.length or 0) for name, variable in seen.variables.items()}
        looks = {"looks": float(seen.looks), "different": float(seen.arguments), **met}
    return Hotspot(
        frame.function,
        entry.own,
        entry.total,
        file=frame.file,
        line=frame.line,
        library=frame.library if frame.library != PYTHON else None,
        counters=looks,
        lines=largest(entry.lines),
        callers=largest(entry.callers),
    )


def largest(sums: Mapping[tuple[Frame, int], float], most: int = TOP) -> tuple[CodeLine, ...]:
    """Return the lines of most of something, the most first."""
    ordered = sorted(sums.items(), key=lambda item: -item[1])[:most]
    return tuple(
        CodeLine(frame.function, frame.file, line or None, value) for (frame, line), value in ordered
    )


def drawn_stack(frames: Iterable[Frame | None]) -> tuple[Frame, ...]:
    """Return the stack as it is drawn: an import is one frame, called by what it imports."""
    drawn: list[Frame] = []
    importing = False
    for frame in frames:
        if frame is None:
            importing = True
        elif importing:
            importing = False
            is_module = frame.function == MODULE and frame.file is not None
            if is_module:
                drawn.append(Frame(f"import {module_name(frame.file or '')}", PYTHON, frame.file, frame.line))
            else:
                drawn += [Frame(IMPORT_SYSTEM), frame]
        else:
            drawn.append(frame)
    return (*drawn, Frame(IMPORT_SYSTEM)) if importing else tuple(drawn)
