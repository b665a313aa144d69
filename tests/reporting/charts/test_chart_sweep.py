"""The charts of a sweep: values where they belong, letters that need no colour, and nothing drawn twice."""

from __future__ import annotations

import json
import re
from itertools import pairwise

import pytest

from profkit.reporting.chart_blocks import (
    ChartPoint,
    CloudChart,
    DotSeries,
    LineChart,
    LineSeries,
    WinnerCell,
    WinnerMap,
)
from profkit.reporting.charts.cases import cloud_chart
from profkit.reporting.charts.lines import line_chart
from profkit.reporting.charts.winner_map import STEPS, shade, winner_map
from profkit.reporting.html.page import asset
from tests.reporting.charts.svg_facts import hovers, marks, outside, overlaps, parsed, words

Dots = tuple[tuple[float, float, int], ...]


def lines(*drawn: LineSeries, unit: str = "s", of: str = "") -> str:
    return line_chart(LineChart("Time", "batch", drawn, unit, of))


def rates(*clouds: Dots) -> str:
    """Below 1 TB/s and 10 TFLOP/s."""
    return cloud_chart(CloudChart("All cases", "FLOP per byte", "FLOP/s", dots(*clouds), "", (1e12, 1e13)))


def dots(*clouds: Dots) -> tuple[DotSeries, ...]:
    return tuple(DotSeries("AB"[n], "AB"[n], n, own) for n, own in enumerate(clouds))


def grid(rows: list[str], columns: list[str], known: dict[tuple[int, int], WinnerCell]) -> str:
    return winner_map(WinnerMap("Fastest", "who", tuple(rows), tuple(columns), known))


def series(name: str, values: list[float], place: int = 0, half: float = 0.0, **more: bool) -> LineSeries:
    points = [
        ChartPoint(float(2**n), v, v * (1 - half), v * (1 + half), f"{name} {v}")
        for n, v in enumerate(values)
    ]
    return LineSeries(name, name[0], place, tuple(points), **more)


def places(chart: str, kind: str) -> list[tuple[float, float]]:
    """Where the marks of a series stand."""
    found = [re.match(r"M([\d.]+) ([\d.]+)m", mark.get("d") or "") for mark in marks(chart, "path", kind)]
    return [(float(one[1]), float(one[2])) for one in found if one]


def test_on_logarithmic_axes_doubling_is_the_same_step_everywhere() -> None:
    chart = lines(series("mine", [1e-6, 2e-6, 4e-6, 8e-6]))
    at = places(chart, "f1")
    assert len(at) == 4
    across = [b[0] - a[0] for a, b in pairwise(at)]
    down = [b[1] - a[1] for a, b in pairwise(at)]
    assert across == pytest.approx([across[0]] * 3, abs=0.2)
    assert down == pytest.approx([down[0]] * 3, abs=0.2)
    assert down[0] < 0


@pytest.mark.parametrize("first", [1e-6, 1e-3])
def test_lines_that_end_at_one_place_keep_their_letters_apart_and_inside(first: float) -> None:
    chart = lines(*(series(name, [first, 2e-5 * (1 + n / 1000)], n) for n, name in enumerate("ABCDEFGH")))
    assert set("ABCDEFGH") <= set(words(chart))
    assert overlaps(chart) == []
    assert outside(chart) == []
    ends = [float(e.get("y") or 0) for e in parsed(chart).iter("text") if e.get("class", "").startswith("f")]
    axis = max(y for _, y in places(chart, "f1"))
    assert max(ends) <= max(axis, 170) + 5  # above the sizes below


def test_an_interval_is_drawn_where_it_is_larger_than_its_mark() -> None:
    def bars(half: float, **more: bool) -> int:
        chart = lines(series("mine", [1.0, 8.0], half=half, **more))
        return len(marks(chart, "path", "l1")) - 1

    assert (bars(0.001), bars(0.4), bars(0.4, spread=True)) == (0, 2, 0)


def test_the_keyboard_reaches_each_line_once_with_all_its_numbers() -> None:
    chart = lines(series("mine", [1e-6, 2e-6]), series("yours", [3e-6], 1))
    stops = [e.get("aria-label") for e in parsed(chart).iter() if e.get("tabindex") == "0"]
    assert sorted(filter(None, stops)) == ["mine: 1.00 µs at 1, 2.00 µs at 2", "yours: 3.00 µs at 1"]


def test_nothing_measured_is_said() -> None:
    assert "Nothing was measured." in words(lines())


def test_charts_of_two_panels_have_names_of_their_own() -> None:
    one, other = (lines(series("mine", [1.0, 2.0]), of=panel) for panel in ("GELU", "MSE"))
    assert parsed(one).get("aria-labelledby") != parsed(other).get("aria-labelledby")


def cells(rows: int, columns: int) -> dict[tuple[int, int], WinnerCell]:
    return {
        (r, c): WinnerCell("C", 3, 1.0 + r / 4, f"cell {r} {c}") for r in range(rows) for c in range(columns)
    }


def test_a_cell_says_who_wins_and_by_how_much_without_its_colour() -> None:
    chart = grid(["16 x 256"], ["8", "64"], {(0, 0): WinnerCell("C", 3, 1.25, "all of it")})
    assert "C 1.25" in words(chart)
    assert "all of it" in hovers(chart)
    assert len(marks(chart, "rect", "none")) == 1  # where nothing was compared


def test_who_wins_by_more_is_shaded_more_and_those_alike_are_grey() -> None:
    assert [shade(lead) for lead in (None, 1.0, 1.03, 1.3, 5.0)] == [0, 0, 1, 4, 6]
    chart = grid(["r"], ["c"], {(0, 0): WinnerCell("=", None, None, "alike")})
    assert len(marks(chart, "rect", "alike")) == 1
    assert words(chart)[-1] == "="


def test_one_cell_is_reached_by_tab_and_all_by_their_place() -> None:
    chart = grid(["a", "b"], ["1", "2", "3"], cells(2, 3))
    stops = [e.get("tabindex") for e in parsed(chart).iter() if e.get("data-at")]
    assert stops.count("0") == 1
    assert len(stops) == 6


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (16, 7), (16, 20), (3, 60)])
def test_no_words_of_a_map_stand_on_each_other(rows: int, columns: int) -> None:
    names = [f"{2**r} x 2048" for r in range(rows)]
    chart = grid(names, [str(8 * (c + 1)) for c in range(columns)], cells(rows, columns))
    assert outside(chart) == []
    if columns <= 20:
        assert overlaps(chart) == []


def cloud(path: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in re.findall(r"M([\d.]+) ([\d.]+)h0", path)]


def test_a_case_at_half_of_the_roof_stands_below_it_by_a_factor_of_two() -> None:
    chart = rates(((1.0, 1e12, 0), (1.0, 0.5e12, 1), (1.0, 0.25e12, 2)))
    (path,) = (mark.get("d") or "" for mark in marks(chart, "path", "cloud"))
    (_, roof), (_, half), (_, quarter) = cloud(path)
    assert quarter - half == pytest.approx(half - roof, abs=0.2)
    slope = marks(chart, "path", "ceiling")[0].get("d") or ""
    x1, y1, x2, y2 = map(float, re.findall(r"[\d.]+", slope))
    x = cloud(path)[0][0]
    assert y1 + (y2 - y1) * (x - x1) / (x2 - x1) == pytest.approx(roof, abs=1.0)


def test_ten_thousand_dots_take_a_path_and_those_on_each_other_are_drawn_once() -> None:
    chart = rates(tuple((1.0 + n % 3, 1e11 * (1 + n % 50), n) for n in range(10_000)))
    assert len(chart) < 10_000
    (area,) = marks(chart, "rect", "reader")
    (rows,) = json.loads(area.get("data-rows") or "")
    (path,) = (mark.get("d") or "" for mark in marks(chart, "path", "cloud"))
    assert len(rows) == len(cloud(path)) <= 150


def test_implementations_stand_beside_each_other_where_all_have_one_place() -> None:
    chart = rates(((1.0, 1e11, 0),), ((1.0, 1e11, 1),))
    first, second = (cloud(mark.get("d") or "")[0] for mark in marks(chart, "path", "cloud"))
    assert second[0] - first[0] == pytest.approx(3.4, abs=0.11)
    assert first[1] == second[1]


def test_shares_have_a_line_at_all_of_the_roofline() -> None:
    chart = cloud_chart(CloudChart("s", "bytes", "%", dots(((1e6, 50.0, 0), (1e9, 100.0, 1)))))
    (path,) = (mark.get("d") or "" for mark in marks(chart, "path", "cloud"))
    roof = float(re.findall(r"[\d.]+", marks(chart, "path", "ceiling")[0].get("d") or "")[1])
    assert cloud(path)[1][1] == pytest.approx(roof, abs=0.11)
    assert overlaps(chart) == outside(chart) == []


def luminance(color: list[float]) -> float:
    """Relative luminance of a colour in 0..255 (WCAG 2.2)."""
    parts = [c / 255 / 12.92 if c <= 10.0 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in color]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


@pytest.mark.parametrize("theme", [r":root\{", r":root\[data-theme=dark\]\{"])
def test_letters_can_be_read_upon_every_shade_of_every_colour(theme: str) -> None:
    block = re.split(theme, asset("style.css"), maxsplit=1)[1].partition("}")[0]
    colors = {
        name: [float(int(value[n : n + 2], 16)) for n in (0, 2, 4)]
        for name, value in re.findall(r"--(\w+):#([0-9a-f]{6})", block)
    }
    shades = [float(value) for value in re.findall(r"\.h\d \{ fill-opacity: ([\d.]+)", asset("charts.css"))]
    assert len(shades) == len(STEPS) + 1
    assert shades == sorted(shades)
    ink = luminance(colors["ink"])
    for number in range(1, 9):
        mixed = [
            max(shades) * c + (1 - max(shades)) * p
            for c, p in zip(colors[f"c{number}"], colors["paper"], strict=True)
        ]
        low, high = sorted((ink, luminance(mixed)))
        assert (high + 0.05) / (low + 0.05) >= 4.5
