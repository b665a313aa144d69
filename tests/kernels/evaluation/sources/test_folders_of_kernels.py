"""Folders of kernels in the field's layouts, written as its generators write them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from profkit.core.errors import MachineError, UsageError
from profkit.core.types import EvaluationTest
from profkit.kernels.evaluation.sources.registry import (
    describe_untested,
    make_source_request,
    open_source,
)
from profkit.kernels.evaluation.sources.source import KernelSource, LoadError

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
        ("relu__default/relu__default_implementation_v1.py", "relu__default", "relu.default"),
        ("relu/relu_implementation_v1.py", "relu", "relu.default"),
        ("relu/relu.py", "relu", "relu.default"),
        ("relu/relu_attempt_3.py", "relu", "relu.default"),
        ("relu/relu.py", "relu__default", "relu.default"),
        ("relu/kernel.py", "relu__default", "relu.default"),
        ("add/add_implementation_v1.py", "add__Tensor", "add.Tensor"),
        ("add/add.py", "add__Scalar", "add.Scalar"),
        ("add___Tensor/add___Tensor_implementation_v1.py", "add___Tensor", "add_.Tensor"),
        ("__lshift____Scalar/__lshift____Scalar.py", "__lshift____Scalar", "__lshift__.Scalar"),
        ("add/add_implementation_v1.py", "add", "add.Tensor"),
        ("add_/add__implementation_v1.py", "add_", "add_.Tensor"),
        ("mul/mul.py", "mul", "mul.Tensor"),
    ],
)
def test_a_folder_of_every_layout_is_a_kernel_of_the_overload_it_names(
    tmp_path: Path, file: str, function: str, overload: str
) -> None:
    source = opened(tmp_path, {file: f"def {function}_kernel_impl(*args, **kwargs):\n    return 'mine'\n"})
    assert source.operations() == (overload,)
    assert source.load(overload)() == "mine"
    assert source.where(overload) == str(tmp_path / file)


def test_the_folder_of_a_run_gives_the_kernel_that_its_summary_calls_correct(tmp_path: Path) -> None:
    attempts = {f"relu/relu_attempt_{n}.py": f"def relu_kernel_impl(x): return {n}\n" for n in (1, 2, 10)}
    rows = [
        {"attempt": n, "kernel_file": f"/elsewhere/relu_attempt_{n}.py", "is_correct": n == 2}
        for n in (1, 2, 10)
    ]
    source = opened(tmp_path, {**attempts, "relu/relu_kernel_gen_summary.json": json.dumps(rows)})
    assert source.load("relu.default")(0) == 2
    assert any(
        "relu_attempt_2.py is taken: relu_kernel_gen_summary.json says" in line for line in source.remarks()
    )


def test_without_a_summary_the_highest_number_is_taken_and_not_the_first_or_the_last_name(
    tmp_path: Path,
) -> None:
    files = {
        f"relu/relu_implementation_v{n}.py": f"def relu_kernel_impl(x): return {n}\n" for n in (1, 2, 10)
    }
    source = opened(tmp_path, {**files, "relu/relu.py": RELU})
    assert source.load("relu.default")(0) == 10
    assert source.remarks() == ("relu: relu_implementation_v10.py is taken: the highest number of 4 files",)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("def relu_kernel_impl(x:\n", LoadError),
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


def test_a_missing_function_is_answered_with_those_that_are_there(tmp_path: Path) -> None:
    source = opened(tmp_path, {"relu/relu.py": "def relu_kernel(x): return x\ndef helper(): ...\n"})
    with pytest.raises(
        LoadError, match="does not define relu_kernel_impl; its functions: relu_kernel, helper"
    ):
        source.load("relu.default")


@pytest.mark.parametrize(
    ("signature", "overloads"),
    [
        ("*args, **kwargs", ("add.Tensor",)),  # it takes anything, which says nothing
        ("a, b, *, alpha=1", ("add.Scalar", "add.Tensor")),
        ("a, b, **options", ("add.Scalar", "add.Tensor")),  # not add.out, which it could take, too
        ("a: torch.Tensor, b: torch.Tensor, alpha: float = 1", ("add.Tensor",)),
        ("a: torch.Tensor, b: float", ("add.Scalar",)),
        ("a", ("add.Tensor",)),  # it fits none, and calling it says so
    ],
)
def test_a_bare_name_serves_the_overloads_whose_arguments_its_function_takes(
    tmp_path: Path, signature: str, overloads: tuple[str, ...]
) -> None:
    source = opened(tmp_path, {"add/add.py": f"import torch\ndef add_kernel_impl({signature}): ...\n"})
    assert source.operations() == overloads


def test_the_folder_of_an_overload_goes_before_the_one_of_its_operation(tmp_path: Path) -> None:
    files = {
        "add/add.py": "def add_kernel_impl(a, b): return 'bare'\n",
        "add__Scalar/add__Scalar.py": "def add__Scalar_kernel_impl(a, b): return 'whole'\n",
    }
    source = opened(tmp_path, files)
    assert (source.load("add.Tensor")(1, 2), source.load("add.Scalar")(1, 2)) == ("bare", "whole")


def test_folders_of_no_operation_are_named_with_what_is_near(tmp_path: Path) -> None:
    files = {"relu/relu.py": RELU, "gleu/gleu.py": "def gleu_kernel_impl(x): ...\n", "README.md": ""}
    assert opened(tmp_path, files).remarks() == (
        "the folder gleu is named like no operation of PyTorch (near: glu, gelu)",
    )


def test_two_kernels_may_each_have_a_utils_of_their_own(tmp_path: Path) -> None:
    source = opened(
        tmp_path,
        {
            "relu/relu.py": "from utils import NAME\ndef relu_kernel_impl(x): return NAME\n",
            "relu/utils.py": "NAME = 'relu'\n",
            "abs/abs.py": "from utils import NAME\ndef abs_kernel_impl(x): return NAME\n",
            "abs/utils.py": "NAME = 'abs'\n",
        },
    )
    assert [source.load(f"{name}.default")(0) for name in ("relu", "abs")] == ["relu", "abs"]


def test_aten_has_every_overload_and_is_torch_itself() -> None:
    source = open_source(make_source_request("aten"))
    assert source.load("add.Tensor") is torch.ops.aten.add.Tensor
    assert not source.has_kernel("add.Tensr")
    assert len(source.operations()) > 2500


def test_what_flag_gems_has_is_read_from_its_own_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_flag_gems_that_is_not_installed_is_a_fault_of_the_machine_with_its_fix() -> None:
    with pytest.raises(MachineError, match="not installed") as raised:
        make_source_request("flag_gems", device="cuda")
    assert "pip install" in (raised.value.fix or "")


def test_a_wrong_folder_is_refused_with_the_one_that_was_meant(tmp_path: Path) -> None:
    write(tmp_path, {"generated/run_20240101_120000/relu/relu_attempt_1.py": RELU, "generated/README.md": ""})
    run = tmp_path / "generated" / "run_20240101_120000"
    (tmp_path / "empty").mkdir()
    for folder, message, fix in (
        (tmp_path / "generated", "named like an operation", f"--kernels {run}"),
        (run / "relu", "named like an operation", f"--kernels {run}"),
        (tmp_path / "empty", "is empty", "--kernels FOLDER"),
        (tmp_path / "absent", "is not there", "--kernels FOLDER"),
    ):
        with pytest.raises(UsageError, match=message) as raised:
            make_source_request("directory", folder)
        assert fix in (raised.value.fix or "")


def test_kernels_that_no_test_calls_are_named_unless_tests_were_chosen(tmp_path: Path) -> None:
    files = {
        "add/add.py": "def add_kernel_impl(a, b): ...\n",  # of add.Scalar, too: one tested overload is enough
        "cosh/cosh.py": "def cosh_kernel_impl(x): ...\n",
    }
    request = make_source_request("directory", write(tmp_path, files))
    tests = [EvaluationTest("0" * 12, "smoke", "add.Tensor", "float32", "")]
    (line,) = describe_untested(open_source(request), request, False, tests)
    assert line == "the suite has no test of 1 operation with a kernel: cosh.default"
    (line,) = describe_untested(open_source(request), request, False, tests, "smoke")
    assert line.endswith("cosh.default; --suite opinfo has more operations")
    assert not list(describe_untested(open_source(request), request, True, tests))
    aten = make_source_request("aten")
    assert not list(describe_untested(open_source(aten), aten, False, tests))
