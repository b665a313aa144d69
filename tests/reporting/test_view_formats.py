"""Kinds and formats are independent: a format made up here renders all kinds, a kind made up here is in all formats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from profkit.core.types import Check, HistoryPoint, Series, SeriesKey, Trend
from profkit.reporting import junit, markdown, terminal
from profkit.reporting import view as blocks
from profkit.reporting.charts import marks
from profkit.reporting.charts.marks import ChartGroup
from profkit.reporting.forges import Annotation, AnnotationList, Case, CaseList, annotation_lines
from profkit.reporting.html import page
from profkit.reporting.view import Block, Paragraph, Section, Status, View, plain_text
from profkit.reporting.views import history, night, plan, run
from profkit.reporting.views.comparison import view as comparison
from profkit.reporting.views.kernels import generation, sweep
from tests import gpu_documents, metal_documents
from tests import sweep_documents as sweeps
from tests.generation.documents import every_way
from tests.regression.history.entries import entry, value
from tests.regression.nightly.test_night_reports import MIXED
from tests.reporting.html.markup import problems
from tests.reporting.test_comparison import ALL as COMPARISONS
from tests.reporting.test_renderers import judged
from tests.reporting.test_sweep_check import judged as sweep_judged

SERIES = Series(
    SeriesKey("mlp", "cpu", "time.median"),
    "s",
    "lower",
    tuple(
        HistoryPoint(f"r{n}", f"2026-01-{n + 1:02d}T02:00:00+00:00", "m", 4e-3 + 1e-5 * n) for n in range(20)
    ),
)
SWEEP = sweeps.without(sweeps.sweep("GELU", "MSE"), "crashed", "CUDA", "killed by SIGSEGV", among=(3,))
ENTRY = entry(1, value(number=1e-3))
VIEWS: dict[str, View] = {
    "run": run.view(judged()),
    "run on a GPU": run.view(gpu_documents.run()),
    "run with Metal": run.view(metal_documents.run()),
    "comparison": comparison.view(COMPARISONS[0]),
    "refusal": comparison.view(COMPARISONS[3]),
    "night": night.view(MIXED),
    "trends": history.trends_view([Trend(SERIES), Trend(replace(SERIES, unit="B"))]),
    "history": history.history_view([ENTRY], [], "history.sqlite", 1),
    "entry": history.entry_view(ENTRY),
    "plan": plan.view(gpu_documents.plan()),
    "checks": plan.checks_view([Check("perf", "missing", "not here", "apt install linux-perf")]),
    "sweep": sweep.view(SWEEP, Path("reports/a-sweep")),
    "sweep without a baseline": sweep.view(sweeps.odd()["no baseline"]),
    "judged sweep": sweep.judged(sweep_judged(SWEEP)),
    "generation": generation.view(every_way(), Path("generated_kernels/spring")),
    "scrubbed": plan.scrubbed_view("copy", [], []),
}


# ---------------------------------------------------------------- a format


def outline(view: View) -> str:
    """A made-up format: an outline of plain lines. It knows the five basic blocks and nothing else."""
    facts = [f"{name} = {plain_text(text)}" for name, text in view.facts]
    return "\n".join(
        [plain_text(view.title), *map(plain_text, view.headline), *facts, *_outline(view.blocks, 1)]
    )


def _outline(parts: Sequence[Block], depth: int) -> list[str]:
    lines: list[str] = []
    for block in parts:
        match block:
            case blocks.Section():
                inside = _outline(block.blocks, depth + 1)
                if inside or (block.headline and not block.repeats):
                    lines += ["  " * depth + plain_text(text) for text in (block.title, block.headline)]
                    lines += inside
            case blocks.Paragraph():
                lines.append("  " * depth + plain_text(block.text))
            case blocks.ItemList():
                known = [one if isinstance(one, blocks.Item) else blocks.Item(one) for one in block.items]
                lines += ["  " * depth + plain_text(text) for one in known for text in (one.text, *one.below)]
            case blocks.FieldList():
                lines += ["  " * depth + f"{name} = {plain_text(text)}" for name, text in block.rows]
            case blocks.DataTable():
                lines += ["  " * depth + "; ".join(map(plain_text, row)) for row in block.rows]
            case _:
                lines += _outline(block.plain(), depth)
    return lines


@pytest.mark.parametrize("kind", VIEWS)
def test_a_made_up_format_renders_every_kind(kind: str) -> None:
    text = outline(VIEWS[kind])
    assert len(text) > 30
    assert not any(name in text for name in ("Span(", "Fold.", "None"))


def test_a_made_up_format_has_what_each_kind_says() -> None:
    said = {
        "run": (
            "9.0 % of the data accesses missed the L1 cache",
            "Walk arrays in the order",
            "logs/tracemalloc.log",
        ),
        "comparison": ("time.median of mlp rose by", "It executes 20 % more instructions.", "+20.0 %"),
        "night": ("✗ REGRESSED", "1.00 ms → 1.10 ms: 10 % above", "profkit history accept"),
        "checks": ("✗ MISSING", "apt install linux-perf"),
        "sweep": (
            "CUDA, 2.50 x as fast as PyTorch, the only",
            "16 x 256; C 1.25; C 1.25; C 1.25",
            "✗ crashed; GELU forward float32 16x256x8; CUDA; killed by SIGSEGV",
            "the device's own clock",
        ),
        "generation": (
            "2 of 4 operations have a correct kernel",
            "✗ timeout; attempt 5 of 5; _softmax.default; 1 of 6; no answer for 30 s",
            "relu.default; 3 of 5; 1.64 x (1.59-1.69, FASTER); 68.3 %",
            "best of several measurements",
            "profkit generate --resume generated_kernels/spring",
        ),
        "judged sweep": (
            "1 FAIL",
            "killed by SIGSEGV",
            "time-precision; <= 1 %; 95 PASS",
        ),
        "trends": ("4.19 ms", "20 values, 2026-01-01 to 2026-01-20"),
    }
    for kind, words in said.items():
        text = outline(VIEWS[kind])
        assert [one for one in words if one not in text] == [], kind


@pytest.mark.parametrize("kind", VIEWS)
def test_every_kind_is_in_every_format(kind: str) -> None:
    view = VIEWS[kind]
    for details in (True, False):
        text = terminal.render(view, details=details, color=False, width=80)
        assert text.strip()
    assert markdown.render(view).startswith("## ")
    assert problems(page.render(view)) == []
    suites = ElementTree.fromstring(junit.render([view]).split("\n", 1)[1])
    assert len(list(suites.iter("testcase"))) >= 1


# ---------------------------------------------------------------- a kind


@dataclass(frozen=True)
class Weather(Block):
    """A block that no format knows."""

    degrees: float

    def plain(self) -> Sequence[Block]:
        return (blocks.FieldList((("Outside", f"{self.degrees:g} degrees <b>"),)),)


def made_up() -> View:
    row = blocks.StatusRow(Status.FAIL, "WET", ("roof",), "it rains in", limit="dry", below=("mend it",))
    days = marks.PointGroup(tuple(marks.Point(float(day), float(day)) for day in (1, 2, 3)))
    drawn = marks.Chart("rain", "Rain", "much", marks.Axis("day"), marks.Axis("Rain", "mm"), (days,))
    return View(
        "A made-up kind",
        (
            Section("Now", (Weather(21.5), ChartGroup((drawn,)))),
            Section("Rooms", (blocks.Statuses((row,)), blocks.ItemList(("mend",), ordered=True))),
            Section("Later", (blocks.Commands(("profkit weather --tomorrow",)),)),
        ),
        blocks.Label(Status.FAIL, "RAIN"),
        ("It rains.",),
    )


def test_a_made_up_kind_is_in_every_format() -> None:
    view = made_up()
    text = terminal.render(view, color=False, width=80)
    assert text.startswith("✗ RAIN  It rains.\n")
    for shown in (text, markdown.render(view), page.render(view)):
        assert [
            word for word in ("21.5", "3.00 mm", "it rains in", "mend", "--tomorrow") if word not in shown
        ] == []
    assert "degrees <b>" not in markdown.render(view) + page.render(view)
    assert problems(page.render(view)) == []
    (case,) = ElementTree.fromstring(junit.render([view]).split("\n", 1)[1]).iter("testcase")
    assert (case.get("name"), case[0].tag, case[0].get("message")) == ("roof", "failure", "it rains in")


@pytest.mark.parametrize("form", ["markdown", "html", "annotations", "junit"])
def test_what_is_published_masks_the_secrets_that_a_text_has_by_their_form(form: str) -> None:
    token = "gh" + "p_" + "a1B2" * 9
    said = f"the workload said: password: hunter2x, {token}"
    view = View(
        "a run",
        (
            Paragraph(said),
            AnnotationList((Annotation("error", "slower", said),)),
            CaseList("run", (Case("a", "b", "error", said, said),)),
        ),
    )
    shown = {
        "markdown": lambda: markdown.render(view),
        "html": lambda: page.render(view),
        "annotations": lambda: annotation_lines(view),
        "junit": lambda: junit.render([view]),
    }[form]()
    assert "the workload said" in shown
    assert "hunter2x" not in shown
    assert "a1B2a1B2" not in shown
