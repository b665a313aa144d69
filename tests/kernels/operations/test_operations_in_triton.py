"""The Triton kernels without a GPU: run by Triton's interpreter, and compiled for a chip that need not be here."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("triton")

ROOT = Path(__file__).resolve().parents[3]
ENV = {**os.environ, "PYTHONPATH": str(ROOT)}

_START = """
import torch
from profkit.core.types import GridPoint
from profkit.kernels.operations.float64_check import check_result as compare, reference_result as reference
from profkit.kernels.operations.definitions import Problem
from profkit.kernels.operations.registry import OPERATIONS, Unavailable, build_call as build
from profkit.kernels.operations import triton as calls
from profkit.kernels.sweep.bench import make_problem
def problem(operation, shape, dtype="float32", direction="forward"):
    return make_problem(GridPoint(operation, *shape, dtype, direction), torch.device("cpu"))
def share(found):
    call = build("Triton", found)
    call()  # what the first call left behind must not matter to the second
    return compare(found, call(), reference(found))
BOTH = ("forward", "backward")
"""


# Loads torch and Triton once, and forks for each piece of code.
_FORKS = """
import json, os, sys, traceback
torch.set_num_threads(1)
for line in sys.stdin:
    order = json.loads(line)
    child = os.fork()
    if child == 0:
        for stream, name in ((1, "out"), (2, "err")):
            os.dup2(os.open(order[name], os.O_WRONLY | os.O_CREAT), stream)
        try:
            exec(order["code"], globals())
        except BaseException:
            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)
    os.waitpid(child, 0)
    print("done", flush=True)
"""
Interpret = Callable[[str], list[str]]


@pytest.fixture(scope="module")
def interpreted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Interpret]:
    """Gives the lines that a piece of code prints, in a process where Triton's kernels are interpreted."""
    with subprocess.Popen(
        [sys.executable, "-c", _START + _FORKS],
        env={**ENV, "TRITON_INTERPRET": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def run(code: str) -> list[str]:
            folder = tmp_path_factory.mktemp("interpreted")
            out, err = folder / "out", folder / "err"
            process.stdin.write(json.dumps({"code": code, "out": str(out), "err": str(err)}) + "\n")
            process.stdin.flush()
            assert process.stdout.readline() == "done\n"
            complaints = [line for line in err.read_text().splitlines() if "overflow encountered" not in line]
            # numpy's, of a division by 0 or a NaN
            assert not re.search("RuntimeWarning|Traceback", "\n".join(complaints)), complaints
            return out.read_text().splitlines()

        yield run
        process.stdin.close()


@pytest.mark.thorough
def test_they_are_right_at_odd_and_even_shapes(interpreted: Interpret) -> None:
    found = interpreted("""
for operation in OPERATIONS:
    for direction in BOTH:
        for dtype in ("float32", "float16"):
            for shape in ((3, 7, 5), *([(2, 16, 64), (1, 1, 1), (1, 5000, 2)] * (dtype == "float32"))):
                print(share(problem(operation, shape, dtype, direction)))
""")
    assert len(found) == 5 * 2 * (2 + 3)
    assert max(map(float, found)) < 0.7


def test_rows_that_one_warp_holds_and_that_programs_walk_over(interpreted: Interpret) -> None:
    found = interpreted("""
for operation in ("LayerNorm", "CrossEntropy"):
    for direction in BOTH:
        for shape, dtype in (((1, 21, 200), "float32"), ((1, 3, 1500), "float16")):
            print(share(problem(operation, shape, dtype, direction)))
""")
    assert len(found) == 8
    assert max(map(float, found)) < 0.7


def test_what_does_not_fit_them_is_refused_and_what_is_not_aligned_is_not(interpreted: Interpret) -> None:
    found = interpreted("""
point = problem("GELU", (2, 3, 16))
(x,) = point.inputs
for given in (x.transpose(1, 2), x[:0], x.double()):
    try:
        build("Triton", Problem(point.point, point.operation, (given,)))
    except Unavailable as refused:
        print(refused)
calls.MAX_ROWS = calls.WIDEST_BACK = 5
for wanted in (("CrossEntropy", (2, 3, 16)), ("LayerNorm", (1, 3, 16), "float32", "backward")):
    try:
        build("Triton", problem(*wanted))
    except Unavailable as refused:
        print(refused)
shifted = torch.empty(x.numel() + 1)[1:].view(x.shape).copy_(x)
print(share(Problem(point.point, point.operation, (shifted,))) < 0.7)
""")
    assert ["contiguous" in found[0], "no elements" in found[1], "float64" in found[2]] == [True] * 3
    assert found[3:] == [
        "the Triton kernels take at most 5 rows",
        "the Triton kernel takes rows of at most 5 elements",
        "True",
    ]


def test_a_label_that_is_no_class_gives_no_loss_and_large_logits_lose_nothing(interpreted: Interpret) -> None:
    found = interpreted("""
point = problem("CrossEntropy", (1, 4, 8))
x, labels = point.inputs
print(share(Problem(point.point, point.operation, (x + 3000.0, labels))) < 0.7)
labels = labels.clone()
labels[0, 2] = 1 << 40
print(bool(build("Triton", Problem(point.point, point.operation, (x, labels)))().isnan()))
""")
    assert found == ["True", "True"]


_COMPILED = """
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from profkit.kernels.operations.triton import flat, rows
def compiled(kernel, warps, sizes, /, **constants):
    kinds = {"N": sizes, "M": sizes, "SCALE": "fp32", "target": "*i64" if "entropy" in kernel.__name__ else "*bf16",
             "done": "*i32", "UNITS": "i32", "H": "i32", "C": "i32", "SIZE": "i32", "EACH": "i32", "P": "i32",
             **{name: "*fp32" for name in ("partial", "mean_out", "rstd_out", "mean_in", "rstd_in")}}
    signature = {name: "constexpr" if name in constants else kinds.get(name, "*bf16") for name in kernel.arg_names}
    values = {(kernel.arg_names.index(name),): value for name, value in constants.items()}
    source = ASTSource(kernel, signature, values, {})
    found = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": warps})
    print(kernel.__name__, len(found.asm["cubin"]) > 1000)
compiled(flat._gelu, 4, "i64", BLOCK=1024)
compiled(flat._mse, 8, "i64", BLOCK=4096, CHUNK=1024)
compiled(rows._layer_norm, 1, "i32", STEP=16, BLOCK=512, ROWS=4, EPS=1e-5, KEEP=True)
compiled(rows._cross_entropy, 1, "i32", STEP=16, BLOCK=512, ROWS=2, CHUNK=1024)
compiled(rows._cross_entropy_backward, 1, "i32", STEP=16, BLOCK=512, ROWS=2)
compiled(rows._layer_norm_backward, 4, "i32", STEP=16, BLOCK=128, ROWS=16, AHEAD=True)
"""


@pytest.mark.thorough
def test_the_kernels_with_loops_compile_for_a_hopper_and_for_more_than_two_to_the_31_elements() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _COMPILED],
        env={k: v for k, v in ENV.items() if k != "TRITON_INTERPRET"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.splitlines() == [
        f"{name} True"
        for name in (
            "_gelu",
            "_mse",
            "_layer_norm",
            "_cross_entropy",
            "_cross_entropy_backward",
            "_layer_norm_backward",
        )
    ]
