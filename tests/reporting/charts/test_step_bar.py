"""The bar of a step as characters and as a block: lengths in proportion, and looks that need no colour."""

from __future__ import annotations

from dataclasses import replace

import pytest

from profkit.core.types import Account, AccountRow
from profkit.reporting.charts.step_bar import StepBar, StepPart, bar_line
from profkit.reporting.view import walk
from profkit.reporting.views import run
from tests import step_bars
from tests.reporting.shown import run_markdown, run_page, run_text


def part(share: float, look: str = "limited", needed: float = 0.5) -> StepPart:
    return StepPart(share, look, "", "", "", needed)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("parts", "line"),
    [
        ((), ""),
        ((part(0.0),), ""),
        ((part(1.0),), "│▄▄▄▄▄▄▄▄▄"),
        ((part(0.5, needed=1.0), part(0.5, "idle")), "│████│····"),
        ((part(0.5, needed=0.0), part(0.5, "unknown")), "│▁▁▁▁│░░░░"),
        ((part(0.96), part(0.04, "idle")), "│▄▄▄▄▄▄▄▄▄"),
        ((part(2.0, needed=9.0), part(2.0, needed=-1.0)), "│████│▁▁▁▁"),
    ],
)
def test_parts_are_as_long_as_their_time_and_as_high_as_what_they_need(
    parts: tuple[StepPart, ...], line: str
) -> None:
    assert bar_line(parts, 10) == line


def test_any_number_of_parts_adds_up_to_the_line() -> None:
    for count in (1, 3, 7, 40, 75, 500):
        line = bar_line([part(1 / count) for _ in range(count)])
        assert len(line) == 76, count


def test_a_screen_has_the_bar_above_the_table_with_a_key_of_what_occurs() -> None:
    document = step_bars.mixed()
    lines = run_text(document, details=False, color=False).splitlines()
    bar = next(n for n, one in enumerate(lines) if one.strip().startswith("│█"))
    assert lines[bar].strip().count("█") == 37  # of 38 cells, the half of 76, the first is an edge
    key = "height: the time needed at the hardware's limits; · idle; ░ not known"
    assert lines[bar + 1].strip() == key
    assert "share" in lines[bar + 2]
    assert max(map(len, lines)) <= 80
    assert "`│█" in run_markdown(document)
    narrow = run_text(document, details=False, color=False, width=50).splitlines()
    assert [len(one.strip()) for one in narrow if "│█" in one] == [48]


def test_without_limits_and_idle_time_the_shares_of_the_table_are_enough() -> None:
    rows = (AccountRow("host", 1.0, what="a"), AccountRow("rest", 1.0))
    document = step_bars.account_document(*rows)
    assert "░" not in run_text(document, color=False)
    hardly = step_bars.account_document(*rows, AccountRow("host", 0.02, what="b", does="waiting"))
    assert "░" not in run_text(hardly, color=False)
    assert 'class="step-bar"' in run_page(document)


@pytest.mark.parametrize("seconds", [0.0, -1.0])
def test_an_account_without_time_has_no_bar(seconds: float) -> None:
    document = replace(
        step_bars.mixed(), account=Account("step", seconds, (AccountRow("kernel", seconds, what="a"),))
    )
    assert [one for one in walk(run.view(document).blocks) if isinstance(one, StepBar)] == []


def test_a_file_with_ten_thousand_rows_has_forty_parts_and_the_others_as_one() -> None:
    rows = [AccountRow("kernel", 1e-3, what=f"k{n}") for n in range(10_000)]
    (bar,) = (
        one for one in walk(run.view(step_bars.account_document(*rows)).blocks) if isinstance(one, StepBar)
    )
    assert len(bar.parts) == 41
    assert sum(one.share for one in bar.parts) == pytest.approx(1)
    assert "9,960 more rows" in bar.parts[-1].hover
