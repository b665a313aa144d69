"""Charts of characters: where a letter stands, and that nothing is wider than the screen."""

from __future__ import annotations

import re

import pytest

from profkit.reporting.chart_blocks import Charts, CloudChart, DotSeries
from profkit.reporting.text_plots import ROWS, Plot, letter_plots, roofline_plot
from profkit.reporting.view import walk
from profkit.reporting.views.sweep import view
from tests import sweep_documents as sweeps


def told(value: float) -> str:
    return f"{value:.3g}"


def test_a_letter_stands_in_the_row_of_its_value_and_above_its_column() -> None:
    plot = Plot("batch", ("16", "32"), {"T": (2.0, 8.0), "C": (4.0, None)})
    assert letter_plots([plot], told, level=True) == [
        "7.59 │     T",
        "5.06 │",
        "3.38 │  C",
        "2.25 │  T",
        " 1.5 │",
        "   1 │------",
        "       16 32",
        "      batch",
    ]


def test_letters_of_one_row_stand_in_the_order_of_their_values() -> None:
    plot = Plot("batch", ("16",), {"A": (100.0,), "B": (101.0,), "C": (1.0,), "D": (99.0,)})
    assert any(line.endswith("│ BAD") for line in letter_plots([plot], told))


def test_plots_side_by_side_share_their_rows_and_go_on_below_where_the_screen_ends() -> None:
    plots = [Plot(name, ("1", "2", "3"), {"A": (1.0, 2.0, 4.0)}) for name in ("first", "second", "third")]
    wide, narrow = letter_plots(plots, told, width=80), letter_plots(plots, told, width=24)
    assert len(narrow) == 2 * len(wide)
    assert wide[-1].split() == ["first", "second", "third"]
    assert [line.split() for line in narrow if "i" in line] == [["first", "second"], ["third"]]


@pytest.mark.parametrize("width", [20, 24, 40, 80])
@pytest.mark.parametrize("values", [(1.0, 1.0), (1e-9, 1e12), (0.98, 1.01), (3.0, None)])
def test_no_plot_is_wider_than_the_screen_or_higher_than_its_rows(
    width: int, values: tuple[float | None, ...]
) -> None:
    plot = Plot("dimension", tuple(str(2**n) for n in range(12)), {"A": values * 6, "B": (1.0,) * 12})
    lines = letter_plots([plot], told, level=True, width=width)
    assert max(map(len, lines)) <= width
    assert sum("│" in line for line in lines) <= ROWS * sum("dimension" in line for line in lines)


def test_nothing_is_drawn_of_no_value() -> None:
    assert letter_plots([Plot("batch", ("1",), {"A": (None,)})], told) == []
    assert letter_plots([], told) == []
    assert roofline_plot([("A", ())], 1e12, 1e13, told) == []


def test_a_case_stands_below_the_roof_by_what_it_reaches() -> None:
    """1 TB/s and 10 TFLOP/s meet at 10 FLOP/B; a case at 1 FLOP/B on the roof, one at a thousandth of it."""
    lines = roofline_plot([("A", ((1.0, 1e12), (1.0, 1e9)))], 1e12, 1e13, told, width=60)
    assert lines[0].startswith("1e+13 │")
    assert lines[0].endswith("──────")
    high, low = (line for line in lines if "A" in line)
    assert "─A─" in high
    assert "─" not in low
    assert high.index("A") == low.index("A") == lines[-1].index("1")
    assert lines.index(low) == len(lines) - 2  # the lowest row
    assert max(map(len, lines)) <= 60


def test_dots_of_two_stand_side_by_side_and_where_letters_meet_there_is_a_star() -> None:
    dot = (1.0, 1e10)
    (line,) = (one for one in roofline_plot([("A", (dot,)), ("B", (dot,))], 1e12, 1e13, told) if "A" in one)
    assert "AB" in line
    near = (1.08, 1e10)  # a character to the right
    assert any("*" in one for one in roofline_plot([("A", (near,)), ("B", (dot,))], 1e12, 1e13, told))


@pytest.mark.parametrize("rate", [1e-3, 1e20])
def test_a_case_far_from_the_roofs_is_drawn_all_the_same(rate: float) -> None:
    lines = roofline_plot([("A", ((1e-6, rate), (1e6, rate)))], 1e12, 1e13, told, width=50)
    assert sum(line.count("A") for line in lines) == 2
    assert re.search(r"│", lines[0])
    assert max(map(len, lines)) <= 50


def test_a_cloud_is_a_letter_for_the_median_of_each_size() -> None:
    """Sizes are half decades; 20 and 60 % have their median at 40 %, and the sizes come in their order."""
    dots = ((2e6, 20.0, 0), (2e6, 60.0, 1), (1e4, 100.0, 2))
    cloud = CloudChart("share", "bytes", "%", (DotSeries("A", "A", 0, dots), DotSeries("B", "B", 1, ())))
    lines = cloud.lines(60)
    assert lines[-2:] == ["          31.6k 3.16M", "         bytes"]
    (whole,) = (line for line in lines if line.startswith("100.0 %"))
    assert whole.endswith("A------")
    (share,) = (line for line in lines if line.endswith("A"))
    assert 38 < float(share.split(" ")[1]) < 42
    assert not any("B" in line for line in lines)


@pytest.mark.parametrize("name", sorted(sweeps.odd()))
def test_without_ceilings_or_times_there_is_no_cloud(name: str) -> None:
    charts = [
        chart
        for one in walk(view(sweeps.odd()[name]).blocks)
        if isinstance(one, Charts)
        for chart in one.charts
    ]
    clouds = [chart for chart in charts if isinstance(chart, CloudChart)]
    assert len(clouds) == (0 if name in ("no roofs", "nothing measured", "no results") else 2)
    for chart in clouds:
        assert chart.lines(80) != []
