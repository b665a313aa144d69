from dataclasses import replace

import pytest

from profkit.analysis.evidence import evidence_of
from profkit.analysis.judge.rules.gpu.host import preparing_line
from profkit.core.types import (
    RUN,
    Account,
    AccountRow,
    ApiCall,
    CodeLine,
    CodeSpot,
    Construct,
    Disturbance,
    GpuLine,
    GpuTrace,
    Hotspot,
    Kernel,
    KernelTime,
    LineCode,
    LineSamples,
    Place,
    Profile,
    Reading,
    RunDocument,
    SampledTime,
    Source,
    TimeSplit,
    Variable,
)
from profkit.profiling.trials.hypotheses import ALLOCATOR, experiments
from profkit.reporting.facts import fact_text
from tests import documents


def names(document: RunDocument) -> list[str]:
    return [one.name for one in experiments(document)]


def sampled(kind: str, rows: dict[str, float], total: float = 1.0) -> RunDocument:
    spots = tuple(Hotspot(name, own, library=name) for name, own in rows.items())
    profile = Profile("samples", "s", total, spots, kind)  # type: ignore[arg-type]
    return replace(documents.empty(), machine=replace(documents.machine(), cores=8), profiles=(profile,))


def test_nothing_is_tried_where_nothing_is_known() -> None:
    assert experiments(documents.empty()) == []


def test_the_collector_is_tried_from_a_twentieth_of_the_time_on() -> None:
    little = replace(documents.empty(), sampled=(SampledTime(10.0, 10.0, collecting=0.4),))
    much = replace(documents.empty(), sampled=(SampledTime(10.0, 10.0, collecting=0.6),))
    assert names(little) == []
    assert names(much) == ["collector"]


def test_threads_that_wait_for_each_other_are_tried_with_one_and_half_of_them() -> None:
    found = experiments(sampled("libraries", {"libgomp.so.1": 0.08, "libtorch_cpu.so": 0.9}))
    assert [one.settings["OMP_NUM_THREADS"] for one in found] == ["1", "4"]
    assert names(sampled("libraries", {"libgomp.so.1": 0.03})) == []


@pytest.mark.parametrize(("others", "tried"), [(0.4, True), (2.2, False)])
def test_fewer_threads_are_not_tried_beside_programs_that_use_the_cores(others: float, tried: bool) -> None:
    """On two cores with two other programs one thread was faster by a third, and two are without them."""
    document = sampled("libraries", {"libgomp.so.1": 0.3, "libtorch_cpu.so": 0.7})
    document = replace(document, machine=replace(documents.machine(), cores=2))
    crowd = (Disturbance(2.0, 1.9, 0.0, others, 0.1),)
    assert names(replace(document, disturbances=crowd)) == (["threads"] if tried else [])


def test_allocation_is_tried_by_what_samples_say_of_its_functions() -> None:
    (found,) = experiments(sampled("functions", {"_int_malloc": 0.06, "clear_page_erms": 0.06, "main": 0.8}))
    assert (found.name, dict(found.environment)) == ("allocator", ALLOCATOR)
    assert names(sampled("functions", {"my_malloc_wrapper": 0.5})) == []


@pytest.mark.parametrize(
    ("faults", "kernel", "tried"),
    [
        (590_000, 1.1, True),  # 300 arrays of 64 KB that are freed together, 250 times
        (590_000, 0.15, False),  # little time: of large pages, or of a fast kernel
        (45_000, 1.1, False),  # three times what it keeps: the kernel does something else
        (None, None, False),
    ],
)
def test_allocation_is_tried_by_the_page_faults_of_the_plain_run(
    faults: int | None, kernel: float | None, tried: bool
) -> None:
    """A sampled run of it had none: what the sampler allocates keeps the heap from being given back."""
    peak = Reading("memory.rss_peak", 64e6, "B", "measured", RUN, Source("psutil", "rss"))
    split = TimeSplit(2.0, cpu=2.0, faults=faults, kernel=kernel)
    document = replace(sampled("functions", {"add": 1.0}), readings=(peak,), time_split=split)
    assert names(document) == (["allocator"] if tried else [])
    assert names(replace(document, readings=())) == []
    assert names(replace(document, machine=replace(documents.machine(), system="Darwin"))) == []
    if tried:
        (found,) = experiments(document)
        assert found.share == pytest.approx(0.55)
        assert "the kernel took 55 %" in fact_text(found.because)
        assert "38 x its peak memory" in fact_text(found.because)


def test_a_function_is_memoised_where_its_arguments_repeat() -> None:
    place = Place(function="Route.cost", file="/app/route.py", line=4)
    often = CodeSpot(0.6, 3.0, "python", place, looks=40, arguments=5)
    (found,) = experiments(replace(documents.empty(), hot_spots=(often,)))
    assert found.intervention == {"memoise": {"file": "/app/route.py", "function": "cost", "line": "4"}}
    for other in (
        replace(often, arguments=39),
        replace(often, share=0.01),
        replace(often, looks=3),
        replace(often, arguments=None),
        replace(often, where=replace(place, function="main.<locals>.<lambda>")),
    ):
        assert experiments(replace(documents.empty(), hot_spots=(other,))) == []


def test_output_is_tried_where_lines_print_much_and_in_small_pieces() -> None:
    split = TimeSplit(5.0, io_calls=100_000, written=1e6)
    line = CodeSpot(
        0.4, 2.0, "python", Place(file="/app/log.py", line=3), code=LineCode("print(row, flush=True)")
    )
    printing = replace(documents.empty(), time_split=split, hot_spots=(line,))
    assert names(printing) == ["output"]
    assert names(replace(printing, time_split=replace(split, written=1e9))) == []
    assert names(replace(printing, time_split=replace(split, io_calls=100))) == []
    # Imports read files, too: many calls alone say nothing of what is printed.
    assert names(replace(printing, hot_spots=(replace(line, code=LineCode("x = a @ b")),))) == []


def test_tf32_is_tried_for_products_that_the_fp32_units_limit() -> None:
    row = AccountRow("kernel", 0.6, what="mm [512,512] x [512,512]", limit="fp32", busy=0.9)
    account = Account("step", 1.0, (row,))
    assert names(replace(documents.empty(), account=account)) == ["tf32"]
    issuing = replace(account, rows=(replace(row, limit="issue"),))  # as cuBLAS on an H200
    assert names(replace(documents.empty(), account=issuing)) == ["tf32"]
    tensor = replace(account, rows=(replace(row, limit="tensor"),))
    other = replace(account, rows=(replace(row, what="softmax [512,512]"),))
    assert names(replace(documents.empty(), account=tensor)) == []
    assert names(replace(documents.empty(), account=other)) == []


def test_the_devices_allocator_is_tried_where_torch_allocates_and_keeps_what_it_frees() -> None:
    aten = KernelTime(
        Kernel("void at::native::vectorized_elementwise_kernel<4>", (1, 1, 1), (32, 1, 1)), 9, 0.1
    )
    calls = (ApiCall("cudaMalloc", 90, 0.2), ApiCall("cudaFree", 90, 0.2))
    trace = GpuTrace("nsys", (aten,), span=1.0, busy=0.1, api=calls)
    emptying = CodeSpot(
        0.4, 1.0, "python", Place(file="/app/a.py"), code=LineCode("torch.cuda.empty_cache()")
    )
    of_torch = replace(documents.empty(), trace=trace)
    own = replace(aten, kernel=Kernel("combine", (1, 1, 1), (32, 1, 1)))
    assert names(of_torch) == ["device-memory"]
    assert names(replace(of_torch, trace=replace(trace, kernels=(own,)))) == []
    assert names(replace(of_torch, hot_spots=(emptying,))) == []


ATTENDS = "y = F.scaled_dot_product_attention(q, cache[0, :, :, :at + t], cache[1, :, :, :at + t])"
OF_CUDNN = "cudnn_generated_fort_native_sdpa_sm80_flash_fprop_wmma_f16_knob_7_64x64x64"
OF_FLASH = "void flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<128, 64, 128, 4>>(Flash_fwd_params)"


def attending(
    kernel: str = OF_CUDNN,
    text: str = ATTENDS,
    idle: float = 36.1e-3,
    step: float = 49.9e-3,
    line: int | None = None,
) -> RunDocument:
    """A decoder of 12 layers whose keys and values grow by one in each of 160 steps, as an H200 showed it."""
    place = Place(function="forward", file="/app/captions.py", line=27)
    attention = KernelTime(Kernel(kernel, (96, 12, 1), (128, 1, 1)), 1920, 0.086)
    attention = replace(attention, file=place.file if line else None, line=line)
    other = KernelTime(Kernel("gemvx", (96, 1, 1), (128, 1, 1)), 21_931, 0.1)
    lines = (
        GpuLine(place.file or "", 27, "forward", 1920, 5.9, 1900),
        GpuLine(place.file or "", 29, "forward", 7680, 0.5, 21_900),
    )
    trace = GpuTrace(
        "nsys", (other, attention), span=8.0, busy=0.19, launches=23_851, repeats=160, starved=1.0, lines=lines,
        line_span=8.0, lines_of=8.0, api=(ApiCall("cuLibraryLoadData", 160, 1.0),),
    )  # fmt: skip
    seen = LineSamples("forward", place.file or "", 27, 6.0, 6.0, code=LineCode(text))
    rows = (
        AccountRow("idle", idle, place, launches=11, estimated=True),
        AccountRow("idle", 3.2e-3, replace(place, line=29), launches=54, estimated=True),
    )
    return replace(
        documents.empty(),
        trace=trace,
        account=Account("step", step, rows, repeats=160),
        sampled=(SampledTime(28.0, 8.0, lines=(seen,)),),
    )


def test_attention_without_cudnn_is_tried_where_the_device_waits_for_its_plans() -> None:
    (found,) = experiments(attending())
    assert (found.name, found.where.line, found.intervention) == ("attention", 27, {"attention": {}})
    assert round(found.share, 2) == 0.72
    # Where its kernels have a line, the source's text is not asked.
    assert names(attending(text="x = self.block(x)", line=27)) == ["attention"]


@pytest.mark.parametrize(
    "other",
    [
        attending(OF_FLASH),  # of another library, which needs no plan
        attending(idle=0.4e-3, step=5e-3),  # a line that only launches, 36 us each
        attending(idle=2.3e-3),  # too little to be won
        attending(text="x = self.block(x)"),  # a line that need not be it
        attending(line=40),  # and one that is not it
    ],
)
def test_attention_that_costs_the_host_little_keeps_its_library(other: RunDocument) -> None:
    assert names(other) == []


def test_the_plans_of_cudnn_are_named_also_where_its_kernels_have_no_line() -> None:
    def prepares(document: RunDocument) -> int | None:
        line = preparing_line(evidence_of(document))
        return line.line if line is not None else None

    assert prepares(attending()) == 27
    assert prepares(attending(line=27)) == 27
    assert prepares(attending(OF_FLASH)) is None
    assert prepares(attending(text="x = self.block(x)")) is None
    plans = attending()
    assert plans.trace is not None
    once = replace(plans.trace, api=(ApiCall("cuLibraryLoadData", 2, 0.1),))  # a cache of fixed size
    assert prepares(replace(plans, trace=once)) is None


LOADER = "/venv/site-packages/torch/utils/data/dataloader.py"


@pytest.mark.parametrize(
    ("reader", "tried"),
    [("_SingleProcessDataLoaderIter", ["loader"]), ("_MultiProcessingDataLoaderIter", ["workers"])],
)
def test_a_loader_gets_workers_where_it_has_none_and_keeps_them_where_it_has_some(
    reader: str, tried: list[str]
) -> None:
    held = {"loader": Variable("torch.DataLoader")}
    below = (
        CodeLine("_BaseDataLoaderIter.__next__", LOADER, 720, 1.0),
        CodeLine(f"{reader}._next_data", LOADER, 1468, 0.9),
    )
    place, text = Place(function="epoch", file="/app/train.py", line=9), LineCode("for x, y in loader:")
    waits = CodeSpot(0.3, 1.0, "input", place, code=text, variables=held, below=below)
    assert names(replace(documents.empty(), hot_spots=(waits,))) == tried
    # Other lines of the function hold it, too, and have nothing to do with it.
    other = CodeSpot(0.6, 2.0, "library", place, code=LineCode("loss.backward()"), variables=held)
    assert names(replace(documents.empty(), hot_spots=(other,))) == []
    assert names(replace(documents.empty(), hot_spots=(replace(waits, share=0.04), other))) == []


def test_the_largest_possible_gain_is_tried_first() -> None:
    document = sampled("functions", {"malloc": 0.15, "main": 0.8})
    document = replace(document, sampled=(SampledTime(10.0, 10.0, collecting=4.0),))
    assert names(document) == ["collector", "allocator"]


@pytest.mark.parametrize(("called", "tried"), [("gc.collect", []), ("build", ["collector"])])
def test_collections_that_the_program_asks_for_are_not_tried_less_often(
    called: str, tried: list[str]
) -> None:
    code = LineCode("line 3", None, (Construct("call", called),))
    line = LineSamples("work", "/app/work.py", 3, main_wall=0.9, collecting=0.4, code=code)
    samples = SampledTime(1.0, 1.0, collecting=0.4, lines=(line,))
    assert names(replace(documents.empty(), sampled=(samples,))) == tried
