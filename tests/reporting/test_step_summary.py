"""Markdown as the summary of a CI step: the verdict first, nothing linked, and never too long to be shown."""

from __future__ import annotations

from dataclasses import replace

import pytest

from profkit.core.types import Verdict
from profkit.reporting import markdown
from profkit.reporting.markdown import STEP_SUMMARY, escape_markdown
from profkit.reporting.view import Fold, Section, table
from profkit.reporting.views import run
from tests import documents
from tests.documents import verdict as of
from tests.reporting.shown import run_markdown as render
from tests.reporting.test_renderers import judged

UNKNOWN = ["## ? 2 targets could not be checked: gated\\_mlp on cpu", "", "`a`, `b`"]


def lines_of(*verdicts: Verdict) -> list[str]:
    return render(replace(documents.empty(), state="complete", verdicts=verdicts)).split("\n")


def test_the_verdict_stands_below_the_title_in_one_line() -> None:
    lines = lines_of(of("pass", "c"), of("fail", "a"), of("unknown", "b"))
    title = "## ✗ 1 target missed: gated\\_mlp on cpu"
    assert lines[:3] == [title, "", "`a`; 1 could not be checked, 1 met"]
    assert lines_of(of("pass", "a"), of("pass", "b"))[0] == "## ✓ 2 targets met: gated\\_mlp on cpu"
    assert lines_of(of("unknown", "a"), of("unknown", "b"))[:3] == UNKNOWN


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("ask @octocat", "ask @<!-- -->octocat"),
        ("closes #12", "closes \\#<!-- -->12"),
        ("GH-7 and gh-8", "GH-<!-- -->7 and gh-<!-- -->8"),
        ("C# # 1", "C\\# \\# 1"),
        ("a|b`c`<d>&", "a\\|b\\`c\\`&lt;d&gt;&amp;"),
        ("two\nlines", "two lines"),
        ("www.evil.example", "www&#8203;.evil.example"),
    ],
)
def test_github_makes_no_link_of_what_comes_from_outside(text: str, shown: str) -> None:
    assert escape_markdown(text) == shown


def large(rows: int, cell: int) -> str:
    large_table = table(("kernel", "n"), [("k" * cell, str(n)) for n in range(rows)], title="kernels")
    view = run.view(judged())
    more = (Section(f"concern {n}", (large_table,), "told", Fold.FOLDED) for n in range(3))
    return markdown.render(replace(view, blocks=(*view.blocks, *more)), STEP_SUMMARY)


@pytest.mark.thorough
@pytest.mark.parametrize(("rows", "cell"), [(2000, 400), (40, 40_000), (3, 1_000_000), (30_000, 3)])
def test_a_summary_is_cut_to_what_github_shows_and_says_so(rows: int, cell: int) -> None:
    text = large(rows, cell)
    assert len(text.encode()) <= STEP_SUMMARY
    assert text.rstrip().endswith("*")
    assert "further lines are in `--format json`" in text
    assert text.count("<details>") == text.count("</details>")
    assert "targets missed" in text
    assert "### Targets" in text
