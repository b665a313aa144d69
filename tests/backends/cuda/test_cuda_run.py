"""The whole story of a run on a GPU, with stand-ins for nsys and ncu that leave what was recorded on an H200."""

from __future__ import annotations

import json
import re
import sqlite3
from pathlib import Path

import pytest

from profkit.core.errors import WorkloadError
from profkit.core.types import PassResult, RunDocument
from profkit.profilers.nsys.probe import probe_nsys
from tests.backends.cuda.conftest import TRACE, Machine
from tests.spoken import spoken, spoken_lines

TRACED_BY_TORCH = """
import json, os, sys
import profkit
profkit.benchmark(lambda: sum(range(1000)), name="mlp")
if "torch" in sys.orig_argv:  # torch's profiler, as far as its file shows it
    kernel = {"ph": "X", "cat": "kernel", "name": "fma32", "pid": 0, "tid": 7, "ts": 10.0, "dur": 5.0,
              "args": {"grid": [16384, 1, 1], "block": [128, 1, 1], "device": 0, "stream": 7}}
    out = sys.orig_argv[sys.orig_argv.index("torch") + 1]
    with open(f"{out}.{os.getpid()}.json", "w") as file:
        json.dump({"schemaVersion": 1, "traceEvents": [dict(kernel, ts=10.0 + 10 * n) for n in range(9)]}, file)
"""


def of(document: RunDocument, name: str) -> list[PassResult]:
    return [result for result in document.passes if result.name == name]


@pytest.mark.thorough
def test_trace_then_counters_then_verdicts_then_what_explains_them(machine: Machine) -> None:
    run = machine.profile()
    assert [result.name for result in run.passes] == [
        "timing", "trace", "stacks", "counters", "explain",
    ]  # fmt: skip
    assert [result.state for result in run.passes] == ["finished"] * 5
    assert run.trace is not None
    assert (run.trace.tool, run.trace.launches) == ("nsys", 39)
    occupancy = [r for r in run.readings if r.metric == "occupancy.achieved" and r.value is not None]
    planned = {k.kernel.scope: k.kernel.name for k in run.plan.passes[3].kernels} if run.plan else {}
    assert {name for scope, name in planned.items() if scope not in {r.scope for r in occupancy}} == {
        "void transpose<(int)0>(const float *, float *, int)"
    }
    assert any(
        "1 planned kernel (2.5 % of the GPU time) did not appear" in note for note in spoken_lines(run.notes)
    )
    assert run.facts["cache control"] == "all"
    assert run.gpus[0].bandwidth is not None
    assert run.gpus[0].driver == "580.159"
    assert any(v.scope.kind == "kernel" for v in run.verdicts)


@pytest.mark.thorough
def test_at_depth_gate_one_process_runs_under_each_tool_and_the_plan_names_the_kernels(
    machine: Machine,
) -> None:
    run = machine.profile(depth="gate")
    assert [result.name for result in run.passes] == ["timing", "trace", "counters"]
    assert len(machine.calls("nsys", "workload.py")) == len(machine.calls("ncu", "workload.py")) == 1
    assert run.plan is not None
    counters = next(planned for planned in run.plan.passes if planned.name == "counters")
    names = [re.split(r"[<(]", k.kernel.name.removeprefix("void "))[0] for k in counters.kernels]
    assert names == [
        "histogram",
        "divergent",
        "fma16",
        "fma32",
        "fma64",
        "strided_read",
        "transpose",
        "l2_loop",
    ]
    assert 0.95 <= sum(k.share for k in counters.kernels) < 1


# ---------------------------------------------------------------- what goes wrong


@pytest.mark.thorough
def test_an_nsys_that_leaves_no_report_is_followed_by_torchs_profiler(machine: Machine) -> None:
    assert probe_nsys(trial=False).works  # then it fails
    machine.tools(nsys={"report": False, "text": "Generated:\n    No reports were generated."})
    run = machine.profile(TRACED_BY_TORCH, depth="gate")
    assert [result.tool for result in of(run, "trace")] == ["nsys", "torch_profiler"]
    assert [result.state for result in of(run, "trace")] == ["failed", "finished"]
    assert spoken(of(run, "trace")[0].reason)
    assert of(run, "counters")[0].state == "finished"


def test_a_trace_that_lost_its_kernels_leaves_nothing_to_count(machine: Machine, tmp_path: Path) -> None:
    empty = tmp_path / "empty.sqlite"
    with sqlite3.connect(TRACE) as source, sqlite3.connect(empty) as copy:
        source.backup(copy)
        copy.execute("DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL")
    machine.tools(nsys={"sqlite": str(empty)})
    counters = of(machine.profile(depth="gate"), "counters")[0]
    assert counters.state == "skipped"
    assert "the trace lacks them" in spoken(counters.reason)  # the calls that launched them are in it


def test_a_workload_that_fails_by_itself_is_its_own_fault_and_nothing_is_profiled(machine: Machine) -> None:
    with pytest.raises(WorkloadError, match="exited with 5"):
        machine.profile("raise SystemExit(5)")
    assert machine.calls("ncu", "workload.py") == []


# ---------------------------------------------------------------- the second try


@pytest.mark.thorough
def test_a_set_that_is_too_much_for_this_machine_is_followed_by_the_smallest(machine: Machine) -> None:
    machine.tools(ncu={"fails": "smsp__sass", "text": "==ERROR== Failed to find metric smsp__sass_no.sum"})
    run = machine.profile(passes=("timing", "trace", "counters"))
    assert [result.state for result in of(run, "counters")] == ["failed", "finished"]
    assert "smsp__sass_no" in str(spoken(of(run, "counters")[0].reason))
    assert of(run, "counters")[1].artifacts == ("artifacts/counters-gate.ncu-rep",)
    assert any(r.metric == "occupancy.achieved" and r.value is not None for r in run.readings)


@pytest.mark.thorough
def test_without_nsys_torchs_profiler_tells_which_kernels_are_counted(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROFKIT_NSYS", "/nowhere/nsys")
    run = machine.profile(TRACED_BY_TORCH, depth="gate")
    trace = of(run, "trace")[0]
    assert (trace.tool, trace.state) == ("torch_profiler", "finished")
    assert run.trace is not None
    assert run.trace.launches == 9
    assert run.plan is not None
    assert [k.kernel.name for k in run.plan.passes[-1].kernels] == ["fma32"]
    assert of(run, "counters")[0].state == "finished"


OUT_OF_MEMORY = """
import json, os, pathlib
rows = [["/w/net.py", 12, "forward", 60_000_000_000, 200, 1e9, 62e9]]
if "PROFKIT_OPERATIONS" in os.environ:  # as torch's allocator tells the companion of the process
    for folder in pathlib.Path(__file__).parent.glob("**/artifacts"):
        (folder / "stacks.jsonl.operations").write_text(json.dumps({"full": rows}))
sum(range(10_000_000))
raise RuntimeError("CUDA out of memory. Tried to allocate 1.00 GiB")
"""


@pytest.mark.thorough
@pytest.mark.torch
def test_a_workload_that_is_out_of_memory_runs_once_more_and_the_lines_that_hold_it_are_said(
    machine: Machine,
) -> None:
    with pytest.raises(WorkloadError) as failed:
        machine.profile(OUT_OF_MEMORY)
    assert "55.9 GiB in 200 blocks by net.py:12" in failed.value.message
    assert failed.value.run is not None
    document = json.loads((failed.value.run / "run.json").read_text())
    assert (document["state"], [one["rule"] for one in document["insights"]]) == ("failed", ["out-of-memory"])
