"""What a sweep would measure, how long that takes and what memory it needs, before any of it is done. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from profkit.core.formatting import format_quantity, plural
from profkit.core.types import GridPoint
from profkit.execution.places.place import ExecutionPlace
from profkit.kernels.operations.check import CHUNK
from profkit.kernels.operations.definitions import DTYPES
from profkit.kernels.operations.pytorch import COMPILED
from profkit.kernels.operations.registry import OPERATIONS
from profkit.kernels.sweep.request import SweepRequest

SCHEMA = "profkit.sweep-plan/1"
SPARE = 0.9  # of the free memory that a point may take
DOUBLES = 10  # arrays of float64 that the check holds at a time, one part of the batch each
DOUBLE = 8  # bytes
JOINED = 4  # bytes of each element: the parts of the reference are there until they are one
WORKER_SECONDS = 10.0  # until a worker has loaded torch and has measured its ceilings
# Of an H200 at 1 %, and of Inductor for a shape that it has not compiled before. The clock of a processor is rarely so
# quiet that a case ends before its budget.
CASE_SECONDS, COMPILE_SECONDS, CHECK_SECONDS = 0.1, 0.7, 0.05


def plan_sweep(request: SweepRequest, places: Sequence[ExecutionPlace] = ()) -> dict[str, Any]:
    """The plan as plain data. `seconds` and `bytes` are estimates; `free_bytes` is None where nobody tells.

    `places`: on which other machines; none: here. They are not asked, so that nothing is known of their memory.
    """
    grid, timing = request.grid, request.timing
    points = grid.points()
    largest = max(points, key=needed_bytes)
    free = None if places else _free_memory(request)
    workers = max(1, len(places)) * max(1, len(request.gpus))
    skipped = [point for point in points if too_large(point, free) is not None]
    each = CASE_SECONDS if request.device == "cuda" else timing.budget + CHECK_SECONDS
    compiled = len(points) if COMPILED in grid.implementations else 0
    return {
        "schema": SCHEMA,
        "device": request.device,
        "workers": workers,
        "points": len(points),
        "cases": grid.cases,
        "operations": list(grid.operations),
        "implementations": list(grid.implementations),
        "batch": list(grid.batches),
        "sequence": list(grid.sequences),
        "dimension": list(grid.dimensions),
        "dtype": list(grid.dtypes),
        "direction": list(grid.directions),
        "precision": timing.precision,
        "budget": timing.budget,
        "seconds": WORKER_SECONDS + (grid.cases * each + compiled * COMPILE_SECONDS) / workers,
        "largest": largest.name,
        "bytes": needed_bytes(largest),
        "free_bytes": free,
        "too_large": sum(len(grid.implementations_of(point.operation)) for point in skipped),
        "costs": [place.cost for place in places if place.cost is not None],
    }


def _free_memory(request: SweepRequest) -> int | None:
    if request.device != "cuda":  # a Mac's GPU has the memory of its processor
        from profkit.hardware.machine import available_memory

        free = available_memory()
        return None if free is None else free // max(1, len(request.gpus))
    from profkit.hardware.gpu import read_gpus

    return min((gpu.memory_bytes for gpu in read_gpus() if gpu.memory_bytes), default=None)


def plan_text(plan: dict[str, Any]) -> str:
    """The plan for a terminal."""
    names = ("operations", "implementations", "batch", "sequence", "dimension", "dtype", "direction")
    workers = f" by {plan['workers']} workers" if plan["workers"] > 1 else ""
    free = f", of {format_quantity(float(plan['free_bytes']), 'B')}" if plan["free_bytes"] is not None else ""
    lines = [
        f"{plural(plan['cases'], 'case')} at {plural(plan['points'], 'point')} on {plan['device']}{workers}: "
        f"about {format_duration(plan['seconds'])}",
        *(f"  {name:<16} {', '.join(map(str, plan[name]))}" for name in names),
        f"  {'memory':<16} {format_quantity(float(plan['bytes']), 'B')}{free}, for {plan['largest']}",
        f"  {'timing':<16} each median to ± {100 * plan['precision']:g} %, {plan['budget']:g} s per case at most",
    ]
    if plan["too_large"]:
        lines.append(f"  {plural(plan['too_large'], 'case')} will not fit into the memory, and be skipped")
    lines += [f"  {'cost':<16} {cost}" for cost in plan["costs"]]
    return "\n".join(lines) + "\n"


def format_duration(seconds: float) -> str:
    """`40 s`, `3 min`, `2.5 h`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def needed_bytes(point: GridPoint) -> int:
    """Inputs, the gradient from above, a result, the float64 reference, and what the check works with.

    Backward a result is the gradient of x, and the reference has one for it, too; autograd keeps as much as x again.
    """
    tensors = len(OPERATIONS[point.operation].chunked) + (3 if point.direction == "backward" else 1)
    own = point.elements * (DTYPES[point.dtype].itemsize * tensors + DOUBLE + JOINED)
    return own + DOUBLES * DOUBLE * min(point.elements, max(CHUNK, point.sequence * point.dimension))


def too_large(point: GridPoint, free: int | None) -> str | None:
    """Why the point does not fit into `free` bytes; None where it does, or nobody knows how many there are."""
    needed = needed_bytes(point)
    if free is None or needed <= SPARE * free:
        return None
    return f"it needs some {needed / 1e9:.2g} GB, and {free / 1e9:.2g} GB are free"
