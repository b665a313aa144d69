"""Versions of what a workload runs on, in its own process: only what it had loaded, and nothing is imported for it."""

from __future__ import annotations

import sys

NAMES = ("numpy", "torch", "triton", "jax", "cupy")  # what brings kernels or a compiler of its own
_LONGEST = 60  # characters of a version


def loaded_packages() -> dict[str, str]:
    """`{"python": "3.11.7", "torch": "2.11.0"}`; a module that tells no version is left out."""
    found = {"python": ".".join(map(str, sys.version_info[:3]))}
    name = sys.implementation.name
    if name != "cpython":
        found["python"] = f"{name} {found['python']}"
    for name in NAMES:
        version = getattr(sys.modules.get(name), "__version__", None)
        if version is not None:
            found[name] = str(version)[:_LONGEST]  # torch's is a text of a type of its own
    return found
