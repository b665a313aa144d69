"""No code decides by a text that is made for people: reasons, notes and kinds have codes beside their words."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from profkit.analysis.metrics.formulas import formula_table
from profkit.core.run_folder import run_to_json
from profkit.core.tables import load_yaml
from profkit.profiling.summarize import summarize_report, targets_for
from tests.conftest import ROOT
from tests.spoken import case_sentences, run_sentences

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


def codes_used() -> Iterator[str]:
    """The codes of facts that the code names, those of formulas and of profkit's own targets."""
    for path in FILES:
        source = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(source)) if "Fact" in source else ():
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("Fact", "Fact.of") and node.args:
                code = node.args[0]
                if isinstance(code, ast.Constant):
                    yield str(code.value)
                elif isinstance(code, ast.IfExp):
                    yield from (
                        str(one.value) for one in (code.body, code.orelse) if isinstance(one, ast.Constant)
                    )
    for tool in ("ncu", "perf", "valgrind"):
        table = formula_table(tool)
        yield from (*table.absent.values(), *table.missing.values())
        ways = [way for ways in table.formulas.values() for way in ways]
        yield from (code for way in ways for code in (way.note, way.zero) if code)
    for target in (target for backend in ("cpu", "cuda", "mps") for target in targets_for(backend)):
        yield f"value {target.says}"
        yield from (
            one.otherwise for one in (*target.applies, *target.excused, *target.doubted, *target.guard)
        )


def test_every_code_has_its_words() -> None:
    words = load_yaml(PACKAGE / "reporting" / "facts.yaml")
    assert {code for code in codes_used() if code not in words} == set()


@pytest.mark.parametrize("file", ["cuda/ncu.truths.raw.base-units.csv", "valgrind/kernels.l2.callgrind"])
def test_what_a_report_says_is_codes_with_values(file: str) -> None:
    document = run_to_json(summarize_report(ROOT / "tests" / "data" / file))
    assert document["readings"]
    assert run_sentences(document) == []


def test_what_became_of_tests_is_codes_with_values() -> None:
    tests = json.loads(
        (ROOT / "tests" / "data" / "evaluations" / "own-kernels" / "evaluation.json").read_text("utf-8")
    )["tests"]
    assert any(test["reason"] for test in tests)
    assert case_sentences(tests) == []
    assert case_sentences([{"reason": "it is wrong in some places"}]) != []


def test_no_code_has_two_sentences() -> None:
    """Of two keys of one name YAML takes the last, without a word."""
    lines = (ROOT / "profkit/reporting/facts.yaml").read_text().splitlines()
    keys = [line.partition(": ")[0] for line in lines if line and line[0] not in " #"]
    assert sorted({key for key in keys if keys.count(key) > 1}) == []
