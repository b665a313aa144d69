"""How CUDA kernels are built: which compiler, for which chip, what is kept, and what is said where it does not work."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

pytest.importorskip("torch")

from profkit.kernels.operations.cuda import compiler as cuda_compiler
from profkit.kernels.operations.cuda import launch
from profkit.kernels.operations.cuda.compiler import (
    Compiler,
    DoesNotCompile,
    load_compiler,
)
from profkit.kernels.operations.cuda.launch import CudaModule, program_of
from profkit.kernels.operations.definitions import Unavailable


class FakeCompiler(Compiler):
    """NVRTC 12.9, which counts what it compiles."""

    version = (12, 9)

    def __init__(self) -> None:
        self.compiled = 0

    def compile(self, source: str, headers: object, options: object) -> bytes:
        self.compiled += 1
        return b"program of " + repr(options).encode()


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "profkit" / "kernels"


# ------------------------------------------------------------ what is kept


def test_a_program_is_compiled_once(kept: Path) -> None:
    tool = FakeCompiler()
    first, name = program_of(tool, "flat.cu", ["-DPACK=4"])
    assert program_of(tool, "flat.cu", ["-DPACK=4"]) == (first, name)
    assert tool.compiled == 1
    assert [path.name for path in kept.iterdir()] == [name]


# ------------------------------------------------------------ what is said


def test_no_compiler_says_what_brings_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_compiler, "library_names", lambda: ["libnvrtc.so.nowhere", str(Path(__file__))])
    with pytest.raises(Unavailable, match=r"no libnvrtc\.so") as missing:
        load_compiler.__wrapped__()
    assert "pip install" in str(missing.value.fix)


def test_what_nvrtc_refuses_is_told_in_its_words() -> None:
    try:
        tool = load_compiler()
    except Unavailable as missing:
        pytest.skip(str(missing))
    with pytest.raises(DoesNotCompile, match=r"error.*nope"):
        tool.compile('extern "C" __global__ void k() { nope(); }', {}, ["--gpu-architecture=sm_80"])
    program = tool.compile('extern "C" __global__ void k() {}', {}, ["--gpu-architecture=sm_80"])
    assert program.startswith(b"\x7fELF")


class FakeDriver:
    """A driver that answers `cuModuleLoadData` with one code."""

    def __init__(self, code: int, name: bytes) -> None:
        self._code, self._name = code, name

    def cuModuleLoadData(self, *_: object) -> int:  # noqa: N802
        return self._code

    def cuGetErrorName(self, code: int, text: object) -> int:  # noqa: N802
        ctypes.cast(text, ctypes.POINTER(ctypes.c_char_p))[0] = self._name  # type: ignore[arg-type]
        return 0


def test_a_driver_that_loads_no_program_is_told_by_its_error_and_the_program_forgotten(
    kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launch.ctypes, "CDLL", lambda _: FakeDriver(2, b"CUDA_ERROR_OUT_OF_MEMORY"))
    monkeypatch.setattr(launch, "load_compiler", FakeCompiler)
    with pytest.raises(launch.LaunchFailed, match="cuModuleLoadData: CUDA_ERROR_OUT_OF_MEMORY"):
        CudaModule("flat.cu", (9, 0), {"PACK": 4})
    assert list(kept.iterdir()) == []
