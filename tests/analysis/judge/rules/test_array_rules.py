"""Arrays whose elements are far apart in memory, by the strides that were seen at a line."""

from __future__ import annotations

from dataclasses import replace

import pytest

from profkit.analysis.judge.rules.spot_arrays import distant_elements
from profkit.analysis.judge.rules.spot_values import mask_for_each
from profkit.analysis.stacks.source import line_code
from profkit.core.types import ArrayForm, Beneath, CodeSpot, LineCode, LineCount, Place, RunDocument
from tests import documents

FRAME = ArrayForm("<f4", (480, 640), "", 768)
SUM = ArrayForm("<f4", (480, 640), "C", 4)
UPDATE = "background += 0.05 * (frame - background)"
FILE = "/work/cube.py"


def worked_on(
    *statements: str, times: int = 192, library: str | None = None, **forms: ArrayForm
) -> RunDocument:
    """A run whose lines, from 21 on, compute with these arrays, the first one longest."""
    spots, counts = [], []
    held = {name: (form,) for name, form in ({"background": SUM, "frame": FRAME} | forms).items()}
    for number, statement in enumerate(statements, 21):
        place = Place(function="detect", file=FILE, line=number)
        under = Beneath("std", library) if library is not None else None
        code = LineCode(statement, statement=statement)
        spots.append(CodeSpot(0.4, 4.0, "python", place, under, code))
        counts.append(LineCount(FILE, number, "detect", times, 11, held))
    return replace(documents.empty(), hot_spots=tuple(spots), line_counts=tuple(counts))


def said(document: RunDocument) -> list[int | None]:
    found = [distant_elements(document, spot) for spot in document.hot_spots]
    return [one.where.line for one in found if one is not None]


def test_a_view_whose_elements_are_far_apart_is_said_once_with_all_of_its_lines() -> None:
    document = worked_on(UPDATE, "threshold = frame.mean() + 4.0 * frame.std()")
    found, *other = (distant_elements(document, spot) for spot in document.hot_spots)
    assert found is not None
    assert other == [None]
    assert found.title.endswith("they are 768 bytes apart")
    assert "so it is in line 22" in found.evidence
    assert "each 4 bytes of it cost a cache line of 64" in found.evidence
    assert found.gain is not None
    assert found.gain.at_most == pytest.approx(0.8 * (1 - 4 / 64))
    assert "frame = numpy.ascontiguousarray(frame)" in found.change


@pytest.mark.parametrize(
    "document",
    [
        worked_on(UPDATE, frame=replace(FRAME, apart=4)),  # after the advice
        worked_on(UPDATE, frame=replace(FRAME, apart=0)),  # broadcast, or of an older recording
        worked_on(UPDATE, frame=replace(FRAME, apart=32)),  # two to a cache line
        worked_on(UPDATE, frame=replace(FRAME, shape=(40, 50))),  # in the caches
        worked_on(UPDATE, frame=ArrayForm("|V96", (480, 640), "", 192)),  # records: the elements are large
        worked_on(UPDATE, times=1),  # a copy would cost as much
        worked_on("frame = numpy.ascontiguousarray(frame)"),  # the mended line itself
        worked_on("value = frame[3, 4] + background[3, 4]"),  # single elements
        worked_on("detect_all(frame)"),  # somebody else's work
        worked_on("frame.tofile(file)"),
        worked_on(UPDATE, library="pandas"),
    ],
)
def test_a_view_that_costs_nothing_is_not_said(document: RunDocument) -> None:
    assert said(document) == []


@pytest.mark.parametrize(
    "statement",
    [
        "total = frame.sum()",
        "numpy.exp(frame, out=background)",
        "mask = frame > 0.5",
        "total = -frame",
        "background -= frame",
    ],
)
def test_whatever_computes_with_all_of_a_view_counts(statement: str) -> None:
    assert said(worked_on(statement)) == [21]


@pytest.mark.parametrize(
    ("text", "library", "calls", "rule"),
    [
        ("return sales.amount[sales.shop == shop]", "_multiarray_umath.cpython-311.so", 5000, True),
        ("return sales.amount[sales.shop == shop]", "libfoo.so", 5000, False),  # of what, nobody knows
        ("return sales.amount[sales.shop == shop]", "_multiarray_umath.cpython-311.so", 5, False),
        ("return sales.amount[shop]", "_multiarray_umath.cpython-311.so", 5000, False),
    ],
)
def test_a_mask_of_what_an_object_holds_is_known_by_the_library_that_has_the_time(
    text: str, library: str, calls: int, rule: bool
) -> None:
    """Attributes of an argument are not looked at: 5,000 masks of 1.7 million rows took 6 s, and nothing was said."""
    code = line_code(f"def baskets_of(sales, shop):\n    {text}\n", 2)
    spot = CodeSpot(
        0.9,
        6.0,
        "python",
        Place(function="baskets_of", file="/a.py", line=2),
        Beneath("", library),
        code,
        calls=calls,
    )
    found = mask_for_each(documents.empty(), spot)
    assert (found is not None) == rule
    if found is not None:
        assert (found.rule, found.title) == (
            "mask-for-each",
            "All rows of sales.amount are compared again for each shop",
        )
        assert "a numpy.ndarray" not in found.evidence
