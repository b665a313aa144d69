"""The truth set holds together, and of two of its programs the first insight is right."""

from __future__ import annotations

import re

import pytest

from profkit.analysis.judge.rules import RULES
from profkit.core.tables import load_yaml
from tests.answers.trial import marked_lines, truth_set, try_program
from tests.conftest import ROOT

JUDGE = ROOT / "profkit" / "analysis" / "judge"
WORDS = re.compile(r'(?:^ +|say\(spot, )"([a-z]+(?:-[a-z]+)*)",', re.MULTILINE)
KNOWN = {rule.name for rule in RULES} | {
    word for path in JUDGE.rglob("*.py") for word in WORDS.findall(path.read_text())
}
KNOWN |= {name.partition(".")[0] for name in load_yaml(JUDGE / "words_program.yaml")["host"]}
# Patterns that an expert may name, and that no rule looks for.
UNSEEN = {
    "none", "device-sync", "graph-breaks", "written-out-attention", "written-out-norm", "slow-loader", "optimizer-loop",
    "spot", "one-slow-call", "interpreted-loop", "nested-loop", "hashing",
}  # fmt: skip


@pytest.mark.parametrize("gpu", [False, True])
def test_each_program_has_an_answer_and_each_answer_a_program_with_a_marked_line(gpu: bool) -> None:
    truths = truth_set(gpu)
    assert {path.stem for path in truths.programs.iterdir() if path.is_file()} == set(truths.answers)
    assert [name for name in truths.answers if not marked_lines(truths.source_of(name))] == []


@pytest.mark.parametrize("gpu", [False, True])
def test_the_patterns_of_the_answers_are_rules(gpu: bool) -> None:
    answers = truth_set(gpu).answers.values()
    named = {rule for answer in answers for rule in (*answer["accepts"], *answer["forbids"])}
    assert named - KNOWN - UNSEEN == set()


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "changed"), [("shop_db", "updated by the later pass cprofile"), ("lock_held", "")]
)
def test_the_first_insight_is_that_of_the_expert(name: str, changed: str) -> None:
    outcome = try_program(truth_set(), name, ["--passes", "timing,stacks,cprofile"])
    assert outcome is not None
    assert outcome.word == "right", outcome
    assert outcome.changed.startswith(changed)
    assert bool(outcome.changed) == bool(changed)
