"""Two versions that were run in turn, as a person reads them: the words first, how small a change would show, why."""

from __future__ import annotations

import re
from dataclasses import replace

from profkit.core.types import BlamedLine, Cause, ComparedWorkload, Fact
from profkit.reporting import markdown
from profkit.reporting.html import page
from profkit.reporting.view import plain_text
from profkit.reporting.views.comparison.view import comment, suite_view, view, why_lines
from profkit.reporting.views.comparison.words import leading_change, size_text
from tests.paired_documents import LINE, compared, said, suite, workload
from tests.reporting.shown import comparison_text as as_text
from tests.reporting.shown import text_of

HOSTILE = '</summary><script>alert("x")</script>|`*_[a](http://b) @octocat\x1b[31m\n::error::x'


def test_how_small_a_change_would_have_been_seen_is_told_with_the_floor() -> None:
    found = compared(0.0, 0.001)
    (change,) = found.changes
    assert change.detectable is not None
    text = " ".join(as_text(found, color=False).split())
    assert change.word == "same"
    assert (
        f"smaller than 2.0 %, which does not count (--floor); one of {100 * change.detectable:.1f} % would"
        in text
    )
    different = " ".join(as_text(compared(0.3, 0.001), color=False).split())
    assert "or more different; one below 2.0 % does not count (--floor)" in different


def test_a_blamed_line_has_its_place_commit_subject_and_what_changed_before_the_causes() -> None:
    found = compared(blamed=(LINE,), causes=(Cause("work", said("It executes 37 % more instructions.")),))
    text = as_text(found, color=False)
    line = "src/parse.py:12 in parse, commit 1a2b3c4 'Parse twice': own time +38 %"
    assert line in text
    assert "row.upper()" in text
    assert text.index(line) < text.index("It executes")


def test_the_comment_is_a_verdict_a_short_table_the_cause_and_all_else_folded() -> None:
    found = compared(blamed=(LINE,), causes=(Cause("work", said("It executes 37 % more instructions.")),))
    text = markdown.render(comment(found))
    open_part, folded = text.split("<details>", 1)
    assert open_part.startswith("## ✗ WORSE: time.median +1")
    assert "These runs call a change of " in open_part
    assert "| ✗ Time of the process | " in open_part
    assert "- src/parse.py:12 in parse, commit 1a2b3c4" in open_part
    assert "- It executes 37 % more instructions." in open_part
    assert "Changed lines in" not in open_part
    assert "Changed lines in" in folded
    assert len(open_part.strip().split("\n")) < 20
    assert text.count("<details>") == text.count("</details>")


def test_nothing_in_it_is_obeyed() -> None:
    line = replace(LINE, path=HOSTILE, text=HOSTILE, subject=HOSTILE, function=HOSTILE, why=said(HOSTILE))
    found = compared(blamed=(line,), causes=(Cause("work", said(HOSTILE)),))
    found = replace(found, baseline=replace(found.baseline, name=HOSTILE))
    whole = suite(
        ComparedWorkload(HOSTILE, "compared", found),
        ComparedWorkload("b", "failed", None, said(HOSTILE), HOSTILE),
    )
    for shown in (view(found), comment(found), suite_view(whole), suite_view(whole, short=True)):
        for text in (markdown.render(shown), page.render(shown), text_of(shown)):
            assert "\x1b" not in text
        outside = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", markdown.render(shown).replace("\\`", ""))
        assert "<script>alert" not in outside
        assert "@octocat" not in outside
        assert '<script>alert("x")' not in page.render(shown)


def test_the_leading_change_is_a_time_that_decides_and_stands_for_the_outcome() -> None:
    found = compared(0.12)
    (change,) = found.changes
    explains = replace(change, metric="instructions", role="stands-in", ratio=2.0)
    memory = replace(change, metric="memory.rss_peak", ratio=1.5)
    lead = leading_change(replace(found, changes=(explains, memory, change)))
    assert lead is change
    assert leading_change(replace(found, changes=(explains, memory))) is memory
    assert leading_change(replace(found, changes=())) is None


def test_sizes_are_percents_points_factors_or_exact() -> None:
    (change,) = compared(0.12).changes
    assert size_text(replace(change, ratio=1.123, low=1.098, high=1.149)) == "+12.3 % [+9.8, +14.9]"
    assert size_text(replace(change, ratio=12.0, low=11.0, high=13.0)) == "12.0 x [11.0, 13.0]"
    assert size_text(replace(change, ratio=1.5, low=1.5, high=1.5)) == "+50.0 %, exact"
    assert size_text(replace(change, ratio=None)) == "-"


# ---------------------------------------------------------------- several workloads


def test_a_suite_has_a_row_for_each_workload_and_the_worst_first() -> None:
    whole = suite(
        workload("parse", 0.12),
        ComparedWorkload("broken", "failed", None, said("it exited with 1; it said:\nno such file")),
        workload("render"),
        ComparedWorkload("fresh", "new", None, Fact.of("not-in-base", base="main", file="fresh.py")),
    )
    shown = suite_view(whole)
    assert plain_text(shown.headline[0]).endswith("(1 worse, 1 failed, 1 same, 1 new)")
    text = text_of(shown, details=False, width=80)
    assert text.startswith("✗ WORSE  parse: time.median +1")
    assert re.search(r"^parse +✗ WORSE +\+1\d\.\d % \[.*\] +\d\.\d % +12$", text, re.MULTILINE)
    assert re.search(r"^broken +✗ FAILED", text, re.MULTILINE)
    assert re.search(r"^fresh +\+ NEW", text, re.MULTILINE)
    assert "no such file" in text
    markdown_text = markdown.render(suite_view(whole, short=True))
    assert markdown_text.startswith("## ✗ WORSE: parse: time.median +1")
    assert markdown_text.count("| **✗ WORSE**") == 1
    assert "<summary>All that was compared</summary>" in markdown_text


def test_a_cause_that_a_changed_line_says_already_is_not_said_again() -> None:
    calls = "sorted is called 1,200 times per run instead of 0"
    line = BlamedLine("parser.py", 90, "sorted(words)", "1a2b3c4", "Sort", "parse", said(calls))
    causes = (
        Cause("calls", said(f"{calls}, from parse (parser.py:88).")),
        Cause("work", said("It executes more.")),
    )
    lines = why_lines(compared(blamed=(line,), causes=causes))
    assert [text.count(calls) for text in lines] == [1, 0]
    assert lines[1] == "It executes more."
