"""Rules on the timeline: no gain is larger than overlap, a launch or the kernels themselves allow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from profkit.analysis.judge.findings import find_insights
from profkit.analysis.judge.rules.gpu.elementwise import fusible_part
from profkit.analysis.judge.words import words
from profkit.core.types import (
    ApiCall,
    CodeLine,
    CodeSpot,
    Communication,
    DeviceCommunication,
    GpuLine,
    GpuTrace,
    HoldingCall,
    HostPauses,
    Hotspot,
    Insight,
    Kernel,
    KernelTime,
    LineCode,
    LineSamples,
    MemoryKind,
    Place,
    Profile,
    SampledTime,
    TimeSplit,
    Transfer,
)
from profkit.profiling.summarize import summarize_report
from tests import kernel_documents
from tests.conftest import ROOT
from tests.gpu_documents import H200

NSYS = ROOT / "tests" / "data" / "cuda" / "nsys"


def insights(
    kernels: Mapping[str, tuple[int, float]], grid: tuple[int, ...] = (4096, 1, 1), **trace: Any
) -> dict[str, Insight]:
    """What the rules find in a trace: of each kernel its launches and its whole time in seconds."""
    times = tuple(
        KernelTime(Kernel(name, grid, (256, 1, 1)), launches, total, median=total / launches)
        for name, (launches, total) in kernels.items()
    )
    return found_in(times, **trace)


def found_in(times: tuple[KernelTime, ...], **trace: Any) -> dict[str, Insight]:
    """What the rules find in a trace with these kernels."""
    document = kernel_documents.document({})
    assert document.trace is not None
    launches = sum(one.launches for one in times)
    made = replace(document.trace, tool="nsys", kernels=times, launches=launches, **trace)
    return {insight.rule: insight for insight in find_insights(replace(document, trace=made, gpus=(H200,)))}


def copies(seconds: float, kind: str = "host to device") -> tuple[Transfer, ...]:
    return (Transfer(kind, 384, 36_600_000_000, seconds),)


def test_overlap_hides_no_more_of_the_copies_than_kernels_run() -> None:
    """A model whose weights lie on the host: 97 % copies, 2.6 % kernels. Overlap alone is no answer."""
    found = insights({"gemm": (96, 0.018)}, span=0.697, busy=0.693, copying=0.675, transfers=copies(0.675))
    copying = found["exposed-copies"]
    assert "2.6 %" in copying.evidence
    assert "Keep on the device" in copying.change
    assert "Copy while" not in copying.title


def test_copies_beside_enough_kernels_can_be_hidden_at_most_once() -> None:
    found = insights({"gemm": (96, 0.5)}, span=1.0, busy=0.9, copying=0.4, transfers=copies(0.5))
    gain = found["exposed-copies"].gain
    assert gain is not None
    assert gain.at_most == pytest.approx(0.4)


def held(memory: MemoryKind, seconds: float, size: int = 36_600_000_000) -> tuple[Transfer, ...]:
    return (Transfer("host to device", 384, size, seconds, (Transfer(memory, 384, size, seconds),)),)


def test_pageable_memory_is_to_be_pinned_before_anything_else() -> None:
    """Asynchronous copies of it are none."""
    found = insights({"gemm": (96, 0.5)}, span=1.0, busy=0.9, copying=0.4, transfers=held("pageable", 0.5))
    assert found["exposed-copies"].title == "Pin the host memory, then copy while kernels run"
    assert "100 % of that time with pageable memory" in found["exposed-copies"].evidence
    assert "cudaHostAlloc" in found["exposed-copies"].change
    alone = insights({"gemm": (96, 0.02)}, span=1.0, busy=0.9, copying=0.88, transfers=held("pageable", 0.88))
    assert alone["exposed-copies"].title.startswith("Pin the host memory, and move less")


def test_memory_that_is_pinned_is_not_to_be_pinned() -> None:
    found = insights({"gemm": (96, 0.5)}, span=1.0, busy=0.9, copying=0.4, transfers=held("pinned", 0.5))
    copying = found["exposed-copies"]
    assert copying.evidence.endswith("with pinned memory")
    assert "pin" not in f"{copying.title} {copying.change}".lower()


def test_copies_that_kernels_hide_already_are_no_problem() -> None:
    assert insights({"gemm": (96, 0.9)}, span=1.0, busy=0.95, copying=0.01, transfers=copies(0.5)) == {}


def test_copies_within_the_device_are_no_copies_to_be_hidden() -> None:
    within = copies(0.5, "device to device")
    assert "exposed-copies" not in insights(
        {"a": (96, 0.5)}, span=1.0, busy=0.9, copying=0.4, transfers=within
    )


def test_a_gpu_that_waits_for_the_host_again_and_again_needs_launches_sooner() -> None:
    found = insights({"k": (4000, 0.27)}, span=0.3, busy=0.2706, starved=0.81, largest_gap=0.0045)
    gain = found["late-launches"].gain
    assert gain is not None
    assert gain.at_most == pytest.approx(0.081 * 0.98, abs=0.002)


def test_one_long_gap_is_no_host_that_launches_too_slowly() -> None:
    """The first use of a library: 348 of 551 us idle in one gap, and the rest is 2.5 % of the time."""
    found = insights({"k": (60, 0.00743)}, span=0.00802, busy=0.00747, starved=0.68, largest_gap=0.000348)
    assert "late-launches" not in found


def test_a_gpu_that_waits_although_work_is_queued_does_not_need_launches_sooner() -> None:
    assert "late-launches" not in insights({"k": (4000, 0.2)}, span=0.3, busy=0.2, starved=0.05)


@pytest.mark.parametrize(
    ("recording", "late"), [("hostbound", True), ("sweep", False), ("operations", False)]
)
def test_a_host_that_does_something_else_for_long_is_no_loop_of_late_launches(
    recording: str, late: bool
) -> None:
    """The sweep waits for 7.06 of 7.12 s in 24 gaps of over 1 ms, 99 % of it in ten: compilers and checks."""
    rules = {insight.rule for insight in summarize_report(NSYS / f"{recording}.sqlite").insights}
    assert ("late-launches" in rules) is late
    assert "host-pauses" not in rules


def test_a_gpu_that_waits_in_each_step_for_the_next_batch_has_a_host_with_other_work() -> None:
    """A training of 8 steps (Kineto, 1.23 s): 48 gaps of 2.9 ms, and 30 ms in all of shorter ones."""
    step: dict[str, Any] = {
        "span": 1.230,
        "busy": 0.5477,
        "starved": 0.415,
        "largest_gap": 0.024,
        "marked": True,
    }
    kernels = {"gemm": (1154, 0.5477)}
    found = insights(kernels, **step, pauses=HostPauses(48, 0.2506, 0.00288))
    assert "48 gaps of over 1 ms (2.88 ms each)" in found["host-pauses"].evidence
    gain = found["host-pauses"].gain
    assert gain is not None
    assert gain.at_most == pytest.approx(0.2506 / 1.230)
    assert "late-launches" not in found  # 2.6 % is left for it


# 81 steps of 28.5 ms on an H200: FFTs of 24 shapes, for which CuPy has 16 plans.
PLANNED: dict[str, Any] = {
    "span": 2.31,
    "busy": 0.058,
    "starved": 0.99,
    "repeats": 81,
    "pauses": HostPauses(60, 0.13, 0.0012),
}
LOADS = (
    HoldingCall("cuModuleLoadData", 4617, 2310, 1.44),
    HoldingCall("cuModuleUnload", 4617, 2310, 0.09),
    HoldingCall("cudaFree", 4617, 2310, 0.02),
)
FFT = {"void vector_fft<...>": (8000, 0.03), "compress_pulse": (8976, 0.025)}


def test_a_gpu_that_waits_for_calls_that_launch_nothing_needs_no_fewer_launches() -> None:
    late = insights(FFT, **PLANNED)["late-launches"]
    assert late.gain is not None
    assert late.gain.at_most == pytest.approx(0.91, abs=0.01)
    few = (HoldingCall("cudaFree", 81, 40, 0.5, paused=0.1),)
    late = insights(FFT, **PLANNED, holding=few)["late-launches"]
    assert late.gain is not None
    assert late.gain.at_most == pytest.approx((0.99 * 2.252 - 0.13 - 0.4) / 2.31, abs=0.002)
    assert "17 % in calls that launch nothing are not counted (cudaFree most)" in late.evidence
    every = (HoldingCall("cudaDeviceSynchronize", 81, 40, 2.1),)
    assert "late-launches" not in insights(FFT, **PLANNED, holding=every)


def test_plans_of_ffts_that_are_made_in_each_step_are_to_be_kept() -> None:
    found = insights(FFT, **PLANNED, holding=LOADS)
    loaded = found["modules-loaded"]
    assert loaded.title.startswith("Keep the plans of the FFTs")
    assert loaded.evidence.startswith("57 modules are loaded in each step, and 57 are unloaded: for 66 %")
    assert "cufftPlanMany" in loaded.change
    assert "get_plan_cache().set_size" in words("modules-loaded.fft.", "program")  # of a program in Python
    assert loaded.gain is not None
    assert loaded.gain.at_most == pytest.approx(1.53 / 2.31)
    assert next(iter(found)) == "modules-loaded"
    assert "late-launches" not in found  # it waits more for the loads than for launches
    other = insights({"k": (16976, 0.055)}, **PLANNED, holding=LOADS)["modules-loaded"]
    assert "FFT" not in f"{other.title} {other.change}"


@pytest.mark.parametrize(
    "holding",
    [
        (),  # with a cache that is large enough
        (HoldingCall("cuModuleLoadData", 4617, 120, 1.44),),  # of the first steps
        (HoldingCall("cuModuleLoadData", 57, 28, 1.44),),  # of few steps
        (HoldingCall("cuModuleLoadData", 4617, 2310, 0.02),),  # while the GPU works
        (HoldingCall("cudaMalloc", 4617, 2310, 1.44),),
    ],
)
def test_modules_that_are_loaded_once_or_while_the_gpu_works_are_none(
    holding: tuple[HoldingCall, ...],
) -> None:
    assert "modules-loaded" not in insights(FFT, **PLANNED, holding=holding)


@pytest.mark.parametrize(
    "pauses",
    [
        HostPauses(10, 0.2506, 0.005),  # the first use of libraries: two gaps are most of it
        HostPauses(6, 0.2506, 0.04),  # no loop
        HostPauses(20, 0.03, 0.0014),  # 2.4 % of the time
        None,  # of a tool that does not tell
    ],
)
def test_pauses_that_are_few_uneven_or_short_say_nothing_of_a_loop(pauses: HostPauses | None) -> None:
    found = insights({"gemm": (1154, 0.5)}, span=1.23, busy=0.5, starved=0.4, marked=True, pauses=pauses)
    assert "host-pauses" not in found


def test_a_gpu_that_waits_after_each_copy_to_the_host_is_said_to_and_of_a_loader_nothing() -> None:
    """A simulation in C++ whose host takes the maximum of 48 MB in each step (H200): 29 ms, three copies before it."""
    back = Transfer(
        "device to host", 810, 13_589_544_960, 0.97, (Transfer("pageable", 810, 13_589_544_960, 0.97),)
    )
    line = GpuLine("/app/push.cu", 71, None, 270, 1.08, transfers=(back,), call="cudaMemcpy")
    step: dict[str, Any] = {"span": 9.09, "busy": 0.989, "copying": 0.97, "starved": 0.99, "repeats": 270}
    paused = HostPauses(270, 8.04, 0.0292, after_copies=8.04)
    found = insights({"push": (270, 0.016)}, **step, pauses=paused, transfers=(back,), lines=(line,))
    said = found["host-pauses"]
    assert said.title == "Work on the data where it is: the GPU waits after each copy to the host"
    assert said.where.line == 71
    assert "48.0 MiB in each step" in said.evidence
    before = replace(paused, after_copies=0.2)  # the host works on something else
    other = insights({"push": (270, 0.016)}, **step, pauses=before, transfers=(back,), lines=(line,))[
        "host-pauses"
    ]
    assert "Work on the data" not in other.title
    assert "copies to the host" not in other.evidence


def test_a_loader_of_torch_is_advised_to_programs_that_have_one() -> None:
    assert "where a DataLoader feeds the loop" in words("host-pauses.torch", "program")


ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>(int)"
DRAWN = "void at::native::<unnamed>::distribution_elementwise_grid_stride_kernel<float>(int)"


def test_many_elementwise_kernels_are_to_be_fused() -> None:
    found = insights({"nvjet_gemm": (100, 0.6), ADD: (900, 0.3)}, span=1.0, busy=0.9)
    gain = found["unfused-operations"].gain
    assert gain is not None
    assert gain.at_most == pytest.approx(0.3)


def test_launches_that_only_the_trace_made_late_are_none() -> None:
    """A GPT whose host is a step ahead of its GPU: with ranges of all operations the GPU waits for 27 % of a step."""
    step: dict[str, Any] = {"span": 0.165188, "busy": 0.120060, "starved": 0.882, "largest_gap": 0.001}
    kernels = {"gemm": (2850, 0.11978)}
    assert insights(kernels, **step)["late-launches"].gain is not None
    assert "late-launches" not in insights(kernels, **step, operations=18_900)
    still = insights(kernels, **step, operations=5_000)["late-launches"]
    assert "14.5 ms caused by tracing are not counted" in still.evidence
    assert still.gain is not None
    assert still.gain.at_most == pytest.approx((0.882 * 0.045128 - 0.0145) / (0.165188 - 0.0145), rel=1e-3)


@pytest.mark.parametrize(
    "kernels",
    [
        {"nvjet_gemm": (100, 0.85), ADD: (900, 0.05)},  # too little of the time
        {"nvjet_gemm": (100, 0.5), ADD: (3, 0.4)},  # no chain of operations
        {"nvjet_gemm": (100, 0.5), DRAWN: (900, 0.4)},  # random numbers
        {"triton_poi_fused_add_0": (100, 0.5), ADD: (900, 0.4)},  # compiled already
    ],
)
def test_what_is_compiled_random_or_small_is_not_to_be_fused(kernels: dict[str, tuple[int, float]]) -> None:
    assert "unfused-operations" not in insights(kernels, span=1.0, busy=0.9)


def test_conversions_of_types_in_every_step_are_named() -> None:
    name = (
        "void at::native::elementwise_kernel<at::native::bfloat16_copy_kernel_cuda(at::TensorIteratorBase &)>"
    )
    found = insights({"gemm": (400, 0.41), name: (1655, 0.09)}, span=0.6, busy=0.5)["repeated-conversions"]
    assert "1655 kernels" in found.evidence
    assert found.gain is not None
    assert found.gain.at_most == pytest.approx(0.09 / 0.6)


@pytest.mark.parametrize(
    ("backward_of", "rule", "said"),
    [
        (None, "repeated-conversions", True),
        ("aten::_to_copy [4096,1024]", "repeated-conversions", False),  # weights that each step changes
        ("aten::_to_copy [512,512]", "repeated-conversions", True),  # others
    ],
)
def test_what_autocast_makes_of_trained_weights_is_not_to_be_converted_once(
    backward_of: str | None, rule: str, said: bool
) -> None:
    cast = (
        "void at::native::elementwise_kernel<at::native::bfloat16_copy_kernel_cuda(at::TensorIteratorBase &)>"
    )
    forward = KernelTime(
        Kernel(cast, (4096, 1, 1), (256, 1, 1)), 1655, 0.09, operation="aten::copy_ [4096,1024]"
    )
    back = KernelTime(
        Kernel("vectorized_copy", (4096, 1, 1), (256, 1, 1)), 400, 0.01, operation="aten::copy_ [4096,1024]",
        backward_of=backward_of,
    )  # fmt: skip
    assert (rule in found_in((forward, back), span=0.6, busy=0.5)) == said


@pytest.mark.parametrize(("backward_of", "said"), [(None, True), ("aten::unbind [3,48,16,512,64]", False)])
def test_gradients_that_autograd_joins_are_no_array_that_the_program_joins(
    backward_of: str | None, said: bool
) -> None:
    joins = "void at::native::CatArrayBatchedCopy_vectorized<at::native::OpaqueType<2>, unsigned, 4, 64, 64>"
    cat = KernelTime(
        Kernel(joins, (4096, 1, 1), (256, 1, 1)), 320, 0.1, operation="aten::cat [48,16,512,64]",
        backward_of=backward_of,
    )  # fmt: skip
    assert ("device-copies" in found_in((cat,), span=0.6, busy=0.5, repeats=40)) == said


def test_a_kernels_gain_counts_only_the_time_in_which_kernels_run() -> None:
    """Half of the busy time is copies: what a kernel could win is half as much."""
    name = "void cutlass_75_tensorop_bf16_s1688gemm_bf16_128x128_nt_align1"
    alone = insights({name: (10, 0.4)}, span=1.0, busy=0.4)["unaligned-matrix-product"]
    beside = insights({name: (10, 0.4)}, span=1.0, busy=0.8, copying=0.4)["unaligned-matrix-product"]
    assert alone.gain is not None
    assert beside.gain is not None
    assert alone.gain.at_most == pytest.approx(beside.gain.at_most)
    assert alone.gain.at_most == pytest.approx(0.4)


ALIGN1 = "void cutlass_75_tensorop_bf16_s1688gemm_bf16_128x128_nt_align1"


def unaligned(*operations: tuple[str, int, int]) -> Insight:
    """Of products whose kernels were launched 10 times, by `(operation, how often by it, of how many)`."""
    document = kernel_documents.document({})
    assert document.trace is not None
    times = tuple(
        KernelTime(Kernel(ALIGN1, (n + 1, 1, 1), (256, 1, 1)), 10, 0.1, 0.01, operation=name,
                   operation_launches=launches, operations=different)
        for n, (name, launches, different) in enumerate(operations)
    )  # fmt: skip
    made = replace(document.trace, tool="nsys", kernels=times, span=1.0, busy=0.9)
    (found,) = (one for one in find_insights(replace(document, trace=made)) if one.rule.startswith("unal"))
    return found


FORWARD = "aten::mm [4096,768] x [768,50257]"
BACKWARD = "aten::mm [50257,4096] x [4096,768]"


def test_the_dimension_to_be_padded_is_named_where_the_operations_tell_it() -> None:
    found = unaligned((FORWARD, 10, 1), (BACKWARD, 10, 1))
    assert found.title == "Pad the dimension of 50,257 to 50,304"
    assert found.where.operation == FORWARD
    # The begin of the recording cut off the calls of the other launches.
    assert unaligned((FORWARD, 4, 1)).title == found.title
    assert unaligned(("aten::bmm [12,512,100] x [12,100,512]", 10, 1)).title.endswith("of 100 to 104")


@pytest.mark.parametrize(
    "operation",
    [
        ("aten::mm [4095,768] x [768,50257]", 10, 1),  # two of them: either
        (FORWARD, 4, 3),  # of others, too
        ("aten::convolution [8,3,225,225], [64,3,7,7]", 10, 1),
    ],
)
def test_a_dimension_is_not_named_where_it_may_be_another(operation: tuple[str, int, int]) -> None:
    assert "multiple of 8" in unaligned(operation).title


def test_a_name_alone_proves_no_odd_dimension() -> None:
    with pytest.raises(ValueError, match="not enough values"):
        unaligned(("aten::mm [4096,768] x [768,512]", 10, 1))


REDUCE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)"


def communicating(told: Communication, busy: float = 0.9) -> dict[str, Insight]:
    return insights({"gemm": (400, 0.6), REDUCE: (100, 0.3)}, span=1.0, busy=busy, communication=told)


def test_communication_that_nothing_hides_can_be_hidden_by_what_else_runs() -> None:
    found = communicating(Communication(0.3, 0.2, None, 100, REDUCE, 1))["exposed-communication"]
    assert found.title == "Communicate while kernels run"
    assert "for 20 % of the time nothing but NCCL runs on a GPU: 100 calls (AllReduce most)" in found.evidence
    assert "bucket_cap_mb" in found.change
    assert found.gain is not None
    assert found.gain.at_most == pytest.approx(0.2)
    mostly = communicating(Communication(0.75, 0.7, None, 100, REDUCE, 1))["exposed-communication"]
    assert mostly.gain is not None
    assert mostly.gain.at_most == pytest.approx(0.2)  # kernels run for no longer than that


def test_collectives_of_jax_get_advice_for_jax() -> None:
    kernels = {"loop_add_fusion": (400, 0.6), REDUCE: (100, 0.3)}
    told = Communication(0.3, 0.2, None, 100, REDUCE, 1)
    found = insights(kernels, span=1.0, busy=0.9, communication=told)["exposed-communication"]
    assert "latency_hiding_scheduler" in found.change
    assert "DDP" not in found.change


def test_a_step_of_jax_that_is_not_compiled_is_named_where_its_loop_calls_it() -> None:
    """And not where the program begins, though it compiles each operation there for the first time."""
    kernels = tuple(
        KernelTime(Kernel(f"k{n}", (1,), (32,)), 100, 0.01, ranges=(f"XlaModule:#hlo_module=jit_f{n}#",))
        for n in range(6)
    )
    start, step = (
        Place(function="main", file="train.py", line=36),
        Place(function="step", file="train.py", line=27),
    )
    spots = tuple(
        CodeSpot(share, 10 * share, "library", where, code=LineCode(""))
        for share, where in ((0.4, start), (0.3, step))
    )
    call = CodeLine("main", "train.py", 43, 3.0)
    sampled = SampledTime(
        10.0,
        10.0,
        lines=(
            LineSamples("main", "train.py", 36, 4.0, code=LineCode("")),
            LineSamples("step", "train.py", 27, 3.0, callers=(call,), code=LineCode("")),
        ),
        outer=(LineSamples("main", "train.py", 43, 3.0, code=LineCode("step()", loop=42)),),
    )
    document = kernel_documents.document({})
    assert document.trace is not None
    trace = replace(
        document.trace, kernels=kernels, launches=600, repeats=20, span=1.0, busy=0.06, starved=0.9
    )
    document = replace(document, trace=trace, hot_spots=spots, sampled=(sampled,), gpus=(H200,))
    found = {insight.rule: insight for insight in find_insights(document)}["not-compiled"]
    assert (found.where.function, found.where.line) == ("main", 43)
    # What a model is made with, some of it twice, is no step.
    twice = replace(document, trace=replace(trace, repeats=2))
    assert "not-compiled" not in {insight.rule for insight in find_insights(twice)}


def recompiled(**totals: float) -> dict[str, Insight]:
    """What is said of functions that JAX compiled again five times, in so many seconds of ten each."""
    spots = tuple(
        Hotspot("main", 5.0, total, 5, "train.py", 10 + n, f"jit({name})", counters={"jax": 1.0})
        for n, (name, total) in enumerate(totals.items())
    )
    document = kernel_documents.document({})
    profile = Profile("compiled again by JAX", "count", 10.0, spots, "recompilations")
    split = TimeSplit(10.0)
    document = replace(document, profiles=(profile,), time_split=split, gpus=(H200,))
    return {insight.rule: insight for insight in find_insights(document)}


def test_what_is_compiled_again_longest_is_named_and_what_hardly_counts_is_not() -> None:
    found = recompiled(broadcast_in_dim=0.1, score=3.0)["recompilations"]
    assert found.evidence == "jit(score), in 3.00 s"
    assert found.where.line == 11
    assert "recompilations" not in recompiled(broadcast_in_dim=0.1)


@pytest.mark.parametrize(("seconds", "rules"), [(8.0, ["recompilations"]), (0.02, [])])
def test_kernels_that_triton_compiles_again_are_told_before_steps_that_take_a_thousandth_of_the_program(
    seconds: float, rules: list[str]
) -> None:
    """As of 32 lengths of a clip, each a tl.constexpr: 9 of 14.7 s were compilation, 10 ms the kernels."""
    spot = Hotspot(
        "pool", 31.0, seconds, 31, "a.py", 44, "kernel, whose constants differ", counters={"triton": 1.0}
    )
    small = KernelTime(Kernel("k", (2,), (128,)), 96, 0.005, operation="aten::mean [256,256]")
    document = kernel_documents.document({})
    assert document.trace is not None
    trace = replace(
        document.trace, kernels=(small,), launches=96, repeats=3, span=0.01, busy=0.002, starved=0.9
    )
    document = replace(
        document,
        trace=trace,
        profiles=(Profile("compiled again by Triton", "count", 31.0, (spot,), "recompilations"),),
        time_split=TimeSplit(14.7, startup=14.69, steady=0.01, repeats=3),
        gpus=(H200,),
    )
    found = find_insights(document)
    assert [one.rule for one in found if one.rule == "recompilations"] == rules
    if rules:
        assert [one.rule for one in found] == rules  # and nothing of steps that take 10 ms
        assert "Triton compiles it again 31 times" in found[0].title
        assert "do_not_specialize" in found[0].change
    else:
        assert found  # the steps have something to be said of, where nothing else takes the time


def test_waiting_for_another_gpu_is_no_transfer() -> None:
    found = communicating(Communication(0.3, 0.3, 0.2, 100, REDUCE, 2))["gpu-behind"]
    assert found.title.endswith("they wait for each other")
    assert found.gain is not None
    assert found.gain.at_most == pytest.approx(0.2)


def test_the_gpu_that_comes_last_to_each_call_is_named() -> None:
    devices = (DeviceCommunication(0, 0.1, 0.1, 0.01), DeviceCommunication(1, 0.5, 0.5, 0.39))
    found = communicating(Communication(0.3, 0.3, 0.2, 100, REDUCE, 2, devices))["gpu-behind"]
    assert found.title == "GPU 0 comes last to each call: the others wait for it"
    assert found.evidence.endswith("to begin the same call: GPU 0 10.0 ms, GPU 1 390 ms")
    alike = replace(devices[0], waiting=0.3)
    found = communicating(Communication(0.3, 0.3, 0.2, 100, REDUCE, 2, (alike, devices[1])))["gpu-behind"]
    assert found.title.endswith("they wait for each other")


def test_hidden_communication_is_none() -> None:
    assert "exposed-communication" not in communicating(Communication(0.3, 0.01, None, 100, REDUCE, 1))


@pytest.mark.parametrize("framework", ["torch", "jax", "cuda", ""])
def test_advice_by_framework_is_there_for_each(framework: str) -> None:
    titled = ("host-pauses", "late-launches")
    names = (
        *titled,
        "device-sync",
        "no-tensor-cores",
        "no-tensor-cores.convolutions",
        "overlap.to",
        "overlap.back",
    )
    for name in (*names, "host-place", "device-allocations"):
        assert words(f"{name}.{framework}", "program")
    assert all(words(f"{name}.{framework}.title", "program") for name in titled)


@pytest.mark.parametrize(
    ("waited", "launched", "bound"),
    [(0.45, 0.3, 0.45), (0.02, 0.72, None), (0.05, 0.7, 0.05)],
)
def test_without_a_wait_no_more_is_saved_than_the_host_waited(
    waited: float, launched: float, bound: float | None
) -> None:
    """Of a relaxation on an H200 that reads a residual every 50 sweeps: idle for 69 %, the copies took 4 %."""
    line = GpuLine("plume.cu", 87, waits=1000, seconds=waited)
    found = insights(
        {"sor_half": (100_000, 0.3)},
        span=1.0,
        busy=0.3,
        repeats=1000,
        lines=(line,),
        api=(ApiCall("cudaLaunchKernel", 100_000, launched), ApiCall("cudaMemcpy", 1000, waited)),
    )
    assert ("device-sync" in found) == (bound is not None)
    if bound is not None:
        gain = found["device-sync"].gain
        assert gain is not None
        assert gain.at_most == pytest.approx(bound, rel=0.02)


def test_launches_of_many_lines_are_placed_in_the_function_that_makes_half_of_them() -> None:
    def placed(*numbers: int) -> Place:
        lines = tuple(
            GpuLine("net.py", 70 + at, "loss" if at < 4 else f"other{at}", launches=each)
            for at, each in enumerate(numbers)
        )
        found = insights(
            {"tiny": (10_000, 0.03)}, span=1.0, busy=0.03, starved=1.0, repeats=10, lines=lines, line_span=1.0
        )
        return found["late-launches"].where

    assert (placed(20, 25, 5, 5, 15, 15, 15).line, placed(20, 25, 5, 5, 15, 15, 15).function) == (71, "loss")
    assert placed(10, 10, 10, 10, 20, 20, 20).file is None


ADD, MAX = (
    f"void at::native::{name}_kernel<4, at::native::{of}>()"
    for name, of in (("vectorized_elementwise", "CUDAFunctor_add<float>"), ("reduce", "MaxOps<float>"))
)


@pytest.mark.parametrize(
    ("order", "part"),
    [
        ((0, 2, 0, 2), 0.0),  # between two products: with what is it to be fused?
        ((0, 1, 2, 0, 1, 2), 0.02 / 1.01),  # a large one and a tiny one
        ((0, 0, 0, 0), 3.5 / 4),
        ((2, 2), 1.0),
        ((), 1.0),
    ],
)
def test_of_elementwise_kernels_in_a_row_the_others_are_saved_and_of_the_longest_as_much_or_half(
    order: tuple[int, ...], part: float
) -> None:
    kernels = [
        KernelTime(Kernel(name, (9,), (32,)), 100, total)
        for name, total in ((ADD, 100.0), (MAX, 1.0), ("gemm", 9.0))
    ]
    trace = GpuTrace("nsys", tuple(kernels), order=order)
    assert fusible_part(trace, kernels[:2]) == pytest.approx(part)


def test_a_wait_at_the_line_that_compiles_again_is_told_as_the_compilation() -> None:
    place = Place(function="main", file="a.py", line=11)
    spots = (CodeSpot(0.8, 8.0, "waiting", place), CodeSpot(0.1, 1.0, "python", replace(place, line=30)))
    split = TimeSplit(10.0)
    again = Hotspot("main", 39.0, 6.0, 39, "a.py", 11, "jit(score)", counters={"jax": 1.0})
    profile = Profile("compiled again by JAX", "count", 39.0, (again,), "recompilations")
    document = replace(
        kernel_documents.document({}), trace=None, kernels=(), counters=(), hot_spots=spots, time_split=split
    )
    told = [one.rule for one in find_insights(replace(document, profiles=(profile,)))]
    assert told[0] == "recompilations"
    elsewhere = replace(profile, hotspots=(replace(again, line=50, function="other"),))
    assert find_insights(replace(document, profiles=(elsewhere,)))[0].rule != "recompilations"
