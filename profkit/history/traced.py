"""How often a trace saw the work: its sums are held against those of other runs for one iteration."""

from __future__ import annotations

from profkit.model import RunDocument

_DECIDES = 0.9  # of the GPU time: kernels that fill it must be launched equally often in every iteration


def traced_iterations(document: RunDocument) -> int:
    """Iterations within what was traced; 1 where the workload itself says how much that is.

    A benchmark is told by the plan how many to run; a loop without marks was counted. That a plan was followed is
    checked by the launches: nearly all kernels must have run a whole number of times in each.
    """
    trace = document.trace
    if trace is None:
        return 1
    if not trace.marked:
        return trace.repeats or 1
    asked = _asked(document)
    total = sum(timed.total for timed in trace.kernels)
    if asked is None or total <= 0:
        return 1
    even = sum(timed.total for timed in trace.kernels if timed.launches % asked == 0)
    return asked if even >= _DECIDES * total else 1


def _asked(document: RunDocument) -> int | None:
    if document.plan is None:
        return None
    told = [
        step.directive.iterations
        for planned in document.plan.passes
        if planned.name == "trace"
        for step in planned.steps
        if step.directive is not None and step.directive.iterations
    ]
    return told[-1] if told else None
