"""Whose a Python function is: the program's own, or an installed package's."""

from __future__ import annotations

import pytest

from profkit.analysis.stacks.python_code import is_users_code


@pytest.mark.parametrize(
    ("file", "function", "own"),
    [
        ("/work/train.py", "<module>", True),
        ("/work/train", "work", True),  # a script needs no suffix
        ("/work/train", "<module>", True),
        ("/usr/bin/report", "summarize", True),
        ("/venv/bin/pytest", "<module>", False),  # what pip writes to start a package's command
        ("C:\\venv\\Scripts\\pytest", "<module>", False),
        ("/venv/lib/python3.12/site-packages/tool/run", "work", False),
        ("/usr/lib/libc.so.6", "memcpy", False),
        ("<frozen importlib._bootstrap>", "_load", False),
        ("[kernel]", "read", False),
        ("~", "<method 'sort' of 'list' objects>", False),
        (None, "work", False),
    ],
)
def test_a_function_is_the_programs_by_its_file_whatever_the_suffix(
    file: str | None, function: str, own: bool
) -> None:
    assert is_users_code(file, function) is own
