"""No code decides by a text that is made for people: reasons, notes and kinds have codes beside their words."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT

PACKAGE = ROOT / "profkit"
TEXTS = {
    "reason", "note", "message", "headline", "advice", "detail", "meaning", "sentence", "why", "title",
    "remark", "consequence", "evidence",
}  # fmt: skip
TESTS = {"startswith", "endswith", "find", "index", "count", "partition"}
# Where it is asked whether a text holds a value already, so that nothing is said twice, and where words are no text.
ALLOWED = {
    "analysis/stacks/files.py": "a unit that is the title is not said again",
    "reporting/views/plan.py": "a version that stands in the detail is not said again",
}


def is_text(node: ast.expr) -> bool:
    """`x.reason`, and `(x.reason or "")`."""
    if isinstance(node, ast.BoolOp):
        return any(is_text(value) for value in node.values)
    return isinstance(node, ast.Attribute) and node.attr in TEXTS


def is_missing(node: ast.expr) -> bool:
    """`None` and `""`: whether there is a text at all may be asked."""
    return isinstance(node, ast.Constant) and node.value in (None, "")


def decisions_by_text(tree: ast.AST) -> Iterator[int]:
    """Lines where a text for people is compared, looked into, or asked how it begins or ends."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            if any(is_text(side) for side in sides) and not any(is_missing(side) for side in sides):
                yield node.lineno
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in TESTS and is_text(node.func.value):
                yield node.lineno
        elif isinstance(node, ast.Match) and is_text(node.subject):
            yield node.lineno


FILES = sorted(PACKAGE.rglob("*.py"))


def test_no_code_decides_by_a_text_for_people() -> None:
    found = [
        f"{place}:{line}"
        for path in FILES
        if (place := path.relative_to(PACKAGE).as_posix()) not in ALLOWED
        for line in decisions_by_text(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert found == []


@pytest.mark.parametrize(
    "source",
    [
        'if reading.reason == "not collected": pass',
        'if "declared" in (reading.reason or ""): pass',
        'if (reading.reason or "").startswith("it needs "): pass',
        'kinds = [p for p in profiles if p.title.endswith(" by function")]',
        "if profile.title in TITLES: pass",
        'match fault.message:\n    case "x": pass',
    ],
)
def test_a_decision_by_text_is_seen(source: str) -> None:
    assert len(list(decisions_by_text(ast.parse(source)))) == 1


@pytest.mark.parametrize(
    "source", ["if reading.reason is None: pass", 'if fault.message != "": pass', "a.code == 'x'"]
)
def test_a_decision_by_a_code_is_none(source: str) -> None:
    assert list(decisions_by_text(ast.parse(source))) == []


def test_what_is_allowed_is_still_there() -> None:
    for place in ALLOWED:
        assert list(decisions_by_text(ast.parse((PACKAGE / Path(place)).read_text()))) or place.startswith(
            "core/"
        )
