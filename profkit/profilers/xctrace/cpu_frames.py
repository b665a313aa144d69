"""From a frame of Instruments to a Frame: names of libraries without folders, no bare addresses, Python told apart."""

from __future__ import annotations

import re

from profkit.analysis.stacks.merge import KERNEL, PYTHON, UNKNOWN
from profkit.core.types import Frame

_HEX = re.compile(r"0x[0-9a-fA-F]+")
# The kernel's own image ("kernel", "kernel.release.t8103") and its extensions, as Instruments names binaries.
_KERNEL_IMAGE = re.compile(r"kernel(\.(release|development|kasan)\S*)?|mach_kernel")


def frame_of(name: str | None, binary: str | None) -> Frame:
    """The frame of one function of a backtrace; `binary` is the image it is in, by name or path.

    A function that Instruments could not name is called by its address there. That differs from run to run and
    would only keep equal things apart, so it is `[unknown]` here, with its library where that is known.
    `py::FUNCTION:FILE` is how CPython 3.12 and later name the trampolines of Python functions.
    """
    if name is not None and name.startswith("py::"):
        function, _, file = name[4:].partition(":")
        return Frame(function or UNKNOWN, PYTHON, file or None)
    if not name or _HEX.fullmatch(name):
        name = UNKNOWN
    return Frame(name, library_of(binary))


def library_of(binary: str | None) -> str | None:
    """The library's name without its folder; None where Instruments does not know the image."""
    if not binary:
        return None
    name = binary.rstrip("/").rpartition("/")[2]
    if not name or _HEX.fullmatch(name):
        return None
    if _KERNEL_IMAGE.fullmatch(name):
        return KERNEL
    return f"[{name.removesuffix('.kext')}]" if name.endswith(".kext") else name
