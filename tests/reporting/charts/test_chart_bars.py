"""Bars and stacked bars: lengths that are shares, words that stand apart, values beyond the end that are seen to be."""

from __future__ import annotations

import pytest

from profkit.reporting.chart_blocks import Bar, Bars, Mark, Piece, StackedBar
from profkit.reporting.charts.bars import draw_bars, draw_stacked
from tests.reporting.charts.svg_facts import hovers, marks, outside, overlaps, parsed, words

NAME = "void cutlass::Kernel2<" + "cutlass_80_tensorop<float, 4>, " * 130 + "<script>alert(1)</script>"


def bar_chart(
    kind: str, title: str, words: str, bars: list[Bar], most: float | None = None, legend: str = ""
) -> str:
    return draw_bars(Bars(kind, title, words, tuple(bars), most, legend), lambda _note: 0)


def stacked_bar(pieces: list[Piece]) -> str:
    return draw_stacked(StackedBar("time", "Time", "words", tuple(pieces)), lambda _note: 0)


def lengths(chart: str, kind: str) -> list[float]:
    return [float(element.get("width") or 0) for element in marks(chart, "rect", kind)]


def test_a_bar_is_as_long_as_its_share_of_the_whole_and_its_mark_stands_at_its_value() -> None:
    bar = Bar(
        "kernel", 25.0, "25 of 50 %", "told", outer=50.0, marks=(Mark(75.0, "target", "target > 75 %"),)
    )
    chart = bar_chart("occupancy", "Occupancy", "words", [bar], 100.0)
    track = lengths(chart, "track")[0]
    assert lengths(chart, "s1") == [pytest.approx(0.25 * track, abs=0.1)]
    assert lengths(chart, "soft") == [pytest.approx(0.5 * track, abs=0.1)]
    (mark,) = marks(chart, "path", "target")
    assert float((mark.get("d") or "M0").split()[0][1:]) == pytest.approx(2 + 0.75 * track, abs=0.1)
    assert "target > 75 %" in hovers(chart)


def test_without_an_end_the_longest_is_the_whole() -> None:
    chart = bar_chart("memory", "Memory", "", [Bar("a", 1e15, "a", ""), Bar("b", 5e14, "b", "")])
    long, short = lengths(chart, "s1")
    assert short == pytest.approx(long / 2, abs=0.1)


def test_more_than_the_whole_ends_at_the_edge_with_an_arrow() -> None:
    chart = bar_chart("levels", "DRAM", "", [Bar("DRAM", 130.0, "130 % ?", "doubted", doubtful=True)], 100.0)
    assert lengths(chart, "s1") == lengths(chart, "track")
    assert "›" in words(chart)
    assert len(marks(chart, "rect", "doubtful")) == 1


def test_what_is_not_known_has_no_bar_and_says_so() -> None:
    chart = bar_chart("levels", "DRAM", "", [Bar("DRAM", None, "not known", "why")], 100.0)
    assert lengths(chart, "s1") == []
    assert "not known" in words(chart)


@pytest.mark.parametrize("value", [0.0, 1e-12, 1e15, -3.0])
def test_strange_values_and_names_neither_overlap_nor_leave_the_chart(value: float) -> None:
    bars = [
        Bar(NAME, value, f"{value} units " + "x" * 80, NAME, note=NAME),
        Bar("مرحبا \u202e", value, "1", "x"),
    ]
    chart = bar_chart("python", NAME, NAME, bars, None, "a legend that is long " * 8)
    assert overlaps(chart) == []
    assert outside(chart) == []
    assert "<script" not in chart
    assert len(chart) < 10_000


def test_pieces_fill_the_bar_in_their_shares_and_have_their_words_below() -> None:
    pieces = [Piece("GEMM", 0.75, "GEMM 75 %"), Piece("idle", 0.25, "idle 25 %", idle=True)]
    chart = stacked_bar(pieces)
    bar = [e for e in parsed(chart).iter("rect") if float(e.get("height") or 0) > 20]
    wide = [float(e.get("width") or 0) for e in bar]
    assert wide[0] == pytest.approx(3 * wide[1], abs=0.3)
    assert {"75.0 %", "25.0 %"} <= set(words(chart))
    assert [e.get("aria-label") for e in parsed(chart).iter("g")] == ["GEMM 75 %", "idle 25 %"]


@pytest.mark.parametrize("count", [1, 2, 6, 7, 10_000])
def test_any_number_of_pieces_is_six_rows_at_most_and_still_the_whole(count: int) -> None:
    pieces = [Piece(f"kernel {i}", 1 / count, f"kernel {i}", idle=i == 0) for i in range(count)]
    chart = stacked_bar(pieces)
    bar = [float(e.get("width") or 0) for e in parsed(chart).iter("rect") if float(e.get("height") or 0) > 20]
    assert len(bar) == min(6, count)
    assert sum(bar) == pytest.approx(396, abs=1)
    assert overlaps(chart) == []
    assert outside(chart) == []
    assert len(chart) < 10_000


def test_shares_that_add_up_to_more_than_the_whole_stay_in_the_bar() -> None:
    chart = stacked_bar([Piece("a", 0.9, "a"), Piece("b", 0.9, "b")])
    ends = [float(e.get("x") or 0) + float(e.get("width") or 0) for e in parsed(chart).iter("rect")]
    assert max(ends) <= 398.1
