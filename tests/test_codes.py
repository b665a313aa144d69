"""No code decides by a text that is made for people: reasons, notes and kinds have codes beside their words."""

from __future__ import annotations

import ast
import dataclasses
import math
import re
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from profkit.analysis.judge.target_checks import TargetCheck
from profkit.analysis.metrics.formulas import formula_table
from profkit.backends import PassFindings
from profkit.core import types as model
from profkit.core.run_folder import run_to_json
from profkit.core.tables import load_yaml
from profkit.core.types import Fact
from profkit.kernels.evaluation.document import evaluation_json, read_evaluation
from profkit.profiling.summarize import summarize_report, targets_for
from profkit.regression.nightly.session import NightState
from profkit.reporting.facts import fact_text, has_sentence
from profkit.reporting.sentences.catalogue import SENTENCES
from profkit.runtime.passes.host import operation_lines as lines
from profkit.runtime.region.record import RegionRecord
from tests.conftest import ROOT
from tests.spoken import run_sentences, sentences

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


@pytest.mark.thorough
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


CALLS = ("Fact", "Fact.of", "fact")


def is_constant(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant)


def is_code(key: ast.expr | None) -> bool:
    return isinstance(key, ast.Constant) and key.value == "code"


def codes_used() -> Iterator[str]:
    """The codes of facts that the code names, those of formulas and of profkit's own targets."""
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Dict):  # the plain form, of what is loaded into a program
                named = zip(node.keys, node.values, strict=True)
                yield from (str(ast.literal_eval(v)) for k, v in named if is_code(k) and is_constant(v))
            if isinstance(node, ast.Call) and ast.unparse(node.func) in CALLS and node.args:
                code = node.args[0]
                if isinstance(code, ast.Constant):
                    yield str(code.value)
                elif isinstance(code, ast.IfExp):
                    yield from (
                        str(one.value) for one in (code.body, code.orelse) if isinstance(one, ast.Constant)
                    )
    yield from (lines.COMPILED, lines.PROFILED, lines.ELSEWHERE, lines.RAISED)
    yield from (f"counter-set-{name}" for name in load_yaml(PACKAGE / "profilers" / "ncu" / "sets.yaml"))
    for tool in ("ncu", "perf", "valgrind"):
        table = formula_table(tool)
        yield from (*table.absent.values(), *table.missing.values())
        ways = [way for ways in table.formulas.values() for way in ways]
        yield from (code for way in ways for code in (way.note, way.zero) if code)
    for target in (target for backend in ("cpu", "cuda", "mps") for target in targets_for(backend)):
        yield f"value {target.says}"
        yield from (check.because for check in target.checks if isinstance(check, TargetCheck))


@pytest.mark.thorough
def test_every_code_has_its_words() -> None:
    assert {code for code in codes_used() if not has_sentence(code)} == set()


@pytest.mark.parametrize("file", ["cuda/ncu.truths.raw.base-units.csv", "valgrind/kernels.l2.callgrind"])
def test_what_a_report_says_is_codes_with_values(file: str) -> None:
    document = run_to_json(summarize_report(ROOT / "tests" / "data" / file))
    assert document["readings"]
    assert run_sentences(document) == []


def test_what_became_of_tests_is_codes_with_values() -> None:
    recorded = read_evaluation(ROOT / "tests" / "data" / "evaluations" / "own-kernels")
    assert any(result.reason for result in recorded.results)
    assert sentences(evaluation_json(recorded)) == []
    assert sentences([{"reason": "it is wrong in some places"}]) != []


def fields_of(*kinds: Any) -> Iterator[tuple[str, str, Any]]:
    """Type, name and hint of every field in these types, and in those that they are made of."""
    waiting, seen = list(kinds), set[Any]()
    while waiting:
        kind = waiting.pop()
        if kind in seen:
            continue
        seen.add(kind)
        hints = typing.get_type_hints(kind) if dataclasses.is_dataclass(kind) else {}
        yield from ((kind.__name__, name, hint) for name, hint in hints.items())
        waiting += (*hints.values(), *typing.get_args(kind))


def is_a_text(hint: Any) -> bool:
    """`str`, and `tuple[str, ...] | None`."""
    return hint is str or any(map(is_a_text, typing.get_args(hint)))


def test_what_is_said_in_a_run_is_no_text() -> None:
    """What a tool's own error means, in words, is one: `Fault`."""
    said = {"notes", "note", "warnings", "remarks", "remark", "reason", "doubt", "guessed", "lost", "absent"}
    kinds = (model.RunDocument, model.Report, model.SweepDocument, RegionRecord, PassFindings)
    found = [(kind, name, is_a_text(hint)) for kind, name, hint in fields_of(*kinds) if name in said]
    assert {("RunDocument", "notes", False), ("SampleSet", "remarks", False)} <= set(found)
    assert [kind for kind, _, text in found if text] == ["Fault"]


def test_what_is_said_in_comparisons_nights_and_generations_is_no_text() -> None:
    """But for a line of a program, the advice that a file of targets has, and the conclusions from a profile."""
    said = {*TEXTS, "notes", "remarks", "doubt", "doubts", "text", "warnings", "method"}
    kinds = (
        model.ComparedSuite, model.BisectDocument, model.Night, NightState, model.Entry, model.Trend,
        model.SweepDocument, model.EvaluationDocument, model.GenerationDocument,
    )  # fmt: skip
    texts = {f"{kind}.{name}" for kind, name, hint in fields_of(*kinds) if name in said and is_a_text(hint)}
    conclusions = {"Insight.title", "Insight.evidence"}
    assert texts == {"BlamedLine.text", "Verdict.advice", *conclusions}


def worded(call: ast.Call) -> bool:
    """Whether what it is called with has words that stand in the code."""
    texts = [node.value for node in ast.walk(call.args[0]) if isinstance(node, ast.Constant)]
    return any(re.search(r"[a-z]{2}", text) for text in texts if isinstance(text, str))


def messages_of_ours(source: str) -> list[int]:
    """Lines where a sentence of ours is said to be another program's."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    return [call.lineno for call in calls if ast.unparse(call.func) == "Fact.message" and worded(call)]


@pytest.mark.thorough
def test_no_sentence_of_ours_is_a_message_of_another_program() -> None:
    sources = {path.relative_to(PACKAGE).as_posix(): path.read_text(encoding="utf-8") for path in FILES}
    assert {name: lines for name, text in sources.items() if (lines := messages_of_ours(text))} == {}
    assert messages_of_ours('Fact.message(f"{tool} left nothing")\nFact.message(f"{kind}: {said}")') == [1]


def test_a_fact_without_its_values_is_its_code() -> None:
    """As one that a program wrote into its own record may be."""
    codes = list(SENTENCES)
    texts = {code: fact_text(Fact(code, {"count": math.nan, "value": math.nan})) for code in codes}
    assert {code for code, text in texts.items() if not text} == {"together", "not-python"}  # of parts alone
    assert fact_text(Fact("perf-left")) == "perf-left"
    assert fact_text(Fact("torn-lines", {"count": math.nan})) == "torn-lines"
