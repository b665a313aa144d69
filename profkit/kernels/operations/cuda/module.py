"""A .cu file of this folder, built for one device and one set of constants, and its kernels to launch."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from profkit.kernels.operations.cuda import cache
from profkit.kernels.operations.cuda.nvrtc import Compiler, compiler
from profkit.kernels.operations.unavailable import Unavailable

HERE = Path(__file__).parent
HEADER = "values.cuh"
# How a kernel's parameters are told: pointer, 32-bit number, 64-bit number, float.
KINDS: dict[str, Any] = {
    "p": ctypes.c_void_p,
    "u": ctypes.c_uint32,
    "l": ctypes.c_uint64,
    "f": ctypes.c_float,
}
# CUresults (cuda.h) of a driver that does not know the program's format: it is older than the compiler.
INVALID_IMAGE, NO_BINARY_FOR_GPU, UNSUPPORTED_PTX_VERSION = 200, 209, 222
TOO_NEW = (INVALID_IMAGE, NO_BINARY_FOR_GPU, UNSUPPORTED_PTX_VERSION)


class LaunchFailed(Exception):
    """The driver refused a call; the sentence names it."""


class Kernel:
    """One kernel; calling it launches it and returns at once. Its parameters lie in the same place at every call."""

    def __init__(self, driver: ctypes.CDLL, function: ctypes.c_void_p, kinds: str) -> None:
        self._driver, self._function = driver, function
        self._slots: list[Any] = [KINDS[kind]() for kind in kinds]
        self._places = (ctypes.c_void_p * len(kinds))(*(ctypes.addressof(slot) for slot in self._slots))
        self._launch = driver.cuLaunchKernel
        self._launch.argtypes = [ctypes.c_void_p, *[ctypes.c_uint] * 7, *[ctypes.c_void_p] * 3]

    def __call__(self, blocks: int, threads: int, stream: int, *values: float) -> None:
        """Launch on `stream`, a CUstream as a number. Raises LaunchFailed."""
        for slot, value in zip(self._slots, values, strict=True):
            slot.value = value
        code = self._launch(self._function, blocks, 1, 1, threads, 1, 1, 0, stream, self._places, None)
        if code != 0:
            raise LaunchFailed(f"cuLaunchKernel: {error_name(self._driver, code)}")

    def resident(self, threads: int) -> int:
        """How many of its blocks of so many threads a multiprocessor runs at a time, at least 1."""
        count = ctypes.c_int()
        self._driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(
            ctypes.byref(count), self._function, threads, ctypes.c_size_t(0)
        )
        return max(1, count.value)


class Module:
    """What one compilation gave, loaded into the current context.

    Raises Unavailable without NVRTC or a driver for what it gives, DoesNotCompile, and LaunchFailed.
    """

    def __init__(self, file: str, capability: tuple[int, int], constants: Mapping[str, int]) -> None:
        try:
            self._driver = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise Unavailable(f"the CUDA driver cannot be loaded: {error}") from None
        tool = compiler()
        options = [f"--gpu-architecture={tool.target(capability)}", "--std=c++17"]
        options += [f"-D{name}={value}" for name, value in sorted(constants.items())]
        program, name = program_of(tool, file, options)
        self._module = ctypes.c_void_p()
        code = self._driver.cuModuleLoadData(ctypes.byref(self._module), program)
        if code == 0:
            return
        cache.forget(name)
        if code in TOO_NEW:
            raise Unavailable(
                f"the driver cannot load what {tool.name} compiles ({error_name(self._driver, code)}): it is older",
                "update the NVIDIA driver, or pip install an nvidia-cuda-nvrtc of the driver's CUDA version",
            )
        raise LaunchFailed(f"cuModuleLoadData: {error_name(self._driver, code)}")

    def kernel(self, name: str, kinds: str) -> Kernel:
        """The kernel of that name; `kinds` has a letter for each parameter. Raises LaunchFailed."""
        function = ctypes.c_void_p()
        if code := self._driver.cuModuleGetFunction(ctypes.byref(function), self._module, name.encode()):
            raise LaunchFailed(f"cuModuleGetFunction({name}): {error_name(self._driver, code)}")
        return Kernel(self._driver, function, kinds)


def program_of(tool: Compiler, file: str, options: list[str]) -> tuple[bytes, str]:
    """The compiled program, from the cache where it is there, and its name in it. Raises DoesNotCompile."""
    text, header = ((HERE / name).read_text(encoding="utf-8") for name in (file, HEADER))
    name = cache.key(text, header, options, tool.name)
    program = cache.read(name)
    if program is None:
        program = tool.compile(text, {HEADER: header}, options)
        cache.write(name, program)
    return program, name


def error_name(driver: ctypes.CDLL, code: int) -> str:
    """`CUDA_ERROR_INVALID_IMAGE`, or the number where the driver has no name for it."""
    text = ctypes.c_char_p()
    if driver.cuGetErrorName(code, ctypes.byref(text)) or not text.value:
        return f"CUDA error {code}"
    return text.value.decode("ascii", "replace")
