"""The kernel table by mouse and by keyboard: it sorts, filters, and says where its numbers come from."""

from __future__ import annotations

from typing import Any

import pytest

from profkit.core.types import RunDocument
from tests import page_documents
from tests.reporting.html.conftest import Show

LIVE = "#kernel-table tbody tr:not([hidden])"


def column(page: Any, title: str) -> list[str]:
    """What stands in a column of the rows that are shown."""
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


@pytest.mark.parametrize("title", ["total", "occupancy"])
def test_a_click_sorts_by_numbers_the_largest_first_and_another_turns_it(show: Show, title: str) -> None:
    page = show(page_documents.many(36, counted=30)).page
    head(page, title).click()
    values = [number(told) for told in column(page, title) if told != "-"]
    assert len(values) >= 20
    assert values == sorted(values, reverse=True)
    assert page.locator("th[aria-sort]").get_attribute("aria-sort") == "descending"
    head(page, title).click()
    values = [number(told) for told in column(page, title) if told != "-"]
    assert values == sorted(values)
    assert page.locator("th[aria-sort]").all_inner_texts() == [title]


def test_what_was_not_counted_comes_last_in_both_directions(show: Show) -> None:
    page = show(page_documents.many(40, counted=5)).page
    for _ in range(2):
        head(page, "occupancy").click()
        told = column(page, "occupancy")
        assert "-" not in told[:5]
        assert set(told[5:]) == {"-"}


@pytest.mark.thorough
def test_the_filter_leaves_what_holds_every_word(show: Show, gpu_document: RunDocument) -> None:
    page = show(gpu_document).page
    page.get_by_label("Filter").press_sequentially("FMA pipe")
    assert sorted(column(page, "kernel")) == ["fma16", "fma32", "fma64"]
    assert page.locator("#kernel-count").inner_text() == "3 of 12 rows"
    page.get_by_label("Filter").press_sequentially(" nothing such")
    assert column(page, "kernel") == []
    page.get_by_label("Filter").fill("divergent(float")  # the whole name, which the pointer tells
    assert column(page, "kernel") == ["divergent"]


@pytest.mark.thorough
def test_of_five_thousand_the_largest_are_in_the_page_and_the_others_counted(show: Show) -> None:
    visit = show(page_documents.many(5_000))
    assert visit.page.locator(LIVE).count() == 300
    assert visit.path.stat().st_size < 500_000
    assert visit.page.get_by_text("4,700 more, ").is_visible()
    opened = "performance.getEntriesByType('navigation')[0].domInteractive"
    assert visit.page.evaluate(opened) < 1000  # ms


def test_a_number_leads_to_its_source_by_the_keyboard(show: Show, gpu_document: RunDocument) -> None:
    page = show(gpu_document).page
    page.locator(f"{LIVE} a").first.focus()
    assert "of its launches that count" in page.locator("#tip").inner_text()
