"""Names of classes: one class each, and no two that a reader could take for each other."""

from __future__ import annotations

import ast
from collections import Counter
from itertools import combinations
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "profkit"
ALLOWED = {("Profile", "Profiler")}  # what was measured, and a tool that measures
SHORT = (
    6  # letters: shorter words of the language differ by a letter, as Case and Cause, and are read as a whole
)


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


@pytest.mark.thorough
def test_no_two_public_classes_differ_by_a_plural_or_a_capital_or_one_letter_of_a_long_name() -> None:
    alike: dict[str, set[str]] = {}
    for name in public_classes():
        text = name.lower()
        # `?` is any letter in its place
        gaps = range(len(text)) if len(text) > SHORT else ()
        keys = {text.removesuffix("s"), text, *(f"{text[:at]}?{text[at + 1 :]}" for at in gaps)}
        for key in keys | {text[:at] + text[at + 1 :] for at in gaps}:
            alike.setdefault(key, set()).add(name)
    pairs = (pair for names in alike.values() for pair in combinations(sorted(names), 2))
    assert {pair for pair in pairs if abs(len(pair[0]) - len(pair[1])) <= 1} == ALLOWED


def test_no_module_binds_a_constant_twice() -> None:
    """After a renaming two thresholds had one name, and the second value stood for both."""
    twice = []
    for path in sorted(PACKAGE.rglob("*.py")):
        body = ast.parse(path.read_text(encoding="utf-8")).body
        targets = [node.targets for node in body if isinstance(node, ast.Assign)]
        targets += [[node.target] for node in body if isinstance(node, ast.AnnAssign) and node.value]
        bound = Counter(
            part.id
            for target in targets
            for node in target
            for part in ast.walk(node)
            if isinstance(part, ast.Name)
        )
        twice += [f"{path.relative_to(PACKAGE)}: {name}" for name, count in bound.items() if count > 1]
    assert twice == []
