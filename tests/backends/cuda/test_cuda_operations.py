"""What launched each kernel is recorded beside the sampled stacks, so that the timeline is not slowed by it."""

from __future__ import annotations

import shutil
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from profkit.analysis.timeline.joined_recordings import with_operations
from profkit.backends import PassFindings
from profkit.backends.cuda.run import EXPORT, SWITCHED_OFF, CudaRun, add_launchers
from profkit.core.errors import WorkloadError
from profkit.core.types import Fact
from profkit.profiling.summarize import summarize_report
from tests.backends.cuda.conftest import Machine
from tests.conftest import ROOT
from tests.spoken import spoken_lines

RECORDED = ROOT / "tests" / "data" / "cuda" / "nsys" / "operations.sqlite"


@pytest.mark.thorough
def test_nsys_traces_once_for_times_and_once_beside_the_sampled_stacks(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CudaRun, "_has", lambda *_: True)
    run = machine.profile(passes=("timing", "trace", "stacks"))
    reports = [
        next(word for word in call if word.startswith("--output="))
        for call in machine.calls("nsys", "profile")
    ]
    assert [report.rpartition("/")[2] for report in reports] == ["trace", "operations"]
    assert run.plan is not None
    timing, trace, stacks = run.plan.passes
    assert [step.env.get("PROFKIT_OPERATIONS") for step in (*trace.steps, *stacks.steps)] == [None, "1"]
    (result,) = [result for result in run.passes if result.name == "stacks"]
    assert "artifacts/operations.sqlite" in result.artifacts
    assert timing.name == "timing"


@pytest.mark.thorough
def test_without_a_working_nsys_stacks_are_sampled_alone(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CudaRun, "_has", lambda *_: True)
    machine.tools(nsys={"report": False, "text": "No reports were generated."})
    run = machine.profile(passes=("timing", "trace", "stacks"))
    (result,) = [result for result in run.passes if result.name == "stacks"]
    assert (result.state, result.tool) == ("finished", None)
    assert len(machine.calls("nsys", "operations")) == 0


def test_a_trace_takes_over_what_launched_its_kernels_and_keeps_its_own_times() -> None:
    recorded = summarize_report(RECORDED).trace
    assert recorded is not None
    bare = {"operation": None, "operation_launches": 0, "operations": 0, "backward_of": None}
    times = tuple(replace(time, launches=29 * time.launches, **bare) for time in recorded.kernels)
    plain = replace(recorded, kernels=times)
    joined = with_operations(plain, recorded)
    assert joined is not None
    first, second = joined.kernels[:2]
    assert (first.operation, first.operation_launches, first.launches) == (
        "aten::mm [4096,768] x [768,50257]",
        29,
        29,
    )
    assert second.backward_of == "aten::mm [4096,768] x [768,50257]"
    assert [time.total for time in joined.kernels] == [time.total for time in recorded.kernels]
    assert with_operations(plain, None) is plain


def test_configurations_of_a_growing_step_that_were_not_recorded_are_told_by_their_kernels_names() -> None:
    recorded = summarize_report(RECORDED).trace
    assert recorded is not None
    bare = {
        "operation": None,
        "operation_launches": 0,
        "operations": 0,
        "backward_of": None,
        "lines": (),
        "file": None,
    }
    grown = tuple(
        replace(time, kernel=replace(time.kernel, grid=(7777, 1, 1)), total=9 * time.total, **bare)
        for time in recorded.kernels
    )
    joined = with_operations(replace(recorded, kernels=grown), recorded)
    assert joined is not None
    first = recorded.kernels[0]
    assert (joined.kernels[0].operation, joined.kernels[0].flops) == ("aten::mm", None)  # not its shapes
    assert joined.kernels[0].line == first.line
    few = replace(
        recorded, kernels=(*recorded.kernels, replace(grown[0], total=1e-9))
    )  # of a step that repeats
    joined = with_operations(few, recorded)
    assert joined is not None
    assert joined.kernels[-1].operation is None


def test_why_operations_were_written_for_a_part_of_the_run_is_in_the_notes(tmp_path: Path) -> None:
    (tmp_path / "artifacts").mkdir()
    shutil.copy(RECORDED, tmp_path / EXPORT)
    (tmp_path / SWITCHED_OFF).write_text('{"reason": "torch-compiles"}\n{"reason": null}\n{"rea')
    found = add_launchers(PassFindings(notes=(Fact.message("first"),)), tmp_path)
    assert spoken_lines(found.notes) == (
        "first",
        "operations and lines of the kernels are known for a part of the run only: torch.compile (or "
        "torch.export) is used: "
        "recording calls would keep it from compiling",
    )
    assert found.launched is not None
    assert found.launched.kernels[0].operation == "aten::mm [4096,768] x [768,50257]"


# ------------------------------------------------------------ test_triton_tuning

pytestmark = pytest.mark.skipif(find_spec("triton") is None, reason="triton is not installed")

# The second configuration is the fastest, in the first process that asks; `key` is what the kernel is tuned for.
TUNED = """
import os
import profkit
import triton, triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.runtime.driver import driver

class Hopper:
    def get_current_target(self):
        return GPUTarget("cuda", 90, 32)
    def get_benchmarker(self):
        times = iter([3.0, 1.0, 2.0])
        def run(call, quantiles):
            with open(os.environ["TRITON_CACHE_DIR"] + ".tried", "a") as file:
                file.write("x")
            return [next(times)] * 3
        return run

driver.set_active(Hopper())

@triton.autotune([triton.Config({{"B": block}}) for block in (16, 32, 64)], key=["n"])
@triton.jit
def doubled(x, n, B: tl.constexpr):
    pass

doubled.fn.run = lambda *arguments, **chosen: sum(range(2000))
profkit.benchmark(lambda: doubled[(1,)](None, {key}), name="gated_mlp")
"""


@pytest.fixture(autouse=True)
def tried(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A cache of Triton's that is empty, and an environment that says nothing of it."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "triton"))
    monkeypatch.delenv("TRITON_CACHE_AUTOTUNING", raising=False)
    return tmp_path / "triton.tried"


@pytest.mark.thorough
def test_the_first_pass_tunes_and_the_others_read_what_it_chose(machine: Machine, tried: Path) -> None:
    run = machine.profile(TUNED.format(key=8), depth="gate")
    assert run.state == "complete"
    assert len(tried.read_text()) == 3


@pytest.mark.thorough
def test_where_triton_cannot_keep_its_choice_the_error_has_the_line_that_asks_for_none(
    machine: Machine, tried: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workload = TUNED.format(key="tl.float16")
    with pytest.raises(WorkloadError) as caught:
        machine.profile(workload, depth="gate")
    name, _, value = (caught.value.fix or "").removeprefix("export ").partition("=")
    monkeypatch.setenv(name, value)
    assert machine.profile(workload, depth="gate").state == "complete"
    assert len(tried.read_text()) > 3
