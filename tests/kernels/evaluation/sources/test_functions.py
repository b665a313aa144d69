"""Functions of a running program, taken to another process."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from profkit.core.errors import UsageError  # noqa: E402
from profkit.kernels.evaluation.sources.files import compile_kernel_from_string  # noqa: E402
from profkit.kernels.evaluation.sources.functions import request_function, request_functions  # noqa: E402
from profkit.kernels.evaluation.sources.registry import open_source  # noqa: E402
from profkit.kernels.evaluation.sources.source import SourceRequest  # noqa: E402
from tests.conftest import ROOT  # noqa: E402

pytestmark = pytest.mark.torch
FACTOR = 3


def at_the_top(x: Any) -> Any:
    return torch.clamp(x, min=0) * FACTOR


def make(factor: int) -> Callable[[Any], Any]:
    def inner(x: Any) -> Any:
        return helper(x) * factor

    def helper(x: Any) -> Any:
        return at_the_top(x)

    return inner


READ = """
import json, sys
import torch
from profkit.kernels.evaluation.sources.registry import open_source
from profkit.kernels.evaluation.sources.source import SourceRequest
for line in sys.stdin:
    operation, request = json.loads(line)
    source = open_source(SourceRequest(**request))
    print(source.load(operation)(torch.tensor([-1.0, 2.0])).tolist())
"""


def test_functions_of_every_kind_do_the_same_in_another_process(tmp_path: Path) -> None:
    text = "def relu_kernel_impl(x): return F.relu(x) * 5\n"
    functions: list[tuple[Any, list[int]]] = [
        (text, [0, 10]),
        (at_the_top, [0, 6]),
        (make(2), [0, 12]),
        (lambda x, by=7: x * by, [-7, 14]),
        (functools.partial(torch.clamp, min=1), [1, 2]),
        (torch.abs, [1, 2]),
        (torch.ops.aten.relu.default, [0, 2]),
        (torch.ops.aten.relu, [0, 2]),
        (torch.ops.aten.neg.default, [1, -2]),
        (compile_kernel_from_string(text, "relu", tmp_path / "relu.py", "relu", "made"), [0, 10]),
    ]
    requests = [
        ("relu.default", asdict(request_function(function, "relu.default"))) for function, _ in functions
    ]
    several = request_functions(
        [request_function(torch.abs, "abs.default"), request_function(at_the_top, "relu.default")]
    )
    requests += [("abs.default", asdict(several)), ("relu.default", asdict(several))]
    done = subprocess.run(
        [sys.executable, "-c", READ],
        input="".join(json.dumps(request) + "\n" for request in requests),
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    wanted = [*(result for _, result in functions), [1, 2], [0, 6]]
    assert [json.loads(line) for line in done.stdout.splitlines()] == wanted, done.stderr


def test_what_cannot_travel_is_refused_with_what_can() -> None:
    lock = __import__("threading").Lock()

    def locked(x: Any) -> Any:
        with lock:
            return x

    with pytest.raises(UsageError, match="locked cannot be taken to the process") as raised:
        request_function(locked, "relu.default")
    assert "top of a file" in (raised.value.fix or "")


def test_a_file_that_evaluates_when_it_is_run_is_told_so_in_place_of_doing_it_for_ever(
    tmp_path: Path,
) -> None:
    path = tmp_path / "endless.py"
    path.write_text(
        "from profkit.evaluation import eval_one_op\n"
        "def kernel(x): return x\n"
        "eval_one_op('relu', kernel, [], [])\n"
    )
    text = json.dumps({"module": "__main__", "name": "kernel"})
    source = open_source(SourceRequest("function", (str(path),), text, "relu.default"))
    with pytest.raises(UsageError, match="evaluates it when it is run") as raised:
        source.load("relu.default")
    assert "__main__" in (raised.value.fix or "")
