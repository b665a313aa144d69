"""A suite in a user's file, with the interface of the BackendBench family."""

from __future__ import annotations

from pathlib import Path

import pytest

from profkit.core.errors import UsageError
from profkit.kernels.evaluation.suites.suite import find_suite

pytestmark = pytest.mark.torch
FILE = """
import torch

class Test:
    def __init__(self, make):
        self.make, self.kwargs = make, {}

    @property
    def args(self):
        return self.make()

class OpTest:
    def __init__(self, op, correct, fast):
        self.op, self.correctness_tests, self.performance_tests = op, correct, fast

x = torch.zeros(4, 4)
SUITE = [
    OpTest(torch.ops.aten.relu.default, [Test(lambda: (torch.randn(5),))], [Test(lambda: (torch.randn(64, 64),))]),
    OpTest("add_.Tensor", [Test(lambda: (x, x.t()))], []),
]
"""


def _suite(folder: Path, text: str = FILE):
    (folder / "my_suite.py").write_text(text)
    return find_suite(str(folder / "my_suite.py"))


def _tests(suite, *operations: str):
    from profkit.kernels.evaluation.suites.suite import Selection

    return list(suite.tests(Selection(operations)))


def test_its_objects_are_tests_and_what_is_for_performance_is_timed(tmp_path: Path) -> None:
    tests = _tests(_suite(tmp_path))
    assert [(test.suite, test.operation, test.timed) for test in tests] == [
        ("my_suite", "relu.default", False),
        ("my_suite", "relu.default", True),
        ("my_suite", "add_.Tensor", False),
    ]
    assert _tests(_suite(tmp_path), "add_") == tests[2:]


def test_what_it_draws_follows_from_the_seed_and_what_it_keeps_is_copied(tmp_path: Path) -> None:
    suite = _suite(tmp_path)
    relu, _, add = _tests(suite)
    first, again, other = (suite.make_arguments(relu, seed).args[0] for seed in (1, 1, 2))
    assert first.equal(again)
    assert not first.equal(other)
    left, right = suite.make_arguments(add, 1).args
    assert left.data_ptr() == right.data_ptr()
    left.fill_(9)
    assert suite.make_arguments(add, 1).args[0].sum() == 0


@pytest.mark.parametrize(
    ("text", "reason"),
    [("1 / 0", "ZeroDivisionError"), ("x = 1", "defines no SUITE"), ("SUITE = [3]", "has no operation")],
)
def test_a_file_that_is_no_suite_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        _tests(_suite(tmp_path, text))
