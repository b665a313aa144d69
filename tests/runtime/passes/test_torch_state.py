"""What torch is asked at the end of a program: lines whose tensors stay, and what its compiler logged."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from profkit.backends import PassFindings
from profkit.backends.cuda.run import SWITCHED_OFF, add_launchers
from profkit.runtime.passes.host import torch_state
from profkit.runtime.passes.host.compilers import CompilerLog
from profkit.runtime.passes.host.stacks import tree
from profkit.runtime.passes.host.torch_state import DeviceMemory

MIB = 1 << 20


def device(held: list[int], *, in_one: bool = False) -> Any:
    """A torch whose line 7 holds so many MiB at each look, in blocks that stay or `in_one`, and line 9 always one."""

    def block(line: int, size: int) -> dict[str, Any]:
        library = {"filename": "/lib/site-packages/torch/nn.py", "line": 1, "name": "forward"}
        own = {"filename": "/w/train.py", "line": line, "name": "step"}
        return {"state": "active_allocated", "size": size, "requested_size": size, "frames": [library, own]}

    looks = iter(held)
    now = {"held": 0}

    def blocks() -> list[dict[str, Any]]:
        grows = [now["held"]] if in_one else [1] * now["held"]
        return [block(9, MIB), *(block(7, size * MIB) for size in grows)]

    def allocated() -> int:
        now["held"] = next(looks)
        return now["held"] * MIB

    memory = SimpleNamespace(
        _record_memory_history=lambda *_, **__: None,
        _snapshot=lambda: {"segments": [{"address": 1 << 40, "blocks": blocks()}]},
    )
    cuda = SimpleNamespace(
        memory=memory, memory_allocated=allocated, is_current_stream_capturing=lambda: False
    )
    return SimpleNamespace(cuda=cuda)


def looked_at(
    held: list[int], monkeypatch: pytest.MonkeyPatch, *, in_one: bool = False
) -> list[list[object]]:
    clock = iter(range(0, 10_000, 5))
    monkeypatch.setattr(torch_state, "perf_counter", lambda: float(next(clock)))
    memory = DeviceMemory(lambda file: "site-packages" in file)
    memory.begin(device(held, in_one=in_one))
    for _ in held:
        memory.look_now_and_then()
    return memory.end()


def test_a_line_that_holds_more_at_each_look_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    ((file, line, function, looks, _, first, _, last, _),) = looked_at([10, 20, 30, 40, 50, 60], monkeypatch)
    assert (file, line, function, looks) == ("/w/train.py", 7, "step", 4)
    assert (first, last) == (30 * MIB, 60 * MIB)


def test_what_is_held_is_noted_at_times_that_grow_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    now = {"at": 0.0}
    monkeypatch.setattr(torch_state, "perf_counter", lambda: now["at"])
    torch = device([1] * 100_000)
    torch.cuda.memory_reserved = lambda: 4 * MIB
    memory = DeviceMemory(lambda file: "site-packages" in file)
    memory.begin(torch)
    for number in range(60_000):
        now["at"] = number / 1000
        memory.look_now_and_then()
    assert torch_state.MAX_HELD / 2 <= len(memory.course) <= torch_state.MAX_HELD + 1
    assert memory.course[0] == [0.0, MIB, 4 * MIB]
    assert memory.course[-1][0] == pytest.approx(60.0, abs=0.5)


def test_memory_that_comes_and_goes_is_no_growth(monkeypatch: pytest.MonkeyPatch) -> None:
    assert looked_at([10, 20, 30, 10, 20, 30], monkeypatch) == []


def test_a_tensor_that_is_made_anew_and_larger_each_time_does_not_stay(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert looked_at([10, 20, 30, 40, 50, 60], monkeypatch, in_one=True) == []


def test_what_the_compiler_logs_is_read() -> None:
    log = CompilerLog()
    for text in (
        "Graph break in user code at /w/f.py:7\nGraph Break Reason: Failed to handle graph break gracefully. "
        "Skipping\n\nUnsupported Tensor.item() call\n  Explanation: ...\n",
        "Graph break in user code at /w/f.py:9\nGraph Break Reason: Failed to trace builtin operator\n",
        "Recompiling function f in /w/f.py:3\n    triggered by the following:\n    - 0/0: size of x",
        "Recompiling function f in /w/f.py:3\n    triggered by the following:\n    - 0/1: size of y",
        "something else",
    ):
        log.emit(logging.LogRecord("torch", logging.DEBUG, "", 0, text, (), None))
    assert log.breaks() == [
        ["/w/f.py", 7, "Unsupported Tensor.item() call", True, 1],
        ["/w/f.py", 9, "Failed to trace builtin operator", False, 1],
    ]
    assert [row[:5] for row in log.compiled_again()] == [["/w/f.py", 3, "f", "size of x", 2]]


def test_what_the_processes_said_becomes_profiles(tmp_path: Path) -> None:
    (tmp_path / "artifacts").mkdir()
    said = {
        "memory": [["a.py", 7, "step", 4, 1.0, 10, 2.0, 50, 3]],
        "breaks": [["a.py", 9, "print", False, 1]],
        "recompiles": [["a.py", 3, "f", "size of x", 5, 2.0]],
    }
    (tmp_path / SWITCHED_OFF).write_text(
        json.dumps(said)
        + '\n{"memory": [[1]]}\n{"full": [["a", 1, "f", 1'
        + "0" * 400
        + ", 1, 1, 1]]}\nhalf a li"
    )
    found = {profile.kind: profile for profile in add_launchers(PassFindings(), tmp_path).profiles}
    assert set(found) <= {"growing-lines", "graph-breaks", "recompilations"}
    assert found["graph-breaks"].hotspots[0].function == "print"
    assert (found["recompilations"].hotspots[0].calls, found["recompilations"].hotspots[0].total) == (5, 10.0)


def test_what_the_companion_does_for_itself_is_no_place_of_the_program() -> None:
    folder = Path(torch_state.__file__).parent
    for file, name, ours in (
        ("operation_lines.py", "_stop", True),
        ("operation_lines.py", "call", False),  # what it calls is the program's
        ("train.py", "_stop", False),
    ):
        text = f"def {name}():\n    import sys\n    return sys._getframe()\n"
        space: dict[str, Any] = {}
        exec(compile(text, str(folder / file) if ours or name == "call" else f"/w/{file}", "exec"), space)
        frame = space[name]()
        assert tree.Function(frame.f_code, 2).companion is ours


def test_what_held_the_memory_is_known_when_there_is_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    torch, observers = device([10], in_one=True), list[Any]()
    torch._C = SimpleNamespace(_cuda_attach_out_of_memory_observer=observers.append)
    torch.cuda.memory_reserved = lambda: 12 * MIB
    memory = DeviceMemory(lambda file: "site-packages" in file)
    memory.begin(torch)
    torch.cuda.memory_allocated()  # 10 MiB from here on
    observers[0](0, 5 * MIB, 80 * MIB, 1)
    assert memory.when_full == [
        ["/w/train.py", 7, "step", 10 * MIB, 1, 5 * MIB, 12 * MIB],
        ["/w/train.py", 9, "step", MIB, 1, 5 * MIB, 12 * MIB],
    ]
