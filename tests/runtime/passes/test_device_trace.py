"""torch's profiler over a whole program whose regions are marked: by a torch that stands in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from profkit.runtime.passes.command import HOST_PROGRAM
from tests.conftest import ROOT
from tests.workload_process import Done, run_workload

STAND_IN = ROOT / "tests" / "stand_ins" / "torch"
LOOP = """
import profkit, torch
torch.kernel("before")
for number in range(3):
    with profkit.region("a <b>"): torch.kernel(f"inside {number}")
    torch.kernel("between")
"""


def run(folder: Path, code: str, **env: str) -> tuple[Done, list[dict[str, Any]]]:
    """The program under the host, and the events of its traces."""
    host = (str(HOST_PROGRAM), "torch", str(folder / "trace"), "--")
    done = run_workload(folder, code, {"pass_name": "trace"}, host=host, path=STAND_IN, **env)
    traces = [json.loads(path.read_text()) for path in sorted(folder.glob("trace.*"))]
    assert not any("host_name" in trace for trace in traces)
    return done, [event for trace in traces for event in trace["traceEvents"]]


def of(events: list[dict[str, Any]], category: str) -> list[dict[str, Any]]:
    return [event for event in events if event["cat"] == category]


def test_all_kernels_are_traced_and_each_entry_is_an_annotation_that_holds_its_own(tmp_path: Path) -> None:
    done, events = run(tmp_path, LOOP)
    marks, kernels = of(events, "user_annotation"), of(events, "kernel")
    assert [(mark["name"], mark["args"]) for mark in marks] == [("a <b>", {"domain": "profkit"})] * 3
    assert len(kernels) == 7
    for number, mark in enumerate(marks):
        inside = [k["name"] for k in kernels if mark["ts"] <= k["ts"] <= mark["ts"] + mark["dur"]]
        assert inside == [f"inside {number}"]
    assert (done.code, done.err) == (0, "")


@pytest.mark.parametrize(
    ("broken", "note"),
    [
        ("start", "RuntimeError: Profiler is already enabled on this thread"),
        ("export", "OSError: [Errno 28] No space left on device"),
    ],
)
def test_a_profiler_that_fails_is_a_line_and_not_the_workloads_end(
    tmp_path: Path, broken: str, note: str
) -> None:
    done, events = run(tmp_path, LOOP + "print('done')", STAND_IN_TORCH=broken)
    assert (done.code, done.out, events) == (0, "done\n", [])
    assert f"profkit: torch's profiler cannot be used: {note}" in done.err


def test_a_forked_child_is_not_traced(tmp_path: Path) -> None:
    code = """
    import os, profkit, torch
    with profkit.region("a"): torch.kernel("parent")
    if os.fork() == 0:
        with profkit.region("b"): torch.kernel("child")
        raise SystemExit
    os.wait()
    """
    assert [event["name"] for event in of(run(tmp_path, code)[1], "kernel")] == ["parent"]


@pytest.mark.parametrize("code", ["print(1)", "import torch; print(1)"])
def test_a_program_without_cuda_is_left_alone_and_it_is_said(tmp_path: Path, code: str) -> None:
    done, events = run(tmp_path, code)
    assert (done.code, done.out, events) == (0, "1\n", [])
    assert (
        done.err == "profkit: the program did not use CUDA through torch, so torch's profiler saw nothing\n"
    )
