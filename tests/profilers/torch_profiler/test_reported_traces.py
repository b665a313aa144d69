"""Traces as people reported them: of old versions and other devices, with impossible times, and no JSON at all."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from profkit.core.errors import UnreadableReport
from profkit.core.types import Report
from profkit.profilers.chrome.json_repair import repaired
from profkit.profilers.registry import recognise_format
from profkit.profiling.summarize import summarize_report
from tests.profilers.torch_profiler.test_chrome_trace import call, event, ordinary, read, trace
from tests.spoken import spoken_lines

US = 1e-6


def edited(tmp_path: Path, events: list[Any], *changes: tuple[str, str]) -> Report:
    """What is read of a trace after changes to its text."""
    path = trace(tmp_path, events)
    text = path.read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path.write_text(text)
    return read(path)


def notes_of(report: Report) -> str:
    return " ".join(spoken_lines(report.warnings))


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ('void f<"fast">(int)', 'void f<"fast">(int)'),
        ('{"device": "cpu", "dtype": "x"}(12): run', '{"device": "cpu", "dtype": "x"}(12): run'),
        ("C:\\dir\\code.cu", "C:\\dir\\code.cu"),
        ("C:\\dir\\", "C:\\dir\\"),
        ('a\n"b"', 'a\n"b"'),
    ],
)
def test_a_name_that_torch_did_not_escape_is_read_as_it_is(tmp_path: Path, written: str, name: str) -> None:
    report = edited(tmp_path, ordinary(), ("void f<int>()", written))
    assert report.trace is not None
    assert [one.kernel.name for one in report.trace.kernels] == [name]
    assert report.trace.launches == 4
    assert "invalid JSON" in notes_of(report)


@pytest.mark.parametrize("value", ["inf", "-inf", "nan", "-nan", "-nan(ind)", "Infinity", "NaN"])
def test_a_bandwidth_that_is_no_number_of_json_costs_no_event(tmp_path: Path, value: str) -> None:
    copy = event(
        "gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", 50, 0, device=0, stream=7, bytes=200, rate=-77
    )
    report = edited(tmp_path, [copy, *ordinary()], ("-77", value))
    assert report.trace is not None
    assert report.trace.launches == 4


def test_a_path_of_windows_behind_the_events_is_no_sign_of_a_killed_process(tmp_path: Path) -> None:
    path = trace(tmp_path, ordinary())
    path.write_text(path.read_text()[:-1] + ', "traceName": "C:\\Users\\me\\trace.json"}')
    assert "cut off" not in notes_of(read(path))


def test_text_that_is_no_json_is_refused_with_the_line_that_names_the_place(tmp_path: Path) -> None:
    path = trace(tmp_path, ordinary())
    path.write_text(path.read_text().replace('"ts": 200.0', '"ts": 20,0'))
    with pytest.raises(UnreadableReport, match="not valid JSON") as caught:
        read(path)
    assert caught.value.fix is not None
    assert caught.value.fix.startswith("python -m json.tool ")


@pytest.mark.parametrize(
    "piece", ['"cat": "x", "name": "', '", "pid":', "\\", '": inf', '"cat"' + " " * 9, "\\u12", '"']
)
def test_repairing_takes_time_in_proportion_to_the_text(piece: str) -> None:
    started = time.process_time()
    repaired(piece * (2_000_000 // len(piece)))
    assert time.process_time() - started < 5


def test_what_is_json_stays_as_it_is(tmp_path: Path) -> None:
    texts = ["a\\b", 'say "hi", "pid": 3', "\n\t\u20ac\x01", "C:\\new\\u12", '": inf}', "", '", "name": "']
    for name in texts:
        text = json.dumps([{"ph": "X", "cat": "kernel", "name": name, "pid": 0, "args": {"name": name}}] * 2)
        assert json.loads(repaired(text), strict=False) == json.loads(text)


def test_a_comma_behind_the_last_event_is_no_sign_of_a_killed_process(tmp_path: Path) -> None:
    path = trace(tmp_path, ordinary())
    path.write_text(path.read_text().removesuffix("]}") + ",]}")
    report = read(path)
    assert report.trace is not None
    assert (report.trace.launches, notes_of(report).count("cut off")) == (4, 0)


def test_a_second_trace_in_the_same_file_is_told_and_not_read(tmp_path: Path) -> None:
    path = trace(tmp_path, ordinary())
    path.write_text(path.read_text() * 2)
    report = read(path)
    assert report.trace is not None
    assert report.trace.launches == 4
    assert "the file contains more data after the end of the trace" in notes_of(report)


def test_times_that_are_texts_are_times(tmp_path: Path) -> None:
    """As Ascend's profiler writes them, since a number would lose the nanoseconds."""
    texts = [{**one, "ts": f"{1716888888000000 + one['ts']:.0f}.250"} for one in ordinary()]
    found = read(trace(tmp_path, texts)).trace
    assert found is not None
    assert (found.launches, found.span) == (4, pytest.approx(302 * US))
    assert found.busy == pytest.approx(8 * US)


def test_tasks_of_an_npu_are_told_and_the_trace_is_not_of_the_cpu_alone(tmp_path: Path) -> None:
    task = {
        "ph": "X",
        "name": "MatMulV2",
        "pid": 9,
        "tid": 2,
        "ts": "100.5",
        "dur": 5,
        "args": {"Task Type": "AI_CORE"},
    }
    report = read(trace(tmp_path, [event("cpu_op", "aten::mm", 0, 10), task]))
    assert "1 task of an Ascend NPU" in notes_of(report)
    assert "only the CPU was traced" not in notes_of(report)


def test_categories_of_torch_before_1_12_are_those_of_today(tmp_path: Path) -> None:
    """As of the first Kineto: kernels are no reason to say that none was traced."""
    old = {"kernel": "Kernel", "cuda_runtime": "Runtime"}
    steps = [event("Operator", f"ProfilerStep#{n}", 100.0 * n - 1, 90) for n in range(4)]
    events = [{**one, "cat": old[one["cat"]], "tid": "stream 7"} for one in ordinary()]
    found = read(trace(tmp_path, [*steps, *events])).trace
    assert found is not None
    assert (found.launches, found.kernels[0].kernel.name) == (4, "void f<int>()")
    assert [(one.name, one.entries) for one in found.ranges] == [("ProfilerStep", 4)]


@pytest.mark.parametrize(
    "wrong", [{"ts": 0, "dur": 0}, {"dur": -1}, {"dur": None}, {"ts": 1.7e18}, {"ts": 1 << 63}]
)
def test_kernels_without_a_time_are_not_said_to_be_missing(tmp_path: Path, wrong: dict[str, Any]) -> None:
    lost = [{**one, **wrong} if one["cat"] == "kernel" else one for one in ordinary()]
    told = notes_of(read(trace(tmp_path, lost)))
    assert "4 kernels and copies are in the trace, all with impossible times" in told
    assert "contains no kernel" not in told


@pytest.mark.parametrize("wrong", [{"ts": 0, "dur": 0}, {"dur": -1}])
def test_one_kernel_without_a_time_is_left_out_and_counted(tmp_path: Path, wrong: dict[str, Any]) -> None:
    first, launched, *rest = ordinary()
    report = read(trace(tmp_path, [first, {**launched, **wrong}, *rest]))
    assert report.trace is not None
    assert (report.trace.launches, report.trace.busy) == (3, pytest.approx(6 * US))
    assert "1 event without a time was left out" in notes_of(report)


@pytest.mark.parametrize("calls", [1, 2, 5])
def test_calls_without_a_kernel_end_no_reading(tmp_path: Path, calls: int) -> None:
    document = summarize_report(
        trace(tmp_path, [call("cudaLaunchKernel", 100 * n, 5, n) for n in range(calls)])
    )
    assert any("the trace contains no kernel" in note for note in spoken_lines(document.notes))


def test_a_kernel_that_ends_after_its_successor_counts_until_that_begins(tmp_path: Path) -> None:
    """As AMD's tracer writes them after a stall: seconds, where the stream did other work meanwhile."""
    events = ordinary()
    events[3] = {**events[3], "dur": 1_600_000.0}
    report = read(trace(tmp_path, events))
    assert report.trace is not None
    assert report.trace.busy == pytest.approx((2 + 100 + 2 + 2) * US)
    assert "1 kernel ends after the next one of the same stream" in notes_of(report)


@pytest.mark.parametrize(
    ("length", "more"),
    [(100, {}), (101.5, {}), (150, {"stream": 8}), (150, {"device": 1}), (150, {"correlation": 2})],
)
def test_kernels_that_may_overlap_keep_their_times(
    tmp_path: Path, length: float, more: dict[str, Any]
) -> None:
    """The next one may begin early, run on another stream or device, or be of the same graph."""
    events = ordinary()
    events[3] = {**events[3], "dur": length, "args": {**events[3]["args"], **more}}
    report = read(trace(tmp_path, events))
    assert "ends after" not in notes_of(report)
    assert report.trace is not None
    assert max(one.most or 0 for one in report.trace.kernels) >= length * US


INTEL = "Intel(R) Data Center GPU Max 1100"


@pytest.mark.parametrize(
    ("calls", "kernels", "device", "told"),
    [
        ("cuda_runtime", "kernel", {"name": "NVIDIA H200"}, None),
        (
            "cuda_runtime",
            "kernel",
            {"name": "AMD Instinct MI300X", "computeMajor": 9, "computeMinor": 4},
            "an AMD GPU",
        ),
        ("xpu_runtime", "kernel", {"name": INTEL}, "an Intel GPU"),
        ("mtia_runtime", "mtia_ccp_events", {"name": "x"}, "MTIA"),
    ],
)
def test_whose_device_it_is_the_trace_itself_tells(
    tmp_path: Path, calls: str, kernels: str, device: dict[str, Any], told: str | None
) -> None:
    kinds = {"cuda_runtime": calls, "kernel": kernels}
    path = trace(
        tmp_path,
        [{**one, "cat": kinds[one["cat"]]} for one in ordinary()],
        deviceProperties=[{"id": 0, **device}],
    )
    report = read(path)
    assert report.trace is not None
    assert report.trace.launch_latency == pytest.approx(5 * US), "its calls are calls"
    assert (told or "trace of") in notes_of(report) or told is None
    assert (report.facts.get("device") or "").startswith(told or "")
    assert ("device" in report.facts) is (told is not None)
    assert all(gpu.capability is None for gpu in report.gpus)


def test_a_trace_of_the_old_autograd_profiler_is_named(tmp_path: Path) -> None:
    path = tmp_path / "old.json"
    path.write_text(
        '[{"name": "add", "ph": "X", "ts": 101.5, "dur": 134.4, "tid": 1, "pid": "CPU functions", "args": {}}]'
    )
    with pytest.raises(UnreadableReport, match="autograd") as caught:
        recognise_format(path)
    assert "torch.profiler" in (caught.value.fix or "")
