"""Kernels in a file of a user's, and in a text."""

from __future__ import annotations

import inspect
import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from profkit.core.errors import UsageError
from profkit.evaluation import compile_kernel_from_string
from profkit.kernels.evaluation.sources.registry import make_source_request, open_source
from profkit.kernels.evaluation.sources.source import LoadError, SourceRequest
from profkit.kernels.evaluation.sources.text import with_imports

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch
FILE = """
from profkit.evaluation import kernel
import profkit.evaluation as pe

@kernel("aten::add.Tensor")
def add(input, other, *, alpha=1):
    return "add"

@pe.kernel("relu", "abs")
def unary(x):
    return "unary"

def mul(a, b):
    return "mul"

kernel("mul")(mul)

def sigmoid_kernel_impl(x):
    return "sigmoid"
"""


def request_of(path: Path, text: str) -> SourceRequest:
    path.write_text(text)
    return make_source_request(file=path)


def test_a_file_has_what_it_decorates_and_what_is_called_so(tmp_path: Path) -> None:
    source = open_source(request_of(tmp_path / "mine.py", FILE))
    assert source.operations() == (
        "abs.default",
        "add.Tensor",
        "mul.Scalar",
        "mul.Tensor",
        "relu.default",
        "sigmoid.default",
    )
    assert {
        name: source.load(name)(1, *([2] if name[0] in "am" and name != "abs.default" else []))
        for name in source.operations()
    } == {
        "abs.default": "unary",
        "add.Tensor": "add",
        "mul.Scalar": "mul",
        "mul.Tensor": "mul",
        "relu.default": "unary",
        "sigmoid.default": "sigmoid",
    }


def test_a_file_is_asked_for_its_kernels_without_being_run_and_without_torch(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text("raise SystemExit(7)\n" + FILE)
    code = (
        "import sys; from pathlib import Path\n"
        "from profkit.kernels.evaluation.sources.registry import make_source_request\n"
        f"make_source_request(file=Path({str(path)!r}))\n"
        "assert 'torch' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def relu(x): return x\n", "has no kernel"),
        ("def relu_kernel_impl(x:\n", "line 1"),
        (
            "from profkit.evaluation import kernel\nfor n in ('a',):\n    kernel(n)(print)\n",
            r"written out \(line 3\)",
        ),
    ],
)
def test_a_file_without_a_kernel_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        request_of(tmp_path / "mine.py", text)


def test_a_file_is_run_with_gradients_also_where_kernels_are_called_without(tmp_path: Path) -> None:
    text = (
        "import torch\ntorch.ones(1, requires_grad=True).sum().backward()\n"
        "def relu_kernel_impl(x): return x\n"
    )
    source = open_source(request_of(tmp_path / "mine.py", text))
    with torch.no_grad():
        assert source.load("relu.default")(1) == 1


def test_a_name_of_no_operation_is_remarked_with_what_is_near_and_the_others_stay(tmp_path: Path) -> None:
    source = open_source(
        request_of(tmp_path / "mine.py", "def relu_kernel_impl(x): ...\ndef gleu_kernel_impl(x): ...\n")
    )
    assert source.operations() == ("relu.default",)
    assert source.remarks() == ("gleu_kernel_impl is named like no operation of PyTorch (near: glu, gelu)",)


def compiled(tmp_path: Path, text: str, name: str = "relu__default") -> object:
    return compile_kernel_from_string(text, "relu.default", tmp_path / "relu.py", name, "made_relu")


@pytest.mark.parametrize(
    ("op", "expected", "function"),
    [
        ("relu", "relu", "relu__default"),
        ("relu.default", "relu__default", "relu"),
        ("add__Tensor", "add__Tensor", "add__Tensor"),
        ("add.Tensor", "add.Tensor", "add"),
        ("add", "add_kernel_impl", "add__Tensor"),
        ("my_own", "my_own", "my_own"),  # of no operation
    ],
)
def test_a_text_is_compiled_by_each_name_of_the_field(
    tmp_path: Path, op: str, expected: str, function: str
) -> None:
    text = f"def {function}_kernel_impl(x):\n    return x\n"
    assert compile_kernel_from_string(text, op, tmp_path / "a.py", expected, "made")(3) == 3


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (
            "def f(x):\n    return F.relu(nn.Identity()(x))\n",
            "from torch import nn\nimport torch.nn.functional as F",
        ),
        ("import torch\nprint(torch)\n", ""),
        ("def f(x):\n    import torch\n    return torch.relu(x)\n", ""),
        ("def f(torch):\n    return torch\n", ""),
        ("def f(x: torch.Tensor):\n    import torch\n    return torch.relu(x)\n", "import torch"),
        ("x = [torch.ones(1) for _ in '1']\n", "import torch"),
        ("def f(:\n", ""),
    ],
)
def test_only_what_a_text_uses_and_does_not_bind_is_imported(text: str, kept: str) -> None:
    assert with_imports(text) == (f"{kept}\n{text}" if kept else text)
    assert with_imports(with_imports(text)) == with_imports(text)


def test_a_text_becomes_a_file_that_runs_alone_with_the_line_numbers_of_the_file(tmp_path: Path) -> None:
    text = (
        "from __future__ import annotations\n"
        "def relu__default_kernel_impl(x):\n"
        "    return F.relu(torch.as_tensor(x))\n"
        "def broken(x):\n"
        "    raise ValueError('line 5')\n"
    )
    function = compiled(tmp_path, text)
    assert function(-1.0) == 0  # type: ignore[operator]
    alone = subprocess.run([sys.executable, tmp_path / "relu.py"], check=False)
    assert alone.returncode == 0
    assert runpy.run_path(str(tmp_path / "relu.py"))["relu__default_kernel_impl"](2.0) == 2
    line = inspect.getsourcelines(function)[1]  # type: ignore[arg-type]
    assert (tmp_path / "relu.py").read_text().splitlines()[line - 1] == "def relu__default_kernel_impl(x):"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def relu(x): ...\n", "Failed to compile kernel for relu.default: .*its functions: relu$"),
        ("def f(:\n", "Failed to compile kernel for relu.default: relu.py, line 1"),
        ("raise KeyError('k')\n", "Failed to compile kernel for relu.default: KeyError: 'k'"),
        ("raise SystemExit(0)\n", "Failed to compile kernel for relu.default: SystemExit"),
    ],
)
def test_a_text_that_is_no_kernel_says_why(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        compiled(tmp_path, text)


def test_a_request_with_a_text_is_a_source_of_its_operation() -> None:
    text = "def add_kernel_impl(a, b): return a + b\n"
    source = open_source(SourceRequest("source", text=text, operation="add"))
    assert source.operations() == ("add.Scalar", "add.Tensor")
    assert source.load("add.Tensor")(1, 2) == 3
    wrong = open_source(SourceRequest("source", text="def add_kernel_impl(", operation="add"))
    with pytest.raises(LoadError, match="line 1"):
        wrong.load("add.Tensor")


def test_a_pipe_is_no_file_of_kernels(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "kernels.py")
    with pytest.raises((LoadError, UsageError), match="no regular file"):
        open_source(SourceRequest("file", (str(tmp_path / "kernels.py"),)))
