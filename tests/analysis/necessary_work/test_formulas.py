"""The least work of operations by hand, and what hardware and simulators counted of the same operations."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from profkit.analysis.necessary_work.calls import (
    Argument,
    OperationCall,
    Tensor,
    recorded_call,
    type_of_kernel,
    written_call,
)
from profkit.analysis.necessary_work.formulas import TABLE, necessary_work, operation_form, with_given
from profkit.analysis.necessary_work.work import NecessaryWork

COUNTS = Path(__file__).parents[2] / "data" / "necessary_work" / "counts.json.gz"


def t(*shape: int, type_: str = "bf16") -> Tensor:
    return Tensor(shape, type_)


def work(name: str, *arguments: Argument) -> NecessaryWork | None:
    return necessary_work(OperationCall(name, arguments))


Q, K = (8, 12, 512, 64), (8, 4, 512, 64)
HALF = 512 * 513 // 2  # pairs of which the key is not after the query


@pytest.mark.parametrize(
    ("name", "arguments", "flop", "moved"),
    [
        ("mm", (t(4, 6), t(6, 9)), 2 * 4 * 6 * 9, 2 * (24 + 54 + 36)),
        ("addmm", (t(9), t(4, 6), t(6, 9), "1", "1"), 2 * 4 * 6 * 9, 2 * (9 + 24 + 54 + 36)),
        ("addmm", (t(9), t(4, 6), t(6, 9), "0", "1"), 2 * 4 * 6 * 9, 2 * (24 + 54 + 36)),
        ("baddbmm", (t(3, 4, 9), t(3, 4, 6), t(3, 6, 9)), 6 * 4 * 6 * 9, 6 * (36 + 24 + 54 + 36)),
        ("matmul", (t(5, 1, 4, 6), t(3, 6, 9)), 15 * 2 * 4 * 6 * 9, 2 * (120 + 162 + 15 * 36)),
        ("linear", (t(2, 4, 6), t(9, 6), t(9)), 2 * 8 * 6 * 9, 2 * (48 + 54 + 9 + 72)),
        (
            "_flash_attention_forward",
            (t(8, 512, 12, 64), t(8, 512, 4, 64), t(8, 512, 4, 64), *[""] * 4, "0.", "False"),
            4 * 8 * 12 * 512 * 512 * 64,
            2 * 8 * 512 * 64 * (12 + 4 + 4 + 12),
        ),
        (
            "scaled_dot_product_attention",
            (t(*Q), t(*K), t(*K), "", "0.", "True"),
            4 * 8 * 12 * HALF * 64,
            2 * 8 * 512 * 64 * (12 + 4 + 4 + 12),
        ),
        (
            "_cudnn_attention_backward",
            (t(*Q), t(*Q), t(*K), t(*K), t(*Q), *[""] * 9, "True", "0.125"),
            10 * 8 * 12 * HALF * 64,
            2 * 8 * 512 * 64 * (12 + 12 + 4 + 4 + 12 + 12 + 4 + 4),
        ),
        # of a stride of two, 1 x 1 windows touch every other row and column
        ("conv2d", (t(2, 3, 8, 8), t(5, 3, 1, 1), "", "[2, 2]"), 2 * 2 * 16 * 3 * 5, 2 * (96 + 15 + 160)),
        # windows at the border reach into the padding
        (
            "conv1d",
            (t(1, 1, 4), t(1, 1, 3), t(1), "[1]", "[1]"),
            2 * (2 + 3 + 3 + 2),
            2 * (4 + 3 + 1 + 4),
        ),
        ("conv1d", (t(1, 4, 5), t(8, 2, 3), "", "[1]", "[0]", "[2]", "2"), 2 * 8 * 2 * 3, 2 * (12 + 48 + 8)),
        ("conv_transpose1d", (t(1, 2, 3), t(2, 5, 2), "", "[2]"), 2 * 6 * 5 * 2, 2 * (6 + 20 + 30)),
        ("add", (t(4, 6), t(6, type_="fp32"), "1"), 24, 24 * 2 + 6 * 4 + 24 * 4),
        ("add_", (t(4, 6), t(4, 6, type_="fp32"), "1"), 24, 24 * 2 + 24 * 4 + 24 * 2),
        ("mul", (t(4, 6), t(type_="fp64")), 24, 24 * 2 + 8 + 24 * 2),
        ("mul", (Tensor((4, 6), "fp32", 4), t(4, 6, type_="fp32")), 24, 4 * (4 + 24 + 24)),  # expanded
        ("gt", (t(4, 6), "0"), 24, 24 * 2 + 24),
        ("div", (t(4, type_="int64"), t(4, type_="int64")), 4, 4 * (8 + 8 + 4)),
        ("copy_", (t(4, 6, type_="fp32"), t(6), "False"), 0, 24 * 4 + 6 * 2),
        ("_to_copy", (t(4, type_="fp32"), "15"), 0, 4 * 4 + 4 * 2),
        ("sum", (t(4, 6), "[1]", "False", ""), 24, 2 * (24 + 4)),
        ("argmax", (t(4, 6), "1", "False"), 24, 2 * 24 + 8 * 4),
        ("linalg_vector_norm", (t(4, 6), "2", "[-2]"), 48, 2 * (24 + 6)),
        ("_softmax", (t(4, 6), "1", "True"), 72, 24 * 2 + 24 * 4),
        (
            "_softmax_backward_data",
            (t(4, 6, type_="fp32"), t(4, 6, type_="fp32"), "1", "15"),
            72,
            24 * (4 + 4 + 2),
        ),
        ("native_layer_norm", (t(4, 6), "[6]", t(6), t(6), "1e-5"), 168, 2 * (24 + 24 + 6 + 6) + 4 * 2 * 4),
        (
            "native_layer_norm_backward",
            (t(4, 6), t(4, 6), "[6]", t(4, 1), t(4, 1), t(6), t(6), "[True, True, False]"),
            168,
            2 * (24 + 24 + 4 + 4 + 6 + 24 + 6),
        ),
        ("embedding", (t(50, 6), t(2, 3, type_="int64")), 0, 2 * 36 + 8 * 6),
        ("nll_loss_forward", (t(4, 50), t(4, type_="int64"), "", "1", "-100"), 4, 2 * 4 + 8 * 4),
        ("native_dropout", (t(4, 6), "0.1", "True"), 24, 24 * (2 + 2 + 1)),
        ("cat", ((t(2, 3), t(4, 3)), "0"), 0, 2 * 2 * 18),
        (
            "max_pool2d_with_indices",
            (t(1, 2, 4, 4), "[2, 2]", "[2, 2]", "[0, 0]", "[1, 1]", "False"),
            32,
            2 * 32 + 8 * (2 + 8),
        ),
        ("_fused_adamw_", ((t(3), t(5)),) * 4, 14 * 8, 7 * 16),
        ("_foreach_add_", ((t(3),), (t(3),), "1"), 3, 3 * 6),
    ],
)
def test_the_least_work_is_what_its_definition_says(
    name: str, arguments: tuple[Argument, ...], flop: float, moved: float
) -> None:
    found = work(name, *arguments)
    assert found is not None
    assert (found.flop, found.bytes) == (flop, moved)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("mm", (t(4, 6), t(9, 6))),  # no product
        ("mm", (t(4, 6),)),
        ("bmm", (t(3, 4, 6), t(2, 6, 9))),
        ("add", (t(4, 6), t(5))),
        ("conv2d", (t(2, 3, 8, 8), t(5, 4, 1, 1), "", "[2, 2]")),
        ("conv2d", (t(2, 3, 8, 8), t(5, 3, 1, 1), "", "[0, 0]")),
        ("conv2d", (t(2, 3, 2, 2), t(5, 3, 9, 9), "", "[1, 1]")),
        ("convolution_backward", (t(1, 5, 8), t(1, 3, 8), t(5, 3, 1))),
        ("_flash_attention_forward", (t(512, 12, 64), t(512, 12, 64), t(512, 12, 64))),
        ("_flash_attention_forward", (t(*Q), t(*Q), t(*Q), t(9, type_="int32"))),  # packed sequences
        ("cat", ((), "0")),
        ("_fused_adamw_", ((),) * 6),  # more tensors than a trace tells
        ("my_operation", (t(4, 6),)),
    ],
)
def test_what_is_not_told_or_does_not_fit_has_no_work(name: str, arguments: tuple[Argument, ...]) -> None:
    assert work(name, *arguments) is None


def test_without_types_the_flop_stay_and_bytes_wait_for_the_kernel() -> None:
    call = written_call("aten::mm, sizes = [[4096, 768], [768, 50257]]")
    assert call is not None
    assert necessary_work(call) == NecessaryWork(2.0 * 4096 * 768 * 50257, None, "tensor")
    kernel = "void cutlass::Kernel2<cutlass_75_tensorop_bf16_s1688gemm_bf16_128x128_tn_align1>(T1::Params)"
    found = necessary_work(call, type_of_kernel(kernel))
    assert found is not None
    assert (found.type, found.bytes) == ("bf16", 2.0 * (4096 * 768 + 768 * 50257 + 4096 * 50257))


def test_attention_of_a_trace_that_does_not_tell_counts_as_causal() -> None:
    """It is the least that it can be."""
    text = (
        "aten::_cudnn_attention_forward, sizes = [[8, 12, 512, 64], [8, 4, 512, 64], [8, 4, 512, 64], [], []]"
    )
    call = written_call(text)
    found = necessary_work(call) if call is not None else None
    assert found is not None
    assert found.flop == 4 * 8 * 12 * HALF * 64


WINDOWS = "padding=[1, 1];output_padding=[0, 0];output_mask=[True, True, False]"


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("conv 3x3", f"stride=[2, 2];{WINDOWS};dilation=[1, 1];groups=1;transposed=False"),
        ("conv 3x3 backward", f"stride=[2, 2];{WINDOWS};dilation=[1, 1];groups=1;transposed=False"),
        ("conv f32", f"stride=[1, 1];{WINDOWS};dilation=[1, 1];groups=1;transposed=False"),
        ("conv transposed", f"stride=[2, 2];{WINDOWS};dilation=[1, 1];groups=1;transposed=True"),
        ("efficient 1", "is_causal=True"),
        ("flash 0", "is_causal=False"),
        ("flash 0 backward", "is_causal=False"),
    ],
)
def test_shapes_and_what_the_call_was_given_tell_the_flop_that_an_h200_counted(name: str, given: str) -> None:
    """nsys sees ranges with shapes alone; the values come from the call of torch around them."""
    case = CASES[name]
    total = 0.0
    for one in case["operations"]:
        call = written_call(f"{one['name']}, sizes = {one['Input Dims']}")
        found = necessary_work(with_given(call, given), "bf16") if call is not None else None
        total += found.flop if found is not None and found.unit == "tensor" else 0.0
    assert total == pytest.approx(case["tensor_flop"], rel=0.05)


def test_a_convolution_without_the_values_of_its_call_has_no_work() -> None:
    call = written_call("aten::cudnn_convolution, sizes = [[2, 3, 8, 8], [5, 3, 1, 1], [], [], [], []]")
    assert call is not None
    for given in ("", "stride=[2, 2]", "is_causal=True", "stride;padding=;=3"):
        assert necessary_work(with_given(call, given)) is None, given


def test_a_convolution_over_one_dimension_that_runs_as_one_over_two_strides_along_the_last_alone() -> None:
    call = written_call("aten::cudnn_convolution, sizes = [[1, 2, 1, 9], [4, 2, 1, 3], [], [], [], []]")
    assert call is not None
    given = "stride=[2];padding=[1];dilation=[1];groups=1"
    found, plain = (
        necessary_work(with_given(call, given)),
        work("conv1d", t(1, 2, 9), t(4, 2, 3), "", "2", "1"),
    )
    assert found is not None
    assert plain is not None
    assert found.flop == plain.flop


@pytest.mark.parametrize(
    ("text", "given", "expected"),
    [
        (
            "aten::cudnn_convolution, sizes = [[2, 4, 8, 8], [8, 2, 3, 3], [], [], [], []]",
            "stride=[2, 2];padding=[1, 1];dilation=[1, 2];groups=2",
            "stride 2 dilation 1x2 groups 2",
        ),
        (
            "aten::cudnn_convolution, sizes = [[2, 4, 8, 8], [8, 4, 3, 3], [], [], [], []]",
            "stride=[1, 1];padding=[1, 1];dilation=[1, 1];groups=1",
            "",
        ),
        ("aten::_flash_attention_forward, sizes = [[1, 8, 2, 8]]", "is_causal=True", "causal"),
        ("aten::_flash_attention_forward, sizes = [[1, 8, 2, 8]]", "is_causal=False", ""),
        ("aten::mm, sizes = [[4, 4], [4, 4]]", "is_causal=True", ""),
    ],
)
def test_the_form_of_a_call_is_what_sets_it_apart_from_the_usual_one(
    text: str, given: str, expected: str
) -> None:
    call = written_call(text)
    assert call is not None
    assert operation_form(call, given) == expected


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        ("nvjet_sm90_tst_192x128_64x5_1x2_h_bz_coopB_bias_TNT", "bf16"),
        ("nvjet_sm90_hsh_256x128_64x4_1x2_h_bz_coopA_NNT", "fp16"),
        ("nvjet_sm90_qqtst_128x128_64x6_2x4_h_bz_NTT", "fp8"),
        ("sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x16", "fp32"),
        ("void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, x>(int)", "fp32"),
        ("void cunn_SoftMaxForward<8, c10::BFloat16, float, float, X>(T4 *)", "bf16"),
        ("void at::native::reduce_kernel<512, 1, at::native::ReduceOp<double, X>>", "fp64"),
        ("void CatArrayBatchedCopy_contig<OpaqueType<(unsigned int)4>, unsigned int, 2>", "bits32"),
        (
            "cudnn_generated_fort_native_sdpa_sm90_flash_bprop_wgmma_f16_knob_26_64x64x64_1x4x1_kernel0_0",
            "bits16",
        ),
        ("my_kernel", None),
    ],
)
def test_a_kernels_name_tells_its_narrowest_type(kernel: str, expected: str | None) -> None:
    assert type_of_kernel(kernel) == expected


@pytest.mark.parametrize(
    "args",
    [
        {},
        {"Input Dims": [[2]], "Input type": []},
        {"Input Dims": [["2"]], "Input type": ["float"]},
        {"Input Dims": [[-2]], "Input type": ["float"]},
        {"Input Dims": [[True]], "Input type": ["float"]},
        {"Input Dims": [[1 << 40, 1 << 40]], "Input type": ["float"]},
        {"Input Dims": [[1] * 99], "Input type": ["float"]},
        {"Input Dims": "mm", "Input type": None},
    ],
)
def test_shapes_that_are_none_make_no_call(args: dict[str, Any]) -> None:
    assert recorded_call("aten::mm", args) is None


@pytest.mark.parametrize(
    "text",
    [
        "aten::mm",
        "aten::mm, sizes = ",
        "aten::mm, sizes = [[",
        "aten::mm, sizes = ]",
        f"a::b, sizes = [[{'9' * 99}]]",
    ],
)
def test_a_range_without_whole_shapes_makes_no_call(text: str) -> None:
    assert written_call(text) is None


def test_every_operation_stands_in_one_row_of_the_table() -> None:
    names = [name for one in TABLE for name in one.names]
    assert len(names) == len(set(names))
    assert all(one.flop and one.bytes and one.source for one in TABLE)


# ------------------------------------------------------------ what an H200 counted


def counted() -> list[dict[str, Any]]:
    with gzip.open(COUNTS, "rt") as file:
        cases: list[dict[str, Any]] = json.load(file)
    return cases


def least(case: dict[str, Any]) -> list[NecessaryWork | None]:
    unknown = type_of_kernel(" ".join(case["kernels"]))
    calls = [recorded_call(one["name"], one) for one in case["operations"]]
    return [necessary_work(call, unknown) if call is not None else None for call in calls]


CASES = {case["case"]: case for case in counted()}
# Read and write everything once, as their kernels do: L2 was asked for the same bytes.
STREAMED = (
    "add", "add_", "add bf16 f32", "add broadcast", "addcmul", "gelu", "silu", "gt", "mul scalar", "cast", "copy_",
    "zero_", "cat", "sum", "sum dim", "mean", "amax", "var", "argmax", "norm", "cumsum", "softmax", "softmax backward",
    "log_softmax", "log_softmax backward", "nll_loss backward", "dropout", "dropout backward", "adamw fused",
    "adamw foreach", "sgd fused", "sgd foreach", "adam fused",
)  # fmt: skip
# Computed as their definition says, and tiles fit.
MULTIPLIED = (
    "mm bf16", "addmm bf16", "flash 0", "efficient 0", "cudnn 0", "flash 0 backward", "efficient 0 backward",
    "cudnn 0 backward", "conv 3x3", "conv 3x3 backward", "conv f32", "conv transposed",
)  # fmt: skip
UNTOLD = {"index"}  # its list of indices has no shapes in a trace


@pytest.mark.parametrize("name", STREAMED)
def test_bytes_are_those_that_were_counted_where_everything_moves_once(name: str) -> None:
    total = sum(one.bytes for one in least(CASES[name]) if one is not None and one.bytes is not None)
    assert total == pytest.approx(CASES[name]["l2_bytes"], rel=0.02)


@pytest.mark.parametrize("name", MULTIPLIED)
def test_flop_are_those_of_the_tensor_cores(name: str) -> None:
    total = sum(one.flop for one in least(CASES[name]) if one is not None and one.unit == "tensor")
    assert total == pytest.approx(CASES[name]["tensor_flop"], rel=0.03)


@pytest.mark.parametrize("name", ["mm f32", "conv groups", "conv groups backward"])
def test_flop_are_those_of_the_fma_pipe(name: str) -> None:
    total = sum(one.flop for one in least(CASES[name]) if one is not None)
    assert total == pytest.approx(CASES[name]["fp32_flop"], rel=0.01)


@pytest.mark.parametrize("name", sorted(set(CASES) - UNTOLD))
def test_nothing_is_necessary_that_was_not_counted(name: str) -> None:
    """Of products L2 was asked again and again; of 16-bit products into FP16 no FLOP were counted."""
    case = CASES[name]
    known = [one for one in least(case) if one is not None]
    assert known
    assert all(one.bytes is not None for one in known)
    assert sum(one.bytes or 0.0 for one in known) <= 1.0001 * case["l2_bytes"]
    done = case["tensor_flop"] + case["fp32_flop"]
    if any(one.unit == "tensor" for one in known) and name != "bmm f16":
        assert sum(one.flop for one in known if one.unit == "tensor") <= 1.0001 * done
    elif name not in COMPARED and name != "bmm f16":
        assert sum(one.flop for one in known) <= 1.0001 * done


COMPARED = {"gt", "amax", "argmax", "max_pool"}  # their operations are no FADD, FMUL or FFMA


def test_recorded_simulations_count_the_same_bytes(reports: Path) -> None:
    """Of 1 Mi floats plus a number no line was in a cache."""
    text = (reports / "valgrind" / "callgrind.torch-add-1M.roi-cold.out").read_text()
    (totals,) = (line.split()[1:] for line in text.splitlines() if line.startswith("totals:"))
    lines = int(totals[7]) + int(totals[8])
    found = work("add", t(1 << 20, type_="fp32"), "1")
    assert found is not None
    assert found.bytes == pytest.approx(64 * lines, rel=0.01)


def test_a_simulated_product_moves_no_less(reports: Path) -> None:
    text = (reports / "valgrind" / "callgrind.numpy-sgemm256.roi.out").read_text()
    (totals,) = (line.split()[1:] for line in text.splitlines() if line.startswith("totals:"))
    found = work("mm", t(256, 256, type_="fp32"), t(256, 256, type_="fp32"))
    assert found is not None
    assert found.bytes is not None
    assert (
        0.6 * 64 * (int(totals[7]) + int(totals[8])) < found.bytes <= 64 * (int(totals[7]) + int(totals[8]))
    )
    assert found.flop == 33_554_432
