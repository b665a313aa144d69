"""How a frame is called, so that native, kernel and Python code are told apart everywhere alike.

`Frame.library` decides: PYTHON for a Python function (then `Frame.file` is its source file), KERNEL for the
kernel proper, JIT for code that another run-time made up on the fly, else the base name of the shared object.
Base names, since two machines keep the same library in different folders and their runs are to be compared.
"""

from __future__ import annotations

from profkit.core.types import Frame

PYTHON = "python"
KERNEL = "[kernel]"
JIT = "[jit]"
UNKNOWN = "[unknown]"

NO_STACK = Frame("[no stack recorded]")
MORE_STACKS = Frame("[deeper frames not kept apart]")


def is_python(frame: Frame) -> bool:
    """True for a function of the interpreted program, False for native and kernel code."""
    return frame.library == PYTHON


def label(frame: Frame) -> str:
    """One line of text for a frame: `inner (model.py)`, `memcpy`, `do_syscall_64_[k]`, `[unknown] (a.so)`.

    The suffix `_[k]` is what flame graph scripts colour as kernel code.
    """
    if frame.library == PYTHON:
        file = (frame.file or "").rpartition("/")[2]
        return f"{frame.function} ({file})" if file else frame.function
    if frame.library == KERNEL:
        return f"{frame.function}_[k]"
    if frame.function == UNKNOWN and frame.library:
        return f"{UNKNOWN} ({frame.library})"
    return frame.function
