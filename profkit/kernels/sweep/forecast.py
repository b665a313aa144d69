"""How long cases take, from what cases before them took. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from profkit.core.types import CaseResult, GridPoint
from profkit.kernels.sweep.grid import Grid
from profkit.kernels.sweep.wish import Wish

ENOUGH = 4  # cases of an implementation after which what it took says more than what others took elsewhere
PRIOR_SHARE = 0.1
WORKER_SECONDS = {"cuda": 12.0, "cpu": 5.0}  # until a worker has loaded torch and knows its roofs
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


def seconds_left(
    done: Iterable[CaseResult],
    left: Sequence[tuple[GridPoint, str]],
    device: str = "cuda",
    wish: Wish = Wish(),  # noqa: B008 - frozen
) -> float:
    """Seconds of one worker for the cases that are left.

    A case is taken for a fixed cost and one by its work: what that implementation took so far, without its first case,
    in which things are loaded. What cases like it took elsewhere counts as a tenth of what is left: the first ones
    of a grid are small, and say little of the large.
    """
    taken: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for result in done:
        taken[result.implementation].append((work(result.point), result.spent))
    ahead: dict[str, float] = defaultdict(float)
    for point, name in left:
        ahead[name] += work(point)
    lines = {
        name: _line(pairs[1:], PRIOR_SHARE * ahead[name], prior(name, device, wish)[1])
        for name, pairs in taken.items()
        if len(pairs) > ENOUGH
    }
    total = 0.0
    for point, name in left:
        fixed, slope = lines.get(name) or prior(name, device, wish)
        total += max(0.0, fixed + slope * work(point))
    for name in {name for _, name in left}.difference(taken):
        total += FIRST_SECONDS.get(name, 0.0)
    return total


def planned_seconds(grid: Grid, device: str, wish: Wish, workers: int = 1) -> float:
    """Seconds that a whole sweep may take, before anything of it is known."""
    cases = [(point, name) for point in grid.points() for name in grid.who(point.operation)]
    return WORKER_SECONDS[device] + seconds_left((), cases, device, wish) / max(1, workers)


def prior(name: str, device: str, wish: Wish) -> Line:
    """What a case of that implementation takes as far as can be said before: fixed seconds, and seconds per element."""
    known: Mapping[str, Line] = _CUDA if device == "cuda" else _CPU
    fixed, slope = known.get(name, known[""])
    if device == "cpu":  # the clock of a processor is rarely so quiet that a case ends before its budget
        fixed += wish.budget
    return fixed, slope


def work(point: GridPoint) -> float:
    """Elements of x, each counted as what it costs."""
    weight = WEIGHTS.get(point.operation, 1.0)
    if point.direction == "backward":
        weight = BACKWARD * max(weight, LEAST_BACKWARD)
    return weight * point.batch * point.sequence * point.dimension


def _line(pairs: Sequence[tuple[float, float]], trusted: float, slope: float) -> Line:
    """The least that a case took is the fixed part; the rest of all that they took goes by their work.

    `slope` is what is believed beforehand, as if it had been seen over as much work as `trusted`. Least squares would
    follow the largest cases, which cost more than in proportion, and call small ones free.
    """
    fixed = min(seconds for _, seconds in pairs)
    whole = sum(size for size, _ in pairs)
    rest = sum(seconds - fixed for _, seconds in pairs)
    return fixed, (rest + trusted * slope) / (whole + trusted) if whole + trusted else 0.0
