"""Which backend a Mac gets, and what is planned there."""

from __future__ import annotations

import platform
import sys
from pathlib import Path

import pytest

from profkit.analysis.summaries.metal import merge_metal_traces
from profkit.backends.mps import mps_evidence
from profkit.core.errors import MachineError
from profkit.core.types import MetalAbsent, MetalCounter, MetalState, MetalTrace
from profkit.profiling.profile import ProfileOptions, make_plan
from profkit.profiling.workload import describe_workload
from tests.xctrace_stand_in import instruments


def test_mps_elsewhere_is_a_fault_of_the_machine_with_a_way_out() -> None:
    with pytest.raises(MachineError, match="Metal exists only on macOS") as caught:
        make_plan(ProfileOptions((sys.executable, "-c", "pass"), backend="mps"))
    assert caught.value.fix is not None
    assert "profkit summarize" in caught.value.fix


@pytest.mark.parametrize(
    ("words", "uses"),
    [
        (("-c", "import torch; torch.ones(1, device='mps')"), True),
        (("-c", "import mlx.core"), True),
        (("-c", "import torch"), False),
        (("x.py", "--backend", "mps"), True),
        (("-c", "device = 'mps'", "--device=cpu"), False),
    ],
)
@pytest.mark.usefixtures("mac")
def test_auto_takes_the_gpu_of_a_mac_where_the_workload_names_it(
    words: tuple[str, ...], uses: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("x.py").write_text("pass")
    for name, value in instruments(tmp_path).env.items():
        monkeypatch.setenv(name, value)
    command = (sys.executable, *words)
    assert (mps_evidence(describe_workload(command, None)) is not None) == uses
    plan = make_plan(ProfileOptions(command, backend="auto", passes=("timing", "trace")))
    assert plan.backend == ("mps" if uses else "cpu")


@pytest.mark.usefixtures("mac")
def test_a_mac_without_xcode_still_times_and_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROFKIT_XCTRACE", "/absent/xctrace")
    plan = make_plan(ProfileOptions((sys.executable, "-c", "pass"), backend="mps"))
    by_name = {planned.name: planned for planned in plan.passes}
    assert list(by_name) == ["timing", "stacks", "tracemalloc", "trace", "counters"]
    assert by_name["timing"].skipped is None
    for name in ("trace", "counters"):
        assert "no program that can be started" in str(by_name[name].skipped)
        assert by_name[name].fix


@pytest.mark.usefixtures("mac")
def test_the_gate_is_timing_and_trace_and_explain_says_why_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in instruments(tmp_path).env.items():
        monkeypatch.setenv(name, value)
    command = (sys.executable, "-c", "pass")
    gate = make_plan(ProfileOptions(command, backend="mps", depth="gate"))
    assert [planned.name for planned in gate.passes] == ["timing", "trace"]
    (explain,) = make_plan(ProfileOptions(command, backend="mps", passes=("explain",))).passes
    assert "no counters of single launches" in str(explain.skipped)
    assert platform.system() == "Darwin"


def test_one_metal_trace_is_made_of_those_of_two_passes() -> None:
    occupancy = MetalCounter("Kernel Occupancy", "%", 60.0, 0.0, 100.0, 10)
    trace = MetalTrace(
        span=1.0,
        process_busy=0.5,
        absent=(
            MetalAbsent("metal-gpu-counter-intervals", "no set"),
            MetalAbsent("metal-current-allocated-size", "x"),
        ),
    )
    counters = MetalTrace(span=9.0, counters=(occupancy,), thermal=(MetalState("Nominal", 9.0),))
    both = merge_metal_traces(trace, counters)
    assert both is not None
    assert (both.span, both.process_busy, both.counters) == (1.0, 0.5, (occupancy,))
    assert [absent.what for absent in both.absent] == ["metal-current-allocated-size"]
    assert merge_metal_traces(None, counters) is counters
    assert merge_metal_traces(trace, None) is trace
