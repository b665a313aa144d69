"""Charts on a page in a real browser: words that stand apart at any width, marks that the keyboard reaches, flames."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from profkit.analysis.stacks.files import read_speedscope
from profkit.analysis.stacks.wall_time import THREAD, TITLE, wait_frame
from profkit.core.types import ChangePoint, Frame, HistoryPoint, Series, SeriesKey, Stacks, Trend
from profkit.reporting.charts.marks import ChartGroup
from profkit.reporting.charts.trend import trend_chart
from profkit.reporting.html.page import render
from profkit.reporting.view import View
from profkit.reporting.views.kernels.sweep import view as sweep_view
from profkit.reporting.views.run_about import Extras
from tests import documents
from tests import sweep_documents as sweeps
from tests.browser import visit

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


def extras() -> Extras:
    main, work = Frame("main", "python", "train.py"), Frame("at::native::gemm<float>", "libtorch_cpu.so")
    helper, swapper = Frame("helper", "python", "train.py"), Frame("swapper", "[kernel]")
    weights = {(main, work): 3.0, (main, helper): 1.0, (swapper,): 0.5}
    return Extras(stacks=(Stacks("cpu-clock", "s", weights),))


@pytest.mark.thorough
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_curves_of_a_sweep_fit_any_screen_and_tell_their_values_to_the_keyboard(
    browser: Any, tmp_path: Path, width: int, scheme: str
) -> None:
    path = tmp_path / "report.html"
    path.write_text(render(sweep_view(sweeps.sweep("LayerNorm", "GELU"))), encoding="utf-8")
    with visit(browser, path, viewport={"width": width, "height": 900}, color_scheme=scheme) as visited:
        page = visited.page
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.locator("#axes svg.chart").count() == 6
        assert page.evaluate(OVERLAPS) == []
        assert min(page.evaluate(LETTERS)) >= 10.5
        page.locator('#axes [aria-label^="CUDA: 8 "]').first.focus()
        assert page.locator(".chart-tip").text_content().startswith("CUDA: 8 ")
        strokes = page.evaluate(
            "[...document.querySelectorAll('#axes svg')[0].querySelectorAll('path.curve')]"
            ".map((one) => getComputedStyle(one).stroke)"
        )
        assert len(set(strokes)) == 4  # each implementation has its colour


@pytest.mark.thorough
def test_a_curve_of_a_sweep_has_its_interval_around_it(browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(render(sweep_view(sweeps.sweep("GELU", half=0.4))), encoding="utf-8")
    with visit(browser, path) as visited:
        page = visited.page
        chart = page.locator("#axes svg.chart").first
        assert chart.locator("path.held").count() == chart.locator("path.curve").count() == 4
        boxes = "all => all.map((one) => { const b = one.getBBox(); return [b.y, b.y + b.height]; })"
        areas = chart.locator("path.held").evaluate_all(boxes)
        curves = chart.locator("path.curve").evaluate_all(boxes)
        for (top, bottom), (high, low) in zip(areas, curves, strict=True):
            assert top < high
            assert bottom > low
        assert "±" in (chart.locator("[role=img]").last.get_attribute("aria-label") or "")


@pytest.fixture
def charts(browser: Any, tmp_path: Path) -> Iterator[Any]:
    """A page with the trend of forty nights and a change."""
    nights = tuple(
        HistoryPoint(f"{n}", f"2026-02-{n % 28 + 1:02}T03:00:00+00:00", "m", 4e-3 + n * 1e-5)
        for n in range(40)
    )
    series = Series(SeriesKey("mlp", "cuda", "time.median"), "s", "lower", nights)
    chart = trend_chart(Trend(series, change_points=(ChangePoint(20, 4e-3, 4.2e-3),)))
    path = tmp_path / "report.html"
    path.write_text(render(View("trend", (ChartGroup((chart, chart)),))), encoding="utf-8")
    with visit(browser, path) as visited:
        yield visited.page


@pytest.mark.thorough
def test_no_words_overlap_and_letters_can_be_read_at_any_width(charts: Any) -> None:
    page = charts
    assert page.locator("svg.chart").count() >= 1
    for width in (320, 480, 640, 768, 1280, 3840):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("innerWidth") == width
        assert page.evaluate(OVERLAPS) == [], width
        assert all(8 <= size <= 20 for size in page.evaluate(LETTERS)), width
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_mark_tells_its_value_to_the_keyboard_and_escape_hides_it(charts: Any) -> None:
    page = charts
    mark = page.locator("svg.chart [tabindex]").last
    mark.focus()
    tip = page.locator(".chart-tip")
    assert tip.inner_text() == mark.get_attribute("aria-label")
    page.keyboard.press("Escape")
    assert tip.is_hidden()


def test_a_flame_graph_zooms_searches_and_is_walked_by_arrow_keys(show: Show) -> None:
    page = show(documents.document(), extras()).page
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


def wall() -> Extras:
    main, sleepy = Frame("main", THREAD), Frame("sleepy", THREAD)
    work, gemm = Frame("work", "python", "train.py"), Frame("dgemm_kernel", "libblas.so")
    weights = {
        (main, work): 2.0,
        (main, work, gemm): 3.0,
        (main, work, wait_frame("lock")): 1.0,
        (sleepy, work, wait_frame("sleep")): 4.0,
    }
    native = {(Frame("start", "a.out"), gemm): 1.0}
    return Extras(stacks=(Stacks(TITLE, "s", weights), Stacks("cpu-clock", "s", native)))


def widths(page: Any) -> dict[str, float]:
    boxes = page.locator(".flame").first.locator(".flame-box")
    told = boxes.evaluate_all(
        "all => all.map(one => [one.getAttribute('aria-label').split(':')[0], one.offsetWidth / "
        "one.parentElement.clientWidth])"
    )
    return {name: pytest.approx(share, abs=0.01) for name, share in told}


def test_one_flame_graph_has_python_native_code_and_waits_in_one_stack(show: Show) -> None:
    page = show(documents.document(), wall()).page
    assert widths(page) == {
        "main (thread)": 0.6,
        "sleepy (thread)": 0.4,
        "work (train.py) (Python)": 0.4,  # of two alike the last one
        "dgemm_kernel (native)": 0.3,
        "waits for a lock (waits for a lock)": 0.1,
        "sleeps (sleeps)": 0.4,
    }
    colours = (
        page.locator(".flame")
        .first.locator(".flame-box")
        .evaluate_all("all => all.map(one => getComputedStyle(one).background)")
    )
    assert len(set(colours)) == 5  # thread, Python, native, lock, sleep
    page.get_by_label("Only what runs").check()
    assert widths(page) == {"main (thread)": 1, "work (train.py) (Python)": 1, "dgemm_kernel (native)": 0.6}
    page.get_by_label("Only what runs").uncheck()
    assert len(widths(page)) == 6


def test_the_flame_graph_is_downloaded_for_speedscope_with_all_of_its_time(
    show: Show, tmp_path: Path
) -> None:
    page = show(documents.document(), wall()).page
    with page.expect_download() as download:
        page.get_by_role("button", name="Download for speedscope").first.click()
    path = tmp_path / "saved.speedscope.json"
    download.value.save_as(path)
    (saved,) = read_speedscope(path)
    assert saved.unit == "s"
    found = {tuple(frame.function for frame in frames): seconds for frames, seconds in saved.weights.items()}
    assert found[("main", "work (train.py)", "dgemm_kernel")] == pytest.approx(3.0, abs=1e-4)
    assert sum(found.values()) == pytest.approx(10.0, abs=1e-4)


def test_native_stacks_that_no_python_is_in_stay_reachable_below(show: Show) -> None:
    page = show(documents.document(), wall()).page
    fold = page.locator("#flame-graph details", has_text="Native code alone")
    assert fold.locator(".flame-box").first.is_hidden()
    fold.locator("summary").first.click()
    assert fold.locator(".flame-box", has_text="dgemm_kernel").is_visible()
