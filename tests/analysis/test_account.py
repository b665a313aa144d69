"""The account of a step: its rows, their limits, and the sentence above them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from profkit.analysis.account import make_account
from profkit.analysis.account.clock import sheet_clock
from profkit.analysis.summaries.kernels import kernel_rows
from profkit.core.types import (
    Account,
    AccountRow,
    ApiCall,
    ArrayForm,
    Beneath,
    Cache,
    CodeLine,
    CodeSpot,
    Fact,
    Gpu,
    GpuLine,
    GpuOperation,
    GpuRange,
    GpuTrace,
    HostPauses,
    Hotspot,
    Kernel,
    KernelBottleneck,
    KernelTime,
    LineCode,
    LineCount,
    LineSamples,
    PassResult,
    Peaks,
    Place,
    Profile,
    Reading,
    RunDocument,
    SampledLoop,
    SampledTime,
    SampleSet,
    Scope,
    Source,
    SourcePlace,
    TimeSplit,
    Timing,
    Transfer,
)
from profkit.reporting.view import DataTable, Paragraph, plain_text, walk
from profkit.reporting.views import run_account
from profkit.reporting.views.run_account import account_section
from tests import documents

MM, ADD = Kernel("gemm", (8,), (128,)), Kernel("add", (8,), (128,))
TRACE = GpuTrace(
    "nsys",
    (
        KernelTime(
            MM, 20, 0.6, operation="aten::mm [4,4] x [4,4]", operation_launches=20, file="t.py", line=3
        ),
        KernelTime(ADD, 20, 0.2),
    ),
    span=2.0,
    busy=1.0,
    transfers=(Transfer("host to device", 10, 1000, 0.3),),
    copying=0.2,
    repeats=10,
    starved=0.9,
)


def run(trace: GpuTrace | None = TRACE, **changes: object) -> RunDocument:
    bound = KernelBottleneck(MM.scope, 0.75, "tensor", Fact("no-peaks"), 80.0)
    document = replace(
        documents.document(), trace=trace, metal=None, kernels=(bound,), hot_spots=(), insights=()
    )
    return replace(document, **changes)  # type: ignore[arg-type]


def test_kernels_copies_and_idle_time_are_those_of_one_step() -> None:
    account = make_account(run())
    assert account is not None
    assert (account.unit, account.repeats) == ("step", 10)
    assert account.seconds == pytest.approx(0.2)
    rows = [(row.kind, row.what, round(row.seconds, 6)) for row in account.rows]
    assert rows == [
        ("idle", "", 0.1),
        ("kernel", "aten::mm [4,4] x [4,4]", 0.06),
        ("kernel", "add", 0.02),
        ("copy", "host to device", 0.02),
    ]
    mm = account.rows[1]
    assert (mm.limit, mm.busy, mm.launches) == ("tensor", 0.8, 2)
    assert mm.least == pytest.approx(0.048)
    assert (mm.where.file, mm.where.line) == ("t.py", 3)
    assert account.rows[2].least is None  # its units were not counted


def test_a_kernel_compiled_for_several_constants_is_one_row_with_all_its_launches() -> None:
    variants = [
        KernelTime(
            replace(MM, registers=registers), launches, seconds, seconds / launches, file="t.py", line=3
        )
        for registers, launches, seconds in ((121, 10, 0.3), (120, 6, 0.2), (119, 4, 0.1))
    ]
    account = make_account(run(replace(TRACE, kernels=(*variants, KernelTime(ADD, 20, 0.2)))))
    assert account is not None
    rows = {row.what: row for row in account.rows}
    assert rows["gemm"].seconds == pytest.approx(rows["add"].seconds * 3)
    assert rows["gemm"].launches == rows["add"].launches
    (row,) = [row for row in kernel_rows(run(replace(TRACE, kernels=tuple(variants)))) if row.time]
    assert row.time is not None
    assert row.share == 1.0
    # 10 launches of 30 ms, 6 of 33 ms and 4 of 25 ms
    assert (row.time.launches, row.time.total, row.time.median) == (20, 0.6, pytest.approx(0.03))


def test_kernels_that_ran_side_by_side_share_the_time_in_which_any_ran() -> None:
    account = make_account(run(replace(TRACE, busy=0.6)))
    assert account is not None
    kernels = [row.seconds for row in account.rows if row.kind == "kernel"]
    assert kernels == [pytest.approx(0.03), pytest.approx(0.01)]
    assert sum(row.seconds for row in account.rows) == pytest.approx(0.2)


def test_idle_time_goes_first_to_lines_that_launch_and_do_not_wait() -> None:
    lines = (
        GpuLine("t.py", 3, "step", 100, 0.5, launches=40),
        GpuLine("t.py", 9, "step", 100, 0.45, launches=1, waits=10),
    )
    account = make_account(run(replace(TRACE, lines=lines, line_span=2.0, lines_of=2.0)))
    assert account is not None
    idle = [
        (row.where.line, round(row.seconds, 6), row.estimated) for row in account.rows if row.kind == "idle"
    ]
    assert idle == [(3, 0.05, True), (9, 0.045, True), (None, 0.005, False)]


def test_what_begins_after_copies_to_the_host_stands_at_the_line_of_the_copy_where_none_was_sampled() -> None:
    back = Transfer("device to host", 10, 10 << 24, 0.1)
    line = GpuLine("/app/push.cu", 71, None, 10, 0.1, transfers=(back,), call="cudaMemcpy")
    paused = HostPauses(10, 0.5, 0.05, after_copies=0.5)
    kernel = KernelTime(Kernel("push", (1, 1, 1), (32, 1, 1)), 10, 0.1)
    trace = GpuTrace(
        "nsys", (kernel,), span=1.0, busy=0.2, copying=0.1, repeats=10, transfers=(back,), lines=(line,), pauses=paused
    )  # fmt: skip
    account = make_account(run(trace))
    assert account is not None
    idle = {row.where.line: row.seconds for row in account.rows if row.kind == "idle"}
    assert idle == {71: pytest.approx(0.05), None: pytest.approx(0.03)}
    sampled = make_account(run(replace(trace, lines_of=1.0, line_span=1.0)))
    assert sampled is not None
    assert {row.where.line for row in sampled.rows if row.kind == "idle"} == {None}


def test_a_region_without_a_device_has_its_places_and_the_limit_that_was_counted() -> None:
    timing = documents.timing()
    scope = Scope("region", timing.name)
    source = Source("profkit")
    spots = (
        CodeSpot(0.95, 1.9, "python", Place(function="step", file="t.py", line=4)),
        CodeSpot(0.05, 0.1, "rest"),
    )
    readings = (
        Reading("time.median", 0.01, "s", "measured", scope, source),
        Reading("flops.share", 40.0, "%", "estimated", scope, source),
        Reading("bandwidth.dram.share", 70.0, "%", "simulated", scope, source),
    )
    document = run(None, timings=(replace(timing, kind="region"),), hot_spots=spots, readings=readings)
    account = make_account(document)
    assert account is not None
    assert (account.unit, account.seconds) == ("region", 0.01)
    first = account.rows[0]
    assert (first.limit, first.busy) == ("dram", 0.7)
    assert first.least == pytest.approx(0.7 * 0.0095)
    section = account_section(replace(document, account=account))
    assert section is not None
    assert (section.title, "DRAM 70 %" in str(section)) == ("Where one entry of the region goes", True)
    assert (
        "The largest excess over these limits is in step t.py:4: it takes 9.50 ms, and 6.65 ms would be enough."
        in str(section.headline)
    )
    calls = make_account(replace(document, timings=(replace(timing, kind="benchmark"),)))
    assert calls is not None
    assert calls.unit == "call"


@pytest.mark.parametrize(
    ("under", "shown"),
    [
        (Beneath("_wrapped_call_impl", "torch", public="Module"), "Module.forward"),
        (Beneath("__init__", "django", public="Model"), "Model"),
        (Beneath("__memcmp_evex_movbe", "libc.so.6"), "memcmp"),
        (Beneath("_dispatch", "somewhere"), "somewhere"),
        (Beneath("loads", "json"), "loads"),
        (None, ""),
    ],
)
def test_a_row_of_the_host_is_called_by_what_users_call_and_by_nothing_private(
    under: Beneath | None, shown: str
) -> None:
    spots = (
        CodeSpot(0.9, 1.8, "library", Place(function="step", file="t.py", line=4), under),
        CodeSpot(0.1, 0.2, "rest"),
    )
    timings = (replace(documents.timing(), kind="region"),)
    account = make_account(run(None, timings=timings, hot_spots=spots, readings=()))
    assert account is not None
    assert account.rows[0].what == shown


def test_a_run_without_a_trace_and_without_a_region_has_no_account() -> None:
    assert make_account(run(None, timings=())) is None
    assert make_account(run(replace(TRACE, span=None))) is None


def test_the_sentence_names_the_line_at_which_the_host_keeps_the_device_idle() -> None:
    lines = (GpuLine("t.py", 3, "step", 100, 1.8, launches=40),)
    document = run(replace(TRACE, lines=lines, line_span=2.0, lines_of=2.0))
    section = account_section(replace(document, account=make_account(document)))
    assert section is not None
    assert section.headline == (
        "A step takes 200 ms (seen 10 times). The GPU is idle for 50 % of it, for 50 % while the host is in step "
        "t.py:3."
    )


def test_the_work_that_shapes_need_takes_the_place_of_what_was_counted_where_it_is_less() -> None:
    gpu = replace(
        documents.document().gpus[0] if documents.document().gpus else Gpu("NVIDIA H100"), bandwidth=1e12
    )
    work = GpuOperation(
        "aten::mm [4,4] x [4,4]", 20, 20, 0.6, "gemm_bf16", "bf16", "tensor", 20e9, 15e9, file="t.py", line=3
    )
    l1 = (KernelBottleneck(MM.scope, 0.75, "l1", Fact("no-peaks"), 80.0),)
    account = make_account(
        run(replace(TRACE, work=(work,)), kernels=l1, gpus=(replace(gpu, name="NVIDIA H100 80GB HBM3"),))
    )
    assert account is not None
    assert account.rows[1].least == pytest.approx(0.06 * 0.5)  # 15 GB at 1 TB/s, of 30 ms
    assert account.rows[1].busy == 0.8  # what was counted stands beside it
    fp32 = replace(work, type="fp32", kernel="sm80_xmma_gemm_f32f32_f32f32_f32_tn")
    account = make_account(run(replace(TRACE, work=(fp32,)), kernels=l1, gpus=(gpu,)))
    assert account is not None
    assert account.rows[1].least == pytest.approx(0.048)  # the peak of FP32 is not that of the tensor cores
    account = make_account(run(replace(TRACE, work=(work,)), gpus=(gpu,)))
    assert account is not None
    assert account.rows[1].least == pytest.approx(
        0.048
    )  # tensor cores were counted at the clock that they had


@pytest.mark.parametrize(
    ("typed", "unit", "types", "kernel", "shown"),
    [
        (False, "tensor", ["bf16"], "gemm_bf16", "bf16"),
        (False, "tensor", ["fp32"], "sm80_xmma_gemm_f32f32_tf32f32_f32_tn", "tf32"),
        (False, "tensor", ["fp32"], "sgemm_128x128_tn", "fp32"),
        (False, "tensor", ["bf16", "fp32"], "gemm", None),
        (False, "fma", ["bf16"], "softmax_warp_forward<c10::BFloat16>", None),  # its inputs may be others
        (True, "fma", ["bf16"], "softmax_warp_forward<c10::BFloat16>", "bf16"),
        (True, "fma", ["bits16"], "copy", None),
        (False, "tensor", [None], "gemm", None),
    ],
)
def test_a_row_has_the_type_of_its_operands_where_that_is_told(
    typed: bool, unit: str, types: list[str | None], kernel: str, shown: str | None
) -> None:
    work = tuple(
        GpuOperation(
            "aten::mm [4,4] x [4,4]", 9, 9, 0.1, kernel, one, unit, 9.0, 9.0, file="t.py", line=3, typed=typed
        )  # type: ignore[arg-type]
        for one in types
    )
    document = run(replace(TRACE, work=work))
    account = make_account(document)
    assert account is not None
    assert account.rows[1].type == shown
    section = account_section(replace(document, account=account))
    assert (f"mm [4,4] x [4,4] {shown}" in str(section)) == (shown is not None)


def test_the_line_of_a_library_stands_behind_the_operation_where_most_of_it_comes_from_there() -> None:
    here, there = SourcePlace("/lib/net.py", 70, "f"), SourcePlace("/lib/net.py", 90, "g")

    def work(seconds: float, below: SourcePlace | None) -> GpuOperation:
        return GpuOperation("aten::mm [4,4] x [4,4]", 9, 9, seconds, "gemm", file="t.py", line=3, below=below)

    for parts, shown in (
        ((work(0.4, here), work(0.1, there)), "/lib/net.py:70"),
        ((work(0.1, here), work(0.1, there)), None),
        ((work(0.1, here), work(0.2, None)), None),
    ):
        document = run(replace(TRACE, work=parts))
        account = make_account(document)
        assert account is not None
        below = account.rows[1].below
        assert (f"{below.file}:{below.line}" if below.file else None) == shown
        section = account_section(replace(document, account=account))
        assert section is not None
        (table,) = (one for one in walk(section.blocks) if isinstance(one, DataTable))
        cells = [plain_text(row[-1]) for row in table.rows]
        assert ("2 x mm [4,4] x [4,4] in /lib/net.py:70" in cells) == (shown is not None)


def test_equal_calls_in_a_region_that_was_entered_once_are_the_unit() -> None:
    once = GpuRange("bench", "profkit", 1, 2.0, 40, 0.8)
    account = make_account(run(replace(TRACE, marked=True, repeats=None, ranges=(once,))))
    assert account is not None
    assert (account.unit, account.repeats) == ("call", 20)
    account = make_account(run(replace(TRACE, marked=True, repeats=None, ranges=(replace(once, entries=4),))))
    assert account is not None
    assert (account.unit, account.repeats) == ("region", 4)


H100 = Gpu("NVIDIA H100 80GB HBM3", capability="9.0", multiprocessors=132, highest_clock=1.98e9)


def timed(*clocks: float, throttled: int = 0, held_by: tuple[str, ...] = ()) -> tuple[Timing, ...]:
    samples = SampleSet((1.0,), clocks=clocks, throttled=throttled, throttle_reasons=held_by)
    return (Timing("mlp", "benchmark", (samples,), 0.01),)


def below_the_table(document: RunDocument) -> str:
    section = account_section(replace(document, account=make_account(document)))
    assert section is not None
    return "\n".join(str(block.text) for block in walk(section.blocks) if isinstance(block, Paragraph))


def test_the_clock_stands_below_the_table_with_what_held_it_and_with_both_peaks() -> None:
    document = run(gpus=(H100,), timings=timed(1.47e9, 1.49e9, 1.6e9, held_by=("power limit",)))
    assert (
        below_the_table(document)
        == (
            "clock 1.49 of 1.98 GHz: held by the power limit; 2 x mm [4,4] x [4,4] has 80 % of the tensor cores' peak "
            "at that clock, 65 % of the data sheet's"  # 989.4 TFLOP/s of 132 SMs with 4096 FLOP a cycle: at 1.83 GHz
        )
    )
    fp32 = (KernelBottleneck(MM.scope, 0.75, "fp32", Fact("no-peaks"), 80.0),)
    assert "80 % of the FP32 units' peak at that clock, 60 % of" in below_the_table(
        replace(document, kernels=fp32)
    )


def test_peaks_that_are_within_a_twentieth_are_one_and_a_lost_reason_is_none() -> None:
    document = run(gpus=(H100,), timings=timed(1.8e9, throttled=1, held_by=("power limit",)))
    assert below_the_table(document) == "clock 1.8 of 1.98 GHz"  # the sample that was held is left out of it
    account = make_account(document)
    assert account is not None
    assert {row.of_sheet for row in account.rows} == {None}


@pytest.mark.parametrize(
    ("gpus", "clocks"), [((H100,), ()), ((H100, Gpu("NVIDIA A100")), (1.4e9,)), ((), (1.4e9,))]
)
def test_where_no_clock_was_sampled_or_it_is_not_told_of_which_device_nothing_is_said(
    gpus: tuple[Gpu, ...], clocks: tuple[float, ...]
) -> None:
    assert below_the_table(run(gpus=gpus, timings=timed(*clocks))) == ""


def test_the_clock_of_the_data_sheet_is_not_made_up_where_units_are_switched_off() -> None:
    assert sheet_clock(H100) == pytest.approx(1.83e9, rel=1e-3)
    a100 = Gpu("NVIDIA A100-SXM4-80GB", capability="8.0", multiprocessors=108, highest_clock=1.41e9)
    assert sheet_clock(a100) == pytest.approx(1.41e9, rel=1e-3)  # as its data sheet has it
    assert sheet_clock(Gpu("NVIDIA H20", capability="9.0", multiprocessors=78, highest_clock=1.98e9)) is None
    assert sheet_clock(replace(H100, mig=True)) is None


def test_the_start_names_packages_of_a_region_whose_places_hold_no_import() -> None:
    imports = Profile(
        "Imports",
        "s",
        3.0,
        (
            Hotspot("torch", 0.1, 2.7),
            Hotspot("torch.export", 0.2, 0.9),
            Hotspot("numpy", 0.1, 0.25),
            Hotspot("json", 0.1, 0.1),  # too little of 4 s
        ),
        kind="sampled-imports",
    )
    spot = CodeSpot(1.0, 3.0, "python", Place(function="step", file="/app/t.py", line=4))
    document = run(
        None,
        hot_spots=(spot,),
        profiles=(imports,),
        readings=(median(0.3),),
        time_split=TimeSplit(7.0, startup=4.0, steady=3.0),
    )
    account = make_account(document)
    assert account is not None
    assert [(row.what, row.seconds) for row in account.start] == [("torch", 2.7), ("numpy", 0.25)]
    section = account_section(document_with(account, document))
    assert "start-up (not in the table): 4.00 s (import torch ~2.70 s, import numpy ~250 ms)" in repr(section)


def test_the_start_names_lines_of_the_program_outside_of_its_region() -> None:
    """A program waited two seconds before its region, and its start named `import [import system]`."""
    imports = Profile("Imports", "s", 0.5, (Hotspot("[import system]", 0.3, 0.3),), kind="sampled-imports")
    lines = (
        Hotspot("<module>", 2.0, 2.0, file="/app/t.py", line=3),
        Hotspot("f", 0.1, 0.1, file="/app/t.py", line=9),
    )
    outside = Profile("lines outside of regions", "s", 2.1, lines, kind="sampled-outside")
    document = run(
        None,
        hot_spots=(CodeSpot(1.0, 3.0, "python", Place(function="step", file="/app/t.py", line=4)),),
        profiles=(imports, outside),
        readings=(median(0.3),),
        time_split=TimeSplit(7.0, startup=4.0, steady=3.0),
    )
    account = make_account(document)
    assert account is not None
    assert [(row.where.line, row.seconds) for row in account.start] == [(3, 2.0)]
    said = repr(account_section(document_with(account, document)))
    assert "start-up (not in the table): 4.00 s (top level" in said
    assert "t.py:3 ~2.00 s)" in said


def median(seconds: float) -> Reading:
    scope = Scope("region", documents.timing().name)
    return Reading("time.median", seconds, "s", "measured", scope, Source("timing"))


def document_with(account: Account | None, document: RunDocument) -> RunDocument:
    return replace(document, account=account)


def test_threads_that_wait_for_each_other_are_said_below_the_rows_of_the_main_thread() -> None:
    def waiting(seconds: float) -> str:
        libraries = (
            Hotspot("libtorch_cpu.so", 10 - seconds, library="libtorch_cpu.so"),
            Hotspot("libgomp.so.1", seconds, library="libgomp.so.1"),
        )
        spot = CodeSpot(1.0, 3.0, "library", Place(function="step", file="/app/t.py", line=4))
        document = run(
            None, hot_spots=(spot,), profiles=(Profile("Libraries", "s", 10.0, libraries, kind="libraries"),)
        )
        return repr(account_section(document_with(make_account(document), document)))

    assert "threads that wait for each other (OpenMP, BLAS): 15 % of the processor time" in waiting(1.5)
    assert "wait for each other" not in waiting(0.4)


# ------------------------------------------------------------ lines that were counted

STEP = Place(function="step", file="/app/t.py", line=4)
CACHES = (Cache(1, 32 << 10, 8), Cache(3, 1 << 20, 16))


def numpy_line(
    statement: str, shapes: dict[str, tuple[ArrayForm, ...]], seconds: float, **more: object
) -> RunDocument:
    """A run of 2 s of which a line takes so many seconds, that ran ten times, on 100 GFLOP/s and 10 GB/s."""
    code = LineCode(statement, statement=statement)
    spots = (
        CodeSpot(seconds / 2, seconds, "python", STEP, code=code, executions=10),
        CodeSpot(1 - seconds / 2, 2 - seconds, "rest"),
    )
    counts = (LineCount("/app/t.py", 4, "step", 10, 4, shapes),)
    document = run(
        None, timings=(), hot_spots=spots, line_counts=counts, peaks=Peaks(None, 10e9, None, 100e9, 2, "")
    )
    assert document.machine is not None
    document = replace(document, machine=replace(document.machine, caches=CACHES))
    return replace(document, **more)  # type: ignore[arg-type]


def f4(*shape: int) -> tuple[ArrayForm, ...]:
    return (ArrayForm("<f4", shape, "C"),)


def first_row(document: RunDocument) -> AccountRow:
    account = make_account(document)
    assert account is not None
    return account.rows[0]


def test_a_product_of_numpy_has_its_shapes_and_the_time_that_its_arithmetic_needs() -> None:
    row = first_row(numpy_line("y = x @ w", {"x": f4(500, 1000), "w": f4(1000, 1000)}, 1.0))
    assert (row.what, row.library, row.launches) == ("matmul [500,1000] x [1000,1000] fp32", "numpy", 10)
    assert row.least == pytest.approx(10 * 2 * 500 * 1000 * 1000 / 100e9)  # 0.1 s
    assert (row.limit, row.busy) == ("fp32", pytest.approx(0.1))
    half = first_row(numpy_line("y = x @ w", {"x": f4(250, 1000), "w": f4(1000, 1000)}, 1.0))
    assert half.least == pytest.approx(0.05)


def test_numbers_of_64_bits_have_half_the_peak() -> None:
    forms = {
        name: (ArrayForm("<f8", shape, "C"),) for name, shape in (("x", (500, 1000)), ("w", (1000, 1000)))
    }
    row = first_row(numpy_line("y = x @ w", forms, 1.0))
    assert (row.limit, row.least) == ("fp64", pytest.approx(0.2))


def test_what_is_moved_counts_as_far_as_no_cache_holds_it() -> None:
    row = first_row(numpy_line("y = x + y", {"x": f4(1 << 20), "y": f4(1 << 20)}, 1.0))
    assert row.what == "add [1048576] x [1048576] fp32"
    assert (row.limit, row.least) == ("dram", pytest.approx(10 * (12 - 1) * (1 << 20) / 10e9))
    small = first_row(numpy_line("y = x + y", {"x": f4(1 << 10), "y": f4(1 << 10)}, 1.0))
    assert (small.limit, small.least, small.what) == (None, None, "add [1024] x [1024] fp32")


@pytest.mark.parametrize(
    ("statement", "more"),
    [
        ("y = relu(x @ w)", {}),
        ("y = x @ w", {"peaks": None}),
        ("y = x @ unknown", {}),
    ],
)
def test_what_is_not_known_has_no_limit(statement: str, more: dict[str, object]) -> None:
    row = first_row(numpy_line(statement, {"x": f4(500, 1000), "w": f4(1000, 1000)}, 1.0, **more))
    assert (row.limit, row.least) == (None, None)


def test_a_limit_is_never_longer_than_the_time() -> None:
    row = first_row(numpy_line("y = x @ w", {"x": f4(500, 1000), "w": f4(1000, 1000)}, 0.09))
    assert (row.what[:6], row.limit, row.least) == ("matmul", None, None)


def test_a_line_that_other_threads_run_too_has_no_operation() -> None:
    document = numpy_line("y = x @ w", {"x": f4(500, 1000), "w": f4(1000, 1000)}, 1.0)
    spots = (replace(document.hot_spots[0], threads=2), *document.hot_spots[1:])
    assert first_row(replace(document, hot_spots=spots)).what == ""


def test_shapes_that_change_are_a_range_without_a_limit() -> None:
    shapes = {"x": (*f4(8, 1000), *f4(64, 1000)), "w": f4(1000, 1000)}
    row = first_row(numpy_line("y = x @ w", shapes, 1.0))
    assert (row.what, row.limit) == ("matmul [8..64,1000] x [1000,1000] fp32", None)
    other = {"x": (*f4(8, 1000), ArrayForm("<f8", (8, 1000), "C")), "w": f4(1000, 1000)}
    assert first_row(numpy_line("y = x @ w", other, 1.0)).what == ""


def test_operations_of_a_region_are_those_of_one_iteration() -> None:
    document = numpy_line("y = x @ w", {"x": f4(500, 1000), "w": f4(1000, 1000)}, 2.0)
    timing = documents.timing()
    reading = Reading("time.median", 0.4, "s", "measured", Scope("region", timing.name), Source("profkit"))
    marked = {"timings": (replace(timing, kind="benchmark"),), "readings": (reading,)}
    counts = tuple(replace(one, entries=5) for one in document.line_counts)
    row = first_row(replace(document, line_counts=counts, **marked))  # type: ignore[arg-type]
    assert (row.launches, row.least) == (2, pytest.approx(0.02))
    row = first_row(replace(document, **marked))  # type: ignore[arg-type]
    assert (row.launches, row.what) == (None, "")


def planning(*lines: LineSamples, share: float = 0.45) -> list[tuple[str, int | None]]:
    """What idle rows say, and their lines, of a program that loads modules for `share` of a step, idle for half."""
    trace = replace(TRACE, api=(ApiCall("cuModuleLoadData", 570, share * 2.0),))
    document = run(trace, sampled=(SampledTime(9.0, 9.0, lines=lines),))
    account = make_account(document)
    assert account is not None
    return [(row.what, row.where.line) for row in account.rows if row.kind == "idle"]


def in_loop(number: int, seconds: float, *within: CodeLine, loop: int | None = None) -> LineSamples:
    code = LineCode("x = f(x)", loop=loop)
    return LineSamples("process", "t.py", number, main_wall=seconds, within=within, code=code)


FIRST, STEPS = CodeLine("main", "t.py", 72, 10.0), CodeLine("main", "t.py", 78, 2.2)
CALLING = (
    LineSamples("main", "t.py", 72, main_wall=0.05, code=LineCode("process(dwell, 1)", loop=71)),
    LineSamples("main", "t.py", 78, main_wall=0.05, code=LineCode("process(dwell, gain)", loop=77)),
)


def test_idle_rows_of_calls_have_the_line_that_must_make_them() -> None:
    """A line that has 96 % of each loop which may be that of the steps: calls for 45 % of them are mostly in it."""
    transform = in_loop(53, 12.2, FIRST, STEPS)
    assert planning(*CALLING, transform) == [("cuModuleLoadData", 53), ("", None)]
    # Half of the loop's time is not enough for calls that take less than half of it.
    other = in_loop(55, 2.0, replace(STEPS, value=2.0))
    assert planning(*CALLING, transform, other) == [("cuModuleLoadData", None), ("", None)]
    # Nor is a loop that is over before the steps begin.
    first = in_loop(53, 10.0, FIRST)
    assert planning(*CALLING, first, in_loop(60, 2.2, STEPS)) == [("cuModuleLoadData", None), ("", None)]
    # The steps may be in a loop of a library.
    alone = LineSamples("main", "t.py", 90, main_wall=2.0, code=LineCode("trainer.fit()"))
    assert planning(*CALLING, transform, alone) == [("cuModuleLoadData", None), ("", None)]


def looped(
    parts: tuple[float, ...] = (), executions: int = 50, seconds: float = 1.8, share: float = 0.95
) -> RunDocument:
    """A run of 2 s with a loop at line 2 that has 1.8 s of it: a line in it has 1.6, one that it calls 0.2."""
    loop = SampledLoop("/app/t.py", 2, "main", 3, 5, share, seconds)
    inner = (CodeLine("main", "/app/t.py", 4, 0.2),)
    lines = (
        LineSamples("main", "/app/t.py", 4, main_wall=1.6),
        LineSamples("load", "/app/t.py", 9, main_wall=0.3, within=inner),
    )
    spots = (
        CodeSpot(0.8, 1.6, "python", Place(function="main", file="/app/t.py", line=4)),
        CodeSpot(0.15, 0.3, "file", Place(function="load", file="/app/t.py", line=9)),
        CodeSpot(0.05, 0.1, "import", Place(function="<module>", file="/app/t.py", line=1)),
        CodeSpot(0.0, 0.0, "rest"),
    )
    sampled = SampledTime(2.0, 2.0, lines=lines, loops=(loop,))
    counts = (LineCount("/app/t.py", 3, "main", executions, parts=parts),)
    return run(None, timings=(), sampled=(sampled,), hot_spots=spots, line_counts=counts)


def test_an_iteration_of_the_loop_is_the_unit_and_what_lies_outside_is_apart() -> None:
    document = looped()
    account = make_account(document)
    assert account is not None
    assert (account.unit, account.repeats, account.loop.line) == ("iteration", 50, 2)
    assert account.seconds == pytest.approx(0.036)
    assert [(row.where.line, round(row.seconds, 6)) for row in account.rows] == [(4, 0.032), (9, 0.004)]
    assert account.outside == pytest.approx(0.2)
    section = account_section(replace(document, account=account))
    assert section is not None
    assert section.title == "Where one iteration goes"
    assert "One iteration of the loop at /app/t.py:2 takes 36.0 ms (50 of them)" in str(section.headline)
    assert "outside of the loop (not in the table): 200 ms (imports ~100 ms)" in repr(section)


@pytest.mark.parametrize(
    ("function", "caller", "line"),
    [
        ("Decoder.forward", "/venv/site-packages/torch/nn/modules/module.py", 2),
        ("Decoder.apply_all", "/venv/site-packages/torch/nn/modules/module.py", 2),  # another name of it
        ("Net.forward", "/app/t.py", 2),  # a model of the program's own
        ("run_epoch", "/app/t.py", 30),
    ],
)
def test_a_loop_over_the_layers_of_a_model_is_no_iteration(function: str, caller: str, line: int) -> None:
    document = looped()
    (sampled,) = document.sampled
    layers = SampledLoop("/app/t.py", 30, function, 31, 31, 0.9, 1.7)
    body = LineSamples(function, "/app/t.py", 31, main_wall=1.7, callers=(CodeLine("call", caller, 9, 1.7),))
    sampled = replace(sampled, loops=(*sampled.loops, layers), lines=(*sampled.lines, body))
    counts = (*document.line_counts, LineCount("/app/t.py", 31, function, 200))
    account = make_account(replace(document, sampled=(sampled,), line_counts=counts))
    assert account is not None
    assert account.loop.line == line


def test_a_line_that_calls_several_operations_in_the_loop_is_no_part_of_what_is_outside() -> None:
    """Each operation of torch has a row: of a line with three of them two thirds counted as start-up."""
    document = looped()
    parts = [Hotspot(f"op{n}", 0.5, file="/app/t.py", line=4) for n in range(3)]
    operators = Profile(
        "", "s", 1.5, (Hotspot("line", 1.5, 1.5, file="/app/t.py", line=4), *parts), "line-operators"
    )
    account = make_account(replace(document, profiles=(operators,)))
    assert account is not None
    assert len(account.rows) > 3
    assert [row.does for row in account.start] == ["import"]


@pytest.mark.parametrize(
    ("seconds", "named"),
    [
        ((2.0, 1.0, 0.5), [2.0, 1.0, 0.5]),
        ((2.0, 3.0, 0.5), [2.0, 0.5]),  # beside the imports it does not fit: it ran later, too
        ((2.0, 1.9, 0.5), [2.0, 1.9]),
    ],
)
def test_the_parts_of_the_start_take_no_longer_than_all_of_it(
    seconds: tuple[float, ...], named: list[float]
) -> None:
    imported, *lines = seconds
    imports = Profile("Imports", "s", 2.0, (Hotspot("torch", imported, imported),), kind="sampled-imports")
    hotspots = tuple(Hotspot(f"f{n}", own, own, file="/app/t.py", line=n) for n, own in enumerate(lines, 3))
    outside = Profile("", "s", 4.0, hotspots, kind="sampled-outside")
    document = run(
        None,
        hot_spots=(CodeSpot(1.0, 3.0, "python", Place(function="step", file="/app/t.py", line=2)),),
        profiles=(imports, outside),
        readings=(median(0.3),),
        time_split=TimeSplit(7.0, startup=4.0, steady=3.0),
    )
    account = make_account(document)
    assert account is not None
    assert [row.seconds for row in account.start] == named


@pytest.mark.parametrize(("executions", "marked"), [(2, False), (50, True), (100_000, False)])
def test_no_loop_is_the_unit_that_hardly_repeats_is_marked_around_or_too_short(
    executions: int, marked: bool
) -> None:
    document = looped(executions=executions)
    if marked:
        document = replace(document, timings=(documents.timing(), documents.timing()))
    account = make_account(document)
    assert account is not None
    assert account.unit == "run"


GROWING = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0)


def test_iterations_that_grow_are_said_with_what_the_first_and_the_last_take() -> None:
    document = looped(GROWING)
    account = make_account(document)
    assert account is not None
    assert account.growth is not None
    assert account.growth.first == pytest.approx(0.036 / 4.5)
    beside_others = make_account(
        looped((1.0, 2.0, 3.0, 2.5, 5.0, 6.0, 8.0, 7.0))
    )  # an eighth is longer by chance
    assert beside_others is not None
    assert beside_others.growth is not None
    assert account.growth.last == pytest.approx(0.036 * 8 / 4.5)
    section = account_section(replace(document, account=account))
    assert section is not None
    assert "An iteration takes 8.00 ms at first and 64.0 ms at the end" in str(section.headline)
    short = make_account(looped(GROWING, executions=100_000))  # no step, and yet it grows
    assert short is not None
    section = account_section(replace(document, account=short))
    assert section is not None
    assert "An iteration of the loop at /app/t.py:2 takes 4.00 µs at first" in str(section.headline)


@pytest.mark.parametrize(
    "parts",
    [
        (), (1.0,) * 8, (1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.4, 1.5), (1.0, 2.0, 5.0, 6.0, 2.5, 3.0, 7.0, 8.0),
        (0.0,) * 8, GROWING[::-1],
        (63.8, 40.0, 60.0, 60.0, 70.0, 70.0, 82.0, 77.2),  # a healthy program, of which an eighth was short by chance
    ],
)  # fmt: skip
def test_iterations_that_do_not_grow_all_along_are_not_said_to(parts: tuple[float, ...]) -> None:
    account = make_account(looped(parts))
    assert account is not None
    assert account.growth is None


@pytest.mark.parametrize(
    ("operation", "shown"),
    [
        (
            "aten::cudnn_convolution [64,64,112,112], [128,64,3,3] stride 2",
            "convolution 3x3 stride 2 [64,64,112,112]",
        ),
        (
            "aten::convolution_backward [8,4,5,5], [8,4,9,9], [4,4,3,3] stride 2",
            "convolution backward 3x3 stride 2 [8,4,9,9]",
        ),
        (
            "aten::cudnn_convolution_transpose [8,4,5,5], [4,6,2,2] stride 2",
            "convolution transposed 2x2 stride 2 [8,4,5,5]",
        ),
        (
            "aten::_flash_attention_forward [8,512,12,64], [8,512,12,64], [8,512,12,64] causal",
            "causal attention [8,512,12,64]",
        ),
        (
            "aten::_scaled_dot_product_efficient_attention_backward [2,8,64,32], [2,8,64,32], [2,8,64,32], [2,8,64,32]",
            "attention backward [2,8,64,32]",
        ),
        ("aten::convolution [64,64,112,112]", "convolution [64,64,112,112]"),
    ],
)
def test_a_row_names_a_convolution_by_its_window_and_attention_by_what_it_sees(
    operation: str, shown: str
) -> None:
    row = AccountRow("kernel", 0.5, what=operation, library="cuDNN")
    document = replace(run(TRACE), account=Account("step", 1.0, (row,), 3))
    section = account_section(document)
    assert f" {shown}, cuDNN" in f" {section}".replace("'", " ")


def _in_program(seconds: float, function: str, line: int, does: Any) -> AccountRow:
    return AccountRow("host", seconds, Place(function=function, file="t.py", line=line), does=does)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (
            (_in_program(6.0, "crunch", 4, "python"), AccountRow("rest", 4.0)),
            "Of the 10.0 s, 60 % is in crunch t.py:4.",
        ),
        (
            (
                _in_program(2.0, "step", 9, "network"),
                _in_program(1.5, "save", 12, "python"),
                AccountRow("rest", 6.5),
            ),
            "Of the 10.0 s, 20 % is in step t.py:9, where the program waits for the network.",
        ),
        (
            tuple(
                _in_program(0.5, f"f{n}", n, "python") for n in range(1, 21)
            ),
            "No place takes 10 % of the 10.0 s: the first 8 together take 40 %.",
        ),
        ((AccountRow("rest", 10.0),), ""),
    ],
)  # fmt: skip
def test_a_whole_run_has_one_sentence_from_its_table(rows: tuple[AccountRow, ...], said: str) -> None:
    section = account_section(replace(documents.document(), account=Account("run", 10.0, rows)))
    assert section is not None
    assert section.headline == said


KNOWN = AccountRow("kernel", 3.0, Place(function="f", file="a.py", line=3), "mm", least=2.5)
NOT_KNOWN = AccountRow("kernel", 1.5, Place(function="g", file="a.py", line=9), "sort")
SMALL = AccountRow("kernel", 0.5, Place(function="h", file="a.py", line=12), "add")


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (
            (KNOWN, NOT_KNOWN),
            " The limits are known for 30 % of it, which takes 3.00 s and would take 2.50 s at them.",
        ),
        (
            (replace(KNOWN, seconds=2.0, least=1.9), NOT_KNOWN),
            " The largest part of it, 20 %, is mm (f a.py:3).",
        ),
        ((NOT_KNOWN, SMALL), " The largest part of it, 15 %, is sort (g a.py:9)."),
        # a line that calls nothing with a name
        (
            (replace(NOT_KNOWN, kind="host", what="", launches=25), SMALL),
            " The largest part of it, 15 %, is in g a.py:9.",
        ),
        ((SMALL,), ""),
        ((), ""),
    ],
)
def test_a_step_whose_limits_are_known_in_part_says_what_that_part_needs(
    rows: tuple[AccountRow, ...], said: str
) -> None:
    account = Account("step", 10.0, (*rows, AccountRow("rest", 10.0 - sum(row.seconds for row in rows))))
    assert run_account._known_part(account, "/work") == said


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("pandas", "Of the 3.00 s, 50 % is the import of pandas (top level /app/t.py:2)."),
        ("[import system]", "Of the 3.00 s, 50 % is the import of modules (top level /app/t.py:2)."),
    ],
)
def test_the_largest_row_of_a_run_says_that_it_is_an_import(name: str, said: str) -> None:
    spots = (
        CodeSpot(
            0.5,
            1.5,
            "import",
            Place(function="<module>", file="/app/t.py", line=2),
            Beneath(name, None, None, 1.5),
        ),
        CodeSpot(0.5, 1.5, "rest"),
    )
    document = run(trace=None, hot_spots=spots, timings=(), sampled=())
    document = replace(document, account=make_account(document))
    section = account_section(document)
    assert section is not None
    assert section.headline == said


@pytest.mark.parametrize(
    ("passes", "how"),
    [((), ": --depth standard counts them"), ((PassResult("cprofile", "cprofile", "finished"),), "")],
)
def test_a_run_names_the_loop_whose_iterations_were_not_counted(
    passes: tuple[PassResult, ...], how: str
) -> None:
    loop = SampledLoop("/app/t.py", 4, "main", 5, 6, 0.98, 2.0, each=True)
    spots = (CodeSpot(1.0, 2.0, "python", Place(function="main", file="/app/t.py", line=5)),)
    document = run(
        trace=None,
        hot_spots=spots,
        timings=(),
        sampled=(SampledTime(2.0, 2.0, loops=(loop,)),),
        passes=passes,
    )
    document = replace(document, account=make_account(document))
    said = "98 % of the time without imports is in the loop at /app/t.py:4, whose iterations were not counted"
    assert f"{said}{how}'" in repr(account_section(document))
    counted = (LineCount("/app/t.py", 5, "main", 2, 0),)  # two iterations are no unit
    assert said not in repr(account_section(replace(document, line_counts=counted)))


def test_a_line_that_several_threads_run_is_shown_with_its_text() -> None:
    place = Place(function="pack", file="/app/t.py", line=4)
    code = LineCode("return zlib.compress(block, 6)", statement="return zlib.compress(block, 6)")
    spot = CodeSpot(0.9, 9.0, "python", place, code=code, threads=2)
    document = run(None, hot_spots=(spot, CodeSpot(0.1, 1.0, "rest")))
    account = make_account(document)
    assert account is not None
    text = plain_text(run_account.row_text(document, account, account.rows[0], ""))
    assert "runs: return zlib.compress(block, 6), in 2 threads" in text
