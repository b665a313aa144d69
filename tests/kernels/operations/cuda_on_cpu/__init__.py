"""The .cu files compiled for the CPU by g++, and launched as the driver would: threads as fibers, blocks in turn."""

from __future__ import annotations

import ctypes
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

from profkit.kernels.operations.cuda.launch import HERE, KINDS

SHIM = Path(__file__).parent / "gpu.h"
CAPABILITY, PROCESSORS, RESIDENT = (9, 0), 3, 2  # few, so that blocks walk


class CpuKernel:
    """Stands in for `module.Kernel`."""

    def __init__(self, library: ctypes.CDLL, name: str, kinds: str) -> None:
        self._launch, self._kinds = getattr(library, f"start_{name}"), kinds

    def __call__(self, blocks: int, threads: int, stream: int, *values: float) -> None:
        assert len(values) == len(self._kinds)
        assert blocks > 0
        assert 0 < threads <= 1024
        assert threads % 32 == 0
        slots = [KINDS[kind](value) for kind, value in zip(self._kinds, values, strict=True)]
        places = (ctypes.c_void_p * len(slots))(*(ctypes.addressof(slot) for slot in slots))
        self._launch(blocks, threads, places)

    def resident(self, threads: int) -> int:
        return RESIDENT


class CpuModule:
    """Stands in for `module.Module`; compiles into `folder`, once for each set of constants."""

    folder = Path()

    def __init__(self, file: str, capability: tuple[int, int], constants: Mapping[str, int]) -> None:
        name = "-".join([file, *(f"{key}{value}" for key, value in sorted(constants.items()))])
        self._library = ctypes.CDLL(str(built(file, constants, self.folder / f"{name}.so")))

    def kernel(self, name: str, kinds: str) -> CpuKernel:
        return CpuKernel(self._library, name, kinds)


def built(file: str, constants: Mapping[str, int], library: Path) -> Path:
    """The file as a shared library with a `start_` function for each kernel."""
    if library.exists():
        return library
    source = (HERE / file).read_text(encoding="utf-8")
    kernels = re.findall(r'extern "C" __global__ void (\w+)\(', source)
    starts = "".join(
        f'extern "C" void start_{k}(unsigned b, unsigned t, void** a) {{ launch({k}, b, t, a); }}\n'
        for k in kernels
    )
    defined = [f"-D{name}={value}" for name, value in constants.items()]
    given = [
        "g++",
        "-std=c++17",
        "-O0",
        "-U_FORTIFY_SOURCE",
        "-w",
        "-shared",
        "-fPIC",
        "-x",
        "c++",
        f"-I{HERE}",
        *defined,
    ]
    given += [f'-DON_CPU="{SHIM}"', f"-include{SHIM}", "-", "-o", str(library)]
    subprocess.run(given, input=source + starts, text=True, check=True, capture_output=True)
    return library
