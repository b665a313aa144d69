"""The bar of a step on a page in a real browser, held against the account that it draws."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from profkit.core.types import RunDocument
from tests import page_documents, step_bars
from tests.reporting.html.conftest import Show
from tests.reporting.html.markup import problems
from tests.reporting.shown import run_page as render

PARTS = """() => [...document.querySelectorAll(".step-bar a")].map((one) => {
  const bar = one.closest("svg").getBoundingClientRect(), all = one.querySelector("rect").getBoundingClientRect();
  const need = one.querySelector(".need"), high = need ? need.getBoundingClientRect().height : 0;
  return [all.width / bar.width, high / bar.height, (all.left - bar.left) / bar.width];
})"""
# The texts of a part that reach beyond it, of those that are shown.
BEYOND = """() => [...document.querySelectorAll(".step-bar a")].flatMap((one) => {
  const part = one.querySelector("rect").getBoundingClientRect();
  return [...one.querySelectorAll("text")].filter((word) => word.getBoundingClientRect().right > part.right + 1)
    .map((word) => word.textContent);
})"""
SIZES = ((390, 844), (504, 600), (800, 800), (1280, 800))


@pytest.mark.thorough
@pytest.mark.parametrize(("width", "height"), SIZES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_parts_are_as_wide_as_their_time_and_filled_as_far_as_is_needed(
    show: Show, width: int, height: int, scheme: str
) -> None:
    document = step_bars.mixed()
    assert document.account is not None
    page = show(document, viewport={"width": width, "height": height}, color_scheme=scheme).page
    shown = page.evaluate(PARTS)
    at = 0.0
    for (wide, high, left), row in zip(shown, document.account.rows, strict=True):
        assert wide == pytest.approx(row.seconds / document.account.seconds, abs=0.005)
        assert high == pytest.approx((row.least or 0.0) / row.seconds, abs=0.02)
        assert left == pytest.approx(at, abs=0.005)
        at += wide
    assert page.evaluate(BEYOND) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    hatched, hollow = (page.locator(f".step-bar rect.{look}").count() for look in ("unknown", "idle"))
    assert (hatched, hollow) == (1, 1)


@pytest.mark.thorough
def test_a_part_tells_row_time_limit_and_what_is_left_to_pointer_and_keyboard(show: Show) -> None:
    page = show(step_bars.mixed()).page
    part, tip = page.locator(".step-bar a").first, page.locator(".chart-tip")
    told = (
        "50 %, 5.00 ms; forward train.py:9: 3 x mm [64,64] x [64,64], cuBLAS; limit: tensor 95 %; "
        "at its limit it would take 4.75 ms"
    )
    part.hover()
    assert tip.inner_text() == told
    page.mouse.move(1, 1)
    assert tip.is_hidden()
    part.focus()
    assert tip.inner_text() == told
    page.keyboard.press("Escape")
    assert tip.is_hidden()
    assert part.get_attribute("aria-label") == told
    assert "needs none of this time" in (page.locator(".step-bar a").nth(2).get_attribute("aria-label") or "")
    assert "not known" in (page.locator(".step-bar a").last.get_attribute("aria-label") or "")


@pytest.mark.thorough
def test_tab_reaches_one_of_many_parts_and_arrow_keys_the_others(show: Show) -> None:
    document = step_bars.hostile_account()
    page = show(document).page
    page.locator(".step-bar a").first.focus()
    focused = "[...document.querySelectorAll('.step-bar a')].indexOf(document.activeElement)"
    places = []
    for key in ("ArrowRight", "ArrowRight", "ArrowLeft", "End", "ArrowRight", "Home"):
        page.keyboard.press(key)
        places.append(page.evaluate(focused))
    last = len(page_documents.HOSTILE) - 1
    assert places == [1, 2, 1, last, last, 0]
    assert "1.00 ms" in page.locator(".chart-tip").inner_text()
    page.keyboard.press("Tab")
    assert page.evaluate(focused) == -1


@pytest.mark.thorough
def test_enter_and_a_click_lead_to_the_row_of_the_table(show: Show) -> None:
    page = show(step_bars.mixed(), viewport={"width": 800, "height": 300}).page
    page.locator(".step-bar a").nth(2).focus()
    page.keyboard.press("Enter")
    row = page.locator("#account-row-2")
    assert "train.py:12" in row.inner_text()
    assert page.evaluate("document.activeElement.id") == "account-row-2"
    box = row.bounding_box()
    assert box is not None
    assert 0 <= box["y"] < 300
    page.locator(".step-bar a").first.click(position={"x": 20, "y": 20})
    assert page.evaluate("document.activeElement.id") == "account-row-0"


@pytest.mark.thorough
@pytest.mark.parametrize(("width", "height"), SIZES)
def test_headline_bar_and_first_finding_are_above_the_fold(
    show: Show, gpu_answer: RunDocument, width: int, height: int
) -> None:
    page = show(gpu_answer, viewport={"width": width, "height": height}).page
    for what in ("#account .headline", ".step-bar svg", "#actions ol > li > b"):
        box = page.locator(what).first.bounding_box()
        assert box is not None
        assert box["y"] + box["height"] <= height, what
    order = page.locator("main > section").evaluate_all("all => all.map((one) => one.id)")
    wanted = ["account", "actions", "targets", "profiled", "account-rows", "kernels", "verdicts", "numbers"]
    assert [one for one in order if one in wanted] == wanted


@pytest.mark.thorough
def test_names_on_the_bar_are_names(show: Show) -> None:
    document = step_bars.hostile_account()
    assert problems(render(document)) == []
    page = show(document).page
    assert page.locator(".step-bar a").count() == len(page_documents.HOSTILE)
    page.locator(".step-bar a").first.hover()
    assert page.locator(".chart-tip script, main script").count() == 0
    assert page.title() != "ran"


@pytest.mark.thorough
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_bar_is_easy_to_see_hear_and_reach(show: Show, scheme: str) -> None:
    from axe_playwright_python.sync_playwright import Axe

    page: Any = show(step_bars.mixed(), color_scheme=scheme).page
    found = Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
    assert [(one["id"], [node["html"][:200] for node in one["nodes"][:3]]) for one in found] == []


def test_without_a_script_the_bar_is_there_and_leads_to_its_rows(show: Show) -> None:
    page = show(step_bars.mixed(), java_script_enabled=False).page
    page.locator(".step-bar a").nth(1).click(position={"x": 10, "y": 40})
    assert page.url.endswith("#account-row-1")
    assert Path(page.url.split("#")[0].removeprefix("file://")).is_file()
