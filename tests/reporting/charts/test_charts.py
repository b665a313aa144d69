"""Charts: values where their axes say, words that stand apart, and nothing that reads as more than is known."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest

from profkit.core.types import ChangePoint, Scope, Segment, Series, SeriesKey, Trend
from profkit.core.types import HistoryPoint as Night
from profkit.reporting.charts.marks import Chart, ChartGroup, text_plot
from profkit.reporting.charts.trend import trend_chart
from profkit.reporting.html.page import PageBlocks
from tests.reporting.charts.svg_facts import corners, hovers, marks, outside, overlaps, parsed, svg, words
from tests.spoken import message

FIRST = datetime(2026, 1, 1, 3, 0, tzinfo=timezone.utc)
HOSTILE = '<script>alert("1")</script>' + "x" * 4000 + "\ud800\u202e"


def trend(values: list[float], *, unit: str = "s", metric: str = "time.median", **more: object) -> Trend:
    nights = tuple(
        Night(f"{i}", (FIRST + timedelta(days=i)).isoformat(), "m", v, v * 0.99, v * 1.01, "abcdef1234567")
        for i, v in enumerate(values)
    )
    return Trend(Series(SeriesKey("mlp", "cuda", metric), unit, "lower", nights), **more)  # type: ignore[arg-type]


def changed(made: Trend, place: int, night: Night) -> Trend:
    nights = made.series.points
    return replace(made, series=replace(made.series, points=(*nights[:place], night, *nights[place + 1 :])))


def noisy(count: int) -> list[float]:
    dice = random.Random(5)
    return [4.1e-3 * (1 + dice.gauss(0, 0.01)) for _ in range(count)]


def test_a_chart_has_words_that_stand_apart_a_text_alternative_and_a_plot() -> None:
    chart = trend_chart(trend(noisy(31), change_points=(ChangePoint(9, 4e-3, 4.2e-3),)))
    drawn = svg(chart)
    assert overlaps(drawn) == outside(drawn) == []
    assert (parsed(drawn).findtext("desc") or "").strip()
    assert len(drawn) < 25_000
    assert max(map(len, text_plot(chart)), default=0) <= 70
    assert any(re.search(rf"\d [a-zA-Zµ]*{chart.y.unit}$", one) for one in words(drawn)) or not chart.y.unit


def test_what_is_empty_is_not_drawn() -> None:
    chart = trend_chart(trend([]))
    assert svg(chart) == ""
    assert text_plot(chart) == []
    assert PageBlocks().block(ChartGroup((chart,))) == ""


# ---------------------------------------------------------------- trends


def dots(chart: Chart) -> list[tuple[float, float]]:
    return [(float(e.get("cx") or 0), float(e.get("cy") or 0)) for e in marks(svg(chart), "circle", "dot")]


def test_values_stand_where_the_axis_says_and_the_first_and_last_night_are_dated() -> None:
    chart = trend_chart(trend([4.0e-3, 5.0e-3, 4.5e-3]))
    (_, low), (_, high), (_, middle) = dots(chart)
    assert middle == pytest.approx((high + low) / 2, abs=0.11)
    labels = {e.text: float(e.get("y") or 0) for e in parsed(svg(chart)).iter("text")}
    assert labels["5.00 ms"] - 0.35 * 13 == pytest.approx(high, abs=0.11)
    assert "Time per iteration, mlp" in words(svg(chart))
    assert {"2026-01-01", "2026-01-03"} <= set(words(svg(chart)))


def test_a_change_and_a_segment_are_marked_named_and_reached_by_keyboard() -> None:
    change = ChangePoint(2, 1.0, 1.05, "2026-01-03T03:00:00+00:00", "feedbeef0123")
    epochs = (Segment(0, 3, "begin"), Segment(4, 5, "machine"))
    chart = trend_chart(trend([1, 1, 1.05, 1.05, 2, 2], epochs=epochs, change_points=(change,)))
    drawn = svg(chart)
    assert "▲ 5.0 %" in words(drawn)
    named = [e.get("aria-label") or "" for e in parsed(drawn).iter("g") if e.get("tabindex") == "0"]
    assert any("another machine: m, then m" in one for one in named)
    assert any("feedbeef01" in one for one in named)
    assert "1.00 s to 1.05 s" in (parsed(drawn).findtext("desc") or "")
    assert len(marks(drawn, "path", "line")) == 2  # none from one segment to the next
    plot = "\n".join(text_plot(chart))
    assert "▲" in plot
    assert "┊" in plot


def test_what_decides_nothing_is_hollow_off_the_line_and_without_an_interval() -> None:
    made = trend([1.0, 1.0, 1.0, 1.0, 1.0])
    night = Night("x", made.series.points[2].started, "m", 9.0, valid=False, reason=message("throttled: hot"))
    drawn = svg(trend_chart(changed(made, 2, night)))
    assert len(marks(drawn, "circle", "hollow")) == 1
    assert any("throttled: hot" in one for one in hovers(drawn))
    assert len(corners(marks(drawn, "path", "line")[0])) == 4
    unknown = changed(made, 2, replace(made.series.points[2], low=None, high=None))
    assert [len(marks(svg(trend_chart(one)), "path", "area")) for one in (unknown, made)] == [2, 1]


def test_a_wild_interval_does_not_flatten_the_values() -> None:
    made = trend([1.0, 1.1, 1.0])
    wild = Night("x", made.series.points[1].started, "m", 1.1, 0.0, 900.0)
    (_, low), (_, high), _ = dots(trend_chart(changed(made, 1, wild)))
    assert low - high > 8


@pytest.mark.parametrize("count", [1, 2, 7, 90, 800])
@pytest.mark.parametrize("size", [1e-12, 1e15])
def test_no_words_of_a_trend_overlap_or_leave_the_chart(count: int, size: float) -> None:
    values = [size * v / 4.1e-3 for v in noisy(count)]
    changes = tuple(ChangePoint(i, size, size * 1.1) for i in range(1, count, max(2, count // 9)))
    for unit, metric in (("s", "time.median"), ("B/s", "bandwidth.dram"), ("%", "x" * 90)):
        drawn = svg(trend_chart(trend(values, unit=unit, metric=metric, change_points=changes)))
        assert overlaps(drawn) == outside(drawn) == []


@pytest.mark.parametrize(
    "values", [[0.0], [0.0, 0.0], [1.0] * 3, [-1.0, 2.0], [1e308, -1e308], [5e-324, 1.0]]
)
def test_strange_values_are_drawn(values: list[float]) -> None:
    chart = trend_chart(trend(values), band=(0.0, 0.0))
    assert overlaps(svg(chart)) == []
    assert len(text_plot(chart)) in (0, 2)


def test_names_do_no_harm() -> None:
    key = SeriesKey(HOSTILE, "cpu", "a&b", Scope("kernel", HOSTILE))
    nights = (
        Night("a", "no date", "m", 1.0),
        Night("b", "2026-01-01", "m", 2.0, valid=False, reason=message("<b>'\"")),
    )
    drawn = svg(trend_chart(Trend(Series(key, "s", "lower", nights))))
    assert "<script" not in drawn
    assert "<b>" not in drawn
    assert outside(drawn) == []
    assert len(drawn) < 8000
