"""The memory that a point needs, before anything of it is made. Pure."""

from __future__ import annotations

from profkit.core.types import GridPoint
from profkit.kernels.operations.check import CHUNK
from profkit.kernels.operations.operation import DTYPES
from profkit.kernels.operations.registry import OPERATIONS

SPARE = 0.9  # of the free memory that a point may take
DOUBLES = 10  # arrays of float64 that the check holds at a time, one part of the batch each
DOUBLE = 8  # bytes
JOINED = 4  # bytes of each element: the parts of the reference are there until they are one


def needed_bytes(point: GridPoint) -> int:
    """Inputs, the gradient from above, a result, the float64 reference, and what the check works with.

    Backward a result is the gradient of x, and the reference has one for it, too; autograd keeps as much as x again.
    """
    elements = point.batch * point.sequence * point.dimension
    tensors = len(OPERATIONS[point.operation].chunked) + (3 if point.direction == "backward" else 1)
    own = elements * (DTYPES[point.dtype].itemsize * tensors + DOUBLE + JOINED)
    return own + DOUBLES * DOUBLE * min(elements, max(CHUNK, point.sequence * point.dimension))


def too_large(point: GridPoint, free: int | None) -> str | None:
    """Why the point does not fit into `free` bytes; None where it does, or nobody knows how many there are."""
    needed = needed_bytes(point)
    if free is None or needed <= SPARE * free:
        return None
    return f"it needs some {needed / 1e9:.2g} GB, and {free / 1e9:.2g} GB are free"
