"""The roofline on a page in a real browser, held against the model that it draws."""

from __future__ import annotations

from math import log10
from typing import Any

import pytest

from profkit.analysis.summaries.roofline_points import roofline_model
from profkit.core.types import RunDocument
from tests import kernel_documents
from tests.page_documents import HOSTILE
from tests.reporting.html.conftest import Show
from tests.reporting.html.markup import problems
from tests.reporting.html.test_page_charts import OVERLAPS
from tests.reporting.shown import run_page as render

VALUES = {
    "bandwidth.dram.peak": 1e12,
    "flops.peak.f32": 1e13,
    "bandwidth.dram": 5e11,
    "flops.rate.f32": 2e12,
}
MARKS = """() => [...document.querySelectorAll("#roofline circle")].map((one) =>
  ["cx", "cy", "r"].map((name) => parseFloat(one.getAttribute(name))))"""


def kernels(*work: tuple[float, float, float]) -> RunDocument:
    """Kernels with these seconds, bytes/s and FLOP/s."""
    return kernel_documents.document(
        {
            kernel_documents.kernel(f"k{n}"): (
                seconds,
                {**VALUES, "bandwidth.dram": moved, "flops.rate.f32": flop},
            )
            for n, (seconds, moved, flop) in enumerate(work)
        },
        span=10.0,
        busy=10.0,
    )


FOUR = kernels((5.0, 5e11, 2e12), (3.0, 1e11, 5e12), (1.0, 9e11, 9e10), (1.0, 1e10, 1e9))


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_marks_stand_where_the_model_has_them_and_are_as_large_as_their_time(
    show: Show, width: int, scheme: str
) -> None:
    page = show(FOUR, viewport={"width": width, "height": 800}, color_scheme=scheme).page
    model = roofline_model(FOUR)
    assert model is not None
    shown = list(reversed(page.evaluate(MARKS)))
    x = line_through([(log10(one.intensity), at[0]) for one, at in zip(model.points, shown, strict=True)])
    y = line_through([(log10(one.rate), at[1]) for one, at in zip(model.points, shown, strict=True)])
    for one, (across, up, _) in zip(model.points, shown, strict=True):
        assert across == pytest.approx(x(log10(one.intensity)), abs=0.3)
        assert up == pytest.approx(y(log10(one.rate)), abs=0.3)
    areas = [radius**2 - 2.4**2 for *_, radius in shown]
    assert areas[0] / areas[1] == pytest.approx(5 / 3, rel=0.05)
    assert page.evaluate(OVERLAPS) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def line_through(points: list[tuple[float, float]]) -> Any:
    """The straight line through the outermost of the points, as a function."""
    (a, b), (c, d) = min(points), max(points)
    return lambda value: b + (d - b) * (value - a) / (c - a)


def test_a_mark_has_its_name_and_numbers_for_the_keyboard_and_the_table_has_them_too(show: Show) -> None:
    page = show(FOUR).page
    mark = page.locator("#roofline [role=img]").last
    mark.focus()
    told = page.locator(".chart-tip").inner_text()
    assert told.startswith("k0: 50 % of the GPU time; 4.00 FLOP/B, 2.00 TFLOP/s, 50 % of what")
    page.locator("#roofline summary").click()
    row = page.locator("#roofline tbody tr").first.inner_text()
    assert row.split() == [
        "1",
        "k0",
        "50.0",
        "%",
        "4.00",
        "FLOP/B",
        "2.00",
        "TFLOP/s",
        "FP32",
        "50.0",
        "%",
        "counters",
    ]
    assert page.locator("#roofline tbody tr").count() == 4


def test_what_is_not_known_is_said_and_not_drawn(show: Show) -> None:
    page = show(kernels((5.0, 5e11, 2e12), (5.0, 5e11, 0.0))).page
    assert page.locator("#roofline circle").count() == 1
    assert "50 % of the GPU time" in page.locator("#roofline .headline").inner_text()
    assert "not drawn" in page.locator("#roofline .headline").inner_text()


@pytest.mark.thorough
def test_three_thousand_kernels_are_sixty_marks_and_names_are_names(show: Show) -> None:
    work = {
        kernel_documents.kernel(f"{HOSTILE[n % len(HOSTILE)]}{n}"): (1.0 / (n + 1), VALUES)
        for n in range(3000)
    }
    document = kernel_documents.document(work, span=100.0, busy=100.0)
    assert problems(render(document)) == []
    page = show(document).page
    assert page.locator("#roofline circle").count() == 60
    assert page.title() != "ran"
