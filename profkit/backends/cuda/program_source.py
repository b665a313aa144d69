"""What a program's own sources add to its trace: definitions of kernels, and lines that call the CUDA API."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path

from profkit.analysis.kernel_names.owner import kernel_owner
from profkit.core.files.regular import read_bounded
from profkit.core.types import GpuLine, GpuTrace, KernelInstruction, KernelTime, Transfer, Workload
from profkit.profilers.ncu.command import function_name

SUFFIXES = (".py", ".cu", ".cuh", ".cpp", ".h", ".hpp")
MAX_FILES, LONGEST = 200, 1 << 20
MAX_PLACES = 1000  # of one kind in a file
_KERNELS = re.compile(r"__global__|\bjit\b|RawKernel")
# What can begin anywhere is bounded, or ends where the next one begins: no text may take the square of its length.
_HEAD = r"(?:[^\n#]{{0,300}}?__global__[^\n;]{{0,300}}\s|\w[\w\s]{{0,100}}\s)\*?"
_DEFINED = rf"^[^\S\n]*(?=\S)(?:def\s+|{_HEAD}){{name}}\s*\("
_DECLARED = re.compile(r"\s*;")  # behind the parameters: it is defined elsewhere
_BY_NUMBA, _JIT = "[abi:", r"@(?:\w+\.)*jit\b"
_OF_JIT = rf"{_JIT}(?:(?!\n[^\S\n]*def\b|{_JIT})[\s\S])*\n[^\S\n]*def\s+{{name}}\s*\("


def with_definitions(trace: GpuTrace | None, workload: Workload) -> GpuTrace | None:
    """Return the trace with file and line of those of the program's own kernels that its sources define.

    For machine code it also has lines that call the CUDA API, where only that line can be meant, or that allocate
    in a kernel.
    """
    if trace is None or all(kernel_owner(kernel.kernel.name) != "user" for kernel in trace.kernels):
        return trace
    python = workload.python is not None or any(word.endswith(".py") for word in workload.command)
    sources = list(_texts(workload, python))
    trace = replace(trace, kernels=tuple(_defined(kernel, sources) for kernel in trace.kernels))
    if python or trace.lines:
        return trace
    own = {
        Path(kernel.file or "").name for kernel in trace.kernels
    }  # what defines none that ran may only lie beside it
    codes = {str(source.path): source.code for source in sources if source.path.name in own}
    lines = (
        *_calling_lines(trace, codes),
        *_launching_lines(trace.kernels, codes),
        *_allocating_lines(trace.kernels, codes),
    )
    return replace(trace, lines=lines)


@dataclass(frozen=True)
class _Source:
    """A file that may define kernels. `named`: the command, or the program's name, says that it is the program's."""

    path: Path
    text: str
    named: bool

    @cached_property
    def code(self) -> str:
        """Return the text without comments and strings; Python's with them, since RawKernel compiles strings."""
        return self.text if self.path.suffix == ".py" else _code(self.text)

    @cached_property
    def behind(self) -> Mapping[int, int]:
        """Return, by the place of each opening sign in the code, the place behind its closing sign; none for Python."""
        return {} if self.path.suffix == ".py" else _pairs(self.code)


def _texts(workload: Workload, python: bool) -> Iterator[_Source]:
    """Yield the files that may define kernels, the program's own first; for Python the sources that it names."""
    folder = Path(workload.folder)
    named = [folder / word for word in workload.command if Path(word).suffix in SUFFIXES]
    programs = [folder / word for word in workload.command if "/" in word and not python]
    beside: list[Path] = []
    for beside_folder in dict.fromkeys([*(path.parent for path in (*named, *programs)), folder]):
        with suppress(OSError):  # a script of a shell is no path, and too long for one
            beside += (path for path in beside_folder.glob("*.*") if path.suffix in SUFFIXES)
    beside.sort(key=lambda path: (path.stem != workload.name, path))
    texts: dict[Path, str] = {}
    for path in list(dict.fromkeys([*named, *beside]))[:MAX_FILES]:
        with suppress(OSError, ValueError):
            texts[path] = read_bounded(path, LONGEST).decode()
    scripts = "\n".join(text for path, text in texts.items() if path.suffix == ".py")
    for path, text in texts.items():
        built = not python or path.suffix == ".py" or path.name in scripts or f"*{path.suffix}" in scripts
        if built and _KERNELS.search(text):
            yield _Source(path, text, path in named or path.stem == workload.name)


def _defined(time: KernelTime, sources: Sequence[_Source]) -> KernelTime:
    """Return the kernel with its definition, where the sources have exactly one."""
    definition = _definition(time.kernel.name, sources) if time.file is None else None
    return (
        replace(time, file=definition.file, line=definition.line, function=definition.function)
        if definition
        else time
    )


def line_table_definitions(instructions: Iterable[KernelInstruction]) -> tuple[tuple[str, str, GpuLine], ...]:
    """Return where the line tables of the program's own kernels lead: by the name before the parameters."""
    files: dict[str, set[str]] = {}
    for instruction in instructions:
        if instruction.file is not None and instruction.kernel.name is not None:
            files.setdefault(instruction.kernel.name, set()).add(instruction.file)
    lines = []
    for name, own in files.items():
        sources = []
        for file in sorted(own):
            with suppress(OSError, ValueError):
                sources.append(_Source(Path(file), read_bounded(Path(file), LONGEST).decode(), True))
        definition = _definition(name, sources)
        lines += [(name.partition("(")[0], "", definition)] if definition is not None else []
    return tuple(lines)


def _definition(kernel: str, sources: Sequence[_Source]) -> GpuLine | None:
    """Return the line that defines one of the program's own kernels; None where none or several do.

    What another file beside the program defines counts only where the program's own does not.
    """
    whole, by_numba, _ = kernel.partition(_BY_NUMBA)
    name = function_name(f"{whole}(" if by_numba else whole).partition("[")[0]
    if kernel_owner(kernel) != "user" or not name.isidentifier():
        return None
    for named in (True, False):
        own = [candidate for candidate in sources if candidate.named == named and name in candidate.text]
        places = [
            (candidate, line)
            for candidate in own
            for line in _lines_defining(name, candidate, numba=bool(by_numba))
        ]
        if places:
            source, line = places[0]
            return GpuLine(str(source.path), line, name) if len(places) == 1 else None
    return None


def _lines_defining(name: str, source: _Source, *, numba: bool) -> Iterator[int]:
    """Yield the lines at which a file defines a kernel: in Python those that a compiler decorates, if any."""
    code, behind = source.code, source.behind
    patterns = [_OF_JIT] if numba else [_OF_JIT, _DEFINED] if source.path.suffix == ".py" else [_DEFINED]
    for pattern in patterns:
        compiled = re.compile(pattern.format(name=re.escape(name)), re.MULTILINE)
        defined = (
            match.end()
            for match in compiled.finditer(code)
            if not _DECLARED.match(code, behind.get(match.end() - 1, len(code)))
        )
        ends = list(islice(defined, 2))  # with two it is ambiguous
        yield from (code.count("\n", 0, end) + 1 for end in ends)
        if ends:
            return


# ------------------------------------------------------------ lines that call the API

_CALL = re.compile(
    r"\b(cuda(?:Memcpy|Memset|Malloc|Free|Host|DeviceSync|StreamSync|GraphInst)\w*)\s*(\([^;]*)"
)
_NO_CODE = re.compile(r"""//[^\n]*|/\*.*?(?:\*/|\Z)|"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])'""", re.DOTALL)
SMALL_COPY = 1 << 16  # bytes: with less the host wants to know something, and does not work on it
_LOOP = re.compile(r"\b(?:for|while)\s*\(|\bdo\b")
_SIGN, _FIRST = re.compile(r"[(){}]"), re.compile(r"\S")
_WAYS = {
    "HostToDevice": "host to device",
    "DeviceToHost": "device to host",
    "DeviceToDevice": "device to device",
}


def _code(text: str) -> str:
    """Return the text without comments and strings, with all lines and columns in place."""
    return _NO_CODE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def _calling_lines(trace: GpuTrace, codes: Mapping[str, str]) -> Iterator[GpuLine]:
    """Yield lines whose API call is the only one of its name and direction that a loop can repeat.

    Copies also count where all of them stand in one block: each is then made as often.
    """
    places: dict[tuple[str, str], list[tuple[bool, str, int, int]]] = {}
    managed = tuple(transfer for transfer in trace.transfers if transfer.kind.endswith("(managed)"))
    for path, code in codes.items():
        loops = list(islice(_loops(code), MAX_PLACES))
        for match in islice(_CALL.finditer(code), MAX_PLACES):
            way = next((word for word in _WAYS if word in match[2]), "")
            inside = any(begin <= match.start() < end for begin, end in loops)
            line = code.count("\n", 0, match.start()) + 1
            places.setdefault((match[1], way), []).append((inside, path, line, match.start()))
    for (name, way), found_at in places.items():
        repeated = [place for place in found_at if place[0]] or found_at
        made = [call for call in trace.api if call.name.partition("_")[0] == name]  # cudaMemcpy_v3020, too
        if name == "cudaMallocManaged" and managed:  # before what counts
            yield GpuLine(*found_at[0][1:3], transfers=managed, call=name)
        # Of several that allocate in loops the first stands for all; a copy or a wait has to be the one.
        named = len(repeated) == 1 or (repeated[0][0] and not re.search("Mem(?:cpy|set)|Synchronize", name))
        moved = tuple(transfer for transfer in trace.transfers if transfer.kind == _WAYS.get(way))
        together = bool(moved) and _are_in_one_block(codes, repeated)
        if not (named or together) or not made:
            continue
        calls, seconds = (
            sum(made_call.calls for made_call in made),
            sum(made_call.seconds for made_call in made),
        )
        waits = calls if name.endswith("Synchronize") else 0
        if name == "cudaMemcpy" and way == "DeviceToHost":  # it returns when the kernels before it are done
            waits = sum(transfer.count for transfer in moved if transfer.bytes < SMALL_COPY * transfer.count)
        lines = repeated if together else repeated[:1]
        for _, file, line, _ in lines:
            part = tuple(_divided(transfer, len(lines)) for transfer in moved)
            own = calls // len(lines), seconds / len(lines)
            yield GpuLine(file, line, None, *own, waits=waits // len(lines), transfers=part, call=name)


def _are_in_one_block(codes: Mapping[str, str], places: Sequence[tuple[bool, str, int, int]]) -> bool:
    """Return whether calls stand in one block of a file, with nothing conditional between them."""
    files = {path for _, path, _, _ in places}
    if len(files) != 1:
        return False
    starts = [start for _, _, _, start in places]
    between = codes[files.pop()][min(starts) : max(starts)]
    return not re.search(r"[{}]|\b(?:if|else|for|while|case|return)\b", between)


def _divided(moved: Transfer, parts: int) -> Transfer:
    """Return the share of a transfer for each of `parts` calls."""
    memory = tuple(_divided(memory_transfer, parts) for memory_transfer in moved.memory)
    return replace(
        moved,
        count=moved.count // parts,
        bytes=moved.bytes // parts,
        seconds=moved.seconds / parts,
        memory=memory,
    )


def _launching_lines(kernels: Sequence[KernelTime], codes: Mapping[str, str]) -> Iterator[GpuLine]:
    """Yield the line that launches a kernel, where there is only one."""
    own = [kernel for kernel in kernels if kernel_owner(kernel.kernel.name) == "user"]
    for name in dict.fromkeys(kernel.function for kernel in own if kernel.function is not None):
        pattern = re.compile(rf"\b{re.escape(name)}\s*(?:<[^;{{}}]{{0,300}}>\s*)?<<<")
        places = [
            (*source, match) for source in codes.items() for match in islice(pattern.finditer(source[1]), 2)
        ]
        if len(places) == 1:
            path, code, match = places[0]
            launched = [kernel for kernel in own if kernel.function == name]
            launches, seconds = (
                sum(kernel.launches for kernel in launched),
                sum(kernel.total for kernel in launched),
            )
            line = code.count("\n", 0, match.start()) + 1
            yield GpuLine(path, line, None, launches=launches, kernel_seconds=seconds)


def _loops(code: str) -> Iterator[tuple[int, int]]:
    """Yield where the body of each loop begins and ends."""
    behind = _pairs(code)
    for match in _LOOP.finditer(code):
        at = behind.get(match.end() - 1, len(code)) if code[match.end() - 1] == "(" else match.end()
        statement = code.find(";", at)
        yield _block(code, behind, at) or (at, statement if statement >= 0 else len(code))


def _block(code: str, behind: Mapping[int, int], at: int) -> tuple[int, int] | None:
    """Return where the block that follows begins and ends; None where something else follows."""
    first = _FIRST.search(code, at)
    return (first.start(), behind.get(first.start(), len(code))) if first and first[0] == "{" else None


def _pairs(code: str) -> dict[int, int]:
    """Return, by the place of each opening sign, the place behind its closing sign."""
    behind: dict[int, int] = {}
    opened: list[int] = []
    for match in _SIGN.finditer(code):
        if match[0] in "({":
            opened.append(match.start())
        elif opened:
            behind[opened.pop()] = match.end()
    return behind


_HEAP = re.compile(r"\b(malloc)\s*\(|\b(new)\s+[\w:]+\s*[\[({;]")
_OF_DEVICE = re.compile(r"__(?:global|device)__(?:(?!__(?:global|device)__)[^;{}])*?\b(?!__)(\w+)\s*\(")


def _allocating_lines(kernels: Sequence[KernelTime], codes: Mapping[str, str]) -> Iterator[GpuLine]:
    """Yield where a kernel, or a function that it calls, allocates from the heap of the device."""
    for kernel in kernels:
        code = codes.get(kernel.file or "", "")
        behind = _pairs(code)
        heads = islice(_OF_DEVICE.finditer(code), MAX_PLACES)
        ends = {head[1]: behind.get(head.end() - 1, len(code)) for head in heads}
        bodies = {name: block for name, end in ends.items() if (block := _block(code, behind, end))}
        own = bodies.get(kernel.function or "", (0, 0))
        words = set(re.findall(r"\w+", code[slice(*own)]))
        called = [body for name, body in bodies.items() if name in words]
        allocation = next((match for body in (own, *called) if (match := _HEAP.search(code, *body))), None)
        if allocation is not None:
            line = code.count("\n", 0, allocation.start()) + 1
            yield GpuLine(kernel.file or "", line, kernel.function, call=allocation[1] or allocation[2])
