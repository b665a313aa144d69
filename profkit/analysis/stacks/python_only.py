"""Takes the native frames out of stacks, so that what C code costs is charged to the Python function that called it."""

from __future__ import annotations

from profkit.analysis.stacks.labels import is_python
from profkit.core.types import Frame, Stacks

NATIVE_ONLY = Frame("[no Python frame]")  # threads of a library, the interpreter's own start-up


def python_only(stacks: Stacks) -> Stacks | None:
    """The same samples with Python frames alone; None where no sample has one."""
    weights: dict[tuple[Frame, ...], float] = {}
    any_python = False
    for stack, weight in stacks.weights.items():
        kept = tuple(frame for frame in stack if is_python(frame))
        any_python = any_python or bool(kept)
        key = kept or (NATIVE_ONLY,)
        weights[key] = weights.get(key, 0.0) + weight
    return Stacks(stacks.title, stacks.unit, weights) if any_python else None
