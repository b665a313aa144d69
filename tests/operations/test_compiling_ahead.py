"""What is compiled ahead is found again: by another process, in both of Inductor's caches, and nothing is called."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

from profkit.model import GridPoint
from profkit.operations import compile_ahead
from profkit.operations.registry import OPERATIONS
from profkit.sweep.bench import make_problem

ROOT = Path(__file__).resolve().parents[2]
POINTS = [("LayerNorm", "backward")]
AHEAD = """
import sys, torch
from profkit.model import GridPoint
from profkit.operations import compile_ahead, compiled
compiled.load()
for word in sys.argv[1:]:
    operation, direction = word.split(":")
    compile_ahead.compile_ahead(GridPoint(operation, 2, 4, 8, "float32", direction), torch.device("cpu"))
"""
CALLED = """
import sys, torch
from profkit.model import GridPoint
from profkit.operations.registry import build
from profkit.sweep.bench import make_problem
for word in sys.argv[1:]:
    operation, direction = word.split(":")
    point = GridPoint(operation, 2, 4, 8, "float32", direction)
    problem = make_problem(point, torch.device("cpu"))
    call = build("torch.compile", problem)
    call()
    call()  # the backward half is called again and again
    from torch._dynamo.utils import counters
    kept = (counters["inductor"]["fxgraph_cache_hit"], counters["inductor"]["fxgraph_cache_miss"])
    print(word, *kept, counters["aot_autograd"]["autograd_cache_hit"], counters["aot_autograd"]["autograd_cache_miss"])
    counters.clear()
"""


@pytest.mark.skipif(shutil.which("g++") is None, reason="Inductor needs a C++ compiler")
def test_a_process_finds_in_the_caches_what_another_one_compiled_ahead(tmp_path: Path) -> None:
    words = [f"{operation}:{direction}" for operation, direction in POINTS]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "TORCHINDUCTOR_CACHE_DIR": str(tmp_path)}
    env["TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS"] = "0"  # it pays over many kernels
    for program, said in ((AHEAD, ""), (CALLED, _all_hit())):
        done = subprocess.run(
            [sys.executable, "-c", program, *words], env=env, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout == said


@pytest.mark.parametrize("operation", OPERATIONS)
def test_what_is_compiled_ahead_has_the_shapes_of_what_is_timed(
    operation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    given: list[tuple[object, ...]] = []

    def compiled(*_: object, **__: object) -> object:
        return lambda *inputs: given.extend((t.shape, t.stride(), t.dtype, t.device) for t in inputs)

    monkeypatch.setattr(compile_ahead, "compiled", compiled)
    point = GridPoint(operation, 2, 4, 8, "float16", "forward")
    compile_ahead.compile_ahead(point, torch.device("cpu"))
    wanted = make_problem(point, torch.device("cpu")).inputs
    assert given == [(t.shape, t.stride(), t.dtype, t.device) for t in wanted]


def _all_hit() -> str:
    halves = {"forward": 1, "backward": 2}
    return "".join(f"{operation}:{direction} {halves[direction]} 0 1 0\n" for operation, direction in POINTS)
