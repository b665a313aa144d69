"""Each rule speaks where an expert would, and is quiet where he would not. The numbers are those of real reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from profkit.analysis.judge.findings import find_insights
from profkit.analysis.judge.rules import RULES
from profkit.analysis.kernel_names.owner import kernel_owner
from profkit.analysis.summaries.bottlenecks import classify_bottlenecks
from profkit.core.types import Counter, Gpu, Insight, KernelInstruction, ToolRule
from profkit.profiling.summarize import summarize_report
from tests import kernel_documents
from tests.conftest import ROOT
from tests.kernel_documents import SAMPLES, Values

A4500 = Gpu("NVIDIA RTX A4500", capability="8.6", multiprocessors=56)
H100 = Gpu("NVIDIA H100 PCIe", capability="9.0", multiprocessors=114)
TU116 = Gpu("NVIDIA GeForce GTX 1660 SUPER", capability="7.5", multiprocessors=22)


def insights(
    values: Values,
    name: str = "my_kernel(float *, int)",
    gpu: Gpu = A4500,
    counters: Mapping[str, float] | None = None,
    seconds: float = 1e-3,
) -> dict[str, Insight]:
    """What the rules find in a report of one kernel."""
    one = kernel_documents.kernel(name)
    document = replace(kernel_documents.document({one: (seconds, values)}), gpus=(gpu,))
    document = replace(
        document,
        kernels=classify_bottlenecks(document),
        counters=tuple(
            Counter(counter, value, "measured", scope=one.scope)
            for counter, value in (counters or {}).items()
        ),
    )
    return {insight.rule: insight for insight in find_insights(document)}


def stalls(**shares: float) -> Values:
    return {f"stall.{reason}": value for reason, value in shares.items()}


NAIVE_PRODUCT: Values = {  # a matrix product without tiles on a GTX 1660
    "bandwidth.dram.share": 9.4,
    "bandwidth.l1.share": 83.1,
    "bandwidth.l2.share": 10.5,
    "sm.throughput": 83.1,
    "memory.throughput": 83.1,
    "pipe.fp32.utilization": 21.7,
    "pipe.fp64.utilization": 0.0,
    "pipe.lsu.utilization": 84.1,
    "pipe.xu.utilization": 0.0,
    "tensor.utilization": 0.0,
    "issue.active": 24.2,
    "memory.coalescing": 100.0,
    "launch.waves": 46.5,
    "launch.blocks": 1024.0,
    **stalls(lg_throttle=23.9, not_selected=3.0, wait=2.2, selected=1.0),
}
COLUMNS_IN_ROWS: Values = {  # 8 elements per thread, one after another, on a T4
    **NAIVE_PRODUCT,
    "bandwidth.dram.share": 44.8,
    "bandwidth.l1.share": 50.0,
    "bandwidth.l2.share": 50.0,
    "sm.throughput": 6.2,
    "memory.throughput": 50.0,
    "pipe.fp32.utilization": 0.9,
    "pipe.lsu.utilization": 6.6,
    "issue.active": 1.6,
    "memory.coalescing": 12.8,
    "memory.sectors.excess": 2_620_000.0,
    "memory.sectors_per_request.load": 31.2,
    "launch.waves": 20.0,
    **stalls(lg_throttle=275.0, long_scoreboard=144.0, drain=6.2, selected=1.0, wait=0.0, not_selected=0.0),
}
ATOMIC_SUM: Values = {  # every thread adds to one address
    **NAIVE_PRODUCT,
    "bandwidth.dram.share": 1.3,
    "bandwidth.l1.share": 3.2,
    "bandwidth.l2.share": 3.5,
    "sm.throughput": 1.4,
    "memory.throughput": 5.6,
    "pipe.fp32.utilization": 0.1,
    "pipe.lsu.utilization": 0.4,
    "issue.active": 0.2,
    **stalls(drain=1624.7, long_scoreboard=873.6, short_scoreboard=702.4, mio_throttle=294.7, selected=1.0),
    **stalls(lg_throttle=192.7, wait=3.4, not_selected=0.1),
}
ONE_LOAD_AT_A_TIME: Values = {  # rms_norm of scalars on an H100: DRAM at 67 %, float4 brought it to 89 %
    **NAIVE_PRODUCT,
    "bandwidth.dram.share": 67.1,
    "bandwidth.l1.share": 18.2,
    "bandwidth.l2.share": 36.2,
    "sm.throughput": 25.4,
    "memory.throughput": 67.1,
    "pipe.fp32.utilization": 15.8,
    "pipe.lsu.utilization": 15.6,
    "issue.active": 25.8,
    "occupancy.achieved": 93.7,
    "occupancy.theoretical": 100.0,
    "launch.waves": 9.0,
    **stalls(long_scoreboard=48.7, wait=3.5, barrier=1.5, selected=1.0, lg_throttle=0.0, not_selected=0.0),
}
PRODUCT_ON_TENSOR_CORES: Values = {  # cuBLAS on an H200, 95 % of the tensor cores
    **NAIVE_PRODUCT,
    "bandwidth.dram.share": 28.0,
    "bandwidth.l1.share": 70.0,
    "bandwidth.l2.share": 45.7,
    "sm.throughput": 90.5,
    "memory.throughput": 70.0,
    "pipe.fp32.utilization": 0.0,
    "pipe.lsu.utilization": 1.1,
    "tensor.utilization": 95.0,
    "issue.active": 12.0,
    "occupancy.achieved": 14.6,
    "occupancy.theoretical": 18.8,
    "launch.waves": 1.0,
    **stalls(barrier=6.1, long_scoreboard=3.8, gmma=3.5, selected=1.0),
}


# normalise_kernel of Triton on an H200: a program for each row of 2,048 numbers in FP32, 4 warps
HALVES_OF_SECTORS: Values = {
    "bandwidth.dram.share": 87.3,
    "bandwidth.l2.share": 60.0,
    "bandwidth.l1.share": 59.7,
    "dram.bytes": 381430272.0,
    "memory.coalescing": 55.56,
    "memory.sectors_per_request.load": 32.0,
    "memory.sectors_per_request.store": 16.0,
    "memory.sectors.excess": 16777216.0,
    "issue.active": 63.7,
    "occupancy.achieved": 94.6,
}


FEW_ADDRESSES: Values = {
    **ONE_LOAD_AT_A_TIME,
    "bandwidth.dram.share": 1.1,
    "memory.throughput": 40.0,
    "balance.l2": 48.0,
    "l2.busiest_slice": 99.9,
    "balance.multiprocessors": 99.6,
}
OF_CUFFT = (  # as nsys prints them, of CUDA 11 to 13
    "void multi_bluestein_fft<(unsigned int)512, EPT<(unsigned int)8>, (unsigned int)8, (unsigned int)0>(T2 *)",
    "void regular_fft_factor<(unsigned int)8, EPT<(unsigned int)8>, (unsigned int)128, (unsigned int)0>(T2 *)",
    "void prime_fft_factor<(unsigned int)43, EPT<(unsigned int)2>, (unsigned int)8, (unsigned int)0>(T2 *)",
    "void preprocess_kernel<float, unsigned int, (loadstore_modifier_t)2>(real_complex_args_t<T2>)",
    "void kernel_wrapper<unsigned int, &unpackC2R_kernel_Odd_impl<unsigned int, float>>(RealComplex_st<T1>)",
    "void spRadix0064B::kernel1Mem<unsigned int, float, (fftDirection_t)1>(kernel_arguments_t<unsigned int>)",
)


def test_double_precision_on_a_chip_that_is_slow_at_it_is_named() -> None:
    """NVIDIA's own sample: FP64 at 86 % and all else idle. The bound is what the next unit allows."""
    found = insights(SAMPLES["sobelDouble"])["slow-fp64"]
    assert "1/64" in found.evidence
    assert found.gain is not None
    assert 0.5 < found.gain.at_most < 1


@pytest.mark.parametrize("name", ["sobelFloat", "addConstDouble", "transposeNoBankConflicts"])
def test_double_precision_that_limits_nothing_is_none_of_the_problems(name: str) -> None:
    assert "slow-fp64" not in insights(SAMPLES[name])


def test_double_precision_where_the_chip_is_fast_at_it_is_a_problem_of_float_arguments_alone() -> None:
    assert "slow-fp64" not in insights(SAMPLES["sobelDouble"], "my_kernel(double *, float)", gpu=H100)
    assert "its arguments are float" in insights(SAMPLES["sobelDouble"], gpu=H100)["slow-fp64"].title


def test_data_that_l1_delivers_again_and_again_is_to_be_reused() -> None:
    found = insights(NAIVE_PRODUCT, gpu=TU116)["no-reuse"]
    assert found.gain is not None
    assert found.gain.at_most == pytest.approx(1 - 21.7 / 84.1, abs=0.02)  # until the FP32 pipe limits it
    assert "FP32" in found.gain.bound


def test_a_kernel_near_its_limit_gets_no_advice() -> None:
    assert insights(PRODUCT_ON_TENSOR_CORES, "nvjet_sm90_hsh_256x128", H100) == {}
    assert insights(SAMPLES["transposeNoBankConflicts"]) == {}


def test_threads_that_each_meet_a_sector_of_their_own_are_found_by_their_sectors() -> None:
    found = insights(COLUMNS_IN_ROWS)["wasted-sectors"]
    assert found.gain is not None
    assert found.gain.at_most < 0.872  # less than all the sectors that are wasted
    assert "transpose" in found.change


@pytest.mark.parametrize("values", [SAMPLES["addConstDouble3"], HALVES_OF_SECTORS])
def test_wasted_sectors_that_only_the_caches_see_are_no_reason_for_what_dram_takes(values: Values) -> None:
    """NVIDIA's sample of double3, and a kernel of Triton that loads rows by 16 bytes a thread: DRAM moves no excess."""
    assert "wasted-sectors" not in insights(values)
    reach = {**values, "dram.bytes": 3 * (values["dram.bytes"] or 0.0)}
    assert "wasted-sectors" in insights(reach)


# A Triton kernel that scans along the strided dimension, on an H200: shuffles wait behind the sectors of its loads.
STRIDED_SCAN: Values = {
    "time.kernel": 2.606e-3,
    "sm.throughput": 18.0,
    "memory.throughput": 48.5,
    "memory.sectors.excess": 29e6,
    "bandwidth.dram.share": 10.2,
    "bandwidth.l1.share": 48.5,
    "bandwidth.l2.share": 30.0,
    "bandwidth.shared.share": 8.2,
    "pipe.fp32.utilization": 8.2,
    "pipe.alu.utilization": 12.7,
    "pipe.xu.utilization": 2.8,
    "issue.active": 17.9,
    "launch.waves": 41.4,
    "launch.multiprocessors": 132.0,
    "occupancy.achieved": 37.1,
    "occupancy.theoretical": 37.5,
    "memory.coalescing": 12.5,
    "memory.sectors_per_request.load": 31.1,
    "memory.sectors_per_request.store": 32.0,
    "stall.barrier": 1.69,
    "stall.drain": 0.45,
    "stall.lg_throttle": 0.37,
    "stall.long_scoreboard": 6.08,
    "stall.mio_throttle": 6.85,
    "stall.selected": 1.0,
    "stall.short_scoreboard": 13.17,
    "stall.wait": 1.91,
}


def test_shuffles_that_wait_behind_wasted_sectors_are_no_reason_to_use_fewer_of_them() -> None:
    found = insights(STRIDED_SCAN, gpu=H100)
    assert "wasted-sectors" in found
    assert "waiting-warps" not in found
    fixed = {**STRIDED_SCAN, "memory.coalescing": 100.0, "memory.sectors_per_request.load": 4.0}
    assert "waiting-warps" in insights(fixed, gpu=H100)
    shared = {**STRIDED_SCAN, "bandwidth.shared.share": 40.0}  # then shared memory itself fills the pipe
    assert "waiting-warps" in insights(shared, gpu=H100)


def test_threads_that_queue_at_one_slice_of_l2_are_not_told_to_take_the_same_path() -> None:
    crowded = {**FEW_ADDRESSES, "memory.atomics": 1e6}
    diverging = {"warp.execution_efficiency": 57.7}
    assert "divergent-warps" in insights({**NAIVE_PRODUCT, **diverging})
    found = insights({**crowded, **diverging})
    assert "serial-atomics" in found
    assert "divergent-warps" not in found


def test_bank_conflicts_that_limit_a_kernel_are_found() -> None:
    found = insights(SAMPLES["transposeCoalesced"])["bank-conflicts"]
    assert found.gain is not None
    assert found.gain.at_most == pytest.approx(0.3808)
    assert "DRAM limits it, which is at 62 % of its peak" in found.gain.bound


def test_atomics_on_one_address_are_told_from_other_waiting() -> None:
    none = {"smsp__sass_inst_executed_op_global_st.sum": 0.0}
    assert "serial-atomics" in insights(ATOMIC_SUM, counters=none)
    stored = insights(ATOMIC_SUM, counters={"smsp__sass_inst_executed_op_global_st.sum": 5000.0})
    assert "serial-atomics" not in stored
    assert "waiting-warps" in stored


def test_a_kernel_below_the_speed_of_dram_whose_warps_wait_for_loads_needs_more_of_them() -> None:
    found = insights(ONE_LOAD_AT_A_TIME, gpu=H100)["waiting-warps"]
    assert found.gain is not None
    assert found.gain.at_most == pytest.approx(1 - 0.671)  # no faster than DRAM
    assert "float4" in found.change


@pytest.mark.parametrize(
    ("reason", "word"),
    [("barrier", "__syncthreads"), ("wait", "independent"), ("short_scoreboard", "shared memory")],
)
def test_what_warps_wait_for_decides_the_advice(reason: str, word: str) -> None:
    """ "Load 16 bytes per thread" would be wrong for a kernel that waits at a barrier."""
    values = {**ONE_LOAD_AT_A_TIME, "bandwidth.dram.share": 20.0, "memory.throughput": 30.0}
    values |= {name: 0.1 for name in values if name.startswith("stall.")}
    found = insights({**values, f"stall.{reason}": 20.0})["waiting-warps"]
    assert word in found.title + found.change
    assert "float4" not in found.change


def test_an_unaligned_product_of_a_library_is_told_to_be_padded() -> None:
    name = "void cutlass_75_tensorop_bf16_s1688gemm_bf16_128x128_nt_align1"
    found = insights({}, name, H100)["unaligned-matrix-product"]
    assert "Pad" in found.title
    assert "unaligned-matrix-product" not in insights({}, name.replace("align1", "align8"), H100)


def test_unaligned_products_are_one_insight_and_l1_is_not_what_bounds_them() -> None:
    """GPT-2 with 50,257 tokens on an H100: three products with 48 % of the GPU time; padding won 38 %, measured."""
    shares = {"tn": (0.203, 96.0, 19.7), "nn": (0.144, 69.0, 29.0), "nt": (0.132, 68.0, 30.0)}
    kernels = {
        kernel_documents.kernel(f"void cutlass_75_tensorop_bf16_s1688gemm_bf16_256x128_{kind}_align1"): (
            share,
            {"tensor.utilization": tensor, "bandwidth.l1.share": l1, "bandwidth.dram.share": 10.0},
        )
        for kind, (share, l1, tensor) in shares.items()
    }
    rest = kernel_documents.kernel("nvjet_sm90_tst_192x128")
    document = kernel_documents.document({**kernels, rest: (0.521, {})})
    document = replace(document, gpus=(H100,))
    document = replace(document, kernels=classify_bottlenecks(document))
    found = [insight for insight in find_insights(document) if insight.rule == "unaligned-matrix-product"]
    assert len(found) == 1
    assert found[0].gain is not None
    assert 0.38 <= found[0].gain.at_most < 0.479


def test_a_product_in_fp32_may_use_the_tensor_cores_where_they_are_faster() -> None:
    name = "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize32x32x8_stage3_warpsize1x2x1_ffma_aligna4_alignc4_cublas"
    found = insights({}, name, H100)["no-tensor-cores"]
    assert found.gain is not None
    assert found.gain.at_most == pytest.approx(1 - 1 / 7.4)
    assert "no-tensor-cores" not in insights({}, name, A4500)  # TF32 is not faster than FP32 there
    assert "no-tensor-cores" not in insights({}, name, TU116)
    of_16_bits = (
        "void implicit_convolve_sgemm<__nv_bfloat16, __nv_bfloat16, 1024, 5, 5, 3, 3, 3, 1, 0, 0, 0>(int)"
    )
    assert "no-tensor-cores" not in insights({}, of_16_bits, H100)
    assert "no-tensor-cores" in insights({}, of_16_bits.replace("__nv_bfloat16", "float"), H100)


@pytest.mark.parametrize(
    ("operation", "told"),
    [
        ("aten::native_layer_norm_backward [96,512,768], [96,512,768], [96,512,1]", False),
        ("aten::native_layer_norm_backward [4,16,768], [4,16,768], [4,16,1]", True),
        ("aten::mm [2,4096], [4096,4096]", True),  # a larger batch gives it more tiles
    ],
)
def test_a_librarys_few_blocks_are_a_reason_for_more_work_where_it_has_little(
    operation: str, told: bool
) -> None:
    one = kernel_documents.kernel("void at::native::GammaBetaBackwardCUDAKernelTemplate<float, float>(long)")
    values: Values = {"launch.blocks": 12.0, "launch.waves": 0.09, "launch.multiprocessors": 132.0}
    document = replace(kernel_documents.document({one: (1e-3, values)}), gpus=(H100,))
    assert document.trace is not None
    times = tuple(replace(time, operation=operation, operations=1) for time in document.trace.kernels)
    document = replace(document, trace=replace(document.trace, kernels=times))
    document = replace(document, kernels=classify_bottlenecks(document))
    assert ("small-grid" in {one.rule for one in find_insights(document)}) == told


@pytest.mark.parametrize(
    ("name", "owner"),
    [
        ("void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>>(int)", "aten"),
        ("void at::native::<unnamed>::distribution_elementwise_grid_stride_kernel<float, 4>(int)", "random"),
        ("nvjet_sm90_hsh_256x128_64x4_1x2_h_bz_coopA_NNT", "cublas"),
        ("void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x128_nn_align4>(T1::Params)", "cublas"),
        ("ampere_sgemm_128x64_tn", "cublas"),
        ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096>)", "nccl"),
        ("triton_poi_fused_add_mul_0", "inductor"),
        (
            "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64>>(Flash_fwd_params)",
            "flash-attention",
        ),
        (
            "void <unnamed>::softmax_warp_forward<float, float, float, (int)10, (bool)0, (bool)1>(T2 *)",
            "aten",
        ),
        ("rms_norm_matrix_kernel(float *, float *, int)", "user"),
        ("sgemm_naive(float *, int)", "user"),
        *((name, "cufft") for name in OF_CUFFT),
        ("vector_fft(float *)", "user"),
        ("cupy_multiply__complex64_float32_complex64", "cupy"),
        ("void cusparse::csrmv_v3_kernel<std::integral_constant<bool, (bool)0>, int>(T2)", "cusparse"),
    ],
)
def test_whose_kernel_it_is_stands_in_its_name(name: str, owner: str) -> None:
    assert kernel_owner(name) == owner


RADIX_SORT = (
    "void cub::CUB_300001_900_NS::DeviceRadixSortOnesweepKernel<cub::Policy1000, (bool)0, unsigned int>(T2 *)"
)
FOR_EACH = (
    "void cub::CUB_300001_900_NS::detail::for_each::static_kernel<cub::policy_500_t, long, Scale>(T2, T3)"
)
OF_NVIDIA = ToolRule(
    kernel_documents.kernel("").scope, "SharedMemoryConflicts", "Conflicts", "They are.", 0.5, whole=True
)
# Rules that look at counters of a kernel, and speak of how it is written.
HOW_WRITTEN = {
    *(
        "wasted-sectors",
        "no-reuse",
        "bank-conflicts",
        "register-spills",
        "small-blocks",
        "waiting-warps",
        "last-wave",
    ),
    *(
        "serial-atomics",
        "uneven-l2-slices",
        "uneven-multiprocessors",
        "lone-threads",
        "divergent-warps",
        "slow-fp64",
    ),
    *("indexed-constants", OF_NVIDIA.name),
}
WRITTEN_BADLY: tuple[tuple[Values, str], ...] = (
    (NAIVE_PRODUCT, "no-reuse"),
    (ATOMIC_SUM, "waiting-warps"),
    (COLUMNS_IN_ROWS, "wasted-sectors"),
    (ONE_LOAD_AT_A_TIME, "waiting-warps"),
    (SAMPLES["transposeCoalesced"], "bank-conflicts"),
    (SAMPLES["sobelDouble"], "slow-fp64"),
    ({**FEW_ADDRESSES, "memory.atomics": 1e6}, "serial-atomics"),
    ({**NAIVE_PRODUCT, "warp.execution_efficiency": 20.0}, "divergent-warps"),
    ({**NAIVE_PRODUCT, "instructions": 100.0, "memory.spill.loads": 9.0}, "register-spills"),
    ({**NAIVE_PRODUCT, "balance.multiprocessors": 40.0, "launch.waves": 4.0}, "uneven-multiprocessors"),
    ({**NAIVE_PRODUCT, "launch.waves": 1.1}, "last-wave"),
)


def written(values: Values, name: str, operation: str | None) -> set[str]:
    """What is said of how a kernel is written that an operation of PyTorch launched, or the program itself."""
    one = kernel_documents.kernel(name)
    document = replace(kernel_documents.document({one: (1e-3, values)}), gpus=(A4500,))
    assert document.trace is not None
    times = tuple(replace(time, operation=operation, operations=1) for time in document.trace.kernels)
    trace, rules = replace(document.trace, kernels=times), (replace(OF_NVIDIA, kernel=one.scope),)
    document = replace(document, trace=trace, rules=rules, kernels=classify_bottlenecks(document))
    return HOW_WRITTEN & {insight.rule for insight in find_insights(document)}


@pytest.mark.parametrize(("values", "rule"), WRITTEN_BADLY)
def test_a_kernel_of_a_library_is_not_told_how_it_is_to_be_written(values: Values, rule: str) -> None:
    assert written(values, "my_kernel(float *, int)", None) >= {rule, OF_NVIDIA.name}
    libraries = ("ampere_sgemm_128x64_tn", "nvjet_sm90_hsh_256x128", "cudnn::winograd_nonfused<1>(float *)")
    for name in (*libraries, *OF_CUFFT, RADIX_SORT, "cupy_multiply__complex64_float32_complex64"):
        assert written(values, name, None) == set()
    # A name that nobody knows is a library's, too, where an operation of PyTorch launched it.
    assert written(values, "my_kernel(float *, int)", "aten::linalg_eigh [512,512]") == set()


def test_a_function_of_the_program_that_thrust_calls_for_each_element_is_the_programs() -> None:
    assert "wasted-sectors" in written(COLUMNS_IN_ROWS, FOR_EACH, None)


def test_no_gain_is_larger_than_the_kernels_own_time_and_the_largest_stands_first() -> None:
    slow = kernel_documents.kernel("slow(float *)")
    fast = kernel_documents.kernel("fast(float *)")
    document = kernel_documents.document({slow: (9e-3, NAIVE_PRODUCT), fast: (1e-3, COLUMNS_IN_ROWS)})
    document = replace(document, gpus=(TU116,))
    document = replace(document, kernels=classify_bottlenecks(document))
    found = find_insights(document)
    gains = [insight.gain.at_most for insight in found if insight.gain is not None]
    assert gains == sorted(gains, reverse=True)
    for insight in found:
        assert insight.where.share == pytest.approx(0.9 if insight.where.kernel == slow.name else 0.1)
        assert insight.gain is None or insight.gain.at_most <= insight.where.share
    assert found[0].where.kernel == "slow(float *)"


def test_an_idle_gpu_makes_every_gain_of_a_kernel_smaller() -> None:
    one = kernel_documents.kernel("slow(float *)")
    gains = []
    for span in (1e-3, 4e-3):
        document = kernel_documents.document({one: (1e-3, NAIVE_PRODUCT)}, span=span, busy=1e-3)
        document = replace(document, gpus=(TU116,))
        document = replace(document, kernels=classify_bottlenecks(document))
        found = {insight.rule: insight for insight in find_insights(document)}["no-reuse"]
        assert found.gain is not None
        gains.append(found.gain.at_most)
    assert gains[1] == pytest.approx(gains[0] / 4)


def test_of_a_debug_build_nothing_else_is_said() -> None:
    one = kernel_documents.kernel("slow(float *, int)")
    document = kernel_documents.document({one: (1e-3, NAIVE_PRODUCT)})
    document = replace(document, gpus=(TU116,), facts={"debug build": "slow(float *, int)"})
    document = replace(document, kernels=classify_bottlenecks(document))
    assert [insight.rule for insight in find_insights(document)] == ["debug-build"]


def test_wasted_sectors_are_placed_on_the_line_of_their_instructions() -> None:
    one = kernel_documents.kernel("my_kernel(float *)")
    document = kernel_documents.document({one: (1e-3, COLUMNS_IN_ROWS)})
    place = KernelInstruction(one.scope, 0x40, "LDG", "norm.cu", 88, 0.1, excess_sectors=0.9, conflicts=0.0)
    document = replace(document, gpus=(A4500,), instructions=(place,))
    document = replace(document, kernels=classify_bottlenecks(document))
    found = find_insights(document)[0]
    assert (found.where.file, found.where.line) == ("norm.cu", 88)
    assert "90 % of the waste is in 1 instruction (LDG)" in found.evidence


@pytest.mark.parametrize(
    ("text", "shared", "rule", "title"),
    [
        (
            "LDC.U8",
            20.0,
            "indexed-constants",
            "Move the table out of constant memory: the threads of a warp read different places of it",
        ),
        ("SHFL", 0.0, "waiting-warps", "Use fewer shuffles"),
        ("MATCH", 0.0, "waiting-warps", "Use fewer instructions that go through the queue"),
        (None, 20.0, "waiting-warps", "Use fewer instructions that go through the queue"),
        (
            None,
            0.0,
            "indexed-constants",
            "Move the table out of constant memory: the threads of a warp read different places of it",
        ),
    ],
)
def test_of_a_full_queue_no_more_is_said_than_is_known_of_what_fills_it(
    text: str | None, shared: float, rule: str, title: str
) -> None:
    one = kernel_documents.kernel("my_kernel(float *)")
    waits = stalls(drain=0.0, long_scoreboard=9.0, short_scoreboard=9.0, lg_throttle=0.0, mio_throttle=900.0)
    values = {**ATOMIC_SUM, **waits, "bandwidth.shared.share": shared}
    document = kernel_documents.document({one: (1e-3, values)})
    place = KernelInstruction(one.scope, 64, text, "rs.cu", 41, 0.9, 0.0, 0.0, stall="mio_throttle")
    document = replace(document, gpus=(A4500,), instructions=(place,))
    found = find_insights(replace(document, kernels=classify_bottlenecks(document)))[0]
    assert (found.rule, found.where.line) == (rule, 41)
    assert found.title.startswith(title)


@pytest.mark.parametrize(("estimate", "told"), [(0.42, 0.12), (0.11, 0.11)])
def test_an_estimate_of_nvidias_ends_at_what_dram_has_left(estimate: float, told: float) -> None:
    one = kernel_documents.kernel("my_kernel(float *)")
    document = kernel_documents.document({one: (1e-3, SAMPLES["addConstDouble3"])})
    rule = ToolRule(
        one.scope, "UncoalescedGlobalAccess", "Uncoalesced", "Sectors. More.", estimate, whole=True
    )
    document = replace(document, gpus=(A4500,), rules=(rule,))
    document = replace(document, kernels=classify_bottlenecks(document))
    theirs = [insight for insight in find_insights(document) if insight.source == "nsight"]
    assert len(theirs) == 1
    assert theirs[0].gain is not None
    assert round(theirs[0].gain.at_most, 2) == told


def test_rules_have_names_of_their_own() -> None:
    assert len({rule.name for rule in RULES}) == len(RULES)


def test_what_a_rule_includes_are_rules() -> None:
    names = {rule.name for rule in RULES} | {"hot-spot"}  # the place alone, which no rule finds
    assert {name for rule in RULES for name in rule.includes} - names == set()
    assert [rule.name for rule in RULES if rule.name in rule.includes] == []


def test_a_report_without_kernels_has_no_insight() -> None:
    assert find_insights(kernel_documents.document({})) == ()


# A histogram over 16 addresses on an H200: the busiest slice of L2 never rests, the average one works half the time.
def test_atomics_on_few_addresses_are_no_want_of_loads_under_way() -> None:
    found = insights({**FEW_ADDRESSES, "memory.atomics": 2_097_152.0})
    assert "waiting-warps" not in found
    assert "uneven-l2-slices" not in found
    assert "the busiest slice of L2 works for 100 % of the time, the average one for 48 %" in (
        found["serial-atomics"].evidence
    )


def test_without_atomics_crowded_slices_are_accesses_to_be_spread() -> None:
    found = insights({**FEW_ADDRESSES, "memory.atomics": 0.0})
    assert {"waiting-warps", "serial-atomics"}.isdisjoint(found)
    assert found["uneven-l2-slices"].gain is not None
    assert found["uneven-l2-slices"].gain.at_most == pytest.approx(0.52)
    quiet = {**FEW_ADDRESSES, "l2.busiest_slice": 1.4, "memory.atomics": 0.0}  # a kernel that hardly uses L2
    assert "uneven-l2-slices" not in insights(quiet)


def test_blocks_of_very_different_length_are_told_by_the_multiprocessors() -> None:
    found = insights({**ONE_LOAD_AT_A_TIME, "balance.multiprocessors": 60.0})
    assert found["uneven-multiprocessors"].gain is not None
    assert found["uneven-multiprocessors"].gain.at_most == pytest.approx(
        0.329
    )  # then the busiest unit is full
    even = {**ONE_LOAD_AT_A_TIME, "balance.multiprocessors": 98.9}
    assert "uneven-multiprocessors" not in insights(even)


def test_a_last_wave_costs_no_more_than_multiprocessors_wait_for_the_busiest_one() -> None:
    """Of an RMS norm on an H100, 1.12 waves: half the device would idle, and blocks that end early filled it."""
    few = {**ONE_LOAD_AT_A_TIME, "bandwidth.dram.share": 18.9, "launch.waves": 1.12}
    alone = insights(few)["last-wave"].gain
    counted = insights({**few, "balance.multiprocessors": 88.7})["last-wave"].gain
    assert alone is not None
    assert counted is not None
    assert (alone.at_most, counted.at_most) == (pytest.approx(0.44), pytest.approx(0.113))
    assert "last-wave" not in insights({**few, "balance.multiprocessors": 97.0})


def test_the_recorded_histogram_is_told_by_its_atomics_and_no_other_kernel_is_uneven() -> None:
    report = ROOT / "tests" / "data" / "cuda" / "ncu" / "truths.full.ncu-rep"
    found = [(one.rule, (one.where.kernel or "").split("(")[0]) for one in summarize_report(report).insights]
    assert ("serial-atomics", "histogram") in found
    assert not [rule for rule, _ in found if rule.startswith("uneven")]
    assert not [rule for rule, kernel in found if kernel == "histogram" and rule != "serial-atomics"]


FLASH_2 = "void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<(int)128, (int)128, (int)32, (int)4>>(Flash_fwd_params)"


def test_attention_of_before_hopper_is_told_on_hopper_alone() -> None:
    found = insights({}, FLASH_2, gpu=H100)["old-attention"]
    assert found.gain is not None
    assert found.gain.at_most == pytest.approx(0.5)
    assert "old-attention" not in insights({}, FLASH_2, gpu=A4500)
    cudnn = (
        "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_3_64x64x64_4x1x1_cga1x1x1_kernel0_0"
    )
    assert "old-attention" not in insights({}, cudnn, gpu=H100)
