"""FLOP of products by the shapes of their inputs, and what share of the tensor cores' peak a trace reaches."""

from __future__ import annotations

from pathlib import Path

import pytest

from profkit.analysis.timeline.products import operand_type, operation_flops, tensor_peak
from profkit.core.types import Gpu
from profkit.profiling.summarize import summarize_report

RECORDED = Path(__file__).parents[2] / "data" / "cuda" / "nsys" / "operations.sqlite"


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        ("aten::mm [4096,768] x [768,50257]", 2 * 4096 * 768 * 50257),
        ("aten::addmm [768] + [4096,3072] x [3072,768]", 2 * 4096 * 3072 * 768),
        ("aten::bmm [96,512,64] x [96,64,128]", 2 * 96 * 512 * 64 * 128),
        ("aten::baddbmm [9,4,6] + [9,4,5] x [9,5,6]", 2 * 9 * 4 * 5 * 6),
        ("aten::mm [4096,768] x [50257,768]", None),  # no product of these shapes
        (
            "aten::_cudnn_attention_forward [8,12,512,64], [8,12,256,64], [8,12,256,64]",
            4 * 8 * 12 * 512 * 256 * 64,
        ),
        (
            "aten::_flash_attention_forward [8,512,12,64], [8,256,2,64], [8,256,2,64]",
            4 * 8 * 12 * 512 * 256 * 64,
        ),
        (
            "aten::_cudnn_attention_backward [8,12,512,64], [8,12,512,64], [8,12,512,64], [8,12,512,64], ...",
            10 * 8 * 12 * 512 * 512 * 64,
        ),
        ("aten::add [4096,768], [4096,768]", None),
        ("aten::convolution [8,3,32,32], [16,3,3,3], [16]", None),
    ],
)
def test_products_and_attention_have_flop_by_their_shapes(operation: str, expected: float | None) -> None:
    assert operation_flops(operation) == expected


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
