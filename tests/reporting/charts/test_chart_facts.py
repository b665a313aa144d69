"""What rooflines are made of: kernels under their own ceilings, and nothing made up."""

from __future__ import annotations

from dataclasses import replace

import pytest

from profkit.analysis.summaries.kernels import kernel_rows
from profkit.analysis.summaries.roofline_points import Roofline, roofline_of
from profkit.core.types import RUN, Peaks, Reading, RunDocument, Source
from profkit.profiling.summarize import enrich_document as enrich
from profkit.profiling.summarize import summarize_report
from profkit.reporting.charts.of_run import describe, roofline_chart
from tests import documents
from tests.conftest import ROOT

REPORT = ROOT / "tests" / "data" / "cuda" / "ncu" / "truths.full.ncu-rep"


def of(document: RunDocument) -> Roofline | None:
    return roofline_of(document, kernel_rows(document))


def test_kernels_of_a_real_report_stand_under_their_own_roofs() -> None:
    document = summarize_report(REPORT)
    found = of(document)
    assert found is not None
    roofs = {roof.name: roof for roof in found.ceilings}
    assert set(roofs) == {"DRAM", "FP32", "FP64", "FP16"}
    by_name = {one.label: one for one in found.points}
    assert 0.85 < by_name["fma32"].rate / roofs["FP32"].peak < 1
    assert (by_name["fma32"].kind, by_name["fma32"].bound) == ("FP32", "fp32")
    assert describe(by_name["fma32"]).endswith("limited by FP32 pipe")
    assert len(found.points) + found.left_out == len(kernel_rows(document))


def test_a_run_on_a_processor_is_one_point_and_names_the_threads_of_each_roof() -> None:
    run = documents.document()
    bytes_ = Reading("dram.bytes", 6e6, "B", "simulated", RUN, Source("valgrind"))
    found = of(
        enrich(replace(run, readings=(*(r for r in run.readings if r.metric != "dram.bytes"), bytes_)))
    )
    assert found is not None
    assert describe(found.points[0]).endswith("; estimated")
    assert found.points[0].intensity == pytest.approx(54e6 / 6e6)
    assert {roof.kind for roof in found.ceilings} == {"memory", "compute"}
    assert len(found.points) == 1
    assert sum(roof.main for roof in found.ceilings) == 2


@pytest.mark.parametrize("peaks", [None, Peaks(None, None, None, None, 2, "")])
def test_without_peaks_nothing_is_made_up(peaks: Peaks | None) -> None:
    found = of(enrich(replace(documents.document(), peaks=peaks)))
    assert found is None or found.ceilings == ()


def test_kernels_without_a_place_are_counted_with_their_share() -> None:
    found = of(summarize_report(REPORT))
    assert found is not None
    assert 0 < found.left_out_share < 1
    assert f"Not placed: {found.left_out} kernel" in roofline_chart(found).note
