"""Create inputs and read results with an array library: torch on a device, or NumPy on the CPU."""

# ruff: noqa: D102 (the base class documents the methods)

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Literal, TypeAlias

from benchmark.workload import Array

SEED = 20
BackendName: TypeAlias = Literal["cuda", "mps", "cpu"]


class Engine(ABC):
    """Use one array library on one device with one dtype; `library` is its name in the output."""

    library: str
    backend: BackendName
    dtype: str

    @abstractmethod
    def draw(self, *shape: int, scale: float = 1.0, mean: float = 0.0) -> Array:
        """Return normally distributed random numbers, the same in every run on the same backend."""

    @abstractmethod
    def exact(self, array: Array) -> Array:
        """Return the array's values as a float64 NumPy array, exactly."""

    @abstractmethod
    def memory(self) -> int | None:
        """Return the bytes of memory available for arrays, or None if they are not known."""

    @property
    def wait(self) -> Callable[[], object] | None:
        """Return a function that waits for the device's pending work; None if there never is any."""
        return None

    def computing(self) -> AbstractContextManager[object]:
        """Return the context manager in which everything is computed."""
        return nullcontext()


class NumpyEngine(Engine):
    """Use NumPy in float32 on the CPU."""

    backend: BackendName = "cpu"
    dtype = "float32"

    def __init__(self) -> None:
        import numpy

        self.library = f"NumPy {numpy.__version__}"
        self._random = numpy.random.default_rng(SEED)

    def draw(self, *shape: int, scale: float = 1.0, mean: float = 0.0) -> Array:
        import numpy

        values = self._random.standard_normal(shape, dtype=numpy.float32)
        values *= scale
        values += mean
        return values

    def exact(self, array: Array) -> Array:
        return array.astype("float64")

    def memory(self) -> int | None:
        return _installed_memory()


class TorchEngine(Engine):
    """Use torch on a CUDA, MPS or CPU device."""

    def __init__(self, torch: Any, backend: BackendName, dtype: str) -> None:
        self.library, self.backend, self.dtype = f"torch {torch.__version__}", backend, dtype
        self._torch = torch
        self._random = torch.Generator(backend).manual_seed(SEED)

    def draw(self, *shape: int, scale: float = 1.0, mean: float = 0.0) -> Array:
        values = self._torch.randn(shape, generator=self._random, device=self.backend)
        return values.mul_(scale).add_(mean).to(getattr(self._torch, self.dtype))

    def exact(self, array: Array) -> Array:
        # through float32: MPS has no float64, NumPy no bfloat16
        return array.float().cpu().numpy().astype("float64")

    def memory(self) -> int | None:
        if self.backend == "cuda":
            return int(self._torch.cuda.mem_get_info()[0])
        if self.backend == "mps":
            return int(self._torch.mps.recommended_max_memory())
        return _installed_memory()

    @property
    def wait(self) -> Callable[[], object] | None:
        wait: Callable[[], object] | None = None
        if self.backend != "cpu":
            wait = getattr(self._torch, self.backend).synchronize
        return wait

    def computing(self) -> AbstractContextManager[object]:
        mode: AbstractContextManager[object] = self._torch.inference_mode()
        return mode


def _installed_memory() -> int | None:
    import os

    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return None
