"""A sweep in a terminal and as Markdown: what to conclude first, in 80 columns, and nothing that obeys."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from profkit.core.types import GridPoint, MeasuredCeilings, SweepDocument
from profkit.reporting.charts.marks import ChartGroup
from profkit.reporting.html import page
from profkit.reporting.markdown import render as render_markdown
from profkit.reporting.report_files import write_sweep_reports
from profkit.reporting.view import plain_text, walk
from profkit.reporting.views.kernels.sweep import conclusions, head_line, markers, missing_rows, view
from tests import sweep_documents as sweeps
from tests.reporting.charts.svg_facts import corners, marks, outside, overlaps, parsed, svg, words
from tests.reporting.html.markup import problems
from tests.reporting.shown import text_of
from tests.spoken import spoken

FOLDER = Path("reports/a-sweep")
ODD = sorted(sweeps.odd())


def terminal(document: SweepDocument, *, details: bool = False, width: int = 80) -> str:
    return text_of(view(document, FOLDER), details=details, width=width)


def markdown(document: SweepDocument, limit: int | None = None) -> str:
    return render_markdown(view(document, FOLDER), limit)


def html(document: SweepDocument) -> str:
    return page.render(view(document, FOLDER))


def test_the_first_lines_say_who_is_fastest() -> None:
    document = sweeps.sweep("LayerNorm", "GELU")
    (fastest,) = conclusions(document)
    assert fastest == (
        "Fastest",
        "CUDA, 2.50 x as fast as PyTorch, the only fastest one for 24 of 24; geometric mean of 24 shapes.",
    )
    lines = terminal(document).splitlines()
    assert lines[0] == "✓ COMPLETE  96 of 96 cases measured in 100 s"
    assert lines[1] == "Sweep on NVIDIA H200"


@pytest.mark.parametrize("name", ODD)
def test_whatever_is_missing_every_view_says_so_in_its_width(name: str) -> None:
    document = sweeps.odd()[name]
    for width in (80, 40):
        told = terminal(document, details=True, width=width)
        typed = [line for line in told.splitlines() if str(FOLDER) not in line]
        assert max(map(len, typed)) <= width
    for made in (told, markdown(document)):
        assert not re.search(r"\b(?:nan|inf|None)\b", made)
    assert problems(html(document)) == []


def test_of_many_groups_the_first_have_a_map_and_of_the_others_it_is_said_who_is_fastest() -> None:
    document = sweeps.sweep(*(f"op{n}" for n in range(12)))
    text = terminal(document)
    assert text.count("Fastest, by dimension") == 8
    assert "12 shapes; fastest: CUDA, 2.50 x as fast as PyTorch" in " ".join(text.split())
    assert terminal(document, details=True).count("Fastest, by dimension") == 12
    many = sweeps.sweep(batches=(1, 2, 4, 8), sequences=(1, 2, 4, 8))  # a map of 16 rows is long
    for details, rows in ((False, 8), (True, 16)):
        assert len(re.findall(r"\n +\d+ x \d+ +C 1", terminal(many, details=details))) == rows


def test_each_axis_has_a_table_of_times_and_speed_ups_in_eighty_columns() -> None:
    document = sweeps.sweep("LayerNorm", "GELU", dtypes=("float32", "bfloat16"))
    told = terminal(document)
    assert max(map(len, told.splitlines())) <= 80
    for axis, rows in (("batch", 2), ("sequence", 2), ("dimension", 3), ("dtype", 2)):
        table = told[told.index(f"  By {axis}\n") :].splitlines()[1 : 2 + rows]
        assert table[0].split() == [axis, "PyTorch", "torch.compile", "Triton", "CUDA"]
        assert all(re.search(r"s +\S+ \S+ \(1\.25 x\) .* \(2\.50 x\)$", row) for row in table[1:]), table
    assert "geometric means over everything but the axis of the table" in " ".join(told.split())
    assert "GELU forward float32, by batch" not in told  # a short screen has all operations together
    assert "GELU forward float32, by batch" in terminal(document, details=True)
    for title in ("**By sequence**", "**GELU forward bfloat16, by dimension**"):
        assert title in markdown(document)


def test_what_is_left_out_of_the_means_is_counted_below_each_table() -> None:
    large = [n for n, r in enumerate(sweeps.sweep().results) if r.point.elements == 32 * 512 * 512]
    told = " ".join(terminal(sweeps.without(sweeps.sweep(), "too large", "CUDA", "no", among=large)).split())
    assert "5 combinations of the other axes; 2 of 12 shapes are left out: not every implementation" in told
    assert "left out" not in terminal(sweeps.sweep())


def test_a_sweep_of_one_implementation_has_times_without_speed_ups() -> None:
    told = terminal(sweeps.sweep(factors={"PyTorch": 1.0}))
    assert "By dimension" in told
    assert "as fast as" not in told


def test_an_axis_of_one_value_has_no_table_and_one_that_nobody_shares_says_so() -> None:
    assert "By batch" not in terminal(sweeps.sweep(batches=(16,)))
    points = [GridPoint("GELU", 1, s, 8) for s in (1, 2)]
    apart = sweeps.of(sweeps.case(points[0], "PyTorch"), sweeps.case(points[1], "CUDA"))
    assert "By sequence: no means, since no sequence was timed" in " ".join(terminal(apart).split())


def test_curves_have_a_line_for_each_implementation_and_the_roof_on_logarithmic_axes() -> None:
    document = sweeps.sweep("LayerNorm", "GELU")
    blocks = [block for block in walk(view(document).blocks) if isinstance(block, ChartGroup)]
    assert [len(block.charts) for block in blocks] == [2, 2, 2]  # of each axis one for each operation
    batch, _, dimension = (block.charts[0] for block in blocks)
    assert (batch.x.log, batch.y.log) == (False, False)  # 16 and 32
    assert (dimension.x.log, dimension.y.log) == (True, True)  # 8 to 512
    drawn = svg(dimension)
    assert overlaps(drawn) == outside(drawn) == []
    assert [word for word in words(drawn) if len(word) == 1 and word.isupper()] == ["P", "O", "T", "C"]
    assert len(marks(drawn, "path", "curve")) == 4
    (roof,) = marks(drawn, "path", "roof")
    # The least time goes with the size, so on two logarithmic axes it is a straight line.
    (x1, y1), (x2, y2), (x3, y3) = corners(roof)
    assert (y2 - y1) / (x2 - x1) == pytest.approx((y3 - y1) / (x3 - x1), rel=0.01)
    reached = [e.get("aria-label") or "" for e in parsed(drawn).iter("g") if e.get("tabindex") == "0"]
    assert len(reached) == 5
    assert any(one.startswith("CUDA: 8 ") and "512 " in one for one in reached)
    unknown = view(replace(document, roofs=MeasuredCeilings()))
    (first, *_) = [block for block in walk(unknown.blocks) if isinstance(block, ChartGroup)]
    assert marks(svg(first.charts[0]), "path", "roof") == []
    assert "roofline" not in plain_text(first.note)


@pytest.mark.parametrize("count", [1, 4, 9, 20])
def test_letters_behind_lines_that_end_together_do_not_stand_on_each_other(count: int) -> None:
    factors = {"PyTorch": 1.0, **{f"kernel {n}": 1.0 + n / 1000 for n in range(count)}}
    for block in walk(view(sweeps.sweep("GELU", factors=factors)).blocks):
        for chart in block.charts if isinstance(block, ChartGroup) else ():
            assert overlaps(svg(chart)) == outside(svg(chart)) == []


def test_what_is_wrong_stands_first_and_one_reason_stands_once() -> None:
    document = sweeps.without(sweeps.sweep(), "too large", "Triton", "needs {} GiB")
    document = sweeps.without(document, "wrong", "CUDA", "an error of 3.{}", among=(3, 7))
    first, second = missing_rows(document)
    assert (first.word, spoken(first.reason)) == ("wrong", "an error of 3.3")
    assert first.place.endswith(" and 1 more")
    assert (second.word, second.place.endswith(" and 11 more")) == ("too large", True)
    assert conclusions(document)[-1] == ("Not right", "2 cases (2 wrong). No mean includes them.")
    assert "an error of 3.3" in terminal(document)


def test_what_brings_an_implementation_is_told_once_and_in_one_piece() -> None:
    fix = "apt-get install gcc " + "x" * 80
    told = terminal(
        sweeps.without(sweeps.sweep("GELU", "MSE"), "unavailable", "Triton", "no compiler", fix=fix)
    )
    assert told.count(f"{fix}\n") == 1
    assert re.search(
        r"\? unavailable Triton +GELU forward float32 16x256x8 and 23 more in 2\s+operations:", told
    )
    assert "no compiler" in told


def test_every_implementation_has_a_letter_of_its_own() -> None:
    letters = {name: mark.text for name, mark in markers(sweeps.sweep()).items()}
    assert letters == {"PyTorch": "P", "torch.compile": "O", "Triton": "T", "CUDA": "C"}
    many = sweeps.sweep(
        factors={f"a{n}": 1.0 for n in range(30)}, dimensions=(8,), batches=(1,), sequences=(1,)
    )
    assert len({mark.text for mark in markers(many).values()}) == 30


def test_markdown_has_a_table_for_each_panel() -> None:
    made = markdown(sweeps.sweep("GELU", "MSE"))
    assert "| GELU forward float32 | 1.00 x | 1.25 x | 2.00 x | 2.50 x |" in made
    assert "### MSE forward float32\n\n12 shapes" in made
    for table in re.findall(r"(?:^\|.*\n)+", made, re.MULTILINE):
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in table.splitlines()}) == 1


def test_names_that_are_markup_are_shown_and_obeyed_nowhere() -> None:
    document = sweeps.hostile()
    told, made = terminal(document, details=True), markdown(document)
    assert not {"\x1b", "\u202e", "\udc80"} & set(told + made)
    shown = re.sub(r"```text\n.*?```|``.*?``", "", made, flags=re.DOTALL)  # but for plots and code
    assert "<script>" not in shown
    assert "@you" not in shown


def test_a_report_that_cannot_be_made_costs_no_sweep(tmp_path: Path) -> None:
    broken = replace(sweeps.sweep(), versions=None)  # type: ignore[arg-type]
    whys = write_sweep_reports(tmp_path, replace(broken, started=None))  # type: ignore[arg-type]
    assert len(whys) == 2
    assert all("profkit could not make it" in why for why in whys)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.thorough
def test_a_page_of_ten_thousand_cases_stays_small() -> None:
    document = sweeps.many(10_000)
    made = html(document)
    assert len(document.results) >= 10_000
    assert len(made.encode()) < 3_100_000
    assert made.count("<tr data-row=") == 4000
    assert f"{len(document.results) - 4000:,} more stand in the JSON document" in made


def test_a_sweep_whose_time_nobody_noted_does_not_say_that_it_took_none() -> None:
    document = sweeps.sweep("GELU")
    assert head_line(document).endswith(" cases measured in 100 s")
    assert head_line(replace(document, seconds=0.0)).endswith(" cases measured")
