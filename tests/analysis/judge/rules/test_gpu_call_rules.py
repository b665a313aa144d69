"""Rules on what a program asks of the driver or a library again and again, beyond the recorded programs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from profkit.analysis.judge.findings import find_insights
from profkit.analysis.judge.rules.gpu.calls import next_fast_length
from profkit.core.types import (
    ApiCall,
    GpuLine,
    GpuTrace,
    Hotspot,
    Insight,
    Kernel,
    KernelTime,
    Profile,
    ProfileKind,
    TimeSplit,
)
from tests.gpu_documents import H200
from tests.kernel_documents import document


@pytest.mark.parametrize(
    ("length", "fast"), [(1, 1), (1004117, 1008000), (1 << 20, 1 << 20), (127, 128), (11, 12)]
)
def test_the_next_fast_length_has_no_prime_factor_above_7(length: int, fast: int) -> None:
    assert next_fast_length(length) == fast


def said(kind: ProfileKind, *spots: Hotspot, wall: float = 10.0) -> list[Insight]:
    profile = Profile("what was said", "count", sum(one.own for one in spots), spots, kind)
    split = TimeSplit(wall, startup=wall - 1, steady=1.0)
    return list(find_insights(replace(document({}), profiles=(profile,), time_split=split)))


def test_what_held_a_full_memory_is_told_by_line() -> None:
    known = {"asked": 1e9, "reserved": 80e9}
    spots = (
        Hotspot("forward", 60e9, None, 200, "/w/net.py", 12, counters=known),
        Hotspot("", 4e9, None, 10, None, None, counters=known),
    )
    (found,) = said("held-lines", *spots)
    assert (found.rule, found.where.file, found.where.line) == ("out-of-memory", "/w/net.py", 12)
    assert "in 200 blocks by net.py:12" in found.evidence
    assert "in 10 blocks by the backward pass" in found.evidence
    assert "expandable_segments" in found.evidence  # 16 GB of 80 are reserved and not used


@pytest.mark.parametrize(("keys", "told"), [(7, True), (3, False)])
def test_tuning_for_many_keys_is_told_and_for_a_few_is_not(keys: int, told: bool) -> None:
    spot = Hotspot("kernel", keys, None, keys, "/w/k.py", 9, counters={"configurations": 6.0})
    assert [one.rule for one in said("tuned-kernels", spot)] == ["autotuned-again"] * told


@pytest.mark.parametrize(("unused", "told"), [(27_000, True), (6_000, False)])
def test_batches_padded_beyond_their_longest_row_are_told_and_a_margin_is_not(
    unused: int, told: bool
) -> None:
    spot = Hotspot("embed", unused, 32_768.0, 64, "/w/a.py", 119)
    found = said("padded-batches", spot)
    assert [one.rule for one in found] == ["padded-batches"] * told
    if told:
        assert found[0].title.endswith("82 % of the columns are padding in all rows")
        assert "of 512 columns 90 hold data" in found[0].evidence
        assert found[0].where.line == 119


PRODUCT, BY_VECTOR = "aten::mm [4096,64] x [64,4096]", "aten::mm [4096,4096] x [4096,1]"
ONE_HOT, PICKED = "aten::scatter_ [512,20,5000], [512,20,1]", "aten::mm [10240,5000] x [5000,128]"
EVALUATED, TRAINED = (f"aten::addmm [512] + [{rows},128] x [128,512]" for rows in (50000, 512))
BACKWARD = "aten::mm [512,128] x [128,512]"


@pytest.mark.parametrize(
    ("operations", "title"),
    [
        ((PRODUCT, BY_VECTOR), "Multiply from the right: a @ (b @ c)"),
        ((PRODUCT, "aten::mv [4096,4096] x [4096]"), "Multiply from the right: a @ (b @ c)"),
        ((PRODUCT, "aten::mm [1,4096] x [4096,4096]"), "Multiply from the left: (a @ b) @ c"),
        ((PRODUCT, BY_VECTOR, "aten::_softmax [4096,4096]"), None),  # something is done to what is made
        (("aten::addmm [4096] + [4096,64] x [64,4096]", BY_VECTOR), None),
        (("aten::mm [4096,4096] x [4096,8]", "aten::mm [4096,8] x [8,4096]"), None),  # the better order
        ((PRODUCT, "aten::mm [64,4096] x [4096,64]"), None),  # of something else
        ((ONE_HOT, PICKED), "Pick rows by their index: torch.nn.functional.embedding(index, weight)"),
        ((ONE_HOT, "aten::mm [5000,10240] x [10240,128]"), None),  # sums of rows
        (("aten::scatter_ [10240,5000], [10240,8]", PICKED), None),  # eight of a row
        (("aten::scatter_ [10240,8], [10240,1]", "aten::mm [10240,8] x [8,128]"), None),
        # a gradient that goes straight through to the softmax
        ((ONE_HOT, PICKED, "aten::_softmax [10240,5000]", "aten::sub [10240,5000], [10240,5000]"), None),
        (
            (EVALUATED, (BACKWARD, TRAINED)),
            "Evaluate less often: 50,000 rows are evaluated in each step, which trains with 512",
        ),
        ((EVALUATED, (BACKWARD, EVALUATED)), None),
        ((TRAINED, (BACKWARD, EVALUATED)), None),
    ],
)
def test_products_that_need_not_be_are_told_by_their_shapes(
    operations: tuple[str | tuple[str, str], ...], title: str | None
) -> None:
    pairs = [(one, None) if isinstance(one, str) else one for one in operations]
    kernels = tuple(
        KernelTime(
            Kernel(f"gemm{number}", (1,), (32,)),
            9,
            0.1,
            operation=made,
            operations=1,
            backward_of=of,
            file="/w/a.py",
            line=3,
        )
        for number, (made, of) in enumerate(pairs)
    )
    trace = GpuTrace("nsys", kernels, span=1.0, busy=0.9, order=tuple(range(len(kernels))), repeats=9)
    found = [one for one in find_insights(replace(document({}), trace=trace)) if one.where.file]
    rules = ("product-order", "one-hot-product", "evaluated-each-step")
    assert [one.title for one in found if one.rule in rules] == ([title] if title is not None else [])


TABLE = "aten::embedding [12000000,64], [8192,26]"


def dense(*kernels: tuple[float, str, str | None]) -> list[str]:
    """The titles of what is found in kernels of a millisecond or less: each with its operation, and of what that is
    the backward pass."""
    times = tuple(
        KernelTime(
            Kernel(f"kernel{number}", (1,), (32,)), 100, 100 * seconds, operation=made, backward_of=backward
        )
        for number, (seconds, made, backward) in enumerate(kernels)
    )
    span = sum(one.total for one in times)
    made = document({})
    trace = GpuTrace("nsys", times, span=span, busy=span, launches=100 * len(times))
    return [one.title for one in find_insights(replace(made, trace=trace, gpus=(H200,)))]


def test_a_dense_gradient_of_a_table_is_known_by_passes_that_take_as_long_as_all_its_rows_need() -> None:
    zeros = (0.7e-3, "aten::embedding_dense_backward [8192,26,64], [8192,26]", TABLE)
    adam = (4e-3, "aten::_fused_adam_ [12000000,64]", None)
    sorting = (7e-6, "aten::embedding_dense_backward [8192,26,64], [8192,26]", TABLE)
    title = "Use sparse gradients for the embedding: all its rows are processed in each step"
    assert title in dense((40e-6, TABLE, None), zeros, adam)
    assert title not in dense((40e-6, TABLE, None), sorting)


def test_a_sparse_gradient_is_not_to_be_made_sparse() -> None:
    """Of a model of clicks with SparseAdam: the rows of its gradient are joined, then a few rows are written."""
    joined = (57e-6, "aten::_coalesce [12000000,64]", None)
    written = (3e-3, "aten::index_add_ [12000000,64], [201922], [201922,64]", None)
    assert not [title for title in dense((40e-6, TABLE, None), joined, written) if "sparse" in title]


def convolutions(lengths: tuple[int, ...], waits: int) -> list[Insight]:
    """What is found where a line convolves inputs of these lengths and waits for the device so often."""
    times = tuple(
        KernelTime(
            Kernel(f"implicit_gemm{length}", (9,), (128,)),
            10,
            0.02,
            operation=f"aten::cudnn_convolution [4,128,128,{length}], [128,128,3,3]",
            file="net.py",
            line=41,
            function="forward",
        )
        for length in lengths
    )
    line = GpuLine("net.py", 41, "forward", calls=90, seconds=0.7, launches=90, waits=waits)
    trace = GpuTrace(
        "nsys", times, span=1.0, busy=0.2, launches=90, lines=(line,), line_span=1.0, repeats=10, starved=1.0,
        api=(ApiCall("cudaEventSynchronize", waits, 0.1),),
    )  # fmt: skip
    return list(find_insights(replace(document({}), trace=trace, gpus=(H200,))))


def test_convolutions_that_wait_for_each_new_shape_are_being_tuned_again() -> None:
    first = convolutions((1428, 1476, 1395, 1222), waits=1300)[0]
    assert (first.rule, first.where.line) == ("tuned-convolutions", 41)
    assert first.gain is not None
    assert first.gain.at_most == pytest.approx(0.7)


@pytest.mark.parametrize(
    ("lengths", "waits"),
    [((1428,), 1300), ((1428, 1476, 1395, 1222), 0)],
    ids=["one shape, tuned once", "nothing is timed"],
)
def test_convolutions_of_one_shape_or_that_do_not_wait_are_not_being_tuned(
    lengths: tuple[int, ...], waits: int
) -> None:
    assert "tuned-convolutions" not in [one.rule for one in convolutions(lengths, waits)]


def attention(kernel: str, product: str) -> list[str]:
    """The rules that find something in attention by one kernel beside products by another."""
    times = (
        KernelTime(
            Kernel(kernel, (9,), (128,)),
            10,
            0.9,
            operation="aten::_efficient_attention_forward [1,8192,16,64]",
        ),
        KernelTime(
            Kernel(product, (9,), (128,)), 10, 0.1, operation="aten::mm [8192,1024] x [1024,3072]", flops=5e10
        ),
    )
    trace = GpuTrace("nsys", times, span=1.0, busy=1.0, launches=20)
    return [one.rule for one in find_insights(replace(document({}), trace=trace, gpus=(H200,)))]


def test_attention_in_float32_is_named_in_a_model_of_16_bits_alone() -> None:
    float32 = "fmha_cutlassF_f32_aligned_64x64_rf_sm80"
    sixteen, tf32 = "nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_TNT", "cutlass_80_tensorop_s1688gemm_tf32"
    assert "float32-attention" in attention(float32, sixteen)
    assert "float32-attention" not in attention(float32, tf32)
    assert "float32-attention" not in attention("fmha_cutlassF_bf16_aligned_64x64_rf_sm80", sixteen)


def repeated(*spots: tuple[int, str, int, int], of: tuple[int, int] = (1000, 300)) -> list[Insight]:
    """What is found where lines (number, function, calls, how many came again) take 0.3 of a second each."""
    known = {"all calls": float(of[0]), "all again": float(of[1])}
    rows = tuple(
        Hotspot(function, float(again), None, calls, "net.py", number, "linear", counters=known)
        for number, function, calls, again in spots
    )
    lines = tuple(
        GpuLine("net.py", number, function, launches=10, kernel_seconds=0.3) for number, function, *_ in spots
    )
    other = GpuLine("net.py", 99, "step", launches=10, kernel_seconds=1.0 - 0.3 * len(lines))
    kernel = KernelTime(Kernel("nvjet_sm90", (9,), (128,)), 10, 1.0)
    trace = GpuTrace("nsys", (kernel,), span=1.0, busy=1.0, launches=10, lines=(*lines, other), line_span=1.0)
    profile = Profile("again", "count", 1.0, rows, "repeated-results")
    made = replace(document({}), trace=trace, profiles=(profile,), gpus=(H200,))
    return [one for one in find_insights(made) if one.rule == "repeated-results"]


def test_keys_and_values_that_are_made_again_for_each_token_are_named_with_what_they_take() -> None:
    (found,) = repeated((52, "forward", 336, 294), (53, "forward", 336, 294))
    assert (found.where.function, found.where.line) == ("forward", 52)
    assert found.gain is not None
    assert found.gain.at_most == pytest.approx(0.6 * 294 / 336)
    assert "also in 1 other line" in found.evidence


@pytest.mark.parametrize(
    ("spots", "of"),
    [([(52, "forward", 336, 294)], (1000, 950)), ([(52, "forward", 336, 100)], (1000, 100))],
    ids=["a benchmark of one input", "most is new"],
)
def test_a_program_that_repeats_itself_and_lines_with_new_results_are_not_to_keep_them(
    spots: list[tuple[int, str, int, int]], of: tuple[int, int]
) -> None:
    assert not repeated(*spots, of=of)


@pytest.mark.parametrize(
    ("shapes", "layout"),
    [
        ("[64,64,56,56], [64,64,3,3]", "channels_last:"),
        ("[1,16,96,96,96], [16,16,3,3,3]", "channels_last_3d:"),
        ("[64,128,1,1000], [128,128,1,5]", None),
        ("[64,128,1000], [128,128,5]", None),
    ],
    ids=["images", "volumes", "sequences as cuDNN takes them", "sequences"],
)
def test_the_layout_to_keep_is_the_one_that_torch_has_for_so_many_dimensions(
    shapes: str, layout: str | None
) -> None:
    times = (
        KernelTime(
            Kernel("nchwToNhwcKernel", (9,), (128,)), 100, 0.3, operation=f"aten::cudnn_convolution {shapes}"
        ),
        KernelTime(Kernel("implicit_gemm", (9,), (128,)), 100, 0.7),
    )
    trace = GpuTrace("nsys", times, span=1.0, busy=1.0, launches=200)
    titles = [one.title for one in find_insights(replace(document({}), trace=trace, gpus=(H200,)))]
    assert [title for title in titles if "layout" in title] == [
        f"Keep images and weights in {kept} the layout is converted around each convolution"
        for kept in [layout]
        if kept
    ]
