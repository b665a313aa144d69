"""Traces of jax.profiler: three recorded on an H200 with JAX 0.11, and what may be wrong with one."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from profkit.core.errors import UnreadableReport
from profkit.core.types import GpuTrace, Report
from profkit.profilers.registry import recognise_format
from profkit.profiling.summarize import summarize_report
from tests.conftest import ROOT
from tests.spoken import spoken_lines

DATA = ROOT / "tests" / "data" / "cuda" / "jax"
DEVICE = {"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "/device:GPU:0"}}
HOST = {"ph": "M", "pid": 9, "name": "process_name", "args": {"name": "/host:CPU"}}


def read(path: Path) -> tuple[Report, GpuTrace]:
    form = recognise_format(path)
    assert form.name == "jax-chrome-trace"
    report = form.read(path)
    assert report.trace is not None
    return report, report.trace


def recorded(name: str) -> tuple[Report, GpuTrace]:
    return read(DATA / f"{name}.trace.json.gz")


def kernel(name: str, at: float, key: int, module: str | None = "jit_step", **more: Any) -> dict[str, Any]:
    args = {
        "correlation_id": str(key),
        "kernel_details": "regs:16 static_shared:8 dynamic_shared:4 grid:3,2,1 block:64,1,1",
    }
    args |= {"hlo_module": module} if module else {}
    return {"ph": "X", "pid": 1, "tid": 14, "name": name, "ts": at, "dur": 2.0, "args": args, **more}


def host(name: str, at: float, dur: float, **args: str) -> dict[str, Any]:
    return {"ph": "X", "pid": 9, "tid": 5, "name": name, "ts": at, "dur": dur, "args": args}


def made(folder: Path, *events: object) -> Path:
    path = folder / "made.trace.json.gz"
    document = {"displayTimeUnit": "ns", "metadata": {}, "traceEvents": [DEVICE, HOST, *events]}
    path.write_bytes(gzip.compress(json.dumps(document).encode()))
    return path


# ---------------------------------------------------------------- as it was recorded


def test_twenty_jitted_steps_are_twenty_graphs_of_twelve_kernels_each() -> None:
    report, trace = recorded("jitted")
    assert (report.tool, trace.launches, trace.repeats) == ("jax_profiler", 240, 20)
    assert trace.span == pytest.approx(6.971e-3, abs=1e-6)
    assert trace.busy == pytest.approx(6.804e-3, abs=1e-6)
    first = trace.kernels[0]
    assert first.kernel.name.startswith("sm90_xmma_gemm_f32f32_tf32f32_f32_nt_n_tilesize128x256x32")
    assert (first.launches, first.kernel.grid, first.kernel.block) == (20, (128, 1, 1), (384, 1, 1))
    assert (first.kernel.registers, first.kernel.shared) == (168, 231424)
    assert first.ranges == ("XlaModule:#hlo_module=jit_step#", "train")
    assert all(one.graph for one in trace.kernels)
    calls = {call.name: call.calls for call in trace.api}
    assert calls["cuGraphLaunch"] == 20


def test_operations_outside_of_jit_are_modules_of_their_own() -> None:
    _, trace = recorded("eager")
    assert (trace.launches, trace.repeats) == (280, 10)
    modules = {name for one in trace.kernels for name in one.ranges}
    assert {"XlaModule:#hlo_module=jit_tanh#", "XlaModule:#hlo_module=jit_subtract#"} <= modules
    assert trace.busy / trace.span == pytest.approx(0.044, abs=1e-3)  # type: ignore[operator]
    copies = {one.kind: (one.count, one.bytes) for one in trace.transfers}
    assert copies["host to device"] == (60, 240)


def test_what_xla_launches_to_choose_kernels_is_no_work_and_its_compilations_are_told() -> None:
    report, trace = recorded("shapes")
    names = {one.kernel.name for one in (*trace.kernels, *trace.setup)}
    assert names == {"gemm_fusion_dot_1", "input_reduce_fusion", "loop_reduce_fusion", "wrapped_broadcast"}
    assert trace.launches == 13  # the fourth size has only its ones
    notes = " ".join(spoken_lines(report.warnings))
    assert "that XLA ran only to choose its kernels" in notes
    assert "JAX compiled 7 programs in the trace, which took 3.15 s: jit_broadcast_in_dim 4 times" in notes
    compiles = next(call for call in trace.api if call.name == "JAX compiles")
    assert compiles.calls == 7
    assert compiles.seconds == pytest.approx(3.15, abs=0.01)
    assert not [call for call in trace.api if "HostAlloc" in call.name]  # of the tuning alone


def steps(begin: float, count: int) -> list[dict[str, Any]]:
    """Steps of three kernels, 10 us each, from this time in us on."""
    return [
        event
        for step in range(count)
        for part, name in enumerate(("loop_a_fusion", "sm90_xmma_gemm", "loop_b_fusion"))
        for at in [begin + 10 * step + 3 * part]
        for event in (
            host(name, at - 1.5, 0.5, correlation_id=str(int(at))),
            kernel(name, at, int(at)),
        )
    ]


def test_a_compilation_between_two_loops_is_none_of_a_step(tmp_path: Path) -> None:
    """In its first half the part that counts begins behind it."""
    between = host("backend_compile_and_load", 850.0, 9_000.0)
    path = made(tmp_path, *steps(100, 70), between, *steps(10_000, 30))
    _, trace = read(path)
    assert (trace.repeats, trace.launches) == (100, 300)
    assert not [call for call in trace.api if call.name == "JAX compiles"]
    assert trace.span == pytest.approx(1e-6 * (700 + 300), rel=0.01)


def test_compilations_in_each_step_are_a_part_of_it(tmp_path: Path) -> None:
    each = [host("backend_compile_and_load", 1_000.0 * n + 500, 400.0) for n in range(40)]
    path = made(tmp_path, *(event for n in range(40) for event in steps(1_000.0 * n + 10, 1)), *each)
    _, trace = read(path)
    assert trace.repeats is not None
    assert sum(call.calls for call in trace.api if call.name == "JAX compiles") == trace.repeats - 1 > 10
    assert trace.span == pytest.approx(1e-3 * trace.repeats, rel=0.1)


def test_the_account_says_that_the_device_waits_for_a_compilation() -> None:
    document = summarize_report(DATA / "shapes.trace.json.gz")
    assert document.account is not None
    first = document.account.rows[0]
    assert (first.kind, first.what) == ("idle", "JAX compiles")
    assert first.seconds > 0.9 * document.account.seconds


# ---------------------------------------------------------------- made


def test_a_launch_is_joined_with_its_call_and_a_region_holds_what_it_launched(tmp_path: Path) -> None:
    path = made(
        tmp_path,
        host("profkit:part", 10.0, 20.0),
        *(host("loop_fusion", 11.0 + n, 0.5, correlation_id=str(n)) for n in range(3)),
        *(kernel("loop_fusion", 100.0 + 10 * n, n) for n in range(3)),
        host("loop_fusion", 50.0, 0.5, correlation_id="7"),
        kernel("loop_fusion", 200.0, 7),
    )
    _, trace = read(path)
    assert (trace.marked, trace.launches) == (True, 3)
    assert trace.kernels[0].kernel.shared == 12


def test_a_region_has_its_whole_name_where_jax_keeps_it_apart(tmp_path: Path) -> None:
    """JAX 0.11 writes `step` for an annotation `profkit:step`, and its whole name beside it."""
    path = made(
        tmp_path,
        host("step", 10.0, 20.0, long_name="profkit:step"),
        *(host("k", 11.0 + n, 0.5, correlation_id=str(n)) for n in range(2)),
        *(kernel("k", 100.0 + 10 * n, n) for n in range(2)),
        kernel("k", 5.0, 9),
    )
    _, trace = read(path)
    assert (trace.marked, trace.launches) == (True, 2)


def test_a_callback_is_a_call_of_the_host_under_its_own_name(tmp_path: Path) -> None:
    path = made(
        tmp_path,
        *(host("pure_callback.1", 10.0 + 100 * n, 90.0) for n in range(3)),
        *(kernel("k", 101.0 + 100 * n, n) for n in range(3)),
    )
    _, trace = read(path)
    called = {call.name: call.calls for call in trace.api}
    assert called["JAX calls the program: pure_callback"] >= 2


def test_what_its_events_cost_the_host_is_known_by_the_executions(tmp_path: Path) -> None:
    _, trace = recorded("jitted")
    assert trace.operations == 7 * 20


def test_two_devices_are_told_apart(tmp_path: Path) -> None:
    second = {**DEVICE, "pid": 2, "args": {"name": "/device:GPU:1"}}
    events = [kernel("loop_fusion", 10.0 * n, n, pid=1 + n % 2) for n in range(8)]
    _, trace = read(made(tmp_path, second, *events))
    assert len(trace.device_busy) == 2


def test_the_programs_own_copies_are_kept_where_jax_compiles_not(tmp_path: Path) -> None:
    copy = kernel("MemcpyH2D", 5.0, 1, None)
    copy["args"] |= {"memcpy_details": "kind_src:pageable kind_dst:device size:4096 dest:0 async:1"}
    fill = kernel("Memset 3", 55.0, 2, None)
    fill["args"] |= {"Memset_details": "kind:device num_bytes:64 async:1"}
    report, trace = read(
        made(
            tmp_path, host("backend_compile_and_load", 50.0, 10.0), copy, fill, kernel("loop_fusion", 70.0, 3)
        )
    )
    assert [(one.kind, one.bytes, one.memory[0].kind) for one in trace.transfers] == [
        ("host to device", 4096, "pageable")
    ]
    assert "1 kernel, copy or fill" in " ".join(spoken_lines(report.warnings))


# ---------------------------------------------------------------- what may be wrong


@pytest.mark.parametrize("share", [0.3, 0.6, 0.9, 0.99])
def test_a_trace_that_is_cut_short_is_read_as_far_as_it_goes(tmp_path: Path, share: float) -> None:
    packed = (DATA / "eager.trace.json.gz").read_bytes()
    path = tmp_path / "cut.json.gz"
    path.write_bytes(packed[: int(share * len(packed))])
    report = recognise_format(path).read(path)
    assert "cut off" in " ".join(spoken_lines(report.warnings))


def test_a_trace_of_no_kernel_says_so(tmp_path: Path) -> None:
    report, trace = read(made(tmp_path, host("PjitFunction(f)", 1.0, 2.0)))
    assert trace.kernels == ()
    assert spoken_lines(report.warnings) == ("the trace contains no kernel of the program",)


HOSTILE: dict[str, object] = {
    "no time": {key: value for key, value in kernel("k", 1.0, 1).items() if key != "ts"},
    "no length": {key: value for key, value in kernel("k", 1.0, 1).items() if key != "dur"},
    "a length below nothing": kernel("k", 1.0, 1, dur=-5.0),
    "a time in no century": kernel("k", 1e300, 1),
    "a time that is text": kernel("k", 1.0, 1, ts="soon"),
    "times that are no number": kernel("k", 1.0, 1, ts=float("nan"), dur=float("inf")),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_kernel_without_a_time_is_left_out_and_counted(tmp_path: Path, what: str) -> None:
    report, trace = read(made(tmp_path, kernel("good", 1.0, 2), HOSTILE[what]))
    assert [one.kernel.name for one in trace.kernels] == ["good"]
    assert "1 event without a time was left out" in " ".join(spoken_lines(report.warnings))


@pytest.mark.parametrize(
    "event",
    [
        None,
        7,
        [],
        {"ph": "X"},
        {"ph": "X", "pid": {"a": 1}, "name": "x"},
        {"ph": "M", "pid": [1], "name": "process_name", "args": {"name": "/device:GPU:0"}},
        {"ph": "M", "pid": 3, "name": "process_name", "args": "none"},
        {
            **kernel("huge", 2.0, 3),
            "args": {"correlation_id": "9" * 5000, "kernel_details": "grid:" + "9" * 9999},
        },
        {**kernel("odd", 2.0, 3), "args": {"correlation_id": [], "kernel_details": {}, "hlo_module": 3}},
        {**kernel("odd", 2.0, 3), "tid": 10**400},
        kernel("x" * 200_000, 2.0, 3),
        host("backend_compile_and_load", 1e15, 1e15),
    ],
)
def test_an_event_of_any_form_is_no_end_of_the_reading(tmp_path: Path, event: object) -> None:
    _, trace = read(made(tmp_path, kernel("good", 1.0, 2), event))
    assert "good" in {one.kernel.name for one in trace.kernels}


@pytest.mark.thorough
def test_an_archive_that_unpacks_without_end_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bomb.json.gz"
    beginning = json.dumps({"traceEvents": [DEVICE]})[:-2]
    with gzip.open(path, "wb") as file:
        file.write(beginning.encode())
        event = b"," + json.dumps(kernel("k", 1.0, 1)).encode()
        for _ in range(300):
            file.write(event * 5000)
    with pytest.raises(UnreadableReport, match="unpacks to more than"):
        recognise_format(path).read(path)


def test_a_trace_of_torch_is_not_taken_for_one_of_jax() -> None:
    path = ROOT / "tests" / "data" / "cuda" / "torch" / "torch.both.json.gz"
    assert recognise_format(path).name == "torch-chrome-trace"
