"""The trend of a metric over nights: values where they belong, and nothing that reads as more than is known."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest

from profkit.core.types import ChangePoint, Point, Scope, Segment, Series, SeriesKey, Trend
from profkit.reporting.charts.trend import trend_chart
from tests.reporting.charts.svg_facts import hovers, marks, outside, overlaps, parsed, words

FIRST = datetime(2026, 1, 1, 3, 0, tzinfo=timezone.utc)


def trend(values: list[float], *, unit: str = "s", metric: str = "time.median", **more: object) -> Trend:
    points = tuple(
        Point(
            f"run-{i}", (FIRST + timedelta(days=i)).isoformat(), "m", v, v * 0.99, v * 1.01, "abcdef1234567"
        )
        for i, v in enumerate(values)
    )
    series = Series(SeriesKey("mlp", "cuda", metric), unit, "lower", points)
    return Trend(series, **more)  # type: ignore[arg-type]


def noisy(count: int) -> list[float]:
    dice = random.Random(5)
    return [4.1e-3 * (1 + dice.gauss(0, 0.01)) for _ in range(count)]


def test_values_stand_where_the_axis_says() -> None:
    chart = trend_chart(trend([4.0e-3, 5.0e-3, 4.5e-3]))
    high, low, middle = (float(marks(chart, "circle", "dot")[i].get("cy") or 0) for i in (1, 0, 2))
    assert middle == pytest.approx((high + low) / 2, abs=0.11)
    labels = {e.text: float(e.get("y") or 0) for e in parsed(chart).iter("text")}
    assert labels["5.0"] - 0.35 * 13 == pytest.approx(high, abs=0.11)
    assert "Time per iteration, mlp (ms)" in words(chart)


def test_nights_stand_by_their_date_and_a_gap_is_a_gap() -> None:
    whole = trend([1.0, 1.1, 1.2, 1.1])
    late = Point("late", (FIRST + timedelta(days=12)).isoformat(), "m", 1.0)
    points = (*whole.series.points[:3], late)
    chart = trend_chart(Trend(Series(whole.series.key, "s", "lower", points)))
    x = [float(dot.get("cx") or 0) for dot in marks(chart, "circle", "dot")]
    assert (x[3] - x[2]) / (x[1] - x[0]) == pytest.approx(10, rel=0.02)


def test_a_change_and_a_segment_are_marked_named_and_reached_by_keyboard() -> None:
    change = ChangePoint(2, 1.0, 1.05, "2026-01-03T03:00:00+00:00", "feedbeef0123")
    epochs = (Segment(0, 3, "begin"), Segment(4, 5, "machine"))
    chart = trend_chart(trend([1, 1, 1.05, 1.05, 2, 2], epochs=epochs, change_points=(change,)))
    assert "▲ 5.0 %" in words(chart)
    assert any("another machine: m, then m" in told for told in hovers(chart))
    assert any("feedbeef01" in told for told in hovers(chart))
    assert len([e for e in parsed(chart).iter("g") if e.get("tabindex") == "0"]) == 2
    assert "1.00 s to 1.05 s" in (parsed(chart).find("desc").text or "")  # type: ignore[union-attr]


def test_the_line_does_not_cross_from_one_segment_to_the_next() -> None:
    epochs = (Segment(0, 2, "begin"), Segment(3, 5, "accepted", "new kernel"))
    assert len(marks(trend_chart(trend([1, 1, 1, 2, 2, 2], epochs=epochs)), "path", "line")) == 2
    assert len(marks(trend_chart(trend([1, 1, 1, 2, 2, 2])), "path", "line")) == 1


def test_no_interval_is_drawn_across_a_night_that_has_none() -> None:
    whole = trend([1.0, 1.1, 1.2, 1.1, 1.0])
    points = [*whole.series.points]
    points[2] = replace(points[2], low=None, high=None)
    chart = trend_chart(Trend(replace(whole.series, points=tuple(points))))
    assert len(marks(chart, "path", "area")) == 2
    assert len(marks(trend_chart(whole), "path", "area")) == 1


def test_what_decides_nothing_is_hollow_off_the_line_and_says_why() -> None:
    made = trend([1.0, 1.0, 9.0, 1.0])
    points = list(made.series.points)
    points[2] = Point("x", points[2].started, "m", 9.0, valid=False, reason="throttled: SwThermalSlowdown")
    chart = trend_chart(Trend(Series(made.series.key, "s", "lower", tuple(points))))
    assert len(marks(chart, "circle", "hollow")) == 1
    assert any("throttled: SwThermalSlowdown" in told for told in hovers(chart))
    (curve,) = marks(chart, "path", "line")
    assert (curve.get("d") or "").count("l") == 2  # three points


def test_a_year_is_small_and_a_short_series_has_a_text_for_each_night() -> None:
    assert len(trend_chart(trend(noisy(365))).encode()) < 12_000
    assert sum("4.1" in told or "4.0" in told for told in hovers(trend_chart(trend(noisy(20))))) == 20


def test_a_long_series_carries_its_values_for_the_pointer() -> None:
    values = noisy(100)
    chart = trend_chart(trend(values))
    (area,) = marks(chart, "rect", "reader")
    told = json.loads(area.get("data-read") or "")
    assert told["u"] == "ms"
    assert told["v"] == pytest.approx([1e3 * value for value in values], rel=1e-4)
    assert "d" not in told  # one for each day
    assert told["t"] == FIRST.timestamp()
    assert marks(trend_chart(trend(noisy(20))), "rect", "reader") == []


def test_a_wild_interval_does_not_flatten_the_values() -> None:
    made = trend([1.0, 1.1, 1.0])
    points = list(made.series.points)
    points[1] = Point("x", points[1].started, "m", 1.1, 0.0, 900.0)
    chart = trend_chart(Trend(Series(made.series.key, "s", "lower", tuple(points))))
    y = [float(dot.get("cy") or 0) for dot in marks(chart, "circle", "dot")]
    assert abs(y[1] - y[0]) > 8


@pytest.mark.parametrize("count", [1, 2, 3, 7, 31, 90, 365, 800])
@pytest.mark.parametrize("size", [1e-12, 1.0, 1e15])
def test_no_words_overlap_or_leave_the_chart(count: int, size: float) -> None:
    values = [size * v / 4.1e-3 for v in noisy(count)]
    changes = tuple(ChangePoint(i, size, size * 1.1) for i in range(1, count, max(2, count // 9)))
    for unit, metric in (("s", "time.median"), ("B/s", "bandwidth.dram"), ("%", "x" * 90)):
        chart = trend_chart(trend(values, unit=unit, metric=metric, change_points=changes))
        assert overlaps(chart) == []
        assert outside(chart) == []


@pytest.mark.parametrize(
    "values", [[0.0], [0.0, 0.0], [1.0, 1.0, 1.0], [-1.0, 2.0], [1e308, -1e308], [5e-324, 1.0]]
)
def test_strange_values_are_drawn(values: list[float]) -> None:
    chart = trend_chart(trend(values), band=(0.0, 0.0))
    assert overlaps(chart) == []


def test_names_do_no_harm() -> None:
    key = SeriesKey('<script>alert("1")</script>', "cpu", "a&b", Scope("kernel", "x" * 4000 + "\ud800\u202e"))
    points = (
        Point("a", "no date", "m", 1.0),
        Point("b", "2026-01-01", "m", 2.0, valid=False, reason="<b>'\""),
    )
    chart = trend_chart(Trend(Series(key, "s", "lower", points)))
    assert "<script" not in chart
    assert "<b>" not in chart
    assert parsed(chart) is not None
    assert outside(chart) == []
    assert len(chart) < 8000


def test_no_night_is_a_sentence() -> None:
    assert words(trend_chart(trend([]))) == ["No night is stored."]
