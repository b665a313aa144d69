"""What is not known is not said: programs of which a false finding was said once, each with the right answer.

A place without a finding is better than a false one.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from profkit.analysis.kernel_names.owner import is_tuning_kernel, tuning_kernels
from profkit.analysis.summaries.kernels import kernel_rows
from profkit.backends.cuda.kernels import choose_kernels
from profkit.core.types import Fact, GpuTrace, Kernel, KernelTime, PassResult, RunDocument
from profkit.profiling.summarize import judge_document, targets_for
from profkit.reporting.terminal import render
from profkit.reporting.views.run import view
from tests import gpu_documents
from tests.gpu_documents import ADD, GEMM, told
from tests.spoken import spoken_lines

# ---------------------------------------------------------------- kernels that only choose or time others

DELAY = Kernel(
    "stream_executor::gpu::<unnamed>::DelayKernel(volatile stream_executor::GpuSemaphoreState *,"
    " stream_executor::GpuSemaphoreState)",
    (1, 1, 1),
    (1, 1, 1),
)
COMPARED = Kernel(
    "void stream_executor::gpu::xla_fp_comparison<float>(T1 *, T1 *, float, unsigned long, int *)",
    (4096, 1, 1),
    (128, 1, 1),
)
FLUSH = Kernel(
    "void at::native::vectorized_elementwise_kernel<(int)4, at::native::FillFunctor<int>,"
    " std::array<char *, (unsigned long)1>>(int, T2, T3)",
    (65536, 1, 1),
    (128, 1, 1),
)
TRITON = Kernel("softmax_kernel", (4096, 1, 1), (128, 1, 1))


@pytest.mark.parametrize(
    "name",
    [
        DELAY.name,
        COMPARED.name,
        "DelayKernel",
        "stream_executor::gpu::RepeatBufferKernelImpl(char *, long, long)",
        "stream_executor::gpu::RedzoneAllocatorKernelImpl(unsigned char *, unsigned char, unsigned long)",
        "void stream_executor::gpu::xla_int_comparison<signed char>(T1 *, T1 *, float, unsigned long, int *)",
        "redzone_checker",
        "__xla_fp32_comparison",
    ],
)
def test_kernels_of_autotuners_are_known_by_their_names(name: str) -> None:
    assert is_tuning_kernel(name)


@pytest.mark.parametrize(
    "name", [GEMM.name, ADD.name, "my_delay_kernel(float *)", "loop_xla_fusion", "FixedDelayKernelFilter(float)"]
)
def test_other_kernels_are_no_autotuners(name: str) -> None:
    assert not is_tuning_kernel(name)


def tuned_trace() -> GpuTrace:
    """A step in which XLA tunes: a delay kernel holds the device for most of the time."""
    whole = gpu_documents.trace()
    times = (KernelTime(DELAY, 60, 20e-3, median=3e-4), *whole.kernels, KernelTime(COMPARED, 40, 5e-3))
    return replace(whole, kernels=times, span=35e-3, busy=34e-3, launches=180, order=(0, 1, 0, 2, 4, 3))


def tuned_run() -> RunDocument:
    """The same as a run, of which also the delay kernel was counted."""
    delayed = (told(DELAY, "occupancy.achieved", 1.6), told(DELAY, "warp.execution_efficiency", 3.1))
    whole = gpu_documents.run()
    return replace(whole, trace=tuned_trace(), readings=(*delayed, *whole.readings), time_split=None)


def test_an_autotuners_kernels_count_in_no_share_ranking_verdict_or_insight() -> None:
    judged = judge_document(tuned_run(), targets_for("cuda"))
    rows = kernel_rows(judged)
    assert [row.scope.name for row in rows] == [GEMM.name, ADD.name, ADD.name]
    assert rows[0].share == pytest.approx(7.0 / 8.3)
    assert judged.trace is not None
    assert (judged.trace.busy, judged.trace.span) == (pytest.approx(9e-3), pytest.approx(10e-3))
    assert judged.trace.order == (0, 1, 2)
    assert {verdict.scope.name for verdict in judged.verdicts} & {DELAY.name, COMPARED.name} == set()
    assert [one for one in judged.insights if one.where.kernel in (DELAY.name, COMPARED.name)] == []
    notes = spoken_lines(judged.notes)
    assert any("100 launches of kernels that only choose or time others (DelayKernel, " in note for note in notes)
    assert judge_document(judged, targets_for("cuda")) == judged


def test_an_autotuners_kernels_are_not_counted() -> None:
    chosen = choose_kernels(tuned_trace())
    assert [one.kernel for one in chosen.kernels] == [GEMM, ADD]
    assert chosen.share(chosen.kernels[0]) == pytest.approx(7.0 / 8.3)


def test_the_fill_that_flushes_caches_between_timed_calls_is_an_autotuners_and_no_other_fill_is() -> None:
    times = (KernelTime(FLUSH, 3, 9e-3), KernelTime(TRITON, 3, 1e-3), KernelTime(ADD, 1, 1e-3))
    timed = GpuTrace("nsys", times, span=1.0, busy=0.9, order=(0, 1, 0, 1, 0, 1, 2))
    assert tuning_kernels(timed) == {FLUSH}
    assert tuning_kernels(replace(timed, order=(0, 2, 0, 1))) == set()  # what it fills is used by PyTorch
    other = replace(FLUSH, grid=(4096, 1, 1))
    assert tuning_kernels(replace(timed, kernels=(replace(times[0], kernel=other), *times[1:]))) == set()


# ---------------------------------------------------------------- counters where the trace failed


def of_failed_trace() -> RunDocument:
    """A program of JAX on a GPU: nothing was traced, and ncu counted each kernel at its first launch."""
    fault = Fact.message("torch's profiler left no trace: the workload uses no torch")
    whole = gpu_documents.run()
    counted = (KernelTime(DELAY, 1, 900e-6), KernelTime(GEMM, 1, 60e-6), KernelTime(TRITON, 1, 117e-6))
    return replace(
        whole,
        trace=GpuTrace("ncu", counted),
        passes=(whole.passes[0], PassResult("trace", "nsys", "failed", fault, "FIX"), whole.passes[2]),
        readings=(*gpu_documents.readings(TRITON), told(DELAY, "occupancy.achieved", 1.6)),
    )


def test_where_the_trace_failed_nothing_is_concluded_from_counters_and_the_page_says_why() -> None:
    judged = judge_document(of_failed_trace(), targets_for("cuda"))
    assert judged.insights == ()
    assert judged.hot_spots == ()
    rows = kernel_rows(judged)
    assert {row.scope.name for row in rows} == {GEMM.name, TRITON.name}
    assert {row.share for row in rows} == {None}  # what one replayed launch took is no share of the time
    assert any(row.values for row in rows)
    whole = [verdict for verdict in judged.verdicts if verdict.scope.kind == "run"]
    assert "fail" not in {verdict.verdict for verdict in whole}
    page = " ".join(render(view(judged), color=False, width=100).split())
    assert "What to do first" not in page
    assert "The trace pass failed: torch's profiler left no trace: the workload uses no torch. " in page
    assert "nothing is concluded from them" in page


def test_a_report_of_counters_that_somebody_made_is_judged_as_before() -> None:
    report = replace(of_failed_trace(), passes=(), plan=None, timings=())
    judged = judge_document(report, targets_for("cuda"))
    assert "wasted-sectors" in {one.rule for one in judged.insights}
    assert [row.share for row in kernel_rows(judged)] == [pytest.approx(117 / 177), pytest.approx(60 / 177)]
