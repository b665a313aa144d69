"""Modules of XLA by their text: at which line of the program each instruction that is launched was written."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any

from .xla_lines import frame_lines, lines_in

# ------------------------------------------------------------ which line each kernel of XLA stands for

# A module's text has tables of files, functions and frames, and its instructions name a frame, or the file and the line
# (versions before 0.5). A kernel has the name of its instruction, with `_` for each dot.
MAX_CHARACTERS = 64 << 20  # of all modules
_COLLECTIVES = "all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute"
_LAUNCHED = re.compile(
    rf"^ *(?:ROOT )?%([\w.-]+) = .*? (?:fusion|sort|custom-call|((?:{_COLLECTIVES})(?:-start)?))\(.*$",
    re.MULTILINE,
)
_CALLS = re.compile(r"calls=%([\w.-]+)")
_COMPUTATION = re.compile(r"^%([\w.-]+) \(.*?(?:^\}|\Z)", re.MULTILINE | re.DOTALL)
_LIBRARY = re.compile(r'custom_call_target="(__cublas)')


def kernel_rows(programs: Sequence[Any], is_foreign: Callable[[str], bool]) -> dict[str, list[list[object]]]:
    """Return what these programs of XLA launch, as it is written into the file.

    `kernels`: file, line, function, kernel and module; `schedule`: the instructions of each module in order.
    """
    from .xla_schedule import schedule_rows  # of no other program

    texts = list(module_texts(programs))
    rows = {"kernels": kernel_lines(texts, is_foreign), "schedule": []}
    with suppress(Exception):  # a text of another version: lines are written without it
        rows["schedule"] = schedule_rows(texts, is_foreign)
    return rows


def kernel_lines(texts: Iterable[tuple[str, str]], is_foreign: Callable[[str], bool]) -> list[list[object]]:
    """Return file, line, function, kernel and module of what these modules of XLA launch."""
    return [[*row, module] for module, text in texts for row in lines_of_module(text, is_foreign)]


def module_texts(programs: Sequence[Any]) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each module, up to MAX_CHARACTERS characters in all."""
    read = 0
    for program in programs:
        for module in program.hlo_modules():
            text = module.to_string()
            read += len(text)
            if read > MAX_CHARACTERS:
                return
            yield module.name, text


def lines_of_module(text: str, is_foreign: Callable[[str], bool]) -> Iterator[list[object]]:
    """Yield file, line, function and kernel of each launching instruction whose line is known."""
    line_of = frame_lines(text, is_foreign)
    fused = {found[1]: Counter(lines_in(found[0], line_of)) for found in _COMPUTATION.finditer(text)}
    for found in _LAUNCHED.finditer(text):
        lines = Counter(lines_in(found[0], line_of))
        called = _CALLS.search(found[0])
        if not lines and called is not None:
            lines = fused.get(called[1], lines)
        if lines:
            library = _LIBRARY.search(found[0])
            name = library[1] if library is not None else re.sub(r"[.-]", "_", found[1])
            name = "__nccl" if found[2] else name
            yield [*lines.most_common(1)[0][0], name]


# ------------------------------------------------------------ and each instruction that runs on a processor

# What XLA runs on a processor are instructions that are in no fusion.

MAX_OPERATIONS = 5000
_FUSED = 3  # names of a fusion that are said
_WHOLE_COMPUTATION = re.compile(r"^(?:ENTRY )?%([\w.-]+) \(.*?(?:^\}|\Z)", re.MULTILINE | re.DOTALL)
_INSTRUCTION = re.compile(r"^ *(?:ROOT )?%([\w.-]+) = (?:\([^)]*\)|\S+) ([\w-]+)\(.*$", re.MULTILINE)
_NAME = re.compile(r'op_name="([^"]*)"')
# A product may carry the name of what became of it: of a gradient that is `transpose`.
_PRODUCTS = {"dot": "dot_general", "convolution": "conv_general_dilated"}
_NO_WORK = frozenset({"parameter", "constant", "tuple", "get-tuple-element", "bitcast"})


def operation_lines(programs: Sequence[Any], foreign: Callable[[str], bool]) -> list[list[object]]:
    """Return file, line, function, instruction, module and JAX's name of what programs of XLA may run."""
    rows = (
        [*row[:4], module, row[4]]
        for module, text in module_texts(programs)
        for row in operations_of_module(text, foreign)
    )
    return list(islice(rows, MAX_OPERATIONS))


def operations_of_module(text: str, foreign: Callable[[str], bool]) -> Iterator[list[object]]:
    """Yield file, line, function, instruction and JAX's name of each instruction whose line is known.

    A fusion is at the line that most of it is written at, and has the names of what was fused, in order.
    """
    line_of = frame_lines(text, foreign)
    computations = {found[1]: found[0] for found in _WHOLE_COMPUTATION.finditer(text)}
    fused = set(_CALLS.findall(text))
    for name, body in computations.items():
        if name in fused:
            continue
        for found in _INSTRUCTION.finditer(body):
            if found[2] in _NO_WORK:
                continue
            called = _CALLS.search(found[0])
            whole = computations.get(called[1], "") if called is not None else ""
            lines = Counter(lines_in(whole, line_of)) or Counter(lines_in(found[0], line_of))
            # `dot_general` of `jit(loss)/transpose(jvp())/dot_general`; what is no name of an operation is left out
            last = (path.rpartition("/")[2] for path in _NAME.findall(whole) or _NAME.findall(found[0]))
            names = [name_ for name_ in dict.fromkeys(last) if name_ and "(" not in name_]
            shown = _PRODUCTS.get(found[2]) or ", ".join(names[:_FUSED]) or found[2]
            if lines:
                yield [*lines.most_common(1)[0][0], found[1], shown]
