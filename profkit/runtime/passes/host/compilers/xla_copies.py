"""Arguments that a program of XLA copies whole in each call: it changes them, and its caller did not give them away."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from math import prod

from .xla_lines import ProgramLine, frame_lines, lines_in

MIN_BYTES = 1 << 20  # of an argument: to copy less takes a microsecond
_COMPUTATION = re.compile(r"^(ENTRY )?%([\w.-]+) \(.*?(?:^\}|\Z)", re.MULTILINE | re.DOTALL)
_PARAMETER = re.compile(r'^ *%([\w.-]+) = \S+ parameter\((\d+)\)(?:.*?op_name="(\w+))?', re.MULTILINE)
_COPY = re.compile(
    r"^ *(?:ROOT )?%([\w.-]+) = ([a-z]+\d*)\w*\[([\d,]*)\]\S* copy\(%([\w.-]+)\)", re.MULTILINE
)
_CALL = re.compile(r" call\(([^)]*)\), to_apply=%([\w.-]+)")
_CALLS = re.compile(r"calls=%([\w.-]+)")
_OPERAND = re.compile(r"%([\w.-]+)")
_BITS = re.compile(r"\d+")


def copied_arguments(
    texts: Iterable[tuple[str, str]], is_foreign: Callable[[str], bool]
) -> Iterator[list[object]]:
    """Yield file, line, function, module, the argument's name and bytes of each that is copied in each call.

    `texts`: the name and the text of each module. The line is the one that changes the copy; an empty file where none
    is known.
    """
    for module, text in texts:
        if " copy(" in text:
            for line, argument, size in _copied_in(text, is_foreign):
                yield [*line, module, argument, size]


def _copied_in(text: str, is_foreign: Callable[[str], bool]) -> Iterator[tuple[ProgramLine, str, int]]:
    """Yield the line, the name and the bytes of each argument of one module that it copies."""
    bodies = {found[2]: found[0] for found in _COMPUTATION.finditer(text)}
    entry = next((found[0] for found in _COMPUTATION.finditer(text) if found[1]), "")
    given = {name: argument or "" for name, _, argument in _PARAMETER.findall(entry)}
    if not given:
        return
    line_of = frame_lines(text, is_foreign)
    for body, arguments in ((entry, given), *_called_with(entry, given, bodies)):
        copies: dict[str, tuple[str, int]] = {}  # argument and bytes, by the name of the copy
        for name, kind, shape, source in _COPY.findall(body):
            size = prod(int(length) for length in shape.split(",") if length) * _bytes_of(kind)
            if source in arguments and size >= MIN_BYTES:
                copies[name] = arguments[source], size
        lines = _lines_that_use(copies, body, bodies, line_of)
        for name, (argument, size) in copies.items():
            yield lines.get(name, ("", 0, "")), argument, size


def _called_with(
    entry: str, given: Mapping[str, str], bodies: Mapping[str, str]
) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield what the entry calls, as it calls what runs as a CUDA graph, with the arguments by the names there."""
    for operands, called in _CALL.findall(entry):
        names = _OPERAND.findall(operands)
        body = bodies.get(called, "")
        inside = {
            name: given[names[int(at)]]
            for name, at, _ in _PARAMETER.findall(body)
            if int(at) < len(names) and names[int(at)] in given
        }
        yield body, inside


def _lines_that_use(
    names: Mapping[str, object], body: str, bodies: Mapping[str, str], line_of: Mapping[int, ProgramLine]
) -> dict[str, ProgramLine]:
    """Return, of each of these values, the line of the first instruction that works on it and has a line."""
    found: dict[str, ProgramLine] = {}
    for row in body.splitlines() if names else ():
        _, _, right = row.partition(" = ")
        used = [name for name in _OPERAND.findall(right) if name in names and name not in found]
        if not used:
            continue
        called = _CALLS.search(right)
        # What a fusion ends with is what was written there; the rest of it may be arithmetic on an index.
        ending = bodies.get(called[1], "").rpartition("ROOT ")[2] if called is not None else ""
        lines = Counter(lines_in(ending, line_of)) or Counter(lines_in(right, line_of))
        if lines:
            found |= dict.fromkeys(used, lines.most_common(1)[0][0])
    return found


def _bytes_of(kind: str) -> int:
    """Return the bytes of one number of a type of XLA: `f32`, `bf16`, `pred`."""
    bits = _BITS.search(kind)
    return max(1, int(bits[0]) // 8) if bits is not None else 1
