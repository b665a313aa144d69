"""What the source beside a program tells of its trace: where kernels are defined, and which lines call the CUDA API."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from profkit.analysis.kernel_names.owner import kernel_owner
from profkit.core.files.regular import read_bounded_text
from profkit.core.types import GpuLine, GpuTrace, KernelTime, Workload
from profkit.profilers.ncu.command import function_name

SUFFIXES = (".py", ".cu", ".cuh", ".cpp", ".h", ".hpp")
MOST_FILES, LONGEST = 200, 1 << 20
_KERNELS = re.compile(r"__global__|\bjit\b|RawKernel")
_DEFINED = r"^[^\S\n]*(?:def\s+{name}\s*\(|(?:[^\n#]*__global__[^\n;]*\s|\w[\w\s]*\s)\*?{name}\s*\()"


def with_definitions(trace: GpuTrace | None, workload: Workload) -> GpuTrace | None:
    """The trace, with file and line of those kernels of the program's own that are defined beside it.

    Of a program of machine code also the lines that copy, wait and allocate, each where it can be only that one.
    """
    if trace is None or all(kernel_owner(one.kernel.name) != "user" for one in trace.kernels):
        return trace
    texts = list(_texts(workload))
    if workload.python is None and not trace.lines:
        trace = replace(trace, lines=tuple(_calling_lines(trace, texts)))
    return replace(trace, kernels=tuple(_defined(one, texts) for one in trace.kernels))


def _texts(workload: Workload) -> Iterator[tuple[Path, str]]:
    """The files that may define kernels, those of the program itself first."""
    folder = Path(workload.folder)
    named = [folder / word for word in workload.command if Path(word).suffix in SUFFIXES]
    folders = dict.fromkeys([*(path.parent for path in named), folder])
    paths = dict.fromkeys([*named, *(path for one in folders for path in _files_in(one))])
    for path in list(paths)[:MOST_FILES]:
        with suppress(OSError, ValueError):
            text = read_bounded_text(path, LONGEST)
            if _KERNELS.search(text):
                yield path, text


def _files_in(folder: Path) -> list[Path]:
    with suppress(OSError):
        return sorted(path for path in folder.iterdir() if path.suffix in SUFFIXES and path.is_file())
    return []


def _defined(time: KernelTime, texts: list[tuple[Path, str]]) -> KernelTime:
    name = function_name(time.kernel.name.partition("[")[0])  # Numba: add_one[abi:v1,...](Array<...>)
    if time.file is not None or kernel_owner(time.kernel.name) != "user" or not name.isidentifier():
        return time
    pattern = re.compile(_DEFINED.format(name=re.escape(name)), re.MULTILINE)
    for path, text in texts:
        found = pattern.search(text)
        if found is not None:
            line = text.count("\n", 0, found.end()) + 1
            return replace(time, file=str(path), line=line, function=name)
    return time


# ------------------------------------------------------------ lines that call the API

_CALL = re.compile(r"\b(cuda(?:Memcpy|Malloc|Free|DeviceSynchronize|StreamSynchronize)\w*)\s*(\([^;]*)")
_NO_CODE = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\\\.|[^\"\\\\\n])*\"", re.DOTALL)
_LOOP = re.compile(r"\b(?:for|while)\s*\(|\bdo\b")
_SIGN, _FIRST = re.compile(r"[(){}]"), re.compile(r"\S")
_WAYS = {
    "HostToDevice": "host to device",
    "DeviceToHost": "device to host",
    "DeviceToDevice": "device to device",
}


def _calling_lines(trace: GpuTrace, texts: list[tuple[Path, str]]) -> Iterator[GpuLine]:
    """Lines whose call of the API is the only one of its name and direction that a loop can repeat."""
    places: dict[tuple[str, str], list[tuple[bool, str, int]]] = {}
    for path, text in texts:
        code = _NO_CODE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
        loops = list(_loops(code))
        for found in _CALL.finditer(code):
            way = next((word for word in _WAYS if word in found[2]), "")
            inside = any(begin <= found.start() < end for begin, end in loops)
            line = code.count("\n", 0, found.start()) + 1
            places.setdefault((found[1], way), []).append((inside, str(path), line))
    for (name, way), found_at in places.items():
        repeated = [place for place in found_at if place[0]] or found_at
        made = [one for one in trace.api if one.name.partition("_")[0] == name]  # cudaMemcpy_v3020, too
        if len(repeated) != 1 or not made:
            continue
        _, file, line = repeated[0]
        calls, seconds = sum(one.calls for one in made), sum(one.seconds for one in made)
        moved = tuple(one for one in trace.transfers if one.kind == _WAYS.get(way))
        waits = calls if name.endswith("Synchronize") else 0
        yield GpuLine(file, line, None, calls, seconds, waits=waits, transfers=moved)


def _loops(code: str) -> Iterator[tuple[int, int]]:
    """Where the body of each loop begins and ends."""
    behind = _pairs(code)
    for found in _LOOP.finditer(code):
        at = behind.get(found.end() - 1, len(code)) if code[found.end() - 1] == "(" else found.end()
        first = _FIRST.search(code, at)
        if first is not None and first[0] == "{":
            yield first.start(), behind.get(first.start(), len(code))
        else:
            statement = code.find(";", at)
            yield at, statement if statement >= 0 else len(code)


def _pairs(code: str) -> dict[int, int]:
    """Of each sign that opens something the place behind the one that closes it."""
    behind: dict[int, int] = {}
    opened: list[int] = []
    for found in _SIGN.finditer(code):
        if found[0] in "({":
            opened.append(found.start())
        elif opened:
            behind[opened.pop()] = found.end()
    return behind
