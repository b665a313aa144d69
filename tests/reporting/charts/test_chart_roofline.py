"""The roofline: points and roofs where their numbers say, each told, none invented."""

from __future__ import annotations

from dataclasses import replace
from math import log10

import pytest

from profkit.analysis.summaries.kernels import kernel_rows
from profkit.analysis.summaries.roofline_points import (
    KernelsLeftOut,
    Roofline,
    RooflineCeiling,
    RooflinePoint,
    roofline_of,
)
from profkit.core.types import RUN, Peaks, Reading, RunDocument, Source
from profkit.profiling.evaluate_targets import enrich_document as enrich
from profkit.profiling.summarize import summarize_report
from profkit.reporting.charts.roofline import roofline_chart
from tests import documents, gpu_documents
from tests.conftest import ROOT
from tests.reporting.charts.svg_facts import hovers, marks, outside, overlaps, parsed, words

ROOFS = (
    RooflineCeiling("DRAM", 1e12, "memory"),
    RooflineCeiling("FP32", 1e13, "compute"),
    RooflineCeiling("tensor", 1e14, "compute", estimated=True),
)


def spot(intensity: float, rate: float, share: float | None = 0.5, **more: object) -> RooflinePoint:
    made = RooflinePoint("gemm", intensity, rate, share, "FP32", None, "DRAM", "gemm: told")
    return replace(made, **more)  # type: ignore[arg-type]


def of(document: RunDocument) -> Roofline | None:
    return roofline_of(document, kernel_rows(document))


def place(chart: str, number: int) -> tuple[float, float]:
    dot = marks(chart, "circle", "dot")[number]
    return float(dot.get("cx") or 0), float(dot.get("cy") or 0)


def test_points_stand_where_their_logarithms_say() -> None:
    spots = (spot(1.0, 1e10), spot(10.0, 1e11), spot(100.0, 1e12))
    chart = roofline_chart(Roofline(ROOFS, spots))
    (x1, y1), (x2, y2), (x3, y3) = (place(chart, n) for n in range(3))
    assert x2 - x1 == pytest.approx(x3 - x2, abs=0.2)
    assert y1 - y2 == pytest.approx(y2 - y3, abs=0.2)
    assert x1 < x2
    assert y1 > y2


def test_a_point_on_its_roof_is_drawn_on_its_line() -> None:
    chart = roofline_chart(Roofline(ROOFS[:2], (spot(1.0, 1e12), spot(100.0, 1e13))))
    slope, level = (
        [float(part) for end in (e.get("d") or "")[1:].split("L") for part in end.split()]
        for e in marks(chart, "path", "ceiling")
    )
    (x, y), (_, y_level) = place(chart, 0), place(chart, 1)
    share = (x - slope[0]) / (slope[2] - slope[0])
    assert slope[1] + share * (slope[3] - slope[1]) == pytest.approx(y, abs=0.3)
    assert level[1] == pytest.approx(y_level, abs=0.2)
    assert slope[2:] == pytest.approx(level[:2], abs=0.2)  # they meet at the ridge


def test_a_larger_share_is_a_larger_point_and_an_estimate_is_hollow() -> None:
    spots = (spot(1, 1e10, 0.9), spot(10, 1e10, 0.01, quality="estimated"))
    chart = roofline_chart(Roofline(ROOFS, spots))
    radii = [float(dot.get("r") or 0) for dot in marks(chart, "circle", "dot")]
    assert max(radii) > 2 * min(radii)
    assert len(marks(chart, "circle", "hollow")) == 1
    assert any("(estimated)" in told for told in hovers(chart))
    assert len(marks(chart, "path", "estimated")) == 1  # the roof of the tensor cores


def test_every_point_has_its_number_beside_it_and_its_words_below() -> None:
    spots = tuple(spot(10 ** (n / 3), 1e12, 1 / 12, label=f"kernel {n}") for n in range(12))
    chart = roofline_chart(Roofline(ROOFS, spots))
    told = words(chart)
    assert all(str(n) in told for n in range(1, 13))
    assert all(any(f"kernel {n}" in one for one in told) for n in range(12))
    assert overlaps(chart) == []
    assert outside(chart) == []
    assert len([e for e in parsed(chart).iter("g") if e.get("tabindex") == "0"]) == 12 + len(ROOFS)


@pytest.mark.parametrize("intensity", [1e-12, 1.0, 1e15])
@pytest.mark.parametrize("rate", [1e-12, 1e12, 1e15, 1e300])
@pytest.mark.parametrize("roofs", [(), ROOFS[:1], ROOFS[1:2], ROOFS])
def test_strange_places_are_drawn(intensity: float, rate: float, roofs: tuple[RooflineCeiling, ...]) -> None:
    hostile = spot(intensity, rate, None, label="<script>" + "x" * 4000, description="\ud800" * 4000)
    chart = roofline_chart(
        Roofline(roofs, (hostile,) * 3, (KernelsLeftOut("why" * 50, 9, 0.3, "x" * 4000),) * 5, 9_000)
    )
    assert overlaps(chart) == []
    assert outside(chart) == []
    assert "<script" not in chart
    assert len(chart) < 20_000


def test_kernels_of_a_real_report_stand_under_their_own_roofs() -> None:
    document = summarize_report(ROOT / "tests" / "data" / "cuda" / "ncu" / "truths.full.ncu-rep")
    found = of(document)
    assert found is not None
    roofs = {roof.name: roof for roof in found.ceilings}
    assert set(roofs) == {"DRAM", "FP32", "FP64", "FP16"}
    by_name = {one.label: one for one in found.points}
    assert by_name["fma32"].under == "FP32"
    assert 0.85 < by_name["fma32"].rate / roofs["FP32"].peak < 1
    assert by_name["fma32"].bound == "FP32 pipe"
    assert len(found.points) + sum(one.count for one in found.left_out) == len(kernel_rows(document))
    assert all(log10(one.intensity) == pytest.approx(log10(one.intensity)) for one in found.points)


def test_a_run_on_a_processor_is_one_point_and_names_the_threads_of_each_roof() -> None:
    run = documents.document()
    bytes_ = Reading("dram.bytes", 6e6, "B", "simulated", RUN, Source("valgrind"))
    found = of(
        enrich(replace(run, readings=(*(r for r in run.readings if r.metric != "dram.bytes"), bytes_)))
    )
    assert found is not None
    assert found.points[0].quality == "estimated"
    assert found.points[0].intensity == pytest.approx(54e6 / 6e6)
    assert {roof.kind for roof in found.ceilings} == {"memory", "compute"}
    assert len(found.points) == 1
    assert sum(roof.main for roof in found.ceilings) == 2


@pytest.mark.parametrize("peaks", [None, Peaks(None, None, None, None, 2, "")])
def test_without_peaks_nothing_is_made_up(peaks: Peaks | None) -> None:
    found = of(enrich(replace(documents.document(), peaks=peaks)))
    assert found is None or found.ceilings == ()


def test_a_kernel_without_a_place_is_named_with_its_reason_and_share() -> None:
    document = summarize_report(ROOT / "tests" / "data" / "cuda" / "ncu" / "truths.full.ncu-rep")
    found = of(document)
    assert found is not None
    assert found.left_out[0].share == max(one.share for one in found.left_out)
    assert {one.reason for one in found.left_out} == {"no arithmetic of it is counted"}
    told = " ".join(words(roofline_chart(found)))
    assert f"Not placed: {found.left_out[0].first}" in told
    assert "no arithmetic of it is counted" in told


def test_without_counters_there_is_no_roofline() -> None:
    assert of(documents.empty()) is None
    assert of(gpu_documents.of_trace()) is None
