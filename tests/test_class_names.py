"""Names of classes: one class each, and no two that a reader could take for each other."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "profkit"
# The calls of an operation, and what counts them in the program.
ALLOWED = {("OperationCall", "OperationCalls")}


def public_classes() -> Counter[str]:
    """Return the names of all public classes, and how many have each."""
    return Counter(
        node.name
        for path in sorted(PACKAGE.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )


@pytest.mark.thorough
def test_a_public_name_is_of_one_class() -> None:
    assert [name for name, count in public_classes().items() if count > 1] == []


def test_no_two_public_classes_differ_by_a_plural_or_a_capital_alone() -> None:
    alike: dict[str, set[str]] = {}
    for name in public_classes():
        alike.setdefault(name.lower().removesuffix("s"), set()).add(name)
    assert {tuple(sorted(names)) for names in alike.values() if len(names) > 1} == ALLOWED
