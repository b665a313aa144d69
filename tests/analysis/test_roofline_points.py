"""What stands below the roofs: only that of which the arithmetic, the bytes and the time are known."""

from __future__ import annotations

from dataclasses import replace

import pytest

from profkit.analysis.summaries.roofline_points import RooflineModel, roofline_model
from profkit.core.types import (
    Gpu,
    GpuOperation,
    Hotspot,
    Peaks,
    Profile,
    RunDocument,
    SampleSet,
    Scope,
    Timing,
)
from tests import documents, kernel_documents

PEAKS = {"bandwidth.dram.peak": 1e12, "flops.peak.f32": 1e13}
COUNTED = {**PEAKS, "bandwidth.dram": 5e11, "flops.rate.f32": 2e12}
H100 = Gpu("NVIDIA H100 80GB HBM3", bandwidth=3.35e12)


def model_of(document: RunDocument) -> RooflineModel:
    found = roofline_model(document)
    assert found is not None
    return found


def gpu(*operations: GpuOperation, **values: float) -> RunDocument:
    """One kernel with these counters, and operations of a framework beside it."""
    one = kernel_documents.kernel("softmax")
    document = kernel_documents.document({one: (3.0, values)}, span=4.0, busy=4.0)
    assert document.trace is not None
    return replace(document, trace=replace(document.trace, work=operations), gpus=(H100,))


def test_a_counted_kernel_stands_at_its_rate_over_its_arithmetic_per_byte() -> None:
    model = model_of(gpu(**COUNTED))
    (point,) = model.points
    assert (point.intensity, point.rate, point.roof, point.counted) == (4.0, 2e12, "FP32", True)
    assert model.attainable(point) == 4e12  # DRAM's slope, at 4 FLOP per byte
    assert model.drawn == 1.0


@pytest.mark.parametrize("missing", ["bandwidth.dram", "flops.rate.f32", "flops.peak.f32"])
def test_what_has_no_bytes_no_arithmetic_or_no_roof_is_not_drawn(missing: str) -> None:
    values = {name: value for name, value in COUNTED.items() if name != missing}
    assert model_of(gpu(**values)).points == ()


def test_a_product_without_counters_stands_where_its_shapes_put_it_below_the_roof_of_its_type() -> None:
    product = GpuOperation(
        "aten::mm [4096,4096] x [4096,4096]", 2, 2, 1e-3, "nvjet_sm90_tst", "bf16", "tensor", 1.4e11, 1e8
    )
    (point,) = model_of(gpu(product)).points
    assert not point.counted
    assert point.roof == "tensor cores, 16 bits"
    assert point.rate == pytest.approx(2.8e14)
    assert point.intensity == pytest.approx(1400)


@pytest.mark.parametrize(
    "changes",
    [{"flop": None}, {"bytes": None}, {"seconds": 0.0}, {"type": "fp32"}, {"unit": "memory"}, {"flop": 0.0}],
)
def test_an_operation_of_which_one_part_is_not_known_is_not_drawn(changes: dict[str, object]) -> None:
    product = GpuOperation("aten::mm", 2, 2, 1e-3, "sgemm_128", "bf16", "tensor", 1.4e11, 1e8)
    assert model_of(gpu(replace(product, **changes))).points == ()  # type: ignore[arg-type]


def cpu(*, kind: str = "process") -> RunDocument:
    """A program in C of which one function's FLOP and bytes were counted, and its time sampled."""
    scope = Scope("function", "triad", "/app/triad")
    counts = (
        replace(documents.reading("flops", 2e9, "FLOP"), scope=scope),
        replace(documents.reading("dram.bytes", 1.6e10, "B"), scope=scope),
    )
    spots = (Hotspot("triad", 2.0), Hotspot("main", 1.0))
    timing = Timing("process", kind, (SampleSet((3.0,)),), 0.01)  # type: ignore[arg-type]
    return replace(
        documents.empty(),
        readings=counts,
        profiles=(Profile("functions", "s", 3.0, spots, "functions"),),
        timings=(timing,),
        peaks=Peaks(1e10, 2e10, 5e10, 1e11, 2, "measured"),
    )


def test_a_native_function_stands_at_its_counted_work_over_its_sampled_time() -> None:
    model = model_of(cpu())
    (point,) = model.points
    assert (point.name, point.rate, point.intensity) == ("triad", 1e9, 0.125)
    assert point.share == pytest.approx(2 / 3)
    assert model.bandwidth == 2e10


def test_counts_of_one_iteration_are_not_held_against_samples_of_the_whole_run() -> None:
    assert model_of(cpu(kind="benchmark")).points == ()


def test_without_measured_roofs_there_is_no_roofline() -> None:
    assert roofline_model(replace(cpu(), peaks=None)) is None
    assert roofline_model(documents.empty()) is None
