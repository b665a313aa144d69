"""How long a page is: whatever a run holds it opens at once, and says how much of the run it leaves out."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from profkit.core.types import RunDocument
from profkit.reporting.views.run_about import Extras
from tests.page_documents import deep_stacks, full_timeline, largest, many
from tests.reporting.html.conftest import Show
from tests.reporting.html.markup import problems
from tests.reporting.shown import run_page

MAX_BYTES = 500_000  # bytes


def kernels_and_marks(*, labels: int, width: int) -> RunDocument:
    run = many(1000, counted=300)
    assert run.trace is not None
    return replace(run, trace=replace(run.trace, timeline=full_timeline(labels, 5000, width=width)))


def drawn(page: str) -> Any:
    found = re.search(r'id="timeline-data">(.*?)</script>', page)
    assert found is not None
    return json.loads(found[1])[0]


@pytest.mark.thorough
@pytest.mark.parametrize(("labels", "width"), [(100, 60), (1000, 100), (5000, 200), (5000, 600)])
def test_a_page_of_a_thousand_kernels_and_five_thousand_marks_is_below_500_kb(
    labels: int, width: int
) -> None:
    page = run_page(kernels_and_marks(labels=labels, width=width))
    assert len(page.encode()) <= MAX_BYTES
    assert "kernel-table" in page


@pytest.mark.thorough
def test_the_largest_page_that_can_be_made_is_below_500_kb_and_opens_within_a_second(show: Show) -> None:
    visit = show(largest(), Extras(stacks=deep_stacks()))
    assert visit.path.stat().st_size <= MAX_BYTES
    assert visit.page.title() != "ran"
    assert visit.page.locator(".timeline-canvas").count() == 2
    assert visit.page.locator("#flame-graph").count() == 1
    opened = "performance.getEntriesByType('navigation')[0].domInteractive"
    assert visit.page.evaluate(opened) < 1000  # ms
    assert problems(visit.path.read_text()) == []


@pytest.mark.thorough
@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (1280, "dark")])
def test_the_largest_page_is_not_hard_to_see_hear_or_reach(show: Show, width: int, scheme: str) -> None:
    from axe_playwright_python.sync_playwright import Axe

    viewport = {"width": width, "height": 900}
    page = show(largest(), Extras(stacks=deep_stacks()), color_scheme=scheme, viewport=viewport).page
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    found = Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
    assert [(one["id"], [node["html"][:200] for node in one["nodes"][:3]]) for one in found] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.thorough
def test_what_a_page_leaves_out_is_counted_and_the_line_that_shows_it_is_named() -> None:
    run = kernels_and_marks(labels=5000, width=200)
    assert run.trace is not None
    page = run_page(run)
    rows = page.count("data-row=")
    others = sum(time.total for time in run.trace.kernels[rows:]) / sum(
        time.total for time in run.trace.kernels
    )
    said = re.search(r"([\d,]+) more, ([\d.]+) % of the time together, stand in the JSON document", page)
    assert said is not None
    assert int(said[1].replace(",", "")) == 1000 - rows
    assert float(said[2]) == pytest.approx(100 * others, abs=0.1)
    assert "profkit report RUN --format json" in page


@pytest.mark.thorough
def test_marks_that_are_merged_for_a_small_page_keep_their_number_and_their_time() -> None:
    run = kernels_and_marks(labels=1000, width=200)
    made = run.trace.timeline if run.trace is not None else None
    assert made is not None
    page = run_page(run)
    lanes = drawn(page)["lanes"]
    assert sum(len(lane["s"]) for lane in lanes) < 5000
    assert "To keep this page small, short marks were merged" in page
    kept = {lane["name"] for lane in lanes}
    assert len(kept) == len(lanes) == len(made.lanes)
    for lane, shown in zip(made.lanes, lanes, strict=True):
        assert sum(shown.get("c", [1] * len(shown["s"]))) == sum(lane.counts)
        assert sum(shown.get("b", shown["d"])) == sum(lane.busy)


def test_a_page_that_is_small_anyway_leaves_nothing_out() -> None:
    run = many(100)
    assert run.trace is not None
    page = run_page(replace(run, trace=replace(run.trace, timeline=full_timeline(100, 1000, width=60))))
    assert page.count("data-row=") == 100
    assert sum(len(lane["s"]) for lane in drawn(page)["lanes"]) == 1000
    assert "To keep this page small" not in page
