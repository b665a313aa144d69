"""The parts of a page that draw: from any run or report, whatever is missing in it, and never more than it says."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from profkit.core.types import (
    GpuTrace,
    Kernel,
    KernelTime,
    Reading,
    RunDocument,
    SampleSet,
    Source,
    Timing,
    Workload,
)
from profkit.profiling.summarize import enrich_document as enrich
from profkit.profiling.summarize import summarize_document as summarize
from profkit.profiling.summarize import summarize_report
from profkit.reporting.html.blocks import PageBlocks
from profkit.reporting.html.elements import Html
from profkit.reporting.view import Section
from profkit.reporting.views import run
from tests import documents, gpu_documents
from tests.conftest import ROOT
from tests.reporting.charts.svg_facts import outside, overlaps

PARTS = ("roofline", "distribution", "flame-graph", "memory")
LEVELS = ("bandwidth.dram.share", "bandwidth.l2.share", "bandwidth.l1.share", "bandwidth.shared.share")
MISSES = ("cache.l1.miss_rate", "cache.l2.miss_rate", "cache.l3.miss_rate", "cache.last.miss_rate")
HOSTILE = '<script>alert("1")</script>' + "ns::kernel<float, " * 220 + "\u202e\ud800\n"
REPORTS = sorted((ROOT / "tests" / "data" / "cuda").glob("n*/*.*"))


def complete(document: RunDocument) -> RunDocument:
    """With its readings and summaries, as a run has them when its page is made."""
    full = enrich(document)
    return replace(full, summaries=summarize(full))


def sections(document: RunDocument) -> dict[str, Section]:
    blocks = run.view(document).blocks
    return {b.anchor: b for b in blocks if isinstance(b, Section) and b.anchor in PARTS}


def parts(document: RunDocument) -> dict[str, Html]:
    page = PageBlocks()
    return {name: page.block(section) for name, section in sections(document).items()}


def charts(part: str) -> list[str]:
    return re.findall(r"<svg.*?</svg>", part, re.DOTALL)


def sound(document: RunDocument) -> dict[str, Html]:
    """Its parts; every chart in them is XML, and its words stand apart and inside of it."""
    made = parts(document)
    for part in made.values():
        assert "<script" not in part
        for chart in charts(part):
            assert overlaps(chart) == []
            assert outside(chart) == []
    return made


def gpu(kernels: int = 1, name: str = "kernel", value: float = 50.0, seconds: float = 1e-3) -> RunDocument:
    """A run with that many kernels, every level of memory counted of each."""
    times = tuple(
        KernelTime(Kernel(f"{name}_{i}", (i + 1, 1, 1), (128, 1, 1)), 3, seconds / (i + 1))
        for i in range(kernels)
    )
    names = ("occupancy.achieved", "occupancy.theoretical", *LEVELS, *MISSES)
    readings = tuple(
        Reading(one, value, "%", "measured", time.kernel.scope, Source("ncu"))
        for time in times
        for one in names
    )
    work = Workload(("python", "x.py"), "x", "")
    trace = GpuTrace("nsys", times, span=2.5 * seconds, busy=2 * seconds)
    return RunDocument("x", "cuda", "complete", work, "2026-11-20", trace=trace, readings=readings)


@pytest.mark.parametrize("report", REPORTS, ids=[path.name for path in REPORTS])
def test_every_recorded_report_makes_sound_parts(report: object) -> None:
    sound(summarize_report(report))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "document",
    [
        documents.empty(),
        documents.document(),
        complete(documents.document()),
        complete(gpu_documents.run()),
        complete(gpu_documents.without_counters()),
        gpu_documents.of_trace(),
        gpu_documents.of_counters(),
        replace(
            documents.document(), state="interrupted", timings=(), profiles=(), readings=(), summaries=()
        ),
        complete(replace(documents.document(), timings=(), profiles=(), readings=(), peaks=None)),
    ],
)
def test_whatever_is_missing_the_rest_is_drawn(document: RunDocument) -> None:
    sound(document)


@pytest.mark.parametrize("value", [0.0, 1e-12, 100.0, 1e15])
@pytest.mark.parametrize("seconds", [0.0, 1e-12, 1e15])
def test_strange_values_are_drawn(value: float, seconds: float) -> None:
    sound(gpu(3, value=value, seconds=seconds))


def test_hostile_names_do_no_harm() -> None:
    document = gpu(2, name=HOSTILE)
    timing = Timing(HOSTILE, "region", (SampleSet((1.0, 2.0, 3.0)),), 0.01)
    made = sound(replace(document, timings=(timing,)))
    assert all(len(part) < 40_000 for part in made.values())
