"""A sweep in a terminal and as Markdown: what to conclude first, in 80 columns, and nothing that obeys."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from profkit.core.types import SweepDocument
from profkit.reporting.html import page
from profkit.reporting.markdown import render as render_markdown
from profkit.reporting.report_files import write_sweep_reports
from profkit.reporting.views.kernels.sweep import conclusions, markers, missing_rows, view
from tests import sweep_documents as sweeps
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
        "CUDA, 2.50 x as fast as PyTorch, alone fastest at 24 of 24; geometric mean of 24 shapes.",
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


def test_a_page_of_ten_thousand_cases_stays_small() -> None:
    document = sweeps.many(10_000)
    made = html(document)
    assert len(document.results) >= 10_000
    assert len(made.encode()) < 3_100_000
    assert made.count("<tr data-row=") == 4000
    assert f"{len(document.results) - 4000} more stand in the JSON document" in made
