"""All profilers, and which of them reads a file. A new one is a folder with an object, and a line in `PROFILERS`."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

from profkit.core.errors import Fault, UnreadableReport
from profkit.profilers.files import read_head
from profkit.profilers.profiler import Format, Profiler

_POINTER = b"version https://git-lfs.github.com/spec/"


def _cprofile() -> Profiler:
    from profkit.profilers.cprofile.profiler import CProfile

    return CProfile()


def _ncu() -> Profiler:
    from profkit.profilers.ncu.profiler import NsightCompute

    return NsightCompute()


def _nsys() -> Profiler:
    from profkit.profilers.nsys.profiler import NsightSystems

    return NsightSystems()


def _perf() -> Profiler:
    from profkit.profilers.perf.profiler import Perf

    return Perf()


def _torch_profiler() -> Profiler:
    from profkit.profilers.torch_profiler.profiler import TorchProfiler

    return TorchProfiler()


def _valgrind() -> Profiler:
    from profkit.profilers.valgrind.profiler import Valgrind

    return Valgrind()


def _stacks() -> Profiler:
    from profkit.profilers.stacks.profiler import StackSamples

    return StackSamples()


def _xctrace() -> Profiler:
    from profkit.profilers.xctrace.profiler import Xctrace

    return Xctrace()


# In the order in which a file is compared with their formats. An object is loaded when its turn comes.
PROFILERS: dict[str, Callable[[], Profiler]] = {
    "cprofile": _cprofile,
    "ncu": _ncu,
    "nsys": _nsys,
    "perf": _perf,
    "stacks": _stacks,
    "torch_profiler": _torch_profiler,
    "valgrind": _valgrind,
    "xctrace": _xctrace,
}


def find_profiler(name: str) -> Profiler | None:
    """The profiler of that name; None where there is none."""
    load = PROFILERS.get(name)
    return load() if load is not None else None


def all_profilers() -> Iterator[Profiler]:
    """Every profiler, each loaded when it is asked for."""
    return (load() for load in tuple(PROFILERS.values()))


def all_formats() -> Iterator[Format]:
    """Every format that can be read."""
    return (form for profiler in all_profilers() for form in profiler.formats)


def explain_fault(tool: str, text: str, returncode: int) -> Fault | None:
    """The fault that `tool` printed as `text` before it ended with `returncode`; None where it is not known."""
    profiler = find_profiler(tool)
    return (
        profiler.explain(text, returncode) if profiler is not None and profiler.explain is not None else None
    )


def recognise_format(path: Path) -> Format:
    """The format of the report at `path`. Raises UnreadableReport where it is none that profkit knows."""
    folder = folder_format(path)
    if folder is not None:
        return folder
    head = read_head(path)
    for form in all_formats():
        if form.looks_like is not None and form.looks_like(head):
            return form
    if head.startswith(_POINTER):
        raise UnreadableReport(
            f"{path} is a pointer of Git LFS, not the report itself",
            f"git lfs pull --include {shlex.quote(path.name)}",
        )
    text = head.decode("utf-8", "replace")
    for tool in PROFILERS:
        fault = explain_fault(tool, text, 1)
        if fault is not None:
            raise UnreadableReport(
                f"{path} holds no report but an error of {tool}: {fault.reason}", fault.fix
            )
    known = ", ".join(form.title for form in all_formats())
    raise UnreadableReport(
        f"{path} is no report that profkit knows (it knows: {known})",
        "profkit record --help says how one is made",
    )


def folder_format(path: Path) -> Format | None:
    """The format of the folder at `path`: a document, or exports of one recording; None where it is no report."""
    try:
        if not path.is_dir():
            return None
    except (OSError, ValueError):
        return None  # `read_head` says what is wrong with it
    return next((form for form in all_formats() if form.is_folder is not None and form.is_folder(path)), None)
