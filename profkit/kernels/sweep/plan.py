"""What a sweep would measure, how long that takes and what memory it needs, before any of it is done."""

from __future__ import annotations

from typing import Any

from profkit.core.formatting import plural, quantity
from profkit.kernels.sweep.forecast import planned_seconds
from profkit.kernels.sweep.room import needed_bytes, too_large
from profkit.kernels.sweep.story import SweepRequest, minutes

SCHEMA = "profkit.sweep-plan/1"


def plan_of(request: SweepRequest) -> dict[str, Any]:
    """The plan as plain data. `seconds` and `bytes` are estimates; `free_bytes` is None where nobody tells."""
    grid = request.grid
    points = grid.points()
    largest = max(points, key=needed_bytes)
    free = _free(request)
    skipped = [point for point in points if too_large(point, free) is not None]
    return {
        "schema": SCHEMA,
        "device": request.device,
        "workers": max(1, len(request.gpus)),
        "points": len(points),
        "cases": grid.cases,
        "operations": list(grid.operations),
        "implementations": list(grid.implementations),
        "batch": list(grid.batches),
        "sequence": list(grid.sequences),
        "dimension": list(grid.dimensions),
        "dtype": list(grid.dtypes),
        "direction": list(grid.directions),
        "precision": request.wish.precision,
        "budget": request.wish.budget,
        "seconds": planned_seconds(grid, request.device, request.wish, len(request.gpus)),
        "largest": largest.name,
        "bytes": needed_bytes(largest),
        "free_bytes": free,
        "too_large": sum(len(grid.who(point.operation)) for point in skipped),
    }


def _free(request: SweepRequest) -> int | None:
    if request.device == "cpu":
        from profkit.hardware.container import available_memory

        free = available_memory()
        return None if free is None else free // max(1, len(request.gpus))
    from profkit.hardware.gpu import read_gpus

    return min((gpu.memory_bytes for gpu in read_gpus() if gpu.memory_bytes), default=None)


def plan_text(plan: dict[str, Any]) -> str:
    """The plan for a terminal."""
    names = ("operations", "implementations", "batch", "sequence", "dimension", "dtype", "direction")
    workers = f" by {plan['workers']} workers" if plan["workers"] > 1 else ""
    free = f", of {quantity(float(plan['free_bytes']), 'B')}" if plan["free_bytes"] is not None else ""
    lines = [
        f"{plural(plan['cases'], 'case')} at {plural(plan['points'], 'point')} on {plan['device']}{workers}: "
        f"about {minutes(plan['seconds'])}",
        *(f"  {name:<16} {', '.join(map(str, plan[name]))}" for name in names),
        f"  {'memory':<16} {quantity(float(plan['bytes']), 'B')}{free}, for {plan['largest']}",
        f"  {'timing':<16} each median to ± {100 * plan['precision']:g} %, {plan['budget']:g} s per case at most",
    ]
    if plan["too_large"]:
        lines.append(f"  {plural(plan['too_large'], 'case')} will not fit into the memory, and be skipped")
    return "\n".join(lines) + "\n"
