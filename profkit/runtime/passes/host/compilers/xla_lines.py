"""Lines of the program that the text of a module of XLA names: at each instruction, or in tables of stack frames."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

ProgramLine = tuple[str, int, str]  # file, line, function
_FRAME = re.compile(r"stack_frame_id=(\d+)")
_WRITTEN = re.compile(r'source_file="([^"]+)" source_line=(\d+)')
_NAMES = re.compile(r'^(\d+) "(.*)"$')
_LOCATION = re.compile(r"^(\d+) \{file_name_id=(\d+) function_name_id=(\d+) line=(\d+)")
_PARENT = re.compile(r"^(\d+) \{file_location_id=(\d+) parent_frame_id=(\d+)")


def lines_in(text: str, line_of: Mapping[int, ProgramLine]) -> Iterator[ProgramLine]:
    """Yield the lines of the program that a part of a module names, by its frames or as it is written."""
    for found in _FRAME.finditer(text):
        if (line := line_of.get(int(found[1]))) is not None:
            yield line
    for found in _WRITTEN.finditer(text):
        yield found[1], int(found[2]), ""


def frame_lines(text: str, is_foreign: Callable[[str], bool]) -> dict[int, ProgramLine]:
    """Return of each frame the innermost line that is the program's own."""
    names: dict[str, dict[int, str]] = {"FileNames": {}, "FunctionNames": {}}
    places: dict[int, ProgramLine] = {}
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
    lines: dict[int, ProgramLine] = {}
    for number, (place, parent) in sorted(frames.items()):  # what called a frame stands before it
        here = places.get(place, ("", 0, ""))
        if here[0] and not is_foreign(here[0]):
            lines[number] = here
        elif parent - offset < number and parent - offset in lines:
            lines[number] = lines[parent - offset]
    return lines
