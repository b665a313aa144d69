"""Kernels in files, folders and texts of a user's, of a running program, and of packages."""

from __future__ import annotations

import functools
import inspect
import json
import os
import runpy
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from profkit.core.errors import MachineError, UsageError
from profkit.evaluation import compile_kernel_from_string
from profkit.kernels.evaluation.sources.files import open_source
from profkit.kernels.evaluation.sources.names import LoadError, with_imports
from profkit.kernels.evaluation.sources.source import (
    KernelSource,
    SourceRequest,
    make_source_request,
)
from tests.conftest import ROOT
from tests.spoken import spoken_lines

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

FILE = """
import functools
from profkit.evaluation import kernel
import profkit.evaluation as pe

@kernel("aten::add.Tensor")
def add(input, other, *, alpha=1):
    return "add"

@pe.kernel("relu", "abs")
def unary(x):
    return "unary"

def sigmoid_kernel_impl(x):
    return "sigmoid"

exp_kernel_impl = lambda x: "exp"
neg_kernel_impl = functools.partial(str.upper)
kernel("cos")(lambda x: "cos")

@kernel("sin")
class Sine:
    def __new__(cls, x):
        return "sin"

class Tanh:
    def __call__(self, x):
        return "tanh"

tanh_kernel_impl = Tanh()

def mul__Scalar_kernel_impl(x, y):
    return "mul.Scalar"

def mul_kernel_impl(x, y):
    return "mul"

def gleu_kernel_impl(x): ...
"""


def request_of(path: Path, text: str) -> SourceRequest:
    path.write_text(text)
    return make_source_request(file=path)


def test_a_file_has_what_it_decorates_and_what_is_called_so(tmp_path: Path) -> None:
    source = open_source(request_of(tmp_path / "mine.py", FILE))
    two = ("add.Tensor", "mul.Scalar", "mul.Tensor")
    found = {name: source.load(name)(*"ab"[: 1 + (name in two)]) for name in source.operations()}
    assert found == {
        "abs.default": "unary",
        "add.Tensor": "add",
        "cos.default": "cos",
        "exp.default": "exp",
        "mul.Scalar": "mul.Scalar",
        "mul.Tensor": "mul",
        "neg.default": "A",
        "relu.default": "unary",
        "sigmoid.default": "sigmoid",
        "sin.default": "sin",
        "tanh.default": "tanh",
    }
    assert spoken_lines(source.remarks()) == (
        "gleu_kernel_impl is not the name of an operation of PyTorch (near: glu, gelu)",
    )


def test_a_file_is_asked_for_its_kernels_without_being_run_and_without_torch(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text("raise SystemExit(7)\n" + FILE)
    code = (
        "import sys; from pathlib import Path\n"
        "from profkit.kernels.evaluation.sources.source import make_source_request\n"
        f"make_source_request(file=Path({str(path)!r}))\n"
        "assert 'torch' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def relu(x): return x\n", "has no kernel"),
        ("def relu_kernel_impl(x:\n", "line 1"),
        ("from profkit.evaluation import kernel\n@kernel(name)\ndef f(): ...\n", "read from its text"),
    ],
)
def test_a_file_without_a_kernel_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        request_of(tmp_path / "mine.py", text)


def compiled(tmp_path: Path, text: str) -> Any:
    return compile_kernel_from_string(text, "relu.default", tmp_path / "relu.py", "relu__default", "made")


@pytest.mark.parametrize(
    ("op", "expected", "function"),
    [
        ("relu", "relu", "relu__default"),
        ("relu.default", "relu__default", "relu"),
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
        ("def f(torch):\n    return torch\n", ""),
        ("def f(x: torch.Tensor):\n    import torch\n    return torch.relu(x)\n", "import torch"),
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
    )
    function = compiled(tmp_path, text)
    assert function(-1.0) == 0
    assert runpy.run_path(str(tmp_path / "relu.py"))["relu__default_kernel_impl"](2.0) == 2
    line = inspect.getsourcelines(function)[1]
    assert (tmp_path / "relu.py").read_text().splitlines()[line - 1] == "def relu__default_kernel_impl(x):"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def relu(x): ...\n", "Failed to compile kernel for relu.default: .*its functions: relu$"),
        ("def f(:\n", "Failed to compile kernel for relu.default: relu.py, line 1"),
        ("raise SystemExit(0)\n", "Failed to compile kernel for relu.default: SystemExit"),
    ],
)
def test_a_text_that_is_no_kernel_says_why(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        compiled(tmp_path, text)


def test_a_request_with_a_text_is_a_source_of_its_operation() -> None:
    text = "def add_kernel_impl(a, b): return a + b\n"
    source = open_source(SourceRequest("source", text=text, operation="add"))
    assert source.operations() == ("add.Tensor",)
    assert source.load("add.Tensor")(1, 2) == 3
    wrong = open_source(SourceRequest("source", text="def add_kernel_impl(", operation="add"))
    with pytest.raises(LoadError, match="line 1"):
        wrong.load("add.Tensor")


# ---------------------------------------------------------------- functions of a running program


def at_the_top(x: Any) -> Any:
    return torch.clamp(x, min=0) * 3


READ = """
import json, sys
import torch
from profkit.kernels.evaluation.sources.files import open_source
from profkit.kernels.evaluation.sources.source import SourceRequest
for line in sys.stdin:
    source = open_source(SourceRequest(**json.loads(line)))
    print(source.load("relu.default")(torch.tensor([-1.0, 2.0])).tolist())
"""


class Clamp:
    def __init__(self, least: float) -> None:
        self.least = least

    def __call__(self, x: Any) -> Any:
        return torch.clamp(x, min=self.least)


named_lambda = lambda x, by=7: x * by  # noqa: E731


def make(factor: int) -> Any:
    def helper(x: Any) -> Any:
        return at_the_top(x)

    def inner(x: Any) -> Any:
        return helper(x) * factor

    return inner


@pytest.mark.thorough
def test_functions_of_every_kind_do_the_same_in_another_process(tmp_path: Path) -> None:
    from profkit.kernels.evaluation.sources.functions import request_function

    text = "def relu_kernel_impl(x): return F.relu(x) * 5\n"
    functions: list[tuple[Any, list[int]]] = [
        (text, [0, 10]),
        (at_the_top, [0, 6]),
        (named_lambda, [-7, 14]),
        (lambda x: torch.clamp(x, min=0) + 1, [1, 3]),
        (make(2), [0, 12]),
        (Clamp(1), [1, 2]),
        (functools.partial(torch.clamp, min=1), [1, 2]),
        (functools.partial(lambda x, least: x.clamp(min=least), least=1), [1, 2]),
        (torch.abs, [1, 2]),
        (torch.ops.aten.relu.default, [0, 2]),
        (torch.ops.aten.relu, [0, 2]),
        (torch.ops.aten.neg.default, [1, -2]),
        (compile_kernel_from_string(text, "relu", tmp_path / "relu.py", "relu", "made"), [0, 10]),
    ]
    requests = [asdict(request_function(function, "relu.default")) for function, _ in functions]
    done = subprocess.run(
        [sys.executable, "-c", READ],
        input="".join(json.dumps(request) + "\n" for request in requests),
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    wanted = [result for _, result in functions]
    assert [json.loads(line) for line in done.stdout.splitlines()] == wanted, done.stderr


SCRIPT = """
import torch
from profkit.evaluation import Test, eval_correctness_test

class Relu:
    def __call__(self, x):
        return x.clamp(min=0)

if __name__ == "__main__":
    low = 0
    for kernel in (Relu(), lambda x: torch.clamp(x, min=low), lambda x: x + 1):
        print(eval_correctness_test("relu", kernel, Test(torch.tensor([-1.0, 2.0]))).status)
"""


@pytest.mark.thorough
@pytest.mark.skipif(sys.platform != "linux", reason="kernels are evaluated on Linux")
def test_a_script_evaluates_lambdas_and_objects_of_its_own_classes(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, "script.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.stdout.split() == ["passed", "passed", "incorrect"], done.stderr


def test_what_cannot_travel_is_refused_with_what_can() -> None:
    from profkit.kernels.evaluation.sources.functions import request_function

    lock = __import__("threading").Lock()

    def locked(x: Any) -> Any:
        with lock:
            return x

    of_a_notebook = type("Shell", (), {"__module__": "__main__", "__call__": lambda self, x: x})
    for function, said in ((locked, "locked cannot be sent"), (of_a_notebook(), "defined in no file")):
        with pytest.raises(UsageError, match=said) as raised:
            request_function(function, "relu.default")
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


RELU = (
    "import torch\ndef relu_kernel_impl(x: torch.Tensor) -> torch.Tensor:\n    return torch.clamp(x, min=0)\n"
)


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def opened(root: Path, files: dict[str, str]) -> KernelSource:
    return open_source(make_source_request("directory", write(root, files)))


@pytest.mark.parametrize(
    ("file", "function", "overload"),
    [
        ("add__Tensor/add__Tensor_implementation_v1.py", "add__Tensor", "add.Tensor"),
        ("relu/relu.py", "relu", "relu.default"),
        ("relu/relu_attempt_3.py", "relu__default", "relu.default"),
        ("add___Tensor/add___Tensor_implementation_v1.py", "add___Tensor", "add_.Tensor"),
        ("__lshift____Scalar/__lshift____Scalar.py", "__lshift____Scalar", "__lshift__.Scalar"),
        ("add_/add__implementation_v1.py", "add_", "add_.Tensor"),
        ("add/add_implementation_v1.py", "add", "add.Tensor"),
        ("relu__default/relu__default_implementation_v1.py", "relu__default", "relu.default"),
        ("relu__default/relu__default_implementation_v1.py", "relu", "relu.default"),
        ("add/add.py", "add__Scalar", "add.Scalar"),
    ],
)
def test_a_folder_of_every_layout_is_a_kernel_of_the_overload_it_names(
    tmp_path: Path, file: str, function: str, overload: str
) -> None:
    source = opened(tmp_path, {file: f"def {function}_kernel_impl(*args, **kwargs):\n    return 'mine'\n"})
    assert source.operations() == (overload,)
    assert source.load(overload)() == "mine"
    assert source.where(overload) == str(tmp_path / file)


def test_of_several_files_the_one_is_taken_that_a_summary_calls_correct_else_the_highest_number(
    tmp_path: Path,
) -> None:
    numbers = (1, 2, 10)
    attempts = {f"relu/relu_attempt_{n}.py": f"def relu_kernel_impl(x): return {n}\n" for n in numbers}
    source = opened(tmp_path, attempts)
    assert source.load("relu.default")(0) == 10
    rows = [{"kernel_file": f"/elsewhere/relu_attempt_{n}.py", "is_correct": n == 2} for n in numbers]
    source = opened(tmp_path, {"relu/relu_kernel_gen_summary.json": json.dumps(rows)})
    assert source.load("relu.default")(0) == 2


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("def relu_kernel_impl(x:\n", SyntaxError),
        ("import nothing_that_is_there\ndef relu_kernel_impl(x): return x\n", ModuleNotFoundError),
        ("def relu(x): return x\n", LoadError),
        ("raise SystemExit(0)\n", SystemExit),
    ],
)
def test_a_kernel_that_cannot_be_loaded_stays_a_kernel_and_says_so_when_it_is_loaded(
    tmp_path: Path, text: str, error: type[BaseException]
) -> None:
    source = opened(tmp_path, {"relu/relu.py": text})
    assert source.has_kernel("relu.default")
    with pytest.raises(error):
        source.load("relu.default")


def test_the_folder_of_an_overload_goes_before_the_one_of_its_operation(tmp_path: Path) -> None:
    files = {
        "add/add.py": "def add_kernel_impl(a, b): return 'bare'\n",
        "add__Tensor/add__Tensor.py": "def add__Tensor_kernel_impl(a, b): return 'whole'\n",
    }
    assert opened(tmp_path, files).load("add.Tensor")(1, 2) == "whole"


def test_one_folder_may_have_a_kernel_for_each_overload_of_its_operation(tmp_path: Path) -> None:
    text = "def add_kernel_impl(a, b): return 'bare'\nadd__Scalar_kernel_impl = lambda a, b: 'scalar'\n"
    source = opened(tmp_path, {"add/add_implementation_v1.py": text})
    assert {name: source.load(name)(1, 2) for name in source.operations()} == {
        "add.Tensor": "bare",
        "add.Scalar": "scalar",
    }
    own = {"add__Scalar/add__Scalar.py": "def add__Scalar_kernel_impl(a, b): return 'its own'\n"}
    assert opened(tmp_path, own).load("add.Scalar")(1, 2) == "its own"


def test_folders_of_no_operation_are_named_with_what_is_near(tmp_path: Path) -> None:
    files = {"relu/relu.py": RELU, "gleu/gleu.py": "def gleu_kernel_impl(x): ...\n", "README.md": ""}
    assert spoken_lines(opened(tmp_path, files).remarks()) == (
        "gleu is not the name of an operation of PyTorch (near: glu, gelu)",
    )


def test_two_kernels_may_each_have_a_utils_of_their_own(tmp_path: Path) -> None:
    names = ("relu", "abs")
    files = {f"{name}/utils.py": f"NAME = {name!r}\n" for name in names}
    text = "from utils import NAME\ndef {}_kernel_impl(x): return NAME\n"
    source = opened(tmp_path, {**files, **{f"{name}/{name}.py": text.format(name) for name in names}})
    assert [source.load(f"{name}.default")(0) for name in names] == ["relu", "abs"]


def test_aten_has_every_overload_and_is_torch_itself() -> None:
    source = open_source(make_source_request("aten"))
    assert source.load("add.Tensor") is torch.ops.aten.add.Tensor
    assert not source.has_kernel("add.Tensr")
    assert len(source.operations()) > 2500


def test_what_flag_gems_has_is_read_from_its_own_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(MachineError, match="not installed") as raised:
        make_source_request("flag_gems", device="cuda")
    assert "pip install" in (raised.value.fix or "")
    text = (
        "import torch\nfrom flag_gems.ops import *\nLONG = ('a', 'text')\n"
        "def enable():\n    register((('abs', abs), ('add.Tensor', ops.add), ('no_such_thing', zeros)))\n"
    )
    about = "Metadata-Version: 2.1\nName: flag_gems\nVersion: 5.0.2\n"
    write(tmp_path, {"flag_gems/__init__.py": text, "flag_gems-5.0.2.dist-info/METADATA": about})
    monkeypatch.syspath_prepend(tmp_path)
    source = open_source(make_source_request("flag_gems", device="cuda"))
    assert source.operations() == ("abs.default", "add.Tensor")
    assert source.where("add.Tensor") == "flag_gems.ops.add"
    assert spoken_lines(source.remarks()) == ("the kernels are those of FlagGems 5.0.2",)
    with pytest.raises(MachineError, match="no kernels for the CPU"):
        make_source_request("flag_gems", device="cpu")


def test_a_wrong_folder_is_refused_with_how_one_looks(tmp_path: Path) -> None:
    write(tmp_path, {"generated/run_20240101_120000/relu/relu_attempt_1.py": RELU})
    (tmp_path / "empty").mkdir()
    for name, message in (
        ("generated", "named like an operation"),
        ("empty", "named like an operation"),
        ("absent", "cannot be read: No such file"),
    ):
        with pytest.raises(UsageError, match=message) as raised:
            make_source_request("directory", tmp_path / name)
        assert "--kernels FOLDER" in (raised.value.fix or "")
