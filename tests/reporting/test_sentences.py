"""The sentences of facts: what each takes from its fact, and what stands in it."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator

import pytest

from profkit.core.types import Fact
from profkit.reporting.facts import fact_text
from profkit.reporting.sentences import formats
from profkit.reporting.sentences.brief import REASONS
from profkit.reporting.sentences.catalogue import SENTENCES
from profkit.reporting.sentences.table import (
    Parts,
    SentenceTable,
    TextWithNames,
    at_value,
    before_part,
    of_judged_value,
    values_of,
)
from tests.conftest import ROOT

PACKAGE = ROOT / "profkit"


@pytest.mark.parametrize("table", [SENTENCES, REASONS], ids=["sentences", "brief"])
def test_each_parameter_of_a_sentence_is_something_that_a_fact_has(table: SentenceTable) -> None:
    functions = {code: function for code in table if callable(function := table[code])}
    assert functions
    for code, function in functions.items():
        for name, kind, _ in values_of(function):
            assert kind in (float, str, Parts) or hasattr(kind, "of_fact"), f"{code}: {name}"


def made_facts() -> Iterator[tuple[str, str, set[str], set[str]]]:
    """Place, code, and the values that may be numbers and names, of each fact that is made with all values by name."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or ast.unparse(node.func) != "Fact.of":
                continue
            if not node.args or any(keyword.arg is None for keyword in node.keywords):
                continue
            codes = (
                (node.args[0].body, node.args[0].orelse)
                if isinstance(node.args[0], ast.IfExp)
                else node.args[:1]
            )
            texts = {k.arg for k in node.keywords if is_text(k.value)}
            numbers = {k.arg for k in node.keywords if is_number(k.value)}
            names = {k.arg or "" for k in node.keywords}
            for code in codes:
                if isinstance(code, ast.Constant):
                    place = f"{path.relative_to(PACKAGE)}:{node.lineno}"
                    yield place, str(code.value), names - texts, names - numbers


def is_text(node: ast.expr) -> bool:
    """Whether an expression is certainly a text."""
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def is_number(node: ast.expr) -> bool:
    """Whether an expression is certainly a number."""
    if isinstance(node, ast.Call):
        return ast.unparse(node.func) in ("len", "float", "int", "max", "min", "sum")
    return isinstance(node, ast.BinOp) and not isinstance(node.op, (ast.Add, ast.Mod, ast.Mult))


@pytest.mark.thorough
def test_each_fact_has_the_values_of_its_sentence() -> None:
    lacking = []
    for place, code, numbers, names in made_facts():
        sentence = SENTENCES.get(code, "")
        if isinstance(sentence, str):
            continue
        for name, kind, optional in values_of(sentence):
            known = {float: numbers, str: names}.get(kind)
            if known is not None and name not in known and not optional:
                lacking.append(f"{place}: {code} needs {name}")
    assert lacking == []


def test_a_code_has_one_sentence() -> None:
    table = SentenceTable({"no-row": "it has no row"})
    with pytest.raises(ValueError, match="no-row has two sentences"):
        SentenceTable.merged([table, SentenceTable({"no-row": "no row"})])
    with pytest.raises(ValueError, match="two sentences"):
        table.add("no-row")(lambda: "no row")


def test_a_text_with_names_has_nothing_but_names_in_braces() -> None:
    texts = [sentence.text for sentence in SENTENCES.values() if isinstance(sentence, TextWithNames)]
    assert len(texts) > 50
    for text in texts:
        assert re.search(r"\{[a-z]+\}", text), text
        assert not re.search(r"[{}]", re.sub(r"\{[a-z]+\}", "", text)), text


# Sentences of limits, sizes and totals, which are never one, and of the ids of processes.
MANY = {
    "file-too-long", "first-operations", "first-ranges", "in-launches", "kernels-of-first-call", "largest-counted",
    "many-regions", "mostly-imports", "operators-cut", "some-runs", "too-fast", "too-fast-on-gpu", "too-many-rows",
    "too-wide-rows", "zero-in-samples", "different-simulations", "few-blocks", "repeated-part",
    "watched-and-goes-on", "watched-to-its-end",
}  # fmt: skip
_SINGULAR = "is|was|has|fits|ends|says|reaches|lies|shares|gives|process|times (?:the|as)"
_PLURAL = re.compile(
    rf"(?<![\w.,])1 (?:(?!(?:{_SINGULAR})\b)[a-z]+[a-z]s\b|[a-z]{{2,}}(?: [a-z]+)* (?:are|were|have|lie)\b)"
)


def test_one_thing_is_written_in_the_singular() -> None:
    found = {}
    for code, sentence in SENTENCES.items():
        if callable(sentence) and code not in MANY:
            values = {name: kind for name, kind, _ in values_of(sentence)}
            numbers = {name: 1.0 if kind is float else 2.0 for name, kind in values.items()}
            names = {name: "x" for name, kind in values.items() if kind is str}
            text = SENTENCES.write(Fact(code, numbers, names), say)
            if _PLURAL.search(text):
                found[code] = text
    assert found == {}


def one_table() -> SentenceTable:
    """A table of a sentence of each kind."""
    table = SentenceTable({"quiet": "the machine was quiet"})
    table.add_each(TextWithNames, {"named": "{name} is on {place}, not {name}2"})
    table.add_each(before_part, {"hidden": "they are hidden"})
    table.add_each(at_value, {"low": "it is at {} of the peak"})
    table.add_each(of_judged_value, {"missed": "{} missed"})

    @table.add("few")
    def few(count: float, name: str, more: float = 0) -> str:
        return f"{formats.count_of(count, 'sample')} of {name}{formats.and_more(more)}"

    @table.add("skipped")
    def skipped(parts: Parts) -> str:
        return f"{parts.first} / {parts.second}{parts.because}{parts.rest}"

    return table


def say(fact: Fact) -> str:
    return fact.code


@pytest.mark.parametrize(
    ("fact", "text"),
    [
        (Fact("quiet"), "the machine was quiet"),
        (Fact("quiet", {"count": 2.0}), "the machine was quiet"),  # a value more than needed
        (Fact.of("few", count=1, name="f"), "1 sample of f"),
        (Fact.of("few", count=2, name="f", more=3), "2 samples of f and 3 more"),
        (Fact.of("few", count=2), "few"),  # a name is missing
        (Fact.of("few", count="2", name="f"), "few"),  # a name where a number belongs
        (Fact.of("few", count=math.nan, name="f"), "few"),
        (Fact("few", {"count": None}, {"name": "f"}), "few"),  # type: ignore[dict-item]
        (Fact.of("few", count=math.inf, name="f"), "few"),
        (Fact("loud"), "loud"),
        (Fact.of("named", name="{place}", place="cpu"), "{place} is on cpu, not {place}2"),
        (Fact.of("named", name="f"), "named"),
        (Fact.of("named", name="f", place=1), "named"),
        (Fact.of("hidden", Fact("a")), "they are hidden: a"),
        (Fact.of("hidden"), "they are hidden: not known"),
        (Fact.of("low", value=12.3, unit="%"), "it is at 12.3 % of the peak"),
        (Fact.of("low", value="{}"), "low"),
        (Fact.of("missed", value=12.3, unit="%", quality="simulated"), "12.3 % missed (simulated)"),
        (Fact.of("skipped"), "not known / not known"),
        (Fact.of("skipped", Fact("a"), Fact("b")), "a / b: a: b; b"),
    ],
)
def test_what_a_table_writes(fact: Fact, text: str) -> None:
    assert one_table().write(fact, say) == text


@pytest.mark.parametrize(
    ("written", "text"),
    [
        (formats.count_of(1.0, "pass", "passes"), "1 pass"),
        (formats.count_text(1234567.0), "1,234,567"),
        (formats.count_text(2.5), "2.50"),
        (formats.more_of(1, "is worse", "are worse"), "; 1 more is worse"),
        (formats.more_of(0, "is worse", "are worse"), ""),
        (formats.and_more_are(2), " and 2 more are"),
        (formats.and_more_are(0), " is"),
        (formats.percent(0.02), "2 %"),
        (formats.signed_percent(-0.084), "-8.40 %"),
        (formats.whole_percent(0.449), "45 %"),
        (formats.share_text(1.2), "100.0 %"),
        (formats.busy_text(45.4), "45 %"),
        (formats.busy_text(3.21), "3.2 %"),
        (formats.busy_text(0.01), "less than 0.1 %"),
        (formats.relative_amount(100, 112.3), "12 % more"),
        (formats.relative_count(100, 92), "8.0 % fewer"),
        (formats.relative_count(100, 240), "2.40 times as many"),
        (formats.relative_amount(0, 5), "more"),
        (formats.title_within("dram.bytes"), "memory traffic"),
        (formats.unit_names("registers shared"), "registers and shared memory"),
        (formats.stall_text("no_such_stall"), "no such stall"),
        (formats.smallest_change(0.02), " (a change of 2 % would have been seen)"),
    ],
)
def test_how_a_sentence_writes_numbers_and_names(written: str, text: str) -> None:
    assert written == text


def test_a_change_is_told_with_its_subject_and_its_size() -> None:
    change = Fact.of(
        "worse", metric="time", kind="kernel", scope="void gemm<float>(int)", unit="s",
        before=0.010, after=0.012, ratio=1.2, more=2,
    )  # fmt: skip
    told = "Worse: time of gemm<float> rose by 20.0 %, from 10.0 ms to 12.0 ms; 2 more are worse."
    assert fact_text(change) == told
