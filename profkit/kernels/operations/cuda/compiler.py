"""Compiles CUDA C++ for one chip with NVRTC: the compiler as a library. It needs no nvcc and no headers.

Compiled programs are kept on disk, so that a second sweep compiles nothing. An nvcc build by torch's
cpp_extension takes some 40 s for such files and needs the whole toolkit; this takes 0.3 s, and the library
comes with torch. Names: NVRTC's documentation, chapter 'User interface'.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from profkit.core.types import Fact
from profkit.kernels.operations.definitions import Unavailable

MAJORS = (13, 12, 11)
FIX = "pip install nvidia-cuda-nvrtc, or a torch built for CUDA, which brings it"


class DoesNotCompile(Exception):
    """The compiler's message: its first error on the first line, then all of it."""


class Compiler:
    """The loaded NVRTC. Raises Unavailable where `library` cannot be loaded or is no NVRTC."""

    def __init__(self, library: str) -> None:
        try:
            self._library = ctypes.CDLL(library)
            self._library.nvrtcGetErrorString.restype = ctypes.c_char_p
        except (OSError, AttributeError) as error:
            raise Unavailable(Fact.of("not-nvrtc", name=library, said=str(error)), FIX) from None
        major, minor = ctypes.c_int(), ctypes.c_int()
        self._check(self._library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)))
        self.version = (major.value, minor.value)

    @property
    def name(self) -> str:
        """Return the name and version: `NVRTC 12.9`."""
        return f"NVRTC {self.version[0]}.{self.version[1]}"

    def compile(self, source: str, headers: Mapping[str, str], options: Sequence[str]) -> bytes:
        """Compile a source to a cubin. `headers`: what `#include` finds, by name.

        Raises DoesNotCompile.
        """
        library, program = self._library, ctypes.c_void_p()
        names = (ctypes.c_char_p * len(headers))(*(name.encode() for name in headers))
        texts = (ctypes.c_char_p * len(headers))(*(text.encode() for text in headers.values()))
        self._check(
            library.nvrtcCreateProgram(
                ctypes.byref(program), source.encode(), b"kernels.cu", len(headers), texts, names
            )
        )
        try:
            option_array = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
            if library.nvrtcCompileProgram(program, len(options), option_array) != 0:
                log = self._bytes(program, "ProgramLog").rstrip(b"\0").decode(errors="replace")
                raise DoesNotCompile(first_error_first(log))
            return self._bytes(program, "CUBIN")
        finally:
            library.nvrtcDestroyProgram(ctypes.byref(program))

    def _bytes(self, program: ctypes.c_void_p, what: str) -> bytes:
        """Return the log or the cubin of a program."""
        size = ctypes.c_size_t()
        self._check(getattr(self._library, f"nvrtcGet{what}Size")(program, ctypes.byref(size)))
        buffer = ctypes.create_string_buffer(max(1, size.value))
        self._check(getattr(self._library, f"nvrtcGet{what}")(program, buffer))
        return buffer.raw[: size.value]

    def _check(self, code: int) -> None:
        """Raise DoesNotCompile for an error code."""
        if code != 0:
            raise DoesNotCompile(f"NVRTC: {self._library.nvrtcGetErrorString(code).decode(errors='replace')}")


def first_error_first(log: str) -> str:
    """Return a compiler's log with its first error in front: the line that a reader of one line must see."""
    lines = [line for line in log.splitlines() if line.strip()]
    first = next(
        (line.strip() for line in lines if "error" in line), lines[0] if lines else "no reason given"
    )
    return "\n".join([first, *lines])


@lru_cache(maxsize=1)
def load_compiler() -> Compiler:
    """Load NVRTC as torch brings it or as it is installed. Raises Unavailable if there is none."""
    for place in library_names():
        try:
            return Compiler(place)
        except Unavailable:
            continue
    raise Unavailable(Fact("no-nvrtc"), FIX)


def library_names() -> list[str]:
    """Return where to look: first by name, which finds what torch has loaded.

    Of several libraries the one of torch's own CUDA comes first.
    """
    names = [f"libnvrtc.so.{major}" for major in MAJORS]
    for folder in sys.path:
        names += sorted(map(str, Path(folder or ".").glob("nvidia/*/lib/libnvrtc.so.*")), reverse=True)
    names += sorted(map(str, Path("/usr/local").glob("cuda*/lib64/libnvrtc.so.*")), reverse=True)
    names = [name for name in names if "builtins" not in name and ".alt." not in name]
    own = str(getattr(getattr(sys.modules.get("torch"), "version", None), "cuda", None) or "").partition(".")[
        0
    ]
    # stable: the rest as it was
    return sorted(names, key=lambda name: not (own and name.endswith(f".so.{own}")))
