"""Whose a Python function is: the program's own, or an installed package's."""

from __future__ import annotations

import pytest

from profkit.analysis.stacks.python_code import PythonSample, PythonTally, is_users_code, is_users_frame
from profkit.core.types import Frame


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


APP = Frame("<module>", "Python", "/app/a.py", 1)
LIBRARY = Frame("lambdify", "Python", "/usr/lib/python3.11/site-packages/sympy/lambdify.py", 90)
TEXT = Frame("<module>", "Python", "<string>", 1)
SCIPY = Frame("<module>", "Python", "/usr/lib/python3.11/site-packages/scipy/__init__.py", 1)
NUMPY = Frame("<module>", "Python", "/usr/lib/python3.11/site-packages/numpy/__init__.py", 1)


@pytest.mark.parametrize(
    ("frames", "own"),
    [
        ((TEXT,), True),
        ((APP, TEXT), True),
        ((APP, LIBRARY, TEXT), False),
    ],  # `python -c`, `exec` here and there
)
def test_text_that_a_library_executes_is_the_librarys(frames: tuple[Frame, ...], own: bool) -> None:
    assert is_users_frame([(frame, 1) for frame in frames], len(frames) - 1) is own


def test_an_import_that_a_library_makes_at_its_first_use_is_of_the_line_that_uses_it() -> None:
    tally = PythonTally()
    frames = (APP, LIBRARY, TEXT, None, SCIPY, None, NUMPY)
    tally.add_import(PythonSample(frames, (28, 95, 1, 0, 3, 0, 7), 1.0, 1.0, first=True))
    (imports,) = [profile for profile in tally.profiles({}) if profile.kind == "sampled-imports"]
    places = {one.function: [(line.file, line.line) for line in one.callers] for one in imports.hotspots}
    assert places == {"scipy": [("/app/a.py", 28)], "numpy": [(SCIPY.file, 3)]}
