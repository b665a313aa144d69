"""Where the program's own kernels are written: their definitions, looked for in the files beside the program.

A line table tells more, but only of kernels that are counted, and that were compiled with one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from profkit.analysis.kernel_names.owner import kernel_owner
from profkit.core.files.regular import read_bounded_text
from profkit.core.types import GpuTrace, KernelTime, Workload
from profkit.profilers.ncu.command import function_name

SUFFIXES = (".py", ".cu", ".cuh", ".cpp", ".h", ".hpp")
MOST_FILES, LONGEST = 200, 1 << 20
_KERNELS = re.compile(r"__global__|\bjit\b|RawKernel")
_DEFINED = r"^[^\S\n]*(?:def\s+{name}\s*\(|(?:[^\n#]*__global__[^\n;]*\s|\w[\w\s]*\s)\*?{name}\s*\()"


def with_definitions(trace: GpuTrace | None, workload: Workload) -> GpuTrace | None:
    """The trace, with file and line of those kernels of the program's own that are defined beside it."""
    if trace is None or all(kernel_owner(one.kernel.name) != "user" for one in trace.kernels):
        return trace
    texts = list(_texts(workload))
    return replace(trace, kernels=tuple(_defined(one, texts) for one in trace.kernels)) if texts else trace


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
    name = function_name(time.kernel.name).partition("[")[0]
    if time.file is not None or kernel_owner(time.kernel.name) != "user" or not name.isidentifier():
        return time
    pattern = re.compile(_DEFINED.format(name=re.escape(name)), re.MULTILINE)
    for path, text in texts:
        found = pattern.search(text)
        if found is not None:
            line = text.count("\n", 0, found.end()) + 1
            return replace(time, file=str(path), line=line, function=name)
    return time
