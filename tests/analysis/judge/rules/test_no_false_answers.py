"""What is not known is not said: programs of which a false finding was said once, each with the right answer.

A place without a finding is better than a false one.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from profkit.analysis.evidence import evidence_of, text_at
from profkit.analysis.hot_spots import hot_spots
from profkit.analysis.judge.findings import find_insights
from profkit.analysis.kernel_names.owner import is_tuning_kernel, tuning_kernels
from profkit.analysis.summaries.kernels import kernel_rows
from profkit.backends.cuda.kernels import choose_kernels
from profkit.core.types import (
    ApiCall,
    CodeLine,
    Fact,
    GpuLine,
    GpuTrace,
    HostPauses,
    Insight,
    Kernel,
    KernelTime,
    LineCode,
    LineSamples,
    MemoryKind,
    PassResult,
    Place,
    RunDocument,
    SampledTime,
    Transfer,
)
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
    "name",
    [GEMM.name, ADD.name, "my_delay_kernel(float *)", "loop_xla_fusion", "FixedDelayKernelFilter(float)"],
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
    assert judged.trace.busy == pytest.approx(9e-3)
    assert judged.trace.span == pytest.approx(10e-3)
    assert judged.trace.order == (0, 1, 2)
    assert {verdict.scope.name for verdict in judged.verdicts} & {DELAY.name, COMPARED.name} == set()
    assert [one for one in judged.insights if one.where.kernel in (DELAY.name, COMPARED.name)] == []
    notes = spoken_lines(judged.notes)
    assert any(
        "100 launches of kernels that only select or time other kernels (DelayKernel, " in note
        for note in notes
    )
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
    assert "no findings are drawn from them" in page


def test_a_report_of_counters_that_somebody_made_is_judged_as_before() -> None:
    report = replace(of_failed_trace(), passes=(), plan=None, timings=())
    judged = judge_document(report, targets_for("cuda"))
    assert "wasted-sectors" in {one.rule for one in judged.insights}
    assert [row.share for row in kernel_rows(judged)] == [pytest.approx(117 / 177), pytest.approx(60 / 177)]


# ---------------------------------------------------------------- types of elements, and of scalars

ADAM = (
    "void at::native::<unnamed>::multi_tensor_apply_kernel<"
    "at::native::<unnamed>::FusedOptimizerTensorListMetadata<(int)4>,"
    " at::native::<unnamed>::FusedAdamMathFunctor<float, (int)4, (at::native::ADAM_MODE)0, (bool)0>, const float *,"
    " double, double, double, double, double, bool, const float *, const float *>(T1, T2, T3...)"
)
DIVIDED = (
    "void at::native::vectorized_elementwise_kernel<(int)2, at::native::BinaryFunctor<double, double, double,"
    " at::native::binary_internal::DivFunctor<double>>, std::array<char *, (unsigned long)3>>(int, T2, T3)"
)


@pytest.mark.parametrize(
    ("name", "grid", "operation", "said"),
    [
        (ADAM, 320, None, False),  # the scalars of an optimizer are doubles
        (DIVIDED, 1, "aten::div", False),  # a number on the device, say a learning rate or a loss
        (DIVIDED, 1, "aten::div [1], [1,1]", False),
        (DIVIDED, 4096, None, True),
        (DIVIDED, 4096, "aten::div [16384,1024], [1024]", True),
        ("void cutlass_80_tensorop_d884gemm_64x64_16x4_nt_align1", 128, None, True),
    ],
)
def test_doubles_are_said_of_tensors_of_many_and_not_of_scalars(
    name: str, grid: int, operation: str | None, said: bool
) -> None:
    kernel = Kernel(name, (grid, 1, 1), (128, 1, 1))
    took = KernelTime(
        kernel, 100, 8e-3, median=8e-5, operation=operation, operation_launches=100, operations=1
    )
    traced = GpuTrace("nsys", (took, KernelTime(ADD, 20, 1e-3)), span=10e-3, busy=9e-3, launches=120)
    found = find_insights(gpu_documents.report(trace=traced, gpus=(gpu_documents.H200,)))
    assert ("double-precision" in {one.rule for one in found}) is said


# ---------------------------------------------------------------- a library's kernel near its limit


@pytest.mark.parametrize(("busy", "said"), [(94.97, False), (55.0, True)])
def test_of_a_librarys_kernel_near_its_limit_nothing_is_said(busy: float, said: bool) -> None:
    whole = gpu_documents.run()
    at_limit = tuple(
        replace(one, value=busy) if one.metric == "tensor.utilization" and one.scope == GEMM.scope else one
        for one in whole.readings
    )
    line = replace(gpu_documents.trace().kernels[0], file="train.py", line=9, function="step")
    traced = replace(gpu_documents.trace(), kernels=(line,), starved=0.0)
    judged = judge_document(replace(whole, readings=at_limit, trace=traced), targets_for("cuda"))
    texts = [one.change for one in judged.insights if one.rule == "hot-spot"]
    assert bool(texts) is said
    assert kernel_rows(judged)[0].value("tensor.utilization") == busy


def test_of_a_librarys_kernel_whose_limit_nobody_counted_nothing_is_said() -> None:
    whole = gpu_documents.run()
    line = replace(gpu_documents.trace().kernels[0], file="train.py", line=9, function="step")
    traced = replace(gpu_documents.trace(), kernels=(line,), starved=0.0)
    uncounted = tuple(one for one in whole.readings if one.scope.kind != "kernel")
    judged = judge_document(replace(whole, readings=uncounted, trace=traced), targets_for("cuda"))
    assert "hot-spot" not in {one.rule for one in judged.insights}


# ---------------------------------------------------------------- what the host does for a batch


@pytest.mark.parametrize(
    ("below", "said"),
    [
        ("/venv/lib/python3.11/site-packages/torch/utils/data/dataloader.py", False),
        ("/venv/lib/python3.11/site-packages/torch/functional.py", True),
    ],
)
def test_what_a_loader_joins_to_a_batch_is_not_to_be_computed_on_the_device(below: str, said: bool) -> None:
    joined = ApiCall("aten::cat [512,3,64,64]", 40, 0.4)
    line = GpuLine("/app/train.py", 9, "train", 40, 0.5, on_host=joined)
    took = KernelTime(GEMM, 400, 0.5, median=1e-3)
    traced = GpuTrace(
        "nsys",
        (took,),
        span=1.0,
        busy=0.5,
        launches=400,
        repeats=40,
        lines=(line,),
        line_span=1.0,
        lines_of=1.0,
    )
    calls = CodeLine("__next__", below, 700, 0.5)
    seen = LineSamples(
        "train", "/app/train.py", 9, 0.5, 0.5, callees=(calls,), code=LineCode("for x in batches:")
    )
    document = gpu_documents.report(trace=traced, sampled=(SampledTime(1.0, 1.0, lines=(seen,)),))
    assert ("host-tensors" in {one.rule for one in find_insights(document)}) is said


def waiting_document(
    lines: tuple[GpuLine, ...], samples: tuple[LineSamples, ...], **of_spot: object
) -> RunDocument:
    """A GPU that is busy for a tenth of a second of ten steps."""
    took = KernelTime(GEMM, 100, 0.1, median=1e-3)
    traced = GpuTrace(
        "nsys",
        (took,),
        span=1.0,
        busy=0.1,
        launches=100,
        repeats=10,
        starved=1.0,
        lines=lines,
        line_span=1.0,
        lines_of=1.0,
    )
    document = gpu_documents.report(trace=traced, sampled=(SampledTime(1.0, 1.0, lines=samples),))
    return replace(document, hot_spots=hot_spots(document), **of_spot)


TRAINS = GpuLine("/app/train.py", 30, "train", 100, 0.1, launches=100)


@pytest.mark.parametrize(
    ("function", "arguments", "operation", "said"),
    [
        ("local_window", 1, "aten::ge [1024,1024]", True),
        ("local_window", 40, "aten::ge [1024,1024]", False),  # other arguments each time
        ("Batches.window", 1, "aten::ge [1024,1024]", False),  # its object may be another each time
        ("noise", 1, "aten::normal_ [1024,1024]", False),  # it draws
    ],
)
def test_what_a_function_makes_of_the_same_arguments_on_the_host_is_to_be_made_once(
    function: str, arguments: int, operation: str, said: bool
) -> None:
    made = GpuLine("/app/train.py", 17, function, 30, 0.5, on_host=ApiCall(operation, 10, 0.2))
    other = GpuLine("/app/train.py", 16, function, 10, 0.2, on_host=ApiCall("aten::sub [1024,1024]", 10, 0.2))
    sent = GpuLine("/app/train.py", 31, "train", 10, 0.1, on_host=ApiCall("aten::copy_ [1024,1024]", 10, 0.1))
    call = CodeLine("train", "/app/train.py", 31, 0.7)
    seen = LineSamples(
        function,
        "/app/train.py",
        17,
        0.5,
        0.5,
        callers=(call,),
        looks=400,
        arguments=arguments,
        code=LineCode("mask = x"),
    )
    document = waiting_document((TRAINS, made, other, sent), (seen,))
    found = [one for one in find_insights(document) if one.rule in ("made-again", "host-tensors")]
    assert ("made-again" in {one.rule for one in found}) is said
    if said:  # once for the function, and not again for its lines and the one that calls it
        (once,) = found
        assert once.gain is not None
        assert once.gain.at_most == pytest.approx(0.7)
        assert "for 70 % of a step" in once.evidence


@pytest.mark.parametrize(("memory", "late"), [("pageable", False), ("pinned", True)])
def test_a_host_that_waits_for_a_constant_s_copy_in_each_step_is_not_told_to_launch_less(
    memory: MemoryKind, late: bool
) -> None:
    """Kernels are longer than a launch: without the copy from pageable memory the host would be ahead of them."""
    made = GpuLine("/app/train.py", 17, "window", 30, 0.15, on_host=ApiCall("aten::ge [1024,1024]", 10, 0.1))
    moved = Transfer("host to device", 10, 10 << 21, 0.01, (Transfer(memory, 10, 10 << 21, 0.01),))
    sent = GpuLine("/app/train.py", 31, "train", 10, 0.1, transfers=(moved,))
    call = CodeLine("train", "/app/train.py", 31, 0.15)
    seen = LineSamples("window", "/app/train.py", 17, 0.15, 0.15, callers=(call,), looks=400, arguments=1)
    document = waiting_document((TRAINS, made, sent), (seen,))
    found = {one.rule: one for one in find_insights(document)}
    assert ("late-launches" in found) is late
    gain = found["made-again"].gain
    assert gain is not None
    assert gain.at_most == pytest.approx(0.15 if late else 0.9)
    assert ("pageable memory" in found["made-again"].evidence) is not late


EACH = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::AUnaryFunctor<float, float, float>>(int)"
)


@pytest.mark.parametrize(
    ("sizes", "loop", "said"),
    [
        (("[256,512]", "[512,256]", "[256]"), 31, True),
        (("[256,512]", "[512,256]", "[256]"), None, False),  # no loop
        (("[64,256]", "[64,256]", "[64,256]"), 31, False),  # time steps
    ],
)
def test_a_loop_that_does_the_same_to_tensors_of_several_shapes_is_advised_foreach(
    sizes: tuple[str, ...], loop: int | None, said: bool
) -> None:
    line = GpuLine("/app/train.py", 33, "update", 300, 0.6, launches=300)
    kernels = tuple(
        KernelTime(
            Kernel(EACH, (grid, 1, 1), (128, 1, 1)), 100, 0.02, median=2e-4, operation=f"aten::mul {size}, []",
            operation_launches=100, operations=1, file="/app/train.py", line=33, function="update",
            lines=(GpuLine("/app/train.py", 33, "update", launches=100),),
        )
        for grid, size in enumerate(sizes, 1)
    )  # fmt: skip
    seen = LineSamples(
        "update", "/app/train.py", 33, 0.6, 0.6, code=LineCode("average.copy_(decay * average)", loop)
    )
    traced = GpuTrace(
        "nsys", kernels, span=1.0, busy=0.06, launches=300, repeats=10, starved=1.0, lines=(line,), line_span=1.0,
        lines_of=1.0,
    )  # fmt: skip
    torch = LineSamples("step", "/venv/site-packages/torch/nn/modules/module.py", 1, 0.0, 0.0)
    document = gpu_documents.report(trace=traced, sampled=(SampledTime(1.0, 1.0, lines=(seen, torch)),))
    (late,) = (one for one in find_insights(document) if one.rule == "late-launches")
    assert ("_foreach_" in late.title) is said


@pytest.mark.parametrize(
    ("reader", "said"),
    [("_SingleProcessDataLoaderIter._next_data", True), ("_MultiProcessingDataLoaderIter._next_data", False)],
)
def test_a_loader_that_works_in_the_process_that_trains_is_named_and_one_with_workers_is_not(
    reader: str, said: bool
) -> None:
    library = "/venv/site-packages/torch/utils/data/dataloader.py"
    below = (CodeLine("_BaseDataLoaderIter.__next__", library, 736, 0.6), CodeLine(reader, library, 799, 0.6))
    call = CodeLine("train", "/app/train.py", 29, 0.6)
    seen = LineSamples(
        "batches",
        "/app/train.py",
        9,
        0.6,
        0.6,
        callees=below[:1],
        below=below,
        callers=(call,),
        code=LineCode("yield from loader", 8),
    )
    trains = LineSamples("train", "/app/train.py", 30, 0.1, 0.1, code=LineCode("loss = step(x)", 29))
    document = waiting_document((TRAINS,), (seen, trains))
    found = {one.rule: one for one in find_insights(document)}
    assert ("slow-loader" in found) is said
    if said:
        assert found["slow-loader"].where.line == 9
        assert "num_workers" in found["slow-loader"].change


FETCH = "/venv/site-packages/torch/utils/data/_utils/fetch.py"


def tiles(reader: str, *, leads: bool = True) -> dict[str, Insight]:
    """A training step of sat_tiles_train on an H200: three lines of a dataset, which a loader in line 29 calls."""
    loop = CodeLine("train", "/app/train.py", 29, 0.8)
    fetched = CodeLine("_MapDatasetFetcher.fetch", FETCH, 54, 0.8)
    lines = tuple(
        LineSamples(
            "Tiles.__getitem__", "/app/tiles.py", number, took, took, callers=(fetched,),
            within=(loop,) if leads else (), code=LineCode(text),
        )
        for number, took, text in (
            (52, 0.4, "raw = zlib.decompress(blob)"),
            (53, 0.1, "tile = np.cumsum(raw)"),
            (54, 0.2, "low, high = np.percentile(tile, (2, 98))"),
        )
    )  # fmt: skip
    below = (CodeLine(reader, "/venv/site-packages/torch/utils/data/dataloader.py", 799, 0.05),)
    loads = LineSamples(
        "train", "/app/train.py", 29, 0.05, 0.05, callees=below, below=below,
        code=LineCode("for images, target in loader:", 29),
    )  # fmt: skip
    trains = LineSamples("train", "/app/train.py", 30, 0.1, 0.1, code=LineCode("loss = step(x)", 29))
    document = waiting_document((TRAINS,), (*lines, loads, trains))
    trace = replace(document.trace, pauses=HostPauses(10, 0.85, 0.085))  # type: ignore[type-var]
    return {one.rule: one for one in find_insights(replace(document, trace=trace))}


def test_all_lines_of_a_dataset_that_the_training_process_reads_are_one_finding() -> None:
    found = tiles("_SingleProcessDataLoaderIter._next_data")
    loader = found["slow-loader"]
    assert loader.gain is not None
    assert loader.gain.at_most == pytest.approx(0.75)  # of three lines and the joining of batches
    assert "in the loader of `for images, target in loader:` (line 29)" in loader.evidence
    assert "40 % of a step is in line 52" in loader.evidence
    assert loader.title.startswith("Load in workers")
    assert loader.change.startswith("Let DataLoader(num_workers=4")
    assert loader.where.line == 52
    assert "host-pauses" not in found  # which only says that the device waits


@pytest.mark.parametrize(
    "found",
    [
        tiles("_MultiProcessingDataLoaderIter._next_data"),
        tiles("_SingleProcessDataLoaderIter._next_data", leads=False),  # of another loader
    ],
)
def test_a_dataset_that_another_loader_reads_is_not_said_to_be_read_without_workers(
    found: dict[str, Insight],
) -> None:
    assert not found["slow-loader"].title.startswith("Load in workers")


@pytest.mark.parametrize(("waited", "said"), [(0.3, True), (0.01, False)])
def test_a_dataset_in_workers_is_named_only_as_far_as_the_training_process_waits_for_them(
    waited: float, said: bool
) -> None:
    """Of a night of EEG on an H200, whose workers live on: "load in workers" was said of what they did already."""
    works = LineSamples(
        "Night.__getitem__", "/app/night.py", 44, 0.0, 0.0, other_wall=2.0, other_cpu=2.0, processes=4,
        callers=(CodeLine("_MapDatasetFetcher.fetch", FETCH, 54, 2.0),), code=LineCode("spectrum = np.fft.rfft(w)"),
    )  # fmt: skip
    below = (
        CodeLine(
            "_MultiProcessingDataLoaderIter._next_data",
            "/venv/site-packages/torch/utils/data/dataloader.py",
            1300,
            waited,
        ),
    )
    loads = LineSamples(
        "train", "/app/train.py", 29, waited, 0.0, waits={"child": waited}, callees=below, below=below,
        code=LineCode("for images, target in loader:", 29),
    )  # fmt: skip
    found = {one.rule: one for one in find_insights(waiting_document((TRAINS,), (works, loads)))}
    assert ("slow-loader" in found) is said
    if said:
        loader = found["slow-loader"]
        assert loader.title.startswith("Make Night.__getitem__ faster, or take more workers")
        assert loader.gain is not None
        assert loader.gain.at_most == pytest.approx(waited)


# ---------------------------------------------------------------- functions that a library has

EXP = "void at::native::vectorized_elementwise_kernel<4, at::native::exp_kernel_cuda<float>>(int)"


def launched(operation: str, line: int, backward_of: str | None = None, number: int = 1) -> KernelTime:
    """A kernel of PyTorch's elementwise ones that a line of `train.py` launched."""
    kernel = Kernel(EXP, (4096, number, line), (128, 1, 1))
    return KernelTime(
        kernel,
        100,
        0.05,
        median=5e-4,
        operation=operation,
        operation_launches=100,
        operations=1,
        file="/app/train.py",
        line=line,
        function="step",
        backward_of=backward_of,
        lines=(GpuLine("/app/train.py", line, "step", launches=100),),
    )


RMS_PARTS = ("aten::pow [8,64]", "aten::rsqrt [8,1]", "aten::mul [8,64], [8,1]")
LOSS_PARTS = ("aten::_log_softmax [64,1000]", "aten::gather [64,1000], [64,1]")


def in_lines(*operations: str) -> list[KernelTime]:
    """Each operation in a line of its own."""
    return [launched(one, 3 + at) for at, one in enumerate(operations)]


def in_one_line(*operations: str) -> list[KernelTime]:
    """All of them launched by line 3."""
    return [launched(one, 3, number=at) for at, one in enumerate(operations)]


@pytest.mark.parametrize(
    ("kernels", "text", "known"),
    [
        (in_lines(*RMS_PARTS), "", "rms_norm"),
        (in_one_line(*RMS_PARTS), "x * (x ** 2).mean(-1).rsqrt()", "rms_norm"),
        (in_one_line(*RMS_PARTS), "x = self.norm(x)", None),  # nn.RMSNorm, where it is made of these
        (in_one_line(*RMS_PARTS), "", None),
        (in_lines(*RMS_PARTS, "aten::_fused_rms_norm [8,64]"), "", None),
        (in_lines(*LOSS_PARTS), "", "cross_entropy"),
        (in_lines(*LOSS_PARTS, "aten::nll_loss_forward [64,1000], [64]"), "", None),
    ],
)
def test_lines_write_a_function_out_only_where_the_librarys_own_did_not_run(
    kernels: list[KernelTime], text: str, known: str | None
) -> None:
    seen = LineSamples("step", "/app/train.py", 3, 0.5, 0.5, code=LineCode(text))
    traced = GpuTrace("nsys", tuple(kernels), span=1.0, busy=0.9, launches=100 * len(kernels))
    document = gpu_documents.report(trace=traced, sampled=(SampledTime(1.0, 1.0, lines=(seen,)),))
    (found,) = (one for one in find_insights(document) if one.rule == "unfused-operations")
    assert found.title == (
        f"Use torch.nn.functional.{known}: these lines write it out"
        if known is not None
        else "Fuse the elementwise operations (torch.compile)"
    )


SCORES = (
    "aten::bmm [96,512,64] x [96,64,512]",
    "aten::_softmax [96,512,512]",
    "aten::bmm [96,512,512] x [96,512,64]",
)


@pytest.mark.parametrize(
    ("kernels", "text", "said"),
    [
        (in_lines(*SCORES), "", True),
        (in_one_line(*SCORES), "(q @ k).softmax(-1) @ v", True),
        (in_one_line(*SCORES), "F.scaled_dot_product_attention(q, k, v)", False),
        (in_lines(*SCORES, "aten::_scaled_dot_product_flash_attention [8,12,512,64]"), "", False),
    ],
)
def test_attention_is_written_out_only_where_the_librarys_own_did_not_run(
    kernels: list[KernelTime], text: str, said: bool
) -> None:
    seen = LineSamples("step", "/app/train.py", 3, 0.5, 0.5, code=LineCode(text))
    traced = GpuTrace("nsys", tuple(kernels), span=1.0, busy=0.9, launches=100 * len(kernels))
    document = gpu_documents.report(trace=traced, sampled=(SampledTime(1.0, 1.0, lines=(seen,)),))
    assert ("written-out-attention" in {one.rule for one in find_insights(document)}) is said


@pytest.mark.parametrize(
    ("text", "optimizer"),
    [
        ("opt.step()", True),
        ("opt.step()  # one; two", True),
        ("opt.step(closure=run(';'))", True),
        ("opt.zero_grad(); net(x).loss.backward(); opt.step()", False),
    ],
)
def test_what_a_line_of_several_statements_waits_for_is_not_concluded_from_its_text(
    text: str, optimizer: bool
) -> None:
    seen = LineSamples("step", "/app/train.py", 3, 0.5, 0.5, code=LineCode(text))
    run = evidence_of(gpu_documents.report(sampled=(SampledTime(1.0, 1.0, lines=(seen,)),)))
    assert ("opt.step" in text_at(run, Place(file="/app/train.py", line=3))) is optimizer
