"""Kernels under another name are paired where their role is beyond doubt, and never on one sign alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from profkit.core.types import Comparison, Kernel, RunDocument
from profkit.regression.compare import compare
from profkit.regression.compare.roles import similar_names
from tests.comparison_documents import kernel, traced
from tests.regression.compare.rms_norm import FLOAT4, MATRIX, float4, matrix
from tests.spoken import spoken

GEMM, RELU, NORM = kernel("gemm"), kernel("relu"), kernel("layer_norm")
SGEMM, TF32 = kernel("ampere_sgemm_128x64_tn"), kernel("sm80_xmma_gemm_tf32f32_128x128")


def became(comparison: Comparison) -> dict[str, str]:
    return {k.baseline_name: k.name for k in comparison.kernels if k.baseline_name is not None}


def ordered(launches: Sequence[Kernel], *, seconds: float = 1e-4, times: int = 10) -> RunDocument:
    """A trace in which these are launched one after the other, again and again."""
    own = list(dict.fromkeys(launches))
    document = traced([(k, times * launches.count(k), times * seconds) for k in own])
    assert document.trace is not None
    order = tuple(own.index(k) for k in launches) * times
    return replace(document, trace=replace(document.trace, order=order))


def with_operation(document: RunDocument, name: str, operation: str) -> RunDocument:
    assert document.trace is not None
    kernels = tuple(
        replace(k, operation=operation, operation_launches=k.launches, operations=1)
        if k.kernel.name == name
        else k
        for k in document.trace.kernels
    )
    return replace(document, trace=replace(document.trace, kernels=kernels))


# ---------------------------------------------------------------- yes


def test_a_rewritten_kernel_is_compared_with_what_it_was() -> None:
    found = compare(matrix(), float4())
    assert found.outcome == "improved"
    assert spoken(found).endswith("fell by 22.6 %, from 527 µs to 408 µs.")
    (change,) = found.kernels
    assert (change.word, change.baseline_name, change.name) == ("faster", MATRIX, FLOAT4)
    assert change.paired_by == ("name", "shape", "only")
    values = {c.metric: (c.baseline.value, c.candidate.value) for c in found.changes if c.word == "different"}
    assert values["bandwidth.dram.share"] == (67.11, 89.306)
    assert values["memory.coalescing"] == (100.0, 57.143)


def test_the_only_kernel_of_one_program_needs_no_similar_name() -> None:
    assert became(compare(matrix(), float4(name="unlike"))) == {MATRIX: "unlike"}


def test_a_similar_name_with_as_many_calls_is_the_same_kernel() -> None:
    found = compare(
        traced([(GEMM, 100, 1e-2), (kernel("softmax_naive"), 100, 8e-3)]),
        traced([(GEMM, 100, 1e-2), (kernel("softmax_shared_v2", grid=264), 100, 4e-3)]),
    )
    assert became(found) == {"softmax_naive": "softmax_shared_v2"}
    (change,) = (k for k in found.kernels if k.baseline_name)
    assert (change.word, change.paired_by) == ("faster", ("name", "calls"))
    assert change.baseline_launch == "132x1x1 of 128x1x1"


def test_kernels_of_one_stem_are_told_apart_by_their_shape() -> None:
    before = traced([(kernel("norm_naive", grid=g), 100, 5e-3) for g in (64, 128)])
    after = traced([(kernel("norm_fast", grid=g), 100, 4e-3) for g in (128, 64)])
    found = compare(before, after)
    assert [(k.baseline_launch, k.launch) for k in found.kernels] == [
        ("64x1x1 of 128x1x1", "64x1x1 of 128x1x1"), ("128x1x1 of 128x1x1", "128x1x1 of 128x1x1")
    ]  # fmt: skip


def test_the_operation_of_a_framework_tells_a_library_s_kernel() -> None:
    product = "aten::mm [4096,768] x [768,50257]"
    before, after = (
        traced([(GEMM, 100, 1e-2), (SGEMM, 100, 1e-2)]),
        traced([(GEMM, 100, 1e-2), (TF32, 100, 4e-3)]),
    )
    assert became(compare(before, after)) == {}
    found = compare(with_operation(before, SGEMM.name, product), with_operation(after, TF32.name, product))
    assert became(found) == {SGEMM.name: TF32.name}


# ---------------------------------------------------------------- no


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (["softmax"], ["softmax_max", "softmax_sum"]),  # one became two
        (["softmax_max", "softmax_sum"], ["softmax"]),
        (["layer_norm_fwd"], ["layer_norm_bwd"]),
        (["relu"], ["dropout"]),
        (["block_reduce_max"], ["block_reduce_sum"]),
        (["void at::native::reduce_kernel<512>(int)"], ["void at::native::reduce_kernel<256>(int)"]),
        (["kernel_1"], ["kernel_2"]),
    ],
)
def test_other_work_is_not_paired(before: list[str], after: list[str]) -> None:
    documents = [
        traced([(GEMM, 100, 1e-2), *((kernel(name), 100, 5e-3) for name in names)])
        for names in (before, after)
    ]
    assert became(compare(*documents)) == {}


def test_two_that_could_be_meant_are_left_alone() -> None:
    before = traced([(kernel("norm_naive_a"), 100, 5e-3), (kernel("norm_naive_b"), 100, 5e-3)])
    after = traced([(kernel("norm_fast_c"), 100, 5e-3), (kernel("norm_fast_d"), 100, 5e-3)])
    assert became(compare(before, after)) == {}


def test_one_that_became_two_is_paired_with_neither_though_one_has_its_shape() -> None:
    before = traced([(GEMM, 100, 1e-2), (kernel("softmax"), 100, 5e-3)])
    parts = [(kernel("softmax_max"), 100, 2e-3), (kernel("softmax_sum", grid=64), 200, 2e-3)]
    assert became(compare(before, traced([(GEMM, 100, 1e-2), *parts]))) == {}


def test_a_similar_name_alone_is_not_enough() -> None:
    before = traced([(GEMM, 100, 1e-2), (kernel("norm_naive", grid=64), 100, 5e-3)])
    after = traced([(GEMM, 100, 1e-2), (kernel("norm_fast", grid=128), 300, 5e-3)])
    assert became(compare(before, after)) == {}


def test_what_fills_the_inputs_is_paired_with_nothing() -> None:
    random = "void at::native::distribution_elementwise_grid_stride_kernel<float, 4>(long)"
    assert became(compare(matrix(name=random), float4(name=random + "2"))) == {}


def test_names_are_alike_by_what_they_say_of_the_work() -> None:
    assert similar_names("naive_gemm(float *)", "sgemm_global_mem_coalesce(float *)")
    assert similar_names("matmulTiled", "MatmulNaive")
    assert not similar_names("conv1d_kernel", "conv2d_kernel")
    assert not similar_names("rms_norm_vector_kernel_float4", "rms_norm_matrix_kernel")
