"""`profkit evaluate --suite FILE.py`: tests of one's own, judged like all others."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.cli_runner import profkit

pytest.importorskip("torch")
pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(sys.platform != "linux", reason="kernels are evaluated on Linux"),
]

TESTS = """
import torch
from profkit.evaluation import OpTest, Test

print("this is printed by the file of tests")
SUITE = [
    OpTest(
        torch.ops.aten.relu.default,
        correctness_tests=[Test(torch.randn(5)), Test(lambda: torch.randn(3, 1))],
        performance_tests=[Test(lambda: torch.randn(64, 64))],
    ),
    OpTest("add.Tensor", [Test(torch.ones(4), torch.ones(4), alpha=2)]),
    OpTest("abs", [Test(torch.randn(3))]),
]
"""
# What a kernel beside the tests may try: to change them, and to find them, or what is right, in its process.
KERNELS = """
import gc, sys
from pathlib import Path
import torch

tests = Path(__file__).with_name("my_tests.py")
found = []
for what in (lambda: tests.write_text("SUITE = []"), lambda: tests.unlink(), lambda: tests.rename("x")):
    try:
        what()
        found.append("changed")
    except OSError:
        pass
found += [name for name in sys.modules if "my_tests" in name or "op_tests" in name]
found += [each for each in gc.get_objects() if type(each).__name__ in ("OpTest", "OpTestSuite", "CallReference")]
if found:
    raise RuntimeError(f"found {found}")

relu_kernel_impl = lambda x: torch.clamp(x, min=0)

def add__Tensor_kernel_impl(a, b, *, alpha=1):
    return a + b  # wrong

def abs_kernel_impl(x):
    return x.abs()
"""


@pytest.mark.thorough
def test_tests_of_ones_own_are_judged_and_no_kernel_reads_or_changes_them(tmp_path: Path) -> None:
    (tmp_path / "my_tests.py").write_text(TESTS)
    (tmp_path / "mine.py").write_text(KERNELS)
    words = ("--suite", "my_tests.py", "--device", "cpu", "--budget", "0.1", "--format", "json")
    done = profkit("evaluate", "mine.py", *words, cwd=tmp_path)
    assert done.code == 1, done.err
    document = json.loads(done.out)
    assert document["suite"] == "my_tests.py"
    status = {one["operation"]: (one["status"], one["passed"]) for one in document["operations"]}
    assert status == {
        "relu.default": ("passed", 3),
        "add.Tensor": ("incorrect", 0),
        "abs.default": ("passed", 1),
    }
    assert [test["timed"] for test in document["tests"]] == [False, False, True, False, False]
    assert (tmp_path / "my_tests.py").read_text() == TESTS
    # The same arguments once more, where the file is named again.
    wrong = next(test["id"] for test in document["tests"] if test["operation"] == "add.Tensor")
    replay = ("evaluate", "--replay", wrong, document["folder"], "--kernels", "mine.py")
    done = profkit(*replay, cwd=tmp_path)
    assert done.code == 2
    assert "--suite " in done.err
    done = profkit(*replay, "--suite", "my_tests.py", "--format", "json", cwd=tmp_path)
    assert done.code == 1, done.err
    assert [test["status"] for test in json.loads(done.out)["tests"]] == ["incorrect"]


def test_a_file_that_is_no_suite_ends_with_its_line_and_leaves_no_folder(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text("import torch\nSUITE = [1 / 0]\n")
    done = profkit("evaluate", "--suite", "bad.py", "--device", "cpu", cwd=tmp_path)
    assert done.code == 2
    assert "bad.py cannot be run: ZeroDivisionError: division by zero (line 2)" in done.err
    assert not list(tmp_path.glob("reports/*/*"))


LAYOUTS = {
    "relu__default/relu__default_implementation_v1.py": "relu__default_kernel_impl = lambda x: x.clamp(min=0)",
    "add__Tensor/add__Tensor_implementation_v1.py": "def add__Tensor_kernel_impl(a, b): return a + b",
    "mul/mul_implementation_v1.py": "def mul_kernel_impl(a, b): return a * b",
    "div/div.py": "def div__Scalar_kernel_impl(a, b): return a / b\n\ndef div_kernel_impl(a, b): return a.div(b)",
}
OVERLOADS = """
import torch
from profkit.evaluation import OpTest, Test

x = torch.rand(4) + 1
SUITE = [
    *(OpTest(name, [Test(x, x)]) for name in ("add.Tensor", "mul.Tensor", "div.Tensor")),
    OpTest("div.Scalar", [Test(x, 2.0)]),
    OpTest("relu", [Test(x)]),
]
"""


@pytest.mark.thorough
@pytest.mark.parametrize("option", ["--kernels", "one file"])
def test_a_folder_or_a_file_has_a_kernel_for_every_overload_in_each_layout(
    tmp_path: Path, option: str
) -> None:
    (tmp_path / "my_tests.py").write_text(OVERLOADS)
    for name, text in LAYOUTS.items():
        file = tmp_path / "kernels" / name
        file.parent.mkdir(parents=True)
        file.write_text(text)
    (tmp_path / "mine.py").write_text("\n\n".join(LAYOUTS.values()))
    source = ("--kernels", "kernels") if option == "--kernels" else ("mine.py",)
    words = ("--suite", "my_tests.py", "--device", "cpu", "--correctness-only", "--format", "json")
    done = profkit("evaluate", *source, *words, cwd=tmp_path)
    assert done.code == 0, done.err
    status = {one["operation"]: one["status"] for one in json.loads(done.out)["operations"]}
    names = ("add.Tensor", "mul.Tensor", "div.Tensor", "div.Scalar", "relu.default")
    assert status == dict.fromkeys(names, "passed")
