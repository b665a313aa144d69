"""Documents that nobody would write by hand: every pair of them is compared and told without a NaN or a traceback."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace

import pytest

from profkit.core.types import Hotspot, KernelTime, Profile, RunDocument, SampleSet, Workload
from profkit.regression.compare import CompareOptions, compare
from profkit.reporting.json import document as as_json
from tests import documents, gpu_documents
from tests.comparison_documents import kernel, run, timing, traced, value
from tests.reporting.shown import comparison_markdown as as_markdown
from tests.reporting.shown import comparison_text as as_text


def sampled(*processes: tuple[float, ...]) -> RunDocument:
    return replace(run(), timings=(replace(timing(), processes=tuple(map(SampleSet, processes))),))


def odd() -> dict[str, RunDocument]:
    trace = traced([(kernel("a"), 10, 1e-2)])
    assert trace.trace is not None
    nothing = (KernelTime(kernel("a"), 0, 0.0), KernelTime(kernel(""), 0, 0.0))
    profiles = (
        Profile("functions by instructions", "instructions", 0.0, (), "counted-functions"),
        Profile("cpu-clock by function", "s", 1e-300, (Hotspot("x", 0.0),), "functions"),
    )
    return {
        "a run": run(),
        "a GPU's": gpu_documents.run(),
        "just begun": documents.empty(),
        "nothing": RunDocument("x", "cpu", "complete", Workload((), "x", ""), ""),
        "no time": sampled((0.0,) * 20, (0.0,) * 20),
        "negative time": sampled((-1.0,) * 20, ()),
        "no processes": sampled(),
        "no number": sampled((float("nan"), 1e-3, 2e-3) * 10),
        "absurd": sampled((1e300, 1e-300) * 20, (1e300, 1e-300) * 20),
        "extremes": run(0.0, value("instructions", 1e308), value("memory.rss_peak", 1e-320, "B", "psutil")),
        "shrinks": run(0.0, value("memory.python_growth", -900.0, "B", "tracemalloc")),
        "grows": run(0.0, value("memory.python_growth", 900.0, "B", "tracemalloc")),
        "a trace": trace,
        "an empty trace": replace(trace, trace=replace(trace.trace, kernels=(), repeats=None)),
        "kernels of no time": replace(
            trace, trace=replace(trace.trace, kernels=nothing, span=0.0, repeats=0)
        ),
        "odd profiles": run(profiles=profiles),
    }


ODD = odd()


@pytest.mark.parametrize("name", list(ODD))
def test_any_two_documents_are_compared_and_told(name: str) -> None:
    for other, force in itertools.product(ODD.values(), (False, True)):
        found = compare(ODD[name], other, CompareOptions(force=force))
        text = as_text(found, color=False)
        assert not re.search(r"\b(nan|inf|NaN|None)\b", text)
        assert as_markdown(found)
        assert as_json(found)
