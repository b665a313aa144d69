"""A page can be read: small and large, light and dark, on paper, without a script, by keyboard and by ear."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from profkit.core.types import Gain, Insight, Place, RunDocument
from profkit.reporting.html import page
from profkit.reporting.views.run import view as run_view
from tests import documents
from tests.browser import visit
from tests.reporting.html.conftest import Show
from tests.reporting.shown import run_page as render
from tests.spoken import message

MAX_BYTES = 300_000  # bytes of a page


def test_a_page_is_small(gpu_document: RunDocument) -> None:
    assert len(render(gpu_document).encode()) < MAX_BYTES


@pytest.mark.thorough
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_hard_to_see_hear_or_reach(show: Show, gpu_document: RunDocument, scheme: str) -> None:
    from axe_playwright_python.sync_playwright import Axe

    page = show(gpu_document, color_scheme=scheme).page
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    page.locator("#kernel-table tbody tr").first.click()
    page.locator("section#verdicts a.n").first.focus()
    found = Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
    assert [(one["id"], [node["html"][:200] for node in one["nodes"][:3]]) for one in found] == []


@pytest.mark.thorough
def test_without_a_script_everything_is_there(show: Show, gpu_document: RunDocument) -> None:
    page = show(gpu_document, java_script_enabled=False).page
    assert page.get_by_role("heading", name="What to do first").is_visible()
    link = page.locator("section#targets a.n").first
    target = link.get_attribute("href")
    link.click()
    assert page.locator(f"li{target}").is_visible()  # a footnote opens what it is folded in
    assert page.locator("#theme").is_hidden()


@pytest.mark.thorough
def test_the_keyboard_alone_gets_everywhere(show: Show, gpu_document: RunDocument) -> None:
    page = show(gpu_document).page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the report"
    page.keyboard.press("Enter")
    seen: list[str] = []
    what = "(a => a.id || a.getAttribute('data-at') || a.getAttribute('class') || a.tagName)(document.activeElement)"
    while len(seen) < 250:
        page.keyboard.press("Tab")
        seen.append(page.evaluate(what))
        if seen[-1] == "BODY":
            break
    assert "kernel-filter" in seen
    assert any(one.startswith("n ") for one in seen)
    assert seen.count("SUMMARY") > 5
    assert seen[-1] == "BODY"  # and out of the page again: it traps nobody


@pytest.mark.thorough
def test_a_number_shows_where_it_comes_from_on_hover_focus_and_tap(
    show: Show, gpu_document: RunDocument
) -> None:
    page = show(gpu_document, has_touch=True).page
    link, tip = page.locator("section#verdicts a.n").nth(2), page.locator("#tip")
    page.locator("section#verdicts summary").first.click()
    for reach in (link.hover, link.focus, link.tap):
        reach()
        tip.wait_for(state="visible")
        told = tip.inner_text()
        assert "tool" in told
        assert "occupancy.achieved" in told
        page.keyboard.press("Escape")
        assert tip.is_hidden()
        page.mouse.move(1, 1)
        page.evaluate("document.activeElement.blur()")
    link.hover()
    box = tip.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 5, box["y"] + 5, steps=5)
    page.wait_for_timeout(300)
    assert tip.is_visible()  # it can be reached, to select what stands in it


def test_what_was_not_measured_looks_and_says_so(show: Show) -> None:
    readings = (
        documents.reading("cache.l1.miss_rate", 7.4, quality="simulated"),
        documents.reading("ipc", None, "instructions/cycle", reason="no cycles here", fix="profkit doctor"),
        documents.reading("bandwidth.dram", 5e8, "B/s", quality="estimated"),
        documents.reading("branch.miss_rate", 3.0, quality="multiplexed", share=0.62),
        replace(
            documents.reading("occupancy.achieved", 50.0, quality="measured"),
            doubt=message("another says 20 %"),
        ),
    )
    page = show(_with(readings)).page
    page.locator("section#numbers summary").first.click()

    def told(place: int) -> Any:
        return page.locator("section#numbers td.num").nth(place)

    assert told(0).inner_text() == "7.4 % sim"
    assert told(1).inner_text() == "500 MB/s est"
    assert told(2).inner_text() == "3.0 % mux"
    assert told(3).inner_text() == "50.0 % doubted"
    assert "no cycles here (profkit doctor)" in page.locator("section#numbers").inner_text()
    notes = page.locator("section#numbers td.num a").evaluate_all(
        "all => all.map(one => document.querySelector(one.getAttribute('href')).textContent)"
    )
    assert "62.0 % of the time" in notes[2]
    assert "another says 20 %" in notes[3]


def _with(readings: tuple[Any, ...]) -> RunDocument:
    from profkit.core.types import Summary

    return replace(documents.document(), summaries=(Summary("cache", readings),), verdicts=())


@pytest.mark.thorough
@pytest.mark.parametrize("size", [(390, 844), (504, 600)], ids=["a phone", "beside a notebook"])
def test_on_a_narrow_screen_the_answer_is_above_the_fold(show: Show, size: tuple[int, int]) -> None:
    width, height = size
    place = Place(function="unique", file="/app/shop.py", line=6)
    gain = Gain(0.62, "the run time", "of this place")
    insight = Insight(
        "search", "found is gone through for each item", "it is a list", "Use a set.", place, gain
    )
    found = documents.document()
    command = ("python", "shop.py", *(f"--option-{n}" for n in range(60)))
    workload = replace(found.workload, command=command, folder="/app")
    page = show(
        replace(found, insights=(insight,), workload=workload), viewport={"width": width, "height": height}
    ).page
    answer = page.locator("#actions li").first
    assert "found is gone through for each item" in answer.locator("b").first.inner_text()
    where = answer.get_by_text("shop.py:6").first
    box = where.bounding_box()
    assert box["y"] + box["height"] < height
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_page_inside_of_a_notebook_begins_with_the_answer(browser: Any, tmp_path: Path) -> None:
    insight = Insight(
        "search", "found is gone through", "it is a list", "Use a set.", Place(function="unique")
    )
    added = documents.reading("memory.rss_added", 3e6, "B")
    document = replace(documents.document(), insights=(insight,), started="2026-11-29T19:00:00+00:00")
    document = replace(document, readings=(*document.readings, added))
    path = tmp_path / "inline.html"
    path.write_text(page.render(run_view(document), inline=True), encoding="utf-8")
    with visit(browser, path) as visited:
        text = visited.page.locator("main").inner_text()
        assert visited.page.locator("nav, .skip, #theme").count() == 0
        assert "found is gone through" in text.partition("\n\n\n")[0]
        header = visited.page.locator("header").inner_text()
        assert "Machine" not in header
        assert "Started" not in header
