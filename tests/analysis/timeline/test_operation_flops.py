"""The least work of each operation in recorded traces, and what share of the tensor cores' peak a trace reaches."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from profkit.analysis.timeline.joined_recordings import with_operations
from profkit.analysis.timeline.products import operand_type, tensor_peak
from profkit.core.types import Gpu, GpuOperation, GpuTrace
from profkit.profiling.summarize import summarize_report

DATA = Path(__file__).parents[2] / "data" / "cuda"
RECORDED = DATA / "nsys" / "operations.sqlite"


def test_peaks_are_those_of_the_data_sheets_by_type_of_the_operands() -> None:
    sxm = Gpu("NVIDIA H100 80GB HBM3")
    assert tensor_peak(sxm) == 989.4e12
    assert tensor_peak(sxm, operand_type("nvjet_sm90_qqtst_128x128_64x6_2x4_h_bz_NTT")) == 2 * 989.4e12
    assert tensor_peak(sxm, operand_type("sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n")) == 989.4e12 / 2
    assert tensor_peak(sxm, operand_type("nvjet_sm90_tst_192x96_64x5_1x2_h_bz_NTT")) == 989.4e12
    assert tensor_peak(Gpu("NVIDIA H100 PCIe")) == 756e12
    assert tensor_peak(Gpu("NVIDIA H100 80GB HBM3", mig=True)) is None
    assert tensor_peak(Gpu("NVIDIA GeForce RTX 4090")) is None


def test_a_trace_with_shapes_has_an_mfu_and_a_slow_product_its_share_of_the_peak() -> None:
    """Three products of 316 GFLOP and one of 19 in 10.4 ms: 968 GFLOP of 10.3 TFLOP."""
    document = summarize_report(RECORDED)
    (mfu,) = [reading for reading in document.readings if reading.metric == "gpu.mfu"]
    assert mfu.value == pytest.approx(100 * 967.9e9 / (0.01042164 * 989.4e12), rel=1e-3)
    assert mfu.quality == "estimated"
    (found,) = [one for one in document.insights if one.rule == "unaligned-matrix-product"]
    assert "the first reaches 9.7 % of the peak of the tensor cores" in found.evidence
    assert found.gain is not None
    assert found.gain.at_most == pytest.approx(0.66, abs=0.01)  # and not the whole 75 % that they take


def trace_of(path: Path) -> GpuTrace:
    trace = summarize_report(path).trace
    assert trace is not None
    return trace


# Share of the kernel time whose work is known: lists of over 30 tensors have no shapes in a trace of torch.profiler.
@pytest.mark.parametrize(
    ("recorded", "known"),
    [
        ("torch/torch.gpt.json.gz", 0.92),
        ("torch/torch.resnet.json.gz", 0.97),
        ("torch/torch.llama.json.gz", 0.999),
        ("nsys/operations.sqlite", 0.999),
    ],
)
def test_most_of_a_recorded_step_has_known_work_that_takes_no_longer_than_it_did(
    recorded: str, known: float
) -> None:
    trace = trace_of(DATA / recorded)
    total = sum(one.total for one in trace.kernels)
    assert sum(one.seconds for one in trace.work) == pytest.approx(total)
    assert sum(one.seconds for one in trace.work if one.bytes is not None) > known * total
    peaks = {"fp16": 989.4e12, "bf16": 989.4e12, "fp32": 494.7e12}
    for one in trace.work:
        if one.unit == "tensor" and one.flop is not None and one.type is not None:
            assert one.flop * one.calls / peaks[one.type] <= one.seconds, one
        # what another operation has just left in L2 comes faster than from DRAM
        if one.bytes is not None and one.bytes > 120e6:
            assert one.bytes * one.calls / 4.9e12 <= one.seconds, one


def test_an_operation_of_several_kernels_is_one_row_with_its_calls() -> None:
    """Of two steps; four convolutions each, whose kernels for weights and inputs came with changes of layout."""
    rows = trace_of(DATA / "torch" / "torch.resnet.json.gz").work
    name = "aten::convolution_backward [64,64,56,56], [64,64,56,56], [64,64,3,3]"
    (row,) = (one for one in rows if one.operation == name)
    assert (row.calls, row.launches, row.type, row.unit) == (8, 32, "fp16", "tensor")
    assert row.backward_of == "aten::convolution [64,64,56,56], [64,64,3,3]"
    taps = (3 * 56 - 2) ** 2  # without those in the padding
    assert row.flop == 2 * 2 * 64 * 64 * 64 * taps


def test_the_kernels_of_one_call_share_its_flop() -> None:
    trace = trace_of(DATA / "torch" / "torch.resnet.json.gz")
    of_kernels = sum(one.flops * one.launches for one in trace.kernels if one.flops is not None)
    assert of_kernels == pytest.approx(sum(convolutions_and_products(trace.work)), rel=0.05)


def test_the_run_that_recorded_operations_tells_their_work() -> None:
    told = trace_of(RECORDED)
    plain = replace(
        told, work=(), kernels=tuple(replace(one, operation=None, flops=None) for one in told.kernels)
    )
    joined = with_operations(plain, told)
    assert joined is not None
    assert joined.work == told.work
    assert [one.flops for one in joined.kernels] == [one.flops for one in told.kernels]


def convolutions_and_products(rows: tuple[GpuOperation, ...]) -> list[float]:
    return [one.flop * one.calls for one in rows if one.unit == "tensor" and one.flop is not None]


def test_types_that_a_trace_does_not_tell_are_those_of_the_kernels() -> None:
    rows = {one.operation: one for one in trace_of(RECORDED).work}
    product = rows["aten::mm [4096,768] x [768,50257]"]
    assert (product.type, product.bytes) == ("bf16", 2 * (4096 * 768 + 768 * 50257 + 4096 * 50257))
    # one that converts reads or writes another type than its name tells: as little as both can have
    casts = [one for one in rows.values() if "WithCast" in one.kernel]
    assert casts
    assert all(one.type == "bits16" for one in casts)
