"""Where the time of a program goes: one short list of places, made once from all that was sampled and counted.

Shares are of the wall time of the program's first process and add up to 1. While its main thread waits for other
threads or processes of the program, the time belongs to the lines that those run, as far as they run.
"""

from __future__ import annotations

from collections.abc import Mapping

from profkit.analysis.hot_spots.native import native_spots, program_spots
from profkit.analysis.hot_spots.python import python_spots
from profkit.analysis.hot_spots.rows import MAX_SPOTS, MIN_SHARE
from profkit.core.types import CodeSpot, Place, RunDocument, SpotKind

# The kinds of a place that executes code: with the name of what is called the text is `runs: NAME`.
RUNS_CODE: tuple[SpotKind, ...] = ("python", "library", "native")
# What a place does, in words.
DOES: Mapping[SpotKind, str] = {
    "python": "runs Python code",
    "library": "runs library code",
    "native": "runs compiled code",
    "gpu": "computes on the GPU",
    "import": "imports",
    "sleep": "sleeps",
    "lock": "waits for a lock",
    "workers": "waits for its workers",
    "network": "waits for the network",
    "await": "awaits one thing at a time",
    "input": "waits for input",
    "child": "waits for another process",
    "pipe": "waits at a pipe",
    "file": "reads and writes files",
    "sync": "waits for the disk",
    "waiting": "waits",
}


def hot_spots(document: RunDocument) -> tuple[CodeSpot, ...]:
    """Return the places of a run, the largest share first; empty if nothing was sampled."""
    python = next((sampled for sampled in document.sampled if not sampled.native and sampled.wall > 0), None)
    native = next((sampled for sampled in document.sampled if sampled.native and sampled.cpu > 0), None)
    if python is not None and (python.lines or native is None):
        spots, wall = python_spots(document, python)
        if native is not None:
            spots += program_spots(document, native, 1 - sum(spot.share for spot in spots), wall)
    elif native is not None:
        spots, wall = native_spots(document, native)
    else:
        spots, wall = _device_spots(document)
    if wall <= 0:
        return ()
    rest = max(0.0, 1 - sum(spot.share for spot in spots))
    return (*sorted(spots, key=lambda spot: -spot.share), CodeSpot(rest, rest * wall, "rest"))


def _device_spots(document: RunDocument) -> tuple[list[CodeSpot], float]:
    """Return what the devices of a program did whose host was not sampled: kernels by the line that they belong to."""
    trace, split = document.trace, document.time_split
    if trace is None or split is None or document.metal is not None or split.wall <= 0:
        return [], 0.0
    if trace.span is None and trace.busy is None:  # kernels that were replayed one by one
        return [], 0.0
    seconds: dict[Place, float] = {}
    for time in trace.kernels:
        name = None if time.file is not None else time.kernel.name
        place = Place(kernel=name, function=time.function, file=time.file, line=time.line)
        seconds[place] = seconds.get(place, 0.0) + time.total
    known = {place: total for place, total in seconds.items() if total >= MIN_SHARE * split.wall}
    if not known:
        return [], 0.0
    # Kernels of several streams or devices run side by side.
    scale = min(1.0, split.wall / sum(known.values()))
    spots = [
        CodeSpot(scale * total / split.wall, scale * total, "gpu", place) for place, total in known.items()
    ]
    return sorted(spots, key=lambda spot: -spot.share)[:MAX_SPOTS], split.wall
