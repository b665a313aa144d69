"""The truth set holds together, and of two of its programs the first insight is right."""

from __future__ import annotations

import re

import pytest

from profkit.analysis.insights import RULES
from tests.answers.trial import PROGRAMS, answers, marked_lines, source_of, try_program
from tests.conftest import ROOT

INSIGHTS = ROOT / "profkit" / "analysis" / "insights"
WORDS = re.compile(r'^ +(?:Said\()?"([a-z]+(?:-[a-z]+)*)",$', re.MULTILINE)
KNOWN = {rule.name for rule in RULES} | {
    word for path in INSIGHTS.glob("*.py") for word in WORDS.findall(path.read_text())
}
# Patterns that an expert may name, and that no rule looks for.
UNSEEN = {
    "spot", "one-slow-call", "interpreted-loop", "nested-loop", "hashing",
}  # fmt: skip


def test_each_program_has_an_answer_and_each_answer_a_program_with_a_marked_line() -> None:
    assert {path.stem for path in PROGRAMS.iterdir() if path.is_file()} == set(answers())
    assert [name for name in answers() if not marked_lines(source_of(name))] == []


def test_the_patterns_of_the_answers_are_rules() -> None:
    named = {rule for answer in answers().values() for rule in (*answer["accepts"], *answer["forbids"])}
    assert named - KNOWN - UNSEEN == set()


@pytest.mark.parametrize(
    ("name", "changed"), [("shop_db", "because of the later pass cprofile"), ("lock_held", "")]
)
def test_the_first_insight_is_that_of_the_expert(name: str, changed: str) -> None:
    outcome = try_program(name, answers()[name], ["--passes", "timing,stacks,cprofile"])
    assert outcome is not None
    assert outcome.word == "right", outcome
    assert outcome.changed.endswith(changed)
