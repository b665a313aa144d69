"""A missed target and the finding that says what to change are one answer."""

from __future__ import annotations

import pytest

from profkit.analysis.judge.rules import RULES
from profkit.core.types import RunDocument
from profkit.profiling.summarize import targets_for
from profkit.reporting.views.run_insights import shown_findings
from tests.answers.gpu.recordings import RECORDINGS
from tests.answers.trial import recorded_document, truth_set
from tests.reporting.shown import run_text


def recorded(name: str) -> RunDocument:
    return recorded_document(truth_set(gpu=True), name, RECORDINGS / name)


def test_what_a_rule_explains_are_targets() -> None:
    names = {target.name for backend in ("cpu", "cuda", "mps") for target in targets_for(backend)}
    assert {name for rule in RULES for name in rule.explains} - names == set()


@pytest.mark.parametrize(
    ("name", "target", "number", "rule"),
    [
        ("divergent", "warp-efficiency", 1, "divergent-warps"),
        ("landcover", "spills", 1, "register-spills"),
        ("averaged", "copies", 1, "exposed-copies"),
        ("decoder", "gpu-busy", 2, "host-pauses"),
    ],
)
def test_a_missed_target_has_the_number_of_the_finding_that_explains_it(
    name: str, target: str, number: int, rule: str
) -> None:
    document = recorded(name)
    found = shown_findings(document)[number - 1].insight
    assert (found.rule, target in found.targets) == (rule, True)
    lines = run_text(document, color=False, width=80).splitlines()
    line = next(line for line in lines if line.strip().startswith(f"✗ {target} "))
    assert f"see {number}" in line


def test_a_missed_target_that_no_finding_explains_is_missed_and_no_more() -> None:
    document = recorded("clicks")
    assert [one.targets for one in document.insights if one.targets] == []
    lines = run_text(document, color=False, width=80).splitlines()
    assert [line for line in lines if "missed" in line and "see " in line] == []


def test_a_finding_explains_no_target_that_is_met() -> None:
    document = recorded("few_blocks")
    missed = {v.target for v in document.verdicts if v.verdict == "fail" and v.scope.kind == "run"}
    assert {name for one in document.insights for name in one.targets} == {"grid-size"} == missed


def test_a_unit_that_is_busy_for_idle_lanes_is_not_near_the_limit_of_the_work() -> None:
    document = recorded("divergent")
    assert document.account is not None
    row, (finding,) = document.account.rows[0], document.insights
    assert (row.limit, round(row.busy or 0.0, 2)) == ("issue", 0.97)  # 14 % of the lanes are active
    assert row.least is not None
    assert row.least == pytest.approx(0.141 * row.seconds, rel=0.01)
    assert finding.gain is not None
    assert finding.gain.at_most == pytest.approx(1 - 0.141, rel=0.01)
