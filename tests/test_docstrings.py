"""Docstrings are whole, and name exceptions that exist."""

from __future__ import annotations

import ast
import builtins
import re
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "profkit"
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
# `Raises UsageError or process.Missing, where ...`; only words that begin with a capital are names of exceptions.
_RAISES = re.compile(r"\b[Rr]aises?\s+((?:`?[\w.]*?[A-Z]\w+`?(?:,\s+|\s+or\s+|\s+and\s+|,\s+or\s+)?)+)")


@cache
def _package() -> tuple[tuple[tuple[str, str], ...], frozenset[str]]:
    """Every docstring with its place; and the names of classes: the package's, those it imports, and Python's."""
    texts: list[tuple[str, str]] = []
    names = set(dir(builtins))
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, _DOCUMENTED) and (text := ast.get_docstring(node, clean=False)):
                texts.append((f"{path.relative_to(PACKAGE)}:{node.body[0].lineno}", text))
            if isinstance(node, ast.ClassDef):
                names.add(node.name)
            elif isinstance(node, ast.ImportFrom | ast.Import):
                names |= {alias.name.rpartition(".")[2] for alias in node.names}
            elif isinstance(node, ast.Attribute):
                names.add(node.attr)
    return tuple(texts), frozenset(names)


@pytest.mark.thorough
def test_no_docstring_is_torn_by_quotes_at_the_ends_of_its_lines() -> None:
    assert [place for place, text in _package()[0] if re.search(r'"[ ]*\n[ ]*"', text)] == []


def test_an_exception_that_a_docstring_says_is_raised_exists() -> None:
    texts, classes = _package()
    missing = [
        f"{place}: {name}"
        for place, text in texts
        for found in _RAISES.finditer(text)
        for name in re.findall(r"\b_?[A-Z]\w+", found[1])
        if name not in classes
    ]
    assert missing == []
