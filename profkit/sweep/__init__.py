"""Sweeps: operations over shapes, dtypes and implementations, each case checked, timed, stored and compared.

For users' own files: `implementation` registers one, `Unavailable` says that it is not available here.
`run_comprehensive_benchmark` is the sweep as one call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from profkit.kernels.operations.registry import Unavailable as Unavailable
    from profkit.kernels.operations.registry import implementation as implementation
    from profkit.sweep.api import run_comprehensive_benchmark as run_comprehensive_benchmark

_PLACES = {
    "implementation": "profkit.kernels.operations.registry",
    "Unavailable": "profkit.kernels.operations.registry",
    "run_comprehensive_benchmark": "profkit.sweep.api",
}


def __getattr__(name: str) -> Any:
    """Load on first use what a user's file imports, and the sweep as a call."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_PLACES[name]), name)
