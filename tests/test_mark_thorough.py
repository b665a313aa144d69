"""The marks of costly tests follow from what a run printed, and leave no file untried."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.mark_thorough import costs_of, marked

LOG = """
12 s of the processor in 6 tests; most of it in:
    4.0 s  tests/a/test_one.py::test_real
    1.2 s  tests/a/test_one.py::test_many[x-1]
    0.1 s  tests/a/test_one.py::test_quick
    0.9 s  tests/a/test_one.py::test_often[0]
    0.9 s  tests/a/test_one.py::test_often[1 ::]
    0.9 s  tests/a/test_one.py::test_often[2]
    0.9 s  tests/a/test_one.py::test_often[3]
    2.0 s  tests/a/test_gone.py::test_gone
"""
FILE = '''"""What it tries."""

from __future__ import annotations

import pytest


def test_real() -> None: ...


@pytest.mark.parametrize("n", ["x-1"])
def test_many(n: str) -> None: ...


def test_quick() -> None: ...


@pytest.mark.parametrize("n", range(4))
def test_often(n: int) -> None: ...
'''


def thorough(text: str) -> set[str]:
    """Return the names of the marked functions of a file."""
    functions = (node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef))
    return {
        node.name
        for node in functions
        if any(ast.unparse(mark) == "pytest.mark.thorough" for mark in node.decorator_list)
    }


def test_a_function_is_marked_for_one_costly_test_or_for_many_that_add_up() -> None:
    costs = costs_of(LOG.splitlines())[Path("tests/a/test_one.py")]
    new = marked(FILE, costs, 1.0)
    assert thorough(new) == {"test_real", "test_many", "test_often"}
    assert thorough(marked(FILE, costs, 2.0)) == {"test_real"}
    assert marked(new, costs, 1.0) == new


def test_of_a_file_with_costly_tests_only_the_cheapest_stays() -> None:
    costs = costs_of(LOG.splitlines())[Path("tests/a/test_one.py")]
    assert thorough(marked(FILE.replace("test_quick", "helper"), costs, 1.0)) == {"test_real", "test_often"}
