"""From perf's symbol and dso to a Frame: the same names whichever of perf's outputs they came from."""

from __future__ import annotations

import re

from profkit.analysis.stacks.labels import JIT, KERNEL, PYTHON, UNKNOWN
from profkit.core.types import Frame

# What run-times that compile on the fly leave for perf: a map, or an image per function after `perf inject`.
_JIT_FILE = re.compile(r"perf-\d+\.map|jitted-\d+-\d+\.so|jit-\d+\.dump|\[JIT\].*")
_KERNEL_MODULE = re.compile(r"(.+)\.ko(?:\.(?:xz|gz|zst))?")
_HEX = re.compile(r"(?:0x)?[0-9a-f]{6,}")


def frame_of(symbol: str, dso: str | None) -> Frame:
    """The frame of one line of perf.

    `py::FUNCTION:FILE` is how CPython 3.12 and later name the trampolines of Python functions; such a frame
    is a Python frame, in whatever file perf found it. A symbol perf could not resolve is `[unknown]`: its
    bare address differs from run to run and would only keep equal things apart.
    """
    if symbol.startswith("py::"):
        function, _, file = symbol[4:].partition(":")
        return Frame(function or UNKNOWN, PYTHON, file or None)
    if not symbol or _HEX.fullmatch(symbol):
        symbol = UNKNOWN
    return Frame(symbol, library_of(dso))


def library_of(dso: str | None) -> str | None:
    """The library's name for perf's dso: base name without `(deleted)`; None where perf does not know it."""
    if not dso:
        return None
    dso = dso.removesuffix(" (deleted)")
    if dso in ("[unknown]", "inlined"):
        return None
    if dso.startswith(("[kernel.kallsyms]", "[kernel.vmlinux]")):
        return KERNEL
    if dso.startswith("["):
        return JIT if dso.startswith("[JIT]") else dso
    if dso.startswith("//"):  # //anon: memory without a file, as perf names it
        return dso
    name = dso.rstrip("/").rpartition("/")[2]
    if _JIT_FILE.fullmatch(name):
        return JIT
    if name.startswith("vmlinux") or dso == "/proc/kcore":
        return KERNEL
    if module := _KERNEL_MODULE.fullmatch(name):
        return f"[{module[1]}]"
    return name or None
