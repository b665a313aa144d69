"""Folders of kernels in the field's layouts, and kernels of packages."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from profkit.core.errors import MachineError, UsageError
from profkit.core.types import EvaluationTest
from profkit.kernels.evaluation.sources.files import open_source
from profkit.kernels.evaluation.sources.names import LoadError
from profkit.kernels.evaluation.sources.source import KernelSource, describe_untested, make_source_request

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch
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
    assert source.remarks() == ("relu: relu_attempt_10.py is taken: the highest number of 3 files",)
    rows = [{"kernel_file": f"/elsewhere/relu_attempt_{n}.py", "is_correct": n == 2} for n in numbers]
    source = opened(tmp_path, {"relu/relu_kernel_gen_summary.json": json.dumps(rows)})
    assert source.load("relu.default")(0) == 2
    assert "relu_attempt_2.py is taken: relu_kernel_gen_summary.json says" in source.remarks()[0]


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


def test_folders_of_no_operation_are_named_with_what_is_near(tmp_path: Path) -> None:
    files = {"relu/relu.py": RELU, "gleu/gleu.py": "def gleu_kernel_impl(x): ...\n", "README.md": ""}
    assert opened(tmp_path, files).remarks() == (
        "the folder gleu is named like no operation of PyTorch (near: glu, gelu)",
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
    assert source.remarks() == ("the kernels are those of FlagGems 5.0.2",)
    with pytest.raises(MachineError, match="no kernels for the CPU"):
        make_source_request("flag_gems", device="cpu")


def test_a_wrong_folder_is_refused_with_how_one_looks(tmp_path: Path) -> None:
    write(tmp_path, {"generated/run_20240101_120000/relu/relu_attempt_1.py": RELU})
    (tmp_path / "empty").mkdir()
    for name, message in (
        ("generated", "named like an operation"),
        ("empty", "named like an operation"),
        ("absent", "is not there"),
    ):
        with pytest.raises(UsageError, match=message) as raised:
            make_source_request("directory", tmp_path / name)
        assert "--kernels FOLDER" in (raised.value.fix or "")


def test_kernels_that_no_test_calls_are_named(tmp_path: Path) -> None:
    files = {
        "add/add.py": "def add_kernel_impl(a, b): ...\n",
        "cosh/cosh.py": "def cosh_kernel_impl(x): ...\n",
    }
    request = make_source_request("directory", write(tmp_path, files))
    tests = [EvaluationTest("0" * 12, "smoke", "add.Tensor", "float32", "")]
    (line,) = describe_untested(open_source(request), request, tests)
    assert line == "the suite has no test of 1 operation with a kernel: cosh.default"
    aten = make_source_request("aten")
    assert not list(describe_untested(open_source(aten), aten, tests))
