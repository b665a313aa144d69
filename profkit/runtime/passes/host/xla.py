"""Which line of the program each kernel of XLA stands for: the compiled modules that JAX still holds say it.

A module's text has tables of files, functions and frames, and its instructions name a frame (jax 0.5 and later), or the
file and line itself (before). A kernel has the name of its instruction, with `_` for each dot.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

MOST_TEXT = 64 << 20  # characters of all modules
_Line = tuple[str, int, str]
_LAUNCHED = re.compile(r"^\s*(?:ROOT )?%([\w.-]+) = .*? (?:fusion|sort|custom-call)\(.*$", re.MULTILINE)
_CALLS = re.compile(r"calls=%([\w.-]+)")
_COMPUTATION = re.compile(r"^%([\w.-]+) \(.*?^\}", re.MULTILINE | re.DOTALL)
_LIBRARY = re.compile(r'custom_call_target="(__cublas)')
_FRAME = re.compile(r"stack_frame_id=(\d+)")
_WRITTEN = re.compile(r'source_file="([^"]+)" source_line=(\d+)')
_NAMES = re.compile(r'^(\d+) "(.*)"$')
_LOCATION = re.compile(r"^(\d+) \{file_name_id=(\d+) function_name_id=(\d+) line=(\d+)")
_PARENT = re.compile(r"^(\d+) \{file_location_id=(\d+) parent_frame_id=(\d+)")


def kernel_lines(client: Any, is_foreign: Callable[[str], bool]) -> list[list[object]]:
    """File, line, function, kernel and module of what the client's programs launch."""
    rows: list[list[object]] = []
    read = 0
    for program in client.live_executables():
        for module in program.hlo_modules():
            text = module.to_string()
            read += len(text)
            if read > MOST_TEXT:
                return rows
            rows += [[*row, module.name] for row in lines_of_module(text, is_foreign)]
    return rows


def lines_of_module(text: str, is_foreign: Callable[[str], bool]) -> Iterator[list[object]]:
    """File, line, function and kernel of each instruction that is one, where its line is known."""
    line_of = _frames(text, is_foreign)
    fused = {found[1]: found[0] for found in _COMPUTATION.finditer(text)}
    for found in _LAUNCHED.finditer(text):
        lines = Counter(_lines_in(found[0], line_of))
        called = _CALLS.search(found[0])
        if not lines and called is not None:
            lines = Counter(_lines_in(fused.get(called[1], ""), line_of))
        if lines:
            library = _LIBRARY.search(found[0])
            name = library[1] if library is not None else re.sub(r"[.-]", "_", found[1])
            yield [*lines.most_common(1)[0][0], name]


def _lines_in(text: str, line_of: dict[int, _Line]) -> Iterator[_Line]:
    for found in _FRAME.finditer(text):
        if (line := line_of.get(int(found[1]))) is not None:
            yield line
    for found in _WRITTEN.finditer(text):
        yield found[1], int(found[2]), ""


def _frames(text: str, is_foreign: Callable[[str], bool]) -> dict[int, _Line]:
    """Of each frame the innermost line that is the program's own."""
    names: dict[str, dict[int, str]] = {"FileNames": {}, "FunctionNames": {}}
    places: dict[int, _Line] = {}
    frames: dict[int, tuple[int, int]] = {}
    table = ""
    for row in text[: text.find("\n%")].splitlines():
        if row in ("FileNames", "FunctionNames", "FileLocations", "StackFrames"):
            table = row
        elif (found := _NAMES.match(row)) is not None and table in names:
            names[table][int(found[1])] = found[2]
        elif (found := _LOCATION.match(row)) is not None:
            number, file, function, line = map(int, found.groups())
            named = names["FileNames"].get(file, ""), names["FunctionNames"].get(function, "")
            places[number] = named[0], line, named[1]
        elif (found := _PARENT.match(row)) is not None:
            number, place, parent = map(int, found.groups())
            frames[number] = place, parent
    # Parents are counted from 1 where the outermost frame names itself, else from 0 with 0 for none.
    offset = 1 if frames.get(1, (0, 0))[1] == 1 else 0
    lines: dict[int, _Line] = {}
    for number in frames:
        inner = number
        while inner in frames:
            place, parent = frames[inner]
            line_there = places.get(place, ("", 0, ""))
            if line_there[0] and not is_foreign(line_there[0]):
                lines[number] = line_there
                break
            if parent - offset >= inner:
                break
            inner = parent - offset
    return lines
