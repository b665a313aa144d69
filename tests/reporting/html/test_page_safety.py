"""A page does what it is asked and nothing else, whatever kernels, files and commands are called."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from profkit.core.types import RunDocument
from profkit.reporting.html.elements import island, link
from profkit.reporting.html.page import render as render_page
from profkit.reporting.views.kernels.sweep import view as sweep_view
from tests import documents, page_documents
from tests import sweep_documents as sweeps
from tests.browser import visit
from tests.reporting.html.conftest import Show
from tests.reporting.html.markup import problems
from tests.reporting.shown import run_page as render


@pytest.mark.thorough
def test_names_that_are_markup_are_shown_and_run_nothing(show: Show) -> None:
    visit = show(page_documents.hostile())
    page = visit.page
    for one in page.locator("details").all():
        one.evaluate("one => { one.open = true }")
    page.locator("#kernel-table tbody tr").first.click()
    page.fill("#kernel-filter", "<script>")
    page.wait_for_timeout(50)
    assert page.title() == "</script><script>document.title='ran'</script> on cuda"
    assert page.locator("#kernel-table tbody tr:not([hidden])").count() == 3
    assert page.locator("main script, main img, main svg[onload]").count() == 0


def test_names_in_a_sweep_run_nothing_either(browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(render_page(sweep_view(sweeps.hostile())), encoding="utf-8")
    assert problems(path.read_text(encoding="utf-8")) == []
    with visit(browser, path) as opened:
        opened.page.locator("#kernel-table tbody tr:not([hidden])").nth(1).click()
        assert opened.page.title().startswith("Sweep on </script><script>document.title='ran'")
        assert opened.page.locator("main script").count() == 0


def test_even_markup_that_slipped_through_could_run_nothing(show: Show, gpu_document: RunDocument) -> None:
    visit = show(gpu_document)
    visit.page.evaluate(
        """() => { const box = document.createElement('div');
        box.innerHTML = '<img src="http://192.0.2.1/x.png"><img src=x onerror="document.title=1">';
        document.body.append(box);
        const script = document.createElement('script'); script.textContent = 'document.title=2';
        document.body.append(script);
        const style = document.createElement('link'); style.rel = 'stylesheet'; style.href = 'http://192.0.2.1/';
        document.head.append(style); }"""
    )
    visit.page.wait_for_timeout(50)
    assert visit.page.title() == "truths.full.ncu-rep on cuda"
    assert visit.said
    assert all("Content Security Policy" in line for line in visit.said)
    visit.said.clear()


@pytest.mark.parametrize("make", [page_documents.hostile, documents.document, documents.empty])
def test_the_markup_is_valid_and_names_nothing_that_is_not_there(make: object) -> None:
    document = make()  # type: ignore[operator]
    assert problems(render(document)) == []


def test_what_reorders_ends_or_hides_a_line_is_made_visible() -> None:
    made = render(page_documents.hostile())
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069\u2028\u2029\ud800-\udfff]", made)
    made.encode()


def test_a_page_names_no_address_but_that_of_svg() -> None:
    made = render(documents.document())
    assert set(re.findall(r"(?:https?:)?//[\w.-]+", made)) <= {"http://www.w3.org"}
    assert "@import" not in made
    assert "url(" not in made


@pytest.mark.parametrize("name", page_documents.HOSTILE)
def test_data_for_a_script_cannot_end_its_element(name: str) -> None:
    told = island({name: [name, None, 1.5]})
    assert not re.search("[<>&\u2028\u2029]", told)
    assert json.loads(told) == {name: [name, None, 1.5]}


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("artifacts/a b#c?.json", "./artifacts/a%20b%23c%3F.json"),
        ("javascript:alert(1)", "./javascript%3Aalert%281%29"),
        ("//192.0.2.1/x", ".///192.0.2.1/x"),
        ("caf\udce9.txt", "./caf%E9.txt"),  # no UTF-8 on disk
        ("\ud800", "./%3F"),
    ],
)
def test_a_link_to_a_file_stays_beside_the_page(name: str, target: str) -> None:
    assert link(name) == target
