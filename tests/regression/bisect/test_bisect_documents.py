"""What a bisection leaves and shows: its JSON by the published schema, and the page with the row of commits."""

from __future__ import annotations

import json
from dataclasses import replace

import jsonschema
import pytest

from profkit.core.types import (
    BisectDocument,
    BisectOptions,
    BisectPart,
    BisectSearch,
    BisectStep,
    SkippedCommit,
)
from profkit.reporting.json import bisection
from profkit.reporting.view import plain_text
from profkit.reporting.views.bisect import view
from tests import schemas

ROW = tuple(f"{number:x}" * 40 for number in range(6))
PAIRS = ((1.0, 1.2),) * 4


def document(subject: str = "a change") -> BisectDocument:
    """A bisection of five commits whose third made it slower."""
    steps = (
        BisectStep("ends", ROW[0], ROW[5], PAIRS, "different", 1.2, 1.1, 1.3, 9.0),
        BisectStep("search", ROW[0], ROW[3], PAIRS, "different", 1.19, 1.1, 1.3, 9.0, 0.9),
        BisectStep("search", ROW[0], ROW[2], PAIRS, "ambiguous", 1.01, 0.95, 1.08, 9.0, 0.03),
        BisectStep("confirm", ROW[2], ROW[3], PAIRS, "different", 1.2, 1.1, 1.3, 9.0, 0.99),
    )
    part = BisectPart("one", ROW[2], (ROW[3],), 0.97, 1.2, 1.1, 1.3, "different", ("a.py +1 -2",))
    search = BisectSearch(
        ROW[0],
        ROW[1:],
        steps=steps,
        skipped=(SkippedCommit(ROW[4], "no build"),),
        state="found",
        parts=(part,),
        probabilities={ROW[2]: 0.02, ROW[3]: 0.97},
    )
    options = BisectOptions(60.0, 0.02, 1.0, None)
    return BisectDocument("", ("./a b",), None, ".", "v1", "HEAD", options, search, {ROW[3]: subject})


def test_the_document_is_one_by_its_schema() -> None:
    checker = jsonschema.Draft202012Validator(schemas.bisect())
    told = json.loads(bisection(document()))
    checker.validate(told)
    del told["search"]["steps"][0]["pairs"]
    with pytest.raises(jsonschema.ValidationError, match="'pairs' is a required property"):
        checker.validate(told)


def test_a_commit_that_made_half_of_the_change_is_not_said_to_have_made_all_of_it() -> None:
    whole = document()
    search = whole.search
    half = replace(search, parts=(replace(search.parts[0], ratio=1.1),))
    said = "It is +20.0 % between both ends: another commit may have made the rest."
    assert said in plain_text(view(replace(whole, search=half)).headline[0])
    assert said not in plain_text(view(whole).headline[0])


def test_an_answer_below_the_certainty_says_so() -> None:
    whole = document()
    search = whole.search
    unsure = replace(search, parts=(replace(search.parts[0], probability=0.91),))
    told = plain_text(view(replace(whole, search=unsure)).headline[0])
    assert "made it 20 % slower (probability 91 %)" in told
    assert "less than the 95 %" in told
    assert "less than" not in plain_text(view(whole).headline[0])
