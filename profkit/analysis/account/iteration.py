"""The loop that a program repeats: which one is its step where nothing is marked, and whether iterations grow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from profkit.analysis.stacks.line_counts import count_of, is_in_loop
from profkit.core.types import (
    CodeSpot,
    LineCount,
    LineSamples,
    LoopGrowth,
    Place,
    RunDocument,
    SampledLoop,
    SampledTime,
)

MIN_ITERATIONS = 3
MIN_SECONDS = 1e-4  # of an iteration: what is shorter is no step that a person thinks of
GROWS = 1.5  # times as long as in the first quarter of its iterations
STEADY = 0.97  # of the quarter before: less is no growth


@dataclass(frozen=True)
class RepeatedLoop:
    """A loop whose iterations were counted: how many, and the seconds of all together in a normal run."""

    loop: SampledLoop
    count: LineCount
    seconds: float

    @property
    def place(self) -> Place:
        """Return the line of the loop."""
        return Place(function=self.loop.function, file=self.loop.file, line=self.loop.line)


def repetitions(document: RunDocument, wall: float) -> list[RepeatedLoop]:
    """Return the counted loops with most of a program's time, the outer ones first; `wall`: seconds of the run."""
    sampled = _sampled(document)
    if sampled is None or any(timing.kind != "process" for timing in document.timings):
        return []
    found = []
    for loop in sampled.loops:
        count = count_of(document, loop.file, loop.first)
        if count is not None and count.executions >= MIN_ITERATIONS:
            found.append(RepeatedLoop(loop, count, wall * min(1.0, loop.seconds / sampled.wall)))
    return found


def step_of(document: RunDocument, found: Sequence[RepeatedLoop]) -> RepeatedLoop | None:
    """Return the innermost loop with iterations that are long enough to be looked at.

    A loop over the layers of a model is none: its iteration is a part of what a model does for one input.
    """
    long = [loop for loop in found if loop.seconds >= MIN_SECONDS * loop.count.executions]
    steps = [loop for loop in long if loop is long[0] or not _is_of_layers(document, loop.loop)]
    return steps[-1] if steps else None


_CALLS_MODULE = "/torch/nn/modules/module.py"
_FORWARD = frozenset({"forward", "__call__"})


def _is_of_layers(document: RunDocument, loop: SampledLoop) -> bool:
    """Return whether a loop is in the method with which a module of torch, flax or the program's own is called."""
    sampled = _sampled(document)
    callers = [
        caller.file or ""
        for line in ((*sampled.lines, *sampled.outer) if sampled is not None else ())
        if (line.file, line.function) == (loop.file, loop.function)
        for caller in line.callers
    ]
    by_torch = any(file.replace("\\", "/").endswith(_CALLS_MODULE) for file in callers)
    return by_torch or loop.function.rpartition(".")[2] in _FORWARD


def growth_of(found: Sequence[RepeatedLoop]) -> LoopGrowth | None:
    """Return how the iterations of a loop grow from one eighth of them to the next; None where they do not."""
    for loop in found:
        parts = loop.count.parts
        mean = sum(parts) / len(parts) if parts else 0.0
        # Other programs make one eighth or another longer: quarters are steadier.
        quarters = [sum(parts[n : n + 2]) for n in range(0, len(parts), 2)]
        grows = mean > 0 and all(after >= STEADY * before for before, after in pairwise(quarters))
        # What is shown are the first and the last eighth: they have to say the same.
        if grows and quarters[-1] >= GROWS * quarters[0] and parts[-1] >= GROWS * parts[0]:
            scale = loop.seconds / loop.count.executions / mean  # the pass that counts slows them down
            return LoopGrowth(loop.place, loop.count.executions, parts[0] * scale, parts[-1] * scale)
    return None


def share_inside(document: RunDocument, loop: SampledLoop, spot: CodeSpot) -> float:
    """Return which part (0..1) of a place's time lies under the loop."""
    if spot.kind == "import":
        return 0.0
    where = spot.where
    line = _line_at(document, where.function, where.file, where.line)
    if line is None:  # a function apart from the line that calls it
        caller = spot.callers[0] if spot.callers else None
        line = _line_at(document, caller.function, caller.file, caller.line) if caller is not None else None
    if line is None:
        return loop.share
    if is_in_loop(loop, line.function, line.file, line.line):
        return 1.0
    inside = sum(
        caller.value for caller in line.within if is_in_loop(loop, caller.function, caller.file, caller.line)
    )
    return min(1.0, inside / line.main_wall) if line.main_wall > 0 else loop.share


def _line_at(
    document: RunDocument, function: str | None, file: str | None, line: int | None
) -> LineSamples | None:
    sampled = _sampled(document)
    found = (
        sample
        for sample in (sampled.lines if sampled is not None else ())
        if (sample.function, sample.file, sample.line) == (function, file, line)
    )
    return next(found, None)


def _sampled(document: RunDocument) -> SampledTime | None:
    return next((sampled for sampled in document.sampled if not sampled.native and sampled.wall > 0), None)
