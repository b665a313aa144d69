"""Charts on a page in a real browser: words that stand apart at any width, marks that the keyboard reaches, flames."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from profkit.core.types import (
    RUN,
    AllocationLine,
    Allocations,
    Frame,
    Hotspot,
    MemoryGrowth,
    Point,
    Profile,
    Reading,
    RunDocument,
    SampleSet,
    Series,
    SeriesKey,
    Source,
    Stacks,
    Timing,
    Trend,
)
from profkit.profiling.evaluate_targets import enrich_document as enrich
from profkit.profiling.evaluate_targets import summarize_document as summarize
from profkit.reporting.extras import Extras
from profkit.reporting.html import page as page_of
from profkit.reporting.views.history import trends_view
from tests import documents, page_documents
from tests.browser import visit
from tests.reporting.html import metal_pages

Show = Callable[..., Any]
# Pairs of words of one chart whose boxes overlap by more than a pixel or two, as the browser laid them out.
OVERLAPS = """() => {
  const found = [];
  for (const chart of document.querySelectorAll("svg.chart")) {
    const words = [...chart.querySelectorAll("text")].map((one) => [one.textContent, one.getBoundingClientRect()]);
    for (let i = 0; i < words.length; i++) for (let j = i + 1; j < words.length; j++) {
      const [a, one] = words[i], [b, other] = words[j];
      const wide = Math.min(one.right, other.right) - Math.max(one.left, other.left);
      const high = Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top);
      if (wide > 1.5 && high > 0.35 * Math.min(one.height, other.height)) found.push(a + " | " + b);
    }
  }
  return found;
}"""
LETTERS = """() => [...document.querySelectorAll("svg.chart")].map((chart) => {
  const scale = chart.getBoundingClientRect().width / chart.viewBox.baseVal.width;
  return scale * parseFloat(getComputedStyle(chart).fontSize);
})"""


def cpu_run() -> RunDocument:
    """A run with everything that a processor can tell, its samples in several processes."""
    run = documents.document()
    sets = tuple(
        SampleSet(documents.noise(300, 4.1e-3 * (1 + n / 100)), warmup=documents.noise(40, 8e-3))
        for n in range(3)
    )
    timing = Timing("gated_mlp", "benchmark", sets, 0.01, 54e6, 6e6)
    traffic = Reading("dram.bytes", 6e6, "B", "simulated", RUN, Source("valgrind"))
    spots = (
        Hotspot("step", 1.5, 2.0, 10, "/a/train.py", 3),
        Hotspot("<lambda>", 0.5, 0.5, 10, "/a/train.py", 9),
    )
    python = Profile("own time by function", "s", 2.0, spots, "own-time")
    told = replace(
        run, timings=(timing,), readings=(*run.readings, traffic), profiles=(python, *run.profiles)
    )
    made = enrich(told)
    return replace(made, summaries=summarize(made))


def extras() -> Extras:
    main, work = Frame("main", "python", "train.py"), Frame("at::native::gemm<float>", "libtorch_cpu.so")
    helper, swapper = Frame("helper", "python", "train.py"), Frame("swapper", "[kernel]")
    weights = {(main, work): 3.0, (main, helper): 1.0, (swapper,): 0.5}
    growth = MemoryGrowth(
        0.0, 0.0, 0.0, 90, False, "what is held after a collection does not grow with its iterations"
    )
    lines = (AllocationLine("/a/b/train.py", 7, 1 << 20, 12), AllocationLine("/a/b/<b>.py", 9, 1 << 19, 3))
    points = tuple((i, 70_000_000 + i % 3) for i in range(100))
    held = Allocations(80_000_000, 70_000_000, 0, 75_000_000, growth, lines, (), "3.11", (), points)
    return Extras(stacks=(Stacks("cpu-clock", "s", weights),), allocations=held)


RUNS: dict[str, Callable[[RunDocument], tuple[RunDocument, Extras]]] = {
    "gpu": lambda counted: (counted, Extras()),
    "cpu": lambda _: (cpu_run(), extras()),
    "metal": lambda _: (metal_pages.document(), Extras()),
}


@pytest.mark.parametrize("run", RUNS)
def test_no_words_overlap_and_letters_can_be_read_at_any_width(
    show: Show, gpu_document: RunDocument, run: str
) -> None:
    page = show(*RUNS[run](gpu_document)).page
    assert page.locator("svg.chart").count() >= 2
    for width in (320, 480, 640, 768, 1280, 3840):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("innerWidth") == width
        assert page.evaluate(OVERLAPS) == [], width
        assert all(8 <= size <= 20 for size in page.evaluate(LETTERS)), width
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_mark_tells_its_value_to_the_keyboard_and_escape_hides_it(show: Show) -> None:
    page = show(cpu_run(), extras()).page
    mark = page.locator("#roofline [tabindex]").last
    mark.focus()
    tip = page.locator(".chart-tip")
    assert "FLOP/s" in tip.inner_text()
    assert tip.inner_text() == mark.get_attribute("aria-label")
    page.keyboard.press("Escape")
    assert tip.is_hidden()


def test_marks_of_time_and_roofline_lead_to_where_their_numbers_come_from(
    show: Show, gpu_document: RunDocument
) -> None:
    page = show(page_documents.many(12)).page
    mark = page.locator("#where-time a[tabindex='0']").last
    mark.focus()
    assert "its part / the sum of all parts" in page.locator("#tip").inner_text()
    page.keyboard.press("Enter")
    assert page.evaluate("location.hash") == mark.get_attribute("href")
    page = show(gpu_document).page
    marks = page.locator("#roofline a[tabindex='0']")
    assert marks.count() == page.locator("#roofline .chart [tabindex='0']").count() >= 8
    marks.last.focus()
    assert "Share of the roofline" in page.locator("#tip").inner_text()


def test_a_year_tells_the_value_under_the_pointer(browser: Any, tmp_path: Path) -> None:
    values = [4e-3 + 1e-6 * day for day in range(365)]
    first = datetime(2026, 1, 1, 3, tzinfo=timezone.utc)
    points = tuple(
        Point(f"r{n}", (first + timedelta(days=n)).isoformat(), "m", v) for n, v in enumerate(values)
    )
    trend = Trend(Series(SeriesKey("mlp", "cuda", "time.median"), "s", "lower", points))
    path = tmp_path / "trend.html"
    path.write_text(page_of.render(trends_view([trend])), encoding="utf-8")
    with visit(browser, path, viewport={"width": 900, "height": 700}) as opened:
        opened.page.locator(".reader").focus()
        opened.page.keyboard.press("End")
        assert opened.page.locator(".chart-tip").inner_text().startswith("2026-12-")
        ring = opened.page.locator(".ring").bounding_box()
        opened.page.evaluate("document.activeElement.blur()")
        opened.page.mouse.move(ring["x"] + 4, ring["y"] + 4)
        assert opened.page.locator(".chart-tip").inner_text().startswith("2026-12-")
        opened.page.mouse.move(5, 5)
        assert opened.page.locator(".chart-tip").is_hidden()


def test_a_chart_is_told_in_words(show: Show) -> None:
    page = show(cpu_run(), extras()).page
    for chart in page.locator("svg.chart").all():
        names = (chart.get_attribute("aria-labelledby") or "").split()
        assert len(names) == 2
        assert all((page.locator(f"#{name}").text_content() or "").strip() for name in names)


def test_a_flame_graph_zooms_searches_and_is_walked_by_arrow_keys(show: Show) -> None:
    page = show(cpu_run(), extras()).page
    boxes = page.locator(".flame-box")
    assert boxes.count() == 4
    box = boxes.filter(has_text="main (train.py)")
    share = box.evaluate("one => one.offsetWidth / one.parentElement.clientWidth")
    assert share == pytest.approx(4 / 4.5, abs=0.01)
    box.focus()
    assert "88.9 %" in page.locator(".flame-told").inner_text()
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.textContent") == "at::native::gemm<float>"
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.textContent") == "helper (train.py)"
    page.keyboard.press("Enter")
    assert (
        boxes.filter(has_text="helper").evaluate("one => one.offsetWidth / one.parentElement.clientWidth")
        > 0.99
    )
    assert boxes.filter(has_text="swapper").count() == 0
    page.keyboard.press("Escape")
    assert boxes.count() == 4
    page.get_by_label("Find in cpu-clock").fill("GEMM")
    assert page.locator(".flame-box.found").all_inner_texts() == ["at::native::gemm<float>"]
    assert "66.7 %" in page.locator(".flame-told").inner_text()


def test_a_flame_graph_of_a_phone_and_of_paper_stays_inside(show: Show) -> None:
    visit = show(cpu_run(), extras(), viewport={"width": 320, "height": 700})
    visit.page.emulate_media(media="print")
    assert [one.is_visible() for one in visit.page.locator(".flame-box").all()] == [True] * 4
    assert [one.is_hidden() for one in visit.page.locator(".flame-tools").all()] == [True, True]


def test_without_a_script_the_hottest_functions_are_a_table(show: Show) -> None:
    page = show(cpu_run(), extras(), java_script_enabled=False).page
    assert page.locator(".flame").is_hidden()
    assert page.locator("#flame-graph td").first.inner_text() == "at::native::gemm<float>"
