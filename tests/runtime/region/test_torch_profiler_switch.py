"""torch's profiler as a switch, and over a whole program: by a torch that stands in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from profkit.runtime.passes.command import HOST_PROGRAM
from tests.conftest import ROOT
from tests.workload_process import Done, run_workload

STAND_IN = ROOT / "tests" / "stand_ins" / "torch"


class Seen:
    """How the workload ended, what it recorded, and the traces it left."""

    def __init__(self, folder: Path, done: Done) -> None:
        self.out, self.err, self.code, self.notes = done.out, done.err, done.code, done.notes
        self.traces: list[dict[str, Any]] = [
            json.loads(path.read_text()) for path in sorted(folder.glob("trace.*.json"))
        ]
        self.left = sorted(path.name.split(".")[0] for path in folder.iterdir() if path.name != "work.py")

    def events(self, category: str) -> list[dict[str, Any]]:
        return [
            event for trace in self.traces for event in trace["traceEvents"] if event.get("cat") == category
        ]


def run(folder: Path, code: str, *, hosted: bool = False, **env: str) -> Seen:
    out = str(folder / "trace")
    directive = {"pass_name": "trace", "switch": {"kind": "torch-profiler", "output": out}}
    host = (str(HOST_PROGRAM), "torch", out, "--") if hosted else ()
    asked = None if hosted else directive
    return Seen(folder, run_workload(folder, code, asked, host=host, path=STAND_IN, **env))


LOOP = """
import profkit, torch
torch.kernel("before")
for number in range(3):
    with profkit.region("a <b>"): torch.kernel(f"inside {number}")
    torch.kernel("between")
"""


def names(events: list[dict[str, Any]]) -> list[str]:
    return [event["name"] for event in events]


# ---------------------------------------------------------------- the switch


def test_each_entry_is_an_annotation_that_holds_its_kernels(tmp_path: Path) -> None:
    seen = run(tmp_path, LOOP)
    marks = seen.events("user_annotation")
    assert [(mark["name"], mark["args"]) for mark in marks] == [("a <b>", {"domain": "profkit"})] * 3
    for mark, kernel in zip(marks, seen.events("kernel"), strict=True):
        assert mark["ts"] <= kernel["ts"] <= mark["ts"] + mark["dur"]


@pytest.mark.parametrize(
    ("broken", "note"),
    [
        (
            "start",
            "torch's profiler cannot be used: RuntimeError: Profiler is already enabled on this thread",
        ),
        ("export", "torch's profiler cannot be used: OSError: [Errno 28] No space left on device"),
    ],
)
def test_a_profiler_that_fails_is_a_note(tmp_path: Path, broken: str, note: str) -> None:
    seen = run(tmp_path, LOOP + "print('done')", STAND_IN_TORCH=broken)
    assert (seen.code, seen.out, seen.traces, seen.notes) == (0, "done\n", [], (note,))
    assert seen.left == ["r"]


def test_torch_is_never_imported_for_the_workload(tmp_path: Path) -> None:
    seen = run(tmp_path, "import sys, profkit\nwith profkit.region('a'): print('torch' in sys.modules)")
    assert seen.out == "False\n"
    assert seen.traces == []
    assert "before torch was imported" in seen.notes[0]


def test_a_forked_child_is_not_traced(tmp_path: Path) -> None:
    code = """
    import os, profkit, torch
    with profkit.region("a"): torch.kernel("parent")
    if os.fork() == 0:
        with profkit.region("b"): torch.kernel("child")
        raise SystemExit
    os.wait()
    """
    assert names(run(tmp_path, code).events("kernel")) == ["parent"]


# ---------------------------------------------------------------- a whole program


def test_under_the_host_a_marked_program_is_traced_in_its_regions_only(tmp_path: Path) -> None:
    seen = run(tmp_path, LOOP, hosted=True)
    assert names(seen.events("kernel")) == ["inside 0", "inside 1", "inside 2"]
    assert seen.err == ""


@pytest.mark.parametrize("code", ["print(1)", "import torch; print(1)"])
def test_a_program_without_cuda_is_left_alone_and_it_is_said(tmp_path: Path, code: str) -> None:
    seen = run(tmp_path, code, hosted=True)
    assert (seen.code, seen.out, seen.traces) == (0, "1\n", [])
    assert (
        seen.err == "profkit: the program did not use CUDA through torch, so torch's profiler saw nothing\n"
    )
