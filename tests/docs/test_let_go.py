"""*What was let go* names nothing that works, and one number stands wherever a reader is told of it."""

from __future__ import annotations

import re

import pytest

from profkit.core.types import Fact
from profkit.regression.detection.nights import MIN_LEVEL_NIGHTS
from profkit.reporting.facts import fact_text
from tests.conftest import ROOT
from tests.docs.test_commands import options

VERBS = {  # the area of a row, and the verb whose options it may name
    "A run": "profile",
    "Doctor": "doctor",
    "Comparing": "compare",
    "Bisect": "bisect",
    "Nights": "nightly",
    "Sweep": "sweep",
    "Evaluation": "evaluate",
    "Generation": "generate",
}


def rows() -> list[tuple[str, str]]:
    """Area and what went, of each row of the table; a row without an area belongs to that above."""
    text = (ROOT / "docs" / "decisions.md").read_text(encoding="utf-8")
    table = text.split("## What was let go\n")[1].split("\n## ")[0]
    found: list[tuple[str, str]] = []
    for line in re.findall(r"^\| (.*) \|$", table, re.MULTILINE)[2:]:
        area, went, _ = (cell.strip() for cell in re.split(r"(?<!\\) ?\| ", f" {line}")[-3:])
        found.append((area or found[-1][0], went))
    return found


@pytest.mark.parametrize("area", sorted(VERBS))
def test_no_option_that_a_verb_has_is_told_to_be_gone(area: str) -> None:
    own = [went for name, went in rows() if name == area]
    assert own
    named = {option for went in own for option in re.findall(r"(?<!with )(?<!in )`(--[a-z-]+)`", went)}
    known = set(options(VERBS[area]))
    assert "--format" in known
    assert named & known == set()


def test_the_night_from_which_the_past_judges_is_one_number_everywhere() -> None:
    assert MIN_LEVEL_NIGHTS == 7
    decisions = (ROOT / "docs" / "decisions.md").read_text(encoding="utf-8")
    nightly = (ROOT / "docs" / "nightly.md").read_text(encoding="utf-8")
    example = (ROOT / "profkit" / "regression" / "nightly" / "example.yaml").read_text(encoding="utf-8")
    assert "judged from the eighth night on" in fact_text(Fact("night new"))
    assert "a level is judged from its eighth night" in decisions
    assert re.search(r"^\| all else.*\| 8 \| below \|$", nightly, re.MULTILINE)
    assert "the past decides, after seven nights" in example
