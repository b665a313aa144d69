"""How many iterations a trace saw, so that two traces of different lengths can be held against each other."""

from __future__ import annotations

from profkit.model import RunDocument


def traced_iterations(document: RunDocument) -> float:
    """Iterations of what counts in the trace; 1 where nothing tells, and the whole trace is one.

    Of a benchmark as many as the plan asked for, of a marked region its entries, else how often what repeats was seen.
    """
    trace = document.trace
    if trace is None:
        return 1.0
    if trace.marked:
        asked = _asked(document)
        if asked is not None and any(timing.kind == "benchmark" for timing in document.timings):
            return float(asked)
        entries = [found.entries for found in trace.ranges if found.domain == "profkit" and found.entries > 0]
        return float(max(entries, default=1))
    return float(trace.repeats or 1)


def _asked(document: RunDocument) -> int | None:
    passes = document.plan.passes if document.plan is not None else ()
    for planned in passes:
        if planned.name == "trace" and planned.skipped is None:
            for step in planned.steps:
                if step.directive is not None and step.directive.iterations:
                    return step.directive.iterations
    return None
