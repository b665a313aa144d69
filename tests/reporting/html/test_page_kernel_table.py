"""The kernel table by mouse and by keyboard: it sorts, filters, and shows one kernel with all that is known of it."""

from __future__ import annotations

import math
from typing import Any

import pytest

from profkit.core.formatting import format_quantity
from profkit.core.types import RunDocument
from tests import documents, page_documents
from tests.reporting.html.conftest import Show
from tests.reporting.shown import run_page as render

LIVE = "#kernel-table tbody.live tr[data-at]"


def column(page: Any, title: str) -> list[str]:
    """What stands in a column of the rows that are drawn."""
    titles = page.locator("#kernel-table thead th").all_inner_texts()
    place = [one.strip() for one in titles].index(title) + 1
    return [one.strip() for one in page.locator(f"{LIVE} > :nth-child({place})").all_inner_texts()]


def head(page: Any, title: str) -> Any:
    return page.locator("#kernel-table thead button", has_text=title).first


def number(told: str) -> float:
    """`4.13 ms` in seconds, `1.2 k` as 1200: what a quantity says."""
    value, _, unit = told.partition(" ")
    scale = {"ms": 1e-3, "µs": 1e-6, "ns": 1e-9, "k": 1e3, "M": 1e6, "Ki": 1024}.get(unit.split("B")[0], 1.0)
    return float(value.lstrip("<")) * scale


@pytest.mark.parametrize("title", ["GPU time", "Launches", "Occupancy", "DRAM", "Median"])
def test_a_click_sorts_by_numbers_the_largest_first_and_another_turns_it(show: Show, title: str) -> None:
    page = show(page_documents.many(36, counted=30)).page
    head(page, title).click()
    values = [number(told) for told in column(page, title) if told]
    assert len(values) >= 20
    assert values == sorted(values, reverse=True)
    assert page.locator("th[aria-sort]").get_attribute("aria-sort") == "descending"
    head(page, title).click()
    values = [number(told) for told in column(page, title) if told]
    assert values == sorted(values)
    assert page.locator("th[aria-sort]").all_inner_texts() == [title]


def test_names_sort_from_a_to_z(show: Show, gpu_document: RunDocument) -> None:
    page = show(gpu_document).page
    head(page, "Kernel").click()
    assert column(page, "Kernel")[:3] == ["chase", "divergent", "fma16"]


def test_what_was_not_counted_comes_last_in_both_directions(show: Show) -> None:
    page = show(page_documents.many(40, counted=5)).page
    for _ in range(2):
        head(page, "Occupancy").click()
        told = column(page, "Occupancy")
        assert all(told[:5])
        assert not any(told[5:])


def test_the_filter_leaves_what_holds_every_word_and_says_what_share_it_has(
    show: Show, gpu_document: RunDocument
) -> None:
    page = show(gpu_document).page
    page.get_by_label("Filter").press_sequentially("FMA pipe")
    assert sorted(column(page, "Kernel")) == ["fma16", "fma32", "fma64"]
    assert page.locator("#kernel-count").inner_text() == "3 of 12, 20.8 % of the time of all kernels"
    page.get_by_label("Filter").press_sequentially(" nothing such")
    assert column(page, "Kernel") == []
    page.get_by_label("Filter").fill("")
    assert len(column(page, "Kernel")) == 12


def test_of_ten_thousand_only_what_is_seen_is_drawn_and_the_last_is_a_key_away(show: Show) -> None:
    visit = show(page_documents.many(10_000))
    page = visit.page
    page.locator(LIVE).first.wait_for()
    assert page.locator(LIVE).count() < 120
    assert visit.path.stat().st_size < 2_000_000
    assert page.locator("#kernel-table").get_attribute("aria-rowcount") == "10001"
    page.locator(LIVE).first.focus()
    page.keyboard.press("End")
    focused = page.evaluate("document.activeElement.getAttribute('aria-rowindex')")
    assert focused == "10001"
    seen = page.evaluate(
        "[document.activeElement, document.getElementById('kernel-grid')]"
        ".map(one => one.getBoundingClientRect().bottom)"
    )
    assert seen[0] <= seen[1] + 1
    page.keyboard.press("Home")
    assert page.evaluate("document.activeElement.getAttribute('aria-rowindex')") == "2"


def test_from_a_row_the_keyboard_reaches_its_numbers_their_sources_and_the_whole_kernel(
    show: Show, gpu_document: RunDocument
) -> None:
    page = show(gpu_document).page
    page.locator(LIVE).first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    tip = page.locator("#tip")
    assert "its time / the time of all kernels" in tip.inner_text()
    assert page.evaluate("document.activeElement.getAttribute('aria-describedby')") == "tip"
    page.keyboard.press("Escape")
    assert tip.is_hidden()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    detail = page.locator("#kernel-detail")
    assert detail.locator("h3").inner_text() == "divergent"
    assert "divergent(" in detail.locator("pre").inner_text()
    assert detail.locator("dl div").count() > 30
    page.keyboard.press("Escape")
    assert detail.is_hidden()
    assert page.evaluate("document.activeElement.getAttribute('aria-rowindex')") == "3"


def test_a_kernel_is_shown_with_its_verdicts(show: Show, gpu_document: RunDocument) -> None:
    page = show(gpu_document).page
    page.locator(LIVE, has_text="histogram").click()
    told = page.locator("#kernel-detail").inner_text()
    assert "FAIL" in told
    assert "262144 blocks of 256 threads" in told


def test_numbers_are_written_as_everywhere_else(show: Show) -> None:
    page = show(page_documents.many(3)).page
    values = [
        0.0,
        1.0,
        12.0,
        999.4,
        999.6,
        1234.0,
        1e-12,
        4.2e-7,
        0.00105,
        0.09994,
        0.95,
        5e5,
        3.3e12,
        2.0**31,
        1e-4,
    ]
    units = ["s", "%", "B", "B/s", "count", "", "FLOP/s", "blocks/multiprocessor", "B/iteration"]
    told = page.evaluate(
        "([values, units]) => units.map(unit => values.map(value => profkitQuantity(value, unit)))",
        [values, units],
    )
    assert told == [[format_quantity(value, unit) for value in values] for unit in units]
    assert all(math.isfinite(value) for value in values)


def test_without_a_script_the_first_two_hundred_are_a_plain_table(show: Show) -> None:
    page = show(page_documents.many(300), java_script_enabled=False).page
    assert page.locator("#kernel-table tbody.plain tr").count() == 200
    assert page.locator("#kernel-table tbody.plain tr").first.is_visible()
    assert page.get_by_text("100 more stand in the JSON document").is_visible()
    assert page.locator("#kernel-tools").is_hidden()


def test_a_run_without_kernels_has_no_table_of_them() -> None:
    assert '<table id="kernel-table"' not in render(documents.document())
