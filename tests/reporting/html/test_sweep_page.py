"""The page of a sweep in a real browser: by mouse, by keyboard, on a phone, without a script, with hostile names."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from profkit.core.types import SweepDocument
from profkit.reporting.html import page as html
from profkit.reporting.views.kernels.sweep import view
from tests import sweep_documents as sweeps
from tests.browser import Visit, visit
from tests.reporting.html.markup import problems

LIVE = "#kernel-table tbody tr:not([hidden])"
Open = Callable[..., Visit]


@pytest.fixture
def open_sweep(browser: Any, tmp_path: Path) -> Iterator[Open]:
    """Opens the page of a sweep; at the test's end it must have asked nothing and complained of nothing."""
    with contextlib.ExitStack() as opened:

        def one(document: SweepDocument, **context: Any) -> Visit:
            path = tmp_path / "report.html"
            path.write_text(html.render(view(document)), encoding="utf-8")
            return opened.enter_context(visit(browser, path, **context))

        yield one


@pytest.mark.parametrize("name", sorted(sweeps.odd()))
def test_the_markup_is_valid_whatever_is_missing(name: str) -> None:
    assert problems(html.render(view(sweeps.odd()[name]))) == []


def test_names_that_are_markup_are_shown_and_run_nothing(open_sweep: Open) -> None:
    assert problems(html.render(view(sweeps.hostile()))) == []
    page = open_sweep(sweeps.hostile()).page
    page.locator(LIVE).nth(1).click()
    assert page.title().startswith("Sweep on </script><script>document.title='ran'")
    assert page.locator("main script").count() == 0


def test_the_cases_are_sorted_by_a_click_and_filtered_by_words(open_sweep: Open) -> None:
    page = open_sweep(sweeps.sweep("GELU", "MSE")).page
    page.locator(LIVE).first.wait_for()
    titles = [one.strip() for one in page.locator("#kernel-table thead th").all_inner_texts()]
    assert titles[:2] == ["Case", "By"]
    page.locator("#kernel-table thead button", has_text="Speed-up").click()
    assert page.locator(f"{LIVE} > :nth-child(2)").first.inner_text() == "CUDA"
    page.get_by_label("Filter").fill("mse triton 32x512x64")
    assert page.locator("#kernel-count").inner_text() == "1 of 96 rows"
    assert page.locator(LIVE).get_attribute("data-name") == "Triton, MSE forward float32 32x512x64"
