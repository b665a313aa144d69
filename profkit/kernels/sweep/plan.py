"""What a sweep would measure, how long that takes and what memory it needs, before any of it is done. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from profkit.core.formatting import format_quantity, plural
from profkit.core.types import CaseResult, GridPoint
from profkit.execution.places.kinds import ExecutionPlace
from profkit.kernels.operations.check import CHUNK
from profkit.kernels.operations.operation import DTYPES
from profkit.kernels.operations.registry import OPERATIONS
from profkit.kernels.sweep.request import SweepGrid, SweepRequest, TimingOptions

SCHEMA = "profkit.sweep-plan/1"
SPARE = 0.9  # of the free memory that a point may take
DOUBLES = 10  # arrays of float64 that the check holds at a time, one part of the batch each
DOUBLE = 8  # bytes
JOINED = 4  # bytes of each element: the parts of the reference are there until they are one
ENOUGH = 4  # cases of an implementation after which what they took says more than what is predicted
WORKER_SECONDS = {
    "cuda": 12.0,
    "mps": 5.0,
    "cpu": 5.0,
}  # until a worker has loaded torch and has measured its ceilings
FIRST_SECONDS = {"torch.compile": 10.0}  # of the first case: Inductor is loaded
# What an element costs beside one of GELU, the check in float64 included, forward (measured on a CPU over the default
# grid's sizes): of a loss one number is compared, and not an array, but backward its gradient is one, too.
WEIGHTS = {"LayerNorm": 1.2, "GELU": 1.0, "Swish": 0.55, "MSE": 0.24, "CrossEntropy": 0.18}
BACKWARD, LEAST_BACKWARD = 2.0, 0.55
# Fixed seconds and seconds per such element. cuda: an H200 took 228 s for the 2,240 cases of the default grid at 1 %,
# compiling in it; cpu: the check in float64 and the timing, on two cores.
_CUDA = {"torch.compile": (0.24, 3e-10), "": (0.045, 3e-10)}
_CPU = {"torch.compile": (1.5, 1e-7), "": (0.02, 1e-7)}

Line = tuple[float, float]


def plan_sweep(request: SweepRequest, places: Sequence[ExecutionPlace] = ()) -> dict[str, Any]:
    """The plan as plain data. `seconds` and `bytes` are estimates; `free_bytes` is None where nobody tells.

    `places`: on which other machines; none: here. They are not asked, so that nothing is known of their memory.
    """
    grid = request.grid
    points = grid.points()
    largest = max(points, key=needed_bytes)
    free = None if places else _free_memory(request)
    workers = max(1, len(places)) * (1 if request.serial else max(1, len(request.gpus)))
    skipped = [point for point in points if too_large(point, free) is not None]
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
        "precision": request.timing.precision,
        "budget": request.timing.budget,
        "seconds": planned_seconds(grid, request.device, request.timing, workers),
        "largest": largest.name,
        "bytes": needed_bytes(largest),
        "free_bytes": free,
        "too_large": sum(len(grid.implementations_of(point.operation)) for point in skipped),
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


class TimeLeft:
    """Seconds of one worker for the cases that are `left`, by what those took that are `settled` meanwhile.

    A case is predicted by its work. What an implementation took so far, without its first case, in which things are
    loaded, scales what is predicted of the rest. Only sums are kept: a sweep may have a million cases.
    """

    def __init__(self, left: Iterable[tuple[GridPoint, str]], device: str, timing: TimingOptions) -> None:
        self._device, self._timing = device, timing
        self._left: dict[str, float] = defaultdict(float)  # predicted seconds, by implementation
        self._took: dict[str, tuple[int, float, float]] = {}  # cases, their seconds, and those predicted
        for point, name in left:
            self._left[name] += self._predict(point, name)

    def settle(self, result: CaseResult) -> None:
        """One of them is settled."""
        self._left[result.implementation] -= self._predict(result.point, result.implementation)
        self.learn(result)

    def learn(self, result: CaseResult) -> None:
        """A case took so long."""
        name = result.implementation
        if name not in self._took:
            self._took[name] = 0, 0.0, 0.0
            return
        count, spent, predicted = self._took[name]
        predicted += self._predict(result.point, name)
        self._took[name] = count + 1, spent + result.spent, predicted

    @property
    def seconds(self) -> float:
        """As many as are left."""
        total = 0.0
        for name, left in self._left.items():
            count, spent, predicted = self._took.get(name, (0, 0.0, 0.0))
            total += max(0.0, left) * (spent / predicted if count >= ENOUGH else 1.0)
            if left > 0 and name not in self._took:
                total += FIRST_SECONDS.get(name, 0.0)
        return total

    def _predict(self, point: GridPoint, name: str) -> float:
        fixed, slope = prior_cost(name, self._device, self._timing)
        return fixed + slope * work_of(point)


def seconds_left(
    done: Iterable[CaseResult],
    left: Iterable[tuple[GridPoint, str]],
    device: str = "cuda",
    timing: TimingOptions = TimingOptions(),  # noqa: B008 - frozen
) -> float:
    """Seconds of one worker for the cases that are left, by those that are done: see TimeLeft."""
    time_left = TimeLeft(left, device, timing)
    for result in done:
        time_left.learn(result)
    return time_left.seconds


def planned_seconds(grid: SweepGrid, device: str, timing: TimingOptions, workers: int = 1) -> float:
    """Seconds that a whole sweep may take, before anything of it is known."""
    cases = [(point, name) for point in grid.points() for name in grid.implementations_of(point.operation)]
    return WORKER_SECONDS[device] + seconds_left((), cases, device, timing) / max(1, workers)


def prior_cost(name: str, device: str, timing: TimingOptions) -> Line:
    """What a case of that implementation takes as far as can be said before: fixed seconds, and seconds per element."""
    known: Mapping[str, Line] = _CUDA if device == "cuda" else _CPU
    fixed, slope = known.get(name, known[""])
    if device != "cuda":  # the clock of a processor is rarely so quiet that a case ends before its budget
        fixed += timing.budget
    return fixed, slope


def work_of(point: GridPoint) -> float:
    """Elements of x, each counted as what it costs."""
    weight = WEIGHTS.get(point.operation, 1.0)
    if point.direction == "backward":
        weight = BACKWARD * max(weight, LEAST_BACKWARD)
    return weight * point.batch * point.sequence * point.dimension
