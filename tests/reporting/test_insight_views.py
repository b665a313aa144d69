"""How insights are shown: joined by rule, with their place; and what is said where there is none."""

from __future__ import annotations

from dataclasses import replace

import pytest

from profkit.core.types import (
    Beneath,
    CodeLine,
    CodeSpot,
    Gain,
    GpuTrace,
    Insight,
    Kernel,
    KernelTime,
    LineCode,
    Place,
    SampledTime,
)
from profkit.profiling.summarize import judge_document, targets_for
from profkit.reporting import terminal
from profkit.reporting.view import DataTable, TableColumn, View, plain_text
from profkit.reporting.views.run_insights import does_text, join_insights, more_text, where_text
from tests import documents
from tests import gpu_documents as gpu
from tests.reporting.shown import run_markdown, run_text


def test_what_a_rule_says_of_several_kernels_is_one_item_that_counts_them() -> None:
    def insight(kernel: Kernel, share: float) -> Insight:
        gain = Gain(share, "the GPU time", "of this kernel")
        return Insight("r", "Pad it", f"{kernel.name} is odd", "Pad.", Place(kernel=kernel.name), gain)

    other = Insight("s", "Fuse it", "many", "Fuse.", gain=Gain(0.25, "the GPU time", "all"))
    kernels = [replace(gpu.GEMM, name=f"k{number}") for number in range(5)]
    document = gpu.report(insights=(other, *(insight(kernel, 0.1) for kernel in kernels)))
    text = " ".join(run_text(document, color=False).split())
    assert text.count("Pad it - could save up to 50 % of the GPU time") == text.count("Pad it") == 1
    assert "also k1 (10.0 %), k2 (10.0 %), k3 (10.0 %) and 1 more kernel " in text
    assert text.index("Pad it") < text.index("Fuse it")


def test_the_same_advice_at_several_places_is_one_item_with_the_sum_of_their_bounds() -> None:
    def insight(line: int, share: float, change: str = "Use processes.") -> Insight:
        place = Place(function="work", file="/app/t.py", line=line)
        gain = Gain(share, "the run time", "of this place")
        return Insight("threads", "One thread at a time", f"line {line}", change, place, gain)

    found = [insight(7, 0.2), insight(9, 0.1), insight(3, 0.05), insight(4, 0.05, "Use numpy.")]
    assert [(one.insight.where.line, len(one.others)) for one in join_insights(found)] == [(7, 2), (4, 0)]
    document = replace(documents.document(), insights=tuple(found), hot_spots=(), account=None)
    text = " ".join(run_text(document, color=False).split())
    assert "One thread at a time - could save up to 35 % of the run time" in text
    assert "also work t.py:9 (10.0 %), work t.py:3 (5.0 %)" in text.replace("/app/", "")


def test_kernels_that_only_fill_tensors_with_random_numbers_are_set_up_and_judged_by_nothing() -> None:
    name = "void at::native::distribution_elementwise_grid_stride_kernel<float, 4>(int)"
    drawn = replace(gpu.GEMM, name=name)
    readings = tuple(replace(r, scope=drawn.scope) for r in gpu.readings()[:13])
    trace = GpuTrace("ncu", (KernelTime(drawn, 1, 1e-3),))
    document = judge_document(gpu.report(readings=readings, trace=trace), targets_for("cuda"))
    assert document.kernels
    assert {verdict.verdict for verdict in document.verdicts} == {"not-applicable"}
    for text in (run_text(document, color=False), run_markdown(document)):
        assert "PyTorch's initialisers" in text
        last = text[text.rindex("To know more") :]
        assert "regex:NAME" in last
        assert "--launch-skip" in last
        assert "profkit.region" in last


@pytest.mark.parametrize(
    ("calls", "each", "partial", "said"),
    [
        (1, 0.0333, False, "runs: run"),  # how often and how long the row itself says
        (1, None, True, "runs: run"),
        (2000, 0.0004, False, "runs: 2,000 x run, 400 µs each"),
        (2000, None, True, "runs: ≥ 2,000 x run"),
    ],
)
def test_a_row_counts_calls_only_where_there_are_several(
    calls: int, each: float | None, partial: bool, said: str
) -> None:
    spot = CodeSpot(0.5, 1.0, "library", under=Beneath("run", "asyncio", calls, each), partial=partial)
    assert does_text(spot) == said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("for line in order.lines:", "runs: order.lines"),
        ("total += line.price * line.count", "runs: sqlalchemy attribute"),
    ],
)
def test_an_attribute_that_a_library_looks_up_is_called_as_the_line_reads_it(text: str, said: str) -> None:
    under = Beneath("__get__", "sqlalchemy", public="InstrumentedAttribute")
    assert does_text(CodeSpot(0.5, 1.0, "library", under=under, code=LineCode(text))) == said


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("pandas/core/apply.py", "runs: apply"),  # a module that nobody calls
        ("pandas/core/frame.py", "runs: apply; 69 % in DataFrame.items"),
    ],
)
def test_a_row_is_opened_to_what_users_of_a_library_know(file: str, said: str) -> None:
    inside = (CodeLine("DataFrame.items", f"/venv/site-packages/{file}", 1, 0.69),)
    assert does_text(CodeSpot(0.5, 1.0, "library", under=Beneath("apply", "pandas"), inside=inside)) == said


@pytest.mark.parametrize(
    ("function", "shown"),
    [
        ("Shop.sell", "Shop.sell test_shop.py:12"),
        ("PrimeFunctionTests.test_next_prime", "test_next_prime test_shop.py:12"),
        ("Tests.test_an_order_of_a_hundred_parts", "test_an_order_of_a_hundred_… test_shop.py:12"),
    ],
)
def test_a_method_whose_name_is_too_long_goes_without_its_class_first(function: str, shown: str) -> None:
    assert where_text(Place(function=function, file="/app/test_shop.py", line=12), "/app") == shown


def test_what_a_short_table_leaves_out_is_where_the_page_says() -> None:
    table = DataTable((TableColumn("place"),), (("a",), ("b",)), brief=1)
    shown = View("title", (table,))
    assert "and 1 more: --format json has all of them" in terminal.render(shown, details=False)
    other = terminal.render(shown, details=False, rest="report.html has all of them")
    assert "and 1 more: report.html has all of them" in other


def test_a_program_without_lines_is_told_what_brings_them() -> None:
    sampled = SampledTime(2.0, 2.0, native=True)
    spot = CodeSpot(0.9, 1.8, "native", Place(function="main"))
    document = replace(documents.empty(), sampled=(sampled,), hot_spots=(spot,))
    asked = "To know more (the lines in main): compile with -g beside the optimisation"
    assert asked in plain_text(more_text(document) or "")
    placed = replace(spot, where=replace(spot.where, file="/app/words.cpp", line=3))
    assert more_text(replace(document, hot_spots=(placed,))) is None
    # What has its compiler's name was compiled with -g: other functions than its own have no lines.
    assert more_text(replace(document, facts={"compiler": "GNU C++17"})) is None
    assert more_text(replace(document, hot_spots=(replace(spot, share=0.1),))) is None
