"""Choose the engine for a request: find the device and the library, or refuse and name what is missing."""

from __future__ import annotations

import os
import re
from typing import Any

from benchmark.arguments import Request
from benchmark.engines import BackendName, Engine, NumpyEngine, TorchEngine
from benchmark.refusal import MACHINE, USAGE, Refusal, install

OLDEST_TORCH = (2, 5)  # the first version with grouped heads in scaled_dot_product_attention
OLDEST_MPS = (2, 7)  # before it, they crash on MPS (github.com/pytorch/pytorch/issues/149132)


def choose(request: Request, implementations: tuple[str, ...]) -> tuple[Engine, str, list[str]]:
    """Return the engine, the implementation, and remarks if the choice is not the expected one.

    Checks the devices before anything is computed. Raises Refusal.
    """
    if request.impl == "numpy":
        return _numpy(request), "numpy", []
    torch = _import_torch()
    if isinstance(torch, str):
        if request.impl == "auto" and "numpy" in implementations and request.backend in ("auto", "cpu"):
            remark = f"{torch}, so NumPy computes this (with torch: PROFKIT_TORCH=1 ./setup.sh)"
            return _numpy(request), "numpy", [remark]
        instead = "; or try --backend cpu --impl numpy" if "numpy" in implementations else ""
        raise Refusal(MACHINE, f"{torch}: {install('torch')}{instead}")
    impl = "torch" if request.impl == "auto" else request.impl
    backend = _backend(torch, request.backend)
    if impl == "triton":
        _need_triton(backend)
    # Apple specifies its GPUs by their float32 rate, and does not document how Metal accumulates float16 products.
    dtype = request.dtype or ("float16" if backend == "cuda" else "float32")
    return TorchEngine(torch, backend, dtype), impl, []


def _numpy(request: Request) -> Engine:
    if request.backend not in ("auto", "cpu"):
        raise Refusal(USAGE, f"NumPy computes on the CPU only, not on {request.backend}; try --backend cpu")
    if request.dtype not in (None, "float32"):
        raise Refusal(USAGE, f"NumPy computes in float32 only here, not in {request.dtype}; try --impl torch")
    try:
        return NumpyEngine()
    except ImportError:
        raise Refusal(MACHINE, f"NumPy is not installed: {install('numpy')}") from None


def _import_torch() -> Any:
    """Return torch, or a clause that states why it cannot be imported."""
    try:
        import torch
    except ModuleNotFoundError as error:
        return "torch is not installed" if error.name == "torch" else f"torch does not load ({error})"
    except (ImportError, OSError) as error:  # one of its own libraries is missing or not for this system
        return f"torch does not load ({str(error).splitlines()[0]})"
    return _too_old(torch, OLDEST_TORCH) or torch


def _too_old(torch: Any, oldest: tuple[int, int]) -> str | None:
    found = tuple(map(int, re.findall(r"\d+", torch.__version__)[:2]))
    if found >= oldest:
        return None
    return f"torch {torch.__version__} is too old, {'.'.join(map(str, oldest))} is needed"


def _backend(torch: Any, requested: str) -> BackendName:
    missing: dict[BackendName, str | None] = {"cuda": _no_cuda(torch), "mps": _no_mps(torch), "cpu": None}
    if requested == "auto":
        return next(name for name, why in missing.items() if why is None)
    backend: BackendName = "cuda" if requested == "cuda" else "mps" if requested == "mps" else "cpu"
    if (why := missing[backend]) is not None:
        raise Refusal(MACHINE, f"no {backend.upper()} device here: {why}; try --backend cpu")
    return backend


def _no_cuda(torch: Any) -> str | None:
    if torch.cuda.is_available():
        return None
    if torch.version.cuda is None:
        return f"torch {torch.__version__} has no CUDA"
    return f"torch {torch.__version__} finds no GPU that it can use (does nvidia-smi?)"


def _no_mps(torch: Any) -> str | None:
    if torch.backends.mps.is_available():
        return _too_old(torch, OLDEST_MPS)
    if not torch.backends.mps.is_built():
        return f"torch {torch.__version__} has no MPS, it needs a Mac with Apple silicon"
    return (
        f"torch {torch.__version__} finds no GPU that it can use (it needs Apple silicon, macOS 14 or newer, and a"
        " session that may use Metal)"
    )


def _need_triton(backend: str) -> None:
    if backend == "mps":
        raise Refusal(USAGE, "Triton has no MPS backend; try --impl torch")
    if backend == "cpu" and os.environ.get("TRITON_INTERPRET") != "1":
        raise Refusal(
            USAGE,
            "on the CPU, Triton kernels run only in Triton's interpreter, slowly: set TRITON_INTERPRET=1 and "
            "take small sizes, or try --impl torch",
        )
    try:
        import triton  # noqa: F401
    except (ImportError, OSError) as error:
        raise Refusal(MACHINE, f"Triton cannot be imported ({error}): {install('triton')}") from None
