"""Machine code: what watched calls prove of a place, and where the rules stay silent."""

from __future__ import annotations

from dataclasses import replace

import pytest

from profkit.analysis.judge.findings import find_insights
from profkit.core.types import (
    CodeLine,
    CodeSpot,
    Insight,
    LineCode,
    Place,
    RegisterFact,
    RunDocument,
    SampledTime,
)
from tests import documents

AT = Place(function="blur", file="blur.cpp", line=12)
BELOW = (CodeLine("__ieee754_exp_fma", None, None, 0.8), CodeLine("exp", None, None, 0.9))
SPOT = CodeSpot(0.9, 3.6, "native", AT, code=LineCode("w = std::exp(-k * k / s);"), below=BELOW)
FACT = RegisterFact("argument", "blur", "blur.cpp", 13, 2000, 2000, number=17, name="exp")
NAMES = RegisterFact("names", "", None, None, 40, 40, number=1)


def judged(spot: CodeSpot, *facts: RegisterFact) -> dict[str, Insight]:
    sampled = SampledTime(4.0, 4.0, native=True, registers=facts)
    document: RunDocument = replace(documents.empty(), sampled=(sampled,), hot_spots=(spot,))
    return {one.rule: one for one in find_insights(document)}


def test_a_function_is_said_to_be_computed_again_where_its_arguments_were_the_same() -> None:
    found = judged(SPOT, FACT)["same-argument"]
    assert found.title == "exp is computed again and again for the same numbers"
    assert "of 2,000 calls of exp that were watched, one after the other, 17 had different" in found.evidence
    assert found.gain is not None
    assert found.gain.at_most == pytest.approx(0.81)
    assert "same-argument" not in judged(SPOT, replace(FACT, function="other"))
    assert "same-argument" not in judged(SPOT, replace(FACT, line=40))
    assert "same-argument" not in judged(replace(SPOT, below=()), FACT)  # the time is elsewhere


def test_a_single_precision_function_and_a_place_without_lines_are_the_same_case() -> None:
    unlined = replace(SPOT, where=Place(function="blur"), code=None)
    assert judged(unlined, replace(FACT, file=None, line=None, name="expf"))[
        "same-argument"
    ].title.startswith("expf is")


def test_an_exponent_is_said_as_it_was_watched() -> None:
    spot = replace(SPOT, below=(CodeLine("__ieee754_pow_fma", None, None, 0.8),))
    found = judged(spot, replace(FACT, kind="exponent", name="pow", number=1))["general-power"]
    assert "the power of 0.5" in found.title
    assert "in each of 2,000 calls" in found.evidence
    assert "general-power" not in judged(SPOT, replace(FACT, kind="exponent", name="pow", number=1))


def test_files_are_the_same_again_where_calls_are_many_for_each() -> None:
    spot = replace(SPOT, below=(CodeLine("std::filesystem::exists", None, None, 0.5),))
    found = judged(spot, NAMES)["same-files"]
    assert "40 looks at such calls saw 1 different name" in found.evidence
    # 37 different ones in 40 looks: some 270 files, and time for 36,000 calls.
    assert "same-files" in judged(spot, replace(NAMES, number=37))
    # Several times each at most: a folder that is gone through.
    assert "same-files" not in judged(replace(spot, seconds=0.2), replace(NAMES, number=37))
    assert "same-files" not in judged(SPOT, NAMES)  # the time is elsewhere


def test_closing_belongs_to_files_that_are_opened_again() -> None:
    opening = replace(SPOT, share=0.37, below=(CodeLine("__fopen_internal", None, None, 1.0),))
    closing = replace(
        SPOT, share=0.44, where=replace(AT, line=16), below=(CodeLine("fclose", None, None, 1.0),)
    )
    sampled = SampledTime(4.0, 4.0, native=True, registers=(NAMES,))
    document = replace(documents.empty(), sampled=(sampled,), hot_spots=(closing, opening))
    first = find_insights(document)[0]
    assert (first.rule, first.where.line, first.gain and round(first.gain.at_most, 2)) == (
        "same-files",
        12,
        0.81,
    )
    elsewhere = replace(closing, where=replace(AT, function="other", line=16))
    assert find_insights(replace(document, hot_spots=(elsewhere, opening)))[0].rule == "hot-spot"
