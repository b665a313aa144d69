"""Memory over time on a page in a real browser, held against the series that it draws."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from profkit.core.types import MemorySeries, RunDocument, TimeSplit
from tests import documents
from tests.reporting.html.conftest import Show
from tests.reporting.html.markup import problems
from tests.reporting.html.test_page_charts import OVERLAPS
from tests.reporting.shown import run_markdown, run_page, run_text

MIB = float(1 << 20)


def held(*series: MemorySeries) -> RunDocument:
    split = TimeSplit(4.0, startup=1.0, steady=3.0, repeats=30)
    return replace(documents.document(), memory=series, time_split=split)


RESIDENT = MemorySeries("resident", (0.0, 1.0, 2.0, 4.0), (10 * MIB, 40 * MIB, 80 * MIB, 20 * MIB), 100 * MIB)
ALLOCATED = MemorySeries("allocated", (0.0, 0.5, 1.0), (0.0, 64 * MIB, 32 * MIB))
RESERVED = MemorySeries("reserved", (0.0, 0.5, 1.0), (0.0, 128 * MIB, 128 * MIB))
# Of a line of a chart its points, and of its grid where zero and one binary step stand.
LINE = """(name) => { const chart = document.querySelector("#memory-over-time svg");
  return chart.querySelector(name).getAttribute("d"); }"""


def points(path: str) -> list[tuple[float, float]]:
    numbers = list(map(float, re.findall(r"-?[\d.]+", path)))
    return list(zip(numbers[::2], numbers[1::2], strict=True))


@pytest.mark.thorough
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_curve_and_its_peak_are_as_high_as_the_bytes(show: Show, width: int, scheme: str) -> None:
    page = show(
        held(RESIDENT, ALLOCATED, RESERVED), viewport={"width": width, "height": 800}, color_scheme=scheme
    ).page
    assert page.locator("#memory-over-time svg").count() == 2
    curve = points(page.evaluate(LINE, "path.curve"))
    peak = points(page.evaluate(LINE, "path.peak"))
    per_byte = (curve[0][1] - curve[2][1]) / (70 * MIB)
    assert (curve[0][1] - curve[1][1]) / per_byte == pytest.approx(30 * MIB, rel=0.02)
    assert (curve[0][1] - peak[0][1]) / per_byte == pytest.approx(90 * MIB, rel=0.02)
    per_second = (curve[3][0] - curve[0][0]) / 4.0
    steps = points(page.evaluate(LINE, "path.steps"))
    assert (steps[0][0] - curve[0][0]) / per_second == pytest.approx(1.0, abs=0.05)
    assert page.evaluate(OVERLAPS) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.thorough
def test_the_peak_the_steps_and_each_curve_tell_themselves_to_the_keyboard(show: Show) -> None:
    page = show(held(RESIDENT, ALLOCATED, RESERVED)).page
    marks = page.locator("#memory-over-time [role=img]")
    told = []
    for number in range(marks.count()):
        marks.nth(number).focus()
        told.append(page.locator(".chart-tip").inner_text())
    assert told == [
        "30 steps of 100 ms, from 1.00 s on",
        "resident: at most 80.0 MiB at a look, 20.0 MiB at the end",
        "peak 100 MiB, resident",
        "reserved: at most 128 MiB at a look, 128 MiB at the end",
        "allocated: at most 64.0 MiB at a look, 32.0 MiB at the end",
        "peak 128 MiB, reserved",
    ]


@pytest.mark.parametrize("count", [3, 240])
def test_each_entry_of_a_marked_region_is_a_line_where_it_began(show: Show, count: int) -> None:
    steps = tuple(1.0 + 2.5 * n / count for n in range(count))
    page = show(held(replace(RESIDENT, steps=steps))).page
    curve = points(page.evaluate(LINE, "path.curve"))
    lines = page.locator("#memory-over-time path.step").evaluate_all(
        "all => all.map(one => one.getAttribute('d'))"
    )
    every = -(-count // 60)
    per_second = (curve[3][0] - curve[0][0]) / 4.0
    drawn = [(points(line)[0][0] - curve[0][0]) / per_second for line in lines]
    assert drawn == [pytest.approx(at, abs=0.02) for at in steps[::every]]
    assert page.locator("#memory-over-time path.steps").count() == 0
    page.locator("#memory-over-time [role=img]").first.focus()
    assert page.locator(".chart-tip").inner_text() == "an entry of the region begins at 1.00 s"


@pytest.mark.parametrize("steps", [(float("nan"), -1.0, 9e9), (0.0,) * 100_000])
def test_times_of_entries_that_are_none_or_too_many_are_no_harm(steps: tuple[float, ...]) -> None:
    page = run_page(held(replace(RESIDENT, steps=steps)))
    assert problems(page) == []
    assert len(page) < 200_000


@pytest.mark.parametrize(
    "series",
    [
        (),
        (MemorySeries("resident", (), ()),),
        (MemorySeries("resident", (0.0,), (5.0,)),),
        (MemorySeries("resident", (0.0, 0.0), (5.0, 5.0)),),
        (MemorySeries("resident", (0.0, float("nan"), -1.0), (5.0, float("inf"), -5.0)),),
    ],
)
def test_fewer_than_two_looks_are_no_picture(series: tuple[MemorySeries, ...]) -> None:
    assert 'id="memory-over-time"' not in run_page(held(*series))


@pytest.mark.thorough
@pytest.mark.parametrize("size", [0.0, 1.0, 1e17])
def test_any_size_can_be_drawn_and_a_million_looks_are_a_thousand_points(size: float) -> None:
    looks = 1_000_000 if size == 1.0 else 3
    series = MemorySeries("resident", tuple(map(float, range(looks))), (size,) * looks)
    page = run_page(held(series))
    assert problems(page) == []
    assert len(page) < 200_000


def test_only_a_page_has_the_picture() -> None:
    document = held(RESIDENT)
    assert "Memory over time" not in run_text(document) + run_markdown(document)
