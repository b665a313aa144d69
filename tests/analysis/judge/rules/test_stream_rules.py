"""Kernels of several streams with the default stream between them: from rows of a trace to what is said of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from profkit.analysis.judge.findings import find_insights
from profkit.analysis.timeline.records import Collected, Recording, TransferKind
from profkit.analysis.timeline.trace import build_trace
from profkit.core.types import ApiCall, GpuLine, GpuTrace, Insight, Kernel, StreamOrder
from profkit.profiling.summarize import summarize_report
from tests import kernel_documents
from tests.conftest import ROOT
from tests.gpu_documents import H200

NSYS = ROOT / "tests" / "data" / "cuda" / "nsys"
US, STEPS, BANKS = 1000, 30, 8
DEFAULT = 7


def banks(
    memset: int | None = DEFAULT,
    *,
    streams: int = BANKS,
    apart: int = 70,
    grid: int = 16,
    late: bool = False,
    kernel: bool = False,
) -> GpuTrace:
    """A step: for each bank a memset of 1 us, then a kernel of 50 us and one of 10 us in its stream (H200).

    `memset` is the stream of the memsets, None: that of the bank. After `apart` us the next bank begins. `late`: each
    is launched when the one before is done. `kernel`: no memset but a kernel is in the default stream.
    """
    made, key, at = Collected(), 0, 1_000_000
    shape, summary = (Kernel(name, (grid, 1, 1), (256, 1, 1), None, 16, 0) for name in ("shape", "summarize"))
    for _ in range(STEPS):
        for bank in range(BANKS):
            begin = at + bank * apart * US
            own = 13 + bank % streams
            launched = begin - US if late else at - 500 * US
            parts = (
                (None, begin, begin + US, memset or own),
                (shape, begin + 2 * US, begin + 52 * US, own),
                (summary, begin + 53 * US, begin + 63 * US, own),
            )
            for what, start, end, stream in parts:
                key += 1
                if what is not None:
                    made.kernel(what, start, end, key=key, stream=stream)
                elif kernel:
                    made.kernel(
                        Kernel("clear(int*)", (1, 1, 1), (32, 1, 1)), start, end, key=key, stream=stream
                    )
                else:
                    made.transfer(TransferKind("memset"), start, end, 1 << 20, key=key, stream=stream)
                made.call("cudaLaunchKernel" if what else "cudaMemsetAsync", launched, launched + 10, key=key)
        at += 560 * US
    trace, _ = build_trace(Recording("nsys", made.activities(), made.calls(), made.tables, (), ()))
    return trace


def found(trace: GpuTrace, gpus: tuple[object, ...] = (H200,)) -> Insight | None:
    document = replace(kernel_documents.document({}), trace=trace, gpus=gpus)
    return next((one for one in find_insights(document) if one.rule == "ordered-streams"), None)


def test_the_trace_counts_what_the_default_stream_does_between_the_others() -> None:
    order = banks().streams
    assert isinstance(order, StreamOrder)
    steps = order.parted / BANKS
    assert (order.streams, order.switches, order.queued) == (8, order.parted, order.parted)
    assert steps == pytest.approx(STEPS, abs=1)
    assert order.overlap == 0.0
    assert order.blocks == 16
    assert order.seconds == pytest.approx(8 * order.longest, rel=0.05)
    assert (order.kernel, order.operation) == ("shape", "memset")
    assert banks(apart=0).streams.overlap > 0.8 * order.seconds  # type: ignore[union-attr]
    assert banks(None).streams.parted == 0  # type: ignore[union-attr]
    assert banks(streams=1).streams is None


def test_a_memset_of_the_default_stream_between_small_kernels_of_streams_is_named() -> None:
    trace = banks()
    said = found(trace)
    assert said is not None
    assert said.title == "Give the memset a stream: it lets 8 streams wait for each other"
    assert "16 blocks for 132 multiprocessors: 239 times an operation" in said.evidence
    assert said.gain is not None
    assert 0.7 < said.gain.at_most < 0.87  # seven of eight banks, without the memsets
    assert said.where.kernel == "shape"
    line = GpuLine("/app/banks.cu", 85, None, calls=240, seconds=0.001, call="cudaMemsetAsync")
    said = found(replace(trace, lines=(line,)))
    assert said is not None
    assert (said.where.file, said.where.line) == ("/app/banks.cu", 85)
    said = found(replace(trace, lines=(replace(line, calls=480),)))  # half of them have a stream
    assert said is not None
    assert said.where.file is None
    said = found(banks(kernel=True))
    assert said is not None
    assert said.title.startswith("Give the kernel clear a stream")


def test_that_its_kernels_are_small_is_no_finding_of_its_own() -> None:
    trace = banks()
    blocks = {"launch.blocks": 16.0, "launch.multiprocessors": 132.0, "time.kernel": 50e-6}
    first = replace(trace.kernels[0], file="/app/banks.cu", line=33, function="shape")
    trace = replace(trace, kernels=(first, *trace.kernels[1:]))
    told = kernel_documents.readings_of(trace.kernels[0].kernel.scope, blocks)
    line = GpuLine("/app/banks.cu", 85, None, calls=240, seconds=0.001, call="cudaMemsetAsync")
    document = replace(kernel_documents.document({}), trace=trace, gpus=(H200,), readings=told)
    for lines in ((), (line,)):
        rules = [one.rule for one in find_insights(replace(document, trace=replace(trace, lines=lines)))]
        assert rules == ["ordered-streams"]
    apart = replace(document, trace=replace(trace, streams=None))
    assert "small-grid" in [one.rule for one in find_insights(apart)]


def test_streams_that_run_side_by_side_or_one_after_the_other_for_another_reason_are_fine() -> None:
    assert found(banks(None)) is None  # the memset has its stream
    assert found(banks(None, apart=0)) is None
    beside = banks(apart=55)
    assert beside.streams is not None
    assert beside.streams.parted > 200
    assert found(beside) is None  # streams that do not wait for it
    assert found(banks(streams=1)) is None
    assert found(banks(grid=132)) is None  # each kernel fills the device
    assert found(banks(late=True)) is None  # the host is late
    waits = ApiCall("cudaStreamWaitEvent", 240, 0.0003)
    trace = banks()
    assert found(replace(trace, api=(*trace.api, waits))) is None  # the order is meant
    assert found(trace, gpus=()) is None  # how many blocks fit is not known
    longer = replace(trace.kernels[0].kernel, name="void at::native::vectorized_elementwise_kernel<4>")
    torch = replace(trace, kernels=(replace(trace.kernels[0], kernel=longer), *trace.kernels[1:]))
    assert found(torch) is None  # its streams do not wait for the default one


def test_the_streams_need_no_more_time_than_the_blocks_need_on_the_device() -> None:
    said = found(banks(grid=60))
    assert said is not None
    assert said.gain is not None
    assert said.gain.at_most == pytest.approx(0.86 * (1 - 60 / 132), abs=0.02)


@pytest.mark.parametrize("recording", ["hostbound", "sweep", "operations", "truths", "graphs.node"])
def test_recorded_programs_of_one_stream_have_no_such_order(recording: str) -> None:
    document = summarize_report(NSYS / f"{recording}.sqlite")
    assert document.trace is not None
    assert document.trace.streams is None or document.trace.streams.parted == 0
    assert "ordered-streams" not in {insight.rule for insight in document.insights}
