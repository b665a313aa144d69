"""How many iterations a trace is taken to hold: by the plan, by entries, by what repeats, and else the whole."""

from __future__ import annotations

from dataclasses import replace

import pytest

from profkit.analysis.summaries.readings import traced_iterations
from profkit.core.types import (
    Directive,
    GpuRange,
    GpuTrace,
    KernelTime,
    MetalTrace,
    PassPlan,
    Plan,
    RunDocument,
    Step,
)
from tests.comparison_documents import kernel, run, timing
from tests.spoken import message


def marked(launches: int, *entries: int, asked: int | None = 10, skipped: str | None = None) -> RunDocument:
    """A run whose plan asks for ten iterations, and whose region was entered so often."""
    step = Step("trace", ("python",), directive=Directive("trace", "x", iterations=asked))
    ranges = tuple(GpuRange("mlp", "profkit", count, 1.0, 1, 1.0) for count in entries)
    trace = GpuTrace("nsys", (KernelTime(kernel("k"), launches, 1e-3),), marked=True, ranges=ranges)
    plan = Plan("cuda", "gate", (PassPlan("trace", "nsys", (step,), skipped=message(skipped)),))
    return run(trace=trace, plan=plan)


def on_metal(kind: str, entries: int, asked: int | None = 10) -> RunDocument:
    """The same on an Apple GPU, where how often something ran cannot be told by its launches."""
    document = marked(1, asked=asked)
    return replace(
        document,
        trace=GpuTrace("xctrace", (KernelTime(kernel("k"), 1, 1e-3),), marked=True),
        metal=MetalTrace(marked=True, entries=entries),
        timings=(timing(kind=kind),),
    )


@pytest.mark.parametrize(
    ("document", "count"),
    [
        (on_metal("benchmark", 1), 10),
        (on_metal("benchmark", 3, asked=None), 3),
        (on_metal("region", 3), 3),  # only a benchmark follows a plan
        (on_metal("region", 0), 1),
        (run(trace=None), 1),
        (marked(20), 10),  # as planned: each launched twice
        (marked(7), 1),  # no whole number of times in each
        (marked(7, 3), 3),
        (marked(20, 3, asked=None), 3),
        (marked(20, 0), 10),
        (marked(20, 5, skipped="no nsys here"), 5),
        (replace(marked(20, 4), timings=(timing(kind="region"),)), 4),  # only a benchmark follows a plan
        (replace(marked(20), trace=GpuTrace("nsys", (), repeats=6)), 6),
        (replace(marked(20), trace=GpuTrace("nsys", ())), 1),
    ],
)
def test_iterations_are_what_the_launches_bear_out(document: RunDocument, count: int) -> None:
    assert traced_iterations(document) == count
