"""How often a trace saw the work: its sums are held against those of other runs for one iteration."""

from __future__ import annotations

from profkit.core.types import RunDocument

_FOLLOWED = 0.9  # of the GPU time: kernels that fill it must be launched equally often in every iteration


def traced_iterations(document: RunDocument) -> int:
    """Iterations of what counts in the trace; 1 where nothing tells, and the whole trace is one.

    A benchmark is told by the plan how many to run; of a marked region its entries count; a loop without marks was
    counted by what repeats in it. That a plan was followed is checked by the launches: kernels of nearly all the time
    must have run a whole number of times in each iteration.
    """
    trace = document.trace
    if trace is None:
        return 1
    if not trace.marked:
        return trace.repeats or 1
    asked = _asked(document)
    if trace.tool == "xctrace":
        return _of_metal(document, asked)
    if asked is not None and _followed(document, asked):
        return asked
    entries = [found.entries for found in trace.ranges if found.domain == "profkit"]
    return max(entries, default=0) or 1


def _of_metal(document: RunDocument, asked: int | None) -> int:
    """What a benchmark was told to run, else the entries of the region that were found in the trace.

    That the benchmark followed cannot be checked by launches: how many calls one encoder holds is torch's to say.
    """
    if asked is not None and any(timing.kind == "benchmark" for timing in document.timings):
        return asked
    return (document.metal.entries if document.metal is not None else 0) or 1


def _followed(document: RunDocument, asked: int) -> bool:
    """Whether what was traced ran `asked` times. Of what is no benchmark the workload says how often."""
    if document.timings and not any(timing.kind == "benchmark" for timing in document.timings):
        return False
    kernels = document.trace.kernels if document.trace is not None else ()
    total = sum(timed.total for timed in kernels)
    even = sum(timed.total for timed in kernels if timed.launches % asked == 0)
    return total > 0 and even >= _FOLLOWED * total


def _asked(document: RunDocument) -> int | None:
    """The iterations that the last step of the trace was told to run; None where it was told none or left out."""
    told = [
        step.directive.iterations
        for planned in (document.plan.passes if document.plan is not None else ())
        if planned.name == "trace" and planned.skipped is None
        for step in planned.steps
        if step.directive is not None and step.directive.iterations
    ]
    return told[-1] if told else None
