"""Evaluation of kernels, for users' own files and programs: is a kernel right, and is it faster than PyTorch?

`kernel` registers one in a file for `profkit evaluate FILE`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from profkit.kernels.evaluation.sources.registrations import kernel as kernel
    from profkit.kernels.evaluation.sources.source import LoadError as LoadError
    from profkit.kernels.evaluation.sources.strings import (
        compile_kernel_from_string as compile_kernel_from_string,
    )

_PLACES = {
    "kernel": "profkit.kernels.evaluation.sources.registrations",
    "LoadError": "profkit.kernels.evaluation.sources.source",
    "compile_kernel_from_string": "profkit.kernels.evaluation.sources.strings",
}


def __getattr__(name: str) -> Any:
    """What a user's file imports: loaded when first used."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_PLACES[name]), name)
